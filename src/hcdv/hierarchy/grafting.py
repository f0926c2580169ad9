"""Changing a tree: rows that join leaves, leaves that sprout, and nodes that fold up.

Every answer is a new frozen tree, and for each of its nodes the old node it is; −1 − k for
the k-th that is new.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.growth import grow
from hcdv.hierarchy.tree import Tree

Ints = NDArray[np.integer]


def grafted(tree: Tree, leaf_of_new: Ints, sprouts: Ints) -> tuple[Tree, Ints]:
    """The tree after rows joined it, numbered after those there are.

    sprouts: the parent of each new leaf; leaf_of_new may name them tree.n_nodes + k.
    """
    parent = np.concatenate([tree.parent, sprouts])
    leaf = np.concatenate([tree.leaf_of_row, leaf_of_new])
    built, of_old = _built(parent, leaf, tree.name)
    was = np.empty(built.n_nodes, dtype=np.int64)
    was[of_old] = np.append(np.arange(tree.n_nodes), -1 - np.arange(len(sprouts)))
    return built, was


def folded(tree: Tree, fewest: int) -> tuple[Tree, Ints]:
    """Parents of leaves that together hold fewer rows than asked for become leaves."""
    above_leaves = ~tree.is_leaf
    above_leaves[tree.parent[1:][~tree.is_leaf[1:]]] = False
    fold = above_leaves & (tree.size < fewest)
    fold[0] = False
    gone = np.append(False, fold[tree.parent[1:]])
    if not gone.any():
        return tree, np.arange(tree.n_nodes)
    kept = np.flatnonzero(~gone)
    number = np.cumsum(~gone) - 1
    leaf = tree.leaf_of_row
    leaf = np.where(gone[leaf], tree.parent[leaf], leaf)
    parent = np.append(-1, number[tree.parent[kept[1:]]])
    name = None if tree.name is None else tuple(tree.name[i] for i in kept)
    built, of_kept = _built(parent, number[leaf], name)
    was = np.empty(built.n_nodes, dtype=np.int64)
    was[of_kept] = kept
    return built, was


def split(
    tree: Tree, Z: NDArray[np.floating], branching: list[int], most: int,
    rng: np.random.Generator, n_jobs: int | None,
) -> tuple[Tree, Ints]:  # fmt: skip
    """Leaves of more rows than `most` are grown into subtrees; all else stays."""
    marked = Tree(
        tree.order, tree.parent, tree.start, tree.stop,
        tuple(str(node) for node in range(tree.n_nodes)),
    )  # fmt: skip
    grown = grow(
        Z, branching=branching, leaf_size=most, rng=rng, n_jobs=n_jobs, within=marked
    )
    was = np.array([int(name) if name else -1 for name in grown.name or ()])
    was[was < 0] = -1 - np.arange(int((was < 0).sum()))
    return Tree(grown.order, grown.parent, grown.start, grown.stop), was


def _built(
    parent: Ints, leaf_of_row: Ints, name: tuple[str, ...] | None
) -> tuple[Tree, Ints]:
    """A tree from parent links in any numbering, and the new number of every node.

    Children keep the order of their numbers, and rows within a leaf ascend.
    """
    levels = [np.array([0])]
    while len(levels[-1]):
        place = np.full(len(parent), -1)
        place[levels[-1]] = np.arange(len(levels[-1]))
        of_parent = np.append(-1, place[parent[1:]])
        below = np.flatnonzero(of_parent >= 0)
        levels.append(below[np.argsort(of_parent[below], kind="stable")])
    sequence = np.concatenate(levels)
    number = np.empty(len(parent), dtype=np.int64)
    number[sequence] = np.arange(len(parent))
    links = np.append(-1, number[parent[sequence[1:]]])
    start, stop = _slices(links, number[leaf_of_row], [len(level) for level in levels[:-1]])
    order = np.argsort(start[number[leaf_of_row]], kind="stable")
    names = None
    if name is not None:
        names = tuple(name[i] if i < len(name) else "" for i in sequence)
    return Tree(order, links, start, stop, names), number


def _slices(links: Ints, leaf_of_row: Ints, widths: list[int]) -> tuple[Ints, Ints]:
    """Where every node's rows lie: children side by side inside their parent."""
    size = np.bincount(leaf_of_row, minlength=len(links))
    edges = np.cumsum([0, *widths])
    levels = list(pairwise(edges[1:].tolist()))
    for low, high in reversed(levels):
        np.add.at(size, links[low:high], size[low:high])
    start = np.zeros(len(links), dtype=np.int64)
    for low, high in levels:
        above = links[low:high]
        before = np.cumsum(size[low:high]) - size[low:high]
        first = np.searchsorted(above, above)  # links ascend: the first of each family
        start[low:high] = start[above] + before - before[first]
    return start, start + size
