"""All that is asked of one run in SQL: pages of rows, sums, the map, one row and its past."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hcdv.apps.explorer.conditions import Where, quoted
from hcdv.apps.explorer.database import database_of
from hcdv.errors import DataError
from hcdv.valuation.nested import PARTS

if TYPE_CHECKING:
    from hcdv.apps.explorer.opened import Opened

MOST_OFFSET = 100_000
_SHOWN = (
    "row", "id", "value", "stderr", *PARTS, "leaf", "label", "doubt", "suggested", "stale",
)  # fmt: skip
_CELLS = 12  # given columns in a table of rows
_LETTERS = 300  # of a cell in a table of rows
_HISTORY = 200  # updates looked through for the past of a row
_BINS = 48
_SPOT = ("id", "x", "y", "value", "doubt", "label")
_SPOTS = 3000  # on a piece of the map up to which each row is drawn by itself
_GRID = 160  # cells across the map where there are more
_KEPT = 64

Answer = TypeVar("Answer")
SUMS = ", ".join(f"coalesce(sum(p.{name}), 0) AS {name}" for name in ("value", *PARTS))


class Queries:
    """Questions about one state of a run; answers to those that repeat are kept."""

    def __init__(self, opened: Opened, scratch: Path) -> None:
        self.opened = opened
        self.database, self.columns = database_of(opened, scratch)
        self._kept: dict[tuple[Any, ...], Any] = {}

    def rows(
        self, where: Where, sort: str, limit: int, offset: int, *, down: bool
    ) -> list[dict[str, Any]]:
        """A page of rows, with the cells they were given with."""
        if offset > MOST_OFFSET:
            raise DataError(
                f"offset must be at most {MOST_OFFSET:,}, got {offset:,}. Filter or sort so that "
                "what you look for comes earlier."
            )
        by, order = self.columns.sql(sort), "DESC" if down else "ASC"
        names = ", ".join(f"p.{quoted(name)}" for name in _SHOWN)
        source = self._source(where, sort=sort)
        found = self.database.records(
            f"SELECT {names} FROM {source}{where.sql} "  # noqa: S608, names are our own
            f"ORDER BY {by} {order} NULLS LAST, p.row LIMIT ? OFFSET ?",
            [*where.values, limit, offset],
        )
        cells = self.cells([row["id"] for row in found], most=_CELLS)
        for row in found:
            row["cells"] = cells.get(row["id"])
        return found

    def totals(self, where: Where) -> dict[str, Any]:
        """How many rows there are under these conditions, and what they sum to."""
        source = self._source(where)
        return self._once(
            ("totals", *where.key),
            lambda: self.database.records(
                f"SELECT count(*) AS n_rows, {SUMS} FROM {source}{where.sql}",  # noqa: S608
                where.values,
            )[0],
        )

    def numbers(self, where: Where) -> NDArray[np.int64]:
        """Row numbers under these conditions."""
        source = self._source(where)
        found = self.database.arrays(
            f"SELECT p.row AS n FROM {source}{where.sql}",  # noqa: S608
            where.values,
        )
        return np.asarray(found["n"], dtype=np.int64)

    def row(self, asked: str) -> dict[str, Any] | None:
        """One row by its id; None where there is none."""
        value: Any = asked
        if self.columns.is_number("id"):
            if not asked.lstrip("-").isdecimal() or len(asked) > 18:
                return None
            value = int(asked)
        names = ", ".join(quoted(name) for name in self.columns.points)
        found = self.database.records(
            f"SELECT {names} FROM points WHERE id = ?",  # noqa: S608, our names
            [value],
        )
        return found[0] if found else None

    def rank(self, value: float) -> int:
        """1 for the most valuable row."""
        return (
            int(
                self.database.one("SELECT count(*) FROM points WHERE value > ?", [value])[0]
            )
            + 1
        )

    def by_number(self, rows: list[int]) -> dict[int, dict[str, Any]]:
        """A few rows by number: id, label and value."""
        found = self.database.records(
            "SELECT row, id, label, value, doubt FROM points WHERE row IN "
            "(SELECT unnest(?::BIGINT[]))",
            [rows],
        )
        return {each["row"]: each for each in found}

    def cells(self, ids: list[Any], most: int | None = None) -> dict[Any, dict[str, Any]]:
        """What rows were given as, by id; long text is cut where `most` columns are asked for."""
        names = list(self.columns.given)[:most]
        if not names or not ids:
            return {}
        listed = ", ".join(map(quoted, names))
        found = self.database.all(
            f'SELECT "hcdv:id", {listed} FROM given '  # noqa: S608, quoted names
            'WHERE "hcdv:id" IN (SELECT unnest(?))',
            [ids],
        )
        cut = _short if most else _same
        return {row[0]: dict(zip(names, map(cut, row[1:]), strict=True)) for row in found}

    @functools.cached_property
    def has_images(self) -> bool:
        """Whether rows were given as images."""
        return bool(self.opened.given) and "hcdv:image" in self.database.columns("given")

    @functools.cached_property
    def image_shape(self) -> tuple[int, ...]:
        """Height, width and channels of the images."""
        from pyarrow import parquet

        held = parquet.read_schema(self.opened.given[0]).metadata
        return tuple(json.loads(held[b"hcdv:shape"]))

    def image(self, given_id: Any) -> NDArray[np.uint8] | None:
        """A row's image, (height, width[, channels]); None where there is none."""
        if not self.has_images:
            return None
        found = self.database.all(
            'SELECT "hcdv:image" FROM given WHERE "hcdv:id" = ?', [given_id]
        )
        if not found:
            return None
        return np.frombuffer(found[0][0], dtype=np.uint8).reshape(self.image_shape)

    def spread(self) -> dict[str, Any]:
        """How values are spread: counts between edges that widen away from zero, and the ends."""
        return self._once(("spread",), self._spread)

    def _spread(self) -> dict[str, Any]:
        low, high, least, most, mean, below, stale, error = self.database.one(
            "SELECT approx_quantile(value, 0.001), approx_quantile(value, 0.999), min(value), "
            "max(value), avg(value), count(*) FILTER (value < 0), count(*) FILTER (stale), "
            "approx_quantile(stderr, 0.5) FROM points"
        )
        unit = abs(mean) or 1.0
        left, right = np.arcsinh(low / unit), np.arcsinh(high / unit)
        width = float(right - left) / _BINS or 1.0
        counted = self.database.all(
            "SELECT least(greatest(floor((asinh(value / ?) - ?) / ?), 0), ?)::INT AS bin, "
            "count(*) FROM points GROUP BY bin ORDER BY bin",
            [unit, float(left), width, _BINS - 1],
        )
        counts = [0] * _BINS
        for place, count in counted:
            counts[place] = count
        edges = unit * np.sinh(left + width * np.arange(_BINS + 1))
        return {
            "low": low, "high": high, "counts": counts, "edges": edges,
            "min": least, "max": most, "mean": mean,
            "n_below_zero": below, "n_stale": stale, "median_stderr": error,
        }  # fmt: skip

    def labels(self, most: int = 30) -> list[dict[str, Any]]:
        """Labels with what their rows are worth, the commonest first."""
        return self._once(
            ("labels", most),
            lambda: self.database.records(
                "SELECT label, count(*) AS n_rows, sum(value) AS value, avg(value) AS mean, "
                "avg(doubt) AS doubt FROM points GROUP BY label "
                "ORDER BY n_rows DESC, label LIMIT ?",
                [most],
            ),
        )

    def is_label(self, name: str) -> bool:
        """Whether some row has this label."""
        found = self.database.all(
            "SELECT 1 FROM points WHERE CAST(label AS VARCHAR) = ? LIMIT 1", [name]
        )
        return bool(found)

    def decided(self, ids: list[str]) -> dict[str, dict[str, Any]]:
        """Those of these ids that the run has, as text, with what is known of the rows."""
        if not ids:
            return {}
        found = self.database.records(
            "SELECT CAST(id AS VARCHAR) AS name, row, label, suggested, doubt, value "
            "FROM points WHERE CAST(id AS VARCHAR) IN (SELECT unnest(?::VARCHAR[]))",
            [ids],
        )
        return {each.pop("name"): each for each in found}

    def extent(self) -> list[float]:
        """The corners of the map: left, bottom, right, top."""
        return self._once(
            ("extent",),
            lambda: list(
                self.database.one("SELECT min(x), min(y), max(x), max(y) FROM points")
            ),
        )

    def spots(self, where: Where, box: list[float], colour: str) -> dict[str, Any]:
        """A piece of the map: each row where they are few, and cells with counts else."""
        return self._once(
            ("spots", *where.key, *box, colour), lambda: self._spots(where, box, colour)
        )

    def _spots(self, where: Where, box: list[float], colour: str) -> dict[str, Any]:
        source = self._source(where)
        inside = Where([*where.terms], [*where.values], where.joins_given)
        inside.add("p.x BETWEEN ? AND ?", box[0], box[2])
        inside.add("p.y BETWEEN ? AND ?", box[1], box[3])
        few = self.database.all(
            f"SELECT {', '.join(f'p.{name}' for name in _SPOT)} "  # noqa: S608
            f"FROM {source}{inside.sql} LIMIT {_SPOTS + 1}",
            inside.values,
        )
        if len(few) <= _SPOTS:
            columns = zip(*few, strict=True) if few else ([] for _ in _SPOT)
            points = dict(zip(_SPOT, map(list, columns), strict=True))
            return {"box": box, "points": points, "n_rows": len(few)}
        step_x, step_y = ((high - low) / _GRID or 1.0 for low, high in
                          ((box[0], box[2]), (box[1], box[3])))  # fmt: skip
        shown = {"label": "mode(p.label)", "density": "0"}.get(colour, f"avg(p.{colour})")
        cells = self.database.all(
            "SELECT least(((p.x - ?) / ?)::INT, ?) AS i, least(((p.y - ?) / ?)::INT, ?) AS j, "  # noqa: S608
            f"count(*) AS n, {shown} AS c FROM {source}{inside.sql} GROUP BY i, j",
            [box[0], step_x, _GRID - 1, box[1], step_y, _GRID - 1, *inside.values],
        )
        i, j, n, c = (list(column) for column in zip(*cells, strict=True))
        return {
            "box": box, "grid": _GRID, "n_rows": sum(n),
            "cells": {"i": i, "j": j, "n": n, "c": c},
        }  # fmt: skip

    def past(self, row_id: Any, files: list[tuple[int, Path]]) -> list[dict[str, Any]]:
        """A row's value and label after each update that has it."""
        files = [(n, path) for n, path in files if path.is_file()][-_HISTORY:]
        if not files:
            return []
        paths = ", ".join(
            "'" + str(path.resolve()).replace("'", "''") + "'" for _, path in files
        )
        return self.database.records(
            "SELECT number, value, stderr, label, stale FROM read_parquet("  # noqa: S608
            f"[{paths}], union_by_name = true) WHERE id = ? ORDER BY number",
            [row_id],
        )

    def close(self) -> None:
        """Let go of the files."""
        self.database.close()

    def _source(self, where: Where, sort: str = "row") -> str:
        """What is queried: the points, and the given rows where they matter."""
        on = 'given g ON p.id = g."hcdv:id"'
        if where.joins_given:
            return f"points p JOIN {on}"
        return "points p" if sort in self.columns.points else f"points p LEFT JOIN {on}"

    def _once(self, key: tuple[Any, ...], ask: Callable[[], Answer]) -> Answer:
        if key not in self._kept:
            answer = ask()
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = answer
        return self._kept[key]


def _short(cell: Any) -> Any:
    return (
        f"{cell[:_LETTERS]} …" if isinstance(cell, str) and len(cell) > _LETTERS else cell
    )


def _same(cell: Any) -> Any:
    return cell
