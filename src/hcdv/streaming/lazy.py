"""Values right after an update: exact where it is cheap, corrected so that sums hold.

At once exact: the surplus; the coalitions of the first level, by enumeration; the flat
marginals s of rows that are new or labelled anew; dispersion. Deeper coalitions and all
other rows keep what they had, plus one additive correction a row, the same within a
coalition of the first level, so that every level sums to the new surplus. They are stale.

departs from paper: budgets are refreshed from the top down. Alg. 2 loops upwards, though
budgets flow down, and its reused values no longer sum to anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.tree import Tree
from hcdv.streaming.doubting import doubted_at_once
from hcdv.streaming.draft import Draft
from hcdv.valuation.coalition_game import shapley_exact
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.doubts import Doubts
from hcdv.valuation.nested import Valuation, added_up, flat_batches
from hcdv.valuation.plan import Plan
from hcdv.valuation.utility import LeastSquares

if TYPE_CHECKING:
    from hcdv.result import Run

FIRST_LEVEL = 8  # children of the root up to which their game is enumerated: 2⁸ payoffs
Floats = NDArray[np.float64]


def may_be_lazy(run: Run) -> bool:
    """Whether values can follow an update without all being computed anew."""
    plan = run.plan
    return (
        plan.method == "nested"
        and plan.semivalue == "shapley"
        and isinstance(plan.utility, LeastSquares)
        and plan.precision is None
        and plan.time_budget is None
        and len(run.case.views) == 1
        and run.case.asking is None
    )


def lazily_valued(run: Run, draft: Draft) -> Valuation:
    """The valuation of a draft that came from a run."""
    case, tree, plan, probe = draft.case, draft.tree, run.plan, draft.probe
    upper = Upper.of(tree, rows_each=plan.game_rows)
    flat, share = _as_before(run, draft, upper)
    touched = np.flatnonzero(draft.touched)
    spread = np.zeros(len(flat))
    if len(touched):
        batches = flat_batches(case, probe, plan, rows=touched)
        flat[touched] = batches.mean()
        spread[touched] = batches.variance()
    first, worth = _first_level(draft, upper, plan)
    utility = flat + share
    utility += _corrections(utility, first, worth)[first]
    doubts = doubted_at_once(run.valuation.doubts, draft.source, draft.touched, case, probe)
    was = run.valuation.stderr[np.maximum(draft.source, 0)]
    scale = plan.consistency_weight / len(case.points)
    stderr = np.where(draft.touched, np.sqrt(spread + scale**2 * doubts.variance), was)
    by_player = np.bincount(
        upper.code, weights=utility - flat, minlength=len(upper.players)
    )
    correction = np.asarray(by_player, dtype=np.float64)
    return completed(run, draft, utility, stderr, worth, correction, doubts)


def completed(
    run: Run, draft: Draft, utility: Floats, stderr: Floats, worth: Floats,
    correction: Floats, doubts: Doubts,
) -> Valuation:  # fmt: skip
    """The valuation of a draft whose rows have their utility: the rest follows by sums.

    worth: of the first level's coalitions. correction: of those that play.
    """
    tree, plan = draft.tree, run.plan
    parts, surplus = added_up(draft.case, plan, utility, float(worth.sum()), doubts)
    upper = Upper.of(tree, rows_each=plan.game_rows)
    everywhere = np.full(tree.n_nodes, np.nan)
    everywhere[upper.players] = correction
    return Valuation(
        parts, stderr, _node_errors(run, draft, stderr), _as_player(parts, tree, worth),
        everywhere, surplus, doubts, draft.probe, dict(run.valuation.notes),
    )  # fmt: skip


def _as_before(run: Run, draft: Draft, upper: Upper) -> tuple[Floats, Floats]:
    """s of every row, and its share of its coalition's correction; both as they were.

    Touched rows have no s yet, and the mean share of those they are among.
    """
    found = run.valuation
    before = Upper.of(run.canonical_tree, rows_each=run.plan.game_rows)
    per_row = found.correction[before.players] / np.maximum(before.n_inside, 1)
    old_share = per_row[before.code]
    there = draft.source >= 0
    at = draft.source[there]
    share, flat = np.zeros(len(there)), np.zeros(len(there))
    share[there] = old_share[at]
    flat[there] = found.parts["utility"][at] - old_share[at]
    n_players = len(upper.players)
    known = np.bincount(upper.code[there], minlength=n_players)
    total = np.bincount(upper.code[there], weights=share[there], minlength=n_players)
    share[~there] = (total / np.maximum(known, 1))[upper.code[~there]]
    return flat, share


def _first_level(draft: Draft, upper: Upper, plan: Plan) -> tuple[NDArray[np.intp], Floats]:
    """The first-level coalition of every row, and their values; the root's if they are many."""
    of_player, n_first = first_of(draft.tree, upper.players)
    game = draft.probe.game(
        draft.case, upper.code, len(upper.players), plan.n_jobs, keep_as="game",
        merged=of_player,
    )  # fmt: skip
    return of_player[upper.code], shapley_exact(game, n_first)


def first_of(tree: Tree, players: NDArray[np.intp]) -> tuple[NDArray[np.intp], int]:
    """The first-level coalition of every player, and how many are told apart: 1 if too many."""
    n_first = int(tree.n_children[0])
    if 0 < n_first <= FIRST_LEVEL:
        return _ancestors(tree, players) - 1, n_first
    return np.zeros(len(players), dtype=np.intp), 1


def _ancestors(tree: Tree, nodes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first-level ancestor of nodes below the root."""
    nodes = nodes.copy()
    while (deep := tree.level[nodes] > 1).any():
        nodes[deep] = tree.parent[nodes[deep]]
    return nodes


def _corrections(utility: Floats, first: NDArray[np.intp], worth: Floats) -> Floats:
    """What every row of a first-level coalition lacks."""
    size = np.bincount(first, minlength=len(worth))
    there = np.bincount(first, weights=utility, minlength=len(worth))
    return (worth - there) / np.maximum(size, 1)


def _as_player(parts: dict[str, Floats], tree: Tree, worth: Floats) -> Floats:
    """Of the root and the first level, where their game was played."""
    known = np.full(tree.n_nodes, np.nan)
    additive = tree.node_sums(parts["dispersion"] + parts["consistency"])
    known[0] = worth.sum() + additive[0]
    if len(worth) == tree.n_children[0]:
        known[1 : 1 + len(worth)] = worth + additive[1 : 1 + len(worth)]
    return known


def _node_errors(run: Run, draft: Draft, stderr: Floats) -> Floats:
    """Errors of nodes that were there before; of new ones, as if rows erred on their own."""
    assert run.living is not None
    own = np.sqrt(draft.tree.node_sums(stderr**2))
    before, now = run.living.node_key, draft.living.node_key
    by_key = np.argsort(before)
    at = np.minimum(np.searchsorted(before, now, sorter=by_key), len(before) - 1)
    same = before[by_key[at]] == now
    own[same] = run.valuation.node_stderr[by_key[at[same]]]
    return own
