"""Small cases to value, contexts named row by row, and models taught from scratch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
from hypothesis import strategies as st

from hcdv.hierarchy.growth import tree_from_levels
from hcdv.hierarchy.tree import Tree
from hcdv.valuation.contexts import Contexts, mix
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case, Judge, Originals, Points
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.utility import LeastSquares

LINEAR = LeastSquares(features="linear")


def some_points(n, n_classes, seed, d=3, n_folds=1, weight=None, noise=0.8):
    """Unit rows, of classes that a plane through the origin tells apart, roughly."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    score = Z[:, 0] + noise * rng.normal(size=n) / 2
    target = score - score.mean()
    if n_classes:
        cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
        target = np.digitize(score, cuts)
    key = mix(np.arange(n).astype(np.uint64) + np.uint64(1000 * (seed + 1)))
    return Points(Z, target, n_classes, key, np.arange(n) % n_folds, weight)


def validated(points, judge_points, judging_view=None, views=None):
    """A case with a validation set."""
    n_folds = int(points.fold.max()) + 1
    judge = Judge(judge_points, 0, np.ones(n_folds, dtype=bool))
    return _case(views or [points], [judge], judging_view, n_folds)


def cross_fitted(points, views=None, judging_view=None):
    """A case whose folds judge one another."""
    n_folds = int(points.fold.max()) + 1
    views = views or [points]
    if judging_view is None:
        judging_view = np.zeros(n_folds, dtype=np.intp)
    judges = [
        Judge(
            views[judging_view[k]].take(np.flatnonzero(points.fold == k)),
            int(judging_view[k]),
            np.arange(n_folds) != k,
        )
        for k in range(n_folds)
    ]
    return _case(views, judges, judging_view, n_folds)


def _case(views, judges, judging_view, n_folds):
    points = views[0]
    if judging_view is None:
        judging_view = np.zeros(n_folds, dtype=np.intp)
    judged = [(judge.points.Z, judge.points.target) for judge in judges]
    originals = Originals(points.Z, points.target, judged, np.arange(len(points)))
    return Case(views, judges, judging_view, originals)


def a_case(n=30, n_classes=2, seed=0, *, n_folds=0, weighted=False, n_judging=40, **how):
    """A case judged by a validation set, or by its own folds where it has any."""
    rng = np.random.default_rng([seed, 7])
    weight = rng.gamma(2.0, 0.5, n) if weighted else None
    points = some_points(n, n_classes, seed, n_folds=max(1, n_folds), weight=weight, **how)
    if n_folds:
        return cross_fitted(points)
    return validated(points, some_points(n_judging, n_classes, seed + 100, **how))


def reordered(case, perm):
    """The same case, its rows given in another order."""
    views = [points.take(perm) for points in case.views]
    return _case(views, case.judges, case.judging_view, len(case.judges[0].eligible))


def with_weight(case, weight):
    """The same case under other sample weights."""
    views = [Points(v.Z, v.target, v.n_classes, v.key, v.fold, weight) for v in case.views]
    return _case(views, case.judges, case.judging_view, len(case.judges[0].eligible))


def a_probe(case, metric="loss", config=LINEAR, seed=0):
    return Probe.of(case, config, metric, seed)


def a_tree(n, seed, n_levels=2, n_children=3) -> Tree:
    """A tree of random partitions, each cut along the coarser ones."""
    rng = np.random.default_rng([seed, 9])
    return tree_from_levels([rng.integers(0, n_children, n) for _ in range(n_levels)])


def retrained(case, probe, inside, k=None):
    """M of a set of rows (n,) bool: models solved from the rows, losses from predictions.

    Under the squared loss that belongs to the probe's metric: plain, balanced or pairwise.
    """
    judges = range(len(case.judges)) if k is None else [k]
    return np.mean([_retrained(case, probe, inside, j) for j in judges])


def _retrained(case, probe, inside, k):
    judge = case.judges[k]
    points, features = case.views[judge.view], probe.features[judge.view]
    rows = np.flatnonzero(inside & judge.eligible[points.fold])
    W = taught(points, features, rows, probe.ridge)
    x = features(judge.points.Z, np.dtype(float))
    y = judge.points.targets(slice(None), np.dtype(float))
    return 1 - scored_loss(probe.metric, judge.points, y - x @ W) / scored_loss(
        probe.metric, judge.points, y
    )


def taught(points, features, rows, ridge, weight=None):
    """W of some rows by an augmented least-squares problem, not by normal equations."""
    weight = points.weight if weight is None else weight
    root = np.sqrt(np.ones(len(points)) if weight is None else weight)[rows, None]
    x, y = features(points.Z[rows], np.dtype(float)), points.targets(rows, np.dtype(float))
    width = features.width
    A = np.concatenate([root * x, np.sqrt(ridge) * np.eye(width)])
    B = np.concatenate([root * y, np.zeros((width, points.width))])
    return np.linalg.lstsq(A, B, rcond=None)[0]


def scored_loss(metric, points, residual):
    """The loss behind a metric, row by row, or pair by pair for AUC."""
    square = np.sum(residual**2, axis=1)
    if metric == "auc":
        pairs = [
            (i, j)
            for i, j in combinations(range(len(points)), 2)
            if points.target[i] != points.target[j]
        ]
        return np.mean([np.sum((residual[i] - residual[j]) ** 2) for i, j in pairs])
    if metric == "balanced_accuracy":
        classes = np.unique(points.target)
        return np.mean([square[points.target == c].mean() for c in classes])
    return square.mean()


@dataclass(frozen=True)
class NamedContexts(Contexts):
    """Contexts that hold the rows they are told to; keys are row numbers."""

    inside: np.ndarray  # (R, n)

    def uniforms(self, order, key):
        return np.where(self.inside[order][key.astype(int)], 0.0, 1.0)

    def take(self, orders):
        some = (part[orders] for part in (self.stream, self.p, self.weight, self.inside))
        return NamedContexts(self.seed, *some)


def contexts_of(inside, weight=None, judge=0, n_judges=1) -> Contexts:
    """One order for every row set in `inside`, (R, n), all asked about one judge."""
    inside = np.asarray(inside, dtype=bool)
    R = len(inside)
    weight = np.ones((R, 1)) if weight is None else np.asarray(weight)[:, None]
    stream = judge + n_judges * np.arange(R)
    return NamedContexts(0, stream, np.full((R, 1), 0.5), weight, inside)


def numbered(points: Points) -> Points:
    """The points with row numbers for keys, as `contexts_of` wants them."""
    return Points(
        points.Z, points.target, points.n_classes, np.arange(len(points)).astype(np.uint64),
        points.fold, points.weight,
    )  # fmt: skip


def all_subsets(n) -> np.ndarray:
    """(2^n, n) indicators."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1


def uniform_size(n) -> np.ndarray:
    """Chance of each subset of n rows where p is uniform: |S|!(n − |S|)!/(n + 1)!."""
    size = all_subsets(n).sum(axis=1)
    chance = [factorial(s) * factorial(n - s) / factorial(n + 1) for s in range(n + 1)]
    return np.array(chance)[size]


def as_players(case, probe):
    """The game whose players are the points, every payoff retrained from scratch."""
    return lambda masks: np.array([retrained(case, probe, mask) for mask in masks])


seeds = st.integers(0, 2**16)


def a_plan(**settings):
    """Few samples of the linear probe: the least that every method runs on."""
    defaults = {"utility": LINEAR, "n_contexts": 16, "n_permutations": 4}
    return Plan(**(defaults | settings))


def market(seed=0, n=600, n_judging=1500):
    """Five sellers whose shares of a rare class differ, and who each row belongs to."""
    rng = np.random.default_rng(seed)

    def rows(label):
        Z = rng.normal(size=(len(label), 5))
        Z[:, 0] += label
        Z[:, 4] = 1.0
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        key = mix(np.arange(len(label)).astype(np.uint64))
        return Points(Z, label, 2, key, np.zeros(len(label), np.intp))

    seller = np.arange(n) % 5
    share = np.array([0.02, 0.05, 0.1, 0.3, 0.6])[seller]
    case = validated(
        rows((rng.random(n) < share).astype(np.intp)),
        rows((rng.random(n_judging) < 0.1).astype(np.intp)),
    )
    return case, seller
