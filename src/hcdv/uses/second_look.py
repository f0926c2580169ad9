"""A second look at doubted labels: models taught with less of what the first look doubts.

Wrong labels teach the models that are asked about them. So a logistic regression on the same
vectors, cross-validated, is taught with every row counting by the chance that its label is
right, twice over, and asked about the rows held out. Its log-odds against a label count two
thirds, those of the first look one third (chosen on other draws than docs/labels.md reports).
The chances stay those of the first look, dealt out anew in the order of the second: how many
labels are wrong was known, which ones is known better.

Where folds are held out whole (groups, time, encoders that saw labels), where numbers are
predicted, or nothing is known of labels, there is no second look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from hcdv.engines.local import ordered_map
from hcdv.valuation.calibration import margins
from hcdv.valuation.contexts import hashed_uniform

if TYPE_CHECKING:
    from hcdv.result import Run

Floats = NDArray[np.float64]

N_FOLDS = 5
_FOLD_STREAM = 1 << 22  # beyond those of contexts and of a fit's folds
_SURE = 1e-6
_SHARE = 2 / 3  # of the second look's log-odds
_MOST_STEPS = 300


@dataclass(frozen=True)
class SecondLook:
    """Log-odds against every label, and the label there should rather be, canonical order."""

    score: Floats  # (n,)
    chance: Floats  # (n,)
    best: NDArray[np.intp]  # (n,)


def second_look(run: Run) -> SecondLook | None:
    """Look again at the labels of a run; None where the first look is all there is."""
    case, found = run.case, run.valuation.doubts
    points = case.points
    if not points.n_classes or case.asking is not None or found.curve.knows_nothing:
        return None
    first = found.curve.log_odds(margins(found.scores, points), points.target)
    fold = _folds(run)
    trust = 1.0 - found.chance
    chances = _asked(run, fold, trust)
    trust = 1.0 - expit((first + _against(chances, points.target)) / 2)
    chances = _asked(run, fold, trust)
    score = (1 - _SHARE) * first + _SHARE * _against(chances, points.target)
    share = np.bincount(points.target, minlength=points.n_classes) / len(points)
    told = (1 - _SHARE) * np.log(found.curve.of_labels(found.scores, share) + _SURE)
    best = (told + _SHARE * np.log(chances + _SURE)).argmax(axis=0)
    chance = np.empty(len(points))
    chance[np.argsort(-score, kind="stable")] = np.sort(found.chance)[::-1]
    return SecondLook(score, chance, best)


def _against(chances: Floats, target: NDArray[np.intp]) -> Floats:
    own = chances[target, np.arange(len(target))]
    return -logit(np.clip(own, _SURE, 1 - _SURE))


def _folds(run: Run) -> NDArray[np.intp]:
    """Folds of as many rows of each label as can be, by hashed keys."""
    points = run.case.points
    u = hashed_uniform(points.key, run.plan.seed, _FOLD_STREAM)
    order = np.lexsort((u, points.target))
    fold = np.empty(len(points), dtype=np.intp)
    fold[order] = np.arange(len(points)) % N_FOLDS
    return fold


def _asked(run: Run, fold: NDArray[np.intp], trust: Floats) -> Floats:
    """Chances of every class, (C, n), from models of the other folds."""
    points = run.case.points
    weight = trust if points.weight is None else trust * points.weight

    def one(k: int) -> Floats:
        return _taught(points.Z, points.target, weight, fold == k, points.n_classes)

    out = np.zeros((points.n_classes, len(points)))
    for k, chances in enumerate(ordered_map(one, range(N_FOLDS), run.plan.n_jobs)):
        out[:, fold == k] = chances
    return out


def _taught(
    Z: NDArray[Any], target: NDArray[np.intp], weight: Floats, held: NDArray[np.bool_],
    n_classes: int,
) -> Floats:  # fmt: skip
    """Chances of the held rows; a class that is not among the others has none."""
    from sklearn.linear_model import LogisticRegression

    out = np.zeros((n_classes, int(held.sum())))
    taught = ~held & (weight > 0)
    classes = np.unique(target[taught])
    if len(classes) < 2:
        out[classes] = 1.0
        return out
    model = LogisticRegression(max_iter=_MOST_STEPS)
    model.fit(Z[taught], target[taught], sample_weight=weight[taught])
    out[model.classes_] = model.predict_proba(Z[held]).T
    return out
