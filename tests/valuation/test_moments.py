"""Losses from moments against losses from predictions, and metrics against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    r2_score,
    roc_auc_score,
)

from cases import scored_loss, some_points
from hcdv.valuation.features import kernel_features, linear_features
from hcdv.valuation.moments import (
    BOUNDED_METRICS,
    CLASSIFICATION_METRICS,
    empty_metric,
    judge_moments,
    metric_of_models,
)
from hcdv.valuation.points import Points


def skewed(n_classes, n=60):
    """Points whose first class is six times as frequent as the last."""
    points = some_points(4 * n, n_classes, 1, d=4)
    keep = np.random.default_rng(0).random(4 * n) < 1 / (1 + 2 * points.target)
    return points.take(np.flatnonzero(keep)[:n])


def models_for(points, features, m=6):
    rng = np.random.default_rng(2)
    return rng.normal(size=(m, features.width, points.width))


def predictions(points, features, models):
    return features(points.Z, np.dtype(float)) @ models


@pytest.mark.parametrize("metric", ["loss", "accuracy", "balanced_accuracy", "auc"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_moment_loss_is_the_loss_of_the_predictions(metric, n_classes):
    points = skewed(n_classes, 25)
    features = kernel_features(points.Z, 6, np.random.default_rng(0))
    models = models_for(points, features)
    moments = judge_moments(points, features, metric)
    y = points.targets(slice(None), np.dtype(float))
    empty = scored_loss(metric, points, y)
    assert moments.c == pytest.approx(empty, abs=1e-12)
    losses = [
        scored_loss(metric, points, y - p) for p in predictions(points, features, models)
    ]
    assert moments.utility(models) == pytest.approx(1 - np.array(losses) / empty, abs=1e-9)


def test_the_moment_loss_of_regression_is_the_share_of_variance_explained():
    points = some_points(50, 0, 3, d=4)
    points = Points(
        points.Z, points.target - points.target.mean(), 0, points.key, points.fold
    )
    features = linear_features(points.Z)
    models, moments = models_for(points, features), judge_moments(points, features, "r2")
    expected = [r2_score(points.target, p) for p in predictions(points, features, models)]
    for metric in ("r2", "loss"):
        found = metric_of_models(metric, models, points, features, moments)
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", ["loss", "balanced_accuracy", "auc"])
def test_no_model_explains_nothing_and_the_root_is_one_of_V(metric):
    points = skewed(3)
    features = linear_features(points.Z)
    moments = judge_moments(points, features, metric)
    assert moments.utility(np.zeros((1, 5, 3))).tolist() == [0.0]
    assert moments.root @ moments.root.T == pytest.approx(moments.V, abs=1e-12)
    assert np.array_equal(moments.V, moments.V.T)


def test_pairs_do_not_see_a_constant_added_to_all_scores():
    points = skewed(2)
    features = linear_features(points.Z)
    moments = judge_moments(points, features, "auc")
    models = models_for(points, features)
    shifted = models.copy()
    shifted[:, -1] += 5.0
    assert moments.utility(shifted) == pytest.approx(moments.utility(models), abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics_of_models_are_scikit_learns(n_classes):
    points = skewed(n_classes)
    features = linear_features(points.Z)
    models, y = models_for(points, features, 9), points.target
    scores = predictions(points, features, models)
    theirs = {
        "accuracy": [accuracy_score(y, s.argmax(axis=1)) for s in scores],
        "balanced_accuracy": [balanced_accuracy_score(y, s.argmax(axis=1)) for s in scores],
        "auc": [
            roc_auc_score(y, s[:, 1])
            if n_classes == 2
            else np.mean([roc_auc_score(y == c, s[:, c]) for c in range(3)])
            for s in scores
        ],
    }
    for metric, expected in theirs.items():
        moments = judge_moments(points, features, metric)
        found = metric_of_models(metric, models, points, features, moments)
        assert found == pytest.approx(expected, abs=1e-12), metric


def test_a_class_the_judge_has_not_seen_is_left_out_of_its_means():
    points = skewed(2)
    points = Points(points.Z, points.target, 3, points.key, points.fold)
    features = linear_features(points.Z)
    models, y = models_for(points, features), points.target
    scores = predictions(points, features, models)
    for metric, theirs in (
        ("balanced_accuracy", lambda s: np.mean([np.mean(s[y == c] == c) for c in (0, 1)])),
        ("auc", None),
    ):
        moments = judge_moments(points, features, metric)
        found = metric_of_models(metric, models, points, features, moments)
        expected = (
            [theirs(s.argmax(axis=1)) for s in scores]
            if theirs
            else [np.mean([roc_auc_score(y == c, s[:, c]) for c in (0, 1)]) for s in scores]
        )
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "auc", "loss"])
def test_an_untaught_model_scores_what_no_data_does(metric):
    points = skewed(3)
    features = linear_features(points.Z)
    moments = judge_moments(points, features, metric)
    models = models_for(points, features, 2)
    models[0] = 0.0
    found = metric_of_models(metric, models, points, features, moments)
    assert found[0] == empty_metric(metric, 3)
    assert found[1] != found[0]


def test_no_data_is_chance_for_bounded_metrics_and_nothing_for_the_others():
    assert [empty_metric(m, 4) for m in CLASSIFICATION_METRICS] == [0.0, 0.25, 0.25, 0.5]
    assert empty_metric("r2", 0) == 0.0
    assert set(BOUNDED_METRICS) == set(CLASSIFICATION_METRICS) - {"loss"}
