"""A column as a few things that can be said of a cell: a level, a range, a word in a text.

Every kind codes its cells once; of counts by node it then finds what is best said of each node:
what tells the node's rows from all rows, by the Kullback-Leibler divergence of "true of so many
here" from "true of so many of all", in nats a row. What is said of a node of few rows must be
beyond chance, and what is true of half of its rows at most says little of it.

Notation:  p → inside (share of the node's rows) · q → overall (share of all rows)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from hcdv.embedding.cells import DAY_NS, as_levels, as_numbers, as_stamps, kind_of

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

MOST_LEVELS = 500  # the commonest; what is rarer cannot set a coalition apart
MOST_TOGETHER = 3  # levels joined by "or"
N_BINS = 20
LEAST_ADDED = 0.05  # of the node's rows, by a further level
LEAST_INSIDE = 0.5
LEAST_LIFT = 1.25
LEAST_EVIDENCE = 8.0  # nats over all rows of a node: some hundred things are tried
_SHARE_ALONE = 0.05  # a number that so many cells hold has a bin of its own
_DISTINCT = 12  # numbers up to which each has a bin of its own
_SOME = 2**17  # rows that bins are laid by


class Best(NamedTuple):
    """What is best said of each node, (m,); a gain of −inf where nothing is."""

    key: Ints  # (m, …)  what `said` makes words of
    inside: Floats
    overall: Floats
    gain: Floats


@dataclass(frozen=True)
class Levels:
    """Names, one a cell."""

    column: str
    codes: Ints  # (n,)  len(names): any other
    names: list[str]

    @property
    def n_codes(self) -> int:
        """The names, and whatever has none."""
        return len(self.names) + 1

    def best(self, inside: Floats, overall: Floats, size: Floats) -> Best:
        """The up to three names that together say most; shares are (m, n_codes), (n_codes,)."""
        p, q = inside[:, :-1], overall[:-1]
        own = rel_entr(p, q)  # above zero where a name is commoner here
        order = np.argsort(-own, axis=1, kind="stable")[:, :MOST_TOGETHER]
        each = np.take_along_axis(p, order, axis=1)
        helps = np.take_along_axis(own, order, axis=1) > 0
        helps[:, 1:] &= each[:, 1:] >= LEAST_ADDED
        p = np.cumsum(each, axis=1)
        q = np.cumsum(q[order], axis=1)
        gain = np.where(helps, gained(p, q, size[:, None]), -np.inf)
        last = np.argmax(gain, axis=1)
        at = (np.arange(len(gain)), last)
        order[np.arange(order.shape[1]) > last[:, None]] = -1
        return Best(order, p[at], q[at], gain[at])

    def holds(self, key: Ints) -> NDArray[np.bool_]:
        """Of which codes it is true, (n_codes,)."""
        return np.isin(np.arange(self.n_codes), key)

    def said(self, key: Ints) -> str:
        """As in: HS-grad or Some-college."""
        return " or ".join(self.names[code] for code in key if code >= 0)


@dataclass(frozen=True)
class Ranges:
    """Numbers or dates, by bins with round edges."""

    column: str
    codes: Ints  # (n,)  the last: missing
    low: Floats  # (B,)  lower edges, the first never said
    alone: NDArray[np.bool_]  # (B,)  whether a bin holds the one number `low`
    unit: str  # whole, real, day or second

    @property
    def n_codes(self) -> int:
        """Bins, and missing."""
        return len(self.low) + 1

    def best(self, inside: Floats, overall: Floats, size: Floats) -> Best:
        """The run of adjacent bins that says most, or that the cell is missing."""
        begin, end = np.triu_indices(len(self.low) + 1, 1)
        begin, end = np.append(begin, len(self.low)), np.append(end, len(self.low) + 1)
        p, q = _between(inside, begin, end), _between(overall[None], begin, end)
        gain = gained(p, q, size[:, None])
        at = np.argmax(gain, axis=1)
        rows = np.arange(len(gain))
        key = np.stack([begin[at], end[at]], axis=1)
        return Best(key, p[rows, at], q[0, at], gain[rows, at])

    def holds(self, key: Ints) -> NDArray[np.bool_]:
        """Of which codes it is true, (n_codes,)."""
        code = np.arange(self.n_codes)
        return (code >= key[0]) & (code < key[1])

    def said(self, key: Ints) -> str:
        """As in: under 25, 25 to 34, 60 or more."""
        begin, end = (int(one) for one in key)
        n = len(self.low)
        if begin == n:
            return "missing"
        if (begin, end) == (0, n):
            return "known"
        if end == begin + 1 and self.alone[begin]:
            return self._name(begin)
        dated = self.unit in ("day", "second")
        if end == n:
            if self.alone[begin - 1]:
                return f"{'after' if dated else 'over'} {self._name(begin - 1)}"
            return f"from {self._name(begin)}" if dated else f"{self._name(begin)} or more"
        if begin == 0:
            if self.alone[end - 1]:
                return f"up to {self._name(end - 1)}"
            return f"{'before' if dated else 'under'} {self._name(end)}"
        return f"{self._name(begin)} to {self._last(end)}"

    def _last(self, end: int) -> str:
        if self.alone[end - 1]:
            return self._name(end - 1)
        if self.unit in ("whole", "day"):
            return _number(self.low[end] - 1, self.unit)
        return self._name(end)

    def _name(self, at: int) -> str:
        return _number(self.low[at], self.unit)


def gained(p: Floats, q: Floats, size: Floats) -> Floats:
    """Nats a row; −inf where it is not common, not commoner than elsewhere, or may be chance."""
    gain = rel_entr(p, q) + rel_entr(1 - p, np.maximum(1 - q, 0.0))
    told = (
        (p >= LEAST_INSIDE)
        & (p >= LEAST_LIFT * q)
        & (gain >= LEAST_EVIDENCE / np.maximum(size, 1))
    )
    return np.where(told, gain, -np.inf)


def legible(column: pd.Series, name: str) -> Levels | Ranges | None:
    """The column coded; None where it never varies."""
    kind = kind_of(column, name)
    if kind == "numeric":
        return _ranges(name, as_numbers(column, name), "real")
    if kind == "date":
        stamps, is_missing = as_stamps(column, name)
        seconds = stamps / 1e9
        known = seconds[~is_missing]
        by_day = bool(len(known)) and float(np.ptp(known)) > 2 * N_BINS * DAY_NS / 1e9
        scaled = np.floor(stamps / DAY_NS) if by_day else seconds
        return _ranges(
            name, np.where(is_missing, np.nan, scaled), "day" if by_day else "second"
        )
    codes, names = as_levels(column)
    if kind == "boolean":
        answers = {"True": "yes", "1": "yes", "False": "no", "0": "no"}
        names = [answers.get(each, each) for each in names]
    return levels(name, codes, names)


def levels(name: str, codes: Ints, names: list[str]) -> Levels | None:
    """Levels by code, −1 for missing cells, which are a level as others are."""
    held = np.bincount(codes + 1, minlength=len(names) + 1)
    if np.count_nonzero(held) < 2:
        return None
    names = ["missing", *names]
    kept = np.argsort(-held, kind="stable")[:MOST_LEVELS]
    kept = kept[held[kept] > 0]
    renumbered = np.full(len(held), len(kept))
    renumbered[kept] = np.arange(len(kept))
    return Levels(name, renumbered[codes + 1], [names[code] for code in kept])


def _ranges(name: str, values: Floats, unit: str) -> Ranges | None:
    is_missing = np.isnan(values)
    known = values[~is_missing]
    if not len(known) or (not is_missing.any() and known.min() == known.max()):
        return None
    if unit == "real" and bool(np.all(known == np.rint(known))):
        unit = "whole"
    low, alone = _bins(known, unit)
    codes = np.searchsorted(low, values, side="right") - 1
    codes = np.where(is_missing, len(low), np.maximum(codes, 0))
    return Ranges(name, codes.astype(np.intp), low, alone, unit)


def _bins(known: Floats, unit: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Lower edges at round numbers near quantiles, and common numbers by themselves."""
    some = known[:: max(1, len(known) // _SOME)]
    number, count = np.unique(some, return_counts=True)
    if len(number) <= _DISTINCT:
        return _number_by_number(known)
    single = number[count >= _SHARE_ALONE * len(some)]
    if unit == "whole" and len(single) * 2 > len(number):
        return _number_by_number(known)
    cut = np.unique(np.quantile(some, np.arange(1, N_BINS) / N_BINS, method="lower"))
    gap = np.diff(cut, prepend=number[0], append=number[-1])
    room = np.minimum(gap[:-1], gap[1:]) / 2
    edge = np.array([_rounded(x, most) for x, most in zip(cut, room, strict=True)])
    after = number[
        np.minimum(np.searchsorted(number, single, side="right"), len(number) - 1)
    ]
    inside = np.isin(edge, single) | (edge <= number[0])
    low = np.unique(np.concatenate([number[:1], edge[~inside], single, after]))
    # a bin is of one number where nothing else was seen up to the next edge
    span = np.searchsorted(number, np.append(low[1:], np.inf)) - np.searchsorted(
        number, low
    )
    return low[span > 0], np.isin(low, single)[span > 0] & (span == 1)[span > 0]


def _number_by_number(known: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    number = np.unique(known)
    return number, np.ones(len(number), dtype=bool)


def _rounded(x: float, most: float) -> float:
    """The roundest number that is nearer to x than `most`: 24.7 → 25."""
    for digits in range(1, 16):
        near = float(f"{x:.{digits - 1}e}")
        if abs(near - x) <= most:
            return near
    return x


def _between(share: Floats, begin: Ints, end: Ints) -> Floats:
    summed = np.cumsum(np.pad(share, ((0, 0), (1, 0))), axis=1)
    return np.clip(summed[:, end] - summed[:, begin], 0.0, 1.0)


def _number(x: float, unit: str) -> str:
    if unit == "day":
        return str(np.datetime64(int(x), "D"))
    if unit == "second":
        return str(np.datetime64(int(x), "s")).replace("T", " ")
    if float(x).is_integer() and abs(x) < 1e15:
        return f"{int(x):,}" if abs(x) >= 10_000 else str(int(x))
    return f"{x:.6g}"
