"""What a valuation will take, before it starts: operations over a measured rate.

Counts are of leading terms: Gram matrices, solves and products of the contexts, of the
coalition game and of the label doubts. Small matrices run below the rate of large ones,
so the rate is that of a product of the probe's own width. Good to a factor of about two.
"""

from __future__ import annotations

import time

import numpy as np

from hcdv.engines.local import n_workers, one_thread_each
from hcdv.hierarchy.tree import Tree
from hcdv.valuation.coalition_game import count_payoffs
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.doubts import asked_folds, thresholds_of
from hcdv.valuation.nested import context_shape
from hcdv.valuation.plan import ENUMERATED, ENUMERATED_DEEP, Plan
from hcdv.valuation.points import Case
from hcdv.valuation.probe import sketch_columns
from hcdv.valuation.utility import LeastSquares, Neighbours

_FACTORED = 12.0  # D³ of a factor, an inverse and two products, at their lower rate
_SOLVED = 4.0  # D³ of a solve, likewise
_PASSES = 1.5  # elementwise work on top of every product of rows
_STEP = 1.4e3  # of one step down one row's list of neighbours, which waits for memory
_CHECKED = 400  # payoffs that compare the surrogate with the metric


def estimated_seconds(case: Case, tree: Tree, plan: Plan) -> float:
    """Seconds of one round of Stage III on this machine; models trained anew not counted."""
    width = probe_width(case, plan.surrogate)
    work = operations(case, tree, plan)
    return sum(work.values()) / measured_rate(width) / n_workers(plan.n_jobs)


def operations(case: Case, tree: Tree, plan: Plan) -> dict[str, float]:
    """Floating-point operations by what they are for."""
    n, C = len(case.points), case.points.width
    D = probe_width(case, plan.surrogate)
    found = {"doubts": _doubts(case, D, C, n)}
    probed = isinstance(plan.utility, LeastSquares)
    payoffs = n_payoffs(tree, plan) * len(case.judges)
    if probed or plan.method == "nested":
        found["statistics"] = _gram(n, D, C)
    if probed:
        n_val = 0.0 if plan.metric in ("loss", "r2") else _mean_judge(case)
        one = _SOLVED * D**3 + 4.0 * D * D * C + 2.0 * _PASSES * n_val * D * C
        found["coalitions"] = (payoffs + _CHECKED) * (one + 2.0 * D * (D + C) * 8)
    elif isinstance(plan.utility, Neighbours):
        pairs = _mean_judge(case) * len(case.judges) * n
        found["neighbours"] = pairs * (2.0 * case.points.Z.shape[1] + 40.0 * np.log2(n + 1))
        found["coalitions"] = _STEP * payoffs * _mean_judge(case) * 2.0 * plan.utility.k
    if plan.method == "nested" and not isinstance(plan.utility, Neighbours):
        contexts = float(plan.n_contexts)
        columns = 2.0 * C + 2.0 * (sketch_columns(n, plan.n_contexts, D) or D)
        rows = 2.0 * _PASSES * n * D * columns
        n_orders, _ = context_shape(plan, len(case.judges))
        found["contexts"] = n_orders * _gram(n, D, C) + contexts * (_FACTORED * D**3 + rows)
    return found


def _doubts(case: Case, D: int, C: int, n: int) -> float:
    """Two probes, of widths d + 1 and D, in every view."""
    n_orders = len(asked_folds(case)[0])
    contexts = n_orders * thresholds_of(n)
    total = 0.0
    for width in {case.points.Z.shape[1] + 1, D}:
        columns = C + (sketch_columns(n, contexts, width) or width)
        rows = 2.0 * _PASSES * n * width * columns
        total += n_orders * _gram(n, width, C) + contexts * (8.0 * width**3 + rows)
    return total


def _gram(n: int, D: int, C: int) -> float:
    return float(n) * D * (D + 2.0 * C) * _PASSES


def _mean_judge(case: Case) -> float:
    return float(np.mean([len(judge.points) for judge in case.judges]))


def probe_width(case: Case, config: LeastSquares) -> int:
    """D of the probe's features."""
    n, d = case.points.Z.shape
    if config.features == "linear":
        return d + 1
    return 1 + (
        min(n, config.n_features) if config.features == "kernel" else config.n_features
    )


def n_payoffs(tree: Tree, plan: Plan) -> int:
    """Coalitions that will be paid for in one round."""
    if plan.method == "winter":
        return plan.n_permutations * (tree.n_rows + 1)
    if plan.method == "paper":
        k = tree.n_children[~tree.is_leaf].astype(np.float64)
        sampled = plan.n_permutations * np.maximum(k - 1, 0) + 2
        return int(np.minimum(2.0 ** np.minimum(k, 60), sampled).sum()) + 2
    upper = Upper.of(tree, rows_each=plan.game_rows)
    sampled = plan.n_permutations * (len(upper.players) - 1) + 2
    cheap = isinstance(plan.utility, LeastSquares | Neighbours)
    flat = upper.parent.max(initial=0) == 0
    allowed = max(sampled, (1 << (ENUMERATED if flat else ENUMERATED_DEEP)) * cheap)
    exact = count_payoffs(upper.parent)
    return exact if exact <= allowed else sampled


def measured_rate(width: int) -> float:
    """Operations a second of one thread, from products of the given width: milliseconds."""
    rng = np.random.default_rng(0)
    a, b = rng.random((max(8, width), 256)), rng.random((256, max(8, width)))
    one = 2.0 * 256 * a.shape[0] ** 2
    times = max(1, int(5e6 / one))
    best = 1e-9
    with one_thread_each():
        for _ in range(8):  # the best of some: a busy machine only ever slows them down
            began = time.perf_counter()
            for _ in range(times):
                _ = a @ b
            best = max(best, times * one / max(time.perf_counter() - began, 1e-9))
    return best
