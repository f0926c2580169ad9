"""Coalitions in the data's own words: the columns and levels that set their rows apart.

    described(frame, tree, [17])  →  [[age under 25, education Some-college, sex Female]]

Cells are counted leaf by leaf, and a node's counts are the sum of its leaves': all nodes cost
what one costs. Of each column the one thing is taken that says most of a node (`legible`), and
of these the most telling, but for what follows from what has been said: that husbands are
married, or how many years a degree takes. Embeddings and images have no words: nothing is said
of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcdv.embedding.cells import as_levels, kind_of
from hcdv.errors import ParameterError
from hcdv.hierarchy.tree import Tree
from hcdv.uses.legible import Best, Levels, Ranges, legible, levels
from hcdv.uses.wordings import Wordings, is_prose, wordings

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.given import Given
    from hcdv.result import Run

Legible = Levels | Ranges
_AT_ONCE = 2**11  # nodes
_SOME = 2**15  # rows among which it is asked what follows from what
_FOLLOWS = 0.95  # of a node's share is had by all rows of which the rest is true
_FEW = 20  # rows, of which nothing follows


@dataclass(frozen=True)
class Trait:
    """One thing that is true of a coalition more than of all rows."""

    column: str
    said: str  # under 25 · Some-college · with "refund"
    inside: float  # the share of the coalition's rows of which it is true
    overall: float  # the share of all rows

    @property
    def lift(self) -> float:
        """How many times as common it is in the coalition."""
        return self.inside / self.overall

    def __str__(self) -> str:
        return f"{self.column} {self.said}"

    @property
    def at_length(self) -> str:
        """With its share, and that of all rows."""
        return f"{self} ({self.inside:.0%} of them, {self.overall:.0%} of all)"


def words(traits: Iterable[Trait], *, at_length: bool = False) -> str:
    """Traits as a line of text; nothing for none."""
    return ", ".join(trait.at_length if at_length else str(trait) for trait in traits)


def described(
    frame: pd.DataFrame | None, tree: Tree, nodes: ArrayLike, most: int = 3
) -> list[list[Trait]]:
    """What sets each of the nodes apart from all rows; the most telling first.

    frame: the rows in the order that the tree numbers them in; None or one without words
    gives no traits.
    """
    at = np.atleast_1d(np.asarray(nodes, dtype=np.intp))
    found: list[list[_Said]] = [[] for _ in at]
    if frame is None or not len(at):
        return [[] for _ in at]
    slices = _Slices(tree, at)
    for column in _columns(frame):
        if isinstance(column, Wordings):
            _hear(found, column, slices, most)
        else:
            _ask(found, column, slices)
    return [_told(traits, most) for traits in found]


class _Said(NamedTuple):
    """A trait, how much it tells, and of which codes of some rows it is true."""

    gain: float
    trait: Trait
    codes: NDArray[np.intp] | None = None  # None: words, from which nothing follows
    holds: NDArray[np.bool_] | None = None

    def true_of(self) -> NDArray[np.bool_] | None:
        return None if self.codes is None or self.holds is None else self.holds[self.codes]


def description(
    given: Given | None, ids: NDArray[Any], tree: Tree, nodes: ArrayLike, most: int = 3
) -> list[list[Trait]]:
    """As `described`, of the rows that a model keeps under these ids."""
    if given is None or given.kind != "table":
        return described(None, tree, nodes, most)
    table: Any = given.rows(ids).table
    return described(table, tree, nodes, most)


def coalitions_described(
    run: Run, given: Given | None, nodes: ArrayLike | None = None, most: int = 3
) -> pd.DataFrame:
    """A line a coalition: id, size, its words, the same at length, its label mix."""
    import pandas as pd

    tree = run.tree
    at = _nodes(tree, nodes)
    told = description(given, run.ids, tree, at, most)
    mix = run.label_mix()
    return pd.DataFrame({
        "id": at, "size": tree.size[at],
        "description": [words(each) for each in told],
        "at_length": [words(each, at_length=True) for each in told],
        "label_mix": [mix[node] for node in at],
    })  # fmt: skip


def _nodes(tree: Tree, nodes: ArrayLike | None) -> NDArray[np.intp]:
    if nodes is None:
        return np.arange(tree.n_nodes)
    at = np.atleast_1d(np.asarray(nodes))
    if at.size == 0:
        return at.astype(np.intp)
    if at.dtype.kind not in "iu" or at.ndim != 1 or np.any((at < 0) | (at >= tree.n_nodes)):
        rule = f"ids of coalitions, from 0 to {tree.n_nodes - 1}"
        raise ParameterError("nodes", nodes, rule, "coalitions_ lists them.")
    return at.astype(np.intp)


def readable(frame: pd.DataFrame) -> list[str]:
    """Columns that a person named: not those of an array, nor of vectors kept in cells."""
    names = [str(name) for name in frame.columns]
    if names == [f"x{j}" for j in range(len(names))]:
        return []
    return [name for name in names if not re.search(r"\[\d+\]$", name)]


def _columns(frame: pd.DataFrame) -> Iterator[Legible | Wordings]:
    for name in readable(frame):
        column = frame[name]
        if kind_of(column, name) == "levels":
            codes, names = as_levels(column)
            prose = is_prose(codes, names)
            coded = wordings(name, codes, names) if prose else levels(name, codes, names)
        else:
            coded = legible(column, name)
        if coded is not None:
            yield coded


class _Slices:
    """The nodes asked for, as slices of the leaves."""

    def __init__(self, tree: Tree, nodes: NDArray[np.intp]) -> None:
        leaves = tree.leaves
        self.n_leaves = len(leaves)
        self.leaf = np.empty(tree.n_rows, dtype=np.intp)
        self.leaf[tree.order] = np.repeat(np.arange(len(leaves)), tree.size[leaves])
        begins = tree.start[leaves]
        self.first = np.searchsorted(begins, tree.start[nodes])
        self.last = np.searchsorted(begins, tree.stop[nodes])
        self.size = tree.size[nodes].astype(np.float64)

    def summed(self, by_leaf: NDArray[Any], at: slice) -> NDArray[Any]:
        """Sums over the leaves of each node, from those of leaves (K, …)."""
        running = np.concatenate([np.zeros_like(by_leaf[:1]), np.cumsum(by_leaf, axis=0)])
        return running[self.last[at]] - running[self.first[at]]


def _ask(found: list[list[_Said]], column: Legible, slices: _Slices) -> None:
    """Add what the column says best of every node."""
    width = column.n_codes
    by_leaf = np.bincount(
        slices.leaf * width + column.codes, minlength=slices.n_leaves * width
    ).reshape(-1, width)
    overall = by_leaf.sum(axis=0) / len(slices.leaf)
    some_codes = column.codes[:: max(1, len(column.codes) // _SOME)]
    for start in range(0, len(found), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        size = slices.size[some]
        inside = slices.summed(by_leaf, some) / np.maximum(size, 1.0)[:, None]
        best: Best = column.best(inside, overall, size)
        for at in np.flatnonzero(best.gain > 0):
            key, shares = best.key[at], (float(best.inside[at]), float(best.overall[at]))
            trait = Trait(column.column, column.said(key), *shares)
            said = _Said(float(best.gain[at]), trait, some_codes, column.holds(key))
            found[start + at].append(said)


def _hear(found: list[list[_Said]], column: Wordings, slices: _Slices, most: int) -> None:
    """Add the words that a node's texts hold more often."""
    heard = column.best(slices.leaf, slices.first, slices.last, slices.n_leaves, most)
    for node, word, inside, overall, gain in heard:
        found[node].append(
            _Said(gain, Trait(column.column, f'with "{word}"', inside, overall))
        )


def _told(said: Sequence[_Said], most: int) -> list[Trait]:
    """The most telling, none that follows from those before it."""
    taken: list[Trait] = []
    so_far: NDArray[np.bool_] | None = None
    for each in sorted(said, key=lambda one: -one.gain):
        if len(taken) == most:
            break
        true = each.true_of()
        if true is not None:
            if so_far is not None and _follows(true, so_far, each.trait.inside):
                continue
            so_far = true if so_far is None else so_far & true
        taken.append(each.trait)
    return taken


def _follows(true: NDArray[np.bool_], so_far: NDArray[np.bool_], inside: float) -> bool:
    """Whether it is as true of all rows of which the rest is true."""
    few = int(so_far.sum()) < _FEW
    return not few and float(true[so_far].mean()) >= _FOLLOWS * inside
