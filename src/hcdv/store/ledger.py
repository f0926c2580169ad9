"""The ledger of a living run: one SQLite file that says which update is the latest.

Values and states are files that never change; an update is there once its row is committed
here, and not before. WAL lets others read while one writes; every commit reaches the disk.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hcdv.errors import StoreError

if TYPE_CHECKING:
    from hcdv.streaming.living import Record

LEDGER = "ledger.sqlite"
VERSION = 2

_MIGRATIONS = (  # from each version to the next; a folder without a ledger has version 0
    """
    CREATE TABLE updates (
        number INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL,
        n_rows INTEGER NOT NULL, came INTEGER NOT NULL, gone INTEGER NOT NULL,
        changed INTEGER NOT NULL, stale INTEGER NOT NULL, surplus REAL NOT NULL,
        utility REAL NOT NULL, dispersion REAL NOT NULL, consistency REAL NOT NULL,
        state TEXT NOT NULL, state_sha256 TEXT NOT NULL,
        worth TEXT NOT NULL, worth_sha256 TEXT NOT NULL
    );
    CREATE TABLE files (
        name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, at TEXT NOT NULL,
        number INTEGER REFERENCES updates, refused TEXT
    );
    """,
    """
    CREATE TABLE coalitions (
        number INTEGER NOT NULL REFERENCES updates, key INTEGER NOT NULL,
        size INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (number, key)
    ) WITHOUT ROWID;
    """,
)


class Update(NamedTuple):
    """One row of `updates`, in the order of its columns."""

    number: int
    at: str
    kind: str
    n_rows: int
    came: int
    gone: int
    changed: int
    stale: int
    surplus: float
    utility: float
    dispersion: float
    consistency: float
    state: str
    state_sha256: str
    worth: str
    worth_sha256: str


def insert_coalitions(connection: sqlite3.Connection, number: int, record: Record) -> None:
    """What the coalitions were worth after an update."""
    columns = (record.key.tolist(), record.size.tolist(), record.value.tolist())
    rows = ((number, *row) for row in zip(*columns, strict=True))
    connection.executemany("INSERT INTO coalitions VALUES (?, ?, ?, ?)", rows)


def wholes(connection: sqlite3.Connection) -> dict[int, float]:
    """By update, what all rows were worth as a coalition; a ledger of version 1 does not tell."""
    if _version(connection) < 2:
        return {}
    return dict(connection.execute("SELECT number, value FROM coalitions WHERE key = 0"))


def is_living(folder: Path) -> bool:
    """Whether a run folder has a ledger."""
    return (folder / LEDGER).is_file()


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """The ledger, to read; where the folder cannot be written to, a copy of it."""
    with told(folder), tempfile.TemporaryDirectory() as elsewhere:
        try:
            connection = _opened(folder / LEDGER, "ro")
        except sqlite3.OperationalError:
            for name in (LEDGER, f"{LEDGER}-wal"):
                if (folder / name).exists():
                    shutil.copy(folder / name, elsewhere)
            connection = _opened(Path(elsewhere) / LEDGER, "rw")
        with closing(connection):
            refuse_newer(folder, connection)
            yield connection


@contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """The ledger, to write, brought to the version of this hcdv."""
    with told(folder):
        connection = _opened(folder / LEDGER, "rwc")
        with closing(connection):
            refuse_newer(folder, connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            yield connection


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables to this version, inside the transaction that is open."""
    for number in range(_version(connection), VERSION):
        for statement in _MIGRATIONS[number].split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number + 1}")


def latest(connection: sqlite3.Connection) -> Update | None:
    """The last update that was committed."""
    if _version(connection) == 0:
        return None
    found = connection.execute("SELECT * FROM updates ORDER BY number DESC LIMIT 1")
    row = found.fetchone()
    return None if row is None else Update(*row)


def all_updates(connection: sqlite3.Connection) -> list[Update]:
    """Every update, in order."""
    rows = connection.execute("SELECT * FROM updates ORDER BY number")
    return [Update(*row) for row in rows]


def refuse_newer(folder: Path, connection: sqlite3.Connection) -> None:
    """A ledger of a later hcdv is left alone."""
    if (version := _version(connection)) > VERSION:
        raise StoreError(
            f"'{folder / LEDGER}' must be of version {VERSION} or before, got {version}. "
            "Upgrade: pip install --upgrade hcdv."
        )


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Turn what SQLite says into one line, with a way out."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"'{folder / LEDGER}' must be readable and writable, got: {error}. Check space and "
            "permissions; what was committed is there."
        ) from error
    except sqlite3.DatabaseError as error:
        raise StoreError(
            f"'{folder / LEDGER}' must be as it was written, got a damaged file: {error}. "
            "Restore the folder from a copy."
        ) from error


def insert(connection: sqlite3.Connection, table: str, row: tuple[Any, ...]) -> None:
    """Add one row to a table."""
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608, our names


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30.0)
    try:
        _version(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
