"""What the probe makes of fewer rows: the best or the worst of them, any, or those selected.

Models of all these sets follow from sums over slices of the rows, so nothing is retrained:
what the best k slices teach is a prefix sum, what is left without them the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcdv.uses.selection import number_kept, select
from hcdv.valuation.moments import metric_of_models
from hcdv.valuation.points import Judge
from hcdv.valuation.probe import solve
from hcdv.valuation.statistics import Statistics, group_statistics

if TYPE_CHECKING:
    from hcdv.result import Run

N_STEPS = 20
SELECTED = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
_SCORED = 8192  # rows of a judge that score: their share of hits errs by half a per cent
_SCORES = 2**25  # scores held at once


@dataclass(frozen=True)
class Curves:
    """The metric of the probe taught with shares of the rows, mean over judges.

    Removing the best rows leaves the worst: what is kept says both, so the curve of removal
    is that of addition, read from the other end.
    """

    metric: str
    share: NDArray[np.float64]  # (N_STEPS + 1,)  0 … 1 of the rows
    best: NDArray[np.float64]  # taught with that share of the highest values
    worst: NDArray[np.float64]  # of the lowest
    random: NDArray[np.float64]  # of any
    selected_share: NDArray[np.float64]
    selected: NDArray[np.float64]  # taught with what `select` keeps

    @property
    def whole(self) -> float:
        """The metric of the probe taught with all rows."""
        return float(self.best[-1])

    @property
    def empty(self) -> float:
        """The metric of knowing nothing."""
        return float(self.best[0])


def value_curves(run: Run, n_steps: int = N_STEPS) -> list[Curves]:
    """Teach the probe with growing shares of the rows, by value, by chance and as selected.

    By the metric of the run first; where that is the loss, by accuracy as well.
    """
    n = run.n_rows
    n_steps = min(n_steps, n)
    by_value = np.argsort(-run.valuation.values, kind="stable")
    by_chance = np.random.default_rng([run.plan.seed, 9]).permutation(n)
    kept = [share for share in SELECTED if share * n >= 2]
    code, member = _combined(
        [_chosen(run, share) for share in kept] or [np.zeros(n, dtype=bool)]
    )
    rounds = [
        (_slices(by_value, n_steps), n_steps),
        (_slices(by_chance, n_steps), n_steps),
        (code, member.shape[1]),
    ]
    metrics = _metrics(run)
    total = np.zeros((len(metrics), 1 + 3 * n_steps + len(kept)))
    for k, judge in enumerate(run.case.judges):
        sums = [_slice_sums(run, judge, code, count) for code, count in rounds]
        prefix = _prefixes(sums[0])
        models = np.concatenate([
            np.zeros((1, *prefix.cross.shape[1:])),
            solve(prefix, run.valuation.probe.ridge),
            solve(_rest(prefix), run.valuation.probe.ridge),
            solve(_prefixes(sums[1]), run.valuation.probe.ridge),
            solve(_unions(sums[2], member), run.valuation.probe.ridge)[: len(kept)],
        ])  # fmt: skip
        total += _scored(run, judge, k, models, metrics)
    total /= len(run.case.judges)
    shares = np.array([number_kept(share, "quota", n) / n for share in kept])
    return [_curves(*each, n_steps, shares) for each in zip(metrics, total, strict=True)]


def _curves(
    metric: str, scored: NDArray[np.float64], n_steps: int, shares: NDArray[np.float64]
) -> Curves:
    """Scores of one metric, in the order in which the models were taught."""
    empty, total = scored[0], scored[1:]
    best, rest, random = total[: 3 * n_steps].reshape(3, n_steps)
    return Curves(
        metric, np.arange(n_steps + 1) / n_steps, np.r_[empty, best],
        np.r_[empty, rest[::-1]], np.r_[empty, random],
        shares, total[3 * n_steps :],
    )  # fmt: skip


@dataclass(frozen=True)
class Discovery:
    """How soon wrong labels are met when rows are looked at in some order."""

    looked: NDArray[np.float64]  # share of the rows looked at
    found: NDArray[np.float64]  # share of the wrong labels among them
    auroc: float
    precision: float  # share of wrong labels among as many first rows as are wrong


def discovery(order: NDArray[np.integer], is_wrong: NDArray[np.bool_]) -> Discovery:
    """The curve of an order of suspicion, the most suspicious row first."""
    hit = is_wrong[order]
    n, n_wrong = len(hit), int(hit.sum())
    met = np.r_[0, np.cumsum(hit)]
    at = np.unique(np.round(np.linspace(0, n, 101)).astype(np.intp))
    wrong_before = np.cumsum(hit)[~hit].sum()
    pairs = n_wrong * (n - n_wrong)
    return Discovery(
        at / n, met[at] / max(n_wrong, 1), float(wrong_before / pairs) if pairs else 0.5,
        float(met[n_wrong] / max(n_wrong, 1)),
    )  # fmt: skip


def _metrics(run: Run) -> tuple[str, ...]:
    """What values are made of, and what says more to a person."""
    metric = run.plan.metric
    if not run.case.points.n_classes:
        return ("r2",)
    return ("loss", "accuracy") if metric == "loss" else (metric,)


def _slices(order: NDArray[np.intp], n_steps: int) -> NDArray[np.intp]:
    """The slice of every row, where the order is cut into equal ones."""
    code = np.empty(len(order), dtype=np.intp)
    code[order] = np.arange(len(order)) * n_steps // len(order)
    return code


def _chosen(run: Run, share: float) -> NDArray[np.bool_]:
    """Rows in the canonical order that a selection keeps."""
    kept = np.zeros(run.n_rows, dtype=bool)
    kept[select(run, share)] = True
    return kept[run.position]


def _combined(
    chosen: list[NDArray[np.bool_]],
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Codes of rows that lie in the same sets, and which set holds which code, (sets, codes)."""
    mask = np.zeros(len(chosen[0]), dtype=np.intp)
    for bit, rows in enumerate(chosen):
        mask |= rows.astype(np.intp) << bit
    found, code = np.unique(mask, return_inverse=True)
    bits = np.arange(len(chosen))[:, None]
    return code, ((found >> bits) & 1).astype(np.float64)


def _slice_sums(run: Run, judge: Judge, code: NDArray[np.intp], n_codes: int) -> Statistics:
    """Statistics of the rows of every code that may teach a judge's models."""
    points = run.case.views[judge.view]
    taught = np.where(run.case.taught(judge), code, n_codes)
    features = run.valuation.probe.features[judge.view]
    return group_statistics(
        points, features, taught, n_codes, weight=points.weight, n_jobs=run.plan.n_jobs
    )


def _prefixes(sums: Statistics) -> Statistics:
    return Statistics(np.cumsum(sums.gram, axis=0), np.cumsum(sums.cross, axis=0))


def _rest(prefix: Statistics) -> Statistics:
    """What is left without the first k slices, k = 0 first."""
    whole = Statistics(prefix.gram[-1:], prefix.cross[-1:])
    left = whole - prefix
    return Statistics(
        np.concatenate([whole.gram, left.gram[:-1]]),
        np.concatenate([whole.cross, left.cross[:-1]]),
    )


def _unions(sums: Statistics, member: NDArray[np.float64]) -> Statistics:
    return Statistics(
        np.tensordot(member, sums.gram, 1), np.tensordot(member, sums.cross, 1)
    )


def _scored(
    run: Run, judge: Judge, k: int, models: NDArray[np.float64], metrics: tuple[str, ...]
) -> NDArray[np.float64]:
    """Metrics of models on a judge's rows; of very many rows, on an even part of them."""
    points, probe = judge.points, run.valuation.probe
    most = min(_SCORED, max(64, _SCORES // (len(models) * points.width)))
    if len(points) > most:
        points = points.take(np.arange(most) * len(points) // most)
    features = probe.features[judge.view]
    return np.stack([
        metric_of_models(metric, models, points, features, probe.moments[k])
        for metric in metrics
    ])  # fmt: skip
