"""Updates of a run folder: one writer at a time, each update whole or not there at all.

Order of an update N: state-N and worth-N are written under other names, flushed, renamed;
then one transaction of the ledger publishes both. A writer that dies leaves at most files
that the ledger does not know, which the next writer overwrites.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hcdv.errors import StoreError
from hcdv.store.folder import FILES, REPORT, read_about, read_files, replace_file
from hcdv.store.ledger import Update, insert, is_living, latest, migrate, reading, writing
from hcdv.store.rows import note_later, settle, stored
from hcdv.store.saving import load, model_of, parquet, state_bytes

if TYPE_CHECKING:
    from hcdv.estimator import HCDV

LOCK, HOLDER = "writer.lock", "writer.json"
STATES, WORTH = "states", "worth"
_PURGING = ("forget", "refresh")  # updates after which rows that went are in no file
_KEPT = 2  # states on disk: the latest, and one for whoever is reading


class Writer:
    """The one who may change a run folder, and the model as it is there."""

    def __init__(self, folder: Path, ledger: sqlite3.Connection) -> None:
        self.folder, self.ledger = folder, ledger
        self.number = _begun(folder, ledger)
        self.model = load(folder)

    def commit(self, model: HCDV, file: tuple[str, str] | None = None) -> Update:
        """Publish the model's state as the next update. file: what it came from, name and hash."""
        number = self.number + 1
        row = _written(self.folder, model, number)
        note_later(self.folder, number, model.given_)
        # it tells values that no longer hold, and may show rows that are to go
        (self.folder / REPORT).unlink(missing_ok=True)
        self.ledger.execute("BEGIN IMMEDIATE")
        try:
            insert(self.ledger, "updates", row)
            if file is not None:
                insert(self.ledger, "files", (*file, row.at, number, None))
            self.ledger.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self.ledger.execute("ROLLBACK")
            raise
        self.number, self.model = number, model
        _prune(self.folder, number)
        settle(self.folder, number, purge=row.kind in _PURGING)
        model.given_ = stored(self.folder)
        return row

    def refuse(self, file: tuple[str, str], reason: str) -> None:
        """Note a file that could not be applied, so that it is not tried again."""
        insert(self.ledger, "files", (*file, _now(), None, reason))

    def known_files(self) -> dict[str, str]:
        """Hash by name of every file that was applied or refused."""
        return dict(self.ledger.execute("SELECT name, sha256 FROM files").fetchall())


@contextmanager
def updating(folder: Path) -> Iterator[Writer]:
    """Become the writer of a run folder; refused, with the holder named, if there is one."""
    read_about(folder)  # a run folder, and not of a later format
    with _locked(folder), writing(folder) as ledger:
        yield Writer(folder, ledger)


def load_latest(folder: Path) -> HCDV:
    """The model of the last committed update, or of the fit."""
    if not is_living(folder):
        return load_fit(folder)
    update = None
    for _ in range(5):  # a state may go while it is read, if two updates come meanwhile
        with reading(folder) as ledger:
            update = latest(ledger)
        if update is None:
            return load_fit(folder)
        with suppress(FileNotFoundError):
            return model_of(state_of(folder, update), folder / update.state)
    assert update is not None
    raise StoreError(
        f"'{folder / update.state}' must be there, as the ledger says, got no such file. "
        "Restore the folder from a copy."
    )


def load_fit(folder: Path) -> HCDV:
    """The model as it was first saved."""
    content = read_files(folder, read_about(folder))[FILES[2]]
    return model_of(content, folder / FILES[2])


def state_of(folder: Path, update: Update) -> bytes:
    """The state of an update, as it was written."""
    return checked(folder / update.state, update.state_sha256)


def checked(path: Path, sha256: str) -> bytes:
    """A file of the ledger; StoreError if it is not what was written."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise StoreError(
            f"'{path}' must be as it was written, got a damaged file. hcdv check says what "
            "can be made again; else restore the folder from a copy."
        )
    return content


def worth_bytes(model: HCDV, number: int) -> bytes:
    """Values of the live rows of an update, as Parquet."""
    frame = model.to_frame().drop(columns=["row", "leaf"])
    frame.insert(0, "number", number)
    frame["stale"] = model.stale_
    return parquet(frame)


def _begun(folder: Path, ledger: sqlite3.Connection) -> int:
    """The number of the last update; a run without a ledger gets one, with the fit in it."""
    ledger.execute("BEGIN IMMEDIATE")
    migrate(ledger)
    found = latest(ledger)
    if found is None:
        about = read_about(folder)
        model = load_fit(folder)
        row = _written(folder, model, 0)
        row = row._replace(
            state=FILES[2], state_sha256=about["sha256"][FILES[2]], at=about["created"]
        )
        insert(ledger, "updates", row)
    ledger.execute("COMMIT")
    number = 0 if found is None else found.number
    _prune(folder, number)
    settle(folder, number, purge=found is not None and found.kind in _PURGING)
    return number


def _written(folder: Path, model: HCDV, number: int) -> Update:
    """Write the files of an update; they count once the ledger names them."""
    run = model.run_
    assert run.living is not None
    record = run.living.history[-1]
    worth = worth_bytes(model, number)
    state = state_bytes(model) if number else b""
    names = f"{STATES}/{number:06}.safetensors", f"{WORTH}/{number:06}.parquet"
    if number:
        replace_file(folder / names[0], state)
    replace_file(folder / names[1], worth)
    parts = run.valuation.surplus
    return Update(
        number, _now(), record.kind, run.n_rows, record.came, record.gone, record.changed,
        record.n_stale, run.surplus, parts["utility"], parts["dispersion"],
        parts["consistency"], names[0], hashlib.sha256(state).hexdigest(), names[1],
        hashlib.sha256(worth).hexdigest(),
    )  # fmt: skip


def _prune(folder: Path, number: int) -> None:
    """Drop states that are over, and files of an update that was never committed."""
    for path in [*folder.glob(f"{STATES}/*"), *folder.glob(f"{WORTH}/*")]:
        own = path.name.partition(".")[0]
        is_state = path.parent.name == STATES
        over = own.isdecimal() and is_state and int(own) <= number - _KEPT
        if over or path.suffix == ".tmp" or not own.isdecimal() or int(own) > number:
            path.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder; SQLite's own lock goes with the process, however it ends."""
    try:
        lock = sqlite3.connect(folder / LOCK, isolation_level=None, timeout=0.0)
        with closing(lock):
            lock.execute("BEGIN EXCLUSIVE")
            replace_file(folder / HOLDER, json.dumps(_me()).encode())
            try:
                yield
            finally:
                with suppress(OSError):
                    (folder / HOLDER).unlink(missing_ok=True)
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise StoreError(
                f"'{folder}' must be writable to change the run, got: {error}. Copy it to a "
                "folder you may write to. Nothing was written."
            ) from error
        raise StoreError(
            f"'{folder}' must have one writer at a time, got a second: {_holder(folder)} holds "
            "it. Wait for that one to end, or stop it."
        ) from error


def _me() -> dict[str, str | int]:
    line = " ".join(["hcdv", *sys.argv[1:]]) if sys.argv else "hcdv"
    return {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "line": line,
        "since": _now(),
    }


def _holder(folder: Path) -> str:
    try:
        held = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return (
            f"process {held['process']} on {held['host']} ({held['line']}), since "
            f"{held['since']},"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
