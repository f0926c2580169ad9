"""OpenDataVal's three tasks on its three embedding sets: wrong labels, removal, addition."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hcdv.bench.datasets import load
from hcdv.bench.methods import Problem
from hcdv.bench.noise import flipped

SETS = {"bbc": 500, "imdb": 500, "cifar10": 3000}  # name → clean test rows
RATES = (0.05, 0.15)
N_TRAIN, N_VAL = 1000, 100


@dataclass(frozen=True)
class Drawn:
    """Rows of one set with wrong labels among those to train on and those to judge by."""

    problem: Problem
    wrong: NDArray[np.bool_]  # of the rows to train on
    X_test: NDArray[np.float32]
    y_test: NDArray[np.intp]

    @property
    def digest(self) -> str:
        """What a peer's values must have been computed for."""
        p = self.problem
        parts = (p.X, p.y, p.X_val, p.y_val)
        return sha256(
            b"".join(np.ascontiguousarray(a).tobytes() for a in parts)
        ).hexdigest()


def draw(data: str, rate: float, seed: int, folder: Path | None) -> Drawn:
    """1,000 rows to train on, 100 to judge by and up to 3,000 to test; labels flipped.

    The rows depend on the seed alone; both rates flip labels of the same rows.
    """
    whole = load(data, folder)
    order = np.random.default_rng(seed).permutation(len(whole.y))
    ends = np.cumsum([N_TRAIN, N_VAL, SETS[data]])
    (X, y), (X_val, y_val), (X_test, y_test) = (
        whole.rows(rows) for rows in np.split(order, ends)[:3]
    )
    rng = np.random.default_rng([seed, round(100 * rate)])
    y, wrong = flipped(y, whole.n_classes, rate, rng)
    y_val, _ = flipped(y_val, whole.n_classes, rate, rng)
    problem = Problem(X, y, X_val, y_val, whole.n_classes, seed)
    return Drawn(problem, wrong, X_test, y_test)
