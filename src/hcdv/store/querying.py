"""SQL over the ledger of a run, and over the values of every row after every update."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from hcdv.errors import DataError, StoreError
from hcdv.store.ledger import all_updates, is_living, reading

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("updates", "coalitions", "files", "worth")


def query(folder: Path, sql: str) -> pd.DataFrame:
    """What an SQL query answers; it can change nothing.

    Tables: updates (number, at, kind, n_rows, came, gone, changed, stale, surplus and its
    parts), coalitions (number, key, size, value), files (name, sha256, at, number, refused),
    and worth (number, id, value, stderr,
    the parts, label, stale), read from Parquet if the query names it.
    """
    import pandas as pd

    if not is_living(folder):
        raise StoreError(
            f"'{folder}' must have a ledger to be asked, got a run that was never changed. "
            "hcdv show has its values; the first hcdv update makes a ledger."
        )
    with reading(folder) as ledger:
        if re.search(r"\bworth\b", re.sub(r"\bupdates\.worth\b", "", sql)):
            files = [folder / update.worth for update in all_updates(ledger)]
            _load_worth(ledger, files)
        ledger.execute("PRAGMA query_only = ON")
        try:
            found = ledger.execute(sql)
            rows = found.fetchall()
        except sqlite3.Error as error:
            raise DataError(
                f"SQL must be one query of {', '.join(TABLES)}, got: {error}. hcdv ledger "
                "--help shows some."
            ) from error
        names = [column[0] for column in found.description or ()]
    return pd.DataFrame(rows, columns=names)


def _load_worth(ledger: sqlite3.Connection, files: list[Path]) -> None:
    import pandas as pd

    for path in files:
        try:
            frame = pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"'{path}' must be as it was written, got: {error}. hcdv check says what can "
                "be made again."
            ) from error
        names = ", ".join(f'"{name}"' for name in frame.columns)
        marks = ", ".join("?" * frame.shape[1])
        ledger.execute(f"CREATE TEMP TABLE IF NOT EXISTS worth ({names})")
        ledger.execute("BEGIN")
        columns = [frame[name].tolist() for name in frame.columns]
        ledger.executemany(
            f"INSERT INTO worth VALUES ({marks})",  # noqa: S608, question marks
            zip(*columns, strict=True),
        )
        ledger.execute("COMMIT")
