"""What the models taught without a row say of its label, for rows that come in parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcdv.valuation.calibration import Curve, margins
from hcdv.valuation.consistency import Agreement
from hcdv.valuation.doubts import moved
from hcdv.valuation.points import Points


class Doubted(NamedTuple):
    """Label consistency of some rows, but for what is known of all rows together."""

    excess: NDArray[np.float64]  # (n,)  A_i = mean of all rows' excess − excess
    chance: NDArray[np.float64]  # (n,)  that the label is wrong
    moved: NDArray[np.float64]  # (R, n)  how far each order moves A_i, but for a constant
    suggested: NDArray[np.float64]  # (n,)  class code, or centred number


def doubted(said: Agreement, points: Points, curve: Curve) -> Doubted:
    """Doubts by a curve that was fitted before."""
    label = points.target
    chance = curve(margins(said.scores, points), label)
    suggested = said.scores.argmax(axis=0) if points.n_classes else said.scores[0]
    steps = np.stack(list(moved(curve.slope_of_excess(chance, label), said.margin)))
    return Doubted(
        curve.excess(chance, label), chance, steps, np.asarray(suggested, dtype=np.float64)
    )
