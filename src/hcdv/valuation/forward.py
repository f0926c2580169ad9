"""Batched forward selection on v: add, again and again, the rows that help the set most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcdv.valuation.contexts import Contexts
from hcdv.valuation.marginals import point_marginals
from hcdv.valuation.nested import Valuation
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case
from hcdv.valuation.probe import coefficients, sketch_columns
from hcdv.valuation.statistics import Statistics, group_statistics

N_STEPS = (
    24  # growing batches: early rows decide most, late ones hardly depend on each other
)


def forward_selection(
    case: Case, plan: Plan, valuation: Valuation, n_kept: int
) -> NDArray[np.intp]:
    """Rows chosen in batches by their marginal to v given those chosen before."""
    n = len(case.points)
    chosen = np.zeros(n, dtype=bool)
    consistency = valuation.parts["consistency"]
    for total in _batch_ends(n_kept):
        gain = utility_gain(case, plan, valuation, chosen) + consistency
        gain += plan.dispersion_weight * dispersion_gain(case, chosen)
        gain[chosen] = -np.inf
        batch = np.argsort(-gain, kind="stable")[: total - int(chosen.sum())]
        chosen[batch] = True
    return np.flatnonzero(chosen)


def _batch_ends(n_kept: int) -> NDArray[np.intp]:
    steps = min(N_STEPS, n_kept)
    ends = np.round(n_kept * (np.arange(1, steps + 1) / steps) ** 2).astype(np.intp)
    return np.unique(np.maximum(ends, np.arange(1, steps + 1)))


def utility_gain(
    case: Case, plan: Plan, valuation: Valuation, chosen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """M(S ∪ i) − M(S) of every row, the mean over judges; 0 for a judge's own rows."""
    probe, n = valuation.probe, len(case.points)
    nobody = Contexts(plan.seed, np.zeros(1, np.intp), np.zeros((1, 1)), np.ones((1, 1)))
    total = np.zeros(n)
    for k, judge in enumerate(case.judges):
        points, features = case.views[judge.view], probe.features[judge.view]
        code = np.where(chosen & case.taught(judge), 0, 1)
        stats = group_statistics(
            points, features, code, 1, weight=points.weight, n_jobs=plan.n_jobs
        )
        sketch = sketch_columns(n, 1, features.width)
        rng = np.random.default_rng([plan.seed, 8, int(chosen.sum())])
        asked = coefficients(
            Statistics(stats.gram, stats.cross), probe.moments[k], probe.ridge, sketch, rng
        )
        barred = ~judge.eligible[None, :]
        total += point_marginals(
            points,
            features,
            nobody,
            [asked],
            [probe.moments[k]],
            barred,
            n_jobs=plan.n_jobs,
        )[0]
    return total / len(case.judges)


def dispersion_gain(case: Case, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Δ̄(S ∪ i) − Δ̄(S) with the constant normaliser: Σ_{j ∈ S, y_j ≠ y_i}(1 − z_i·z_j)/|P(D)|."""
    points = case.points
    if not points.n_classes:
        return np.zeros(len(points))
    classes = np.arange(points.n_classes)
    one_hot = (points.target[:, None] == classes).astype(np.float64)
    count = one_hot.sum(axis=0)
    pairs = (count.sum() ** 2 - np.sum(count**2)) / 2.0
    inside = one_hot * chosen[:, None]
    size, sums = inside.sum(axis=0), inside.T @ points.Z  # (C,), (C, d)
    others = size.sum() - size[points.target]
    pull = np.einsum("nd,nd->n", points.Z, sums.sum(axis=0) - sums[points.target])
    return (others - pull) / max(pairs, 1.0)
