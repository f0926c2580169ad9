"""One capacity-bounded split of a set of points, or of many small sets at once.

k-means++ seeds, then Lloyd steps whose assignment is priced towards the window
(`capacity`), then an assignment of every point that is exactly inside it. Large sets fit
centroids and prices on a sample. Unit rows make squared distance equal to cosine.

departs from paper: its greedy pass by confidence keeps only s^max (on 200,000 points the
smallest child had 8,572 of s^min = 11,250); prices and repair keep both ends.

Notation (paper → code):  z_i → Z[i] · K → k · γ → tolerance
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError, ParameterError
from hcdv.hierarchy.capacity import Prices, Window, indicator, labels_of, repair, window

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Reals = NDArray[np.floating]

_LLOYD_STEPS = 8
_PASSES = 3  # price passes in a Lloyd step
_LAST_PASSES = 30
_ASTRAY = 0.1  # share of a set outside its window that calls for repair in between
_BLOCK = 16_384  # rows gathered at a time


def fit_size(k: int) -> int:
    """Above this many points, centroids and prices are fitted on a sample."""
    return max(4096, 64 * k)


def balanced_split(
    X: Reals, k: int, rng: np.random.Generator, tolerance: float = 0.1
) -> Ints:
    """Labels 0 … k−1 of the rows of X, each used inside ⌊(1−γ)s⌋ … ⌈(1+γ)s⌉ times.

    The same rows and the same state of rng give the same labels.
    """
    X = checked_points(X)
    if not 1 <= k <= len(X):
        raise ParameterError("k", k, f"between 1 and the number of rows, {len(X)}")
    checked_tolerance(tolerance)
    if len(X) > fit_size(k):
        return split_large(X, np.arange(len(X)), k, rng, tolerance)
    rows, sizes = np.arange(len(X))[None, :], np.array([len(X)])
    return split_many(X, rows, sizes, k, rng, tolerance)[0]


def split_many(
    Z: Reals, rows: Ints, sizes: Ints, k: int, rng: np.random.Generator, tolerance: float
) -> Ints:
    """(G, n) labels of G sets of rows of Z: rows[g, :sizes[g]]; padding is labelled k."""
    is_real = np.arange(rows.shape[1]) < sizes[:, None]
    points, _, _ = _standard(Z[rows], is_real, sizes)
    mask = None if is_real.all() else is_real
    bounds = window(sizes, k, tolerance)
    centroids, prices = _fit(points, mask, sizes, k, rng, bounds)
    cost = _costs(points, centroids)
    return _settle(cost, prices, bounds, mask)


def split_large(
    Z: Reals, rows: Ints, k: int, rng: np.random.Generator, tolerance: float
) -> Ints:
    """(n,) labels of the rows of Z named, fitted on a sample of them."""
    sample = np.sort(rng.choice(len(rows), fit_size(k), replace=False))
    size = np.array([len(sample)])
    drawn = Z[rows[sample]][None]
    points, centre, unit = _standard(drawn, np.ones((1, len(sample)), dtype=bool), size)
    # half the tolerance leaves room for what the sample does not show
    half = window(size, k, tolerance / 2)
    centroids, prices = _fit(points, None, size, k, rng, half)
    prices.climb(_costs(points, centroids), half, _LAST_PASSES)

    cost = np.empty((1, k, len(rows)), dtype=np.float32)
    for low in range(0, len(rows), _BLOCK):
        block = slice(low, low + _BLOCK)
        found = ((Z[rows[block]] - centre[0]) * unit[0]).astype(np.float32, copy=False)
        cost[:, :, block] = _costs(found[None], centroids)
    return _settle(cost, prices, window(np.array([len(rows)]), k, tolerance), None)[0]


def checked_points(X: Reals) -> Reals:
    """X as a finite floating-point matrix, or what is wrong with it."""
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"Points must be a table of rows and columns, got shape {X.shape}.")
    if not (np.isfinite(X.min()) and np.isfinite(X.max())):
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        raise DataError(
            f"Points must be finite; {len(bad)} rows are not, the first is row {bad[0]}."
        )
    return X


def checked_tolerance(tolerance: float) -> None:
    """Refuse a window that is not one."""
    if not 0 <= tolerance < 1:
        raise ParameterError("tolerance", tolerance, "at least 0 and below 1")


def _standard(
    points: Reals, is_real: NDArray[np.bool_], sizes: Ints
) -> tuple[Floats, Reals, Reals]:
    """Each set centred and scaled into [-1, 1], so that float32 suffices; padding is 0."""
    padded = not is_real.all()
    if padded:
        points[~is_real] = 0
    centre = (points / sizes[:, None, None].astype(points.dtype)).sum(axis=1, keepdims=True)
    points = points - centre
    if padded:
        points[~is_real] = 0
    widest = np.maximum(points.max(axis=(1, 2)), -points.min(axis=(1, 2)))
    unit = (1 / np.where(widest > 0, widest, 1))[:, None, None]
    points *= unit
    return points.astype(np.float32, copy=False), centre[:, 0], unit[:, 0]


def _fit(
    points: Floats,
    is_real: NDArray[np.bool_] | None,
    sizes: Ints,
    k: int,
    rng: np.random.Generator,
    bounds: Window,
) -> tuple[Floats, Prices]:
    """Centroids and prices by Lloyd steps; a set far from its window is repaired first.

    Without that, two centroids on one far group too small for both never part: mean
    squared distance 33, with it 26, by min-cost flow 24 (9,000 and 1,000 points apart).
    """
    centroids = _seeds(points, is_real, sizes, k, rng)
    cost = _costs(points, centroids)
    prices = Prices(cost, is_real)
    for _ in range(_LLOYD_STEPS):
        chosen = prices.climb(cost, bounds, _PASSES)
        off = np.abs(bounds.outside(chosen.sum(axis=2))).sum(axis=1)
        astray = np.flatnonzero(off > _ASTRAY * sizes)
        if len(astray):
            label = labels_of(chosen, is_real)[astray]
            repair(label, cost[astray], bounds.of(astray))
            chosen[astray] = indicator(label, k)
        count = chosen.sum(axis=2, keepdims=True)
        means = (chosen @ points) / np.maximum(count, 1)
        centroids = np.where(count > 0, means, centroids)
        cost = _costs(points, centroids)
    prices.rescale(cost)
    return centroids, prices


def _settle(
    cost: Floats, prices: Prices, bounds: Window, is_real: NDArray[np.bool_] | None
) -> Ints:
    """Labels inside the window, whatever the prices reach."""
    prices.is_real = is_real
    label = labels_of(prices.climb(cost, bounds, _LAST_PASSES), is_real)
    repair(label, cost, bounds)
    return label


def _costs(points: Floats, centroids: Floats) -> Floats:
    """(G, k, n) ‖c‖² − 2 z·c, the squared distance less ‖z‖², centroid-major.

    The product is asked for point-major and then turned: BLAS is three times slower with
    the few centroids first, and minima over them ten times slower with them last.
    """
    # Some BLAS kernels read past the ends of small matrices and flag what lies there as
    # invalid; the points are finite, and were checked.
    with np.errstate(invalid="ignore", over="ignore"):
        product = points @ (-2 * centroids).transpose(0, 2, 1)
    norms = np.einsum("gkd,gkd->gk", centroids, centroids)[:, :, None]
    cost = np.empty((len(points), centroids.shape[1], points.shape[1]), dtype=np.float32)
    return np.add(product.transpose(0, 2, 1), norms, out=cost)


def _seeds(
    points: Floats,
    is_real: NDArray[np.bool_] | None,
    sizes: Ints,
    k: int,
    rng: np.random.Generator,
) -> Floats:
    """Greedy k-means++: of a few points drawn by squared distance, the most useful one."""
    n_nodes, n_points, _ = points.shape
    n_drawn = 2 + int(np.log(k))
    draws = rng.random((n_nodes, k, n_drawn))
    norms = np.einsum("gnd,gnd->gn", points, points)
    nodes = np.arange(n_nodes)
    chosen = np.empty((n_nodes, k), dtype=np.int64)
    chosen[:, 0] = draws[:, 0, 0] * sizes
    nearest = _distances(points, norms, chosen[:, :1])[:, 0]
    for j in range(1, k):
        if is_real is not None:
            nearest *= is_real
        total = np.cumsum(nearest, axis=1, dtype=np.float64)
        ends = np.cumsum(total[:, -1])
        spots = (ends - total[:, -1])[:, None] + draws[:, j] * total[:, -1:]
        flat = (total + (ends - total[:, -1])[:, None]).ravel()
        found = np.searchsorted(flat, spots, side="right") - nodes[:, None] * n_points
        found = np.clip(found, 0, sizes[:, None] - 1)
        distance = np.minimum(_distances(points, norms, found), nearest[:, None, :])
        best = distance.sum(axis=2).argmin(axis=1)
        chosen[:, j], nearest = found[nodes, best], distance[nodes, best]
    return points[nodes[:, None], chosen]


def _distances(points: Floats, norms: Floats, chosen: Ints) -> Floats:
    """(G, c, n) squared distances to chosen points."""
    seeds = points[np.arange(len(points))[:, None], chosen]
    return np.maximum(_costs(points, seeds) + norms[:, None, :], 0)
