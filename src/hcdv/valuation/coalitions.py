"""Values ψ of the coalitions from the root down to the game level, by one game.

The tree is cut at its deepest level with at most 128 coalitions of 64 rows on average, or
at its first: budgets of smaller ones hide which rows matter most (docs/evidence.md). Where
enumeration costs no more than sampling the Winter value is exact; otherwise nested orders
are walked, and the first level, enumerated where it is small, corrects the others
additively.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.tree import Tree
from hcdv.valuation.coalition_game import (
    Game,
    count_payoffs,
    reconcile,
    shapley_exact,
    winter_exact,
    winter_sampled,
)
from hcdv.valuation.orders import nesting
from hcdv.valuation.plan import ENUMERATED, ENUMERATED_DEEP, GAME_COALITIONS, GAME_ROWS


@dataclass(frozen=True)
class Upper:
    """The tree above and at the game level: its nodes are the first ids of the whole tree."""

    parent: NDArray[np.intp]  # (m,)
    players: NDArray[np.intp]  # (K,)  node ids of the game level, ascending
    code: NDArray[np.intp]  # (n,)  index into players of every row
    n_inside: NDArray[np.intp]  # (K,)  rows of each

    @classmethod
    def of(
        cls, tree: Tree, most: int = GAME_COALITIONS, rows_each: int = GAME_ROWS
    ) -> Upper:
        """Cut a tree at its game level."""
        level = game_level(tree, tree.n_rows, most, rows_each)
        parent = np.asarray(tree.parent[tree.level <= level], dtype=np.intp)
        players = np.asarray(nesting(parent).leaves, dtype=np.intp)
        code = np.asarray(tree.codes(players), dtype=np.intp)
        return cls(parent, players, code, np.bincount(code, minlength=len(players)))


def game_level(
    tree: Tree, n_rows: int, most: int = GAME_COALITIONS, rows_each: int = GAME_ROWS
) -> int:
    """The level at which coalitions play where the tree holds so many rows."""
    first = int(tree.n_children[0]) if tree.depth else 1
    return tree.game_level(min(most, max(first, n_rows // rows_each)))


@dataclass(frozen=True)
class CoalitionValues:
    """ψ of the nodes of `Upper`; children sum to their parent."""

    value: NDArray[np.float64]  # (m,)
    stderr: NDArray[np.float64]  # (m,)
    as_player: NDArray[np.float64]  # (m,)  before levels were reconciled
    is_exact: bool
    n_payoffs: int
    rounds: int = 1

    def joined(self, more: CoalitionValues) -> CoalitionValues:
        """The mean with a further round's independent estimate."""
        rounds = self.rounds + 1
        share = 1.0 / rounds
        stderr = np.hypot((1 - share) * self.stderr, share * more.stderr)
        return CoalitionValues(
            (1 - share) * self.value + share * more.value, stderr,
            (1 - share) * self.as_player + share * more.as_player,
            False, self.n_payoffs + more.n_payoffs, rounds,
        )  # fmt: skip


def coalition_values(
    game: Game, upper: Upper, n_permutations: int, rng: np.random.Generator, *, cheap: bool
) -> CoalitionValues:
    """Play the game of the upper tree. cheap: payoffs cost so little that 2^14 are nothing."""
    n_players = len(upper.players)
    sampled_cost = n_permutations * (n_players - 1) + 2
    is_flat = upper.parent.max(initial=0) == 0
    enumerated = 1 << (ENUMERATED if is_flat else ENUMERATED_DEEP)
    allowed = max(sampled_cost, enumerated) if cheap else sampled_cost
    n_exact = count_payoffs(upper.parent)
    if n_exact <= allowed:
        value = winter_exact(game, upper.parent)
        return CoalitionValues(value, np.zeros_like(value), value, True, n_exact)
    estimate = winter_sampled(game, upper.parent, n_permutations, rng)
    found = CoalitionValues(
        estimate.value, estimate.stderr, estimate.value, False, sampled_cost
    )
    return _first_level_exact(game, upper, found, allowed)


def _first_level_exact(
    game: Game, upper: Upper, found: CoalitionValues, allowed: int
) -> CoalitionValues:
    """Enumerate the game among the root's children and fit the levels below to it."""
    nest = nesting(upper.parent)
    first = nest.children(0)
    n_first = first.stop - first.start
    if n_first > ENUMERATED or 2**n_first > allowed:
        return found
    below = nest.node_sums(np.eye(len(upper.players))).T[first] > 0  # (children, K)
    exact = shapley_exact(lambda masks: game(masks @ below), n_first)
    value, stderr = found.value.copy(), found.stderr.copy()
    value[first], stderr[first] = exact, 0.0
    fixed = reconcile(value, np.where(stderr > 0, stderr, 0.0), upper.parent)
    return replace(
        found, value=fixed, stderr=stderr, n_payoffs=found.n_payoffs + 2**n_first
    )
