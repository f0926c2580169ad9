"""Additive statistics of rows: Gram matrices and cross moments, by group or by context.

Notation:  XᵀX → gram (…, D, D) · XᵀY → cross (…, D, C). A union's statistics are the sum of
its parts', so a coalition, a prefix or a forgotten row never needs the rows again.
Sums run over fixed chunks of rows in a fixed order: any number of workers, the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.arrays import NUMPY, arrays_in_use, arrays_of
from hcdv.engines.local import ordered_map
from hcdv.valuation.contexts import Contexts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.points import Floats, Points

Rows = slice | NDArray[np.intp]

_CHUNKS = 16  # at least this many tasks a pass, where there are rows enough
_CHUNK_ROWS = (2048, 16384)
_GROUP_ROWS = 8192
_SHARES = 4  # of a chunk whose features many orders need
_DOUBLE = 2**22  # entries of the feature matrix up to which every product is float64


@dataclass(frozen=True)
class Statistics:
    """XᵀX and XᵀY of a stack of row sets; they add and subtract like the sets do."""

    gram: NDArray[np.float64]  # (…, D, D)
    cross: NDArray[np.float64]  # (…, D, C)

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(self.gram + other.gram, self.cross + other.cross)

    def __sub__(self, other: Statistics) -> Statistics:
        return Statistics(self.gram - other.gram, self.cross - other.cross)

    def by_group(self, n_groups: int) -> Statistics:
        """The same sets as (n_groups, sets of each, …): views, no copies."""
        return Statistics(
            self.gram.reshape(n_groups, -1, *self.gram.shape[1:]),
            self.cross.reshape(n_groups, -1, *self.cross.shape[1:]),
        )

    def first(self, n_sets: int) -> Statistics:
        """Of the first sets alone; the memory of others is let go."""
        if n_sets == len(self.gram):
            return self
        return Statistics(self.gram[:n_sets].copy(), self.cross[:n_sets].copy())

    def sum(self, axis: int) -> Statistics:
        """The statistics of the union along one axis."""
        return Statistics(self.gram.sum(axis), self.cross.sum(axis))

    def where(self, points: Points) -> Statistics:
        """The same in memory, if these points are there."""
        if arrays_of(points.Z) is not NUMPY or arrays_of(self.gram) is NUMPY:
            return self
        xp = arrays_of(self.gram)
        return Statistics(xp.get(self.gram), xp.get(self.cross))

    def merged(self, into: NDArray[np.intp]) -> Statistics:
        """Sums of the sets along the first axis that go into one: into[set] is its number."""
        n_merged = int(into.max()) + 1
        merged = Statistics(
            np.zeros((n_merged, *self.gram.shape[1:])),
            np.zeros((n_merged, *self.cross.shape[1:])),
        )
        merged.add(into, self)
        return merged

    def add(self, into: NDArray[np.intp], more: Statistics) -> None:
        """Add sets, each to the one of these that `into` names, in place."""
        for own, gram, cross in zip(into.tolist(), more.gram, more.cross, strict=True):
            self.gram[own] += gram
            self.cross[own] += cross

    def on_grid(self) -> Statistics:
        """Rounded so that the sum of any of the sets along the first axis is exact.

        A union then has the same bits in whatever order or company BLAS adds it, and a set
        that changes nothing is worth 0.0. The step is 2⁻⁵² of all sets' total: its rounding.
        """
        return Statistics(_on_grid(self.gram), _on_grid(self.cross))


def _on_grid(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = np.abs(parts).sum(axis=0).max(initial=0.0)
    if whole == 0.0:
        return parts
    step = 2.0 ** (np.ceil(np.log2(whole)) - 52)
    return np.round(parts / step) * step


def row_dtype(n_rows: int, width: int) -> np.dtype:
    """float64 while it is cheap; float32 products summed in float64 for large data."""
    return np.dtype(np.float64 if n_rows * width <= _DOUBLE else np.float32)


def chunks(n_rows: int, fewest: int = _CHUNKS, coarser: int = 1) -> Iterator[slice]:
    """Fixed slices of the rows; their size depends on n, and on the device, alone."""
    size = coarser * int(np.clip(-(-n_rows // fewest), *_CHUNK_ROWS))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def _slice_statistics(
    x: Floats, y: Floats, code: NDArray[np.intp], n_codes: int, total: Statistics
) -> None:
    """Add the statistics of rows with each code to `total`, in place. code ≥ n_codes: none."""
    xp = arrays_of(x)
    by_code = xp.argsort(code, kind="stable")
    edges = xp.get(xp.searchsorted(code[by_code], xp.arange(n_codes + 1)))
    kept = by_code[: edges[-1]]
    x, y = x[kept], y[kept]
    for group in np.flatnonzero(np.diff(edges)):
        part = slice(edges[group], edges[group + 1])
        # numpy sends xᵀx to syrk: half the flops
        total.gram[group] += xp.gram(x[part], x[part])
        total.cross[group] += xp.gram(x[part], y[part])


def _weighted(
    points: Points, features: FeatureMap, rows: Rows, dtype: np.dtype, weight: Floats | None
) -> tuple[Floats, Floats]:
    x = features(points.Z[rows], dtype)
    y = points.targets(rows, dtype)
    if weight is not None:
        xp = arrays_of(x)
        root = xp.cast(xp.sqrt(weight[rows]), dtype)[:, None]
        x *= root
        y *= root
    return x, y


def _shared(
    points: Points, features: FeatureMap, rows: slice, dtype: np.dtype,
    weight: Floats | None, n_jobs: int | None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """x and y of a chunk of rows, computed by all workers together."""
    n_shares = _SHARES if arrays_of(points.Z) is NUMPY else 1
    step = -(-(rows.stop - rows.start) // n_shares)
    shares = [
        slice(i, min(i + step, rows.stop)) for i in range(rows.start, rows.stop, step)
    ]
    parts = ordered_map(
        lambda share: _weighted(points, features, share, dtype, weight), shares, n_jobs
    )
    x, y = zip(*parts, strict=True)
    if len(x) == 1:
        return x[0], y[0]
    xp = arrays_of(x[0])
    return xp.concatenate(x), xp.concatenate(y)


def _empty(shape: tuple[int, ...], features: FeatureMap, points: Points) -> Statistics:
    xp, width = arrays_of(points.Z), features.width
    return Statistics(
        xp.zeros((*shape, width, width)), xp.zeros((*shape, width, points.width))
    )


def group_statistics(
    points: Points,
    features: FeatureMap,
    code: NDArray[np.intp],
    n_groups: int,
    *,
    weight: Floats | None = None,
    dtype: np.dtype | None = None,
    n_jobs: int | None = None,
) -> Statistics:
    """Statistics of every group of rows, (n_groups, …). A code of n_groups: in none.

    dtype: of the products, where the rows are a part of more than are at hand.
    """
    dtype = dtype or row_dtype(len(points), features.width)
    given, points, weight = placed(points, weight)
    xp = arrays_of(points.Z)
    code = xp.put(code)
    by_code = xp.argsort(code, kind="stable")
    edges = xp.get(xp.searchsorted(code[by_code], xp.arange(n_groups + 1)))
    step = _GROUP_ROWS * xp.coarser

    def one(group: int) -> tuple[Floats, Floats]:
        gram = xp.zeros((features.width, features.width))
        cross = xp.zeros((features.width, points.width))
        for start in range(edges[group], edges[group + 1], step):
            rows = by_code[start : min(start + step, edges[group + 1])]
            x, y = _weighted(points, features, rows, dtype, weight)
            gram += xp.gram(x, x)
            cross += xp.gram(x, y)
        return gram, cross

    total = _empty((n_groups,), features, points)
    answers = ordered_map(one, range(n_groups), xp.n_jobs(n_jobs))
    for group, (gram, cross) in enumerate(answers):
        total.gram[group], total.cross[group] = gram, cross
    return total.where(given)


def placed(points: Points, weight: Floats | None) -> tuple[Points, Points, Floats | None]:
    """Points as given, and points and weights where kernels work on them."""
    placed = points.on(arrays_in_use()) if arrays_of(points.Z) is NUMPY else points
    xp = arrays_of(placed.Z)
    return points, placed, None if weight is None else xp.put(weight)


def context_statistics(
    points: Points,
    features: FeatureMap,
    contexts: Contexts,
    barred: NDArray[np.bool_],  # (R, n_folds)  folds whose rows an order never holds
    *,
    weight: Floats | None = None,
    dtype: np.dtype | None = None,
    n_jobs: int | None = None,
) -> Statistics:
    """Statistics of every context, (R, L, …): one Gram pass an order, prefixes by cumsum."""
    dtype = dtype or row_dtype(len(points), features.width)
    given, points, weight = placed(points, weight)
    xp = arrays_of(points.Z)
    n_jobs = xp.n_jobs(n_jobs)
    n_orders, n_thresholds = contexts.p.shape
    total = _empty((n_orders, n_thresholds), features, points)
    thresholds, outside = xp.put(contexts.p), xp.put(barred)

    def add(order: int, rows: slice, x: Floats, y: Floats) -> None:
        u = contexts.uniforms(order, points.key[rows])
        # row in context l iff u < p_l: it joins at the first threshold above u
        bucket = xp.searchsorted(thresholds[order], u, side="right")
        bucket[outside[order, points.fold[rows]]] = n_thresholds
        into = Statistics(total.gram[order], total.cross[order])
        _slice_statistics(x, y, bucket, n_thresholds, into)

    # Orders are the tasks: each adds in place, so no worker holds a copy of the total.
    for rows in chunks(len(points), 1, xp.coarser):
        x, y = _shared(points, features, rows, dtype, weight, n_jobs)
        deque(ordered_map(partial(add, rows=rows, x=x, y=y), range(n_orders), n_jobs), 0)
    for threshold in range(1, n_thresholds):  # numpy's cumsum goes number by number
        total.gram[:, threshold] += total.gram[:, threshold - 1]
        total.cross[:, threshold] += total.cross[:, threshold - 1]
    return total.where(given)
