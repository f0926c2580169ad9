"""What a reader asks for, as SQL conditions with parameters: filters, search, selections.

Nothing a reader writes becomes SQL text: columns are looked up among those there are, and
values are parameters.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcdv.errors import DataError

OPERATORS = ("<=", ">=", "!=", "=", "<", ">", "~")
MOST_CORNERS = 100
_NUMERIC = re.compile(r"INT|DOUBLE|FLOAT|DECIMAL|REAL")


@dataclass(frozen=True)
class Columns:
    """Columns of the points, and of the rows as they were given, with their SQL types."""

    points: Mapping[str, str]
    given: Mapping[str, str] = field(default_factory=dict)

    def sql(self, name: str) -> str:
        """A column in a query over points p and given rows g."""
        if name in self.points:
            return f"p.{quoted(name)}"
        if name in self.given:
            return f"g.{quoted(name)}"
        known = [*self.points, *self.given]
        close = difflib.get_close_matches(name, known, 1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise DataError(f"column must be one of the run's, got {name!r}.{meant}")

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers."""
        return bool(_NUMERIC.search(self.type_of(name)))

    def type_of(self, name: str) -> str:
        """SQL type of a column."""
        return self.points[name] if name in self.points else self.given[name]

    @property
    def searched(self) -> list[str]:
        """SQL of the given columns a search looks into: text, or all where there is none."""
        text = [name for name, kind in self.given.items() if kind == "VARCHAR"]
        return [quoted(name) for name in text or self.given]


@dataclass
class Where:
    """Conditions that hold together, and what they are filled in with."""

    terms: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    joins_given: bool = False

    def add(self, term: str, *values: Any) -> None:
        """One more condition."""
        self.terms.append(term)
        self.values.extend(values)

    @property
    def sql(self) -> str:
        """For a query that has no conditions of its own."""
        return f" WHERE {' AND '.join(self.terms)}" if self.terms else ""

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal conditions."""
        return (*self.terms, *(tuple(v) if isinstance(v, list) else v for v in self.values))


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def add_filter(where: Where, columns: Columns, text: str) -> None:
    """A condition written as column, operator and value: `age>=40`, `kind=cat`, `name~smith`."""
    name, operator, wanted = _taken_apart(text, columns)
    column = columns.sql(name)
    where.joins_given |= name not in columns.points
    if operator == "~":
        where.add(f"contains(lower(CAST({column} AS VARCHAR)), lower(?))", wanted)
    elif not wanted:
        _add_empty(where, column, operator, text)
    elif columns.is_number(name):
        sign = "IS DISTINCT FROM" if operator == "!=" else operator
        where.add(f"{column} {sign} ?", number(wanted, f"filter on {name!r}"))
    else:
        sign = "IS DISTINCT FROM" if operator == "!=" else operator
        where.add(f"CAST({column} AS VARCHAR) {sign} ?", wanted)


def _add_empty(where: Where, column: str, operator: str, text: str) -> None:
    if operator not in ("=", "!="):
        raise DataError(
            f"filter must compare with a value, got {text!r}. Write it after {operator}."
        )
    missing = f"coalesce(CAST({column} AS VARCHAR), '') = ''"
    where.add(missing if operator == "=" else f"NOT ({missing})")


def _taken_apart(text: str, columns: Columns) -> tuple[str, str, str]:
    names = sorted([*columns.points, *columns.given], key=len, reverse=True)
    for name in names:
        rest = (
            text.strip().removeprefix(name).lstrip()
            if text.strip().startswith(name)
            else ""
        )
        operator = next((each for each in OPERATORS if rest.startswith(each)), None)
        if operator is not None:
            return name, operator, rest.removeprefix(operator).strip()
    close = difflib.get_close_matches(re.split("[<>=!~]", text)[0].strip(), names, 1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise DataError(
        f"filter must be a column, one of {' '.join(OPERATORS)} and a value, got {text[:80]!r}."
        f"{meant}"
    )


def number(text: str, name: str) -> int | float:
    """A finite number, whole where it is written so."""
    try:
        found = float(text)
        if re.fullmatch(r"[+-]?\d{1,18}", text.strip()):
            return int(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise DataError(f"{name} must be a number, got {text[:40]!r}.")
    return found


def add_search(where: Where, columns: Columns, text: str) -> None:
    """Rows in which every word occurs: in the id, the label or a text cell."""
    for word in text.lower().split()[:8]:
        terms, values = [], list[Any]()
        for name in ("id", "label"):
            if not columns.is_number(name):
                terms.append(f"contains(lower(CAST(p.{name} AS VARCHAR)), ?)")
                values.append(word)
            elif re.fullmatch(r"-?\d{1,18}", word):
                terms.append(f"p.{name} = ?")
                values.append(int(word))
        cells = [
            f"contains(lower(CAST({name} AS VARCHAR)), ?)" for name in columns.searched
        ]
        if cells:
            inside = " OR ".join(cells)
            terms.append(f'p.id IN (SELECT "hcdv:id" FROM given WHERE {inside})')  # noqa: S608
            values += [word] * len(cells)
        where.add(f"({' OR '.join(terms)})" if terms else "false", *values)


def add_leaves(where: Where, ranges: list[tuple[int, int]]) -> None:
    """Rows below a coalition."""
    terms = [f"p.leaf BETWEEN {int(low)} AND {int(high)}" for low, high in ranges]
    where.add(f"({' OR '.join(terms)})")


def add_ids(where: Where, ids: list[str], *, inside: bool = True) -> None:
    """Rows that are among these ids, or that are not."""
    sign = "IN" if inside else "NOT IN"
    where.add(f"CAST(p.id AS VARCHAR) {sign} (SELECT unnest(?::VARCHAR[]))", ids)


def add_suspects(where: Where, likely: float, *, classes: bool) -> None:
    """Rows whose label is more likely wrong than right, with another label for them."""
    where.add("p.doubt > ?", likely)
    if classes:
        where.add("CAST(p.label AS VARCHAR) != CAST(p.suggested AS VARCHAR)")


def add_polygon(where: Where, text: str) -> None:
    """Rows inside a polygon of the map, by the even-odd rule; written x,y;x,y."""
    corners = _corners(text)
    x, y = zip(*corners, strict=True)
    where.add(f"p.x BETWEEN {min(x)!r} AND {max(x)!r}")
    where.add(f"p.y BETWEEN {min(y)!r} AND {max(y)!r}")
    crossed: list[str] = []
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        if y1 != y2:
            slope = (x2 - x1) / (y2 - y1)
            low, high = min(y1, y2), max(y1, y2)
            crossed.append(
                f"(p.y >= {low!r} AND p.y < {high!r} "
                f"AND p.x < {x1!r} + {slope!r} * (p.y - {y1!r}))::INT"
            )
    where.add(f"({' + '.join(crossed)}) % 2 = 1" if crossed else "false")


def _corners(text: str) -> list[tuple[float, float]]:
    pairs = [part.split(",") for part in text.split(";") if part]
    if not 3 <= len(pairs) <= MOST_CORNERS or any(len(pair) != 2 for pair in pairs):
        raise DataError(
            f"polygon must have 3 to {MOST_CORNERS} corners written as x,y;x,y;…, got "
            f"{text[:60]!r}."
        )
    found = [(number(x, "polygon"), number(y, "polygon")) for x, y in pairs]
    if any(abs(each) > 1e6 for pair in found for each in pair):
        raise DataError("polygon must lie on the map, got a corner beyond a million.")
    return [(round(float(x), 9), round(float(y), 9)) for x, y in found]
