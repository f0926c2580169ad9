"""method="winter": nested orders all the way down to the points, for reference.

Every permutation keeps every node together, the points of a leaf included, so all sums
and the dummy axiom hold exactly at every node and point in every permutation. The early
contexts of a point hold few labels, which is why it is not the default (see nested.py).

Cost: T·n solves of D³/3 flops for the probe; other utilities pay T·n payoffs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.local import ordered_map
from hcdv.hierarchy.tree import Tree
from hcdv.valuation.coalition_game import from_walks, walk
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.nested import Valuation, assemble, surrogate_check
from hcdv.valuation.orders import nested_orders, nesting
from hcdv.valuation.payoffs import MeanGame, coalition_game
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.probe import solve
from hcdv.valuation.statistics import Statistics
from hcdv.valuation.utility import LeastSquares

_STEPS = 128  # prefixes solved at once


def value_winter(
    case: Case, tree: Tree, plan: Plan, progress: Any = None, probe: Probe | None = None
) -> Valuation:
    """Value every point by the Winter value of the whole tree."""
    probe = probe or Probe.of(case, plan.surrogate, plan.metric, plan.seed)
    points = point_tree(tree)
    rng = np.random.default_rng([plan.seed, 4, 0])
    nested = nested_orders(points.parent, plan.n_permutations, rng)
    rows, notes = points.row_of_leaf, dict[str, Any]()
    if isinstance(plan.utility, LeastSquares):
        payoff = _probe_walks(case, probe, rows[nested.order], plan.n_jobs)
    else:
        code = np.empty(len(case.points), dtype=np.intp)
        code[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
        game = coalition_game(
            case, plan.utility, probe, plan.metric, code, len(rows),
            n_jobs=plan.n_jobs, seed=plan.seed, progress=progress, engine=plan.engine,
        )  # fmt: skip
        payoff = walk(game, nested.order)
        notes |= game.report() if isinstance(game, MeanGame) else {}
    estimate = from_walks(points.parent, nested, payoff)
    leaves = nesting(points.parent).leaves
    utility, error = np.empty(len(case.points)), np.empty(len(case.points))
    utility[rows[rows >= 0]] = estimate.value[leaves][rows >= 0]
    error[rows[rows >= 0]] = estimate.stderr[leaves][rows >= 0]
    found = assemble(case, tree, plan, probe, utility, estimate.value[0])
    as_player = estimate.value[points.node] + tree.node_sums(
        found.parts["dispersion"] + found.parts["consistency"]
    )
    notes |= {"n_payoffs": int(payoff.size), "coalitions_exact": False}
    if isinstance(plan.utility, LeastSquares):
        upper = Upper.of(tree, rows_each=plan.game_rows)
        game = probe.game(case, upper.code, len(upper.players), plan.n_jobs, keep_as="game")
        notes |= surrogate_check(game, plan, case, upper)
    return Valuation(
        found.parts, np.hypot(error, found.stderr),
        np.hypot(estimate.stderr[points.node], found.node_stderr), as_player,
        np.full(tree.n_nodes, np.nan), found.surplus, found.doubts, probe, notes,
    )  # fmt: skip


@dataclass(frozen=True)
class PointTree:
    """The tree with every row as a child of its leaf, renumbered breadth first."""

    parent: NDArray[np.intp]  # (m + n,)
    node: NDArray[np.intp]  # (m,)  new id of each node
    row_of_leaf: NDArray[
        np.intp
    ]  # (K,)  row at each leaf position; −1: a node without rows


def point_tree(tree: Tree) -> PointTree:
    """Hang the rows below their leaves, level by level, so that links ascend."""
    m, n = tree.n_nodes, tree.n_rows
    above = np.concatenate([tree.parent, tree.leaf_of_row]).astype(np.intp)
    level = np.concatenate([tree.level, tree.level[tree.leaf_of_row] + 1])
    new = np.zeros(m + n, dtype=np.intp)
    parent, so_far = [np.array([-1])], 1
    for depth in range(1, int(level.max()) + 1):
        here = np.flatnonzero(level == depth)
        here = here[np.argsort(new[above[here]], kind="stable")]
        new[here] = so_far + np.arange(len(here))
        so_far += len(here)
        parent.append(new[above[here]])
    links = np.concatenate(parent)
    old = np.empty(m + n, dtype=np.intp)
    old[new] = np.arange(m + n)
    leaves = old[nesting(links).leaves]
    return PointTree(links, new[:m], np.where(leaves >= m, leaves - m, -1))


def _probe_walks(
    case: Case, probe: Probe, orders: NDArray[np.intp], n_jobs: int | None
) -> NDArray[np.float64]:
    """Payoffs (T, n + 1) of every prefix of orders of rows, by running sums of statistics."""

    def one(order: NDArray[np.intp]) -> NDArray[np.float64]:
        total = np.zeros(len(order) + 1)
        for k, judge in enumerate(case.judges):
            points, features = case.views[judge.view], probe.features[judge.view]
            weight = judge.eligible[points.fold].astype(np.float64)
            if points.weight is not None:
                weight = weight * points.weight
            width = features.width
            so_far = Statistics(np.zeros((width, width)), np.zeros((width, points.width)))
            for start in range(0, len(order), _STEPS):
                rows = order[start : start + _STEPS]
                x = features(points.Z[rows], np.dtype(float))
                y = points.targets(rows, np.dtype(float))
                wx = x * np.where(rows >= 0, weight[rows], 0.0)[:, None]
                gram = so_far.gram + np.cumsum(wx[:, :, None] * x[:, None, :], axis=0)
                cross = so_far.cross + np.cumsum(wx[:, :, None] * y[:, None, :], axis=0)
                models = solve(Statistics(gram, cross), probe.ridge)
                into = slice(start + 1, start + 1 + len(rows))
                total[into] += probe.paid(case, k, models)
                so_far = Statistics(gram[-1], cross[-1])
            total[0] += probe.paid(case, k, np.zeros((1, width, points.width)))[0]
        return total / len(case.judges)

    return np.stack(list(ordered_map(one, orders, n_jobs)))
