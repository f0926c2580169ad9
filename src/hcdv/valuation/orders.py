"""Random orders of a tree's leaves in which every node stays together.

Notation (paper → code):  K_ℓ → n_leaves · T → n_permutations · π_t → order[t]

A tree is given by `parent` alone: breadth-first node ids, the root first, so that the
children of a node are neighbours. A leaf is a node without children, and its *position*
is its place among the leaves by ascending id. For the coalitions of one level, pass the
tree down to that level: `parent[level <= game_level]`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcdv.errors import ParameterError

# Standard errors from fewer batches than this are too rough to be worth longer batches.
ENOUGH_BATCHES = 8


class Nesting(NamedTuple):
    """Who lies below whom, read off the parent links once."""

    first_child: NDArray[np.int64]  # (m,)  0 where there is none
    n_children: NDArray[np.int64]  # (m,)
    n_leaves: NDArray[np.int64]  # (m,)  leaves below, 1 for a leaf
    leaves: NDArray[np.int64]  # (K,)  node ids, ascending: leaf position → node

    @property
    def inner(self) -> NDArray[np.int64]:
        """The nodes that have children, from the root down."""
        return np.flatnonzero(self.n_children)

    def children(self, node: int) -> slice:
        """The ids of a node's children."""
        first = int(self.first_child[node])
        return slice(first, first + int(self.n_children[node]))

    def node_sums(self, leaf_values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add leaf values (..., K) up the tree (..., m): children sum to their parent."""
        sums = np.zeros((*leaf_values.shape[:-1], self.n_children.size))
        sums[..., self.leaves] = leaf_values
        for node in self.inner[::-1]:
            sums[..., node] = sums[..., self.children(node)].sum(axis=-1)
        return sums


class NestedOrders(NamedTuple):
    """T orders of K leaves, and the batch-means batch each of them belongs to."""

    order: NDArray[np.int64]  # (T, K)  order[t, s] = position of the leaf that enters at s
    batch: NDArray[np.int64]  # (T,)  0, …, n_batches − 1, non-decreasing


def nesting(parent: ArrayLike) -> Nesting:
    """Read a tree off its parent links; `parent[0]`, the root's, is not looked at."""
    above = np.asarray(parent, dtype=np.int64)
    if above.ndim != 1 or above.size == 0:
        raise ParameterError("parent", above.shape, "one id per node, in one dimension")
    links, ids = above[1:], np.arange(1, above.size)
    if np.any(links < 0) or np.any(links >= ids) or np.any(np.diff(links) < 0):
        raise ParameterError(
            "parent", parent, "breadth-first: each parent before its children, in order",
            "Number the nodes level by level.",
        )  # fmt: skip
    n_children = np.bincount(links, minlength=above.size)
    first_child = np.where(
        n_children > 0, 1 + np.searchsorted(links, np.arange(above.size)), 0
    )
    n_leaves = (n_children == 0).astype(np.int64)
    for node in range(above.size - 1, 0, -1):
        n_leaves[above[node]] += n_leaves[node]
    return Nesting(first_child, n_children, n_leaves, np.flatnonzero(n_children == 0))


def flat(n_players: int) -> NDArray[np.int64]:
    """The parent links of a root with n_players leaves: a game without groups."""
    if n_players < 1:
        raise ParameterError("n_players", n_players, "at least 1")
    parent = np.zeros(n_players + 1, dtype=np.int64)
    parent[0] = -1
    return parent


def latin_rows(n_rows: int, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of independent random Latin squares of k symbols, one square after the other.

    Row r of a square is j ↦ symbol[(row[r] + column[j]) mod k] with all three shuffled.
    Shuffled symbols alone make each row uniform over all k! orders; the square puts each
    symbol once at every place within k rows. Cyclic shifts of one order do so too, but
    keep everyone's neighbours, which multiplies the variance instead of halving it.
    """
    square, row = np.divmod(np.arange(n_rows), k)
    fresh = np.tile(np.arange(k), (-(-n_rows // k), 1))
    rows, columns, symbols = (rng.permuted(fresh, axis=1) for _ in range(3))
    place = (rows[square, row][:, None] + columns[square]) % k
    return np.take_along_axis(symbols[square], place, axis=1)


def nested_orders(
    parent: ArrayLike,
    n_permutations: int,
    rng: np.random.Generator,
    *,
    independent: bool = False,
) -> NestedOrders:
    """Draw T orders of the leaves, each uniform over the orders that split no node.

    Every node orders its children by its own Latin squares. Permutation 2p + 1 is
    permutation 2p reversed, at all nodes at once. independent=True draws each order
    afresh, as Prop. 1 assumes; the squares need about half as many.
    """
    if n_permutations < 2:
        raise ParameterError(
            "n_permutations", n_permutations, "at least 2",
            "One permutation has no standard error; the paper uses 256.",
        )  # fmt: skip
    nest = nesting(parent)
    n_pairs = -(-n_permutations // 2)
    start = np.zeros((n_permutations, nest.n_children.size), dtype=np.int64)
    for node in nest.inner:
        k, kids = int(nest.n_children[node]), nest.children(node)
        if independent:
            sequence = rng.permuted(np.tile(np.arange(k), (n_permutations, 1)), axis=1)
        else:
            forth = latin_rows(n_pairs, k, rng)
            back = forth[:, ::-1]
            sequence = np.stack([forth, back], axis=1).reshape(-1, k)[:n_permutations]
        width = nest.n_leaves[kids][sequence]  # (T, k)
        offset = start[:, [node]] + np.cumsum(width, axis=1) - width
        np.put_along_axis(start[:, kids], sequence, offset, axis=1)

    order = np.empty((n_permutations, nest.leaves.size), dtype=np.int64)
    positions = np.broadcast_to(np.arange(nest.leaves.size), order.shape)
    np.put_along_axis(order, start[:, nest.leaves], positions, axis=1)
    return NestedOrders(order, _batches(n_permutations, nest.n_children[nest.inner]))


def _batches(n_permutations: int, n_children: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut the permutations into batches whose means can serve as a sample.

    Batches of whole squares of every node are independent, and their standard error is
    right. Where that would leave fewer than eight, batches share squares. Two rows of a
    square never put a player at the same place, so gains that depend on place make such
    batches negatively correlated, by c̄ < 0 on average, and the batch-means variance
    exceeds the true one by exactly −c̄: safe, but up to eight times too large a standard
    error in measured games of one square. `precision.py` takes place out instead.
    """
    if n_permutations < 4:
        return np.arange(n_permutations)
    n_pairs = -(-n_permutations // 2)
    size = max(1, n_pairs // ENOUGH_BATCHES)
    whole = math.lcm(*n_children.tolist())
    if whole <= size:
        size -= size % whole
    # What is left over joins the last batch: means are weighted by batch length.
    of_pair = np.minimum(np.arange(n_pairs) // size, n_pairs // size - 1)
    return np.repeat(of_pair, 2)[:n_permutations]
