"""Label consistency A of a case: which contexts ask, in which view, and what it is worth.

A_i = mean excess doubt − excess doubt of row i, so that A(D) = A(∅) = 0: rows that are
probably wrong pay those that are not, and what the data are worth together stays M + λΔ̄.
A(S) = (1/n)·Σ_{i∈S} A_i is additive, so its Shapley value is its own summand A_i/n and
every axiom holds. Rows doubted less than half as much as rows of their label on average are
not told apart: among them the model's own say decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.local import ordered_map
from hcdv.valuation.calibration import Curve, calibrated
from hcdv.valuation.calibration import margins as margins_of
from hcdv.valuation.consistency import Agreement, agreement, context_models
from hcdv.valuation.contexts import Contexts, share_contexts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.points import Case, Points, class_weights
from hcdv.valuation.probe import sketch_columns
from hcdv.valuation.statistics import Statistics, context_statistics

SHARES = (0.3, 0.9)  # contexts of 30-90 % of the rows (evidence, first round)
# points up to → contexts an order, with a probe of each
N_THRESHOLDS = {200_000: 8, 2**63: 4}
N_ORDERS = 4  # R, where one view serves all folds
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
        variance = _variance(slope, margins, lambda row: row)
        return cls(excess.mean() - excess, variance, chance, margins, scores, curve, slope)

    def joined(self, more: Doubts, rounds: int, points: Points) -> Doubts:
        """The mean with one further round, `rounds` of them in all."""
        share = 1.0 / rounds
        scores = (1 - share) * self.scores + share * more.scores
        return Doubts.of(points, np.concatenate([self.margins, more.margins]), scores)

    def variance_of(self, of: Linear) -> NDArray[np.float64]:
        """Variance of sums of A_i, which `of` forms."""
        return _variance(self.slope, self.margins, of)


def _variance(
    slope: NDArray[np.floating], margins: NDArray[np.floating], of: Linear
) -> NDArray[np.float64]:
    """Variance of sums of A_i, from independent orders.

    To first order: a margin off by δ moves A_i by its slope times δ. Orders are visited one
    by one, so that memory is that of one.
    """
    n_asked = int(np.count_nonzero(~np.isnan(margins), axis=0).max())  # alike for all rows
    steps = moved(slope, margins)
    square = sum(of(row - row.mean()) ** 2 for row in steps)  # A_i sum to 0
    return np.asarray(square / max(1, n_asked * (n_asked - 1)))


def moved(
    slope: NDArray[np.floating], margins: NDArray[np.floating]
) -> Iterator[NDArray[np.float64]]:
    """How far the margins of each order alone move A_i, but for a constant."""
    asked = np.count_nonzero(~np.isnan(margins), axis=0)
    mean = np.nansum(margins, axis=0, dtype=np.float64) / asked
    return (slope * np.nan_to_num(row - mean) for row in margins)


def label_doubts(
    case: Case, features: list[FeatureMap], seed: int, n_jobs: int | None, number: int = 0
) -> Doubts:
    """Ask the linear and the kernel probe of every context of a round about every row."""
    view_of, judged, barred = asked_folds(case)
    contexts = asked_contexts(len(case.points), seed, len(view_of), number)
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


def asked_contexts(
    n_points: int, seed: int, n_orders: int = N_ORDERS, number: int = 0
) -> Contexts:
    """The contexts of one round whose models are asked about labels."""
    first = FIRST_STREAM + number * n_orders
    return share_contexts(n_orders, thresholds_of(n_points), seed, *SHARES, first=first)


def asked_folds(
    case: Case,
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
    """Of every order: its view, the folds it judges, (R, F), and those it never learns from.

    Two orders a fold where folds are held out; else N_ORDERS that judge every row.
    """
    asking = case.asking
    if asking is None:
        nobody = np.zeros((N_ORDERS, len(case.judging_view)), dtype=bool)
        return np.full(N_ORDERS, case.judging_view[0]), ~nobody, nobody
    folds = np.tile(np.arange(len(asking)), 2)
    return case.judging_view[folds], np.eye(len(asking), dtype=bool)[folds], ~asking[folds]


def thresholds_of(n_points: int) -> int:
    """Contexts an order."""
    return next(number for most, number in N_THRESHOLDS.items() if n_points <= most)


def probes_of(kernel: FeatureMap) -> list[tuple[FeatureMap, float]]:
    """The probes that are asked, with ρ per row: a linear one, and the run's own."""
    linear = FeatureMap("linear", kernel.n_inputs), LINEAR_RIDGE
    return [linear] if kernel.kind == "linear" else [linear, (kernel, KERNEL_RIDGE)]


def taught(
    stats: Statistics,
    contexts: Contexts,
    ridge: float,
    n_points: int,
    width: int,
    seed: int,
    n_jobs: int | None,
) -> list[tuple[NDArray[np.floating], NDArray[np.floating]]]:
    """The models of every context, by order, from the statistics of all n points."""
    sketch = sketch_columns(n_points, contexts.p.size, width)

    def teach(order: int) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        rng = np.random.default_rng([seed, 3, int(contexts.stream[order])])
        own = Statistics(stats.gram[order], stats.cross[order])
        return context_models(own, ridge, sketch, rng)

    return list(ordered_map(teach, range(contexts.n_orders), n_jobs))


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
    said: list[Agreement] = []
    for features, ridge in probes_of(kernel):
        stats = context_statistics(
            points, features, contexts, barred, weight=weight, n_jobs=n_jobs
        )
        models = taught(
            stats, contexts, ridge * weight.sum(), len(points), features.width, seed, n_jobs
        )
        said.append(
            agreement(
                points, features, contexts, models, judged, barred, weight, n_jobs=n_jobs
            )
        )
    return Agreement.mean(said)
