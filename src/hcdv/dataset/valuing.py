"""Third pass: every row's flat marginals, dispersion and doubts, from what all rows sum to.

Reads the vectors that the second pass has written, not the data. What a row is worth beyond
its coalition's share needs sums over coalitions; these are returned, by leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.dataset.gathering import Sums, points_of, vectors_of
from hcdv.dataset.labels import Doubted, doubted
from hcdv.dataset.model import Model
from hcdv.dataset.workspace import Arrays, Workspace
from hcdv.embedding.dispersion import dispersion_of_rows
from hcdv.judging import N_FOLDS
from hcdv.valuation.calibration import Curve, calibrated
from hcdv.valuation.consistency import Agreement, agreement
from hcdv.valuation.doubts import probes_of, taught
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.marginals import point_marginals
from hcdv.valuation.points import Floats, Points
from hcdv.valuation.probe import Coefficients

Models = list[tuple[Floats, Floats]]


@dataclass(frozen=True)
class Questions:
    """What is asked of every row: coefficients of contexts, models that doubt, class sums."""

    model: Model
    asked: list[Coefficients]
    doubting: list[tuple[FeatureMap, Models]]
    curve: Curve
    count: NDArray[np.float64]
    total: NDArray[np.float64]

    @classmethod
    def of(cls, model: Model, sums: Sums, n_jobs: int | None) -> Questions:
        """All questions, from the sums over all rows."""
        plan, n = model.task.plan, model.task.n_rows
        asked = model.probe.asked(
            0, model.contexts, model.judge_of, sums.contexts, n, plan.seed, n_jobs
        )
        doubting = [
            (features, taught(
                stats, model.asking, ridge * n, n, features.width, plan.seed, n_jobs
            ))
            for (features, ridge), stats in zip(
                probes_of(model.probe.features[0]), sums.asked, strict=True
            )
        ]  # fmt: skip
        said = _said(model, doubting, model.sample.points, n_jobs)
        curve = calibrated(said.scores, model.sample.points)
        return cls(model, asked, doubting, curve, sums.count, sums.total)

    def marginals(self, points: Points, n_jobs: int | None) -> NDArray[np.floating]:
        """Flat marginals of some rows in every order, (R, n)."""
        model = self.model
        moments = [model.probe.moments[k] for k in model.judge_of]
        return point_marginals(
            points, model.probe.features[0], model.contexts, self.asked, moments,
            model.barred, dtype=model.dtype, n_jobs=n_jobs,
        )  # fmt: skip

    def doubts(self, points: Points, n_jobs: int | None) -> Doubted:
        """Doubts of some rows' labels."""
        said = _said(self.model, self.doubting, points, n_jobs)
        return doubted(said, points, self.curve)

    def dispersion(self, points: Points) -> NDArray[np.float64]:
        """Exact dispersion values of some rows; 0 for numbers, which have no classes."""
        if not points.n_classes:
            return np.zeros(len(points))
        return dispersion_of_rows(points.Z, points.target, self.count, self.total)


def _said(
    model: Model, doubting: list[tuple[FeatureMap, Models]], points: Points,
    n_jobs: int | None,
) -> Agreement:  # fmt: skip
    """What the models of every probe say of some rows, on average over probes."""
    everyone = np.ones((model.asking.n_orders, N_FOLDS), dtype=bool)
    weight = model.weights(points)
    return Agreement.mean([
        agreement(
            points, features, model.asking, models, everyone, ~everyone, weight,
            dtype=model.dtype_of(features), n_jobs=n_jobs,
        )
        for features, models in doubting
    ])  # fmt: skip


@dataclass(frozen=True)
class Found:
    """Sums of what the third pass found, by leaf; sums of row sets add."""

    marginals: NDArray[np.float64]  # (R, K)
    dispersion: NDArray[np.float64]  # (K,)
    excess: NDArray[np.float64]  # (K,)
    moved: NDArray[np.float64]  # (R', K)

    def __add__(self, other: Found) -> Found:
        return Found(
            self.marginals + other.marginals, self.dispersion + other.dispersion,
            self.excess + other.excess, self.moved + other.moved,
        )  # fmt: skip

    def arrays(self) -> Arrays:
        """As named arrays."""
        return dict(vars(self))


@dataclass(frozen=True)
class Valuing:
    """The third pass over one segment: what it finds is written, sums by leaf returned."""

    questions: Questions
    folder: Path
    n_jobs: int | None

    def __call__(self, segment: int) -> Found:
        """Ask everything of the rows of a segment, unless that was done before."""
        workspace = Workspace(self.folder)
        if not workspace.has(found_of(segment)):
            workspace.put(
                found_of(segment), self._asked(workspace.get(vectors_of(segment)), segment)
            )
        workspace.drop(vectors_of(segment))
        return by_leaf(
            workspace.get(found_of(segment)), self.questions.model.prototypes.n_leaves
        )

    def _asked(self, held: Arrays, segment: int) -> Arrays:
        points = points_of(self.questions.model, segment, held["Z"], held["target"])
        said = self.questions.doubts(points, self.n_jobs)
        return {
            "marginals": self.questions.marginals(points, self.n_jobs),
            "dispersion": self.questions.dispersion(points), "excess": said.excess,
            "moved": said.moved.astype(held["Z"].dtype), "chance": said.chance,
            "suggested": said.suggested, "target": held["target"], "leaf": held["leaf"],
        }  # fmt: skip


def by_leaf(found: Arrays, n_leaves: int) -> Found:
    """Sums over leaves of what was found of some rows."""

    def sums(rows: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(found["leaf"], rows, minlength=n_leaves).astype(np.float64)

    return Found(
        np.stack([sums(row) for row in found["marginals"]]), sums(found["dispersion"]),
        sums(found["excess"]), np.stack([sums(row) for row in found["moved"]]),
    )  # fmt: skip


def found_of(segment: int) -> str:
    """Name of what the third pass found in a segment."""
    return f"found-{segment:05d}"
