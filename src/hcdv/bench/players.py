"""The same tasks for 100 players of 10 rows each, as DU-Shapley's authors play them.

Theirs (Garrido-Lucero et al., Sec. 4.3) do not say how a player is noisy, so both readings
are measured, on the sets, sizes and model of the first table:

- `whole`: round(100 · rate) players have all labels flipped; a player is found or not.
- `points`: the labels of the first table, flipped row by row; rows are found or not.

Players are rows 1 to 10, 11 to 20, and so on of a random order. A player's value is the sum
of its rows' values; 5 % and 15 % are shares of the players, removed or trained on whole.
`hcdv` has the players as the first level of its tree, `hcdv rows` ignores them, `group
shapley` is the first with λ = κ = 0. OpenDataVal's values are those of the first table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcdv.bench.methods import METHODS, Floats, Problem, Scores, ours
from hcdv.bench.noise import flipped

N_PLAYERS = 100
NOISE = ("whole", "points")
PLAYED = (
    "hcdv", "hcdv rows", "group shapley", "mcds", "banzhaf", "loo", "knn 10", "knn 100",
    "random",
)  # fmt: skip

Rows = NDArray[np.intp]


def players_of(n_rows: int) -> Rows:
    """The player each row belongs to."""
    return np.repeat(np.arange(N_PLAYERS), n_rows // N_PLAYERS)


def flipped_whole(
    y: Rows, n_classes: int, rate: float, rng: np.random.Generator
) -> tuple[Rows, NDArray[np.bool_]]:
    """Labels with all rows of some players wrong, and which rows."""
    player = players_of(len(y))
    _, noisy = flipped(np.zeros(N_PLAYERS, dtype=np.intp), 2, rate, rng)
    wrong = noisy[player]
    other = (y + rng.integers(1, n_classes, len(y))) % n_classes
    return np.where(wrong, other, y), wrong


def valued(problem: Problem, method: str) -> Scores:
    """Values of the rows by a method that may know the players."""
    of_players = {"branching": ("groups", 8), "groups": players_of(len(problem.y))}
    if method == "hcdv":
        return ours(problem, **of_players)
    if method == "group shapley":
        return ours(problem, dispersion_weight=0.0, consistency_weight=0.0, **of_players)
    return METHODS["hcdv" if method == "hcdv rows" else method](problem)


def sums(values: Floats) -> Floats:
    """One value a player."""
    return values.reshape(N_PLAYERS, -1).sum(axis=1)


def rows_by_player(values: Floats) -> Rows:
    """Rows of the player of lowest value first."""
    lowest = np.argsort(sums(values), kind="stable")
    return np.arange(len(values)).reshape(N_PLAYERS, -1)[lowest].ravel()
