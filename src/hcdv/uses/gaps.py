"""What to collect next: where more rows pay, where there are enough, and where they harm.

Three things are asked of every coalition of the game level, all of the run's own probe:

    gain     what one more row like those it has, with a label that is right, would add
    if_gone  what all rows together would lose without it: v(D) − v(D ∖ G)
    error    how often models taught without a row of it get its label wrong

More rows are worth collecting where the model is poorer than on average and the gain is
largest. There are enough where it is better, and `if_gone` next to nothing. Where `if_gone` is
below zero, and the values of the rows are as well, the model is better off without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import ParameterError
from hcdv.uses.description import description, words
from hcdv.valuation.marginals import marginals_of_copies
from hcdv.valuation.plan import GAME_COALITIONS
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.probe import Coefficients, ProbeGame, coefficients
from hcdv.valuation.statistics import Statistics

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.given import Given
    from hcdv.result import Run

Floats = NDArray[np.float64]

KINDS = ("collect", "enough", "harmful")
_FEWEST = 8  # rows of a coalition that is judged by its mean
_LITTLE = 0.5  # of the typical loss a row: below it there are enough


def gaps(run: Run, given: Given | None, k: int = 5) -> pd.DataFrame:
    """The k coalitions of each kind, in the data's own words; the most telling first."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError("k", k, "a whole number of at least 1")
    frame = measured(run)
    picked = _picked(frame, run.canonical_tree.n_rows, int(k))
    told = description(given, run.ids, run.tree, picked["id"].to_numpy())
    mix = run.label_mix()
    picked["description"] = [words(traits) for traits in told]
    picked["label_mix"] = [mix[node] for node in picked["id"]]
    return picked


def measured(run: Run) -> pd.DataFrame:
    """A line for every coalition of the game level: rows, error, gain, if_gone, value a row."""
    import pandas as pd

    case, tree, probe = run.case, run.canonical_tree, run.valuation.probe
    nodes = np.asarray(tree.cut(tree.game_level(GAME_COALITIONS)))
    code = np.asarray(tree.codes(nodes), dtype=np.intp)
    size = np.bincount(code, minlength=len(nodes))
    game = probe.game(case, code, len(nodes), run.plan.n_jobs)
    right = 1.0 - run.valuation.doubts.chance
    per_row = np.maximum(size, 1)
    return pd.DataFrame({
        "id": nodes, "size": size, "error": _mean(code, size, wrongs(run)),
        "gain": _mean(code, size, more_rows(run, game), right),
        "if_gone": without(game, len(nodes)),
        "value_per_row": np.bincount(
            code, run.valuation.parts["utility"], minlength=len(nodes)
        ) / per_row,
    })  # fmt: skip


def wrongs(run: Run) -> Floats:
    """Whether the label of each row is told wrong without it; of numbers, its squared miss."""
    scores, points = run.valuation.doubts.scores, run.case.points
    if points.n_classes:
        return np.asarray(scores.argmax(axis=0) != points.target, dtype=np.float64)
    return np.asarray((scores[0] - points.target) ** 2, dtype=np.float64)


def more_rows(run: Run, game: ProbeGame) -> Floats:
    """What one more row like each would add to all rows, (n,); none is judged by itself."""
    case, probe = run.case, run.valuation.probe
    total, asked = np.zeros(len(case.points)), np.zeros(len(case.points))
    for k, judge in enumerate(case.judges):
        points = case.views[judge.view]
        everyone = game.taught[k].sum(axis=0)
        found = marginals_of_copies(
            points, probe.features[judge.view], _asked(everyone, probe, k), probe.moments[k],
            n_jobs=run.plan.n_jobs,
        )  # fmt: skip
        taught = case.taught(judge)
        total[taught] += found[taught]
        asked += taught
    return total / np.maximum(asked, 1.0)


def _asked(everyone: Statistics, probe: Probe, k: int) -> Coefficients:
    one = Statistics(everyone.gram[None], everyone.cross[None])
    return coefficients(one, probe.moments[k], probe.ridge, None, np.random.default_rng(0))


def without(game: ProbeGame, n: int) -> Floats:
    """v(D) − v(D ∖ G) of every group, under the loss that stands for the metric."""
    masks = np.concatenate([np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)])
    paid = game.payoffs(masks, "loss")[0]
    return paid[0] - paid[1:]


def _mean(
    code: NDArray[np.intp],
    size: NDArray[np.intp],
    values: Floats,
    weight: Floats | None = None,
) -> Floats:
    weight = np.ones(len(values)) if weight is None else weight
    mass = np.bincount(code, weight, minlength=len(size))
    summed = np.bincount(code, weight * values, minlength=len(size))
    return np.where(mass > 0, summed / np.where(mass > 0, mass, 1.0), 0.0)


def _picked(frame: pd.DataFrame, n_rows: int, k: int) -> pd.DataFrame:
    """The k of each kind; none is of two."""
    import pandas as pd

    frame = frame[frame["size"] >= min(_FEWEST, n_rows)].copy()
    overall = float(np.average(frame["error"], weights=frame["size"]))
    lost = frame["if_gone"] / frame["size"]
    typical = float(np.average(lost.abs(), weights=frame["size"]))
    harms = (frame["if_gone"] < 0) & (frame["value_per_row"] < 0)
    poor = ~harms & (frame["error"] >= overall) & (frame["gain"] > 0)
    flat = ~harms & (frame["error"] < overall) & (lost.abs() <= _LITTLE * typical)
    parts = [
        frame[poor].sort_values("gain", ascending=False, kind="stable"),
        frame[flat].loc[lost[flat].abs().sort_values(kind="stable").index],
        frame[harms].sort_values("if_gone", kind="stable"),
    ]
    kept = [part.head(k).assign(kind=kind) for kind, part in zip(KINDS, parts, strict=True)]
    found = pd.concat(kept, ignore_index=True)
    return found[["kind", *(name for name in found if name != "kind")]]
