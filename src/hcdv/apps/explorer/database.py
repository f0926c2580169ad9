"""DuckDB over the files of a run: read alone, in these folders alone, for so long and no longer."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcdv.apps.explorer.conditions import Columns, quoted
from hcdv.errors import DataError, StoreError, need

if TYPE_CHECKING:
    from hcdv.apps.explorer.opened import Opened

SECONDS = 10.0  # that a query may take
_MEMORY = "2GB"
_OWN = ("hcdv:id", "hcdv:image")


class Database:
    """A connection that sees some Parquet files as views; each question has a cursor of its own."""

    def __init__(
        self, folders: Iterable[Path], scratch: Path, seconds: float = SECONDS
    ) -> None:
        duckdb = need("duckdb", extra="explore", what="hcdv explore")
        self._errors = duckdb
        self.seconds = seconds
        spill = scratch / "spill"
        spill.mkdir(exist_ok=True)
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": _MEMORY, "temp_directory": str(spill),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )  # fmt: skip
        self._lock = threading.Lock()
        allowed = ", ".join(_text(str(folder.resolve())) for folder in [*folders, scratch])
        for line in (
            "SET parquet_metadata_cache = true",
            "SET preserve_insertion_order = true",
            f"SET allowed_directories = [{allowed}]",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(line)

    def view(self, name: str, files: list[Path], select: str = "*") -> None:
        """See Parquet files as a table of this name."""
        paths = ", ".join(_text(str(path.resolve())) for path in files)
        self._told(
            lambda: self._connection.execute(
                f"CREATE OR REPLACE VIEW {quoted(name)} AS SELECT {select} "  # noqa: S608, our names
                f"FROM read_parquet([{paths}], union_by_name = true, filename = false)"
            )
        )

    def columns(self, name: str) -> dict[str, str]:
        """SQL type by column of a view."""
        return {row[0]: row[1] for row in self.all(f"DESCRIBE {quoted(name)}")}

    def all(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Every line of an answer."""
        return self._asked(sql, values, lambda cursor: cursor.fetchall())

    def one(self, sql: str, values: Iterable[Any] = ()) -> tuple[Any, ...]:
        """The only line of an answer."""
        return self.all(sql, values)[0]

    def records(self, sql: str, values: Iterable[Any] = ()) -> list[dict[str, Any]]:
        """Every line of an answer, by column."""

        def read(cursor: Any) -> list[dict[str, Any]]:
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        return self._asked(sql, values, read)

    def arrays(self, sql: str, values: Iterable[Any] = ()) -> dict[str, Any]:
        """Columns of an answer as arrays."""
        return self._asked(sql, values, lambda cursor: cursor.fetchnumpy())

    def close(self) -> None:
        """Let go of the files."""
        self._connection.close()

    def _asked(self, sql: str, values: Iterable[Any], read: Any) -> Any:
        with self._lock:
            cursor = self._connection.cursor()
        clock = threading.Timer(self.seconds, cursor.interrupt)
        clock.start()
        try:
            return self._told(lambda: read(cursor.execute(sql, list(values))))
        finally:
            clock.cancel()
            cursor.close()

    def _told(self, work: Any) -> Any:
        """What DuckDB raises, as one line."""
        try:
            return work()
        except self._errors.InterruptException as error:
            raise DataError(
                f"the question must be answered within {self.seconds:g} s, got none. Narrow it: "
                "filter first, or search for longer words."
            ) from error
        except self._errors.OutOfMemoryException as error:
            raise DataError(
                f"the question must be answered in {_MEMORY} of memory, got more. Narrow it: "
                "filter first."
            ) from error
        except self._errors.Error as error:
            why = " ".join(str(error).split())[:200]
            raise StoreError(
                f"the run's files must be readable, got: {why}. hcdv check says what is wrong."
            ) from error


def database_of(opened: Opened, scratch: Path) -> tuple[Database, Columns]:
    """A run's points and given rows as views, and their columns."""
    database = Database([opened.folder], scratch)
    database.view("points", opened.points, _selected(opened))
    points = database.columns("points")
    if not opened.given:
        return database, Columns(points)
    database.view("held", opened.given)
    held = [name for name in database.columns("held") if name not in _OWN]
    named = ", ".join(
        f"{quoted(name)} AS {quoted(f'{name} (given)' if name in points else name)}"
        for name in held
    )
    own = ", ".join(quoted(name) for name in database.columns("held") if name in _OWN)
    select = ", ".join(part for part in (own, named) if part)
    once = "held" if len(opened.given) == 1 else _latest(database, opened)
    database.all(f"CREATE VIEW given AS SELECT {select} FROM {once}")  # noqa: S608, quoted
    kinds = {n: kind for n, kind in database.columns("given").items() if n not in _OWN}
    return database, Columns(points, kinds)


def _selected(opened: Opened) -> str:
    return '*, "row" AS id, false AS stale' if opened.is_dataset else "*"


def _latest(database: Database, opened: Opened) -> str:
    """Given rows, of an id that came twice the later."""
    total, distinct = database.one('SELECT count(*), count(DISTINCT "hcdv:id") FROM held')
    if total == distinct:
        return "held"
    paths = ", ".join(_text(str(path.resolve())) for path in opened.given)
    return (
        f"(SELECT * FROM read_parquet([{paths}], union_by_name = true, filename = true) "  # noqa: S608
        'QUALIFY row_number() OVER (PARTITION BY "hcdv:id" ORDER BY filename DESC) = 1)'
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
