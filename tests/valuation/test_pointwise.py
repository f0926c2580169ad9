"""Batches and their errors, closed forms over judges, and probes whose rows come and go."""

import numpy as np
import pytest

from cases import a_case, a_probe, retrained, some_points
from hcdv.valuation.coalition_game import shapley_exact
from hcdv.valuation.contexts import semivalue_contexts
from hcdv.valuation.knn_game import KNNGame
from hcdv.valuation.points import Case, Judge
from hcdv.valuation.pointwise import Batches, feature_map, neighbour_values
from hcdv.valuation.utility import LeastSquares, Neighbours


def test_the_mean_gives_every_judge_the_same_say():
    batches = Batches(np.array([[1.0], [2.0], [6.0]]), np.array([0, 0, 2]))
    assert batches.weights() == pytest.approx([0.25, 0.25, 0.5])
    assert batches.mean() == pytest.approx([3.75])


def test_the_error_comes_from_within_judges_not_from_their_differences():
    value = np.array([[1.0, 0.0], [3.0, 0.0], [101.0, 7.0], [103.0, 7.0]])
    batches = Batches(value, np.array([0, 0, 1, 1]))
    assert batches.variance() == pytest.approx([(1 + 1) / 4, 0.0])


def test_further_batches_join_their_judges():
    one = Batches(np.array([[1.0], [2.0]]), np.array([0, 1]))
    both = one.joined(Batches(np.array([[3.0], [6.0]]), np.array([0, 1])))
    assert both.mean() == pytest.approx([3.0])
    assert both.stratum.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("kind", ["linear", "fourier", "kernel"])
def test_features_are_those_asked_for_and_fixed_by_the_seed(kind):
    points = some_points(20, 2, 0)
    config = LeastSquares(features=kind, n_features=5)
    one, two = (feature_map(points, config, 3) for _ in range(2))
    assert one.kind == kind
    assert np.array_equal(one(points.Z, np.dtype(float)), two(points.Z, np.dtype(float)))


def test_the_ridge_is_so_much_a_row_and_rows_count_by_their_weights():
    config = LeastSquares(features="linear", ridge=0.25)
    assert a_probe(a_case(40, 2), config=config).ridge == 10
    heavy = a_case(40, 2, weighted=True)
    assert a_probe(heavy, config=config).ridge == 0.25 * heavy.points.weight.sum()


@pytest.mark.parametrize("kind", ["hard", "soft", "threshold"])
@pytest.mark.parametrize("n_folds", [0, 3])
def test_neighbour_values_are_those_of_the_mean_game_of_the_judges(kind, n_folds):
    n = 9
    case = a_case(n, 2, n_folds=n_folds, d=2, n_judging=6)
    config = Neighbours(kind=kind, k=2, radius=0.3)

    def game(masks):
        total = np.zeros(len(masks))
        for judge in case.judges:
            rows = np.flatnonzero(case.taught(judge))
            total += KNNGame(
                case.points.Z[rows], case.points.target[rows], judge.points.Z,
                judge.points.target, np.arange(len(rows)), len(rows), k=2, kind=kind,
                radius=np.sqrt(0.6), n_classes=2,
            )(masks[:, rows])  # fmt: skip
        return total / len(case.judges)

    found = neighbour_values(case, config, None)
    assert found == pytest.approx(shapley_exact(game, n), abs=1e-12)


def test_neighbour_values_of_numbers_are_those_of_their_mean():
    case = a_case(8, 0, n_judging=5)
    judge = case.judges[0].points
    game = KNNGame(
        case.points.Z, case.points.target, judge.Z, judge.target, np.arange(8), 8,
        k=3, kind="regression",
    )  # fmt: skip
    found = neighbour_values(case, Neighbours(k=3), None)
    assert found == pytest.approx(shapley_exact(game, 8), abs=1e-12)


def test_judges_in_other_views_are_asked_there():
    """Two judges, each in its own embedding; the value of a set is the mean of both."""
    n = 6
    points = some_points(n, 2, 0, n_folds=2)
    views = [points, points.seen_in(points.Z * [1, 0.5, 2]), points.seen_in(points.Z**3)]
    judges = [
        Judge(views[k + 1].take(np.flatnonzero(points.fold == k)), k + 1, np.arange(2) != k)
        for k in range(2)
    ]
    case = Case(views, judges, np.array([1, 2]), None)
    probe = a_probe(case)
    batches = probe.batches(case, semivalue_contexts(2000, 4, 0), 0, None)
    error = np.sqrt(batches.variance())

    def game(masks):
        return np.array([retrained(case, probe, mask) for mask in masks])

    exact = shapley_exact(game, n)
    assert np.all(np.abs(batches.mean() - exact) < 6.5 * error)
    assert error.max() < 0.1 * np.abs(exact).max()
    code = np.arange(n)
    masks = np.random.default_rng(0).random((9, n)) < 0.5
    assert probe.game(case, code, n, None)(masks) == pytest.approx(game(masks), abs=1e-9)


def test_the_sketch_of_large_data_comes_near_the_exact_values(monkeypatch):
    case = a_case(400, 2, d=40)
    contexts = semivalue_contexts(8, 25, 0)
    exact = a_probe(case).batches(case, contexts, 0, None).mean()
    monkeypatch.setattr("hcdv.valuation.probe._EXACT_WORK", 0.0)
    near = a_probe(case).batches(case, contexts, 0, None).mean()
    assert not np.array_equal(near, exact)
    assert np.sqrt(np.mean((near - exact) ** 2)) < 0.05 * exact.std()
