"""Shapley's axioms: exact for the sampled values wherever the estimator makes them so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import game_of, games_on_trees, leaves_of, tables
from hcdv.valuation.coalition_game import (
    shapley_exact,
    shapley_sampled,
    winter_exact,
    winter_sampled,
)
from hcdv.valuation.orders import nested_orders

SEEDS = st.integers(0, 2**32 - 1)
BUDGETS = st.integers(2, 9)


@given(st.integers(1, 5).flatmap(tables), BUDGETS, SEEDS)
def test_efficiency_is_exact_for_every_permutation_budget(table, n_permutations, seed):
    """Eq. (3): nothing is created or lost, even at T = 2."""
    n_players = table.size.bit_length() - 1
    rng = np.random.default_rng(seed)
    value = shapley_sampled(game_of(table), n_players, n_permutations, rng).value
    assert value.sum() == pytest.approx(table[-1] - table[0], abs=1e-12)


@given(games_on_trees(), BUDGETS, SEEDS)
def test_efficiency_is_exact_at_every_level_at_once(drawn, n_permutations, seed):
    parent, table = drawn
    value = winter_sampled(
        game_of(table), parent, n_permutations, np.random.default_rng(seed)
    ).value
    assert value[0] == pytest.approx(table[-1] - table[0], abs=1e-12)
    for node in set(parent[1:].tolist()):
        assert value[parent == node].sum() == pytest.approx(value[node], abs=1e-12)


@given(games_on_trees(max_leaves=5), BUDGETS, SEEDS, st.data())
def test_a_dummy_is_worth_exactly_nothing(drawn, n_permutations, seed, data):
    """0.0, not nearly so: each of its gains is one payoff minus the same payoff."""
    parent, table = drawn
    leaves = leaves_of(parent)
    dummy = data.draw(st.integers(0, len(leaves) - 1))
    codes = np.arange(table.size)
    table = table[codes & ~(1 << dummy)]
    rng = np.random.default_rng(seed)
    sampled = winter_sampled(game_of(table), parent, n_permutations, rng)
    assert sampled.value[leaves[dummy]] == 0.0
    assert sampled.stderr[leaves[dummy]] == 0.0
    assert winter_exact(game_of(table), parent)[leaves[dummy]] == 0.0
    assert shapley_exact(game_of(table), len(leaves))[dummy] == 0.0


@given(games_on_trees(max_leaves=5), BUDGETS, SEEDS, st.data())
def test_values_add_when_the_permutations_are_shared(drawn, n_permutations, seed, data):
    """Eq. (53), and end to end over all levels."""
    parent, first = drawn
    second = data.draw(tables(first.size.bit_length() - 1))
    one, two, both = (
        winter_sampled(
            game_of(table), parent, n_permutations, np.random.default_rng(seed)
        ).value
        for table in (first, second, first + second)
    )
    assert both == pytest.approx(one + two, abs=1e-12)


@given(games_on_trees(max_leaves=5), st.data())
def test_alike_siblings_are_worth_the_same(drawn, data):
    parent, table = drawn
    leaves = leaves_of(parent)
    families = [
        [place for place, leaf in enumerate(leaves) if parent[leaf] == node]
        for node in range(len(parent))
    ]
    family = data.draw(st.sampled_from([f for f in families if f]))
    i, j = data.draw(st.sampled_from(family)), data.draw(st.sampled_from(family))
    table = (table + table[_swapped(np.arange(table.size), i, j)]) / 2
    value = winter_exact(game_of(table), parent)
    assert value[leaves[i]] == pytest.approx(value[leaves[j]], abs=1e-12)


def _swapped(codes, i, j):
    """Each coalition with players i and j changing places."""
    differ = ((codes >> i) ^ (codes >> j)) & 1
    return codes ^ (differ << i) ^ (differ << j) if i != j else codes


@given(st.integers(2, 5).flatmap(tables), BUDGETS, SEEDS)
def test_renaming_the_players_renames_the_values(table, n_permutations, seed):
    n = table.size.bit_length() - 1
    rng = np.random.default_rng(seed)
    name = rng.permutation(n)
    value = shapley_exact(game_of(table), n)
    renamed = shapley_exact(lambda masks: game_of(table)(masks[:, name]), n)
    assert renamed[name] == pytest.approx(value, abs=1e-12)


@given(games_on_trees(), SEEDS)
def test_efficiency_holds_in_every_single_permutation(drawn, seed):
    parent, table = drawn
    game = game_of(table)
    for order in nested_orders(parent, 4, np.random.default_rng(seed)).order:
        prefixes = np.argsort(order)[None, :] < np.arange(order.size + 1)[:, None]
        gain = np.diff(game(prefixes))
        assert gain.sum() == pytest.approx(table[-1] - table[0], abs=1e-12)
