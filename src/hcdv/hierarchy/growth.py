"""Grow the tree, z → C_0 … C_L: split every node of a level, until no leaf has more than M.

Notation (paper → code):  K_{ℓ+1} → branching at level ℓ · M → leaf_size · γ → tolerance
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcdv.engines.local import ordered_map
from hcdv.errors import DataError, ParameterError
from hcdv.hierarchy.balanced_kmeans import (
    checked_points,
    checked_tolerance,
    fit_size,
    split_large,
    split_many,
)
from hcdv.hierarchy.capacity import counts_of, window
from hcdv.hierarchy.tree import Tree

Ints = NDArray[np.int64]

_BATCH_ROWS = 16_384  # rows of small nodes split together; 4 MB of 64 float32 columns


def grow(
    Z: NDArray[np.floating],
    *,
    branching: int | Sequence[int] = 8,
    leaf_size: int = 64,
    rng: np.random.Generator,
    tolerance: float = 0.1,
    n_jobs: int | None = None,
    within: Tree | None = None,
) -> Tree:
    """The tree of the rows of Z, all leaves at most leaf_size; same bits for any n_jobs.

    A node of more than leaf_size rows gets `branching` children, or the fewest that surely
    bring them to leaf_size; a sequence gives the number for the root, its children, …, the
    last one for all deeper levels. `within` is a tree to refine: its nodes stay as they
    are and only its leaves are split further.
    """
    Z = checked_points(Z)
    recipe = _Recipe(_branchings(branching), leaf_size, tolerance)
    if n_jobs == 0:
        raise ParameterError("n_jobs", n_jobs, "a number of workers, -1 for all, or None")
    within = within or flat_tree(len(Z))
    if within.n_rows != len(Z):
        raise ParameterError(
            "within", within, f"a tree of the same {len(Z)} rows as the points"
        )
    seed = rng.integers(2**32, size=4, dtype=np.uint32).tolist()
    order = np.array(within.order, dtype=np.int64)
    levels = [_Level(*(np.array([i]) for i in (-1, 0, within.n_rows, 0)))]
    while True:
        level = levels[-1]
        kept = np.where(level.given >= 0, within.n_children[level.given], 0)
        split = recipe.n_children(level.size, len(levels) - 1)
        split[kept > 0] = 0
        below = _Children(level, kept, split, within)
        if not below.n_children.any():
            break
        work = partial(_split, Z, order, tolerance)
        for done in ordered_map(work, _tasks(level, split, seed, len(levels) - 1), n_jobs):
            order[done.at] = done.rows
            below.size[below.first[done.nodes][:, None] + np.arange(done.k)] = done.counts
        levels.append(below.as_level(sum(len(upper.size) for upper in levels[:-1])))
    return _assembled(order, levels, within.name)


def flat_tree(n_rows: int) -> Tree:
    """Every row directly in the root, the one leaf: no hierarchy at all."""
    if n_rows < 1:
        raise ParameterError("n_rows", n_rows, "at least 1")
    return Tree(np.arange(n_rows), np.array([-1]), np.array([0]), np.array([n_rows]))


def tree_from_levels(levels: Sequence[ArrayLike]) -> Tree:
    """The tree of given partitions, coarse to fine: one label per row and level.

    A label that crosses a coarser group is cut along it. Nodes are named by their labels.
    """
    columns = [np.asarray(labels) for labels in levels]
    if not columns or any(c.ndim != 1 or len(c) != len(columns[0]) for c in columns):
        shapes = [c.shape for c in columns]
        raise ParameterError("levels", shapes, "one or more arrays of one label per row")
    if len(columns[0]) == 0:
        raise DataError("levels must label at least one row, got none.")
    code = np.zeros(len(columns[0]), dtype=np.int64)
    parents, names, codes = [np.array([-1])], [""], [code]
    for labels in columns:
        distinct, fine = _distinct(labels)
        groups, code = np.unique(code * len(distinct) + fine, return_inverse=True)
        n_above = sum(len(parent) for parent in parents[:-1])
        parents.append(n_above + groups // len(distinct))
        names += [str(label) for label in distinct[groups % len(distinct)]]
        codes.append(code)
    size = np.concatenate([np.bincount(code) for code in codes])
    stop = np.concatenate([np.cumsum(np.bincount(code)) for code in codes])
    order = np.argsort(code, kind="stable")
    return Tree(order, np.concatenate(parents), stop - size, stop, tuple(names))


def _distinct(labels: NDArray[np.generic]) -> tuple[NDArray[np.generic], Ints]:
    """Sorted labels and the index of each row's; missing ones are refused."""
    is_missing = np.not_equal(labels, labels)  # nan and NaT
    if labels.dtype.kind == "O":
        is_missing |= np.equal(labels, np.array(None))
    if is_missing.any():
        raise DataError(
            f"Row {int(is_missing.argmax())} has no label. "
            "Give rows without a group one of their own, such as 'none'."
        )
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise DataError("Labels of one level must be of one kind, to be sorted.") from error


@dataclass(frozen=True)
class _Recipe:
    """How far and how wide to split; valid once built."""

    branching: tuple[int, ...]
    leaf_size: int
    tolerance: float

    def __post_init__(self) -> None:
        if not self.leaf_size >= 1:
            raise ParameterError("leaf_size", self.leaf_size, "at least 1")
        for k in self.branching or (0,):
            if k < 2:
                raise ParameterError(
                    "branching", k, "at least 2", "A flat tree has no branching: flat_tree."
                )
        checked_tolerance(self.tolerance)

    def n_children(self, sizes: Ints, level: int) -> Ints:
        """Children of nodes of these sizes: none, or the fewest that bring leaf_size."""
        widest = self.branching[min(level, len(self.branching) - 1)]
        distinct, at = np.unique(sizes, return_inverse=True)
        k = np.arange(2, widest + 1)
        allowed = k <= distinct[:, None]
        high = window(distinct[:, None], np.where(allowed, k, 1), self.tolerance).high
        enough = allowed & (high <= self.leaf_size)
        fewest = np.where(enough.any(axis=1), k[enough.argmax(axis=1)], widest)
        return np.where(distinct <= self.leaf_size, 0, fewest)[at]


class _Level(NamedTuple):
    """Nodes of one level, each array as long as the level."""

    parent: Ints
    start: Ints
    size: Ints
    given: Ints  # node of the tree to refine, -1 below it


class _Children:
    """The level below one level: the nodes that were given and places for those grown."""

    def __init__(self, level: _Level, kept: Ints, split: Ints, within: Tree) -> None:
        self.level, self.n_children = level, kept + split
        self.first = np.cumsum(self.n_children) - self.n_children
        self.size = np.zeros(self.n_children.sum(), dtype=np.int64)
        self.given = np.full(len(self.size), -1)
        parent = np.repeat(np.arange(len(kept)), self.n_children)
        place = np.arange(len(parent)) - self.first[parent]
        known = np.flatnonzero(kept[parent] > 0)
        above = level.given[parent[known]]
        self.given[known] = within.first_child[above] + place[known]
        self.size[known] = within.size[self.given[known]]

    def as_level(self, n_above: int) -> _Level:
        """Where the children lie, once all sizes are known; n_above counts upper nodes."""
        parent = np.repeat(np.arange(len(self.n_children)), self.n_children)
        before = np.cumsum(self.size) - self.size
        start = self.level.start[parent] + before - before[self.first[parent]]
        return _Level(n_above + parent, start, self.size, self.given)


class _Task(NamedTuple):
    """Nodes with as many children, split together; a large one is alone."""

    nodes: Ints  # (G,) within the level
    start: Ints  # (G,)
    size: Ints  # (G,)
    k: int
    seed: np.random.SeedSequence


class _Split(NamedTuple):
    """A task done: its rows, children side by side, for the positions `at` of the order."""

    nodes: Ints
    at: Ints
    rows: Ints
    k: int
    counts: Ints  # (G, k)


def _tasks(level: _Level, split: Ints, seed: list[int], depth: int) -> Iterator[_Task]:
    """Fixed by the level alone, so that neither workers nor their order matter."""
    nodes = np.flatnonzero(split)
    nodes = nodes[np.lexsort((nodes, level.size[nodes], split[nodes]))]
    k, size = split[nodes], level.size[nodes]
    low = 0
    while low < len(nodes):
        padded = size[low:] * np.arange(1, len(nodes) - low + 1)  # rises: sizes are sorted
        fits = (
            (padded <= _BATCH_ROWS) & (k[low:] == k[low]) & (size[low:] <= fit_size(k[low]))
        )
        high = low + max(1, int(fits.sum()))
        part = nodes[low:high]
        child_seed = np.random.SeedSequence(seed, spawn_key=(depth, int(part[0])))
        yield _Task(part, level.start[part], level.size[part], int(k[low]), child_seed)
        low = high


def _split(Z: NDArray[np.floating], order: Ints, tolerance: float, task: _Task) -> _Split:
    """Split the nodes of a task; reads `order`, which its caller alone writes."""
    rng = np.random.default_rng(task.seed)
    place = np.arange(task.size.max())
    is_real = place < task.size[:, None]
    at = task.start[:, None] + place
    rows = order[np.where(is_real, at, task.start[:, None])]
    if len(rows) == 1 and rows.shape[1] > fit_size(task.k):
        label = split_large(Z, rows[0], task.k, rng, tolerance)[None]
    else:
        label = split_many(Z, rows, task.size, task.k, rng, tolerance)
    short = label.astype(np.int16 if task.k < 2**15 else np.int64)  # int16 sorts by radix
    along = np.argsort(short, axis=1, kind="stable")  # padding, labelled k, comes last
    rows = np.take_along_axis(rows, along, axis=1)
    counts = counts_of(label, task.k)
    return _Split(task.nodes, at[is_real], rows[is_real], task.k, counts)


def _branchings(branching: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(branching) if isinstance(branching, Sequence) else (int(branching),)


def _assembled(order: Ints, levels: list[_Level], names: tuple[str, ...] | None) -> Tree:
    parent, start, size, given = (
        np.concatenate(part) for part in zip(*levels, strict=True)
    )
    name = None
    if names is not None:
        name = tuple(names[i] if i >= 0 else "" for i in given)
    return Tree(order, parent, start, start + size, name)
