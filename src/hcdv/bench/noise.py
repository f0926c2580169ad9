"""Wrong labels put in on purpose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.intp]


def flipped(
    y: Labels, n_classes: int, rate: float, rng: np.random.Generator, kind: str = "uniform"
) -> tuple[Labels, NDArray[np.bool_]]:
    """Labels of which round(rate · n) are wrong, and which: to any other class, or the next."""
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(rate * len(y)), replace=False)] = True
    step = np.ones(len(y), dtype=np.intp)
    if kind == "uniform":
        step = rng.integers(1, n_classes, len(y))
    return np.where(wrong, (y + step) % n_classes, y), wrong
