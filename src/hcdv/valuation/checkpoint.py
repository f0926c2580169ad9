"""Payoffs of costly games kept in a file while they are paid for, for a run to go on from."""

from __future__ import annotations

import logging
import os
import secrets
import time
import zipfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError, StoreError
from hcdv.valuation.cached_game import CachedGame

log = logging.getLogger("hcdv")

EVERY = 10.0  # seconds of work that a power cut may cost
ARRAYS = ("coalitions", "payoffs", "outcomes", "first_error", "game")


class Checkpoint:
    """One npz file, without objects, of the payoffs of any number of games."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise StoreError(
                f"checkpoint must lie in a folder that exists, got '{self.path}'. Make "
                f"'{self.path.parent}' first."
            )
        self.held = self._read() if self.path.exists() else dict[str, dict[str, Any]]()
        self._write()  # refused now rather than after the first payoffs
        self._written = time.monotonic()

    def take_up(self, game: CachedGame) -> None:
        """Give a game the payoffs it was paid before."""
        name = game.fingerprint
        if name in self.held:
            n_taken = game.load_cache(self.held[name])
            log.info("%s payoffs taken from '%s'", f"{n_taken:,}", self.path)

    def keep(self, games: Iterable[CachedGame], *, now: bool) -> None:
        """Write what has been paid; unless now, only if the last time was a while ago."""
        if not now and time.monotonic() - self._written < EVERY:
            return
        for game in games:
            self.held[game.fingerprint] = game.cache_arrays()
        self._write()
        self._written = time.monotonic()

    def _read(self) -> dict[str, dict[str, NDArray[Any]]]:
        held: dict[str, dict[str, NDArray[Any]]] = {}
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                for key in saved.files:
                    name, array = key.split(" ")
                    held.setdefault(name, {})[array] = saved[key]
            complete = all(set(arrays) == set(ARRAYS) for arrays in held.values())
            if not complete:
                raise ValueError("arrays are missing")
        except (
            OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error,
        ) as error:  # fmt: skip
            raise DataError(
                f"checkpoint must be a file of payoffs, got '{self.path}': {error}. Name a new "
                "file, or remove this one to begin again."
            ) from error
        return held

    def _write(self) -> None:
        flat = {
            f"{name} {key}": a for name, of in self.held.items() for key, a in of.items()
        }
        beside = f".{self.path.name}.tmp-{os.getpid()}-{secrets.token_hex(3)}"
        draft = self.path.with_name(beside)
        try:
            with draft.open("xb") as file:
                np.savez(file, **cast("dict[str, Any]", flat))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        except OSError as error:
            raise StoreError(
                f"checkpoint must be writable, got '{self.path}': {error.strerror or error}. "
                "Choose a file in a folder that you may write to."
            ) from error
        finally:
            with suppress(OSError):
                draft.unlink()
