"""Values of the coalitions above the game level, by enumeration and by sampling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import a_case, a_probe, a_tree, retrained, seeds
from games import consistent_orders, game_of, shapley_by_subsets
from hcdv.hierarchy.growth import flat_tree, tree_from_levels
from hcdv.valuation.coalition_game import reconcile, winter_exact
from hcdv.valuation.coalitions import CoalitionValues, Upper, coalition_values
from hcdv.valuation.orders import nesting


def random_game(n_players, seed=0):
    """Worths of members, and a residue of all; in whole numbers, which have no rounding."""
    worth = np.random.default_rng(seed).integers(-32, 33, n_players)

    def game(masks):
        total = masks.astype(np.int64) @ worth
        return (total + total**2 % 37) / 64.0

    return game


def grown(widths):
    """An upper tree whose nodes of level l have widths[l] children each, a row a leaf."""
    n = int(np.prod(widths))
    rows = np.arange(n)
    levels = [rows // int(np.prod(widths[i + 1 :])) for i in range(len(widths))]
    return Upper.of(tree_from_levels(levels), rows_each=1)


def test_the_tree_is_cut_where_the_coalitions_are_few_enough():
    tree = tree_from_levels([np.arange(60) // 20, np.arange(60) // 2])
    assert len(Upper.of(tree, rows_each=2).players) == 30
    few = Upper.of(tree, 10, rows_each=2)
    small = Upper.of(tree)  # two rows each are too few to play, twenty are the first level
    assert np.array_equal(small.parent, few.parent)
    assert few.parent.tolist() == [-1, 0, 0, 0]
    assert few.players.tolist() == [1, 2, 3]
    assert few.n_inside.tolist() == [20, 20, 20]
    assert np.array_equal(few.code, np.arange(60) // 20)


def test_a_leaf_above_the_game_level_plays_as_itself():
    levels = [np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 2, 2])]
    upper = Upper.of(tree_from_levels(levels))
    assert np.array_equal(upper.code[[3, 4]], upper.code[[3, 3]])
    assert upper.n_inside.sum() == 5
    assert len(np.unique(upper.code)) == len(upper.players)


def test_a_tree_of_one_node_is_worth_the_surplus():
    upper = Upper.of(flat_tree(5))
    game = game_of(np.array([0.25, 1.0]))
    found = coalition_values(game, upper, 8, np.random.default_rng(0), cheap=True)
    assert found.is_exact
    assert found.value.tolist() == [0.75]


@given(seeds)
def test_small_probe_games_are_worth_their_mean_gain_over_all_nested_orders(seed):
    """A tree of three levels, every consistent order walked, every payoff retrained."""
    case, tree = a_case(14, 2, seed=seed), a_tree(14, seed, n_levels=2, n_children=2)
    upper, probe = Upper.of(tree), a_probe(case)
    K = len(upper.players)
    game = probe.game(case, upper.code, K, None)
    rng = np.random.default_rng(0)
    found = coalition_values(game, upper, 64, rng, cheap=True)
    paid, gains = {}, np.zeros(K)
    orders = list(consistent_orders(upper.parent))
    for order in orders:
        before = 0.0
        for step in range(K):
            members = frozenset(order[: step + 1])
            if members not in paid:
                inside = np.isin(upper.code, list(members))
                paid[members] = retrained(case, probe, inside)
            gains[order[step]] += paid[members] - before
            before = paid[members]
    assert found.is_exact
    assert found.value[upper.players] == pytest.approx(gains / len(orders), abs=1e-9)
    sums = nesting(upper.parent).node_sums(found.value[upper.players])
    assert found.value == pytest.approx(sums, abs=1e-12)


def test_a_flat_game_of_fourteen_is_enumerated_and_one_of_fifteen_is_sampled():
    rng = np.random.default_rng(0)
    for n, exact in ((14, True), (15, False)):
        found = coalition_values(random_game(n), grown([n]), 8, rng, cheap=True)
        assert found.is_exact is exact
        assert found.n_payoffs == (2**14 if exact else 8 * 14 + 2)


def test_dear_payoffs_are_enumerated_only_where_sampling_costs_as_much():
    rng = np.random.default_rng(0)
    for n_permutations, exact in ((8, False), (200, True)):
        upper = grown([10])
        found = coalition_values(random_game(10), upper, n_permutations, rng, cheap=False)
        assert found.is_exact is exact


@pytest.mark.parametrize("widths", [[4, 4, 3], [2, 5, 4]])
def test_sampled_values_are_within_their_errors_of_the_enumerated(widths):
    """Gains are bounded, without long tails: 7 errors."""
    upper, game = grown(widths), random_game(int(np.prod(widths)))
    rng = np.random.default_rng(1)
    found = coalition_values(game, upper, 64, rng, cheap=False)
    exact = winter_exact(game, upper.parent)
    assert not found.is_exact
    assert np.all(np.abs(found.value - exact) < 7 * found.stderr + 1e-12)
    assert found.stderr[upper.players].mean() < 0.2 * np.abs(exact[upper.players]).mean()
    families = nesting(upper.parent)
    for node in families.inner:
        below = found.value[families.children(node)]
        assert below.sum() == pytest.approx(found.value[node], abs=1e-12)


def test_the_first_level_is_exact_where_it_is_small():
    upper = grown([3, 3, 3])
    game = random_game(27)
    found = coalition_values(game, upper, 20, np.random.default_rng(1), cheap=False)
    masks = np.repeat(np.eye(3, dtype=bool), 9, axis=1)
    exact = shapley_by_subsets(lambda asked: game(asked @ masks), 3)
    assert found.value[1:4] == pytest.approx(exact, abs=1e-9)
    assert np.all(found.stderr[1:4] == 0)
    assert not np.allclose(found.as_player[1:4], exact, atol=1e-6)


@pytest.mark.parametrize("dummy", [0, 13, 26])
@pytest.mark.parametrize("cheap", [False, True])
def test_a_coalition_that_changes_nothing_is_worth_exactly_nothing(dummy, cheap):
    upper, real = grown([3, 3, 3]), random_game(27)
    keep = np.ones(27, dtype=bool)
    keep[dummy] = False
    found = coalition_values(
        lambda masks: real(masks & keep), upper, 20, np.random.default_rng(1), cheap=cheap
    )
    assert found.value[upper.players[dummy]] == 0.0
    assert found.stderr[upper.players[dummy]] == 0.0


def test_a_whole_branch_that_changes_nothing_is_worth_exactly_nothing():
    upper, real = grown([3, 3, 3]), random_game(27)
    keep = np.arange(27) >= 9
    for seed in range(5):
        found = coalition_values(
            lambda masks: real(masks & keep), upper, 20, np.random.default_rng(seed),
            cheap=False,
        )  # fmt: skip
        branch = np.append(1, np.flatnonzero(upper.parent == 1))
        assert np.array_equal(found.value[branch], np.zeros(4))
        assert np.array_equal(found.value[upper.players[:9]], np.zeros(9))


def test_what_rounding_leaves_between_exact_siblings_is_no_business_of_a_dummy():
    """Gains of pairs have no spread over an order and its reverse: errors of 0 all round."""
    parent = np.array([-1, 0, 0, 0])
    value = np.array([1.0, 0.4, 0.0, 0.6 + 1e-9])
    fitted = reconcile(value, np.zeros(4), parent)
    assert fitted[2] == 0.0
    assert fitted[1:].sum() == pytest.approx(1.0, abs=1e-15)
    nothing = reconcile(np.array([0.3, 0.0, 0.0, 0.0]), np.zeros(4), parent)
    assert nothing == pytest.approx([0.3, 0.1, 0.1, 0.1])


@given(st.integers(1, 5))
def test_further_rounds_are_averaged_with_their_errors(n_rounds):
    rng = np.random.default_rng(n_rounds)
    rounds = [
        CoalitionValues(*rng.random((3, 4)), False, 10) for _ in range(n_rounds)
    ]  # fmt: skip
    joined = rounds[0]
    for more in rounds[1:]:
        joined = joined.joined(more)
    assert joined.value == pytest.approx(np.mean([r.value for r in rounds], axis=0))
    assert joined.as_player == pytest.approx(np.mean([r.as_player for r in rounds], axis=0))
    error = np.sqrt(np.sum([r.stderr**2 for r in rounds], axis=0)) / n_rounds
    assert joined.stderr == pytest.approx(error)
    assert joined.n_payoffs == 10 * n_rounds
    assert joined.rounds == n_rounds
