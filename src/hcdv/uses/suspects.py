"""Rows whose label the models taught without them contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.result import Run


def suspects(run: Run, k: int | None = None) -> pd.DataFrame:
    """row, score, probability, is_suspect, given, suggested; most suspicious first.

    score: −A_i, the mean margin by which models taught without the row prefer another
    class, in [−1, 1]. A row is a suspect where that margin is in the other class's favour
    and another class has the best mean score. probability: the chance those scores give
    to the other classes, read as least-squares estimates of P(y | x); it is not calibrated.
    """
    import pandas as pd

    if k is not None and (not isinstance(k, int | np.integer) or k < 1):
        raise ParameterError("k", k, "None or a number of rows from 1")
    doubts = run.valuation.doubts
    score = -doubts.agreement
    if run.target.classes is None:
        suggested = doubts.scores[0] * run.target.scale + run.target.centre
        probability = np.clip((1.0 + score) / 2.0, 0.0, 1.0)
        is_suspect = score > 0
    else:
        best = np.argmax(doubts.scores, axis=0)
        suggested = run.target.classes[best]
        code = run.target.coded(run.target.labels)
        probability = 1.0 - _own_chance(doubts.scores, code)
        is_suspect = (score > 0) & (best != code)
    order = np.argsort(-score, kind="stable")
    frame = pd.DataFrame(
        {
            "row": run.position, "score": score, "probability": probability,
            "is_suspect": is_suspect, "given": run.target.labels, "suggested": suggested,
        }
    )  # fmt: skip
    return frame.iloc[order[: len(order) if k is None else int(k)]].reset_index(drop=True)


def _own_chance(
    scores: NDArray[np.floating], code: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scores regress one-hot − 1/C: add 1/C back, clip, and share out to one."""
    chance = np.maximum(scores.astype(np.float64) + 1.0 / len(scores), 0.0)
    total = chance.sum(axis=0)
    own = chance[code, np.arange(len(code))]
    return np.where(total > 0, own / np.where(total > 0, total, 1.0), 1.0 / len(scores))
