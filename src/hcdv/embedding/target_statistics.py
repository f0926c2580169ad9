"""Columns of many levels → what rows of a level are labelled elsewhere, out of fold.

Notation:  b → bucket of a level's hash · f → fold · N_b^f → rows of bucket b in fold f
A row of fold f reads the mean target ȳ of its bucket over the other folds, drawn towards
the mean of all rows by as many rows as `_PRIOR`:
    x = (Σ_{g≠f} Σy_b^g + a·ȳ)/(Σ_{g≠f} N_b^g + a) − ȳ
so that no row's own label is in its columns. Sums are whole numbers (of a number y, in steps
of 2⁻²⁰ of its deviation): they add up to the same bits in any order. Hashing bounds memory:
levels that share a bucket share a mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.local import ordered_map

Levels = tuple[NDArray[np.intp], NDArray[np.uint64]]
"""Codes of a column's cells, and a hash of every level; code −1, the last: missing."""

Cells = Callable[[str], Levels]
"""The cells of a column, by its name."""

_PRIOR = 20.0  # a: a bucket of so many rows is believed by half
_BUCKETS = 2**18
_LEAST_BUCKETS = 2**10
_COUNT = np.dtype(np.int64)
_STEP = 2.0**-20  # of sums of centred and scaled numbers
MOST_BYTES = 2**28  # of all counts together


@dataclass(frozen=True)
class LevelMass:
    """N and Σy of every bucket by fold: counts of classes, or count and sum of numbers."""

    columns: tuple[str, ...]
    n_classes: int  # 0: numbers
    mass: NDArray[Any]  # (columns, n_folds, buckets, C or 2)

    @classmethod
    def empty(
        cls, columns: tuple[str, ...], n_classes: int, n_folds: int,
        most_bytes: int = MOST_BYTES,
    ) -> LevelMass:  # fmt: skip
        """No rows yet; as many buckets as the bytes allow, by columns and classes alone."""
        width = n_classes or 2
        each = max(1, len(columns)) * n_folds * width * _COUNT.itemsize
        n_buckets = _BUCKETS
        while n_buckets * each > most_bytes and n_buckets > _LEAST_BUCKETS:
            n_buckets //= 2
        return cls(
            columns, n_classes, np.zeros((len(columns), n_folds, n_buckets, width), _COUNT)
        )

    def add(
        self, cells: Cells, fold: NDArray[np.intp], target: NDArray[Any],
        n_jobs: int | None = None,
    ) -> None:  # fmt: skip
        """Count further rows, in place."""
        _, _, n_buckets, width = self.mass.shape

        def one(number: int) -> None:
            mass = self.mass[number].reshape(-1)  # one index a row: numpy adds these fast
            at = fold * n_buckets + _buckets(cells(self.columns[number]), n_buckets)
            if self.n_classes:
                np.add.at(mass, at * width + target, 1)
            else:
                np.add.at(mass, at * width, 1)
                np.add.at(mass, at * width + 1, np.rint(target / _STEP).astype(_COUNT))

        for _ in ordered_map(one, range(len(self.columns)), n_jobs):
            pass

    def means(self, columns: tuple[str, ...]) -> LevelMeans:
        """What rows read in some of the columns, by fold."""
        chosen = (self.mass[self.columns.index(name)] for name in columns)
        return LevelMeans(columns, tuple(self._means_of(each) for each in chosen))

    def _means_of(self, mass: NDArray[Any]) -> NDArray[np.float32]:
        """(n_folds + 1, buckets, W); the last is for rows of no fold."""
        others = np.concatenate([mass.sum(axis=0) - mass, mass.sum(axis=0)[None]])
        others = others.astype(np.float64)
        if self.n_classes:
            count = others.sum(axis=2, keepdims=True)
            total = others[..., 1:] if self.n_classes == 2 else others
        else:
            count, total = others[..., :1], others[..., 1:] * _STEP
        overall = total[-1].sum(axis=0) / max(float(count[-1].sum()), 1.0)
        return ((total - overall * count) / (count + _PRIOR)).astype(np.float32)


@dataclass(frozen=True)
class LevelMeans:
    """Mean targets of buckets, to be read by fold."""

    columns: tuple[str, ...]
    table: tuple[NDArray[np.float32], ...]  # by column: (n_folds + 1, buckets, W)

    @property
    def width(self) -> int:
        """Columns that are read, W for each."""
        return sum(table.shape[2] for table in self.table)

    def scaled(self, cells: Cells, fold: NDArray[np.intp]) -> LevelMeans:
        """With columns of deviation one over these rows, as other columns have it."""
        if not self.table:
            return self
        read = np.empty((len(fold), self.width))
        self.read(cells, fold, read)
        spread = read.std(axis=0)
        factor = 1.0 / np.where(spread > 0, spread, 1.0)
        edges = np.cumsum([table.shape[2] for table in self.table])[:-1]
        own = zip(self.table, np.split(factor, edges), strict=True)
        return replace(self, table=tuple((t * f).astype(np.float32) for t, f in own))

    def read(self, cells: Cells, fold: NDArray[np.intp], out: NDArray[np.floating]) -> None:
        """Fill out (n, width) by the rows' folds; fold −1: of rows that were not counted."""
        at = 0
        for name, table in zip(self.columns, self.table, strict=True):
            n_folds, n_buckets, width = table.shape
            place = (fold % n_folds) * n_buckets + _buckets(cells(name), n_buckets)
            out[:, at : at + width] = table.reshape(-1, width)[place]
            at += width


def _buckets(levels: Levels, n_buckets: int) -> NDArray[np.intp]:
    codes, hashed = levels
    return (hashed % np.uint64(n_buckets)).astype(np.intp)[codes]
