"""Nearest-neighbour payoffs of coalitions of groups, from each group's nearest rows.

Notation, as in `hcdv.valuation.knn`: near_K(S) → the first K entries of members of S

Only the K nearest rows of a group to a validation row can ever be among the K nearest of
a coalition that holds the group, so merging those lists is exact, whatever the coalition.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcdv.engines.local import ordered_map
from hcdv.errors import DataError, ParameterError
from hcdv.valuation.neighbours import (
    check_k,
    check_radius,
    checked_codes,
    checked_rows,
    checked_targets,
    checked_weights,
    map_distances,
    nearest,
)

Kind = Literal["hard", "soft", "threshold", "regression"]
KINDS = ("hard", "soft", "threshold", "regression")
ROWS, COALITIONS = 32, 2048  # looked at together: a few such arrays fit a cache


class _Lists(NamedTuple):
    """Each validation row's entries, nearest first; all rows have as many."""

    group: NDArray[np.int32]  # (m_val, L)
    gain: NDArray[np.float64]  # (m_val, L)  match, or y for regression


class KNNGame:
    """The game whose players are groups of rows: masks (m, G) → payoffs (m,).

    kind="hard", "soft", "threshold" (needs `radius`) and "regression" are the utilities
    of knn_shapley, soft_knn_shapley, threshold_knn_shapley and knn_regression_shapley.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike,
        y_val: ArrayLike,
        groups: ArrayLike,
        n_groups: int,
        *,
        k: int = 10,
        kind: Kind = "soft",
        radius: float | None = None,
        n_classes: int | None = None,
        sample_weight_val: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if kind not in KINDS:
            raise ParameterError("kind", kind, f"one of {', '.join(KINDS)}")
        check_k(k)
        rows, rows_val = checked_rows(X, X_val)
        member = _checked_groups(groups, len(rows), n_groups)
        self.n_groups, self.k, self.kind, self._n_jobs = n_groups, k, kind, n_jobs
        self._weight = checked_weights(sample_weight_val, len(rows_val))
        if kind == "regression":
            gain, self._target = checked_targets(y, y_val, len(rows), len(rows_val))
            self._empty = np.nan
        else:
            gain, self._target, n_classes = checked_codes(
                y, y_val, len(rows), len(rows_val), n_classes
            )
            self._empty = 1 / n_classes
        if kind == "threshold":
            check_radius(radius)
            self._inside = self._counts(
                rows, rows_val, gain, member, float(radius or 0), n_jobs
            )
        else:
            self._lists = self._merged(rows, rows_val, gain, member, n_jobs)

    def __call__(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Payoffs of coalitions, exact."""
        masks = np.asarray(masks, dtype=bool)
        if masks.ndim != 2 or masks.shape[1] != self.n_groups:
            raise DataError(
                f"masks must have {self.n_groups} columns, got shape {masks.shape}."
            )
        rows = [slice(a, a + ROWS) for a in range(0, len(self._weight), ROWS)]
        payoff = np.empty(len(masks))
        for start in range(0, len(masks), COALITIONS):
            part = masks[start : start + COALITIONS]
            work = partial(self._paid, part)
            payoff[start : start + COALITIONS] = sum(ordered_map(work, rows, self._n_jobs))
        return payoff

    def _paid(self, masks: NDArray[np.bool_], rows: slice) -> NDArray[np.float64]:
        """What a block of validation rows pays each coalition, row added to row.

        So a coalition is paid the same bits in whatever company it is asked about, and a
        group that changes nothing is worth exactly 0; a matrix product would not see to it.
        """
        if self.kind == "threshold":
            count, match = (part[:, rows].T @ masks.T for part in self._inside)
            score = np.where(count > 0, match / np.maximum(1, count), self._empty)
        else:
            score = self._scores(rows, *self._nearest_sums(rows, masks))
        payoff = np.zeros(len(masks))
        for w, row in zip(self._weight[rows], score, strict=True):
            payoff += w * row
        return payoff

    def _scores(
        self, block: slice, found: NDArray[np.int64], total: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Utility (rows, m) from how many of the K nearest were found, and their sum."""
        if self.kind == "hard":
            return total / self.k
        if self.kind == "regression":
            return -np.square(total / self.k - self._target[block, None])
        return np.where(found > 0, total / np.maximum(1, found), self._empty)

    def _nearest_sums(
        self, block: slice, masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Members found, up to K, and the sum of their gains: (rows, m) both.

        Steps down all lists of the block at once, and at growing intervals drops the
        coalitions that have their K in each.
        """
        group, gain = self._lists.group[block], self._lists.gain[block]
        by_group = np.ascontiguousarray(masks.T)
        shape = (len(group), by_group.shape[1])
        left, total = np.full(shape, self.k), np.zeros(shape)
        short, start, stop = np.arange(shape[1]), 0, 2 * self.k
        while short.size and start < group.shape[1]:
            chosen, lacking, gained = by_group[:, short], left[:, short], total[:, short]
            for place in range(start, min(stop, group.shape[1])):
                taken = chosen[group[:, place]]  # (rows, coalitions)
                taken &= lacking > 0
                lacking -= taken
                gained += taken * gain[:, place, None]
            left[:, short], total[:, short] = lacking, gained
            short = short[np.any(lacking > 0, axis=0)]
            start, stop = stop, 2 * stop
        return self.k - left, total

    def _merged(
        self,
        X: NDArray[np.float64],
        X_val: NDArray[np.float64],
        y: NDArray[np.float64] | NDArray[np.int64],
        member: NDArray[np.int64],
        n_jobs: int | None,
    ) -> _Lists:
        """The K nearest rows of every group, merged by distance, ties by row index."""
        by_group = np.argsort(member, kind="stable")
        bounds = np.searchsorted(member[by_group], np.arange(self.n_groups + 1))
        families = [by_group[a:b] for a, b in pairwise(bounds) if b > a]

        def work(distance: NDArray[np.float64], block: slice) -> _Lists:
            lists = [
                rows[nearest(distance[:, rows], min(self.k, len(rows)))]
                for rows in families
            ]
            kept = np.concatenate(lists, axis=1)
            kept.sort(axis=1)  # by row index, for the stable sort to break ties by it
            near = np.take_along_axis(distance, kept, axis=1)
            index = np.take_along_axis(
                kept, np.argsort(near, axis=1, kind="stable"), axis=1
            )
            gain = y[index]
            if self.kind != "regression":
                gain = gain == self._target[block, None]
            return _Lists(member[index].astype(np.int32), gain.astype(np.float64))

        parts = list(map_distances(work, X, X_val, n_jobs))
        return _Lists(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _counts(
        self,
        X: NDArray[np.float64],
        X_val: NDArray[np.float64],
        code: NDArray[np.int64] | NDArray[np.float64],
        member: NDArray[np.int64],
        radius: float,
        n_jobs: int | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows within the radius by group, and how many of them match: (G, m_val) both."""
        by_group = np.argsort(member, kind="stable")
        size = np.bincount(member, minlength=self.n_groups)
        starts = (np.cumsum(size) - size)[size > 0]

        def work(distance: NDArray[np.float64], block: slice) -> NDArray[np.float64]:
            inside = (distance <= radius**2)[:, by_group]
            match = inside & (code[by_group] == self._target[block, None])
            sums = np.zeros((2, self.n_groups, len(distance)))
            for part, flags in zip(sums, (inside, match), strict=True):
                part[size > 0] = np.add.reduceat(flags.astype(np.float64), starts, axis=1).T
            return sums

        both = np.concatenate(list(map_distances(work, X, X_val, n_jobs)), axis=2)
        return both[0], both[1]


def _checked_groups(groups: ArrayLike, n: int, n_groups: int) -> NDArray[np.int64]:
    """Group indices, one per row, inside the range."""
    member = np.asarray(groups)
    is_index = member.dtype.kind in "iu" and member.shape == (n,)
    if not is_index or not 0 <= member.min() <= member.max() < n_groups:
        raise DataError(
            f"groups must hold, for each of {n} rows, an integer from 0 to {n_groups - 1}."
        )
    return member.astype(np.int64)
