"""What a selection of rows is worth as one coalition: from nothing, and to all the others.

alone(S) = v(S) − v(∅),   to the others(S) = v(D) − v(D ∖ S)

Neither is the sum of the rows' values, which are averages over every company the rows might
keep. Where the sum is far above what is missing without them, others say the same as they do;
where it is far below, they need each other. v is the run's own payoff; its consistency part is
additive given D, so it is the sum of the rows' own in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.dispersion import class_sums, cross_label_dispersion, cross_label_pairs
from hcdv.engines.local import one_thread_each
from hcdv.valuation.coalition_game import Game
from hcdv.valuation.nested import PARTS
from hcdv.valuation.payoffs import coalition_game
from hcdv.valuation.pointwise import NOTHING, Kept
from hcdv.valuation.statistics import Statistics
from hcdv.valuation.utility import LeastSquares, Neighbours

if TYPE_CHECKING:
    from hcdv.result import Run

_JOBS = -1


@dataclass(frozen=True)
class Together:
    """A selection as one coalition; every worth is given by part."""

    n_rows: int
    alone: dict[str, float]  # v(S) − v(∅)
    to_others: dict[str, float]  # v(D) − v(D ∖ S)
    summed: dict[str, float]  # Σ of the rows' values
    of_all: dict[str, float]  # v(D) − v(∅)
    is_surrogate: bool  # the probe stands in for a utility that no run keeps


class Worth:
    """The game between any selection of a run's rows and the rest of them.

    Statistics of all rows are gathered once; a selection's own are gathered from its rows, or
    from the others where these are fewer.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self._whole: dict[int, Statistics] = {}
        points = run.case.points
        self._classes = (
            class_sums(points.Z, points.target, points.n_classes)
            if points.n_classes
            else None
        )

    def of(self, rows: NDArray[np.integer]) -> Together:
        """Of rows in the user's order."""
        run = self.run
        of_user = np.zeros(run.n_rows, dtype=bool)
        of_user[rows] = True
        member = of_user[run.position]
        with one_thread_each():
            utility = self._utility(member)
        dispersion = self._dispersion(member)
        summed = {
            name: float(run.valuation.parts[name][member].sum(dtype=np.float64))
            for name in PARTS
        }
        kept = summed["consistency"]
        alone, others, everyone = (
            {"utility": float(m), "dispersion": float(d), "consistency": float(c)}
            for m, d, c in zip(utility, dispersion, (kept, kept, 0.0), strict=True)
        )
        n = int(member.sum())
        return Together(n, alone, others, summed, everyone, not self._is_kept)

    @property
    def _is_kept(self) -> bool:
        return isinstance(self.run.plan.utility, LeastSquares | Neighbours)

    def _utility(self, member: NDArray[np.bool_]) -> NDArray[np.float64]:
        """M(S) − M(∅), M(D) − M(D ∖ S), M(D) − M(∅)."""
        masks = np.array([[False, False], [False, True], [True, False], [True, True]])
        none, own, rest, everyone = self._game(member)(masks)
        return np.array([own - none, everyone - rest, everyone - none])

    def _game(self, member: NDArray[np.bool_]) -> Game:
        """Players: the rest, and the selection."""
        run, code = self.run, member.astype(np.intp)
        case, plan, probe = run.case, run.plan, run.valuation.probe
        if isinstance(plan.utility, Neighbours):
            return coalition_game(
                case, plan.utility, probe, plan.metric, code, 2, n_jobs=_JOBS
            )
        views = sorted({judge.view for judge in case.judges})
        return probe.game_of(case.judges, {k: self._pair(k, member) for k in views}, _JOBS)

    def _pair(self, view: int, member: NDArray[np.bool_]) -> Statistics:
        """Statistics of the rest and of the selection, by fold: (2, folds, …)."""
        if view not in self._whole:
            self._whole[view] = self._gathered(view, np.ones(len(member), dtype=bool))
        whole = self._whole[view]
        is_fewer = 2 * np.count_nonzero(member) <= len(member)
        fewer = self._gathered(view, member if is_fewer else ~member)
        more = whole - fewer
        pair = (more, fewer) if is_fewer else (fewer, more)
        return Statistics(
            np.stack([each.gram for each in pair]), np.stack([each.cross for each in pair])
        )

    def _gathered(self, view: int, rows: NDArray[np.bool_]) -> Statistics:
        """Statistics of some rows by fold."""
        case, probe = self.run.case, self.run.valuation.probe
        n_folds = len(case.judges[0].eligible)
        kept = Kept(NOTHING, view, case.points.fold, n_folds)
        points = case.views[view]
        points = points if rows.all() else points.take(np.flatnonzero(rows))
        return probe.gathered(kept, points, rows, _JOBS)

    def _dispersion(self, member: NDArray[np.bool_]) -> NDArray[np.float64]:
        """λ times Δ̄(S), Δ̄(D) − Δ̄(D ∖ S) and Δ̄(D)."""
        points, plan = self.run.case.points, self.run.plan
        if self._classes is None:
            return np.zeros(3)
        rows = np.flatnonzero(member)
        count, total = class_sums(points.Z[rows], points.target[rows], points.n_classes)
        of_all = self._classes
        counts = np.stack([count, of_all[0] - count, of_all[0]])
        totals = np.stack([total, of_all[1] - total, of_all[1]])
        is_ratio = plan.method == "paper"
        found = cross_label_dispersion(counts, totals, ratio=is_ratio)
        if not is_ratio:
            found = found / max(float(cross_label_pairs(of_all[0])), 1.0)
        own, rest, everyone = plan.dispersion_weight * found
        return np.array([own, everyone - rest, everyone])
