"""Rows that came after the tree was grown → its leaves, from the root down to the nearest.

At every node a row goes to the child whose mean is nearest, by squared distance. Sizes are
then whatever the rows make of it: the capacity window holds for the rows a tree is grown on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.arrays import NUMPY, arrays_in_use, arrays_of
from hcdv.hierarchy.tree import Tree


@dataclass(frozen=True)
class Prototypes:
    """A tree's shape and the mean of every node."""

    shape: Tree  # its rows are the leaves, one each
    mean: NDArray[np.float64]  # (m, d)

    @classmethod
    def of(cls, tree: Tree, Z: NDArray[np.floating]) -> Prototypes:
        """Means of the rows the tree was grown on."""
        sums = tree.node_sums(np.ascontiguousarray(Z.T, dtype=np.float64)).T
        mean = sums / np.maximum(tree.size, 1)[:, None]
        return cls(shape_of(tree), mean)

    @property
    def n_leaves(self) -> int:
        """K."""
        return self.shape.n_rows

    def leaves(self, Z: NDArray[np.floating]) -> NDArray[np.int32]:
        """Index of each row's leaf among `shape.leaves`, (n,)."""
        tree, given = self.shape, arrays_of(Z)
        xp = arrays_in_use() if given is NUMPY else given
        Z = xp.put(Z)
        node = xp.zeros(len(Z), dtype=np.int32)
        for _ in range(tree.depth):
            order = xp.argsort(node, kind="stable")
            nodes = xp.cast(xp.arange(tree.n_nodes + 1), np.int32)
            edges = xp.get(xp.searchsorted(node[order], nodes))
            for parent in np.flatnonzero(np.diff(edges) * (tree.n_children > 0)):
                rows = order[edges[parent] : edges[parent + 1]]
                node[rows] = self._nearest_child(int(parent), Z[rows])
        place = np.full(tree.n_nodes, -1, dtype=np.int32)
        place[tree.leaves] = np.arange(tree.n_rows)
        found = xp.put(place)[xp.cast(node, np.int64)]
        return xp.get(found) if given is NUMPY else found

    def _nearest_child(self, parent: int, Z: NDArray[np.floating]) -> NDArray[np.integer]:
        xp = arrays_of(Z)
        children = self.shape.children(parent)
        mean = self.mean[children]
        offset = 0.5 * np.einsum("kd,kd->k", mean, mean)
        score = Z @ xp.put(mean.T, Z.dtype) - xp.put(offset, Z.dtype)
        return xp.put(children.astype(np.int32))[xp.argmax(score, 1)]


def shape_of(tree: Tree) -> Tree:
    """The same nodes over the leaves as rows: leaf i of `tree.leaves` is row i."""
    before = np.zeros(tree.n_rows + 1, dtype=np.int64)
    before[tree.start[tree.leaves]] = 1
    first = np.cumsum(before) - before  # leaves that start before a position
    rows = np.arange(len(tree.leaves))
    return Tree(rows, tree.parent, first[tree.start], first[tree.stop], tree.name)
