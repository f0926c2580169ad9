"""The frozen tree of coalitions: flat arrays over a permutation of the rows.

Nodes are numbered breadth first, root = 0, so a level is one block of ids and so are the
children of a node. Rows are taken in `order`, so every node is one slice of it. Both
make every question about a level a few array operations.

Notation (paper → code):  C_ℓ → cut(ℓ) · G → rows(node) · |G| → size[node] · L → depth
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcdv.errors import DataError, ParameterError

Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Tree:
    """A partition of rows that is refined level by level; valid once built.

    Four arrays say everything, the rest is derived. A node may hold no row (see
    `restrict`); it is then an empty slice and keeps its id.
    """

    order: Ints  # (n,) int64  row at each position
    parent: Ints  # (m,) int32  -1 for the root, never decreasing
    start: Ints  # (m,) int64  rows of a node are order[start:stop]
    stop: Ints  # (m,) int64
    name: tuple[str, ...] | None = None  # (m,)  "" where a node has none
    n_children: Ints = field(init=False)  # (m,) int32  0 for leaves
    first_child: Ints = field(init=False)  # (m,) int32  -1 for leaves
    level: Ints = field(init=False)  # (m,) int32  0 for the root

    def __post_init__(self) -> None:
        for key, kind in _KINDS.items():
            self._freeze(key, np.asarray(getattr(self, key)).astype(kind, copy=False))
        if self.name is not None:
            object.__setattr__(self, "name", tuple(self.name))
        self._check_links()
        n_children = np.bincount(self.parent[1:], minlength=self.n_nodes)
        first_child = 1 + np.cumsum(n_children) - n_children
        self._freeze("n_children", n_children.astype(np.int32))
        first_child[n_children == 0] = -1
        self._freeze("first_child", first_child.astype(np.int32))
        widths = np.diff(self._level_bounds)
        self._freeze("level", np.repeat(np.arange(len(widths), dtype=np.int32), widths))
        self._check_slices()

    @property
    def n_rows(self) -> int:
        """How many rows the root holds."""
        return len(self.order)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are, root and leaves included."""
        return len(self.parent)

    @property
    def depth(self) -> int:
        """L, the level of the deepest leaf; 0 when the root is the only node."""
        return int(self.level[-1])

    @cached_property
    def size(self) -> Ints:
        """(m,) rows of each node."""
        return self.stop - self.start

    @cached_property
    def is_leaf(self) -> Bools:
        """(m,) whether a node has no children."""
        return self.n_children == 0

    @cached_property
    def leaves(self) -> Ints:
        """(K,) leaf ids in the order of their slices."""
        found = np.flatnonzero(self.is_leaf)
        return found[np.argsort(self._first_leaf[found])]

    @cached_property
    def leaf_of_row(self) -> Ints:
        """(n,) leaf id of each row."""
        return self.leaves[self.codes(self.leaves)]

    def children(self, node: int) -> Ints:
        """Ids of a node's children, in the order of their slices."""
        return np.arange(self.n_children[node]) + self.first_child[node]

    def rows(self, node: int) -> Ints:
        """Rows of one node."""
        return self.order[self.start[node] : self.stop[node]]

    def path(self, row: int) -> Ints:
        """Node ids from the root down to the leaf of a row."""
        node, upward = int(self.leaf_of_row[row]), []
        while node >= 0:
            upward.append(node)
            node = int(self.parent[node])
        return np.array(upward[::-1])

    def cut(self, level: int) -> Ints:
        """C_ℓ: nodes of that level and shallower leaves, which together tile the rows."""
        if not 0 <= level <= self.depth:
            raise ParameterError(
                "level", level, f"between 0 and the tree's depth, {self.depth}"
            )
        is_in = (self.level == level) | (self.is_leaf & (self.level < level))
        found = np.flatnonzero(is_in)
        return found[np.argsort(self._first_leaf[found])]

    def game_level(self, max_coalitions: int = 128) -> int:
        """The deepest level whose cut has at most that many nodes."""
        if max_coalitions < 1:
            raise ParameterError("max_coalitions", max_coalitions, "at least 1")
        in_level = np.bincount(self.level)
        leaves_in = np.bincount(self.level[self.is_leaf], minlength=len(in_level))
        in_cut = in_level + np.cumsum(leaves_in) - leaves_in
        return int(np.flatnonzero(in_cut <= max_coalitions)[-1])

    def codes(self, nodes: ArrayLike) -> Ints:
        """(n,) index, within `nodes`, of the node that holds each row; `nodes` is a cut."""
        nodes = np.asarray(nodes)
        held = nodes[self.size[nodes] > 0]
        index = np.flatnonzero(self.size[nodes] > 0)
        along = np.argsort(self.start[held])
        edges = np.append(self.start[held[along]], self.n_rows)
        if edges[0] != 0 or np.any(self.stop[held[along]] != edges[1:]):
            raise ParameterError(
                "nodes",
                nodes.tolist()[:8],
                "a cut, holding every row exactly once",
                "Take cut(level).",
            )
        codes = np.empty(self.n_rows, dtype=np.int64)
        codes[self.order] = np.repeat(index[along], np.diff(edges))
        return codes

    def node_sums(self, values: ArrayLike) -> NDArray[Any]:
        """Sums of row values (..., n) over each node, (..., m).

        Rows are added within leaves and nodes from their children, so that children sum
        to their parent up to the rounding of one short sum.
        """
        values = np.asarray(values)
        if values.ndim == 0 or values.shape[-1] != self.n_rows:
            raise ParameterError("values", values.shape, f"of shape (..., {self.n_rows})")
        whole = np.float64 if values.dtype.kind == "f" else np.int64
        sums = np.zeros((*values.shape[:-1], self.n_nodes), dtype=whole)
        filled = self.leaves[self.size[self.leaves] > 0]
        if len(filled):
            by_slice = values[..., self.order].astype(whole, copy=False)
            sums[..., filled] = np.add.reduceat(by_slice, self.start[filled], axis=-1)
        self._add_upward(sums)
        return sums

    def restrict(self, keep: ArrayLike) -> Tree:
        """The tree of the rows kept, renumbered; node ids stay, nodes may become empty."""
        keep = np.asarray(keep)
        if keep.dtype != np.bool_ or keep.shape != (self.n_rows,):
            raise ParameterError(
                "keep",
                f"{keep.dtype} {keep.shape}",
                f"a boolean mask of shape ({self.n_rows},)",
            )
        stays = keep[self.order]
        before = np.append(0, np.cumsum(stays))
        renumbered = np.cumsum(keep) - 1
        return Tree(
            renumbered[self.order[stays]],
            self.parent,
            before[self.start],
            before[self.stop],
            self.name,
        )

    def permuted(self, perm: ArrayLike) -> Tree:
        """The tree of X[perm], where this is the tree of X."""
        perm = np.asarray(perm)
        if not _is_permutation(perm, self.n_rows):
            raise ParameterError("perm", perm.shape, f"a permutation of {self.n_rows} rows")
        inverse = np.empty(self.n_rows, dtype=np.int64)
        inverse[perm] = np.arange(self.n_rows)
        return Tree(inverse[self.order], self.parent, self.start, self.stop, self.name)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """What `from_arrays` needs, as numbers only, for any array file format."""
        saved: dict[str, NDArray[np.generic]] = {key: getattr(self, key) for key in _KINDS}
        if self.name is not None:
            saved["name"] = np.frombuffer(json.dumps(self.name).encode(), dtype=np.uint8)
        return saved

    @classmethod
    def from_arrays(cls, saved: dict[str, NDArray[np.generic]]) -> Tree:
        """The tree whose `arrays()` were saved, checked again."""
        missing = sorted(_KINDS.keys() - saved.keys())
        if missing:
            raise DataError(
                f"A saved tree must hold {', '.join(_KINDS)}; missing: {missing}."
            )
        text = saved.get("name")
        name = None if text is None else tuple(json.loads(np.asarray(text).tobytes()))
        return cls(*(np.asarray(saved[key], dtype=np.int64) for key in _KINDS), name=name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        alike = (np.array_equal(getattr(self, key), getattr(other, key)) for key in _KINDS)
        return self.name == other.name and all(alike)

    __hash__ = None  # type: ignore[assignment]  # arrays compare by content

    def __repr__(self) -> str:
        return (
            f"Tree({self.n_rows} rows, {self.n_nodes} nodes, "
            f"{len(self.leaves)} leaves, depth {self.depth})"
        )

    @cached_property
    def _level_bounds(self) -> Ints:
        """(depth + 2,) first id of each level, then n_nodes."""
        bounds, children = [0, 1], np.append(0, np.cumsum(self.n_children))
        while bounds[-1] < self.n_nodes:
            bounds.append(1 + int(children[bounds[-1]]))
        return np.array(bounds)

    @cached_property
    def _first_leaf(self) -> Ints:
        """(m,) leaves to the left of a node: orders a cut even where slices are empty."""
        n_leaves = self.is_leaf.astype(np.int64)
        self._add_upward(n_leaves)
        before = np.cumsum(n_leaves) - n_leaves
        first = before - before[self.first_child[self.parent]]  # among siblings
        first[0] = 0
        for low, high in zip(self._level_bounds[1:-1], self._level_bounds[2:], strict=True):
            first[low:high] += first[self.parent[low:high]]
        return first

    def _add_upward(self, sums: NDArray[np.generic]) -> None:
        """Fill inner nodes of (..., m) in place, the deepest level first."""
        for level in range(self.depth - 1, -1, -1):
            low, high, end = self._level_bounds[level : level + 3]
            inner = low + np.flatnonzero(~self.is_leaf[low:high])
            begins = self.first_child[inner] - high
            sums[..., inner] = np.add.reduceat(sums[..., high:end], begins, axis=-1)

    def _freeze(self, key: str, array: Ints) -> None:
        view = array.view()
        view.flags.writeable = False
        object.__setattr__(self, key, view)

    def _check_links(self) -> None:
        if not _is_permutation(self.order, self.n_rows):
            raise DataError(f"order must be a permutation of the {self.n_rows} rows.")
        ids = np.arange(self.n_nodes)
        if self.n_nodes == 0 or self.parent[0] != -1:
            raise DataError("parent must begin with -1, the root.")
        links = self.parent[1:]
        if np.any(links < 0) or np.any(links >= ids[1:]) or np.any(np.diff(links) < 0):
            raise DataError("parent must number nodes breadth first, so never decrease.")
        for key in ("start", "stop", "name"):
            part = getattr(self, key)
            if part is not None and len(part) != self.n_nodes:
                raise DataError(f"{key} must have {self.n_nodes} entries, got {len(part)}.")

    def _check_slices(self) -> None:
        """The root holds every row and children tile their parent's slice, in order."""
        if self.start[0] != 0 or self.stop[0] != self.n_rows:
            raise DataError(f"The root must hold rows 0 to {self.n_rows}.")
        backward = np.flatnonzero(self.start > self.stop)
        if len(backward):
            raise DataError(f"Node {backward[0]} stops before it starts.")
        inner = np.flatnonzero(~self.is_leaf)
        first = self.first_child[inner]
        last = first + self.n_children[inner] - 1
        overhang = self.start[first] != self.start[inner]
        overhang |= self.stop[last] != self.stop[inner]
        siblings = 2 + np.flatnonzero(self.parent[2:] == self.parent[1:-1])
        apart = siblings[self.start[siblings] != self.stop[siblings - 1]]
        gaps = np.append(inner[overhang], self.parent[apart])
        if len(gaps):
            raise DataError(f"Children of node {gaps.min()} must tile its slice, in order.")


_KINDS = {"order": np.int64, "parent": np.int32, "start": np.int64, "stop": np.int64}


def _is_permutation(rows: Ints, n_rows: int) -> bool:
    if rows.shape != (n_rows,) or rows.dtype.kind not in "iu":
        return False
    if n_rows and (rows.min() < 0 or rows.max() >= n_rows):
        return False
    seen = np.zeros(n_rows, dtype=bool)
    seen[rows] = True
    return bool(seen.all())
