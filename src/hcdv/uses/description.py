"""Coalitions in the data's own words: the columns and levels that set their rows apart.

    described(frame, tree, [17])  →  [[age under 25, education Some-college, sex Female]]

Cells are counted leaf by leaf, and a node's counts are the sum of its leaves': all nodes cost
what one costs. Of each column the one thing is taken that says most of a node (`legible`), then
the columns that say most, without those that another one says already (education, and its
number of years). Embeddings and images have no words: nothing is said of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from hcdv.embedding.cells import as_levels, kind_of
from hcdv.hierarchy.tree import Tree
from hcdv.uses.legible import Best, Levels, Ranges, legible, levels
from hcdv.uses.wordings import Wordings, is_prose, wordings

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.given import Given

Legible = Levels | Ranges
_ALIKE = 0.6  # of the smaller entropy shared: columns that say the same
_AT_ONCE = 2**11  # nodes
_SOME = 2**14  # rows by which columns are compared


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
    found: list[list[tuple[float, int, Trait]]] = [[] for _ in at]
    coded = {} if frame is None or not len(at) else dict(_columns(frame))
    slices = _Slices(tree, at)
    for number, column in coded.items():
        if isinstance(column, Wordings):
            _hear(found, number, column, slices, most)
        else:
            _ask(found, number, column, slices)
    alike = _Alike(coded)
    return [_told(traits, alike, most) for traits in found]


def description(
    given: Given | None, ids: NDArray[Any], tree: Tree, nodes: ArrayLike, most: int = 3
) -> list[list[Trait]]:
    """As `described`, of the rows a model keeps."""
    at = np.atleast_1d(np.asarray(nodes, dtype=np.intp))
    if given is None or given.kind != "table":
        return [[] for _ in at]
    table: Any = given.rows(ids).table
    return described(table, tree, at, most)


def readable(frame: pd.DataFrame) -> list[str]:
    """Columns that a person named: not those of an array, nor of vectors kept in cells."""
    names = [str(name) for name in frame.columns]
    if names == [f"x{j}" for j in range(len(names))]:
        return []
    return [name for name in names if not re.search(r"\[\d+\]$", name)]


def _columns(frame: pd.DataFrame) -> Iterable[tuple[int, Legible | Wordings]]:
    for number, name in enumerate(readable(frame)):
        column = frame[name]
        coded = None
        if kind_of(column, name) == "levels":
            codes, names = as_levels(column)
            prose = is_prose(codes, names)
            coded = wordings(name, codes, names) if prose else levels(name, codes, names)
        else:
            coded = legible(column, name)
        if coded is not None:
            yield number, coded


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


def _ask(
    found: list[list[tuple[float, int, Trait]]],
    number: int,
    column: Legible,
    slices: _Slices,
) -> None:
    """Add what the column says best of every node."""
    width = column.n_codes
    by_leaf = np.bincount(
        slices.leaf * width + column.codes, minlength=slices.n_leaves * width
    ).reshape(-1, width)
    overall = by_leaf.sum(axis=0) / len(slices.leaf)
    for start in range(0, len(found), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        size = slices.size[some]
        inside = slices.summed(by_leaf, some) / np.maximum(size, 1.0)[:, None]
        best: Best = column.best(inside, overall, size)
        for at in np.flatnonzero(best.gain > 0):
            trait = Trait(
                column.column, column.said(best.key[at]),
                float(best.inside[at]), float(best.overall[at]),
            )  # fmt: skip
            found[start + at].append((float(best.gain[at]), number, trait))


def _hear(
    found: list[list[tuple[float, int, Trait]]],
    number: int, column: Wordings, slices: _Slices, most: int,
) -> None:  # fmt: skip
    """Add the words that a node's texts hold more often."""
    heard = column.best(slices.leaf, slices.first, slices.last, slices.n_leaves, most)
    for node, word, inside, overall, gain in heard:
        trait = Trait(column.column, f'with "{word}"', inside, overall)
        found[node].append((gain, number, trait))


class _Alike:
    """Whether two columns say the same, found out when it is asked."""

    def __init__(self, coded: dict[int, Legible | Wordings]) -> None:
        self._coded = coded
        self._known: dict[tuple[int, int], bool] = {}

    def __call__(self, one: int, other: int) -> bool:
        """True where most of what the coarser column tells is told by the other."""
        pair = (min(one, other), max(one, other))
        if pair not in self._known:
            a, b = self._coded[pair[0]], self._coded[pair[1]]
            both = not isinstance(a, Wordings) and not isinstance(b, Wordings)
            self._known[pair] = both and _shared(a, b) > _ALIKE  # type: ignore[arg-type]
        return self._known[pair]


def _shared(a: Legible, b: Legible) -> float:
    """Mutual information over the smaller entropy."""
    step = max(1, len(a.codes) // _SOME)
    x, y = a.codes[::step], b.codes[::step]
    joint = np.bincount(x * b.n_codes + y, minlength=a.n_codes * b.n_codes) / len(x)
    table = joint.reshape(a.n_codes, b.n_codes)
    own = [float(entr(table.sum(axis=axis)).sum()) for axis in (0, 1)]
    least = min(own)
    return (sum(own) - float(entr(table).sum())) / least if least > 0 else 0.0


def _told(
    traits: Sequence[tuple[float, int, Trait]], alike: _Alike, most: int
) -> list[Trait]:
    """The most telling, none of a column that says what another said."""
    taken: list[tuple[int, Trait]] = []
    for _, number, trait in sorted(traits, key=lambda each: (-each[0], each[1])):
        if len(taken) == most:
            break
        if not any(other != number and alike(number, other) for other, _ in taken):
            taken.append((number, trait))
    return [trait for _, trait in taken]
