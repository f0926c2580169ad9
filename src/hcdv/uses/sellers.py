"""The game among sellers: what the rows of each are worth, as players and by the sums of rows.

    value_p = Shapley value of p in the game v(S) = M(all rows of S), plus λ times its dispersion

Players are few and hold many rows each, so that the probe of the row values is regularised
too much for them: alone, a seller would teach it nothing. The game has its own strength, the
one at which single sellers and all together do best on the validation rows. Dispersion is a sum
over pairs of rows: a seller's Shapley value is then the sum of its rows'.

Errors are kept as a factor E (P, r) of their covariance, E·Eᵀ: a column for each thing that
might have been drawn otherwise. nan: unknown.

Notation:  P → n_sellers · v(S) → `game` · ρ → ridge · φ_p → value
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from hcdv.valuation.coalition_game import Game, evaluate, shapley_sampled
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.moments import metric_of_rows
from hcdv.valuation.nested import centred, flat_batches
from hcdv.valuation.payoffs import MeanGame
from hcdv.valuation.pointwise import Batches
from hcdv.valuation.probe import ProbeGame, solve
from hcdv.valuation.retraining import RetrainingGame
from hcdv.valuation.statistics import Statistics

if TYPE_CHECKING:
    from hcdv.result import Run

Floats = NDArray[np.float64]

MOST_EXACT = 16  # 2^16 payoffs
MOST_PLAYERS = 1_000  # more hold too few rows each, and too many statistics
_STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of the probe's own ρ
_PAYOFFS = 2**13  # of a sampled game
_BLOCK = 64
_METRICS_OF_ROWS = ("accuracy", "balanced_accuracy", "loss", "r2")


@dataclass(frozen=True)
class Played:
    """What a game among sellers found."""

    value: Floats  # (P,)  Shapley values
    errors: Floats  # (P, r)  E
    without: Floats  # (P,)  v(all) − v(all without p)
    everyone: float  # v(all) − v(∅)
    is_exact: bool
    n_payoffs: int


def summed(
    seller: NDArray[np.intp], values: NDArray[np.floating], n_sellers: int
) -> Floats:
    """Sums of the rows' values by seller, (P,)."""
    found = np.bincount(seller, values, minlength=n_sellers)
    return np.asarray(found, dtype=np.float64)


def tuned(game: ProbeGame, n_sellers: int) -> ProbeGame:
    """The game as strongly regularised as suits the sellers' sizes."""
    alone = np.eye(n_sellers, dtype=bool)[: 4 * MOST_EXACT]
    asked = np.concatenate([alone, np.ones((1, n_sellers), dtype=bool)])
    games = [replace(game, ridge=game.ridge * share) for share in _STRENGTHS]
    found = [float(np.mean(each.payoffs(asked, "loss"))) for each in games]
    return games[int(np.argmax(found))]


def retrained_game(run: Run, seller: NDArray[np.intp], n_sellers: int, model: Any) -> Game:
    """The game of a model taught anew on the embedded rows of every coalition."""
    case = run.case
    labels, judged = case.originals.labels, case.originals.judged
    games: list[RetrainingGame] = []
    for judge, (_, told) in zip(case.judges, judged, strict=True):
        rows, points = np.flatnonzero(case.taught(judge)), case.views[judge.view]
        weight = None if points.weight is None else points.weight[rows]
        game = RetrainingGame(
            model, points.Z[rows], labels[rows], judge.points.Z, told, seller[rows],
            scorer=run.plan.metric, sample_weight=weight, n_jobs=run.plan.n_jobs,
            seed=run.plan.seed, n_groups=n_sellers,
        )  # fmt: skip
        games.append(game)
    return MeanGame(games)


def played(game: Game, n_sellers: int, rng: np.random.Generator) -> Played:
    """Shapley values by enumeration up to 16 sellers, by sampled orders beyond."""
    everyone = np.ones((1, n_sellers), dtype=bool)
    less = np.concatenate([~everyone, everyone, ~np.eye(n_sellers, dtype=bool)])
    if n_sellers <= MOST_EXACT:
        return _enumerated(game, n_sellers)
    paid = evaluate(game, less)
    n_orders = int(np.clip(_PAYOFFS // n_sellers, 16, 256))
    found = shapley_sampled(game, n_sellers, n_orders, rng)
    return Played(
        found.value, np.diag(found.stderr), paid[1] - paid[2:], float(paid[1] - paid[0]),
        False, n_orders * (n_sellers - 1) + n_sellers + 2,
    )  # fmt: skip


def _enumerated(game: Game, n_sellers: int) -> Played:
    """All coalitions, each scored once; of a mean over validation rows, its error too."""
    code = np.arange(1 << n_sellers)
    masks = (code[:, None] >> np.arange(n_sellers)) & 1 == 1
    weight = shapley_weights(masks)
    errors = np.full((n_sellers, 1), np.nan)
    if isinstance(game, ProbeGame) and game.metric in _METRICS_OF_ROWS:
        paid, errors = _scored_by_row(game, masks, weight)
    else:
        paid = evaluate(game, masks)
    last = len(masks) - 1
    return Played(
        paid @ weight, errors, paid[last] - paid[last - (1 << np.arange(n_sellers))],
        float(paid[last] - paid[0]), True, len(masks),
    )  # fmt: skip


def shapley_weights(masks: NDArray[np.bool_]) -> Floats:
    """What each coalition's payoff counts for in each player's Shapley value, (2^P, P)."""
    n = masks.shape[1]
    size = masks.sum(axis=1)
    with_it = 1.0 / (n * comb(n - 1, np.maximum(size - 1, 0)))
    without = 1.0 / (n * comb(n - 1, np.minimum(size, n - 1)))
    return np.where(masks, with_it[:, None], -without[:, None])


def _scored_by_row(
    game: ProbeGame, masks: NDArray[np.bool_], weight: Floats
) -> tuple[Floats, Floats]:
    """Payoffs, and the errors of Σ_S weight·v(S) over draws of the validation rows.

    The values are means over validation rows of what each row says of each seller. Classes
    are drawn apart where the metric weighs them alike.
    """
    n_judges = len(game.judges)
    paid = np.zeros(len(masks))
    errors: list[Floats] = []
    for judge, stats in zip(game.judges, game.taught, strict=True):
        said = np.zeros((weight.shape[1], len(judge.points)))
        for start in range(0, len(masks), _BLOCK):
            block = slice(start, start + _BLOCK)
            member = masks[block].astype(np.float64)
            union = Statistics(
                np.tensordot(member, stats.gram, 1), np.tensordot(member, stats.cross, 1)
            )
            models = solve(union, game.ridge)
            models[~masks[block].any(axis=1)] = 0.0
            features = game.features[judge.view]
            by_row = metric_of_rows(game.metric, models, judge.points, features)
            paid[block] += by_row.sum(axis=1) / n_judges
            said += weight[block].T @ by_row
        strata = judge.points.target if game.metric == "balanced_accuracy" else None
        errors.append(_errors_of_sum(said, strata) / n_judges)
    return paid, np.concatenate(errors, axis=1)


def _errors_of_sum(said: Floats, strata: NDArray[np.intp] | None) -> Floats:
    """Errors of the row sums of (P, n), were its columns drawn anew, within strata."""
    strata = np.zeros(said.shape[1], dtype=np.intp) if strata is None else strata
    off = said.copy()
    for stratum in np.unique(strata):
        own = strata == stratum
        n = max(2, int(own.sum()))
        off[:, own] -= said[:, own].mean(axis=1, keepdims=True)
        off[:, own] *= np.sqrt(n / (n - 1))
    return off


def errors_of_rows(
    run: Run, flat: Batches, upper: Upper, seller: NDArray[np.intp], n_sellers: int
) -> Floats:
    """Errors of the sellers' sums of row values, from the contexts and orders sampled."""
    sums = np.stack([
        summed(seller, centred(row, upper), n_sellers) for row in flat.value
    ])  # fmt: skip
    strata, size = np.unique(flat.stratum, return_counts=True)
    for stratum, n in zip(strata, size, strict=True):
        own = flat.stratum == stratum
        sums[own] -= sums[own].mean(axis=0)
        sums[own] /= len(strata) * np.sqrt(max(1, n * (n - 1)))
    width = len(upper.players)
    held = np.bincount(seller * width + upper.code, minlength=n_sellers * width)
    share = held.reshape(n_sellers, width) / np.maximum(upper.n_inside, 1)
    shared = share * run.valuation.node_stderr[upper.players]
    return np.concatenate([sums.T, shared], axis=1)


def sampled_again(run: Run) -> tuple[Batches, Upper]:
    """The contexts a run's rows were valued by, drawn again: the same, by their hashes."""
    plan = run.plan
    upper = Upper.of(run.canonical_tree, rows_each=plan.game_rows)
    return flat_batches(run.case, run.valuation.probe, plan), upper
