"""One column of a frame → numbers, by kind, with what was learnt on the training rows.

Every kind is a frozen dataclass of plain settings (so that it can be saved as JSON):
`fit` learns from a column, `write` fills its part of the output and counts what it met.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.cells import (
    DAY_NS,
    as_levels,
    as_numbers,
    as_stamps,
    date_parts,
    hashed_levels,
    kind_of,
)
from hcdv.embedding.words import N_WORDS, are_texts, word_counts, word_vectors
from hcdv.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

POOLED_SHARE = 0.1  # one-hot with a pool, unless the pool would hold more than this


class Met(NamedTuple):
    """What `write` met: cells that were missing, cells of a level never seen."""

    missing: int = 0
    unseen: int = 0


@dataclass(frozen=True)
class Column:
    """What all kinds share; one instance per column of the training frame."""

    name: str
    kind: ClassVar[str]

    def labels(self) -> list[str]:
        """Names of the output columns."""
        return [self.name]

    def write(self, column: pd.Series, out: NDArray[np.floating]) -> Met:
        """Fill out (n, width) from the column, and count what was met."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """What a user should know of the column."""
        return []

    def state(self) -> dict[str, Any]:
        """Plain settings, kind included."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class NumericColumn(Column):
    """Missing cells take the median; then (x − mean)/deviation. Constant columns → 0."""

    fill: float
    center: float
    scale: float  # 0 marks a constant column
    kind: ClassVar[str] = "numeric"

    @classmethod
    def fit(cls, name: str, values: NDArray[np.float64]) -> Self:
        """Learn from the training cells."""
        known = values[~np.isnan(values)]
        if not known.size:
            return cls(name, 0.0, 0.0, 0.0)
        low, high, fill = float(known.min()), float(known.max()), float(np.median(known))
        if not max(-low, high) < 1e150:
            raise DataError(
                f"column {name!r} must lie within ±1e150 to be standardised, got {low:g} … "
                f"{high:g}. Take logarithms, or clip it."
            )
        if low == high:
            return cls(name, fill, fill, 0.0)
        n_missing = values.size - known.size
        center = float((known.sum() + n_missing * fill) / values.size)
        squares = float(((known - center) ** 2).sum() + n_missing * (fill - center) ** 2)
        return cls(name, fill, center, float(np.sqrt(squares / values.size)))

    def write(self, column: pd.Series, out: NDArray[np.floating]) -> Met:
        """Fill out (n, width) from the column, and count what was met."""
        return self.write_values(as_numbers(column, self.name), out)

    def write_values(self, values: NDArray[np.float64], out: NDArray[np.floating]) -> Met:
        """As write, from numbers already read."""
        is_missing = np.isnan(values)
        filled = np.where(is_missing, self.fill, values)
        out[:, 0] = (filled - self.center) / self.scale if self.scale > 0 else 0.0
        return Met(missing=int(is_missing.sum()))

    def notes(self) -> list[str]:
        """What a user should know of the column."""
        if self.scale > 0:
            return []
        return [f"column {self.name!r} is constant in training and carries nothing"]


@dataclass(frozen=True)
class BooleanColumn(Column):
    """0 or 1; missing cells take the commoner of the two."""

    fill: float
    is_constant: bool
    kind: ClassVar[str] = "boolean"

    @classmethod
    def fit(cls, name: str, values: NDArray[np.float64]) -> Self:
        """Learn from the training cells."""
        known = values[~np.isnan(values)]
        share = float(known.mean()) if known.size else 0.0
        return cls(name, float(share > 0.5), share in (0.0, 1.0))

    def write(self, column: pd.Series, out: NDArray[np.floating]) -> Met:
        """Fill out (n, width) from the column, and count what was met."""
        values = as_numbers(column, self.name)
        is_missing = np.isnan(values)
        out[:, 0] = np.where(is_missing, self.fill, values)
        return Met(missing=int(is_missing.sum()))

    def notes(self) -> list[str]:
        """What a user should know of the column."""
        constant = f"column {self.name!r} is constant in training and carries nothing"
        return [constant] if self.is_constant else []


@dataclass(frozen=True)
class DateColumn(Column):
    """Days since the median date, standardised, and those parts of a date that vary."""

    origin_ns: int
    days: dict[str, Any]  # state of the NumericColumn of days
    parts: dict[str, list[int]]  # e.g. weekday: those seen in training
    kind: ClassVar[str] = "date"

    @classmethod
    def fit(cls, name: str, column: pd.Series) -> Self:
        """Learn from the training cells."""
        stamps, is_missing = as_stamps(column, name)
        known = stamps[~is_missing]
        origin = int(np.sort(known)[known.size // 2]) if known.size else 0
        days = np.where(is_missing, np.nan, (stamps - origin) / DAY_NS)
        numeric = NumericColumn.fit(f"{name} (days)", days)
        seen = {part: np.unique(of).tolist() for part, of in date_parts(known).items()}
        parts = {part: levels for part, levels in seen.items() if len(levels) > 1}
        return cls(name, origin, asdict(numeric), parts)

    def labels(self) -> list[str]:
        """Names of the output columns."""
        parts = [
            f"{self.name} ({p} {k})" for p, levels in self.parts.items() for k in levels
        ]
        return [f"{self.name} (days)", *parts]

    def write(self, column: pd.Series, out: NDArray[np.floating]) -> Met:
        """Fill out (n, width) from the column, and count what was met."""
        stamps, is_missing = as_stamps(column, self.name)
        days = np.where(is_missing, np.nan, (stamps - self.origin_ns) / DAY_NS)
        met = NumericColumn(**self.days).write_values(days, out[:, :1])
        found, at = date_parts(stamps), 1
        for part, levels in self.parts.items():
            is_level = found[part][:, None] == np.asarray(levels)  # (n, levels)
            out[:, at : at + len(levels)] = is_level & ~is_missing[:, None]
            at += len(levels)
        return met

    def notes(self) -> list[str]:
        """What a user should know of the column."""
        return NumericColumn(**self.days).notes()


@dataclass(frozen=True)
class LevelsColumn(Column):
    """One column a level; rare levels share "other", missing cells are a level."""

    levels: list[str]
    n_pooled: int
    has_missing: bool
    kind: ClassVar[str] = "levels"

    def labels(self) -> list[str]:
        """Names of the output columns."""
        extra = ["(other)"] * (self.n_pooled > 0) + ["(missing)"] * self.has_missing
        return [f"{self.name}={level}" for level in [*self.levels, *extra]]

    def write(self, column: pd.Series, out: NDArray[np.floating]) -> Met:
        """Fill out (n, width) from the column, and count what was met."""
        codes, found = as_levels(column)
        place = {level: j for j, level in enumerate(self.levels)}
        pool = len(self.levels) if self.n_pooled else -1
        missing = len(self.levels) + (self.n_pooled > 0) if self.has_missing else -1
        # One entry per distinct level, the last for code −1; place −1 writes nothing.
        target = np.array([place.get(level, pool) for level in found] + [missing])
        spot = target[codes]
        rows = np.flatnonzero(spot >= 0)
        out[...] = 0.0
        out[rows, spot[rows]] = 1.0
        is_unseen = np.array(
            [level not in place for level in found] + [not self.has_missing]
        )
        return Met(unseen=0 if self.n_pooled else int(is_unseen[codes].sum()))

    def notes(self) -> list[str]:
        """What a user should know of the column."""
        if len(self.labels()) < 2:
            return [f"column {self.name!r} is constant in training and carries nothing"]
        pooled = f"column {self.name!r}: {self.n_pooled} rare levels share (other)"
        return [pooled] if self.n_pooled else []


@dataclass(frozen=True)
class HashedColumn(Column):
    """Too many levels: each adds ±1 to one of n_hash columns, by a fixed hash."""

    n_hash: int
    n_levels: int
    kind: ClassVar[str] = "hashed"

    def labels(self) -> list[str]:
        """Names of the output columns."""
        return [f"{self.name}#{j}" for j in range(self.n_hash)]

    def write(self, column: pd.Series, out: NDArray[np.floating]) -> Met:
        """Fill out (n, width) from the column, and count what was met."""
        codes, hashed = hashed_levels(column)
        sign = 1.0 - 2.0 * (hashed >> np.uint64(63)).astype(np.float64)
        bucket = (hashed % np.uint64(self.n_hash)).astype(np.intp)
        out[...] = 0.0
        out[np.arange(len(codes)), bucket[codes]] = sign[codes]
        return Met()

    def notes(self) -> list[str]:
        """What a user should know of the column."""
        return [f"column {self.name!r}: {self.n_levels} levels hashed into {self.n_hash}"]


@dataclass(frozen=True)
class WordsColumn(Column):
    """Text: a vector of its words, rare ones counting more, by a fixed hash of each."""

    n_texts: int
    n_with: dict[str, int]  # texts of the training rows that hold words of each room
    kind: ClassVar[str] = "words"

    @classmethod
    def fit(cls, name: str, column: pd.Series) -> Self:
        """Learn how common words are."""
        held = word_counts(column) > 0
        count = np.asarray(held.sum(axis=0)).ravel()
        rooms = np.flatnonzero(count)
        n_with = {str(room): int(count[room]) for room in rooms}
        return cls(name, int(np.asarray(held.sum(axis=1)).astype(bool).sum()), n_with)

    def labels(self) -> list[str]:
        """Names of the output columns."""
        return [f"{self.name}#{j}" for j in range(N_WORDS)]

    def write(self, column: pd.Series, out: NDArray[np.floating]) -> Met:
        """Fill out (n, width) from the column, and count what was met."""
        rooms = np.fromiter((int(room) for room in self.n_with), dtype=np.intp)
        n_with = np.fromiter(self.n_with.values(), dtype=np.float64)
        counts = word_counts(column)
        out[...] = word_vectors(counts, rooms, n_with, self.n_texts, out.shape[1])
        return Met(missing=int(column.isna().sum()))

    def notes(self) -> list[str]:
        """What a user should know of the column."""
        said = f"column {self.name!r}: texts, seen as {N_WORDS} sums over their words"
        return [f"{said}; embeddings of your own see more"]


KINDS: dict[str, type[Column]] = {
    kind.kind: kind
    for kind in (
        NumericColumn, BooleanColumn, DateColumn, LevelsColumn, HashedColumn, WordsColumn,
    )
}  # fmt: skip


def column_from_state(state: dict[str, Any]) -> Column:
    """The column that `state` described."""
    settings = dict(state)
    return KINDS[settings.pop("kind")](**settings)


def fit_column(name: str, column: pd.Series, max_levels: int, n_hash: int) -> Column:
    """The kind of a column is read from its dtype, or from its cells if that is object."""
    kind = kind_of(column, name)
    if kind == "date":
        return DateColumn.fit(name, column)
    if kind == "numeric":
        return NumericColumn.fit(name, as_numbers(column, name))
    if kind == "boolean":
        return BooleanColumn.fit(name, as_numbers(column, name))
    return _fit_levels(name, column, max_levels, n_hash)


def _fit_levels(name: str, column: pd.Series, max_levels: int, n_hash: int) -> Column:
    codes, found = as_levels(column)
    n = len(codes)
    counts = np.bincount(codes + 1, minlength=len(found) + 1)  # [0]: missing cells
    has_missing, counts = bool(counts[0]), counts[1:]
    # Below a thousandth of the rows a level says too little to deserve a column.
    least = max(n // 1000, 2 if n >= 50 else 1)
    n_kept = int((counts >= least).sum())
    pooled_share = float(counts[counts < least].sum()) / n
    if len(found) > max_levels and are_texts(found, int(counts.sum())):
        return WordsColumn.fit(name, column)
    if len(found) > max_levels and (n_kept > max_levels or pooled_share > POOLED_SHARE):
        return HashedColumn(name, n_hash, len(found))
    kept = sorted(
        level for level, count in zip(found, counts, strict=True) if count >= least
    )
    return LevelsColumn(name, kept, len(found) - len(kept), has_missing)
