"""Small games and trees to draw, and slow plain answers to hold the fast ones against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from math import factorial

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

Game = Callable[[np.ndarray], np.ndarray]
RADIUS = 1.5  # of the threshold utility


def tables(n_players: int) -> st.SearchStrategy[np.ndarray]:
    """Payoffs of all 2^K coalitions."""
    return arrays(np.float64, 2**n_players, elements=st.floats(-1, 1, width=32))


def game_of(table: np.ndarray) -> Game:
    """The game in which coalition S is paid table[Σ_{i in S} 2**i]."""
    weights = 1 << np.arange(table.size.bit_length() - 1)
    return lambda masks: table[masks @ weights]


@st.composite
def trees(draw: st.DrawFn, max_leaves: int = 6) -> np.ndarray:
    """Parent links, breadth first, of a tree of up to max_leaves leaves and any shape."""
    depth = draw(st.integers(1, 3))
    parent, level, n_leaves = [-1], [0], 1
    for _ in range(depth):
        below: list[int] = []
        for node in level:
            room = max_leaves - n_leaves + 1
            k = draw(st.integers(0 if node else 1, min(4, room)))
            n_leaves += max(0, k - 1)
            below += range(len(parent), len(parent) + k)
            parent += [node] * k
        level = below
    return np.array(parent)


def leaves_of(parent: np.ndarray) -> list[int]:
    """Nodes without children, ascending."""
    return [node for node in range(len(parent)) if node not in set(parent[1:].tolist())]


@st.composite
def games_on_trees(draw: st.DrawFn, max_leaves: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Parent links, and a table of payoffs over the leaves."""
    parent = draw(trees(max_leaves))
    return parent, draw(tables(len(leaves_of(parent))))


def consistent_orders(parent: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Every order of the leaf positions that keeps each node together, once."""
    position = {node: place for place, node in enumerate(leaves_of(parent))}

    def below(node: int) -> list[tuple[int, ...]]:
        kids = [child for child in range(1, len(parent)) if parent[child] == node]
        if not kids:
            return [(position[node],)]
        return [
            sum(parts, ())
            for sequence in permutations(kids)
            for parts in product(*(below(child) for child in sequence))
        ]

    return iter(below(0))


def shapley_by_subsets(game: Game, n: int) -> np.ndarray:
    """Eq. (1), a Python loop over coalitions."""
    value = np.zeros(n)
    for code in range(2**n):
        inside = np.array([code >> i & 1 for i in range(n)], dtype=bool)
        s = int(inside.sum())
        for i in np.flatnonzero(~inside):
            joined = inside.copy()
            joined[i] = True
            before, after = game(np.array([inside, joined]))
            value[i] += (
                factorial(s) * factorial(n - 1 - s) / factorial(n) * (after - before)
            )
    return value


def counted(game: Game) -> tuple[Game, list[np.ndarray]]:
    """A game that keeps the coalitions it was asked about."""
    asked: list[np.ndarray] = []

    def asks(masks: np.ndarray) -> np.ndarray:
        asked.extend(masks.copy())
        return game(masks)

    return asks, asked


def small_knn_data(n, seed, regression=False):
    """Few distinct places, so that most distances are tied."""
    rng = np.random.default_rng(seed)
    X, X_val = (rng.integers(0, 3, (size, 2)).astype(float) for size in (n, 3))
    if regression:
        return X, rng.normal(size=n), X_val, rng.normal(size=3)
    return X, rng.integers(0, 3, n), X_val, rng.integers(0, 3, 3)


def slow_knn_game(kind, X, y, X_val, y_val, k, weights=None):
    """The utility as it is defined, one coalition and one validation row at a time."""
    n_classes = len(np.unique(np.append(y, y_val)))
    weights = np.full(len(y_val), 1 / len(y_val)) if weights is None else weights

    def one(inside, x, t):
        distance = np.sum((X[inside] - x) ** 2, axis=1)
        near = y[inside[np.argsort(distance, kind="stable")][:k]]
        if kind == "hard":
            return np.sum(near == t) / k
        if kind == "regression":
            return -((np.sum(near) / k - t) ** 2)
        if kind == "threshold":
            near = y[inside[distance <= RADIUS**2]]
        return np.mean(near == t) if near.size else 1 / n_classes

    def paid(mask):
        inside = np.flatnonzero(mask)
        scores = [one(inside, x, t) for x, t in zip(X_val, y_val, strict=True)]
        return np.dot(weights, scores)

    return lambda masks: np.array([paid(mask) for mask in masks])
