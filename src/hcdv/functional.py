"""The pure mathematics by itself: games in, values out; no estimator, no files, no state.

A game is a callable that maps coalition masks (m, K), one boolean row per coalition, to
m payoffs. Any rule that can be written so can be valued:

>>> import numpy as np
>>> def gloves(masks):  # a left glove is worth something with a right one
...     left, right = masks[:, :1].sum(axis=1), masks[:, 1:].sum(axis=1)
...     return np.minimum(left, right).astype(float)
>>> shapley_exact(gloves, 3).round(3)
array([0.667, 0.167, 0.167])

Sampled, each permutation's gains add up to v(N) − v(∅), so their averages do as well:

>>> estimate = shapley_sampled(gloves, 3, 64, np.random.default_rng(0))
>>> float(estimate.value.sum().round(6))
1.0

Banzhaf's value weighs every coalition alike; it is one semivalue of many:

>>> semivalue_exact(gloves, 3, [0.25, 0.5, 0.25])
array([0.75, 0.25, 0.25])

With a tree, players act in nested groups. `parent` lists each node's parent, breadth
first; here the root has children 1 and 2, and node 2 holds the two right gloves. Values
come for every node, and children sum to their parent:

>>> parent = [-1, 0, 0, 2, 2]
>>> winter_exact(gloves, parent)
array([1.  , 0.5 , 0.5 , 0.25, 0.25])
>>> winter_sampled(gloves, parent, 16, np.random.default_rng(0)).value.round(6)
array([1.  , 0.5 , 0.5 , 0.25, 0.25])

Nearest-neighbour utilities need no sampling, the rows themselves are the players:

>>> X, y = [[0.0], [1.0], [5.0]], [0, 1, 1]
>>> knn_shapley(X, y, [[0.9]], [1], k=1).round(3)
array([-0.167,  0.833,  0.333])
>>> soft_knn_shapley(X, y, [[0.9]], [1], k=1).round(3)
array([-0.333,  0.667,  0.167])
>>> threshold_knn_shapley(X, y, [[0.9]], [1], radius=2.0)
array([-0.5,  0.5,  0. ])
>>> knn_regression_shapley(X, [0.0, 1.0, 1.0], [[0.9]], [1.0], k=1).round(3)
array([-0.167,  0.833,  0.333])

Nor does dispersion, how far rows of different classes lie apart on the unit sphere:

>>> Z = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
>>> dispersion_shapley(Z, [0, 1, 1])
array([0.75, 0.25, 0.5 ])
"""

from __future__ import annotations

from hcdv.embedding.dispersion import dispersion_shapley
from hcdv.valuation.coalition_game import (
    semivalue_exact,
    shapley_exact,
    shapley_sampled,
    winter_exact,
    winter_sampled,
)
from hcdv.valuation.knn import (
    knn_regression_shapley,
    knn_shapley,
    soft_knn_shapley,
    threshold_knn_shapley,
)

__all__ = [
    "dispersion_shapley",
    "knn_regression_shapley",
    "knn_shapley",
    "semivalue_exact",
    "shapley_exact",
    "shapley_sampled",
    "soft_knn_shapley",
    "threshold_knn_shapley",
    "winter_exact",
    "winter_sampled",
]


def __dir__() -> list[str]:
    return __all__
