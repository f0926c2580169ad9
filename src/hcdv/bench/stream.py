"""Table `stream`: sessions arrive day by day, and every day all so far are valued anew.

Paper: Sec. "Valuation in Streaming Settings". What it leaves open, and what is done here:

- The stream is drawn by seed. A session has 64 columns: three one-hot fields (device of 4,
  hour of 8, category of 12, of Zipf frequencies) and 40 numbers, an embedding around one of
  10 hidden interests, each with its own category. A purchase follows a logistic law, linear
  in all columns, with the product of category and hour on top, and noise of its own. Its
  weights turn by 5 degrees a day towards others, and the mix of interests moves; the
  intercept is set every day for 15 % purchases in expectation.
- A day brings 1,500 sessions to be valued and 500 more that judge: values, the early
  stopping of the model, nothing else. Only the latest judges judge, as tomorrow is nearer
  to today than to last week.
- Every day a method values all sessions so far and keeps the best 20 %; Wide&Deep with
  two ReLU layers of 128 is taught from scratch on these (`downstream.py`). It is scored by
  the AUC on 6,000 sessions of the *next* day's law, none of which is ever valued.
- A method is made anew for every stream and then called day by day with all sessions so
  far and the number of those that are new, so it may keep what it likes between days.
  The full ones keep nothing: they are the batch API, called ten times. The incremental
  ones fit on the first day and then take in each day's sessions, on the tree there is, with
  the day's judges in place of those before; lazily, or with all values refreshed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from hcdv.bench import methods
from hcdv.bench.cells import Ask, Key, Record
from hcdv.bench.methods import Problem, Scores
from hcdv.estimator import HCDV

Floats = NDArray[np.float64]

N_DEVICES, N_HOURS, N_CATEGORIES, N_NUMBERS, N_INTERESTS = 4, 8, 12, 40, 10
PURCHASES, KEPT = 0.15, 0.2
TURN = np.deg2rad(5.0)  # of the weights, a day
REBALANCED = 4_500  # arrived sessions after which leaves are rebalanced: the paper's m = 3
N_JUDGES, N_NEXT = 500, 6_000  # sessions a day that judge; of the next day that score

Step = Callable[[Problem, int], Scores]  # (all so far, how many of them are new) → values


@dataclass(frozen=True)
class Day:
    """Sessions, purchases, and how likely each purchase was."""

    X: Floats  # (n, 64)
    y: NDArray[np.intp]
    chance: Floats


class ClickStream:
    """A law of sessions and purchases that drifts from day to day."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 51])
        n_columns = N_DEVICES + N_HOURS + N_CATEGORIES + N_NUMBERS
        self.seed = seed
        self.centres = rng.normal(size=(N_INTERESTS, N_NUMBERS))
        self.category_of = rng.integers(N_CATEGORIES, size=N_INTERESTS)
        self.weights = rng.normal(size=(2, n_columns)) * 0.2
        self.product = rng.normal(size=(2, N_CATEGORIES, N_HOURS)) * 0.5
        self.appeal = rng.normal(size=(2, N_INTERESTS))

    def day(self, number: int, n: int, part: int) -> Day:
        """Sessions of a day; parts of it are independent draws of the same law."""
        now = np.array([np.cos(number * TURN), np.sin(number * TURN)])
        rng = np.random.default_rng([self.seed, 52, number, part])
        liked = np.exp(np.tensordot(now, self.appeal, 1))
        interest = rng.choice(N_INTERESTS, n, p=liked / liked.sum())
        device = _zipf(N_DEVICES, n, rng)
        hour = rng.integers(N_HOURS, size=n)
        category = np.where(
            rng.random(n) < 0.5, self.category_of[interest], _zipf(N_CATEGORIES, n, rng)
        )
        numbers = self.centres[interest] + rng.normal(size=(n, N_NUMBERS))
        hot = [
            np.eye(k)[code]
            for k, code in (
                (N_DEVICES, device), (N_HOURS, hour), (N_CATEGORIES, category),
            )
        ]  # fmt: skip
        X = np.concatenate([*hot, numbers], axis=1)
        score = X @ np.tensordot(now, self.weights, 1)
        score += np.tensordot(now, self.product, 1)[category, hour]
        chance = 1.0 / (1.0 + np.exp(-(score + _intercept(score))))
        return Day(X, (rng.random(n) < chance).astype(np.intp), chance)


def _zipf(k: int, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    share = 1.0 / np.arange(1, k + 1)
    return rng.choice(k, n, p=share / share.sum())


def _intercept(score: Floats) -> float:
    """What brings the mean chance to the share of purchases."""
    from scipy.optimize import brentq

    def off(level: float) -> float:
        return float(np.mean(1.0 / (1.0 + np.exp(-(score + level))))) - PURCHASES

    return float(brentq(off, -50.0, 50.0))


def anew(name: str) -> Callable[[], Step]:
    """A method of the batch API: every day all is valued from nothing."""
    return lambda: lambda problem, n_new: methods.METHODS[name](problem)  # noqa: ARG005


def incrementally(*, refreshed: bool) -> Step:
    """One estimator that lives through the stream."""
    model: HCDV | None = None

    def step(problem: Problem, n_new: int) -> Scores:
        nonlocal model
        began = perf_counter()
        if model is None:
            model, _ = methods.fitted(problem, rebalance_every=REBALANCED)
        else:
            new = slice(len(problem.y) - n_new, None)
            model.partial_fit(problem.X[new], problem.y[new], problem.X_val, problem.y_val)
            if refreshed:
                model.refresh()
        held = model
        return Scores(held.values_, perf_counter() - began, held.select, held)

    return step


def everything(problem: Problem, n_new: int) -> Scores:  # noqa: ARG001
    """No valuation: all rows are kept."""
    rows = np.arange(len(problem.y))
    return Scores(np.ones(len(rows)), 0.0, lambda _: rows)


METHODS: dict[str, Callable[[], Step]] = {
    "hcdv full": anew("hcdv"),
    "hcdv top full": anew("hcdv top"),
    "hcdv incremental": lambda: incrementally(refreshed=False),
    "hcdv incremental refreshed": lambda: incrementally(refreshed=True),
    "group shapley full": anew("group shapley"),
    "random": anew("random"),
    "all data": lambda: everything,
}


class StreamTable:
    """AUC on the next day and the time of valuation, day by day."""

    name = "stream"

    def cells(self, ask: Ask) -> Iterable[Key]:
        """Streams, and the methods on each."""
        for seed in range(1 if ask.fast else ask.seeds):
            for method in METHODS:
                yield {"method": method, "seed": seed}

    def measured(self, key: Key, ask: Ask) -> Record:
        """AUC, seconds and the make-up of the rows kept, by day."""
        n_days, per_day = (3, 300) if ask.fast else (10, 1_500)
        stream, step = ClickStream(key["seed"]), METHODS[key["method"]]()
        days: list[Day] = []
        by_day: list[Record] = []
        for number in range(1, n_days + 1):
            days.append(stream.day(number, per_day, 0))
            by_day.append(_one_day(stream, days, step, key["seed"]))
        named = {name: [day[name] for day in by_day] for name in by_day[0]}
        return {
            **named,
            "final_auc": by_day[-1]["auc"],
            "cumulative_seconds": float(np.sum(named["seconds"])),
            "mean_seconds": float(np.mean(named["seconds"])),
        }

    def page(self, records: list[Record]) -> str:
        """All cells as Markdown."""
        from hcdv.bench.stream_page import page

        return page(records)

    def figures(self, records: list[Record], folder: Path) -> list[Path]:
        """AUC and cumulative seconds by day."""
        from hcdv.bench.stream_page import figure

        return figure(records, folder)


def _one_day(stream: ClickStream, days: list[Day], step: Step, seed: int) -> Record:
    from hcdv.bench.downstream import scored, wide_and_deep

    number = len(days)
    judges, later = stream.day(number, N_JUDGES, 1), stream.day(number + 1, N_NEXT, 2)
    X, y = np.concatenate([d.X for d in days]), np.concatenate([d.y for d in days])
    problem = Problem(X, y, judges.X, judges.y, 2, seed, "auc")
    began, began_cpu = perf_counter(), process_time()
    scores = step(problem, len(days[-1].y))
    seconds, cpu = perf_counter() - began, process_time() - began_cpu
    rows = scores.pick(KEPT)
    model = wide_and_deep(X[rows], y[rows], judges.X, judges.y, seed)
    day_of = np.repeat(np.arange(number), [len(d.y) for d in days])
    return {
        "auc": scored("auc", later.y, model.predict_proba(later.X)),
        "seconds": seconds,
        "cpu": cpu,
        "surplus": None if scores.fitted is None else scores.fitted.run_.valuation.surplus,
        "bayes_auc": scored("auc", later.y, np.c_[1 - later.chance, later.chance]),
        "rebalances": _rebalances(scores),
        "n_kept": len(rows),
        "purchases_kept": float(y[rows].mean()),
        "of_last_day": float(np.mean(day_of[rows] == number - 1)),
    }


def _rebalances(scores: Scores) -> int:
    living = None if scores.fitted is None else scores.fitted.run_.living
    return 0 if living is None else living.n_rebalances


BENCH = StreamTable()
