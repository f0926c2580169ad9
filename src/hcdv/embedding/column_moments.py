"""First and second moments of many rows, in fixed blocks, added up in float64.

Blocks do not depend on the number of workers and are added in order: the same bits for
any n_jobs. Rows are centred before products are taken, since Q − n·mean·meanᵀ loses all
its digits where the mean is large beside the deviation.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from hcdv.engines.local import ordered_map

BLOCK_CELLS = 4_000_000  # 32 MB of float64 a block
CONSTANT = 1e-12  # relative to the mean: below it a deviation is rounding

Floats = NDArray[np.float64]


class Scaling(NamedTuple):
    """x → (x − center)·factor, column by column; factor 0 for a constant column."""

    center: Floats  # (p,)
    factor: Floats  # (p,)


def blocks(X: Any) -> list[slice]:
    """The same cut into rows whoever computes it."""
    n, p = X.shape
    step = max(1, BLOCK_CELLS // max(p, 1))
    return [slice(at, min(at + step, n)) for at in range(0, n, step)]


def scaled(X: Any, rows: slice, scaling: Scaling | None) -> Any:
    """One block as float64; a sparse block is returned as it is (never centred)."""
    if issparse(X):
        return X[rows].astype(np.float64)
    block = np.asarray(X[rows], dtype=np.float64)
    return block if scaling is None else (block - scaling.center) * scaling.factor


def column_scaling(X: Any, *, standardise: bool, n_jobs: int | None = None) -> Scaling:
    """Mean of every column and, if asked for, one over its deviation."""
    n, p = X.shape
    center = _total(lambda rows: scaled(X, rows, None).sum(axis=0), X, n_jobs) / n
    if not standardise:
        return Scaling(center, np.ones(p))
    shift = Scaling(center, np.ones(p))
    squares = _total(lambda rows: (scaled(X, rows, shift) ** 2).sum(axis=0), X, n_jobs)
    deviation = np.sqrt(squares / n)
    varies = deviation > CONSTANT * np.abs(center)
    factor = np.divide(1.0, deviation, out=np.zeros(p), where=varies)
    return Scaling(center, factor)


def gram(
    X: Any, scaling: Scaling, weight: Floats | None = None, n_jobs: int | None = None
) -> Floats:
    """Σ_i w_i·x_i x_iᵀ over scaled rows, (p, p)."""

    def of_block(rows: slice) -> Floats:
        block = scaled(X, rows, scaling)
        left = block if weight is None else block * weight[rows, None]
        return np.asarray(left.T @ block)

    return _total(of_block, X, n_jobs)


def class_sums(
    X: Any, scaling: Scaling, codes: NDArray[np.intp], n_jobs: int | None = None
) -> Floats:
    """Σ of the scaled rows of each class, (C, p)."""
    n_classes = int(codes.max()) + 1

    def of_block(rows: slice) -> Floats:
        member = codes[rows] == np.arange(n_classes)[:, None]  # (C, block)
        return np.asarray(member.astype(np.float64) @ scaled(X, rows, scaling))

    return _total(of_block, X, n_jobs)


def normal_product(
    X: Any, scaling: Scaling | None, W: Floats, n_jobs: int | None = None
) -> Floats:
    """XᵀXW without XᵀX, for X too wide for its Gram matrix, (p, k)."""

    def of_block(rows: slice) -> Floats:
        block = scaled(X, rows, scaling)
        return np.asarray(block.T @ (block @ W))

    return _total(of_block, X, n_jobs)


def projected(
    X: Any, scaling: Scaling | None, W: Floats, n_jobs: int | None = None
) -> Floats:
    """Scaled rows times W, (n, k)."""

    def of_block(rows: slice) -> Floats:
        return np.asarray(scaled(X, rows, scaling) @ W)

    out = np.empty((X.shape[0], W.shape[1]))
    for rows, block in zip(
        blocks(X), ordered_map(of_block, blocks(X), n_jobs), strict=True
    ):
        out[rows] = block
    return out


def projected_single(
    X: NDArray[np.floating], scaling: Scaling | None, W: Floats
) -> NDArray[np.float32]:
    """As projected, in float32: one product and a shift, for columns of deviation about one."""
    shift = np.zeros(W.shape[1])
    if scaling is not None:
        W = W * scaling.factor[:, None]
        shift = scaling.center @ W
    found = X.astype(np.float32, copy=False) @ W.astype(np.float32)
    found -= shift.astype(np.float32)
    return found


def _total(of_block: Any, X: Any, n_jobs: int | None) -> Floats:
    parts = ordered_map(of_block, blocks(X), n_jobs)
    return reduce(np.add, parts)
