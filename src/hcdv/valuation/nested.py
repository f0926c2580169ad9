"""The default method: coalition totals from nested orders, points by flat marginals.

φ_i = ψ_G/|G| + (s_i − mean_G s) + λ·φ_i(Δ̄) + κ·A_i/n        for i in the coalition G

ψ_G is the Winter value of G at the game level, s the flat marginals of `marginals.py` (or
a closed form), and dispersion and consistency are exact. Sums are exact at every node:
deeper nodes are worth the sum of their points. Why not nested marginals at points: their
early contexts hold one label, where a wrong one looks useful (noise AUROC .37-.75); why
not s alone: it forgets coverage (top-30 % accuracy .60 against .80).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.dispersion import class_sums, cross_label_dispersion, dispersion_shapley
from hcdv.hierarchy.tree import Tree
from hcdv.valuation.coalition_game import Game
from hcdv.valuation.coalitions import CoalitionValues, Upper, coalition_values
from hcdv.valuation.contexts import Contexts, semivalue_contexts
from hcdv.valuation.doubts import Doubts, label_doubts
from hcdv.valuation.payoffs import MeanGame, coalition_game
from hcdv.valuation.plan import N_ORDERS, THRESHOLDS, Deadline, Plan
from hcdv.valuation.points import Case
from hcdv.valuation.pointwise import Batches, Probe, neighbour_values
from hcdv.valuation.probe import ProbeGame
from hcdv.valuation.utility import LeastSquares, Neighbours

PARTS = ("utility", "dispersion", "consistency")


@dataclass(frozen=True)
class Valuation:
    """What Stage III found: values of points and nodes with errors, and how it went."""

    parts: dict[str, NDArray[np.float64]]  # each (n,); they sum to the values
    stderr: NDArray[np.float64]  # (n,)
    node_stderr: NDArray[np.float64]  # (m,)
    as_player: NDArray[np.float64]  # (m,)  nan below the game level
    correction: NDArray[np.float64]  # (m,)  ψ_G − Σ_G s; nan elsewhere
    surplus: dict[str, float]  # v(D) − v(∅) by part
    doubts: Doubts
    probe: Probe
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> NDArray[np.float64]:
        """φ, (n,)."""
        return np.sum([self.parts[name] for name in PARTS], axis=0)


@dataclass
class Estimate:
    """ψ of the game level and flat batches of the points, refined round by round."""

    coalitions: CoalitionValues
    flat: Batches
    doubts: Doubts

    def mean_stderr(self, upper: Upper, consistency_weight: float) -> float:
        """Mean standard error of the values."""
        scale = consistency_weight / len(upper.code)
        variance = self.point_variance(upper) + scale**2 * self.doubts.variance
        return float(np.sqrt(variance).mean())

    def point_variance(self, upper: Upper) -> NDArray[np.float64]:
        """Variance of the utility part of every point."""
        own = self.flat.variance(lambda row: centred(row, upper))
        share = self.coalitions.stderr[upper.players] / np.maximum(upper.n_inside, 1)
        return own + share[upper.code] ** 2


def centred(scores: NDArray[np.floating], upper: Upper) -> NDArray[np.float64]:
    """s − mean_G s, (n,)."""
    sums = np.bincount(upper.code, weights=scores, minlength=len(upper.players))
    return scores - (sums / np.maximum(upper.n_inside, 1))[upper.code]


def value_nested(
    case: Case, tree: Tree, plan: Plan, progress: Any = None, probe: Probe | None = None
) -> Valuation:
    """Value every point and node: the whole of the default method."""
    probe = probe or Probe.of(case, plan.surrogate, plan.metric, plan.seed)
    upper = Upper.of(tree, rows_each=plan.game_rows)
    game = coalition_game(
        case, plan.utility, probe, plan.metric, upper.code, len(upper.players),
        n_jobs=plan.n_jobs, seed=plan.seed, progress=progress, engine=plan.engine, keep_as="game",
    )  # fmt: skip
    estimate = _estimated(case, game, probe, upper, plan)
    s = estimate.flat.mean()
    psi = estimate.coalitions.value
    utility = (psi[upper.players] / np.maximum(upper.n_inside, 1))[upper.code] + centred(
        s, upper
    )
    found = assemble(case, tree, plan, probe, utility, psi[0], estimate.doubts)
    variance = estimate.point_variance(upper) + found.stderr**2
    notes = {
        "game_level_coalitions": len(upper.players),
        "coalitions_exact": estimate.coalitions.is_exact,
        "n_payoffs": estimate.coalitions.n_payoffs,
        "n_contexts": _n_contexts(plan, estimate, len(case.judges)),
        "sum_before_correction": float(s.sum()),
        "stderr_before_correction": float(
            np.sqrt(estimate.flat.variance(lambda row: row.sum(dtype=np.float64)))
        ),
        **surrogate_check(game, plan, case, upper),
        **(game.report() if isinstance(game, MeanGame) else {}),
    }
    node_variance = _node_variance(tree, upper, estimate) + found.node_stderr**2
    return Valuation(
        found.parts, np.sqrt(variance), np.sqrt(node_variance),
        _spread(tree, upper, estimate.coalitions.as_player + _additive(found, tree, upper)),
        _corrections(tree, upper, psi, s), found.surplus, found.doubts, probe, notes,
    )  # fmt: skip


def context_shape(plan: Plan, n_judges: int) -> tuple[int, int]:
    """Orders R, as many for every judge, and contexts an order L: R·L is about T."""
    base = N_ORDERS if N_ORDERS % (2 * n_judges) == 0 else 2 * n_judges
    n_orders = base * max(1, round(plan.n_contexts / (base * THRESHOLDS)))
    return n_orders, max(1, plan.n_contexts // n_orders)


def _n_contexts(plan: Plan, estimate: Estimate, n_judges: int) -> int:
    if isinstance(plan.utility, Neighbours):
        return 0
    return len(estimate.flat.value) * context_shape(plan, n_judges)[1]


def _estimated(case: Case, game: Game, probe: Probe, upper: Upper, plan: Plan) -> Estimate:
    """Sample in rounds until the plan is content; round 0 alone where it asks nothing more."""
    deadline = Deadline(plan)

    def coalitions(number: int) -> CoalitionValues:
        rng = np.random.default_rng([plan.seed, 4, number])
        cheap = isinstance(plan.utility, LeastSquares | Neighbours)
        return coalition_values(game, upper, plan.n_permutations, rng, cheap=cheap)

    def doubts(number: int) -> Doubts:
        return label_doubts(case, probe.features, plan.seed, plan.n_jobs, number)

    now = Estimate(coalitions(0), flat_batches(case, probe, plan), doubts(0))
    sampled = not now.coalitions.is_exact
    open_form, doubted = (
        not isinstance(plan.utility, Neighbours),
        plan.consistency_weight > 0,
    )
    if not (sampled or open_form or doubted):
        return now
    while deadline.another(partial(now.mean_stderr, upper, plan.consistency_weight)):
        number = deadline.rounds
        now = Estimate(
            now.coalitions.joined(coalitions(number)) if sampled else now.coalitions,
            now.flat.joined(flat_batches(case, probe, plan, number))
            if open_form
            else now.flat,
            now.doubts.joined(doubts(number), number + 1, case.points)
            if doubted
            else now.doubts,
        )
    return now


def flat_batches(
    case: Case, probe: Probe, plan: Plan, number: int = 0,
    rows: NDArray[np.intp] | None = None,
) -> Batches:  # fmt: skip
    """Flat values of the points: closed form for neighbours, contexts of the probe else.

    rows: those that the probe is asked about; None: all.
    """
    if isinstance(plan.utility, Neighbours) and plan.semivalue == "shapley":
        value = neighbour_values(case, plan.utility, plan.n_jobs)
        return Batches(value[None, :], np.zeros(1, dtype=np.intp))
    contexts = flat_contexts(plan, len(case.judges), number)
    return probe.batches(
        case, contexts, plan.seed, plan.n_jobs, keep=number == 0, rows=rows
    )


def flat_contexts(plan: Plan, n_judges: int, number: int = 0) -> Contexts:
    """The contexts of one round that are asked about every point."""
    n_orders, n_thresholds = context_shape(plan, n_judges)
    if plan.semivalue == "loo":
        n_orders = n_judges  # everyone is the one context: ask each judge once
    return semivalue_contexts(
        n_orders, n_thresholds, plan.seed, number * n_orders, plan.semivalue
    )


def assemble(
    case: Case, tree: Tree, plan: Plan, probe: Probe, utility: NDArray[np.float64],
    utility_surplus: float, doubts: Doubts | None = None,
) -> Valuation:  # fmt: skip
    """Add the two exact parts to a utility part; stderr holds the consistency part's alone."""
    n = len(case.points)
    if doubts is None:
        doubts = label_doubts(case, probe.features, plan.seed, plan.n_jobs)
    parts, surplus = added_up(case, plan, utility, utility_surplus, doubts)
    scale = plan.consistency_weight / n
    spread = doubts.variance_of(tree.node_sums)
    nothing = np.full(tree.n_nodes, np.nan)
    return Valuation(
        parts, scale * np.sqrt(doubts.variance), scale * np.sqrt(spread), nothing, nothing,
        surplus, doubts, probe,
    )  # fmt: skip


def added_up(
    case: Case,
    plan: Plan,
    utility: NDArray[np.float64],
    utility_surplus: float,
    doubts: Doubts,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, float]]:
    """The three parts of every value, and of the surplus."""
    parts = {
        "utility": utility,
        "dispersion": plan.dispersion_weight * dispersion_values(case),
        "consistency": plan.consistency_weight * doubts.agreement / len(case.points),
    }
    surplus = {
        "utility": float(utility_surplus),
        "dispersion": plan.dispersion_weight * dispersion_of_all(case),
        "consistency": 0.0,  # A(D) = 0
    }
    return parts, surplus


def dispersion_values(case: Case) -> NDArray[np.float64]:
    """Exact values of Δ̄_c over |P(D)|; zero for regression, which has no labels to cross."""
    points = case.points
    if not points.n_classes:
        return np.zeros(len(points))
    return dispersion_shapley(points.Z, points.target, points.n_classes)


def dispersion_of_all(case: Case) -> float:
    """Δ̄_c(D)."""
    points = case.points
    if not points.n_classes:
        return 0.0
    counts, sums = class_sums(points.Z, points.target, points.n_classes)
    return float(cross_label_dispersion(counts, sums, ratio=True))


def _node_variance(tree: Tree, upper: Upper, estimate: Estimate) -> NDArray[np.float64]:
    """Variance of the utility part of every node."""
    inside = estimate.flat.variance(lambda row: tree.node_sums(centred(row, upper)))
    return node_variance(inside, tree, upper, estimate.coalitions.stderr, tree.size)


def node_variance(
    inside: NDArray[np.float64], tree: Tree, upper: Upper, stderr: NDArray[np.float64],
    size: NDArray[np.integer],
) -> NDArray[np.float64]:  # fmt: skip
    """Variance of nodes: their share of ψ_G, and `inside`, that of their centred sums."""
    inside[: len(upper.parent)] = stderr**2
    deeper = np.arange(len(upper.parent), tree.n_nodes)
    if len(deeper):
        filled = deeper[size[deeper] > 0]
        player = upper.code[tree.order[tree.start[filled]]]
        share = size[filled] / upper.n_inside[player]
        inside[filled] += (share * stderr[upper.players[player]]) ** 2
    return inside


def _additive(found: Valuation, tree: Tree, upper: Upper) -> NDArray[np.float64]:
    sums = tree.node_sums(found.parts["dispersion"] + found.parts["consistency"])
    return sums[: len(upper.parent)]


def _spread(tree: Tree, upper: Upper, of_upper: NDArray[np.float64]) -> NDArray[np.float64]:
    everywhere = np.full(tree.n_nodes, np.nan)
    everywhere[: len(upper.parent)] = of_upper
    return everywhere


def _corrections(
    tree: Tree, upper: Upper, psi: NDArray[np.float64], s: NDArray[np.float64]
) -> NDArray[np.float64]:
    sums = np.bincount(upper.code, weights=s, minlength=len(upper.players))
    everywhere = np.full(tree.n_nodes, np.nan)
    everywhere[upper.players] = psi[upper.players] - sums
    return everywhere


def surrogate_check(
    game: Game, plan: Plan, case: Case, upper: Upper, n_coalitions: int = 200
) -> dict[str, float]:
    """Spearman correlation of the surrogate that ranks points with the metric asked for."""
    from scipy.stats import spearmanr

    if not isinstance(game, ProbeGame) or len(upper.players) < 2:
        return {}
    rng = np.random.default_rng([plan.seed, 5])
    share = rng.random((n_coalitions, 1))
    masks = rng.random((n_coalitions, len(upper.players))) < share
    metric = plan.metric
    if metric in ("loss", "r2"):
        metric = "accuracy" if case.points.n_classes else "r2"
    surrogate, asked = game.payoffs(masks, "loss", metric)
    if np.ptp(surrogate) == 0 or np.ptp(asked) == 0:
        return {}
    return {f"spearman_surrogate_{metric}": float(spearmanr(surrogate, asked).statistic)}
