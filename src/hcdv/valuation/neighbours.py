"""Each validation row's neighbours, nearest first, ties by row; never n × m at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcdv.engines.arrays import arrays_in_use, arrays_of
from hcdv.engines.local import ordered_map
from hcdv.errors import DataError, ParameterError

BLOCK_BYTES = 1 << 24  # one float64 array (block, n); a block's work holds a few of them

Answer = TypeVar("Answer")


def map_distances(
    work: Callable[[NDArray[np.float64], slice], Answer],
    X: NDArray[np.float64],
    X_val: NDArray[np.float64],
    n_jobs: int | None = None,
) -> Iterator[Answer]:
    """Yield work(squared distances (block, n), block of validation rows), in order.

    Blocks depend on the sizes alone, so answers added in order are the same bits for any
    n_jobs. Rows are not centred: whole-number features keep exact distances, exact ties.
    """
    xp = arrays_of(X)
    squares = xp.einsum("nd,nd->n", X, X)
    rows = max(1, xp.coarser * BLOCK_BYTES // (8 * len(X)))
    blocks = [slice(a, min(a + rows, len(X_val))) for a in range(0, len(X_val), rows)]

    def one(block: slice) -> Answer:
        part = X_val[block]
        distance = part @ X.T
        distance *= -2
        distance += squares
        distance += xp.einsum("nd,nd->n", part, part)[:, None]
        return work(distance, block)

    return ordered_map(one, blocks, xp.n_jobs(n_jobs))


def map_nearest(
    work: Callable[[NDArray[np.int64], slice], Answer],
    X: NDArray[np.float64],
    X_val: NDArray[np.float64],
    count: int,
    n_jobs: int | None = None,
) -> Iterator[Answer]:
    """Yield work(nearest rows (block, count), block of validation rows), in order.

    Distances and their order are found on the device in use; they do not leave it.
    """
    xp = arrays_in_use()

    def one(distance: NDArray[np.float64], block: slice) -> Answer:
        return work(xp.get(nearest(distance, count)), block)

    return map_distances(one, xp.put(X), xp.put(X_val), n_jobs)


def nearest(distance: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The `count` nearest columns of each row (b, n), in order, ties by column."""
    xp, n = arrays_of(distance), distance.shape[1]
    if count >= n:
        return xp.argsort(distance, axis=1, kind="stable")
    some = xp.sort(xp.smallest(distance, count), 1)
    near = xp.take_along(distance, some, 1)
    index = xp.take_along(some, xp.argsort(near, axis=1, kind="stable"), 1)
    # A tie across the cut is settled by the partition as it pleases: sort those rows whole.
    cut = xp.amax(near, 1)
    torn = xp.flatnonzero((distance <= cut[:, None]).sum(1) > count)
    if len(torn):
        index[torn] = xp.argsort(distance[torn], axis=1, kind="stable")[:, :count]
    return index


def checked_rows(
    X: ArrayLike, X_val: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two finite tables of the same columns, in double precision."""
    tables = []
    for name, table in (("X", X), ("X_val", X_val)):
        rows = np.ascontiguousarray(table, dtype=np.float64)
        if rows.ndim != 2 or len(rows) == 0:
            raise DataError(
                f"{name} must be a table with at least one row, got {rows.shape}."
            )
        if not np.all(np.isfinite(rows)):
            raise DataError(f"{name} must be finite. Impute missing values first.")
        tables.append(rows)
    if tables[0].shape[1] != tables[1].shape[1]:
        raise DataError(
            f"X and X_val must have the same columns, got {tables[0].shape[1]} and "
            f"{tables[1].shape[1]}."
        )
    return tables[0], tables[1]


def checked_codes(
    y: ArrayLike, y_val: ArrayLike, n: int, m: int, n_classes: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Labels of both sets as one numbering, and the number of classes C behind 1/C."""
    labels, others = np.asarray(y), np.asarray(y_val)
    if labels.shape != (n,) or others.shape != (m,):
        raise DataError(
            f"y and y_val must hold one label per row, got shapes {labels.shape} and "
            f"{others.shape} for {n} and {m} rows."
        )
    seen, code = np.unique(np.concatenate([labels, others]), return_inverse=True)
    if n_classes is not None and n_classes < seen.size:
        raise ParameterError(
            "n_classes", n_classes, f"at least {seen.size}, the classes seen"
        )
    return code[:n], code[n:], n_classes or seen.size


def checked_weights(weights: ArrayLike | None, m: int) -> NDArray[np.float64]:
    """Validation weights that sum to 1; equal ones when none are given."""
    if weights is None:
        return np.full(m, 1 / m)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (m,) or not np.all(w >= 0) or not 0 < w.sum() < np.inf:
        raise ParameterError(
            "sample_weight_val", weights, f"{m} weights, none negative and not all zero"
        )
    return w / w.sum()


def checked_targets(
    y: ArrayLike, y_val: ArrayLike, n: int, m: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Finite numbers to predict, one per row of both sets."""
    target, target_val = (np.asarray(part, dtype=np.float64) for part in (y, y_val))
    if target.shape != (n,) or target_val.shape != (m,):
        raise DataError(
            f"y and y_val must hold one number per row, got shapes {target.shape} and "
            f"{target_val.shape} for {n} and {m} rows."
        )
    if not (np.all(np.isfinite(target)) and np.all(np.isfinite(target_val))):
        raise DataError("y and y_val must be finite. Drop rows without a target.")
    return target, target_val


def check_k(k: int) -> None:
    """Refuse a number of neighbours below one."""
    if k < 1:
        raise ParameterError("k", k, "at least 1", "10 is usual.")


def check_radius(radius: float | None) -> None:
    """Refuse a radius that is missing, negative or zero."""
    if radius is None or not radius > 0:
        raise ParameterError("radius", radius, "more than zero", "It is a distance.")
