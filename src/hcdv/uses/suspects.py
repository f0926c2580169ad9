"""Rows whose label the models taught without them contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hcdv.errors import ParameterError
from hcdv.uses.second_look import second_look
from hcdv.valuation.calibration import margins

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.result import Run

LIKELY = 0.5  # the chance from which a label is rather wrong than right


def suspects(run: Run, k: int | None = None, *, twice: bool = False) -> pd.DataFrame:
    """row, score, probability, is_suspect, given, suggested; most suspicious first.

    probability: the chance that the given label is wrong, as models taught without the row
    and the data themselves have it (`valuation/calibration.py`). score: its log-odds, above
    0 where wrong is likelier than right. A suspect is such a row, if the models have
    another label for it. twice: in the order of a second look, by models taught with less of
    the doubted (`second_look.py`).
    """
    import pandas as pd

    if k is not None and (not isinstance(k, int | np.integer) or k < 1):
        raise ParameterError("k", k, "None or a number of rows from 1")
    doubts = run.valuation.doubts
    points = run.case.points
    score = doubts.curve.log_odds(margins(doubts.scores, points), points.target)
    chance, look = doubts.chance, second_look(run) if twice else None
    if look is not None:
        score, chance = look.score, look.chance
    is_suspect = chance > LIKELY
    if run.target.classes is None:
        suggested = doubts.scores[0] * run.target.scale + run.target.centre
    else:
        best = np.argmax(doubts.scores, axis=0) if look is None else look.best
        suggested = run.target.classes[best]
        is_suspect &= best != run.target.coded(run.target.labels)
    order = np.argsort(-score, kind="stable")
    frame = pd.DataFrame(
        {
            "row": run.position, "score": score, "probability": chance,
            "is_suspect": is_suspect, "given": run.target.labels, "suggested": suggested,
        }
    )  # fmt: skip
    return frame.iloc[order[: len(order) if k is None else int(k)]].reset_index(drop=True)
