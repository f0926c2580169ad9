"""The paper's Tables 1 and 2: train on the best 30 % by each method, on noisy and clean labels.

Protocol, where the paper is silent:
- A seed draws the split, the flips and the valuation. Test rows are never valued, nor seen
  by a model; their labels are clean. 1,000 validation rows judge the values and stop and
  tune the models; where labels are noisy, theirs are too, at the same rate.
- Synthetic: 3,000 rows to value, validation and 10,000 test rows drawn besides. Adult: a
  fifth of the rows is the test set. Fashion-MNIST: the published test set. CTR: 60,000
  generated rows to value at 25 % clicks, 20,000 test rows (`ctr`).
- Noisy: 10 % of the labels, uniformly to another class.
- Frames become numbers by the training rows alone, once for all methods and models.
- Every method is told the same: rows, labels, validation rows; none is told the metric.
- On Adult, judged by balanced accuracy, models weigh classes alike, for every method.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.bench import methods, stability
from hcdv.bench.cells import Ask, Key, Record
from hcdv.bench.ctr import ClickLog, features
from hcdv.bench.data_oob import data_oob
from hcdv.bench.datasets import load
from hcdv.bench.downstream import scored, train
from hcdv.bench.methods import Problem, Scores
from hcdv.bench.noise import flipped
from hcdv.bench.pages import Column, field, table
from hcdv.bench.synthetic import N_ROWS, synthetic

KEPT = 0.3
RATE = 0.1
N_VALIDATION = 1000
LABELS = ("noisy", "clean")
RULES = {"hcdv": "quota", "hcdv top": "top", "hcdv greedy": "greedy"}  # one valuation
ALL = "all data"
METHODS = (
    *RULES, "hcdv paper", "mcds", "group shapley", "banzhaf", "loo", "knn 10", "data-oob",
    "random", ALL,
)  # fmt: skip
FAST_METHODS = ("hcdv", "hcdv top", "knn 10", "random", ALL)
BUDGET = 900.0  # seconds of a valuation, or of a choice; what needs longer is told, not run
GROWTH = {"hcdv greedy": 2.0, "hcdv paper": 1.0}  # time by rows: of what may need longer
PILOT = 8  # tried on this part of the rows first
CTR_ROWS = 60_000
CTR_RATE = 0.25


@dataclass(frozen=True)
class Judged:
    """How choices are judged on a set."""

    model: str
    metric: str
    balanced: bool = False


SETS = {
    "synthetic": Judged("mlp", "auc"),
    "adult": Judged("logistic", "balanced_accuracy", balanced=True),
    "fashion-mnist": Judged("convnet", "accuracy"),
    "ctr": Judged("wide-deep", "auc"),
}
METRICS = {"auc": "AUC", "balanced_accuracy": "balanced accuracy", "accuracy": "accuracy"}


@dataclass(frozen=True)
class Split:
    """Rows to value with the labels given, which are wrong, and rows as models take them."""

    problem: Problem
    wrong: NDArray[np.bool_]
    X: Any  # numbers or images: train, validation and test
    X_val: Any
    X_test: Any
    y_test: NDArray[np.intp]


@lru_cache(maxsize=1)
def split(
    data: str, labels: str, seed: int, folder: Path | None = None, n: int | None = None
) -> Split:
    """The rows of a set for a seed; n: fewer (CTR: more) rows to value, and to test on."""
    X, y, parts = _drawn(data, seed, folder, n)
    return split_of(X, y, parts, labels, seed)


def split_of(
    X: Any, y: NDArray[np.intp], parts: Sequence[NDArray[np.intp]], labels: str, seed: int
) -> Split:
    """Train, validation and test rows of a set; labels flipped where they are to be."""
    X, X_val, X_test = (X.iloc[p] if hasattr(X, "iloc") else X[p] for p in parts)
    given, given_val, y_test = (y[part] for part in parts)
    n_classes = int(y.max()) + 1
    wrong = np.zeros(len(given), dtype=bool)
    if labels == "noisy":
        rng = np.random.default_rng([seed, 36])
        given, wrong = flipped(given, n_classes, RATE, rng)
        given_val, _ = flipped(given_val, n_classes, RATE, rng)
    problem = Problem(X, given, X_val, given_val, n_classes, seed)
    if hasattr(X, "iloc"):
        X, X_val = (part.astype(np.float32) for part in methods.numbers(problem))
        X_test = methods.numbers(replace(problem, X_val=X_test))[1].astype(np.float32)
    return Split(problem, wrong, X, X_val, X_test, y_test)


def _drawn(data: str, seed: int, folder: Path | None, n: int | None) -> Any:
    """Rows and labels of a set, and which of them are train, validation and test."""
    n_val = N_VALIDATION if n is None else min(N_VALIDATION, max(n // 3, 100))
    if data == "synthetic":
        sizes = (n or N_ROWS, n_val, 10_000)
        X, y = synthetic(sum(sizes), seed)
        return X, y, _parts(np.arange(sum(sizes)), sizes)
    if data == "ctr":
        sizes = (n or CTR_ROWS, n_val, 20_000 if n is None else max(n // 3, 1000))
        log = ClickLog(seed, CTR_RATE)
        X, y = features(log.rows(0, sum(sizes)).table().to_pandas())
        return X, y, _parts(np.arange(sum(sizes)), sizes)
    rows, rng = load(data, folder), np.random.default_rng([seed, 37])
    if data == "fashion-mnist":
        order = np.concatenate([rng.permutation(60_000), np.arange(60_000, 70_000)])
        sizes = (60_000 - n_val, n_val, 10_000)
    else:
        order = rng.permutation(len(rows.y))
        n_test = len(order) // 5
        sizes = (len(order) - n_val - n_test, n_val, n_test)
    train_rows, val_rows, test_rows = _parts(order, sizes)
    return (
        rows.X,
        rows.y,
        (train_rows[:n], val_rows, test_rows[: None if n is None else 1000]),
    )


def _parts(order: NDArray[np.intp], sizes: tuple[int, ...]) -> list[NDArray[np.intp]]:
    return np.split(order, np.cumsum(sizes)[:-1])


def valued(method: str, problem: Problem) -> Scores:
    """Values by a method of the table; the rules of hcdv share one valuation."""
    if method in RULES:
        scores = _ours(_Once(problem))
        assert scores.fitted is not None
        model, how = scores.fitted, RULES[method]
        return replace(scores, pick=lambda share: model.select(share, how=how))
    if method == "data-oob":
        began = perf_counter()
        values = data_oob(problem)
        return Scores(values, perf_counter() - began, methods.top(values))
    return methods.METHODS[method](problem)


@dataclass(frozen=True, eq=False)
class _Once:
    """A problem that can be looked up: it is equal to itself alone."""

    problem: Problem

    def __hash__(self) -> int:
        return id(self.problem)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Once) and other.problem is self.problem


@lru_cache(maxsize=1)
def _ours(once: _Once) -> Scores:
    return methods.ours(once.problem)


def too_long(method: str, problem: Problem) -> float | None:
    """Seconds a method would need, if a part of the rows says: more than the budget."""
    n = len(problem.y) // PILOT
    if method not in GROWTH or n < 1000:
        return None
    X = problem.X.iloc[:n] if hasattr(problem.X, "iloc") else problem.X[:n]
    began = perf_counter()
    valued(method, replace(problem, X=X, y=problem.y[:n])).pick(KEPT)
    seconds = (perf_counter() - began) * PILOT ** GROWTH[method]
    return seconds if seconds > BUDGET else None


def retrained(cut: Split, judged: Judged, method: str) -> Record:
    """What the rows that a method keeps teach, and what finding them took."""
    problem = cut.problem
    found: Record = {"n": len(problem.y), "n_validation": len(problem.y_val)}
    rows = np.arange(len(problem.y))
    if method != ALL:
        if seconds := too_long(method, problem):
            return {**found, "unfinished_seconds": seconds}
        scores = valued(method, problem)
        began = perf_counter()
        rows = scores.pick(KEPT)
        found["valuation_seconds"] = scores.seconds
        found["choice_seconds"] = perf_counter() - began
        found |= detection(scores.values, cut.wrong, problem.y)
    began = perf_counter()
    model = train(
        judged.model, cut.X[rows], problem.y[rows], cut.X_val, problem.y_val, problem.seed,
        balanced=judged.balanced,
    )  # fmt: skip
    found["training_seconds"] = perf_counter() - began
    chances = model.predict_proba(cut.X_test)
    found["score"] = scored(judged.metric, cut.y_test, chances)
    for metric in ("accuracy", "balanced_accuracy", "macro_f1"):
        found[metric] = scored(metric, cut.y_test, chances)
    found["wrong_kept"] = float(cut.wrong[rows].mean())
    return found


def detection(
    values: NDArray[np.float64], wrong: NDArray[np.bool_], y: NDArray[np.intp]
) -> Record:
    """AUROC of wrong labels among the lowest values, and its mean within given classes."""
    from sklearn.metrics import roc_auc_score

    if not wrong.any():
        return {}
    classes = [y == c for c in np.unique(y)]
    within = [
        roc_auc_score(wrong[rows], -values[rows])
        for rows in classes
        if 0 < wrong[rows].sum() < rows.sum()
    ]
    return {
        "noise_auroc": float(roc_auc_score(wrong, -values)),
        "noise_auroc_within": float(np.mean(within)),
    }


class MainTable:
    """Tables 1 and 2 of the paper."""

    name = "main"

    def cells(self, ask: Ask) -> Iterable[Key]:
        """Choices by set, labels, split and method; then how stable values are."""
        for data in SETS:
            for labels in LABELS[: 1 if ask.fast else None]:
                for seed in range(1 if ask.fast else ask.seeds):
                    is_short = ask.fast and data != "synthetic"
                    for method in FAST_METHODS if is_short else METHODS:
                        yield {
                            "part": "choice", "data": data, "labels": labels,
                            "method": method, "seed": seed,
                        }  # fmt: skip
        for seed in range(1 if ask.fast else ask.seeds):
            for method in stability.METHODS:
                for tree in stability.TREES:
                    yield {
                        "part": "stability", "data": "synthetic", "method": method,
                        "tree": tree, "seed": seed,
                    }  # fmt: skip

    def measured(self, key: Key, ask: Ask) -> Record:
        """Numbers of one cell."""
        n = {"synthetic": 400, "fashion-mnist": 500}.get(key["data"], 800)
        size = n if ask.fast else None
        cut = split(key["data"], key.get("labels", "clean"), key["seed"], ask.data, size)
        if key["part"] == "choice":
            return retrained(cut, SETS[key["data"]], key["method"])
        runs = stability.repeated(key["method"], cut.problem, key["tree"])
        return {"cv": stability.coefficient_of_variation(runs), "runs": len(runs)}

    def page(self, records: list[Record]) -> str:
        """All cells as Markdown."""
        choices = [record for record in records if record["part"] == "choice"]
        parts = ["# Trained on the best 30 %", _protocol()]
        for labels in LABELS:
            of = [record for record in choices if record["labels"] == labels]
            if of:
                parts += [f"## {labels.capitalize()} labels", *_tables(of)]
        stable = [record for record in records if record["part"] == "stability"]
        if stable:
            columns = [
                Column(f"tree {t}", field("cv", tree=t), -1) for t in stability.TREES
            ]
            parts += [
                "## Stability of values, Synthetic",
                _STABILITY,
                table(stable, columns),
            ]
        return "\n\n".join(parts)

    def figures(self, records: list[Record], folder: Path) -> list[Path]:
        """None: the page shows all."""
        del records, folder
        return []


_STABILITY = (
    "Coefficient of variation over 5 valuations, mean over rows, lower is better; clean "
    "labels. Tree fixed: sampling alone is drawn anew."
)


def _protocol() -> str:
    models = "; ".join(f"{data}: {judged.model}" for data, judged in SETS.items())
    return (
        f"Mean ± standard deviation over splits, best in bold (all data stands aside). "
        f"Models: {models}. Noisy: {RATE:.0%} of the labels of training and validation rows "
        f"flipped; test labels are clean."
    )


def _tables(records: list[Record]) -> list[str]:
    def columns(name: str, better: int = 1, digits: int = 3, metric: str = "") -> Any:
        return [
            Column(data + (f", {METRICS[of.metric]}" if metric else ""),
                   field(name, data=data), better, digits)
            for data, of in SETS.items()
        ]  # fmt: skip

    shown = [
        ("Test score", columns("score", metric="its")),
        ("Macro-F1", columns("macro_f1")),
        ("Share of wrong labels among the rows kept", columns("wrong_kept", -1)),
        ("AUROC of wrong labels among low values", columns("noise_auroc")),
        ("The same within classes", columns("noise_auroc_within")),
        ("Seconds of valuation", columns("valuation_seconds", 0, 1)),
        ("Seconds of training", columns("training_seconds", 0, 1)),
    ]
    clean = records[0]["labels"] == "clean"
    parts: list[str] = []
    for title, of in shown:
        if not (clean and ("wrong" in title or "within" in title)):
            rows = [r for r in records if any(column.of(r) is not None for column in of)]
            parts += [f"### {title}", table(rows, of, beside=(ALL,))] if rows else []
    late = [record for record in records if "unfinished_seconds" in record]
    parts += [
        f"Not run: {r['method']} on {r['data']}, seed {r['seed']}: about "
        f"{r['unfinished_seconds'] / 3600:.1f} h by a part of the rows, over the budget of "
        f"{BUDGET / 60:.0f} min."
        for r in late
    ]
    return parts


BENCH = MainTable()
