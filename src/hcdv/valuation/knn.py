r"""Exact Shapley values of nearest-neighbour utilities, in closed form.

Notation, for one validation row with label t and rows sorted by distance to it:
  m_j → match, 1 if the j-th nearest row has label t · M → their sum · K → k
  A(S), the mean over a set; near_K(S), the min(K, |S|) rows of S nearest to the row

Utilities are averaged over validation rows (by `sample_weight_val`), hence so are values.
Sources: Jia et al. 2019 (hard, regression), Wang & Jia 2023 (soft), Wang et al. 2023
(threshold); the forms below are re-derived so that one rank sum serves all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcdv.errors import ParameterError
from hcdv.valuation.neighbours import (
    check_k,
    check_radius,
    checked_codes,
    checked_rows,
    checked_targets,
    checked_weights,
    map_distances,
    map_nearest,
)

EXACT_UP_TO = 20_000  # rows; a full sort of more is the larger part of the time
TOLERANCE = 1e-3


class _Labelled(NamedTuple):
    """A classification set and its validation set, checked."""

    X: NDArray[np.float64]  # (n, d)
    X_val: NDArray[np.float64]  # (m, d)
    code: NDArray[np.int64]  # (n,)
    code_val: NDArray[np.int64]  # (m,)
    weight: NDArray[np.float64]  # (m,)  sums to 1
    n_classes: int  # C


def knn_shapley(
    X: ArrayLike,
    y: ArrayLike,
    X_val: ArrayLike,
    y_val: ArrayLike,
    k: int = 10,
    *,
    sample_weight_val: ArrayLike | None = None,
    tolerance: float | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    r"""Value rows in v(S) = 1/K · Σ_{j ∈ near_K(S)} m_j, with v(∅) = 0: (n,).

    s_i = m_i / max(i, K) − Σ_{j > max(i, K)} m_j / (j (j − 1)),   |s_i| ≤ 1 / max(i, K)

    Beyond rank R = max(K, 1/tolerance) no row is sorted: it gets the expectation of s_i
    over random orders of those beyond. Any value is then off by at most 1/R ≤ tolerance,
    and the sum stays v(D). tolerance=0 is exact; None is 0 up to 20,000 rows, else 1e-3.
    """
    check_k(k)
    data = _labelled(X, y, X_val, y_val, sample_weight_val, None)
    return _hard_values(data, k, tolerance, n_jobs)


def soft_knn_shapley(
    X: ArrayLike,
    y: ArrayLike,
    X_val: ArrayLike,
    y_val: ArrayLike,
    k: int = 10,
    *,
    sample_weight_val: ArrayLike | None = None,
    tolerance: float | None = None,
    n_classes: int | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    r"""Value rows in v(S) = A(m_j : j ∈ near_K(S)), with v(∅) = 1/C: (n,).

    It differs from the hard utility where |S| < K only, where distance plays no part:

    s_i = hard s_i + g·m_i − (1/C + g·M) / n,   g = (H_K − 1) / (n − 1),   K = min(K, n)

    C is the number of classes seen in y and y_val, or `n_classes`.
    """
    check_k(k)
    data = _labelled(X, y, X_val, y_val, sample_weight_val, n_classes)
    n, C = len(data.X), data.n_classes
    k = min(k, n)
    g = (_harmonic(k)[k] - 1) / max(1, n - 1)
    votes = np.bincount(data.code_val, weights=data.weight, minlength=C)  # (C,)
    matches = np.bincount(data.code, minlength=C) @ votes
    hard = _hard_values(data, k, tolerance, n_jobs)
    return hard + g * votes[data.code] - (1 / C + g * matches) / n


def threshold_knn_shapley(
    X: ArrayLike,
    y: ArrayLike,
    X_val: ArrayLike,
    y_val: ArrayLike,
    radius: float,
    *,
    sample_weight_val: ArrayLike | None = None,
    n_classes: int | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    r"""Value rows in v(S) = A(m_j : j ∈ S within `radius`), 1/C where there is none: (n,).

    With c rows of D inside the radius and a matches among them, a row inside is worth

    s_i = (m_i − 1/C)/c + (H_c − 1)·(m_i/c − (a − m_i)/(c (c − 1))),   a row outside 0
    """
    check_radius(radius)
    data = _labelled(X, y, X_val, y_val, sample_weight_val, n_classes)
    harmonic, C = _harmonic(len(data.X)), data.n_classes

    def work(distance: NDArray[np.float64], block: slice) -> NDArray[np.float64]:
        inside = distance <= radius**2
        match = data.code == data.code_val[block, None]
        c = np.count_nonzero(inside, axis=1)
        a = np.count_nonzero(inside & match, axis=1)
        n, later = np.maximum(c, 1), harmonic[np.maximum(c, 1)] - 1
        pairs = np.maximum(1, n * (n - 1))
        miss = data.weight[block] * (-1 / (C * n) - later * a / pairs)
        hit = data.weight[block] * ((1 - 1 / C) / n + later * (1 / n - (a - 1) / pairs))
        return np.sum(np.where(match, hit[:, None], miss[:, None]), axis=0, where=inside)

    return _total(map_distances(work, data.X, data.X_val, n_jobs), len(data.X))


def knn_regression_shapley(
    X: ArrayLike,
    y: ArrayLike,
    X_val: ArrayLike,
    y_val: ArrayLike,
    k: int = 10,
    *,
    sample_weight_val: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    r"""Value rows in v(S) = −(ŷ(S) − t)², ŷ(S) = 1/K · Σ_{j ∈ near_K(S)} y_j: (n,).

    ŷ(∅) = 0: for ∅ to predict the validation mean, centre both on it. With b = y/K,

    v = −Σ_near b_j² − 2 Σ_{j < l near} b_j b_l + 2t Σ_near b_j − t²;

    first and third are hard utilities; of a pair's dividend its two rows take α_l each and
    every row before l, which can push the pair out of near_K, takes β_l:
    α_l = 1/2 up to K, then K (K − 1)/(2 l (l − 1));  β_l = 0, then −2 α_l / (l − 2).
    """
    check_k(k)
    X, X_val = checked_rows(X, X_val)
    target, target_val = checked_targets(y, y_val, len(X), len(X_val))
    weight, n = checked_weights(sample_weight_val, len(X_val)), len(X)
    rank = np.arange(1, n + 1)
    alpha = np.where(rank <= k, 0.5, k * (k - 1) / (2 * np.maximum(1, rank * (rank - 1))))
    beta = np.where(rank <= k, 0.0, -2 * alpha / np.maximum(1, rank - 2))

    def work(order: NDArray[np.int64], block: slice) -> NDArray[np.float64]:
        b = target[order] / k
        before = np.cumsum(b, axis=1) - b
        pair = b * (_after(b * (alpha - beta)) + alpha * before) + _after(beta * b * before)
        linear = _rank_sum(2 * target_val[block, None] * b * k - b**2 * k, k)
        value = weight[block, None] * (linear - 2 * pair)
        return _unsorted(value, order)

    return _total(map_nearest(work, X, X_val, n, n_jobs), n)


def _hard_values(
    data: _Labelled, k: int, tolerance: float | None, n_jobs: int | None
) -> NDArray[np.float64]:
    """Hard k-NN values from the R nearest rows of each validation row, Σ weight · s."""
    X, X_val, code, code_val, weight, n_classes = data
    n = len(X)
    n_near = _n_sorted(n, k, tolerance)
    counts = np.bincount(code, minlength=n_classes)
    n_far = n - n_near
    mean_inverse = np.mean(1 / np.arange(n_near + 1, n + 1)) if n_far else 0.0

    def work(order: NDArray[np.int64], block: slice) -> NDArray[np.float64]:
        label, w = code_val[block], weight[block]
        match = (code[order] == label[:, None]).astype(np.float64)
        value = _rank_sum(match, k)
        if not n_far:
            return _unsorted(w[:, None] * value, order)
        # Labels beyond R in random order: E[s_i | m_i] needs only how many of them match.
        others = counts[label] - match.sum(axis=1)
        value -= (others / n_far * (1 / n_near - 1 / n))[:, None]
        reach = (mean_inverse - 1 / n) / max(1, n_far - 1)
        miss = -others * reach
        hit = mean_inverse - (others - 1) * reach
        value -= np.where(match > 0, hit[:, None], miss[:, None])
        by_class = np.zeros(n_classes)
        np.add.at(by_class, label, w * (hit - miss))
        far = by_class[code] + w @ miss
        return far + _scattered(w[:, None] * value, order, n)

    return _total(map_nearest(work, X, X_val, n_near, n_jobs), n)


def _rank_sum(match: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """match_i / max(i, K) − Σ_{j > max(i, K)} match_j / (j (j − 1)), by rank."""
    rank = np.arange(1, match.shape[-1] + 1)
    step = np.where(rank > k, 1 / np.maximum(1, rank * (rank - 1)), 0.0)
    return match / np.maximum(rank, k) - _after(match * step)


def _after(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of what comes strictly later, along the last axis."""
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1] - values


def _unsorted(value: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Put sorted values (b, n) back in row order and add up the block: (n,)."""
    rows = np.empty_like(value)
    np.put_along_axis(rows, order, value, axis=1)
    return rows.sum(axis=0)


def _scattered(
    value: NDArray[np.float64], order: NDArray[np.int64], n: int
) -> NDArray[np.float64]:
    """Add values (b, R) onto the rows they belong to: (n,)."""
    total = np.bincount(order.ravel(), weights=value.ravel(), minlength=n)
    return total.astype(np.float64)


def _total(parts: Iterable[NDArray[np.float64]], n: int) -> NDArray[np.float64]:
    """Add the blocks' answers in their order."""
    total = np.zeros(n)
    for part in parts:
        total += part
    return total


def _harmonic(n: int) -> NDArray[np.float64]:
    """H_0, …, H_n."""
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])


def _n_sorted(n: int, k: int, tolerance: float | None) -> int:
    """R, how many neighbours have to be put in order."""
    if tolerance is None:
        tolerance = 0.0 if n <= EXACT_UP_TO else TOLERANCE
    if not tolerance >= 0:
        raise ParameterError("tolerance", tolerance, "zero or more", "Zero is exact.")
    return n if tolerance * n <= 1 else min(n, max(k, math.ceil(1 / tolerance)))


def _labelled(
    X: ArrayLike,
    y: ArrayLike,
    X_val: ArrayLike,
    y_val: ArrayLike,
    sample_weight_val: ArrayLike | None,
    n_classes: int | None,
) -> _Labelled:
    """Check everything once."""
    X, X_val = checked_rows(X, X_val)
    code, code_val, C = checked_codes(y, y_val, len(X), len(X_val), n_classes)
    weight = checked_weights(sample_weight_val, len(X_val))
    return _Labelled(X, X_val, code, code_val, weight, C)
