"""How new candidates are: how far from the nearest original and leaf, and which are copies.

Distances are 1 − cosine between embedded rows. On a fitted tree every leaf holds originals,
so that a candidate's leaf says nothing by itself: `novelty` is the share of originals that
have another original nearer than the candidate has one. A copy is a row that lies as near to
an earlier one as a twentieth of what is usual between neighbours, or that is the same; copies
among candidates are looked for within each leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.tree import Tree
from hcdv.uses.candidates import leaf_means, nearest_leaf

Floats = NDArray[np.float64]
Ints = NDArray[Any]  # of whole numbers

N_COMPARED = 2_000  # originals that stand for all, where novelty is measured
NEAR = 1e-3  # of the median distance between neighbours: 3 % of the usual length
SAME = {4: 2e-6, 8: 1e-12}  # rounding of 1 − cosine, by bytes of a number
_BLOCK = 2**24  # entries of a block of cosines


@dataclass(frozen=True)
class Novelty:
    """Where candidates lie among the originals, (m,) each."""

    leaf: Ints  # node id of the nearest leaf
    leaf_distance: Floats
    nearest: Ints  # the nearest original, canonical
    distance: Floats
    novelty: Floats  # share of originals that have a nearer neighbour than this
    copy_of_original: NDArray[np.bool_]  # of `nearest`
    copy_of: Ints  # the earlier candidate this is a copy of; −1: none


def novelty(Z: NDArray[Any], tree: Tree, others: NDArray[Any]) -> Novelty:
    """Hold candidates against the originals Z and against each other."""
    at = nearest_leaf(tree, Z, others)
    middle = leaf_means(tree, Z)[at]
    to_leaf = 1.0 - np.einsum("md,md->m", others, middle)
    nearest, distance = _nearest(Z, others)
    step = max(1, len(Z) // N_COMPARED)
    usual = np.sort(_nearest(Z, Z[::step], np.arange(0, len(Z), step))[1])
    ahead = np.searchsorted(usual, distance, side="left") / len(usual)
    middling = float(np.median(usual))
    same = SAME[np.asarray(Z).itemsize]
    near = max(same, NEAR * middling) if middling > same else -1.0
    return Novelty(
        tree.leaves[at], to_leaf, nearest, distance, ahead, distance <= near,
        _copies(others, at, near),
    )  # fmt: skip


def _nearest(
    Z: NDArray[Any], others: NDArray[Any], own: Ints | None = None
) -> tuple[Ints, Floats]:
    """The row of Z nearest to each other row, and its distance. own: rows not to be named."""
    rows = max(1, _BLOCK // len(Z))
    index = np.zeros(len(others), dtype=np.intp)
    distance = np.zeros(len(others))
    for start in range(0, len(others), rows):
        block = slice(start, start + rows)
        cosine = others[block] @ Z.T
        if own is not None:
            cosine[np.arange(len(cosine)), own[block]] = -np.inf
        index[block] = cosine.argmax(axis=1)
        distance[block] = 1.0 - cosine.max(axis=1)
    return index, np.maximum(distance, 0.0)


def _copies(others: NDArray[Any], leaf: Ints, near: float) -> Ints:
    """The first candidate of the same leaf that each is a copy of, itself no copy; −1: none."""
    copy_of = np.full(len(others), -1, dtype=np.intp)
    by_leaf = np.argsort(leaf, kind="stable")
    for rows in np.split(by_leaf, np.flatnonzero(np.diff(leaf[by_leaf])) + 1):
        for place, row in enumerate(rows[:-1].tolist()):
            if copy_of[row] >= 0:
                continue
            later = rows[place + 1 :]
            later = later[copy_of[later] < 0]
            is_near = 1.0 - others[later] @ others[row] <= near
            copy_of[later[is_near]] = row
    return copy_of
