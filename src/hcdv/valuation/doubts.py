"""The consistency part of a case: which contexts ask, in which view, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.local import ordered_map
from hcdv.hierarchy.tree import Tree
from hcdv.valuation.consistency import Agreement, agreement, context_models
from hcdv.valuation.contexts import Contexts, share_contexts
from hcdv.valuation.features import FeatureMap, linear_features
from hcdv.valuation.points import Case, class_weights
from hcdv.valuation.probe import sketch_columns
from hcdv.valuation.statistics import Statistics, context_statistics

SHARES = (0.3, 0.9)  # contexts of 30-90 % of the rows (evidence, first round)
N_THRESHOLDS = {
    200_000: 8,
    2**63: 4,
}  # points up to → contexts an order, with a probe of each
FIRST_STREAM = 1 << 20  # streams of the marginals' contexts stay below
LINEAR_RIDGE, KERNEL_RIDGE = 3e-3, 1e-3  # of n


@dataclass(frozen=True)
class Doubts:
    """Label consistency of every row."""

    agreement: NDArray[np.float64]  # (n,)  A_i in [−1, 1]
    variance: NDArray[np.float64]  # (n,)  of A_i, from independent orders
    batches: NDArray[np.floating]  # (R, n)  nan where the order does not judge the row
    votes: NDArray[np.float64]  # (n,)
    scores: NDArray[np.float64]  # (C, n)

    def joined(self, more: Doubts, rounds: int) -> Doubts:
        """The mean with one further round, `rounds` of them in all."""
        batches = np.concatenate([self.batches, more.batches])
        share = 1.0 / rounds
        return Doubts(
            *_mean_and_variance(batches), batches,
            (1 - share) * self.votes + share * more.votes,
            (1 - share) * self.scores + share * more.scores,
        )  # fmt: skip

    def variance_of_sums(self, tree: Tree) -> NDArray[np.float64]:
        """Variance of the sum of A_i over every node, (m,)."""
        square = np.zeros(tree.n_nodes)
        for row in self.batches:
            square += tree.node_sums(np.nan_to_num(row - self.agreement)) ** 2
        n_asked = int(_times_asked(self.batches).max())  # alike for all rows
        return square / max(1, n_asked * (n_asked - 1))


def _times_asked(batches: NDArray[np.floating]) -> NDArray[np.intp]:
    return np.count_nonzero(~np.isnan(batches), axis=0)


def _mean_and_variance(
    batches: NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of A_i, over the orders that judge row i."""
    n_asked = _times_asked(batches)
    mean, square = np.zeros(len(n_asked)), np.zeros(len(n_asked))
    for row in batches:
        mean += np.nan_to_num(row)
    mean /= n_asked
    for row in batches:
        square += np.nan_to_num(row - mean) ** 2
    return mean, square / np.maximum(n_asked * (n_asked - 1), 1)


def label_doubts(
    case: Case, features: list[FeatureMap], seed: int, n_jobs: int | None, number: int = 0
) -> Doubts:
    """Ask the linear and the kernel probe of every context of a round about every row."""
    views = np.unique(case.judging_view)
    held_out = len(views) > 1  # one encoder a fold: each judges its own fold only
    n_orders = 2 * len(views) if held_out else 4
    n_thresholds = thresholds_of(len(case.points))
    first = FIRST_STREAM + number * n_orders
    contexts = share_contexts(n_orders, n_thresholds, seed, *SHARES, first=first)
    view_of = (
        np.tile(views, n_orders // len(views)) if held_out else np.repeat(views, n_orders)
    )
    asked = [
        _of_view(case, view, features[view], contexts.take(np.flatnonzero(view_of == view)),
                 held_out, seed, n_jobs)
        for view in views
    ]  # fmt: skip
    batches = np.concatenate([one.margin for one in asked])
    votes = np.sum([one.votes for one in asked], axis=0)
    scores = np.sum([one.scores for one in asked], axis=0)
    return Doubts(*_mean_and_variance(batches), batches, votes, scores)


def thresholds_of(n_points: int) -> int:
    """Contexts an order."""
    return next(number for most, number in N_THRESHOLDS.items() if n_points <= most)


def _of_view(
    case: Case,
    view: int,
    kernel: FeatureMap,
    contexts: Contexts,
    held_out: bool,
    seed: int,
    n_jobs: int | None,
) -> Agreement:
    points = case.views[view]
    own = case.judging_view == view if held_out else np.ones(len(case.judging_view), bool)
    judged = np.tile(own, (contexts.n_orders, 1))
    barred = judged if held_out else ~judged
    weight = class_weights(points)
    probes = [(linear_features(points.Z), LINEAR_RIDGE)]
    if kernel.kind != "linear":
        probes.append((kernel, KERNEL_RIDGE))
    said: list[Agreement] = []
    for features, ridge in probes:
        stats = context_statistics(
            points, features, contexts, barred, weight=weight, n_jobs=n_jobs
        )
        sketch = sketch_columns(len(points), contexts.p.size, features.width)

        def teach(
            order: int,
            stats: Statistics = stats,
            ridge: float = ridge,
            sketch: int | None = sketch,
        ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
            rng = np.random.default_rng([seed, 3, int(contexts.stream[order])])
            own = Statistics(stats.gram[order], stats.cross[order])
            return context_models(own, ridge * weight.sum(), sketch, rng)

        models = list(ordered_map(teach, range(contexts.n_orders), n_jobs))
        said.append(
            agreement(
                points, features, contexts, models, judged, barred, weight, n_jobs=n_jobs
            )
        )
    return Agreement(*(np.mean(part, axis=0) for part in _transposed(said)))


def _transposed(said: list[Agreement]) -> list[list[NDArray[np.floating]]]:
    return [[getattr(one, name) for one in said] for name in ("margin", "votes", "scores")]
