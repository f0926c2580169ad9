"""The paper's guarantees held against a finished run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hcdv import guarantees
from hcdv.valuation.moments import BOUNDED_METRICS
from hcdv.valuation.utility import LeastSquares

SELECTED = 0.3  # the share of rows whose regret is told: the one of the main table

if TYPE_CHECKING:
    from hcdv.result import Run


def diagnosis(
    run: Run, confidence: float = 0.95
) -> dict[str, dict[str, float | bool | None]]:
    """Efficiency, deviation, symmetry, dummy, regret and cost of this run.

    `promised` is what the theory promises before a run (Hoeffding, bounded metrics alone),
    `estimated` what the standard errors say after it.
    """
    tree, plan = run.canonical_tree, run.plan
    found = run.valuation
    levels = range(1, tree.depth + 1) if tree.depth else range(1)
    cuts = [tree.cut(level) for level in levels]
    sums = tree.node_sums(found.values)
    bounded = isinstance(plan.utility, LeastSquares) and plan.metric in BOUNDED_METRICS
    bound = guarantees.payoff_bound(
        contrast_weight=plan.dispersion_weight, consistency_weight=plan.consistency_weight
    )
    widest = int(tree.n_children.max(initial=1))
    return guarantees.diagnose(
        surplus=run.surplus,
        total=float(found.values.sum()),
        level_stderr=[found.node_stderr[cut] for cut in cuts],
        level_totals=[float(np.sum(sums[cut])) for cut in cuts],
        n_permutations=plan.n_permutations,
        bound=bound if bounded else None,
        n_selected=round(SELECTED * run.n_rows),
        max_error=_max_error(run, confidence),
        confidence=confidence,
        block=2 * widest,
    )


def _max_error(run: Run, confidence: float) -> float:
    """ε_∞ of the points: the largest standard error times a quantile at δ/n."""
    from scipy.special import ndtri

    quantile = -ndtri((1 - confidence) / (2 * run.n_rows))
    return float(quantile * run.valuation.stderr.max(initial=0.0))
