"""Methods that value the rows of a problem, by name: ours, and baselines on the same engine.

A baseline that is a setting of the engine is that setting, so that the mathematics is the
same and only the method differs: a flat tree is Monte Carlo Data Shapley, one level of
clusters whose rows share alike is Group Shapley, other size weights are Data Banzhaf and
leave-one-out. All of these pay M alone: λ = κ = 0. Baselines, and the paper's own method,
choose the rows of highest value, as in the paper's protocol; `hcdv` chooses by its default rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.estimator import HCDV
from hcdv.functional import knn_shapley

Floats = NDArray[np.float64]
Pick = Callable[[float], NDArray[np.intp]]


@dataclass(frozen=True)
class Problem:
    """Rows to value, and the rows that judge them, with the labels a method is given."""

    X: Any
    y: NDArray[np.intp]
    X_val: Any
    y_val: NDArray[np.intp]
    n_classes: int
    seed: int
    metric: str = "auto"


@dataclass(frozen=True)
class Scores:
    """Values of the rows, what they took, and which share of the rows they choose."""

    values: Floats
    seconds: float
    pick: Pick  # fraction → rows, exactly round(fraction · n) of them
    fitted: HCDV | None = None


def top(values: Floats) -> Pick:
    """The rows of highest value; ties by position."""
    order = np.argsort(-values, kind="stable")
    return lambda fraction: np.sort(order[: round(fraction * len(values))])


def _timed(problem: Problem, how: Callable[[Problem], Floats]) -> Scores:
    began = perf_counter()
    values = np.asarray(how(problem), dtype=np.float64)
    return Scores(values, perf_counter() - began, top(values))


def fitted(problem: Problem, **settings: Any) -> tuple[HCDV, float]:
    """Our estimator on a problem, and the seconds it took."""
    model = HCDV(random_state=problem.seed, n_jobs=-1, metric=problem.metric)
    model.set_params(**settings)
    began = perf_counter()
    model.fit(problem.X, problem.y, problem.X_val, problem.y_val)
    return model, perf_counter() - began


def ours(problem: Problem, how: str = "quota", **settings: Any) -> Scores:
    """HCDV with some settings, choosing rows by one of its rules."""
    model, seconds = fitted(problem, **settings)
    return Scores(model.values_, seconds, lambda share: model.select(share, how=how), model)


_M_ALONE: dict[str, Any] = {"dispersion_weight": 0.0, "consistency_weight": 0.0}


def group_shapley(problem: Problem, n_groups: int = 32) -> Floats:
    """One level of clusters, or of what `branching` names; its rows share alike."""
    size = int(np.ceil(1.2 * len(problem.y) / n_groups))  # above it no cluster is split
    model, _ = fitted(problem, branching=(n_groups,), leaf_size=size, **_M_ALONE)
    tree = model.tree_
    leaves = tree.leaves
    nodes = model.coalitions_
    share = nodes["value"].to_numpy()[leaves] / np.maximum(tree.size[leaves], 1)
    return np.asarray(share[tree.codes(leaves)], dtype=np.float64)


def neighbours(problem: Problem, k: int) -> Floats:
    """Exact KNN-Shapley on the standardised columns, or on vectors as they are."""
    X, X_val = numbers(problem)
    return np.asarray(knn_shapley(X, problem.y, X_val, problem.y_val, k), dtype=np.float64)


def numbers(problem: Problem) -> tuple[Floats, Floats]:
    """Rows as numbers: frames encoded and standardised, images flattened, vectors as given."""
    from hcdv.embedding.tables import TableEncoder, read_rows

    rows = read_rows(problem.X)
    encoder = TableEncoder().fit(rows)
    both = (encoder.transform(rows), encoder.transform(read_rows(problem.X_val)))
    X, X_val = (
        np.asarray(part, dtype=np.float64).reshape(part.shape[0], -1) for part in both
    )
    return X, X_val


def random_values(problem: Problem) -> Floats:
    """Numbers that know nothing."""
    return np.random.default_rng([problem.seed, 99]).random(len(problem.y))


METHODS: dict[str, Callable[[Problem], Scores]] = {
    "hcdv": ours,
    "hcdv top": lambda p: ours(p, how="top"),
    "hcdv greedy": lambda p: ours(p, how="greedy"),
    "hcdv κ=0": lambda p: ours(p, consistency_weight=0.0),
    "hcdv paper": lambda p: ours(p, how="top", method="paper"),
    "mcds": lambda p: ours(p, how="top", branching="flat", **_M_ALONE),
    "group shapley": lambda p: _timed(p, group_shapley),
    "banzhaf": lambda p: ours(p, how="top", semivalue="banzhaf", **_M_ALONE),
    "loo": lambda p: ours(p, how="top", semivalue="loo", **_M_ALONE),
    "knn 10": lambda p: _timed(p, lambda q: neighbours(q, 10)),
    "knn 100": lambda p: _timed(p, lambda q: neighbours(q, 100)),
    "random": lambda p: _timed(p, random_values),
}
