"""Windows can always be met, and are, at both ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcdv.hierarchy.capacity import Prices, Window, counts_of, labels_of, repair, window

TOLERANCES = st.sampled_from([0.0, 1e-9, 0.05, 0.1, 0.3, 0.5, 0.9, 0.99])


@given(st.integers(1, 5000), st.integers(1, 300), TOLERANCES)
def test_every_window_can_be_met_and_leaves_no_child_empty(
    size: int, k: int, tolerance: float
) -> None:
    k = min(k, size)
    low, high = window(size, k, tolerance)
    s = -(-size // k)
    assert 1 <= low <= high
    assert k * low <= size <= k * high
    assert high <= np.ceil((1 + tolerance) * s)
    assert low >= min(np.floor((1 - tolerance) * s), size // k)


@pytest.mark.parametrize(("size", "k"), [(500, 10), (900, 10), (70, 10), (10_000, 10)])
def test_the_window_is_the_printed_one_without_rounding_noise(size: int, k: int) -> None:
    """(1 + 0.1)·50 is a little more than 55 in floats, and its ceiling is 56."""
    s = size // k
    assert window(size, k, 0.1) == (9 * s // 10, -(-11 * s // 10))


@st.composite
def assignments(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Window]:
    """Costs, with ties, and arbitrary labels of a few padded nodes, and their windows."""
    k, n_nodes = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    sizes = np.array([draw(st.integers(k, 40)) for _ in range(n_nodes)])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_values = draw(st.sampled_from([1, 2, 1000]))
    cost = rng.integers(0, n_values, size=(n_nodes, k, sizes.max())).astype(np.float32)
    used = draw(st.integers(1, k))
    label = rng.integers(0, used, size=(n_nodes, sizes.max()))
    label[np.arange(sizes.max()) >= sizes[:, None]] = k
    return cost, label, window(sizes, k, draw(TOLERANCES))


@given(assignments())
def test_repair_meets_both_ends_and_leaves_padding_alone(case) -> None:
    cost, label, bounds = case
    k, is_padding = cost.shape[1], label == cost.shape[1]
    before = label.copy()
    moves = repair(label, cost, bounds)
    count = counts_of(label, k)
    assert np.all(count >= bounds.low[:, None])
    assert np.all(count <= bounds.high[:, None])
    assert np.array_equal(label == k, is_padding)
    was = counts_of(before, k)
    inside = (was >= bounds.low[:, None]) & (was <= bounds.high[:, None])
    assert (moves == 0) == inside.all()
    assert moves >= (before != label).sum()


def test_repair_moves_the_points_that_lose_least() -> None:
    """Six points at child 0 and a window of 2 to 4: the two cheapest to move leave."""
    cost = np.array([[[0, 0, 0, 0, 0, 0], [5, 1, 4, 2, 6, 3]]], dtype=np.float32)
    label = np.zeros((1, 6), dtype=np.int64)
    assert repair(label, cost, Window(np.array([2]), np.array([4]))) == 2
    assert label[0].tolist() == [0, 1, 0, 1, 0, 0]


def test_a_child_too_small_takes_from_one_that_is_not_too_large() -> None:
    """Both sizes are at most s^max, the paper's greedy pass would stop here."""
    cost = np.array([[[0, 0, 0, 0, 0, 9], [1, 5, 5, 5, 5, 0]]], dtype=np.float32)
    label = np.array([[0, 0, 0, 0, 0, 1]])
    assert repair(label, cost, Window(np.array([2]), np.array([5]))) == 1
    assert label[0].tolist() == [1, 0, 0, 0, 0, 1]


def test_repair_fires_where_prices_cannot_tell_points_apart() -> None:
    cost = np.zeros((1, 4, 20), dtype=np.float32)
    bounds = window(np.array([20]), 4, 0.1)
    prices = Prices(cost, None)
    label = labels_of(prices.climb(cost, bounds, 30), None)
    assert counts_of(label, 4).max() == 20
    assert repair(label, cost, bounds) > 0
    assert counts_of(label, 4).min() >= 4
    assert counts_of(label, 4).max() <= 6


@given(st.integers(0, 2**32 - 1))
def test_prices_alone_settle_points_that_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost = rng.random((2, 4, 400), dtype=np.float32)
    cost[:, 0] -= 0.2  # centroid 0 is nearest to most
    bounds = window(np.array([400, 400]), 4, 0.1)
    prices = Prices(cost, None)
    count = counts_of(labels_of(prices.climb(cost, bounds, 60), None), 4)
    assert counts_of(cost.argmin(axis=1), 4).max() > bounds.high[0]
    assert count.max() <= bounds.high[0]
    assert count.min() >= bounds.low[0]
