"""Encoders fitted on the other folds: no row is embedded by one that saw its label."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.encoders import Encoder
from hcdv.errors import DataError


def fold_encoders(
    encoder: Encoder, X: Any, y: Any, folds: NDArray[np.intp], rng: np.random.Generator
) -> list[Encoder]:
    """One fitted encoder a fold: the k-th has seen no row, hence no label, of fold k.

    folds holds the fold (0 … K−1) of each row. To judge row i by its label, embed all
    rows by encoder folds[i]: vectors of two encoders do not share a space. An encoder
    that sees no labels has nothing to leak, and one fit on all rows serves every fold.
    """
    n_folds = int(folds.max()) + 1
    if not encoder.supervised:
        return [encoder.fit(X, None, rng)] * n_folds
    if n_folds < 2:
        raise DataError("folds must number at least 2 to fit on the others, got 1.")
    labels = np.asarray(y)
    # Each encoder draws from a stream of its own: fold k does not move with the others.
    return [
        copy.deepcopy(encoder).fit(X[folds != k], labels[folds != k], child)
        for k, child in enumerate(rng.spawn(n_folds))
    ]
