from collections import Counter
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import consistent_orders, leaves_of, trees
from hcdv.errors import ParameterError
from hcdv.valuation.orders import flat, latin_rows, nested_orders, nesting

SEEDS = st.integers(0, 2**32 - 1)
TWO_LEVELS = np.array([-1, 0, 0, 0, 1, 1, 1, 2, 2])
THREE_LEVELS = np.array([-1, 0, 0, 1, 1, 2, 2, 3, 3])


@given(trees(), st.integers(2, 40), SEEDS, st.booleans())
def test_every_order_keeps_every_node_together(parent, n_permutations, seed, independent):
    rng = np.random.default_rng(seed)
    order, _ = nested_orders(parent, n_permutations, rng, independent=independent)
    allowed = set(consistent_orders(parent))
    assert order.shape == (n_permutations, len(leaves_of(parent)))
    assert {tuple(row) for row in order.tolist()} <= allowed


@pytest.mark.parametrize("parent", [flat(4), TWO_LEVELS, THREE_LEVELS])
def test_each_single_order_is_uniform_over_the_orders_of_its_tree(parent):
    """Hoeffding over independent seeds, and a union bound: fails by chance 1 in 1e9."""
    everyone = list(consistent_orders(parent))
    n_seeds = 3000
    drawn = [
        nested_orders(parent, 6, np.random.default_rng(seed)).order
        for seed in range(n_seeds)
    ]
    entering = np.array(everyone)
    allowed = sqrt(log(2 * 3 * (len(everyone) + entering.size) * 1e9) / (2 * n_seeds))
    for row in (0, 1, 4):
        sample = np.array([order[row] for order in drawn])
        seen = Counter(map(tuple, sample.tolist()))
        share = {order: seen[order] / n_seeds for order in everyone}
        assert sum(share.values()) == pytest.approx(1)
        assert max(abs(part - 1 / len(everyone)) for part in share.values()) < allowed
        for leaf in range(sample.shape[1]):  # the coarser events have the sharper limits
            off = np.mean(sample == leaf, axis=0) - np.mean(entering == leaf, axis=0)
            assert np.abs(off).max() < allowed


@given(trees(), st.integers(2, 33), SEEDS)
def test_every_second_order_is_the_one_before_reversed(parent, n_permutations, seed):
    order = nested_orders(parent, n_permutations, np.random.default_rng(seed)).order
    back = order[1::2]
    assert np.array_equal(back, order[: 2 * len(back) : 2, ::-1])


@given(st.integers(1, 9), st.integers(1, 3), SEEDS)
def test_a_square_puts_everyone_once_at_every_place(k, n_squares, seed):
    rows = latin_rows(n_squares * k, k, np.random.default_rng(seed)).reshape(
        n_squares, k, k
    )
    everyone = np.arange(k)[:, None]
    assert np.array_equal(np.sort(rows, axis=1), np.broadcast_to(everyone, rows.shape))
    assert np.array_equal(np.sort(rows, axis=2), np.broadcast_to(everyone.T, rows.shape))


def test_rows_of_a_square_are_not_cyclic_shifts_of_one_another():
    """Under cyclic shifts a player has the same successor in every row."""
    k, squares = 8, 200
    rows = latin_rows(squares * k, k, np.random.default_rng(3)).reshape(squares, k, k)
    successors = [
        len({row[row.index(0) + 1] for row in square if row[-1] != 0})
        for square in rows.tolist()
    ]
    assert np.mean(successors) > 3


def test_rows_of_a_square_are_not_cyclic_relabellings_of_one_another():
    """Else neighbours by number, not by name, would follow each other around."""
    k, squares = 8, 200
    rows = latin_rows(squares * k, k, np.random.default_rng(3)).reshape(squares, k, k)
    shift = (rows[:, 1] - rows[:, 0]) % k
    assert np.mean(np.all(shift == shift[:, :1], axis=1)) < 0.1


def test_two_nodes_of_the_same_size_are_ordered_independently():
    order = nested_orders([-1, 0, 0, 1, 1, 2, 2], 4000, np.random.default_rng(0)).order
    rank = np.argsort(order, axis=1)
    first, second = rank[::2, 0] < rank[::2, 1], rank[::2, 2] < rank[::2, 3]
    assert abs(np.mean(first == second) - 0.5) < sqrt(log(2e9) / (2 * 2000))


@pytest.mark.parametrize(
    ("n_leaves", "n_permutations", "n_batches"),
    [(4, 64, 8), (32, 64, 8), (128, 256, 8), (5, 2, 2), (5, 4, 2), (3, 64, 10)],
)
def test_there_are_enough_batches_for_a_standard_error(n_leaves, n_permutations, n_batches):
    batch = nested_orders(flat(n_leaves), n_permutations, np.random.default_rng(0)).batch
    assert batch.tolist() == sorted(batch.tolist())
    assert np.array_equal(np.unique(batch), np.arange(n_batches))


@given(trees(), st.integers(4, 200), SEEDS)
def test_a_pair_is_never_split_between_batches(parent, n_permutations, seed):
    batch = nested_orders(parent, n_permutations, np.random.default_rng(seed)).batch
    assert batch.max() >= 1
    assert np.array_equal(batch[: n_permutations // 2 * 2 : 2], batch[1::2])


def test_batches_hold_whole_squares_where_there_are_enough_permutations():
    batch = nested_orders(TWO_LEVELS, 8 * 2 * 6 + 10, np.random.default_rng(0)).batch
    assert set(np.bincount(batch)[:-1].tolist()) == {12}  # lcm(3, 3, 2) pairs


@given(trees())
def test_node_sums_add_the_leaves_below(parent):
    leaves = leaves_of(parent)
    values = np.random.default_rng(0).normal(size=(3, len(leaves)))
    sums = nesting(parent).node_sums(values)
    for place, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            sums[:, node] -= values[:, place]
            node = parent[node]
    assert np.abs(sums).max() < 1e-12


def test_a_tree_of_one_node_has_one_leaf():
    assert nested_orders([-1], 3, np.random.default_rng(0)).order.tolist() == [[0]] * 3


@pytest.mark.parametrize("parent", [[], [[0]], [-1, 1], [-1, 0, 0, 2, 1], [-1, -1]])
def test_links_that_are_not_breadth_first_are_refused(parent):
    with pytest.raises(ParameterError, match="parent must be"):
        nested_orders(parent, 4, np.random.default_rng(0))


def test_one_permutation_is_refused_with_the_reason():
    with pytest.raises(ParameterError, match=r"at least 2, got 1\. One permutation has no"):
        nested_orders(flat(3), 1, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="n_players must be at least 1, got 0"):
        flat(0)
