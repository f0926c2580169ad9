"""Kept statistics followed through changes of rows and of coalitions: added and subtracted.

What a probe has gathered once stays exact: rows that come are added, rows that go are
taken away, and coalitions that join are sums. Only coalitions that were split are read again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.valuation.moments import Moments, judge_moments
from hcdv.valuation.points import Case
from hcdv.valuation.pointwise import Kept, Probe
from hcdv.valuation.statistics import Statistics, group_statistics

Bools = NDArray[np.bool_]
Ints = NDArray[Any]  # of whole numbers

GAME, CLASSES = "game", "classes"


def exchanged(
    probe: Probe, old: Case, gone: Bools, new: Case, came: Bools, game_code: Ints
) -> Probe:
    """The probe of the case `new`: without rows of `old` that went, with those that came.

    game_code: the game-level coalition of every row of `new`. A relabelled row goes and comes.
    """
    memo: dict[str, Kept] = {}
    for name, kept in probe.memo.items():
        code = _code(name, kept, new, game_code)
        stats = kept.stats
        if gone.any():
            stats = stats - probe.gathered(kept, old.views[kept.view].take(gone), gone)
        now = replace(kept, code=code)
        if came.any():
            stats = stats + probe.gathered(now, new.views[kept.view].take(came), came)
        memo[name] = replace(now, stats=stats)
    return replace(probe, moments=judged_anew(probe, old, new), memo=memo)


def judged_anew(probe: Probe, old: Case, new: Case) -> list[Moments]:
    """Moments of the judges of `new`; a validation set that stayed keeps its own."""
    return [
        moments
        if after.points is before.points
        else judge_moments(after.points, probe.features[after.view], probe.metric)
        for moments, before, after in zip(
            probe.moments, old.judges, new.judges, strict=True
        )
    ]


def _code(name: str, kept: Kept, case: Case, game_code: Ints) -> Ints | None:
    if kept.code is None:
        return None
    if name.startswith(CLASSES):
        return class_code(case)
    return game_code * n_folds(case) + case.points.fold


def n_folds(case: Case) -> int:
    """Folds that the judges tell apart."""
    return len(case.judges[0].eligible)


def class_code(case: Case) -> Ints:
    """The class of every row; all alike in regression."""
    points = case.points
    return points.target if points.n_classes else np.zeros(len(points), dtype=np.intp)


def regrouped(
    probe: Probe, case: Case, before: Ints, after: Ints, n_before: int, n_after: int
) -> Probe:
    """The probe after game-level coalitions were merged, split, renumbered or added."""
    if n_before == n_after and np.array_equal(before, after):
        return probe
    lowest = np.full(n_before, n_after)
    highest = np.full(n_before, -1)
    np.minimum.at(lowest, before, after)
    np.maximum.at(highest, before, after)
    whole = np.flatnonzero(lowest == highest)
    cut = (lowest < highest)[before]
    folds = n_folds(case)
    memo = dict(probe.memo)
    for name, kept in probe.memo.items():
        if not name.startswith(GAME):
            continue
        points = case.views[kept.view]
        code = np.where(cut, after * folds + points.fold, n_after * folds)
        if cut.any():
            stats = group_statistics(
                points, probe.features[kept.view], code, n_after * folds,
                weight=points.weight,
            )  # fmt: skip
        else:
            stats = Statistics(
                np.zeros((n_after * folds, *kept.stats.gram.shape[1:])),
                np.zeros((n_after * folds, *kept.stats.cross.shape[1:])),
            )
        own = kept.stats.by_group(n_before)
        stats.by_group(n_after).add(
            lowest[whole], Statistics(own.gram[whole], own.cross[whole])
        )
        memo[name] = replace(
            kept, stats=stats, code=after * folds + points.fold, n_groups=n_after * folds
        )
    return replace(probe, memo=memo)
