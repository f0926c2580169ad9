"""Flat values of all points by their cheapest exact means: contexts, or a closed form.

Batches are independent unbiased estimates of every point's value, one an order; each has
one judge, so the mean over judges is a stratified mean and errors come from within them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.local import ordered_map
from hcdv.valuation.contexts import Contexts
from hcdv.valuation.features import (
    FeatureMap,
    fourier_features,
    kernel_features,
    linear_features,
)
from hcdv.valuation.knn import (
    knn_regression_shapley,
    knn_shapley,
    soft_knn_shapley,
    threshold_knn_shapley,
)
from hcdv.valuation.marginals import point_marginals
from hcdv.valuation.moments import Moments, judge_moments, metric_of_models
from hcdv.valuation.points import Case, Judge, Points
from hcdv.valuation.probe import Coefficients, ProbeGame, coefficients, sketch_columns
from hcdv.valuation.statistics import (
    Statistics,
    context_statistics,
    group_statistics,
    row_dtype,
)
from hcdv.valuation.utility import LeastSquares, Neighbours

Quantity = Callable[[NDArray[np.floating]], NDArray[np.floating] | np.floating]
NOTHING = Statistics(np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Batches:
    """Independent estimates of every point's value, and which judge each belongs to."""

    value: NDArray[np.floating]  # (R, n)
    stratum: NDArray[np.intp]  # (R,)

    def mean(self) -> NDArray[np.float64]:
        """Mean over judges of the mean over their batches."""
        total = np.zeros(self.value.shape[1])
        for share, row in zip(self.weights(), self.value, strict=True):
            total += share * row.astype(np.float64)
        return total

    def weights(self) -> NDArray[np.float64]:
        """Share of each batch in the mean."""
        size = np.bincount(self.stratum)
        return 1.0 / (size[self.stratum] * np.count_nonzero(size))

    def variance(self, of: Quantity | None = None) -> NDArray[np.float64]:
        """Variance of the mean of the values, or of a quantity of them, from within judges.

        Batches are visited one by one: memory is that of one, however many there are.
        """
        size = np.bincount(self.stratum)
        spread: Any = 0.0
        for stratum in np.flatnonzero(size > 1):
            mean: Any = 0.0
            square: Any = 0.0
            for number, row in enumerate(self.value[self.stratum == stratum], start=1):
                found = np.asarray(row.astype(np.float64) if of is None else of(row))
                off = found - mean
                mean = mean + off / number
                square = square + off * (found - mean)
            spread = spread + square / (size[stratum] * (size[stratum] - 1))
        if not (size > 1).any():
            row = self.value[0]
            spread = np.zeros_like(row if of is None else of(row), dtype=np.float64)
        return np.asarray(spread / np.count_nonzero(size) ** 2)

    def joined(self, more: Batches) -> Batches:
        """These and further batches."""
        return Batches(
            np.concatenate([self.value, more.value]),
            np.concatenate([self.stratum, more.stratum]),
        )


def feature_map(points: Points, config: LeastSquares, seed: int) -> FeatureMap:
    """The probe's features of one view."""
    rng = np.random.default_rng([seed, 1])
    if config.features == "linear":
        return linear_features(points.Z)
    make = kernel_features if config.features == "kernel" else fourier_features
    return make(points.Z, config.n_features, rng)


@dataclass(frozen=True)
class Kept:
    """Statistics gathered once, and of what: rows come and go later by adding and subtracting."""

    stats: Statistics
    view: int
    code: NDArray[np.intp] | None = None  # (n,)  group of every row, with
    n_groups: int = 0
    contexts: Contexts | None = None  # or the contexts, with
    barred: NDArray[np.bool_] | None = None
    features: FeatureMap | None = None  # None: those of the view

    @property
    def name(self) -> str:
        """What statistics of contexts are kept under."""
        assert self.contexts is not None
        return f"contexts {self.view} {self.contexts.stream[0]}"

    def begins_with(self, other: Kept) -> bool:
        """Whether what is asked for is here; orders of contexts are dropped as rows grow many."""
        if self.contexts is None or other.contexts is None:
            return True
        asked = other.contexts.p
        return np.array_equal(self.contexts.p[: len(asked)], asked)


@dataclass(frozen=True)
class Probe:
    """A least-squares probe set up for a case; frozen, so that rows may come and go."""

    features: list[FeatureMap]  # by view
    moments: list[Moments]  # by judge
    ridge: float
    metric: str
    memo: dict[str, Kept] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, case: Case, config: LeastSquares, metric: str, seed: int) -> Probe:
        """Fix features, validation moments and ρ."""
        features = [feature_map(view, config, seed) for view in case.views]
        moments = [judge_moments(j.points, features[j.view], metric) for j in case.judges]
        weight = case.points.weight
        n = len(case.points) if weight is None else weight.sum()
        return cls(features, moments, config.ridge * n, metric)

    def paid(self, case: Case, k: int, models: NDArray[np.floating]) -> NDArray[np.float64]:
        """What judge k pays for models (m, D, C)."""
        judge = case.judges[k]
        features = self.features[judge.view]
        return metric_of_models(
            self.metric, models, judge.points, features, self.moments[k]
        )

    def game(
        self, case: Case, code: NDArray[np.intp], n_groups: int, n_jobs: int | None,
        *, keep_as: str | None = None, merged: NDArray[np.intp] | None = None,
    ) -> ProbeGame:  # fmt: skip
        """The payoff of unions of groups of rows. keep_as: a name to keep statistics under.

        merged: the player that each group is a part of, where groups do not play themselves.
        """
        n_folds = len(case.judges[0].eligible)
        by_view: dict[int, Statistics] = {}
        for view in sorted({judge.view for judge in case.judges}):
            part = code * n_folds + case.points.fold
            kept = Kept(NOTHING, view, part, n_groups * n_folds)
            flat = (
                self.gathered(kept, case.views[view], np.ones(len(code), bool), n_jobs)
                if keep_as is None
                else self.once(f"{keep_as} {view}", case, kept, n_jobs)
            )
            by_group = flat.by_group(n_groups)
            by_view[view] = by_group if merged is None else by_group.merged(merged)
        return self.game_of(case.judges, by_view, n_jobs)

    def game_of(
        self, judges: list[Judge], by_view: dict[int, Statistics], n_jobs: int | None
    ) -> ProbeGame:
        """The payoff of unions of groups, from the statistics of every group and fold."""
        taught: list[Statistics] = []
        for judge in judges:
            stats, folds = by_view[judge.view], judge.eligible
            own = Statistics(stats.gram[:, folds], stats.cross[:, folds]).sum(axis=1)
            taught.append(own.on_grid())
        return ProbeGame(
            judges,
            self.features,
            self.moments,
            taught,
            self.ridge,
            self.metric,
            n_jobs,
        )

    def once(self, name: str, case: Case, kept: Kept, n_jobs: int | None) -> Statistics:
        """Gather statistics of all rows, or take what an earlier pass has left."""
        held = self.memo.get(name)
        if held is None or not held.begins_with(kept):
            points = case.views[kept.view]
            everyone = np.ones(len(points), dtype=bool)
            stats = self.gathered(kept, points, everyone, n_jobs)
            self.memo[name] = replace(kept, stats=stats)
        elif kept.contexts is not None:
            self.memo[name] = replace(kept, stats=held.stats.first(kept.contexts.n_orders))
        return self.memo[name].stats

    def gathered(
        self, kept: Kept, points: Points, rows: NDArray[np.bool_], n_jobs: int | None = None
    ) -> Statistics:
        """Statistics of some of the rows: `points` are these, `rows` a mask of all."""
        features = kept.features or self.features[kept.view]
        weight = points.weight
        if kept.code is not None:
            code = kept.code[rows]
            return group_statistics(
                points, features, code, kept.n_groups, weight=weight, n_jobs=n_jobs
            )
        assert kept.contexts is not None
        assert kept.barred is not None
        return context_statistics(
            points, features, kept.contexts, kept.barred, weight=weight, n_jobs=n_jobs
        )

    def batches(
        self, case: Case, contexts: Contexts, seed: int, n_jobs: int | None, *,
        keep: bool = True, rows: NDArray[np.intp] | None = None,
    ) -> Batches:  # fmt: skip
        """One unbiased estimate of every point's flat value an order.

        keep: whether to keep the statistics, so that rows can come and go by sums.
        rows: those that are asked about; None: all.
        """
        judge_of = contexts.stream % len(case.judges)
        view_of = np.array([judge.view for judge in case.judges])[judge_of]
        found: list[NDArray[np.floating]] = []
        asked: list[NDArray[np.intp]] = []
        for view in np.unique(view_of):
            orders = np.flatnonzero(view_of == view)
            found.append(
                self._batches_of_view(
                    case,
                    view,
                    contexts.take(orders),
                    judge_of[orders],
                    seed,
                    n_jobs,
                    keep,
                    rows,
                )
            )
            asked.append(orders)
        if len(found) == 1:
            return Batches(found[0], judge_of)
        return Batches(np.concatenate(found)[np.argsort(np.concatenate(asked))], judge_of)

    def _batches_of_view(
        self,
        case: Case,
        view: int,
        contexts: Contexts,
        judge_of: NDArray[np.intp],
        seed: int,
        n_jobs: int | None,
        keep: bool,
        rows: NDArray[np.intp] | None,
    ) -> NDArray[np.floating]:
        points = case.views[view]
        kept = self.kept_contexts(case, view, contexts, judge_of, n_jobs, keep=keep)
        asked_about = points if rows is None else points.take(rows)
        return self.marginals(asked_about, kept, judge_of, len(points), seed, n_jobs)

    def kept_contexts(
        self, case: Case, view: int, contexts: Contexts, judge_of: NDArray[np.intp],
        n_jobs: int | None, *, keep: bool = True,
    ) -> Kept:  # fmt: skip
        """Statistics of contexts over all rows."""
        barred = ~np.array([case.judges[k].eligible for k in judge_of])
        kept = Kept(NOTHING, view, contexts=contexts, barred=barred)
        if keep:
            return replace(kept, stats=self.once(kept.name, case, kept, n_jobs))
        points = case.views[view]
        everyone = np.ones(len(points), dtype=bool)
        return replace(kept, stats=self.gathered(kept, points, everyone, n_jobs))

    def marginals(
        self, points: Points, kept: Kept, judge_of: NDArray[np.intp], n_points: int,
        seed: int, n_jobs: int | None,
    ) -> NDArray[np.floating]:  # fmt: skip
        """What contexts taught with all n points say of these, (R, b)."""
        contexts, barred = kept.contexts, kept.barred
        assert contexts is not None
        assert barred is not None
        asked = self.asked(
            kept.view, contexts, judge_of, kept.stats, n_points, seed, n_jobs
        )
        moments = [self.moments[k] for k in judge_of]
        return point_marginals(
            points,
            self.features[kept.view],
            contexts,
            asked,
            moments,
            barred,
            n_jobs=n_jobs,
        )

    def outside(
        self, case: Case, contexts: Contexts, points: Points, seed: int, n_jobs: int | None
    ) -> Batches:
        """What rows outside the data would add to its contexts, in the one view there is."""
        judge_of = contexts.stream % len(case.judges)
        barred = ~np.array([case.judges[k].eligible for k in judge_of])
        kept = Kept(NOTHING, 0, contexts=contexts, barred=barred)
        stats = self.once(f"contexts 0 {contexts.stream[0]}", case, kept, n_jobs)
        n = len(case.points)
        asked = self.asked(0, contexts, judge_of, stats, n, seed, n_jobs)
        found = point_marginals(
            points, self.features[0], contexts.of_nobody(), asked,
            [self.moments[k] for k in judge_of], np.zeros((contexts.n_orders, 1), dtype=bool),
            dtype=row_dtype(n, self.features[0].width), n_jobs=n_jobs,
        )  # fmt: skip
        return Batches(found, judge_of)

    def asked(
        self,
        view: int,
        contexts: Contexts,
        judge_of: NDArray[np.intp],
        stats: Statistics,
        n_points: int,
        seed: int,
        n_jobs: int | None,
    ) -> list[Coefficients]:
        """What every order of contexts asks of a row, from the statistics of all n points."""
        width = self.features[view].width
        sketch = sketch_columns(n_points, contexts.p.size, width)

        def ask(order: int) -> Coefficients:
            own = Statistics(stats.gram[order], stats.cross[order])
            rng = np.random.default_rng([seed, 2, int(contexts.stream[order])])
            moments = self.moments[judge_of[order]]
            return coefficients(own, moments, self.ridge, sketch, rng)

        return list(ordered_map(ask, range(contexts.n_orders), n_jobs))


def neighbour_values(
    case: Case, config: Neighbours, n_jobs: int | None
) -> NDArray[np.float64]:
    """Exact flat Shapley values of the nearest-neighbour utility, mean over judges."""
    total = np.zeros(len(case.points))
    for judge in case.judges:
        rows, points = case.taught(judge), case.views[judge.view]
        taught = (points.Z[rows], points.target[rows], judge.points.Z, judge.points.target)
        classes = points.n_classes
        if not classes:
            value = knn_regression_shapley(*taught, config.k, n_jobs=n_jobs)
        elif config.kind == "hard":
            value = knn_shapley(*taught, config.k, n_jobs=n_jobs)
        elif config.kind == "soft":
            value = soft_knn_shapley(*taught, config.k, n_classes=classes, n_jobs=n_jobs)
        else:
            radius = np.sqrt(2.0 * config.radius)  # unit vectors: ‖z − z'‖² = 2(1 − cos)
            value = threshold_knn_shapley(*taught, radius, n_classes=classes, n_jobs=n_jobs)
        total[rows] += value
    return total / len(case.judges)
