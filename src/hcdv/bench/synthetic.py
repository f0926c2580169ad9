"""The paper's Synthetic set: two classes of three overlapping clusters each, at any size.

paper silent: where the clusters lie and how wide they are. Here their centres are the
corners of a regular hexagon around 0, the classes taking turns, in a random plane of ten
dimensions; all spread alike in every dimension. So no linear rule is better than chance,
both classes have the same mean, and the best rule of all is known (`posterior`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

N_ROWS = 3000
N_DIMENSIONS = 10
RADIUS = 2.0  # neighbouring centres, of different classes, are as far apart
SPREAD = 0.7  # standard deviation: neighbours overlap, the best AUC is .93


def synthetic(n: int = N_ROWS, seed: int = 0) -> tuple[Floats, NDArray[np.intp]]:
    """Rows (n, 10) and their classes; the plane depends on the seed as well."""
    rng = np.random.default_rng([seed, 33])
    corners = centres(seed)
    corner = rng.integers(len(corners), size=n)
    noise = SPREAD * rng.standard_normal((n, N_DIMENSIONS))
    return corners[corner] + noise, (corner % 2).astype(np.intp)


def centres(seed: int) -> Floats:
    """Centres of the six clusters, (6, 10); cluster k is of class k mod 2."""
    rng = np.random.default_rng([seed, 34])
    plane = np.linalg.qr(rng.standard_normal((N_DIMENSIONS, 2)))[0]
    angle = np.arange(6) * np.pi / 3
    return RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1) @ plane.T


def posterior(X: Floats, seed: int) -> Floats:
    """The true chance of class 1, (n,): no model can rank better."""
    gap = ((X[:, None] - centres(seed)) ** 2).sum(axis=2)
    weight = np.exp(-(gap - gap.min(axis=1, keepdims=True)) / (2 * SPREAD**2))
    return weight[:, 1::2].sum(axis=1) / weight.sum(axis=1)
