"""Standard errors of values averaged over nested Latin-square orders.

Within whole squares every player meets every place equally often, so what its gain owes
to place, its own among siblings or an ancestor's, cancels from the mean and must not be
counted as error: what counts is the variance that place leaves unexplained, as in
stratified sampling. A sample is a pair, an order with its reverse, and its stratum is the
mirrored place min(j, k − 1 − j). Measured on games of decreasing returns and of ridge
accuracy, flat and nested, the variance comes out at 0.84 to 1.15 of the true one, where
batch means give 1 to 66.

Notation (method → code):  pairs of orders → P · siblings → k · gains of a pair → Y
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcdv.valuation.orders import nesting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 4  # degrees of freedom below which place is not taken out: safe, but too large


def stratified_stderr(parent: ArrayLike, order: Ints, gains: Floats) -> Floats | None:
    """Standard errors (m,) of mean node gains (T, m); None where orders are unpaired.

    Var(ψ̂) = s²/P + Σ_levels r (k − r) / ((k − 1) P²) · σ_place²,   r = P mod k

    s² is the residual variance around effects of place, additive over levels; the second
    term is what an unfinished square of r < k rows leaves unbalanced.
    """
    n_pairs = len(order) // 2
    paired = order[: 2 * n_pairs]
    if n_pairs < 2 or not np.array_equal(paired[1::2], paired[::2, ::-1]):
        return None
    nest = nesting(parent)
    rank = np.empty((n_pairs, nest.n_children.size), dtype=np.int64)
    rank[:, nest.leaves] = np.argsort(paired[::2], axis=1)
    for node in nest.inner[::-1]:
        rank[:, node] = rank[:, nest.children(node)].min(axis=1)

    Y = (gains[: 2 * n_pairs : 2] + gains[1 : 2 * n_pairs : 2]) / 2
    variance = np.zeros(gains.shape[1])
    above: list[list[tuple[Ints, int]]] = [
        [] for _ in variance
    ]  # strata and k of ancestors
    for node in nest.inner.tolist():
        kids, k = nest.children(node), int(nest.n_children[node])
        place = np.argsort(np.argsort(rank[:, kids], axis=1), axis=1)  # (P, k)
        mirrored = np.minimum(place, k - 1 - place)
        variance[kids] = _variance(Y[:, kids], [(mirrored, k), *above[node]])
        for column, child in enumerate(range(kids.start, kids.stop)):
            above[child] = [(mirrored[:, [column]], k), *above[node]]
    return np.sqrt(variance)


def _variance(Y: Floats, factors: list[tuple[Ints, int]]) -> Floats:
    """Variance (k,) of the means of siblings' gains (P, k), place taken out."""
    n_pairs, n_siblings = Y.shape
    rest = Y - Y.mean(axis=0)
    freedom = np.full(n_siblings, n_pairs - 1)
    parts: list[tuple[Floats, Ints, float]] = []
    for strata, k in factors:
        effect, n_strata = _stratum_means(rest, np.broadcast_to(strata, Y.shape))
        rest = rest - effect
        freedom -= n_strata - 1
        part, left = np.mean(effect**2, axis=0), n_pairs % k
        parts.append((part, n_strata - 1, left * (k - left) / max(1, k - 1) / n_pairs**2))
    enough = freedom >= FEWEST
    residual = np.sum(rest**2, axis=0) / np.maximum(1, freedom)
    variance = residual / n_pairs
    for part, n_effects, unbalanced in parts:
        # The fitted effects hold some of the residual noise as well.
        variance += unbalanced * np.maximum(0, part - residual * n_effects / n_pairs)
    return np.where(enough, variance, Y.var(axis=0, ddof=1) / n_pairs)


def _stratum_means(values: Floats, strata: Ints) -> tuple[Floats, Ints]:
    """Each entry's mean over its column's stratum (P, k); how many strata occur (k,)."""
    n_pairs, n_columns = values.shape
    width = int(strata.max()) + 1
    cell = (strata + width * np.arange(n_columns)).ravel()
    count = np.bincount(cell, minlength=width * n_columns)
    total = np.bincount(cell, weights=values.ravel(), minlength=width * n_columns)
    mean = total / np.maximum(1, count)
    return mean[cell].reshape(n_pairs, n_columns), np.count_nonzero(
        count.reshape(n_columns, width), axis=1
    )
