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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.cells import hashed_levels
from hcdv.engines.local import ordered_map

if TYPE_CHECKING:
    import pandas as pd

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
        self, frame: pd.DataFrame, fold: NDArray[np.intp], target: NDArray[Any],
        n_jobs: int | None = None,
    ) -> None:  # fmt: skip
        """Count further rows, in place."""

        def one(number: int) -> None:
            mass = self.mass[number]
            at = self._buckets(frame[self.columns[number]])
            if self.n_classes:
                np.add.at(mass, (fold, at, target), 1)
            else:
                np.add.at(mass[..., 0], (fold, at), 1)
                np.add.at(mass[..., 1], (fold, at), np.rint(target / _STEP).astype(_COUNT))

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

    def _buckets(self, column: pd.Series) -> NDArray[np.intp]:
        return _buckets(column, self.mass.shape[2])


@dataclass(frozen=True)
class LevelMeans:
    """Mean targets of buckets, to be read by fold."""

    columns: tuple[str, ...]
    table: tuple[NDArray[np.float32], ...]  # by column: (n_folds + 1, buckets, W)
    scale: NDArray[np.float64] | None = None  # (columns · W)

    def scaled(self, frame: pd.DataFrame, fold: NDArray[np.intp]) -> LevelMeans:
        """With columns of deviation one over these rows, as other columns have it."""
        spread = self.read(frame, fold).std(axis=0)
        return LevelMeans(self.columns, self.table, np.where(spread > 0, spread, 1.0))

    def read(self, frame: pd.DataFrame, fold: NDArray[np.intp]) -> NDArray[np.float64]:
        """Columns of rows by their folds; fold −1: of rows that were not counted."""
        parts = [
            table[fold, _buckets(frame[name], table.shape[1])]
            for name, table in zip(self.columns, self.table, strict=True)
        ]
        whole = np.concatenate(parts, axis=1).astype(np.float64)
        return whole if self.scale is None else whole / self.scale


def _buckets(column: pd.Series, n_buckets: int) -> NDArray[np.intp]:
    codes, hashed = hashed_levels(column)
    return (hashed % np.uint64(n_buckets)).astype(np.intp)[codes]
