"""What a judge asks of a model: the loss as moments of the validation rows, and the metrics.

loss(W) = tr(WᵀVW) − 2·tr(Wᵀb) + c,   M = 1 − loss(W)/c,   so W = 0 (no data) has M = 0.
The moments hold for any size of coalition or validation set, and the choice of metric
fixes how they are formed, so that the surrogate ranks as the metric does:
loss, accuracy, r2 → plain; balanced accuracy → each class weighs the same; AUC → the
squared loss of differences over all pairs of validation rows with different labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from hcdv.valuation.features import FeatureMap
from hcdv.valuation.points import Floats, Points, class_weights
from hcdv.valuation.statistics import Statistics, group_statistics

CLASSIFICATION_METRICS = ("loss", "accuracy", "balanced_accuracy", "auc")
REGRESSION_METRICS = ("loss", "r2")
BOUNDED_METRICS = ("accuracy", "balanced_accuracy", "auc")  # in [0, 1], as Hoeffding asks


@dataclass(frozen=True)
class Moments:
    """V, b and c of one judge, and a root of V: V = root·rootᵀ."""

    V: NDArray[np.float64]  # (D, D)
    b: NDArray[np.float64]  # (D, C)
    c: float
    root: NDArray[np.float64]  # (D, rank of V)

    def utility(self, W: Floats) -> NDArray[np.float64]:
        """M of a stack of models, (…, D, C) → (…)."""
        gain = (self.V @ W - 2.0 * self.b) * W
        # One flat sum a model: over two axes, numpy's rounding depends on the stack.
        return -gain.reshape(*W.shape[:-2], -1).sum(axis=-1) / self.c


def _root(V: Floats) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(V)
    kept = values > values[-1] * len(V) * np.finfo(float).eps
    return vectors[:, kept] * np.sqrt(values[kept])


def _plain(
    points: Points, features: FeatureMap, weight: Floats
) -> tuple[Statistics, float]:
    everything = np.zeros(len(points), dtype=np.intp)
    stats = group_statistics(points, features, everything, 1, weight=weight)
    square = np.sum(points.targets(slice(None), np.dtype(float)) ** 2, axis=1)
    return Statistics(stats.gram[0], stats.cross[0]), float(square @ weight)


def _pairwise(points: Points, features: FeatureMap) -> tuple[Statistics, float]:
    """Second moments of differences over cross-label pairs: nQ − ssᵀ − Σ_c(n_cQ_c − s_cs_cᵀ)."""
    n_classes = points.n_classes
    weight = np.ones(len(points))
    stats = group_statistics(points, features, points.target, n_classes, weight=weight)
    count = np.bincount(points.target, minlength=n_classes).astype(float)
    x_sum = stats.gram[:, :, -1]  # (C, D)  the constant column sums the others
    y_sum = count[:, None] * (np.eye(n_classes) - 1.0 / n_classes)  # (C, C)
    others = len(points) - count
    gram = np.einsum("c,cde->de", others, stats.gram)
    gram -= np.outer(x_sum.sum(0), x_sum.sum(0)) - x_sum.T @ x_sum
    cross = np.einsum("c,cde->de", others, stats.cross)
    cross -= np.outer(x_sum.sum(0), y_sum.sum(0)) - x_sum.T @ y_sum
    n_pairs = max(
        float(count @ others) / 2.0, 1.0
    )  # none: V = b = 0, every model is paid 0
    return Statistics(gram / n_pairs, cross / n_pairs), 2.0  # ‖e_a − e_b‖² = 2


def judge_moments(points: Points, features: FeatureMap, metric: str) -> Moments:
    """The moments of a validation set under the metric's surrogate loss."""
    if metric == "auc":
        stats, c = _pairwise(points, features)
    else:
        weight = (
            class_weights(points) if metric == "balanced_accuracy" else np.ones(len(points))
        )
        stats, c = _plain(points, features, weight / weight.sum())
    gram = (stats.gram + stats.gram.T) / 2.0
    return Moments(gram, stats.cross, c, _root(gram))


def empty_metric(metric: str, n_classes: int) -> float:
    """The metric of the no-data predictor: v(∅) before dispersion and consistency, both 0."""
    if metric in ("accuracy", "balanced_accuracy"):
        return 1.0 / n_classes
    return 0.5 if metric == "auc" else 0.0


def metric_of_models(
    metric: str, models: Floats, points: Points, features: FeatureMap, moments: Moments
) -> NDArray[np.float64]:
    """The metric itself for a stack of models (m, D, C), by scoring the validation rows."""
    if metric in ("loss", "r2"):
        return moments.utility(models)
    x = features(points.Z, np.dtype(float))
    scores = np.moveaxis(x @ models, -1, 0)  # (C, m, rows): class-major, rows innermost
    untaught = ~np.any(models, axis=(1, 2))
    # Summed row by row, not by BLAS: a model scores the same bits in any company.
    area = metric == "auc"
    value = _auc(scores, points) if area else _hits(metric, scores, points).sum(axis=-1)
    return np.where(untaught, empty_metric(metric, points.n_classes), value)


def metric_of_rows(
    metric: str, models: Floats, points: Points, features: FeatureMap
) -> NDArray[np.float64]:
    """What every validation row adds to a metric that is a mean over rows, (m, rows).

    A model of no data, all zeros, gets from every row the mean of a blind guess.
    """
    x = features(points.Z, np.dtype(float))
    scores = np.moveaxis(x @ models, -1, 0)  # (C, m, rows)
    if metric in ("loss", "r2"):
        y = points.targets(slice(None), np.dtype(float)).T[:, None, :]
        gone = np.sum((2.0 * y - scores) * scores, axis=0)  # ‖y‖² − ‖y − s‖²
        return gone / np.sum(y**2)
    found = _hits(metric, scores, points)
    untaught = ~np.any(models, axis=(1, 2))
    found[untaught] = _row_weights(metric, points) / points.n_classes
    return found


def _hits(metric: str, scores: Floats, points: Points) -> NDArray[np.float64]:
    """The weight of each row that is told right by scores (C, m, rows), else 0."""
    own = np.take_along_axis(scores, points.target[None, None, :], axis=0)[0]
    return np.where(own >= scores.max(axis=0), _row_weights(metric, points), 0.0)


def _row_weights(metric: str, points: Points) -> NDArray[np.float64]:
    balanced = metric == "balanced_accuracy"
    weight = class_weights(points) if balanced else np.ones(len(points))
    return np.asarray(weight / weight.sum())


def _auc(scores: Floats, points: Points) -> NDArray[np.float64]:
    """One-vs-rest area under the ROC curve, averaged over the classes present."""
    areas: list[NDArray[np.float64]] = []
    classes = range(points.n_classes) if points.n_classes > 2 else (1,)
    for c in classes:
        positive = points.target == c
        n_pos, n_neg = positive.sum(), (~positive).sum()
        if n_pos and n_neg:
            rank = rankdata(scores[c], axis=-1)
            area = rank[:, positive].sum(axis=1) - n_pos * (n_pos + 1) / 2.0
            areas.append(area / (n_pos * n_neg))
    if not areas:  # a fold of one class tells no models apart
        return np.full(scores.shape[1], 0.5)
    return np.mean(areas, axis=0)
