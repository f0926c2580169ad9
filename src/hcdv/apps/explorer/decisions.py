"""What a person decided of rows: a line a decision, added and never changed, in the run folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import IO, Any

from hcdv.apps.explorer.opened import EXPLORER
from hcdv.errors import StoreError

FILE = "decisions.jsonl"
KINDS = ("wrong", "keep", "drop", "clear")


class Decisions:
    """The decisions in a run folder; of a row decided on twice the later counts."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / EXPLORER / FILE
        self._mark: tuple[int, int] | None = None
        self._latest: dict[str, dict[str, Any]] = {}
        self._lock = Lock()

    def latest(self) -> dict[str, dict[str, Any]]:
        """The decision on each row that has one, by id as text."""
        with self._lock:
            try:
                about = self.path.stat()
            except (FileNotFoundError, NotADirectoryError):
                return {}
            mark = (about.st_size, about.st_mtime_ns)
            if mark != self._mark:
                self._latest, self._mark = self._read(), mark
            return self._latest

    def add(self, ids: Iterable[str], decision: str, label: str | None) -> None:
        """Decide on rows. label: the right one, where the decision is that it is wrong."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        lines = [
            json.dumps({"at": at, "id": each, "decision": decision, "label": label})
            for each in ids
        ]
        try:
            self.path.parent.mkdir(exist_ok=True)
            with self.path.open("ab+") as file, _alone(file):
                torn = file.seek(0, os.SEEK_END) and not _ends_whole(file)
                text = ("\n" if torn else "") + "".join(f"{line}\n" for line in lines)
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                f"'{self.path}' must be writable to keep decisions, got: "
                f"{error.strerror or error}. Copy the run to a folder you may write to; "
                "everything else can be looked at here."
            ) from error

    def _read(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(
                ValueError, KeyError, TypeError
            ):  # a line cut off by a crash is none
                each = json.loads(line)
                found.pop(str(each["id"]), None)
                if each["decision"] != "clear":
                    found[str(each["id"])] = {**each, "id": str(each["id"])}
        return found


def _ends_whole(file: IO[bytes]) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


@contextmanager
def _alone(file: IO[bytes]) -> Any:
    """Hold the file against another explorer of the same run, where the system can."""
    try:
        import fcntl
    except ImportError:  # Windows, where one write at the end is all there is to it
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
