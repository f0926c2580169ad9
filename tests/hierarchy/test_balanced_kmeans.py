"""A split is inside its window for every input, and close to the best there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from hcdv.errors import DataError, ParameterError
from hcdv.hierarchy.balanced_kmeans import balanced_split, fit_size, split_many
from hcdv.hierarchy.capacity import window


def inertia(X: np.ndarray, label: np.ndarray) -> float:
    """Mean squared distance to the mean of the own group."""
    means = np.stack([X[label == j].mean(axis=0) for j in range(label.max() + 1)])
    return float(((X - means[label]) ** 2).sum(axis=1).mean())


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Points of every awkward kind: identical, few, one far, huge, tiny, shifted."""
    n_rows, n_columns = draw(st.integers(1, 80)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n_rows, n_columns))
    kind = draw(st.sampled_from(["plain", "identical", "few", "outlier", "line"]))
    if kind == "identical":
        X[:] = X[0]
    elif kind == "few":
        X = X[rng.integers(0, min(3, n_rows), size=n_rows)]
    elif kind == "outlier":
        X[0] = 1e6
    elif kind == "line":
        X[:, 1:] = 0
    X = X * draw(st.sampled_from([1.0, 1e-150, 1e150])) + draw(st.sampled_from([0, 1e4]))
    return X.astype(np.float32) if draw(st.booleans()) and abs(X).max() < 1e30 else X


@given(tables(), st.integers(1, 12), st.sampled_from([0.0, 0.1, 0.5]), st.integers(0, 99))
def test_both_ends_of_the_window_hold_for_every_input(
    X: np.ndarray, k: int, tolerance: float, seed: int
) -> None:
    k = min(k, len(X))
    label = balanced_split(X, k, np.random.default_rng(seed), tolerance)
    count = np.bincount(label, minlength=k)
    low, high = window(len(X), k, tolerance)
    assert len(count) == k
    assert low <= count.min()
    assert count.max() <= high
    again = balanced_split(X, k, np.random.default_rng(seed), tolerance)
    assert np.array_equal(label, again)


@pytest.mark.parametrize("kind", ["blobs", "identical", "two points", "lopsided"])
def test_both_ends_hold_for_a_set_fitted_on_a_sample(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * fit_size(8), 4)).astype(np.float32)
    if kind == "identical":
        X[:] = 1
    elif kind == "two points":
        X = (X[:, :1] > 0.5).astype(np.float32)
    elif kind == "lopsided":
        X[: len(X) // 20] += 50
    label = balanced_split(X, 8, rng)
    low, high = window(len(X), 8, 0.1)
    count = np.bincount(label, minlength=8)
    assert low <= count.min()
    assert count.max() <= high


def test_groups_of_equal_size_are_found() -> None:
    rng = np.random.default_rng(1)
    truth = np.repeat(np.arange(6), 50)
    X = rng.normal(size=(300, 8)) + 20 * rng.normal(size=(6, 8))[truth]
    label = balanced_split(X, 6, rng)
    pairs = np.unique(np.stack([truth, label]), axis=1)
    assert pairs.shape[1] == 6


def test_a_split_is_far_better_than_chance_and_near_free_k_means() -> None:
    """Min-cost flow (k-means-constrained 0.9.1) reaches 719.9 to 725.6 on these digits."""
    X = load_digits().data
    label = balanced_split(X, 8, np.random.default_rng(0))
    assert inertia(X, label) < 745
    assert inertia(X, np.arange(len(X)) % 8) > 1190


def test_shifting_and_scaling_points_changes_no_label() -> None:
    X = np.random.default_rng(2).normal(size=(500, 6))
    label = balanced_split(X, 5, np.random.default_rng(3))
    moved = balanced_split(X * 2.0**40, 5, np.random.default_rng(3))
    assert np.array_equal(label, moved)
    far = balanced_split((X + 2.0**12).astype(np.float32), 5, np.random.default_rng(3))
    assert inertia(X, far) < 1.05 * inertia(X, label)


def test_sets_split_together_do_not_mix() -> None:
    """Labels of one set are within its own window, padding keeps the label k."""
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(200, 3)).astype(np.float32)
    sizes = np.array([30, 57, 100])
    rows = np.zeros((3, 100), dtype=np.int64)
    for g, first in enumerate([0, 30, 87]):
        rows[g, : sizes[g]] = np.arange(first, first + sizes[g])
    label = split_many(Z, rows, sizes, 4, rng, 0.1)
    for g, size in enumerate(sizes):
        low, high = window(size, 4, 0.1)
        count = np.bincount(label[g], minlength=5)
        assert low <= count[:4].min()
        assert count[:4].max() <= high
        assert count[4] == 100 - size
        own = Z[rows[g, :size]].astype(float)
        assert inertia(own, label[g, :size]) < 0.7 * inertia(own, np.arange(size) % 4)


def test_a_split_that_cannot_be_is_refused() -> None:
    rng = np.random.default_rng(0)
    X = np.ones((5, 2))
    with pytest.raises(ParameterError, match=r"k must be between 1 and .* rows, 5, got 6"):
        balanced_split(X, 6, rng)
    with pytest.raises(ParameterError, match="tolerance must be at least 0 and below 1"):
        balanced_split(X, 2, rng, 1.0)
    with pytest.raises(DataError, match="1 rows are not, the first is row 0"):
        balanced_split(np.array([[np.nan], [1.0]]), 2, rng)
    with pytest.raises(DataError, match="rows and columns"):
        balanced_split(np.ones(4), 2, rng)
