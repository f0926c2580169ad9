"""method="paper": the paper's Algorithm 1, made well-defined by one reading, stated here.

- The game at a node is played among its children alone, v on their unions (L323-329):
  read level-wide, Alg. 1 l. 9 multiplies by 1 and the tree has no effect.
- v is M + λ·Δ̄_c with the ratio normaliser of Eq. (18), and κ = 0 unless asked for.
- Children are rescaled to their parent's pot by the printed ratio (Alg. 1 l. 9) when their
  sum has the pot's sign and is safely away from zero. departs from paper: otherwise the
  pot's missing part is added equally, or, where the sum vanishes, shared by ω (Eq. (14)),
  as a ratio there would explode or reverse ranks. Each such node is counted.
- ω uses v of the child itself, v_{ℓ+1}, where l. 23 prints v_ℓ (a type error).
- A node of up to 14 children is enumerated where that costs no more than T permutations.
- Leaves share equally (l. 15), or are enumerated for |G| ≤ 12; "exact for |G| ≤ 128" would
  be 2^128 evaluations.
- C_0 is {D} with value v(D) − v(∅): the loop starts below it.
Parts are split with the factors that v itself fixed, so that they add up to the values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.dispersion import class_sums, cross_label_dispersion
from hcdv.hierarchy.tree import Tree
from hcdv.valuation.coalition_game import Game, shapley_exact, winter_sampled
from hcdv.valuation.nested import Valuation, assemble
from hcdv.valuation.orders import flat
from hcdv.valuation.payoffs import MeanGame, added, coalition_game
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case
from hcdv.valuation.pointwise import Probe

_ENUMERATED_LEAF = 12
_SAFE_SUM = 0.05  # of Σ|ψ̂|: below this share a ratio of sums is noise


@dataclass
class _Parts:
    """Values of nodes or points by part: utility M and dispersion λΔ̄."""

    utility: NDArray[np.float64]
    dispersion: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        return self.utility + self.dispersion


@dataclass
class _Walk:
    """State of one run of Algorithm 1."""

    case: Case
    tree: Tree
    plan: Plan
    probe: Probe
    nodes: _Parts
    points: _Parts
    raw: NDArray[np.float64]  # (m,)  ψ̂ before it was fitted to the pot
    stderr: NDArray[np.float64]  # (m,)
    counts: dict[str, int] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(
        default_factory=list
    )  # of models trained, by game

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def value_paper(
    case: Case, tree: Tree, plan: Plan, progress: Any = None, probe: Probe | None = None
) -> Valuation:
    """Value points and nodes by Algorithm 1."""
    probe = probe or Probe.of(case, plan.surrogate, plan.metric, plan.seed)
    m, n = tree.n_nodes, tree.n_rows
    walk = _Walk(
        case, tree, plan, probe, _Parts(np.zeros(m), np.zeros(m)),
        _Parts(np.zeros(n), np.zeros(n)), np.full(m, np.nan), np.zeros(m),
    )  # fmt: skip
    _root(walk, progress)
    for node in np.flatnonzero(~tree.is_leaf):
        if tree.size[node]:
            _split_node(walk, int(node), progress)
    for leaf in tree.leaves:
        if tree.size[leaf]:
            _split_leaf(walk, int(leaf), progress)
    found = assemble(case, tree, plan, probe, walk.points.utility, walk.nodes.utility[0])
    parts = found.parts | {"dispersion": walk.points.dispersion}
    surplus = found.surplus | {"dispersion": float(walk.nodes.dispersion[0])}
    spread = walk.stderr[tree.leaf_of_row] / tree.size[tree.leaf_of_row]
    consistency = tree.node_sums(found.parts["consistency"])
    notes = {
        "reading": "siblings, ratio to the parent's pot",
        **walk.counts,
        **added(walk.reports),
    }
    return Valuation(
        parts, np.hypot(spread, found.stderr), np.hypot(walk.stderr, found.node_stderr),
        walk.raw + consistency, walk.nodes.total - walk.raw, surplus, found.doubts, probe, notes,
    )  # fmt: skip


def _games(
    walk: _Walk, code: NDArray[np.intp], n_groups: int, progress: Any
) -> tuple[Game, Game]:
    """M and λ·Δ̄_c (ratio form) of unions of groups; rows with code n_groups are in none."""
    case, plan = walk.case, walk.plan
    of_utility = coalition_game(
        case, plan.utility, walk.probe, plan.metric, code, n_groups + 1,
        n_jobs=plan.n_jobs, seed=plan.seed, progress=progress, engine=plan.engine,
    )  # fmt: skip

    place = len(walk.reports)
    walk.reports.append({})

    def utility(masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        paid = of_utility(np.column_stack([masks, np.zeros(len(masks), dtype=bool)]))
        if isinstance(of_utility, MeanGame):
            walk.reports[place] = of_utility.report()
        return paid

    points = case.points
    if not points.n_classes:
        return utility, lambda masks: np.zeros(len(masks))
    by_group = [
        class_sums(points.Z[code == g], points.target[code == g], points.n_classes)
        for g in range(n_groups)
    ]
    counts = np.stack([count for count, _ in by_group]).astype(np.float64)
    sums = np.stack([total for _, total in by_group])

    def dispersion(masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        member = masks.astype(np.float64)
        union = np.tensordot(member, sums, 1)
        return plan.dispersion_weight * cross_label_dispersion(
            member @ counts, union, ratio=True
        )

    return utility, dispersion


def _root(walk: _Walk, progress: Any) -> None:
    everyone = np.zeros(len(walk.case.points), dtype=np.intp)
    ends = np.array([[False], [True]])
    utility, dispersion = (
        np.diff(game(ends))[0] for game in _games(walk, everyone, 1, progress)
    )
    walk.nodes.utility[0], walk.nodes.dispersion[0] = utility, dispersion
    walk.raw[0] = utility + dispersion


def _split_node(walk: _Walk, node: int, progress: Any) -> None:
    """Alg. 1 l. 6-9 for one parent: play the children's game, fit it to the parent's pot."""
    children = walk.tree.children(node)
    code = np.full(len(walk.case.points), len(children), dtype=np.intp)
    for position, child in enumerate(children):
        code[walk.tree.rows(int(child))] = position
    games = _games(walk, code, len(children), progress)
    seed = [walk.plan.seed, 7, node]
    played = [_played(game, len(children), walk.plan, seed) for game in games]
    psi = _Parts(played[0][0], played[1][0])
    walk.raw[children] = psi.total
    walk.stderr[children] = np.hypot(played[0][1], played[1][1])
    pot = _Parts(walk.nodes.utility[[node]], walk.nodes.dispersion[[node]])
    alone = np.eye(len(children), dtype=bool)
    worth = games[0](alone) + games[1](alone)
    fitted = _fitted(walk, psi, pot, worth)
    walk.nodes.utility[children] = fitted.utility
    walk.nodes.dispersion[children] = fitted.dispersion


def _played(
    game: Game, n_players: int, plan: Plan, seed: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if 2**n_players <= plan.n_permutations * (n_players + 1):
        return shapley_exact(game, n_players), np.zeros(n_players)
    rng = np.random.default_rng(seed)
    estimate = winter_sampled(
        game, flat(n_players), plan.n_permutations, rng, independent=True
    )
    return estimate.value[1:], estimate.stderr[1:]


def _fitted(walk: _Walk, psi: _Parts, pot: _Parts, worth: NDArray[np.float64]) -> _Parts:
    """Bring ψ̂ to the pot: ratio, else addition, else ω; the parts by factors frozen from v."""
    total, budget = float(psi.total.sum()), float(pot.total[0])
    size = float(np.abs(psi.total).sum())
    if total * budget > 0 and abs(total) > _SAFE_SUM * size:
        walk.count("nodes_by_ratio")
        factor = budget / total
        scaled = _Parts(factor * psi.utility, factor * psi.dispersion)
        # The pot's own parts may differ from the children's: v alone was rescaled.
        return _with_part_sums(scaled, pot)
    omega = np.maximum(worth, 0.0)
    if size == 0 and omega.sum() > 0:
        walk.count("nodes_by_omega")
        omega = omega / omega.sum()
        return _Parts(omega * pot.utility, omega * pot.dispersion)
    walk.count("nodes_by_addition")
    return _with_part_sums(psi, pot)


def _with_part_sums(psi: _Parts, pot: _Parts) -> _Parts:
    """Move mass between the parts equally, so that each sums to its pot and v is as fitted."""
    k = len(psi.utility)
    return _Parts(
        psi.utility + (pot.utility - psi.utility.sum()) / k,
        psi.dispersion + (pot.dispersion - psi.dispersion.sum()) / k,
    )


def _split_leaf(walk: _Walk, leaf: int, progress: Any) -> None:
    """Alg. 1 l. 11-17: equal shares, or exact Shapley of up to 12 points."""
    rows = walk.tree.rows(leaf)
    pot = _Parts(walk.nodes.utility[[leaf]], walk.nodes.dispersion[[leaf]])
    if not 1 < len(rows) <= _ENUMERATED_LEAF:
        walk.points.utility[rows] = pot.utility / len(rows)
        walk.points.dispersion[rows] = pot.dispersion / len(rows)
        return
    code = np.full(len(walk.case.points), len(rows), dtype=np.intp)
    code[rows] = np.arange(len(rows))
    games = _games(walk, code, len(rows), progress)
    psi = _Parts(*(shapley_exact(game, len(rows)) for game in games))
    alone = np.eye(len(rows), dtype=bool)
    fitted = _fitted(walk, psi, pot, games[0](alone) + games[1](alone))
    walk.points.utility[rows], walk.points.dispersion[rows] = (
        fitted.utility,
        fitted.dispersion,
    )
    walk.count("leaves_enumerated")
