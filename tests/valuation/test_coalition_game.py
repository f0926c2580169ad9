from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import comb

from games import (
    consistent_orders,
    counted,
    game_of,
    games_on_trees,
    leaves_of,
    shapley_by_subsets,
    tables,
)
from hcdv.errors import ParameterError, PayoffError
from hcdv.valuation.coalition_game import (
    count_payoffs,
    evaluate,
    from_walks,
    reconcile,
    semivalue_exact,
    shapley_exact,
    shapley_sampled,
    walk,
    winter_exact,
    winter_sampled,
)
from hcdv.valuation.orders import NestedOrders, flat, nested_orders

SEEDS = st.integers(0, 2**32 - 1)
TREE = np.array([-1, 0, 0, 0, 1, 1, 2, 2, 2, 4, 4])  # 7 leaves, 3 levels


def random_game(n, seed=0):
    return game_of(np.random.default_rng(seed).normal(size=2**n))


@given(st.integers(1, 5).flatmap(tables))
def test_enumerated_values_are_shapleys(table):
    n = table.size.bit_length() - 1
    expected = shapley_by_subsets(game_of(table), n)
    assert shapley_exact(game_of(table), n) == pytest.approx(expected, abs=1e-12)
    assert winter_exact(game_of(table), flat(n))[1:] == pytest.approx(expected, abs=1e-12)


def test_banzhaf_and_leave_one_out_are_semivalues():
    n = 5
    game, everyone = random_game(n), np.ones((1, n), dtype=bool)
    banzhaf = semivalue_exact(game, n, comb(n - 1, np.arange(n)) / 2 ** (n - 1))
    codes = np.arange(2**n)
    masks = (codes[:, None] >> np.arange(n)) & 1 == 1
    for i in range(n):
        without = masks[~masks[:, i]]
        gain = game(without | (np.arange(n) == i)) - game(without)
        assert banzhaf[i] == pytest.approx(gain.mean(), abs=1e-12)
    loo = semivalue_exact(game, n, [0, 0, 0, 0, 1])
    assert loo == pytest.approx(game(everyone) - game(~np.eye(n, dtype=bool)), abs=1e-12)


@given(games_on_trees())
def test_the_winter_value_is_the_average_over_all_orders_of_the_tree(drawn):
    parent, table = drawn
    every = np.array(list(consistent_orders(parent)))
    nested = NestedOrders(
        every, np.arange(len(every)) % 2 if len(every) == 1 else _halves(every)
    )
    payoff = walk(game_of(table), every)
    exact = winter_exact(game_of(table), parent)
    if len(every) > 1:
        average = from_walks(parent, nested, payoff).value
        assert exact == pytest.approx(average, abs=1e-12)
    assert exact[0] == pytest.approx(table[-1] - table[0], abs=1e-12)


def _halves(every):
    return (np.arange(len(every)) >= len(every) // 2).astype(int)


def test_unions_are_worth_their_shapley_value_in_the_quotient_game():
    game = random_game(7)
    owners = np.array([0, 1, 2, 2, 2, 1, 1])  # by leaf position: nodes 3 | 5 | 6 7 8 | 9 10
    quotient = shapley_exact(lambda masks: game(masks[:, owners]), 3)
    assert winter_exact(game, TREE)[[3, 1, 2]] == pytest.approx(quotient, abs=1e-12)
    sampled = winter_sampled(
        game, TREE, 600, np.random.default_rng(0)
    )  # whole squares of 3
    assert sampled.value[[3, 1, 2]] == pytest.approx(quotient, abs=1e-12)


@given(games_on_trees())
def test_children_sum_to_their_parent_in_the_exact_value(drawn):
    parent, table = drawn
    value = winter_exact(game_of(table), parent)
    for node in set(parent[1:].tolist()):
        assert value[parent == node].sum() == pytest.approx(value[node], abs=1e-12)


@given(games_on_trees())
def test_the_exact_value_pays_for_each_coalition_once(drawn):
    parent, table = drawn
    game, asked = counted(game_of(table))
    winter_exact(game, parent)
    every = {
        frozenset(order[:s])
        for order in consistent_orders(parent)
        for s in range(len(order) + 1)
    }
    assert {frozenset(np.flatnonzero(mask).tolist()) for mask in asked} == every
    has_only_child = np.any(np.bincount(parent[1:]) == 1)
    assert len(asked) == count_payoffs(parent) == len(every) or has_only_child


def test_a_tree_with_too_many_coalitions_is_refused_with_their_number():
    game, asked = counted(random_game(7))
    with pytest.raises(
        ParameterError, match=r"at most 55 coalitions, got .*56.*winter_sampled"
    ):
        winter_exact(game, TREE, max_payoffs=55)
    assert not asked
    with pytest.raises(ParameterError, match="from 1 to 20 to be enumerated, got 21"):
        shapley_exact(game, 21)


@given(games_on_trees(), st.integers(2, 12), SEEDS)
def test_a_walk_pays_for_each_prefix_once(drawn, n_permutations, seed):
    parent, table = drawn
    game, asked = counted(game_of(table))
    order = nested_orders(parent, n_permutations, np.random.default_rng(seed)).order
    payoff = walk(game, order)
    prefixes = [frozenset(row[:s]) for row in order.tolist() for s in range(len(row) + 1)]
    assert len(asked) == len(set(prefixes)) <= n_permutations * (order.shape[1] - 1) + 2
    masks = np.array([[i in prefix for i in range(order.shape[1])] for prefix in prefixes])
    assert np.array_equal(payoff.ravel(), game_of(table)(masks))


def test_prefixes_of_more_than_64_leaves_are_told_apart_and_paid_once():
    order = np.stack([np.arange(130), np.arange(130)[::-1], np.arange(130)])
    weights = np.random.default_rng(0).normal(size=130)
    game, asked = counted(lambda masks: masks @ weights)
    payoff = walk(game, order)
    assert len(asked) == 2 * 129 + 2
    assert np.diff(payoff, axis=1) == pytest.approx(weights[order], abs=1e-12)


@given(games_on_trees(), st.integers(2, 40), SEEDS)
def test_batch_means_average_to_the_value_and_sum_to_the_surplus(
    drawn, n_permutations, seed
):
    parent, table = drawn
    got = winter_sampled(
        game_of(table), parent, n_permutations, np.random.default_rng(seed)
    )
    assert got.weights.sum() == pytest.approx(1)
    assert got.weights @ got.batches == pytest.approx(got.value, abs=1e-12)
    leaves = leaves_of(parent)
    assert got.batches[:, leaves].sum(axis=1) == pytest.approx(
        table[-1] - table[0], abs=1e-12
    )


def test_the_same_seed_gives_the_same_bits():
    first, second = (
        winter_sampled(random_game(7), TREE, 9, np.random.default_rng(5)) for _ in "ab"
    )
    assert np.array_equal(first.batches, second.batches)


def test_players_alone_in_the_order_of_a_pair_are_known_exactly():
    """One pair runs through both orders of two players: no error is left."""
    got = shapley_sampled(random_game(2), 2, 4, np.random.default_rng(0))
    assert got.value == pytest.approx(shapley_exact(random_game(2), 2), abs=1e-12)
    assert got.stderr == pytest.approx(0, abs=1e-12)


def smooth_game(n, seed):
    """Decreasing returns with unequal, overlapping players."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 6)) ** 2
    return lambda masks: np.log1p(masks @ features).sum(axis=1)


def test_squares_with_reversal_have_less_variance_than_independent_orders():
    n, repeats = 12, 60
    game = smooth_game(n, 1)

    def variance(**how):
        values = [
            shapley_sampled(game, n, 24, np.random.default_rng(seed), **how).value
            for seed in range(repeats)
        ]
        return np.var(values, axis=0).mean()

    assert variance() < 0.5 * variance(independent=True)


def test_standard_errors_of_independent_orders_are_right():
    n, repeats = 8, 200
    game = smooth_game(n, 2)
    runs = [
        shapley_sampled(game, n, 64, np.random.default_rng(seed), independent=True)
        for seed in range(repeats)
    ]
    true = np.var([run.value for run in runs], axis=0, ddof=1).mean()
    assert 0.8 < np.mean([run.stderr**2 for run in runs]) / true < 1.25


def test_reconciled_children_sum_to_their_parent_by_their_variances():
    value = np.array([1.0, 0.5, 0.1, 0.2, 0.1, 0.3])
    parent = np.array([-1, 0, 0, 1, 1, 1])
    stderr = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 1.0])
    got = reconcile(value, stderr, parent)
    assert got[:3] == pytest.approx([1.0, 0.5 + 0.4 / 5, 0.1 + 0.4 * 4 / 5])
    assert got[3] == 0.2  # known exactly, left alone
    assert got[4:] == pytest.approx(np.array([0.1, 0.3]) - 0.01)
    assert value[1] == 0.5  # the caller's array is not written to


@given(games_on_trees(), SEEDS)
def test_reconciling_closes_every_sum_even_where_the_values_cancel(drawn, seed):
    parent, _ = drawn
    rng = np.random.default_rng(seed)
    value = rng.normal(size=len(parent))
    for node in set(parent[1:].tolist()):
        kids = np.flatnonzero(parent == node)
        value[kids] -= value[kids].mean()  # a ratio would divide by zero
    stderr = rng.exponential(size=len(parent)) * rng.integers(0, 2)
    got = reconcile(value, stderr, parent)
    for node in set(parent[1:].tolist()):
        assert got[parent == node].sum() == pytest.approx(got[node], abs=1e-12)
    assert got[0] == value[0]


def test_reconciling_what_is_known_exactly_shares_equally():
    got = reconcile(np.array([1.0, 0.2, 0.4]), np.zeros(3), flat(2))
    assert np.diff(got[1:]) == pytest.approx(0.2)
    assert got[1:].sum() == pytest.approx(1.0)


def test_payoffs_that_are_not_numbers_are_refused_with_their_count():
    masks = np.zeros((4, 2), dtype=bool)
    with pytest.raises(PayoffError, match=r"got 3 of 4 that are nan"):
        evaluate(lambda m: np.array([0.0, np.nan, np.inf, -np.inf]), masks)
    with pytest.raises(
        PayoffError, match=r"each of 4 coalitions, got an array of shape \(2,\)"
    ):
        evaluate(lambda m: np.zeros(2), masks)


def test_many_coalitions_are_paid_in_chunks():
    sizes = []

    def game(masks):
        sizes.append(len(masks))
        return masks.sum(axis=1).astype(float)

    value = shapley_exact(game, 17)
    assert value == pytest.approx(np.ones(17))
    assert max(sizes) <= 1 << 15
    assert all(a == b for a, b in pairwise(sizes))


@pytest.mark.parametrize(
    "weights", [[0.5, 0.5], [0.5, 0.6, -0.1], [1, 1, 1], [0.2, 0.2, np.nan]]
)
def test_weights_that_are_not_shares_are_refused(weights):
    with pytest.raises(ParameterError, match="weights must be 3 shares"):
        semivalue_exact(random_game(3), 3, weights)
