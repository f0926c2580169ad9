"""Coalitions' models from additive statistics against models taught on their rows."""

import numpy as np
import pytest

from cases import LINEAR, a_case, a_probe, retrained, taught
from hcdv.valuation.features import linear_features
from hcdv.valuation.moments import judge_moments
from hcdv.valuation.probe import coefficients, solve
from hcdv.valuation.statistics import Statistics, group_statistics
from hcdv.valuation.utility import LeastSquares

CODE = np.random.default_rng(0).integers(0, 5, 30)
MASKS = np.random.default_rng(1).random((12, 5)) < 0.5


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_folds", [0, 3])
@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_a_coalition_is_paid_what_retraining_on_its_rows_is_worth(
    n_classes, n_folds, weighted
):
    case = a_case(30, n_classes, n_folds=n_folds, weighted=weighted)
    probe = a_probe(case, config=LeastSquares(n_features=7))
    game = probe.game(case, CODE, 5, None)
    expected = [retrained(case, probe, mask[CODE]) for mask in MASKS]
    assert game(MASKS) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "auc"])
def test_metrics_of_coalitions_are_those_of_models_taught_on_their_rows(metric):
    case = a_case(30, 2, n_folds=2)
    probe = a_probe(case, metric)
    found = probe.game(case, CODE, 5, None)(MASKS)
    for mask, value in zip(MASKS, found, strict=True):
        of_judges = []
        for k, judge in enumerate(case.judges):
            rows = np.flatnonzero(mask[CODE] & case.taught(judge))
            W = taught(case.points, probe.features[0], rows, probe.ridge)
            of_judges.append(probe.paid(case, k, W[None])[0])
        assert value == pytest.approx(np.mean(of_judges), abs=1e-9)


def test_the_surrogate_of_a_metric_can_be_asked_for_as_well():
    case = a_case(30, 3)
    probe = a_probe(case, "balanced_accuracy")
    game = probe.game(case, CODE, 5, None)
    expected = [retrained(case, probe, mask[CODE]) for mask in MASKS]
    assert game.payoffs(MASKS, "loss")[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("metric", "worth"), [("loss", 0), ("accuracy", 1 / 3), ("auc", 0.5)]
)
def test_no_rows_and_rows_of_no_weight_are_worth_what_no_data_is(metric, worth):
    case = a_case(30, 3, weighted=True)
    case.points.weight[CODE == 2] = 0.0
    game = a_probe(case, metric).game(case, CODE, 5, None)
    nobody = np.zeros((2, 5), dtype=bool)
    nobody[1, 2] = True
    assert game(nobody).tolist() == [worth, worth]


@pytest.mark.parametrize("metric", ["loss", "accuracy", "balanced_accuracy", "auc"])
def test_a_coalition_is_paid_the_same_bits_in_any_company(metric):
    """Else a coalition that changes nothing is worth a rounding error, not nothing."""
    case = a_case(160, 3, n_folds=2, weighted=True)
    code = np.arange(160) % 40
    case.points.weight[code == 4] = 0.0
    game = a_probe(case, metric, LeastSquares(n_features=32)).game(case, code, 40, None)
    rng = np.random.default_rng(0)
    masks = rng.random((301, 40)) < rng.random((301, 1))
    masks[:, 4] = False
    joined = masks.copy()
    joined[:, 4] = True
    whole = game(masks)
    assert np.array_equal(whole, game(joined))
    assert np.array_equal(whole[::-1], game(joined[::-1]))
    for stop in (1, 2, 7, 33):
        assert np.array_equal(whole[:stop], game(joined[:stop]))


def test_workers_do_not_change_the_bits():
    case = a_case(30, 3, n_folds=2)
    masks = np.random.default_rng(0).random((300, 5)) < 0.5
    paid = {a_probe(case).game(case, CODE, 5, jobs)(masks).tobytes() for jobs in (1, 2, 4)}
    assert len(paid) == 1


def test_asking_about_no_coalition_is_no_error():
    case = a_case(30, 2)
    assert a_probe(case).game(case, CODE, 5, None)(np.zeros((0, 5), bool)).shape == (0,)


def some_statistics(n_sets=1):
    case = a_case(80, 2, d=30)
    features = linear_features(case.points.Z)
    stats = group_statistics(case.points, features, np.zeros(80, np.intp), 1)
    stack = Statistics(
        np.repeat(stats.gram, n_sets, axis=0), np.repeat(stats.cross, n_sets, axis=0)
    )
    return case, features, stack, judge_moments(case.judges[0].points, features, "loss")


def test_coefficients_hold_the_model_and_both_quadratic_forms():
    case, features, stats, moments = some_statistics()
    asked = coefficients(stats, moments, 2.0, None, np.random.default_rng(0))
    P = np.linalg.inv(stats.gram[0] + 2.0 * np.eye(31))
    W = solve(stats, 2.0)[0]
    assert asked.model[0] == pytest.approx(W, abs=1e-10)
    assert asked.pull[0] == pytest.approx(P @ (moments.V @ W - moments.b), abs=1e-10)
    x = features(case.points.Z, np.dtype(float))
    h, q = (np.sum((x @ part[0]) ** 2, axis=1) for part in (asked.leverage, asked.spread))
    assert h == pytest.approx(np.einsum("nd,de,ne->n", x, P, x), abs=1e-10)
    assert q == pytest.approx(np.einsum("nd,de,ne->n", x, P @ moments.V @ P, x), abs=1e-10)


@pytest.mark.parametrize("columns", [4, 16, 64])
def test_sketched_forms_are_unbiased_and_err_by_the_root_of_two_over_k(columns):
    """Of 400 sketches: ẑ/z is χ²_k/k, of mean 1 and variance 2/k."""
    case, features, stats, moments = some_statistics(400)
    rng = np.random.default_rng(0)
    near = coefficients(stats, moments, 2.0, columns, rng)
    right = coefficients(
        Statistics(stats.gram[:1], stats.cross[:1]), moments, 2.0, None, rng
    )
    x = features(case.points.Z[:5], np.dtype(float)).T
    for name in ("leverage", "spread"):
        exact, sketched = (
            np.sum((np.swapaxes(getattr(of, name), 1, 2) @ x) ** 2, axis=1)
            for of in (right, near)
        )
        ratio = sketched / exact  # (400, 5)
        deviation = np.sqrt(2 / columns)
        assert np.abs(ratio.mean(axis=0) - 1).max() < 6 * deviation / np.sqrt(400)
        assert ratio.std(axis=0) == pytest.approx(deviation, rel=0.25)
    assert near.leverage.shape == (400, 31, columns)
    assert np.array_equal(near.model[0], right.model[0])


def test_a_constant_guess_needs_no_rows():
    case = a_case(12, 2)
    features = linear_features(case.points.Z)
    empty = Statistics(np.zeros((1, 4, 4)), np.zeros((1, 4, 2)))
    assert not solve(empty, 0.1).any()
    assert features.width == 4
    assert LINEAR.features == "linear"
