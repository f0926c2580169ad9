"""Data-OOB: how often trees that have not drawn a row guess its label.

After Kwon and Zou (2023), with a random forest as the bagged model: 100 trees, each split
among √d columns. A row drawn by every tree takes the mean of the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcdv.bench.methods import Problem, numbers

N_TREES = 100


def data_oob(problem: Problem) -> NDArray[np.float64]:
    """Share of out-of-bag trees that are right, (n,)."""
    from sklearn.ensemble import RandomForestClassifier

    X = numbers(problem)[0].astype(np.float32)
    forest = RandomForestClassifier(N_TREES, random_state=problem.seed, n_jobs=-1)
    forest.fit(X, problem.y)
    right, seen = np.zeros(len(X)), np.zeros(len(X))
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        is_out = np.ones(len(X), dtype=bool)
        is_out[drawn] = False
        guess = forest.classes_[tree.predict(X[is_out]).astype(np.intp)]
        right[is_out] += guess == problem.y[is_out]
        seen[is_out] += 1
    values = right / np.maximum(seen, 1)
    return np.where(seen > 0, values, values[seen > 0].mean())
