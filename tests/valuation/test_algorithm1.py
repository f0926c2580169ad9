"""Algorithm 1 against a plain recursion over the tree, and each way to fit a pot."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import a_case, a_plan, a_probe, a_tree, retrained, seeds, with_weight
from games import shapley_by_subsets
from hcdv.hierarchy.growth import flat_tree, tree_from_levels
from hcdv.valuation.algorithm1 import _fitted, _Parts, _Walk
from hcdv.valuation.methods import value

LAMBDA = 0.5


def paper_plan(**how):
    """κ = 0 and enough permutations for every small game to be enumerated."""
    defaults = {"method": "paper", "n_permutations": 500, "dispersion_weight": LAMBDA}
    return a_plan(**(defaults | {"consistency_weight": 0.0} | how))


def dispersion(case, inside):
    """Δ̄_c of some rows, Eq. (18): the mean over their pairs of different labels."""
    rows, y = np.flatnonzero(inside), case.points.target
    pairs = [(i, j) for i in rows for j in rows if i < j and y[i] != y[j]]
    Z = case.points.Z
    return sum(1 - Z[i] @ Z[j] for i, j in pairs) / max(1, len(pairs))


def printed(case, tree, probe):
    """Budgets of nodes and values of points by the paper's lines, one after the other."""
    n, known = tree.n_rows, {}

    def v(rows):
        key = frozenset(rows)
        if key not in known:
            inside = np.isin(np.arange(n), rows)
            known[key] = retrained(case, probe, inside) + LAMBDA * dispersion(case, inside)
        return known[key]

    def shared(groups, pot):
        """The game of some groups alone, fitted to a pot."""

        def game(masks):
            return np.array(
                [
                    v([i for g, on in zip(groups, mask, strict=True) if on for i in g])
                    for mask in masks
                ]
            )

        psi = shapley_by_subsets(game, len(groups))
        if psi.sum() * pot > 0 and abs(psi.sum()) > 0.05 * np.abs(psi).sum():
            return psi * pot / psi.sum()
        return psi + (pot - psi.sum()) / len(groups)

    budget, points = np.zeros(tree.n_nodes), np.zeros(n)
    budget[0] = v(range(n)) - v([])
    for node in range(tree.n_nodes):
        rows, children = tree.rows(node).tolist(), tree.children(node)
        if len(children):
            budget[children] = shared(
                [tree.rows(c).tolist() for c in children], budget[node]
            )
        else:
            points[rows] = shared([[i] for i in rows], budget[node])
    return budget, points


@settings(max_examples=12)
@given(n_classes=st.sampled_from([2, 3]), n_folds=st.sampled_from([0, 2]), seed=seeds)
def test_values_are_those_of_the_printed_lines(n_classes, n_folds, seed):
    case, tree = a_case(14, n_classes, seed, n_folds=n_folds), a_tree(14, seed, 2, 2)
    found = value(case, tree, paper_plan())
    budget, points = printed(case, tree, a_probe(case))
    total = np.maximum(np.abs(budget).max(), 1.0)
    assert found.values == pytest.approx(points, abs=1e-8 * total)
    assert tree.node_sums(found.values) == pytest.approx(budget, abs=1e-8 * total)


@given(seed=seeds, n_permutations=st.sampled_from([2, 500]))
@settings(max_examples=8)
def test_each_part_sums_to_its_own_surplus_and_all_to_the_values(seed, n_permutations):
    case, tree = a_case(40, 2, seed), a_tree(40, seed, 2, 6)
    plan = paper_plan(n_permutations=n_permutations, consistency_weight=2.0)
    found = value(case, tree, plan)
    everyone = np.ones(40, bool)
    surplus = retrained(case, a_probe(case), everyone)
    spread = LAMBDA * dispersion(case, everyone)
    assert found.parts["utility"].sum() == pytest.approx(surplus, abs=1e-9)
    assert found.parts["dispersion"].sum() == pytest.approx(spread, abs=1e-9)
    assert found.surplus["dispersion"] == pytest.approx(spread, abs=1e-9)
    assert np.sum(list(found.parts.values()), axis=0) == pytest.approx(found.values)


def test_sampled_games_are_near_the_enumerated_and_their_errors_stated():
    case, tree = a_case(60, 2), tree_from_levels([np.arange(60) % 10])
    exact = value(case, tree, paper_plan(n_permutations=2000))
    found = value(case, tree, paper_plan(n_permutations=60))
    nodes = slice(1, None)
    assert np.all(exact.node_stderr == 0)
    assert np.all(found.node_stderr[nodes] > 0)
    gap = np.abs(found.as_player - exact.as_player)[nodes]
    assert np.all(gap < 7 * found.node_stderr[nodes])


def test_leaves_of_twelve_are_enumerated_and_larger_ones_share_equally():
    case = a_case(25, 2)
    tree = tree_from_levels([(np.arange(25) < 12).astype(int)])
    found = value(case, tree, paper_plan())
    assert found.notes["leaves_enumerated"] == 1
    many, few = found.values[12:], found.values[:12]
    assert np.ptp(many) < 1e-15
    assert np.ptp(few) > 1e-3


def test_a_tree_of_one_leaf_is_split_at_once():
    case = a_case(6, 2)
    found = value(case, flat_tree(6), paper_plan())
    _, points = printed(case, flat_tree(6), a_probe(case))
    assert found.values == pytest.approx(points, abs=1e-9)


def test_as_player_is_what_a_child_was_worth_before_it_was_fitted():
    case, tree = a_case(30, 2), a_tree(30, 0)
    found = value(case, tree, paper_plan())
    sums = tree.node_sums(found.values)
    assert sums - found.as_player == pytest.approx(found.correction, abs=1e-9)
    assert found.correction[0] == pytest.approx(0, abs=1e-12)


def test_children_that_are_worth_nothing_share_by_what_they_score_alone():
    """Rows of no weight teach nothing: accuracy alone is chance, and all gains are 0."""
    tree = tree_from_levels([np.arange(40) % 2, np.arange(40) // 10])
    case = with_weight(a_case(40, 2), np.where(np.arange(40) % 2, 1.0, 0.0))
    plan = paper_plan(metric="accuracy", dispersion_weight=0.0)
    found = value(case, tree, plan)
    assert found.notes["nodes_by_omega"] >= 1
    assert not found.parts["utility"][::2].any()


def test_numbers_are_valued_by_utility_alone():
    case, tree = a_case(30, 0), a_tree(30, 0)
    found = value(case, tree, paper_plan(metric="r2"))
    assert not found.parts["dispersion"].any()
    assert found.values.sum() == pytest.approx(
        retrained(case, a_probe(case), np.ones(30, bool)), abs=1e-9
    )


def fitted(psi, pot, worth=(1.0, 3.0)):
    """Children's parts fitted to a pot, and the name of the way."""
    walk = _Walk(*[None] * 8)
    parts = _Parts(*np.array(psi, dtype=float))
    whole = _Parts(*np.array(pot, dtype=float)[:, None])
    found = _fitted(walk, parts, whole, np.array(worth))
    (way,) = walk.counts
    return found, way


def test_a_sum_of_the_pots_sign_is_scaled_to_it():
    found, way = fitted([[1, 3], [0, 0]], [8, 0])
    assert way == "nodes_by_ratio"
    assert found.utility == pytest.approx([2, 6])


@pytest.mark.parametrize("pot", [-8.0, 0.0])
def test_a_sum_of_the_other_sign_is_added_to_as_a_ratio_would_reverse_ranks(pot):
    found, way = fitted([[1, 3], [0, 0]], [pot, 0])
    assert way == "nodes_by_addition"
    assert found.utility[1] - found.utility[0] == pytest.approx(2)
    assert found.utility.sum() == pytest.approx(pot)


def test_a_sum_that_nearly_cancels_is_added_to_as_a_ratio_would_explode():
    found, way = fitted([[1.001, -1], [0, 0]], [1, 0])
    assert way == "nodes_by_addition"
    assert np.abs(found.utility).max() < 2


def test_where_all_are_worth_nothing_the_pot_is_shared_by_omega():
    """Eq. (14): max(v, 0) over its sum."""
    found, way = fitted([[0, 0, 0], [0, 0, 0]], [3, 9], worth=(1.0, 2.0, -5.0))
    assert way == "nodes_by_omega"
    assert found.utility == pytest.approx([1, 2, 0])
    assert found.dispersion == pytest.approx([3, 6, 0])


def test_where_no_child_scores_anything_the_pot_is_shared_equally():
    """Eq. (14) would divide by 0."""
    found, way = fitted([[0, 0], [0, 0]], [4, 2], worth=(0.0, -1.0))
    assert way == "nodes_by_addition"
    assert found.utility.tolist() == [2, 2]
    assert found.dispersion.tolist() == [1, 1]


@given(
    st.lists(st.floats(-4, 4, width=16), min_size=4, max_size=4), st.floats(-4, 4, width=16)
)
def test_every_way_meets_both_parts_of_the_pot(psi, pot):
    found, _ = fitted([psi[:2], psi[2:]], [pot, 1.0])
    assert found.utility.sum() == pytest.approx(pot, abs=1e-9)
    assert found.dispersion.sum() == pytest.approx(1.0, abs=1e-9)
