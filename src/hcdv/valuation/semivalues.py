"""Banzhaf, Beta and leave-one-out values of the points, from the same contexts.

Only Shapley's value adds up to the surplus: under another semivalue a coalition is worth
the sum of its points, and the root's value differs from v(D) − v(∅).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hcdv.errors import ParameterError
from hcdv.hierarchy.tree import Tree
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.nested import Valuation, assemble, flat_batches, surrogate_check
from hcdv.valuation.payoffs import coalition_game
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.utility import LeastSquares


def value_semivalue(
    case: Case, tree: Tree, plan: Plan, progress: Any = None, probe: Probe | None = None
) -> Valuation:
    """Value points by a semivalue of the least-squares probe."""
    if not isinstance(plan.utility, LeastSquares):
        raise ParameterError(
            "semivalue", plan.semivalue, '"shapley" for this utility',
            'Use utility="kernel", "fourier" or "linear" for other semivalues.',
        )  # fmt: skip
    probe = probe or Probe.of(case, plan.utility, plan.metric, plan.seed)
    flat = flat_batches(case, probe, plan)
    upper = Upper.of(tree, rows_each=plan.game_rows)
    game = coalition_game(
        case, plan.utility, probe, plan.metric, upper.code, len(upper.players),
        n_jobs=plan.n_jobs, progress=progress,
    )  # fmt: skip
    everyone = np.ones((1, len(upper.players)), dtype=bool)
    ends = game(np.concatenate([~everyone, everyone]))
    found = assemble(case, tree, plan, probe, flat.mean(), ends[1] - ends[0])
    scale = pair_scale(plan.semivalue)
    parts = found.parts | {"dispersion": scale * found.parts["dispersion"]}
    nothing = np.full(tree.n_nodes, np.nan)
    notes = {
        "semivalue": str(plan.semivalue), "n_contexts": plan.n_contexts,
        **surrogate_check(game, plan, case, upper),
    }  # fmt: skip
    return Valuation(
        parts,
        np.sqrt(flat.variance() + found.stderr**2),
        np.sqrt(flat.variance(tree.node_sums) + found.node_stderr**2),
        nothing, nothing, found.surplus, found.doubts, probe, notes,
    )  # fmt: skip


def pair_scale(semivalue: str | tuple[float, float]) -> float:
    """How a pair's dividend is paid relative to Shapley's half: twice the mean of p."""
    if isinstance(semivalue, str):
        return {"shapley": 1.0, "banzhaf": 1.0, "loo": 2.0}[semivalue]
    alpha, beta = semivalue
    return 2.0 * beta / (alpha + beta)
