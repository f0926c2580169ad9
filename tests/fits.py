"""Small tables to value, and estimators set to be quick on them."""

from __future__ import annotations

import numpy as np

from hcdv import HCDV

QUICK = {
    "utility": "linear", "n_contexts": 16, "n_permutations": 4, "leaf_size": 8,
    "branching": 4, "n_jobs": 1, "random_state": 0,
}  # fmt: skip


def quick(**settings):
    """An estimator that values a hundred rows in a tenth of a second."""
    return HCDV(**(QUICK | settings))


def two_classes(n=60, d=5, seed=0, noise=0.3):
    """Rows and labels that a plane tells apart, but for some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + noise * rng.normal(size=n) > 0).astype(int)


def flipped(y, rate, rng, kind="uniform"):
    """Labels of which exactly a share is wrong, and which those are."""
    n_classes = int(y.max()) + 1
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(rate * len(y)), replace=False)] = True
    shift = rng.integers(1, n_classes, len(y)) if kind == "uniform" else 1
    return np.where(wrong, (y + shift) % n_classes, y), wrong


def row_scores(v):
    """Suspicion of every row, in the order of the rows."""
    return v.suspects().sort_values("row")["score"].to_numpy()
