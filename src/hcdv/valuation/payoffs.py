"""The coalition game of any utility: masks over groups of rows → payoffs M."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.valuation.coalition_game import Game
from hcdv.valuation.knn_game import KNNGame
from hcdv.valuation.points import Case
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.retraining import CallableGame, RetrainingGame
from hcdv.valuation.utility import LeastSquares, Neighbours, Payoffs, Retrained, Utility


@dataclass(frozen=True)
class MeanGame:
    """The mean of the judges' games: v̄(S) = mean_k v_k(S ∖ F_k)."""

    games: list[Any]

    def __call__(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Payoffs (m,) of coalitions (m, K)."""
        return np.mean([game(masks) for game in self.games], axis=0)

    def report(self) -> dict[str, Any]:
        """What the retrained models went through, summed over judges."""
        reports = [game.report for game in self.games if hasattr(game, "report")]
        if not reports:
            return {}
        counts = ("fits", "cached", "one_class", "failures")
        found = {name: sum(getattr(r, name, 0) for r in reports) for name in counts}
        first = next((r.first_error for r in reports if r.first_error), None)
        return found | ({"first_error": first} if first else {})


def coalition_game(
    case: Case,
    utility: Utility,
    probe: Probe,
    metric: str,
    code: NDArray[np.intp],
    n_groups: int,
    *,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Any = None,
    keep_as: str | None = None,
) -> Game:
    """The payoff of unions of groups under a utility."""
    if isinstance(utility, LeastSquares):
        return probe.game(case, code, n_groups, n_jobs, keep_as=keep_as)
    if isinstance(utility, Payoffs):
        return _own_payoff(case, utility, code, n_groups, n_jobs, progress)
    if isinstance(utility, Neighbours):
        return MeanGame(
            [_neighbours(case, utility, k, code, n_groups, n_jobs) for k in _judges(case)]
        )
    return MeanGame([
        _retrained(case, utility, k, metric, code, n_groups, n_jobs, seed, progress)
        for k in _judges(case)
    ])  # fmt: skip


def _judges(case: Case) -> range:
    return range(len(case.judges))


def _own_payoff(
    case: Case, utility: Payoffs, code: NDArray[np.intp], n_groups: int, n_jobs: int | None,
    progress: Any,
) -> CallableGame:  # fmt: skip
    """Row indices are those of the user's own order."""
    position = case.originals.position
    groups = np.empty_like(code)
    groups[position] = code
    return CallableGame(
        utility.function, len(code), groups,
        bounds=utility.bounds, empty=utility.empty, n_jobs=n_jobs, progress=progress,
        n_groups=n_groups,
    )  # fmt: skip


def _neighbours(
    case: Case, utility: Neighbours, k: int, code: NDArray[np.intp], n_groups: int,
    n_jobs: int | None,
) -> KNNGame:  # fmt: skip
    judge = case.judges[k]
    rows, points = case.taught(judge), case.views[judge.view]
    kind = utility.kind if points.n_classes else "regression"
    return KNNGame(
        points.Z[rows], points.target[rows], judge.points.Z, judge.points.target,
        code[rows], n_groups, k=utility.k, kind=kind,
        radius=float(np.sqrt(2.0 * utility.radius)),
        n_classes=points.n_classes or None, n_jobs=n_jobs,
    )  # fmt: skip


def _retrained(
    case: Case, utility: Retrained, k: int, metric: str, code: NDArray[np.intp], n_groups: int,
    n_jobs: int | None, seed: int, progress: Any,
) -> RetrainingGame:  # fmt: skip
    rows = np.flatnonzero(case.taught(case.judges[k]))
    originals, weight = case.originals, case.points.weight
    table = (
        originals.table.iloc[rows]
        if hasattr(originals.table, "iloc")
        else originals.table[rows]
    )
    return RetrainingGame(
        utility.estimator, table, originals.labels[rows], *originals.judged[k], code[rows],
        scorer=metric if utility.scorer is None else utility.scorer,
        sample_weight=None if weight is None else weight[rows],
        n_jobs=n_jobs, seed=seed, bounds=utility.bounds, empty=utility.empty, progress=progress,
        n_groups=n_groups,
    )  # fmt: skip
