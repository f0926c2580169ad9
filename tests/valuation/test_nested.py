"""The default method: exact sums, axioms, errors that can be trusted, and its traps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from cases import (
    a_case,
    a_plan,
    a_probe,
    a_tree,
    cross_fitted,
    market,
    reordered,
    retrained,
    seeds,
    some_points,
    with_weight,
)
from hcdv.hierarchy.growth import flat_tree, tree_from_levels
from hcdv.valuation.coalition_game import shapley_exact, winter_exact
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.contexts import semivalue_contexts
from hcdv.valuation.knn import soft_knn_shapley
from hcdv.valuation.methods import value
from hcdv.valuation.nested import PARTS, centred, surrogate_check
from hcdv.valuation.utility import LeastSquares, Neighbours, Payoffs

METHODS = st.sampled_from(["nested", "winter", "paper"])
EXACT = st.sampled_from(["nested", "winter"])  # Algorithm 1 rescales to the parent's pot


@settings(max_examples=40)
@given(
    method=METHODS,
    n=st.integers(8, 30),
    n_classes=st.sampled_from([2, 3, 0]),
    n_folds=st.sampled_from([0, 2, 3]),
    weighted=st.booleans(),
    shape=st.tuples(st.integers(1, 3), st.integers(2, 4)),
    seed=seeds,
)
def test_everyone_together_is_worth_the_surplus(
    method, n, n_classes, n_folds, weighted, shape, seed
):
    """v(D) − v(∅) taught from scratch, whatever the method, data, tree and weights."""
    case = a_case(n, n_classes, seed, n_folds=n_folds, weighted=weighted)
    tree = a_tree(n, seed, *shape)
    found = value(case, tree, a_plan(method=method, metric="loss", seed=seed))
    surplus = retrained(case, a_probe(case), np.ones(n, bool))
    assert found.parts["utility"].sum() == pytest.approx(surplus, rel=1e-9, abs=1e-12)
    assert set(found.parts) == set(found.surplus) == set(PARTS)
    for part in PARTS:
        assert found.parts[part].sum() == pytest.approx(found.surplus[part], abs=1e-9)
    total = tree.node_sums(found.values)
    for node in np.flatnonzero(~tree.is_leaf):
        below = total[tree.children(node)].sum()
        assert below == pytest.approx(total[node], rel=1e-9, abs=1e-12)
    assert np.isfinite(found.stderr).all()
    assert np.isfinite(found.node_stderr).all()


@settings(max_examples=15)
@given(n_folds=st.sampled_from([0, 3]), metric=st.sampled_from(["loss", "auc"]), seed=seeds)
def test_points_of_every_coalition_sum_to_its_winter_value(n_folds, metric, seed):
    """Of a game whose payoffs are retrained, for every node down to the game level."""
    case, tree = a_case(16, 2, seed, n_folds=n_folds), a_tree(16, seed, 2, 2)
    found = value(case, tree, a_plan(metric=metric, n_permutations=300, seed=seed))
    upper, probe = Upper.of(tree), a_probe(case, metric)

    def game(masks):
        if metric == "loss":
            return np.array([retrained(case, probe, mask[upper.code]) for mask in masks])
        return probe.game(case, upper.code, len(upper.players), None)(masks)

    exact = winter_exact(game, upper.parent)
    sums = tree.node_sums(found.parts["utility"])[: len(upper.parent)]
    assert sums == pytest.approx(exact, rel=1e-9, abs=1e-9)
    of_parts = found.parts["dispersion"] + found.parts["consistency"]
    additive = tree.node_sums(of_parts)[: len(upper.parent)]
    as_player = found.as_player[: len(upper.parent)]
    assert as_player == pytest.approx(exact + additive, abs=1e-9)


def test_points_are_their_coalitions_mean_and_their_own_centred_score():
    case, tree = a_case(60, 2), a_tree(60, 0)
    plan = a_plan(n_contexts=80)
    found = value(case, tree, plan)
    upper, probe = Upper.of(tree), a_probe(case)
    s = probe.batches(case, semivalue_contexts(8, 10, 0), 0, None).mean()
    sums = tree.node_sums(found.parts["utility"])[upper.players]
    mean = (sums / upper.n_inside)[upper.code]
    assert found.parts["utility"] - mean == pytest.approx(centred(s, upper), abs=1e-12)
    correction = sums - np.bincount(upper.code, weights=s)
    assert found.correction[upper.players] == pytest.approx(correction, abs=1e-12)
    assert np.isnan(np.delete(found.correction, upper.players)).all()
    assert found.notes["sum_before_correction"] == pytest.approx(s.sum())


@given(n_folds=st.sampled_from([0, 2]), method=EXACT, seed=seeds)
@settings(max_examples=20)
def test_a_coalition_of_rows_without_weight_is_worth_exactly_nothing(n_folds, method, seed):
    """0.0 in the utility part, and so is each of its rows."""
    tree = a_tree(30, seed, 2, 3)
    players = len(Upper.of(tree).parent)  # below them rows are told apart, not coalitions
    dummy = int(np.random.default_rng(seed).integers(1, players))
    weight = np.ones(30)
    weight[tree.rows(dummy)] = 0.0
    if not weight.any():
        return
    case = with_weight(a_case(30, 2, seed, n_folds=n_folds), weight)
    found = value(case, tree, a_plan(method=method, seed=seed))
    assert np.array_equal(
        found.parts["utility"][weight == 0], np.zeros((weight == 0).sum())
    )


def test_a_dummy_among_sampled_coalitions_is_worth_exactly_nothing():
    n = 120
    tree = tree_from_levels([np.arange(n) // 3])
    weight = np.where(np.arange(n) // 3 % 7 == 2, 0.0, 1.0)
    for metric in ("loss", "balanced_accuracy", "auc"):
        case = with_weight(a_case(n, 2, n_folds=2), weight)
        plan = a_plan(metric=metric, utility=LeastSquares(n_features=20))
        found = value(case, tree, plan)
        assert not found.notes["coalitions_exact"]
        dummies = found.parts["utility"][weight == 0]
        assert np.array_equal(dummies, np.zeros(len(dummies)))


@pytest.mark.parametrize("method", ["nested", "winter"])
def test_parts_do_not_mix_and_scale_with_their_weights(method):
    case, tree = a_case(40, 3), a_tree(40, 1)
    bare = value(
        case, tree, a_plan(method=method, dispersion_weight=0.0, consistency_weight=0.0)
    )
    once = value(
        case, tree, a_plan(method=method, dispersion_weight=1.0, consistency_weight=1.0)
    )
    thrice = value(
        case, tree, a_plan(method=method, dispersion_weight=3.0, consistency_weight=2.0)
    )
    assert np.array_equal(bare.values, bare.parts["utility"])
    for part, factor in (("utility", 1), ("dispersion", 3), ("consistency", 2)):
        assert thrice.parts[part] == pytest.approx(factor * once.parts[part], abs=1e-15)
    assert np.array_equal(bare.parts["utility"], once.parts["utility"])


@given(seeds, EXACT)
@settings(max_examples=20)
def test_values_of_added_payoffs_add(seed, method):
    """Eq. (53), on shared permutations, all the way from payoffs to points."""
    case, tree = a_case(14, 2, seed), a_tree(14, seed, 2, 2)
    worth = np.random.default_rng(seed).normal(size=(2, 14))

    def paying(*which):
        def function(rows):
            total = worth[:, rows].sum(axis=1)
            each = np.array([np.tanh(total[0]), np.sin(total[1])])
            return sum(each[i] for i in which)

        own = Payoffs(function=function, bounds=(-5.0, 5.0), empty=0.0)
        plan = a_plan(method=method, utility=own, seed=seed)
        return tree.node_sums(value(case, tree, plan).parts["utility"])

    one, two, both = paying(0), paying(1), paying(0, 1)
    nodes = slice(None) if method == "winter" else slice(len(Upper.of(tree).parent))
    assert both[nodes] == pytest.approx((one + two)[nodes], abs=1e-12)


@pytest.mark.parametrize("method", ["nested", "winter", "paper"])
def test_any_number_of_workers_gives_the_same_bits(method):
    case, tree = a_case(90, 3, n_folds=3, weighted=True), a_tree(90, 0)
    config = LeastSquares(n_features=12)
    one, *more = (
        value(case, tree, a_plan(method=method, utility=config, n_jobs=jobs))
        for jobs in (1, 2, 4)
    )
    for other in more:
        assert one.values.tobytes() == other.values.tobytes()
        assert one.stderr.tobytes() == other.stderr.tobytes()


def test_reordering_the_rows_reorders_the_values():
    case, tree = a_case(70, 2), a_tree(70, 0)
    perm = np.random.default_rng(0).permutation(70)
    found = value(case, tree, a_plan())
    moved = value(reordered(case, perm), tree.permuted(perm), a_plan())
    assert moved.values == pytest.approx(found.values[perm], abs=1e-11)
    assert moved.stderr == pytest.approx(found.stderr[perm], abs=1e-11)


def test_dispersion_is_worth_the_dispersion_of_everyone():
    case, tree = a_case(40, 3), a_tree(40, 0)
    found = value(case, tree, a_plan(dispersion_weight=2.0))
    Z, y = case.points.Z, case.points.target
    pairs = [(i, j) for i in range(40) for j in range(i) if y[i] != y[j]]
    mean = np.mean([1 - Z[i] @ Z[j] for i, j in pairs])
    assert found.surplus["dispersion"] == pytest.approx(2 * mean)
    half = [np.sum([1 - Z[i] @ Z[j] for j in range(40) if y[i] != y[j]]) for i in range(40)]
    assert found.parts["dispersion"] == pytest.approx(np.array(half) / len(pairs))


def test_numbers_have_no_labels_to_cross():
    found = value(a_case(20, 0), a_tree(20, 0), a_plan(metric="r2"))
    assert not found.parts["dispersion"].any()
    assert found.surplus["dispersion"] == 0


def test_neighbours_of_single_rows_are_worth_their_closed_form():
    """Leaves of one point each: the game is played to the end, and both must agree."""
    n = 9
    case, tree = a_case(n, 2), tree_from_levels([np.arange(n)])
    found = value(case, tree, a_plan(utility=Neighbours(k=3)))
    judge = case.judges[0].points
    closed = soft_knn_shapley(
        case.points.Z, case.points.target, judge.Z, judge.target, 3, n_classes=2
    )
    assert found.parts["utility"] == pytest.approx(closed, abs=1e-12)
    assert found.notes["n_contexts"] == 0
    flat = value(case, flat_tree(n), a_plan(utility=Neighbours(k=3)))
    assert flat.parts["utility"] == pytest.approx(closed, abs=1e-12)


@pytest.mark.parametrize(("n_folds", "sampled"), [(0, True), (2, False)])
def test_standard_errors_are_those_of_repeated_runs(n_folds, sampled):
    """Of points and of nodes, over 40 seeds: their spread is the error stated, within half.

    The error of coalitions is the larger where they are sampled; else it is the points'.
    """
    case, row = a_case(80, 2, n_folds=n_folds), np.arange(80)
    levels = [row % 4, row // 4 % 5, row // 2] if sampled else [row % 4]
    tree = tree_from_levels(levels)
    runs = [
        value(
            case, tree,
            a_plan(n_contexts=40, n_permutations=8, seed=seed, consistency_weight=0.02),
        )
        for seed in range(40)
    ]  # fmt: skip
    spread = np.std([run.values for run in runs], axis=0, ddof=1)
    stated = np.sqrt(np.mean([run.stderr**2 for run in runs], axis=0))
    assert 0.67 < np.sqrt(np.mean(stated**2) / np.mean(spread**2)) < 1.5
    nodes = np.std([tree.node_sums(run.values) for run in runs], axis=0, ddof=1)
    of_nodes = np.sqrt(np.mean([run.node_stderr**2 for run in runs], axis=0))
    for level in range(1, tree.depth + 1) if sampled else ():
        here = tree.level == level
        ratio = np.sqrt(np.mean(of_nodes[here] ** 2) / np.mean(nodes[here] ** 2))
        assert 0.6 < ratio < 1.6, level


@pytest.mark.parametrize("held_out", [False, True])
def test_errors_of_the_label_part_are_those_of_repeated_runs(held_out):
    """Nodes too, where one encoder a fold judges its own rows alone. All else is small."""
    points = some_points(90, 2, 0, n_folds=3)
    views = [points.seen_in(points.Z * scale) for scale in (1.0, 0.9, 0.8, 0.7)]
    case = cross_fitted(points, views, np.arange(1, 4)) if held_out else a_case(90, 2)
    tree = tree_from_levels([np.arange(90) % 5])
    runs = [
        value(case, tree, a_plan(n_contexts=8, seed=seed, consistency_weight=1e6))
        for seed in range(25)
    ]
    of_points = [run.values for run in runs], [run.stderr for run in runs]
    of_nodes = (
        [tree.node_sums(run.values) for run in runs],
        [run.node_stderr for run in runs],
    )
    for values, stated in (of_points, of_nodes):
        ratio = np.mean(np.square(stated)) / np.mean(np.var(values, axis=0, ddof=1))
        assert 0.5 < ratio < 2


def test_a_node_of_one_row_below_the_game_level_has_the_rows_error():
    """Its share of the error of its sampled coalition included."""
    row = np.arange(160)
    case, tree = a_case(160, 2), tree_from_levels([row % 20, row])
    found = value(case, tree, a_plan(n_permutations=8))
    assert found.notes["game_level_coalitions"] == 20
    assert not found.notes["coalitions_exact"]
    of_row = found.node_stderr[tree.leaf_of_row]
    assert of_row == pytest.approx(found.stderr, abs=1e-12)
    assert np.isnan(found.as_player[tree.level == 2]).all()


def test_more_rounds_are_sampled_until_the_errors_are_small_enough():
    case, tree = a_case(60, 2), a_tree(60, 0)
    one = value(case, tree, a_plan())
    aim = float(one.stderr.mean() / 3)
    found = value(case, tree, a_plan(precision=aim))
    assert found.stderr.mean() < 1.05 * aim
    assert found.notes["n_contexts"] > 4 * one.notes["n_contexts"]
    surplus = retrained(case, a_probe(case), np.ones(60, bool))
    assert found.parts["utility"].sum() == pytest.approx(surplus, rel=1e-9)


def test_a_budget_of_no_time_buys_one_round():
    case, tree = a_case(60, 2), a_tree(60, 0)
    one = value(case, tree, a_plan())
    hurried = value(case, tree, a_plan(time_budget=1e-9))
    assert np.array_equal(one.values, hurried.values)


@pytest.mark.parametrize("metric", ["balanced_accuracy", "auc", "loss"])
def test_the_surrogate_is_compared_with_the_metric(metric):
    """Over random coalitions; the squared loss itself is held against accuracy."""
    case, seller = market(n=200, n_judging=80)
    plan, upper = a_plan(metric=metric), Upper.of(tree_from_levels([seller]))
    game = a_probe(case, metric).game(case, upper.code, 5, None)
    asked = "accuracy" if metric == "loss" else metric
    found = surrogate_check(game, plan, case, upper, 50)
    rng = np.random.default_rng([0, 5])
    masks = rng.random((50, 1)) > rng.random((50, 5))
    expected = spearmanr(
        [retrained(case, a_probe(case, metric), mask[seller]) for mask in masks],
        game.payoffs(masks, asked)[0],
    ).statistic
    assert found == {f"spearman_surrogate_{asked}": pytest.approx(expected, abs=0.02)}


def test_nothing_is_compared_where_the_metric_is_played_itself_or_never_changes():
    case, tree = a_case(30, 2), a_tree(30, 0)
    notes = value(case, tree, a_plan(utility=Neighbours(k=3))).notes
    assert not [name for name in notes if name.startswith("spearman")]
    notes = value(case, flat_tree(30), a_plan()).notes
    assert not [name for name in notes if name.startswith("spearman")]


def test_squared_loss_ranks_skewed_sellers_against_their_balanced_accuracy():
    """The trap: unweighted moments reverse the order, class-weighted ones mend it."""
    for seed in range(2):
        case, seller = market(seed)
        probe = a_probe(case, "balanced_accuracy")
        exact = shapley_exact(probe.game(case, seller, 5, None), 5)
        contexts = semivalue_contexts(8, 25, 0)
        plain, weighted = (
            np.bincount(seller, weights=a_probe(case, metric).batches(
                case, contexts, 0, None
            ).mean())
            for metric in ("loss", "balanced_accuracy")
        )  # fmt: skip
        assert pearsonr(plain, exact).statistic < -0.8
        assert pearsonr(weighted, exact).statistic > 0.9
        tree = tree_from_levels([seller])
        found = value(case, tree, a_plan(metric="balanced_accuracy"))
        sums = np.bincount(seller, weights=found.parts["utility"])
        assert sums == pytest.approx(exact, abs=1e-9)


def test_a_branch_that_lost_all_its_rows_keeps_its_place_and_is_worth_nothing():
    tree = tree_from_levels([np.arange(40) % 4]).restrict(np.arange(40) % 4 != 2)
    case = a_case(30, 2)
    found = value(case, tree, a_plan())
    sums = tree.node_sums(found.values)
    assert sums[3] == 0
    assert sums[1:].sum() == pytest.approx(sums[0])
