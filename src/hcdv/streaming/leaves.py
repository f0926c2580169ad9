"""Which leaf a new row joins: the nearest by cosine, or one of its own if all are far.

departs from paper: prototypes stay as they are until leaves are rebalanced. If they moved
with every batch, the leaf of a row would depend on how the stream was cut into batches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.tree import Tree

_BLOCK = 1 << 22  # similarities at once


class Joined(NamedTuple):
    """Where rows go, and the leaves that sprout for those far from all others."""

    prototype: NDArray[np.intp]  # (b,)  index into the prototypes, new ones after the old
    sprouted: NDArray[np.intp]  # (k,)  the row that each new leaf sprouts for
    beside: NDArray[np.intp]  # (k,)  the prototype that was nearest to it


def leaf_prototypes(Z: NDArray[np.floating], tree: Tree) -> NDArray[np.float64]:
    """Mean direction of every leaf's rows, in the order of `tree.leaves`; empty ones: 0."""
    sums = np.zeros((len(tree.leaves), Z.shape[1]))
    filled = np.flatnonzero(tree.size[tree.leaves] > 0)
    starts = tree.start[tree.leaves[filled]]
    for column in range(Z.shape[1]):  # one column at a time: no copy of all of Z
        sums[filled, column] = np.add.reduceat(
            Z[tree.order, column].astype(np.float64), starts
        )
    norm = np.linalg.norm(sums, axis=1, keepdims=True)
    return sums / np.where(norm > 0, norm, 1.0)


def join_leaves(
    Z: NDArray[np.floating], prototypes: NDArray[np.float64], spawn_distance: float | None
) -> Joined:
    """Send rows to prototypes, in their order: a leaf that sprouts takes later rows too."""
    nearest, similarity = _nearest(Z, prototypes)
    sprouted: list[int] = []
    beside: list[int] = []
    prototype = nearest
    if spawn_distance is not None:
        far = similarity < 1.0 - spawn_distance
        while far.any():
            row = int(np.argmax(far))
            beside.append(int(prototype[row]))
            later = np.arange(row, len(Z))
            own = Z[later].astype(np.float64) @ Z[row].astype(np.float64)
            own[0] = 2.0  # the row itself, even one of zeros
            closer = later[own > similarity[later]]
            prototype[closer] = len(prototypes) + len(sprouted)
            similarity[closer] = own[closer - row]
            far[closer] = similarity[closer] < 1.0 - spawn_distance
            sprouted.append(row)
    return Joined(
        prototype, np.array(sprouted, dtype=np.intp), np.array(beside, dtype=np.intp)
    )


def _nearest(
    Z: NDArray[np.floating], prototypes: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    nearest = np.empty(len(Z), dtype=np.intp)
    best = np.empty(len(Z))
    empty = ~prototypes.any(axis=1)
    step = max(1, _BLOCK // len(prototypes))
    for start in range(0, len(Z), step):
        block = slice(start, start + step)
        cosine = Z[block].astype(np.float64) @ prototypes.T
        cosine[:, empty] = -2.0
        nearest[block] = cosine.argmax(axis=1)
        best[block] = cosine.max(axis=1)
    return nearest, best
