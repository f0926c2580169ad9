"""Tables with a tenth of the training labels flipped, known by name."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits, make_classification

FLIP_RATE = 0.1


def digits(n_rows, n_val, seed=0):
    """Return rows of scikit-learn's handwritten digits, 64 grey levels in [0, 1] each."""
    X, y = load_digits(return_X_y=True)
    return with_flips(X / 16, y, n_rows, n_val, seed)


def blobs(n_rows, n_val, seed=0):
    """Return rows of a made table: 10 classes, 64 features of which 32 tell the class."""
    X, y = make_classification(
        n_rows + n_val,
        n_features=64,
        n_informative=32,
        n_redundant=0,
        n_classes=10,
        n_clusters_per_class=1,
        class_sep=1.25,
        flip_y=0,
        random_state=seed,
    )
    return with_flips(X, y, n_rows, n_val, seed)


def with_flips(X, y, n_rows, n_val, seed):
    """Draw n_rows to train on and n_val to check with; only training labels are flipped."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[: n_rows + n_val]
    train, held_out = rows[:n_rows], rows[n_rows:]
    n_classes = y.max() + 1
    flipped = np.zeros(n_rows, dtype=bool)
    flipped[rng.choice(n_rows, round(FLIP_RATE * n_rows), replace=False)] = True
    shift = np.where(flipped, rng.integers(1, n_classes, n_rows), 0)
    return {
        "X_train": X[train],
        "y_train": (y[train] + shift) % n_classes,
        "X_val": X[held_out],
        "y_val": y[held_out],
        "flipped": flipped,
    }


TABLES = {
    "digits-500": lambda: digits(500, 100),
    "digits-1000": lambda: digits(1000, 100),
    "blobs-10000": lambda: blobs(10_000, 1000),
}
