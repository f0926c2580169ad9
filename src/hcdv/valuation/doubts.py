"""Label consistency A of a case: which contexts ask, in which view, and what it is worth.

A_i = mean excess doubt − excess doubt of row i, so that A(D) = A(∅) = 0: rows that are
probably wrong pay those that are not, and what the data are worth together stays M + λΔ̄.
A(S) = (1/n)·Σ_{i∈S} A_i is additive, so its Shapley value is its own summand A_i/n and
every axiom holds. Rows doubted less than half as often as rows on average are not told
apart: among them the model's own say decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.local import ordered_map
from hcdv.valuation.calibration import Curve, calibrated
from hcdv.valuation.calibration import margins as margins_of
from hcdv.valuation.consistency import Agreement, agreement, context_models
from hcdv.valuation.contexts import Contexts, share_contexts
from hcdv.valuation.features import FeatureMap, linear_features
from hcdv.valuation.points import Case, Points, class_weights
from hcdv.valuation.probe import sketch_columns
from hcdv.valuation.statistics import Statistics, context_statistics

SHARES = (0.3, 0.9)  # contexts of 30-90 % of the rows (evidence, first round)
# points up to → contexts an order, with a probe of each
N_THRESHOLDS = {200_000: 8, 2**63: 4}
FIRST_STREAM = 1 << 20  # streams of the marginals' contexts stay below
LINEAR_RIDGE, KERNEL_RIDGE = 3e-3, 1e-3  # of n

Linear = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Doubts:
    """Label consistency of every row, and what it is made of."""

    agreement: NDArray[np.float64]  # (n,)  A_i, summing to 0
    variance: NDArray[np.float64]  # (n,)  of A_i, from independent orders
    chance: NDArray[np.float64]  # (n,)  that the label is wrong
    margins: NDArray[np.floating]  # (R, n)  by order; nan where it does not judge the row
    scores: NDArray[np.floating]  # (C, n)
    curve: Curve
    slope: NDArray[np.float64]  # (n,)  of A_i by the margin

    @classmethod
    def of(
        cls, points: Points, margins: NDArray[np.floating], scores: NDArray[np.floating]
    ) -> Doubts:
        """What margins and mean scores of models taught without the rows say of labels."""
        curve = calibrated(scores, points)
        chance = curve(margins_of(scores, points), points.target)
        excess = curve.excess(chance, points.target)
        slope = curve.slope_of_excess(chance, points.target)
        found = cls(excess.mean() - excess, chance, chance, margins, scores, curve, slope)
        return replace(found, variance=found.variance_of(lambda row: row))

    def joined(self, more: Doubts, rounds: int, points: Points) -> Doubts:
        """The mean with one further round, `rounds` of them in all."""
        share = 1.0 / rounds
        scores = (1 - share) * self.scores + share * more.scores
        return Doubts.of(points, np.concatenate([self.margins, more.margins]), scores)

    def variance_of(self, of: Linear) -> NDArray[np.float64]:
        """Variance of sums of A_i, which `of` forms, from independent orders.

        To first order: a margin off by δ moves A_i by its slope times δ. Orders are visited
        one by one, so that memory is that of one.
        """
        asked = np.count_nonzero(~np.isnan(self.margins), axis=0)
        n_asked = int(asked.max())  # alike for all rows
        mean = np.nansum(self.margins, axis=0, dtype=np.float64) / asked
        moved = (self.slope * np.nan_to_num(row - mean) for row in self.margins)
        square = sum(of(row - row.mean()) ** 2 for row in moved)  # A_i sum to 0
        return np.asarray(square / max(1, n_asked * (n_asked - 1)))


def label_doubts(
    case: Case, features: list[FeatureMap], seed: int, n_jobs: int | None, number: int = 0
) -> Doubts:
    """Ask the linear and the kernel probe of every context of a round about every row."""
    view_of, judged, barred = asked_folds(case)
    n_orders = len(view_of)
    n_thresholds = thresholds_of(len(case.points))
    first = FIRST_STREAM + number * n_orders
    contexts = share_contexts(n_orders, n_thresholds, seed, *SHARES, first=first)
    asked: list[Agreement] = []
    for view in np.unique(view_of):
        of = np.flatnonzero(view_of == view)
        asked.append(
            _of_view(
                case.views[view], features[view], contexts.take(of), judged[of], barred[of],
                seed, n_jobs,
            )
        )  # fmt: skip
    margins = np.concatenate([one.margin for one in asked])
    scores = np.sum([one.scores for one in asked], axis=0)
    return Doubts.of(case.points, margins, scores)


def asked_folds(
    case: Case,
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
    """Of every order: its view, the folds it judges, (R, F), and those it never learns from.

    Two orders a fold where folds are held out; else four that judge every row.
    """
    asking = case.asking
    if asking is None:
        nobody = np.zeros((4, len(case.judging_view)), dtype=bool)
        return np.full(4, case.judging_view[0]), ~nobody, nobody
    folds = np.tile(np.arange(len(asking)), 2)
    return case.judging_view[folds], np.eye(len(asking), dtype=bool)[folds], ~asking[folds]


def thresholds_of(n_points: int) -> int:
    """Contexts an order."""
    return next(number for most, number in N_THRESHOLDS.items() if n_points <= most)


def _of_view(
    points: Points,
    kernel: FeatureMap,
    contexts: Contexts,
    judged: NDArray[np.bool_],
    barred: NDArray[np.bool_],
    seed: int,
    n_jobs: int | None,
) -> Agreement:
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
    return Agreement(
        np.mean([one.margin for one in said], axis=0),
        np.mean([one.scores for one in said], axis=0),
    )
