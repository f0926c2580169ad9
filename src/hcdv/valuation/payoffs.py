"""The coalition game of any utility: masks over groups of rows → payoffs M."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.valuation.checkpoint import Checkpoint
from hcdv.valuation.coalition_game import Game
from hcdv.valuation.duration import in_words
from hcdv.valuation.knn_game import KNNGame
from hcdv.valuation.points import Case
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.retraining import CallableGame, RetrainingGame
from hcdv.valuation.utility import LeastSquares, Neighbours, Payoffs, Retrained, Utility

log = logging.getLogger("hcdv")

_COUNTS = ("fits", "cached", "one_class", "failures")
_TOLD = 50  # coalitions from which an estimate is worth its few probes
_LONG = 3.0  # seconds that need no announcement


@dataclass(frozen=True)
class MeanGame:
    """The mean of the judges' games: v̄(S) = mean_k v_k(S ∖ F_k)."""

    games: list[Any]
    checkpoint: Checkpoint | None = None
    estimated: list[float] = field(default_factory=list)  # seconds, told once

    def __post_init__(self) -> None:
        """Take up what an earlier run has paid for, and keep what this one pays for."""
        if self.checkpoint is None:
            return
        for game in self.games:
            self.checkpoint.take_up(game)
            game.progress = self._kept_after(game.progress)

    def _kept_after(self, progress: Any) -> Any:
        def told(done: int, total: int) -> None:
            if progress is not None:
                progress(done, total)
            if self.checkpoint is not None:
                self.checkpoint.keep(self.games, now=False)

        return told

    def __call__(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Payoffs (m,) of coalitions (m, K)."""
        if self.checkpoint is None:
            return self._paid(masks)
        try:
            return self._paid(masks)
        finally:
            self.checkpoint.keep(self.games, now=True)

    def _paid(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        self._tell(masks)
        return np.mean([game(masks) for game in self.games], axis=0)

    def _tell(self, masks: NDArray[np.bool_]) -> None:
        """Say before long work how long it will take; what is played for that is kept."""
        if self.estimated or len(masks) < _TOLD or not hasattr(self.games[0], "report"):
            return
        least = min(self.games, key=lambda game: game.report.fits)  # others may be resumed
        cost = least.estimate_seconds(masks)
        self.estimated.append(cost.seconds * len(self.games))
        if self.estimated[0] >= _LONG:
            log.info(
                "about %s of work: %s %s more", in_words(self.estimated[0]),
                f"{cost.n_left * len(self.games):,}", least.unit,
            )  # fmt: skip

    def report(self) -> dict[str, Any]:
        """What the retrained models went through, summed over judges."""
        reports = [game.report for game in self.games if hasattr(game, "report")]
        found = [{name: getattr(r, name, 0) for name in _COUNTS} for r in reports]
        failed = [{"first_error": r.first_error} for r in reports if r.first_error]
        told = [{"estimated_seconds": each} for each in self.estimated]
        return added([*found, *failed, *told])


def added(reports: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Reports of several games as one: counts and seconds add, of errors the first is kept."""
    total: dict[str, Any] = {}
    for report in reports:
        for name, told in report.items():
            if name == "first_error":
                total.setdefault(name, told)
            else:
                total[name] = total.get(name, 0) + told
    return total


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
    engine: str = "local",
) -> Game:
    """The payoff of unions of groups under a utility. engine: where models are trained."""
    if isinstance(utility, LeastSquares):
        return probe.game(case, code, n_groups, n_jobs, keep_as=keep_as)
    if isinstance(utility, Payoffs):
        game = _own_payoff(case, utility, code, n_groups, n_jobs, progress)
        return MeanGame([game], _checkpoint(utility))
    if isinstance(utility, Neighbours):
        return MeanGame(
            [_neighbours(case, utility, k, code, n_groups, n_jobs) for k in _judges(case)]
        )
    games = [
        _retrained(case, utility, k, metric, code, n_groups, n_jobs, seed, progress, engine)
        for k in _judges(case)
    ]
    return MeanGame(games, _checkpoint(utility))


def _checkpoint(utility: Payoffs | Retrained) -> Checkpoint | None:
    return None if utility.checkpoint is None else Checkpoint(utility.checkpoint)


def how_to_go_on(utility: Utility, seed: int) -> str:
    """What to do after an interruption, for a person to read below it."""
    again = f"hcdv: fit again with the same data and settings and random_state={seed}"
    if not isinstance(utility, Payoffs | Retrained):
        return f"{again} for the same values; nothing was kept of this fit."
    if utility.checkpoint is not None:
        return f"{again} to go on from the payoffs in '{utility.checkpoint}'."
    made = (
        "Retrained(estimator=…" if isinstance(utility, Retrained) else "Payoffs(function=…"
    )
    return (
        f"{again} for the same values; nothing was kept of this fit. To have the next one go "
        f"on where it is stopped, from hcdv.valuation.utility pass utility={made}, "
        "checkpoint='payoffs.npz')."
    )


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
    n_jobs: int | None, seed: int, progress: Any, engine: str,
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
        n_groups=n_groups, engine=engine,
    )  # fmt: skip
