"""How many labels are wrong, and which are mistaken for which: sums of calibrated chances.

The share of wrong labels is the mean of the chances. Its interval has two sources: labels are
wrong or right independently, by their chances; and the models that were asked differ, from
order to order. What the curve itself may be off by is not in it.
A row given label g is wrong by its chance; of what it may be instead, every other label has
the odds the models give it. Summed over rows: the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import ParameterError
from hcdv.valuation.doubts import moved

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.result import Run

Floats = NDArray[np.float64]
_SHOWN = 8  # pairs of labels in the text


@dataclass(frozen=True)
class Noise:
    """Estimated label noise. Prints as text; `matrix` and `shares` are frames."""

    rate: float  # share of labels that are wrong
    low: float
    high: float
    confidence: float
    n_rows: int
    knows_nothing: bool  # the chances are what is assumed before anything is known
    matrix: pd.DataFrame | None  # (given, true) estimated numbers of rows; None: of numbers

    @property
    def shares(self) -> pd.DataFrame | None:
        """The matrix by given label: each line sums to 1."""
        if self.matrix is None:
            return None
        return self.matrix.div(self.matrix.sum(axis=1), axis=0).fillna(0.0)

    def pairs(self) -> pd.DataFrame:
        """Given and true labels that differ, the commonest first: rows, share of the given."""
        import pandas as pd

        columns = ["given", "true", "rows", "share"]
        if self.matrix is None or self.shares is None:
            return pd.DataFrame(columns=columns)
        names = self.matrix.columns
        given, true = np.nonzero(~np.eye(len(names), dtype=bool))
        frame = pd.DataFrame({
            "given": names[given], "true": names[true],
            "rows": self.matrix.to_numpy()[given, true],
            "share": self.shares.to_numpy()[given, true],
        })  # fmt: skip
        return frame.sort_values("rows", ascending=False, kind="stable", ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON-able data."""
        return {
            "rate": self.rate, "low": self.low, "high": self.high,
            "confidence": self.confidence, "n_rows": self.n_rows,
            "knows_nothing": self.knows_nothing, "pairs": self.pairs().to_dict("records"),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [
            (
                f"{self.rate:.1%} of {self.n_rows:,} labels are wrong "
                f"({self.confidence:.0%} interval {self.low:.1%} to {self.high:.1%}): about "
                f"{self.rate * self.n_rows:,.0f}"
            )
        ]
        if self.knows_nothing:
            lines[0] = "labels are predicted no better than by chance: nothing is known"
            return lines[0]
        shown = self.pairs().head(_SHOWN)
        lines += [
            f"  given {pair.given}, rather {pair.true}: {pair.rows:.1f} rows, {pair.share:.1%} "
            f"of {pair.given}"
            for pair in shown[shown["rows"] >= 0.5].itertuples()
        ]
        return "\n".join(lines)

    __repr__ = __str__


def estimated_noise(run: Run, confidence: float = 0.95) -> Noise:
    """Estimate the share of wrong labels of a run, and the matrix of given and true ones."""
    is_number = isinstance(confidence, int | float | np.number)
    if not is_number or not 0 < confidence < 1:
        raise ParameterError(
            "confidence", confidence, "above 0 and below 1", "0.95 is usual."
        )
    from scipy.special import ndtri

    found, n = run.valuation.doubts, run.n_rows
    rate = float(found.chance.mean())
    own = float((found.chance * (1 - found.chance)).sum()) / n**2
    off = float(ndtri(0.5 + confidence / 2)) * float(np.sqrt(own + _between(run)))
    matrix = None if run.target.classes is None else _matrix(run)
    return Noise(
        rate, max(0.0, rate - off), min(1.0, rate + off), float(confidence), n,
        found.curve.knows_nothing, matrix,
    )  # fmt: skip


def label_odds(run: Run) -> Floats:
    """P(true = c | row), (C, n), of every row of a run of classes, canonical order."""
    found, points = run.valuation.doubts, run.case.points
    n = len(points)
    share = np.bincount(points.target, minlength=points.n_classes) / n
    chance = found.curve.of_labels(found.scores, share)
    at = points.target, np.arange(n)
    chance[at] = 0.0
    chance *= found.chance / np.maximum(chance.sum(axis=0), 1e-300)
    chance[at] = 1.0 - found.chance
    return chance


def _matrix(run: Run) -> pd.DataFrame:
    import pandas as pd

    points, classes = run.case.points, run.target.classes
    assert classes is not None
    chance = label_odds(run)
    counts = np.zeros((len(classes), len(classes)))
    np.add.at(counts, points.target, chance.T)
    return pd.DataFrame(
        counts, pd.Index(classes, name="given"), pd.Index(classes, name="true")
    )


def _between(run: Run) -> float:
    """Variance of the mean chance, from what the orders say one by one."""
    found = run.valuation.doubts
    points, n = run.case.points, run.n_rows
    label = points.target
    if not points.n_classes:
        label = np.zeros(n, dtype=np.intp)
    steep = found.curve.slope[label] * found.chance * (1.0 - found.chance)
    steps = [float(step.sum()) / n for step in moved(steep, found.margins)]
    n_asked = int(np.count_nonzero(~np.isnan(found.margins), axis=0).max())
    return sum(step**2 for step in steps) / max(1, n_asked * (n_asked - 1))
