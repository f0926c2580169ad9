"""Nested orders down to the points against the enumerated value of the whole tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import a_case, a_plan, a_probe, a_tree, as_players, seeds
from games import shapley_by_subsets
from hcdv.hierarchy.growth import flat_tree, tree_from_levels
from hcdv.valuation.coalition_game import winter_exact
from hcdv.valuation.knn_game import KNNGame
from hcdv.valuation.methods import value
from hcdv.valuation.orders import nesting
from hcdv.valuation.utility import Neighbours
from hcdv.valuation.winter import point_tree


@given(st.integers(1, 25), st.integers(1, 3), st.integers(1, 4), seeds)
def test_every_row_hangs_below_its_own_leaf(n, n_levels, n_children, seed):
    tree = a_tree(n, seed, n_levels, n_children)
    points = point_tree(tree)
    leaves = nesting(points.parent).leaves
    assert sorted(points.row_of_leaf) == list(range(n))
    for place, row in enumerate(points.row_of_leaf):
        assert points.parent[leaves[place]] == points.node[tree.leaf_of_row[row]]
    links = tree.parent[1:]
    assert np.array_equal(points.parent[points.node[1:]], points.node[links])


def test_a_node_that_lost_its_rows_is_a_leaf_of_none():
    tree = tree_from_levels([np.array([0, 0, 1, 2])]).restrict(
        np.array([True, True, False, True])
    )
    points = point_tree(tree)
    assert sorted(points.row_of_leaf) == [-1, 0, 1, 2]
    found = value(a_case(3, 2), tree, a_plan(method="winter"))
    assert found.as_player[2] == 0
    assert np.isfinite(found.values).all()


@settings(max_examples=10)
@given(n_folds=st.sampled_from([0, 2]), weighted=st.booleans(), seed=seeds)
def test_the_average_over_orders_tends_to_the_enumerated_winter_value(
    n_folds, weighted, seed
):
    """Points as leaves of a tree of three levels; ten standard errors, small beside them."""
    n = 7
    case = a_case(n, 2, seed, n_folds=n_folds, weighted=weighted)
    tree = a_tree(n, seed, 2, 2)
    plan = a_plan(method="winter", n_permutations=400, consistency_weight=0.0, seed=seed)
    found = value(case, tree, plan)
    points, players = point_tree(tree), as_players(case, a_probe(case))
    at = np.argsort(points.row_of_leaf)  # leaf position of every row
    exact = winter_exact(lambda masks: players(masks[:, at]), points.parent)
    right = exact[nesting(points.parent).leaves[at]]
    assert np.all(np.abs(found.parts["utility"] - right) < 10 * found.stderr + 1e-9)
    assert found.stderr.mean() < 0.1 * np.abs(right).max()
    nodes = tree.node_sums(found.parts["utility"])
    assert np.all(np.abs(nodes - exact[points.node]) < 10 * found.node_stderr + 1e-9)


def test_without_a_tree_it_is_the_shapley_value():
    n = 6
    case = a_case(n, 2)
    plan = a_plan(method="winter", n_permutations=3000, consistency_weight=0.0)
    found = value(case, flat_tree(n), plan)
    exact = shapley_by_subsets(as_players(case, a_probe(case)), n)
    assert np.all(np.abs(found.parts["utility"] - exact) < 8 * found.stderr)


@pytest.mark.parametrize("metric", ["loss", "accuracy", "auc"])
def test_prefixes_longer_than_a_step_are_paid_as_if_retrained(metric, monkeypatch):
    """Running sums are carried from step to step; both ends are known."""
    monkeypatch.setattr("hcdv.valuation.winter._STEPS", 7)
    case = a_case(30, 2, n_folds=2)
    cut = value(case, a_tree(30, 0), a_plan(method="winter", metric=metric))
    monkeypatch.undo()
    whole = value(case, a_tree(30, 0), a_plan(method="winter", metric=metric))
    assert cut.values == pytest.approx(whole.values, abs=1e-12)
    ends = a_probe(case, metric).game(case, np.zeros(30, np.intp), 1, None)
    surplus = np.diff(ends(np.array([[False], [True]])))[0]
    assert cut.surplus["utility"] == pytest.approx(surplus, abs=1e-9)


def test_any_other_utility_is_walked_row_by_row():
    n = 8
    case, tree = a_case(n, 2), tree_from_levels([np.arange(n) % 2])
    plan = a_plan(
        method="winter",
        utility=Neighbours(k=2),
        n_permutations=2000,
        consistency_weight=0.0,
    )
    found = value(case, tree, plan)
    judge, points = case.judges[0].points, point_tree(tree)
    game = KNNGame(
        case.points.Z, case.points.target, judge.Z, judge.target, np.arange(n), n,
        k=2, n_classes=2,
    )  # fmt: skip
    at = np.argsort(points.row_of_leaf)
    exact = winter_exact(lambda masks: game(masks[:, at]), points.parent)
    right = exact[nesting(points.parent).leaves[at]]
    assert np.all(np.abs(found.parts["utility"] - right) < 10 * found.stderr)
    assert found.stderr.mean() < 0.1 * right.std()
