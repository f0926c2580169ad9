"""Values of one coalition game, exact and sampled: the arithmetic of Stage III.

Notation (paper → code):
  v_ℓ → game · K_ℓ → n_players, or the leaves of `parent` · T → n_permutations
  ψ_G → value · ψ̂_G → the value field of an estimate · Pre_π(G) → a prefix of order[t]

With a tree, the value is Winter's (Owen's, for one level of groups): the average gain
over all orders that keep every node together. A node is worth the sum of its leaves,
which is also its Shapley value among its siblings, so all levels come from one walk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb

from hcdv.errors import ParameterError, PayoffError
from hcdv.valuation.orders import NestedOrders, Nesting, flat, nested_orders, nesting
from hcdv.valuation.precision import stratified_stderr

Game = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""Maps coalition masks (m, K) to m payoffs. Row s is the indicator of S."""

MAX_PLAYERS = 20  # 2^20 payoffs
CHUNK = 1 << 15  # coalitions in one call of a game


class ShapleyEstimate(NamedTuple):
    """Sampled values of the players of one game."""

    value: NDArray[np.float64]  # (K,)  ψ̂
    stderr: NDArray[np.float64]  # (K,)


class WinterEstimate(NamedTuple):
    """Sampled values of every node of a tree; children sum to their parent."""

    value: NDArray[np.float64]  # (m,)  ψ̂
    stderr: NDArray[np.float64]  # (m,)
    batches: NDArray[np.float64]  # (n_batches, m)  means; their spread is an upper estimate
    weights: NDArray[np.float64]  # (n_batches,)  share of the permutations, sums to 1


def evaluate(game: Game, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Pay coalitions (m, K) in chunks; refuse anything but one finite number for each."""
    payoff = np.empty(len(masks))
    for start in range(0, len(masks), CHUNK):
        part = masks[start : start + CHUNK]
        paid = np.asarray(game(part), dtype=np.float64)
        if paid.shape != (len(part),):
            raise PayoffError(
                f"game must return one payoff for each of {len(part)} coalitions, got an "
                f"array of shape {paid.shape}. Return a vector, one entry per mask row."
            )
        payoff[start : start + CHUNK] = paid
    n_bad = int(np.count_nonzero(~np.isfinite(payoff)))
    if n_bad:
        raise PayoffError(
            f"game must return finite payoffs, got {n_bad} of {len(masks)} that are nan or "
            "infinite. Where no model can be trained, return the score of a constant guess."
        )
    return payoff


def semivalue_exact(game: Game, n_players: int, weights: ArrayLike) -> NDArray[np.float64]:
    """Enumerate a semivalue of at most 20 players.

    value_i = Σ_{S ∌ i} p(|S|) · [v(S ∪ {i}) − v(S)],   p(s) = weights[s] / C(K − 1, s)

    weights[s] is the share of all coalitions of s others together: 1/K for each s is
    Shapley's value, C(K − 1, s)/2^(K − 1) Banzhaf's, all on s = K − 1 leave-one-out.
    """
    if not 1 <= n_players <= MAX_PLAYERS:
        raise ParameterError(
            "n_players", n_players, f"from 1 to {MAX_PLAYERS} to be enumerated",
            "Sample larger games.",
        )  # fmt: skip
    share = np.asarray(weights, dtype=np.float64)
    if share.shape != (n_players,) or not np.all(share >= 0) or abs(share.sum() - 1) > 1e-9:
        raise ParameterError(
            "weights", weights, f"{n_players} shares, none negative, that sum to 1"
        )
    others = np.arange(n_players)
    single = share / comb(n_players - 1, others)  # (K,)  p(s)
    codes = np.arange(1 << n_players)
    table = np.concatenate(
        [
            evaluate(game, _masks(part, n_players))
            for part in np.split(codes, range(CHUNK, codes.size, CHUNK))
        ]
    )
    p = np.append(single, 0.0)[_sizes(n_players)]
    value = np.empty(n_players)
    for i in others:
        v, weight = table.reshape(-1, 2, 1 << i), p.reshape(-1, 2, 1 << i)[:, 0]
        value[i] = np.sum(weight * (v[:, 1] - v[:, 0]))
    return value


def shapley_exact(game: Game, n_players: int) -> NDArray[np.float64]:
    """Enumerate the Shapley value, Eq. (1), of at most 20 players: 2^K payoffs."""
    return semivalue_exact(game, n_players, np.full(n_players, 1 / max(1, n_players)))


def shapley_sampled(
    game: Game,
    n_players: int,
    n_permutations: int,
    rng: np.random.Generator,
    *,
    independent: bool = False,
) -> ShapleyEstimate:
    r"""Estimate the Shapley value from random orders, Eq. (13).

    ψ̂_i = 1/T · Σ_t [ v(Pre_πt(i) ∪ {i}) − v(Pre_πt(i)) ],   π_t ~ Unif(S_K)

    Neighbouring prefixes share an endpoint, so a permutation costs K + 1 payoffs, not the
    2K behind Eq. (17), and its gains telescope: Σ_i ψ̂_i = v(N) − v(∅) at every T.

    The orders come from Latin squares and their reversals unless `independent`.
    """
    parent = flat(n_players)
    estimate = winter_sampled(game, parent, n_permutations, rng, independent=independent)
    return ShapleyEstimate(estimate.value[1:], estimate.stderr[1:])


def winter_exact(
    game: Game, parent: ArrayLike, *, max_payoffs: int = 1 << MAX_PLAYERS
) -> NDArray[np.float64]:
    """Enumerate the Winter value of every node of a tree whose leaves are the players.

    A node meets a context: whole siblings of its own and of its ancestors, each family's
    drawn by Shapley's weights. Below a parent with c contexts and k children there are
    c · 2^k unions; the empty and the full one were paid for one level up.
    """
    nest = nesting(parent)
    n_payoffs = count_payoffs(parent)
    if n_payoffs > max_payoffs:
        raise ParameterError(
            "parent", f"a tree with {n_payoffs} of them",
            f"of at most {max_payoffs} coalitions",
            "Use winter_sampled, or a shallower tree.",
        )  # fmt: skip
    below = _leaves_below(nest)
    n_leaves = nest.leaves.size
    ends = evaluate(game, np.array([np.zeros(n_leaves), np.ones(n_leaves)], dtype=bool))
    value = np.zeros(nest.n_children.size)
    value[0] = ends[1] - ends[0]
    one = np.ones(1)
    todo = [(0, np.zeros((1, n_leaves), dtype=bool), one, ends[:1], ends[1:])]
    while todo:
        node, contexts, chance, before, after = todo.pop()
        k, kids = int(nest.n_children[node]), nest.children(node)
        if k == 0:
            continue
        codes, sizes = np.arange(1 << k), _sizes(k)
        unions = _masks(codes, k) @ below[kids]  # (2^k, K)
        masks = contexts[:, None, :] | unions[None, :, :]
        table = np.empty((len(contexts), 1 << k))
        table[:, 0], table[:, -1] = before, after
        inside = masks[:, 1:-1].reshape(-1, n_leaves)
        table[:, 1:-1] = evaluate(game, inside).reshape(len(contexts), -1)
        for bit, child in enumerate(range(kids.start, kids.stop)):
            without = codes[(codes >> bit) & 1 == 0]
            odds = chance[:, None] / (k * comb(k - 1, sizes[without]))
            low, high = table[:, without], table[:, without | 1 << bit]
            value[child] = np.sum(odds * (high - low))
            if nest.n_children[child]:
                around = masks[:, without].reshape(-1, n_leaves)
                todo.append((child, around, odds.ravel(), low.ravel(), high.ravel()))
    return value


def winter_sampled(
    game: Game,
    parent: ArrayLike,
    n_permutations: int,
    rng: np.random.Generator,
    *,
    independent: bool = False,
) -> WinterEstimate:
    """Estimate every node's Winter value from T orders: at most T·(K − 1) + 2 payoffs."""
    nested = nested_orders(parent, n_permutations, rng, independent=independent)
    return from_walks(parent, nested, walk(game, nested.order))


def walk(game: Game, order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Pay every prefix, from ∅ to N, of orders (T, K): (T, K + 1), each coalition once."""
    n_permutations, n_leaves = order.shape
    rank = np.argsort(order, axis=1)
    steps = np.arange(n_leaves + 1)
    n_words = -(-n_leaves // 64)
    packed = np.zeros((n_permutations, n_leaves + 1, 8 * n_words), dtype=np.uint8)
    for t in range(n_permutations):  # one by one: bits are an eighth of the masks' memory
        bits = np.packbits(rank[t] < steps[:, None], axis=1)
        packed[t, :, : bits.shape[1]] = bits
    words = packed.reshape(-1, 8 * n_words).view(np.uint64)
    distinct, where = _distinct(words)
    payoff = np.empty(len(distinct))
    for start in range(0, len(distinct), CHUNK):
        raw = distinct[start : start + CHUNK].view(np.uint8)
        masks = np.unpackbits(raw, axis=1, count=n_leaves).view(bool)
        payoff[start : start + CHUNK] = evaluate(game, masks)
    return payoff[where].reshape(n_permutations, -1)


def from_walks(
    parent: ArrayLike, nested: NestedOrders, payoff: NDArray[np.float64]
) -> WinterEstimate:
    """Turn the payoffs (T, K + 1) of nested orders into values of nodes.

    Standard errors take place out where orders come in pairs, and are those of the batch
    means where they do not. The batches are there for errors of anything linear in values.
    """
    nest = nesting(parent)
    gain = np.diff(payoff, axis=1)  # (T, K)  by step
    marginal = np.empty_like(gain)
    np.put_along_axis(marginal, nested.order, gain, axis=1)  # (T, K)  by leaf
    starts = np.flatnonzero(np.diff(nested.batch, prepend=-1))
    length = np.diff(np.append(starts, len(marginal)))
    gains = nest.node_sums(marginal)  # (T, m)
    batches = np.add.reduceat(gains, starts, axis=0) / length[:, None]
    weights = length / length.sum()
    value = weights @ batches
    stderr = stratified_stderr(parent, nested.order, gains)
    if stderr is None:
        n = len(weights)
        # The usual s²/n where the batches are of one length.
        stderr = np.sqrt(weights**2 @ (batches - value) ** 2 * (n / (n - 1)))
    return WinterEstimate(value, stderr, batches, weights)


def reconcile(
    value: NDArray[np.float64], stderr: NDArray[np.float64], parent: ArrayLike
) -> NDArray[np.float64]:
    """Make children sum to their parent, from the root down, by additive corrections.

    ψ_H ← ψ_H + σ_H² / Σ_siblings σ² · (ψ_P − Σ_siblings ψ)

    The least change in units of the standard errors; never divides by a value. A node
    that is known exactly keeps its value; where all siblings are, those not 0 share equally.
    """
    nest = nesting(parent)
    adjusted = np.array(value, dtype=np.float64)
    for node in nest.inner:
        kids = nest.children(node)
        weight = np.square(stderr[kids])
        if not weight.any():  # what is left is rounding, and no business of a dummy's
            weight = (adjusted[kids] != 0).astype(np.float64)
        share = (
            weight / weight.sum() if weight.any() else np.full(weight.size, 1 / weight.size)
        )
        adjusted[kids] += share * (adjusted[node] - adjusted[kids].sum())
    return adjusted


def count_payoffs(parent: ArrayLike) -> int:
    """How many coalitions are prefixes of some nested order: what winter_exact pays for."""
    nest = nesting(parent)
    contexts = [1] * nest.n_children.size
    total = 2  # ∅ and N
    for node in nest.inner.tolist():
        k = int(nest.n_children[node])
        total += contexts[node] * (2**k - 2)
        for child in range(nest.children(node).start, nest.children(node).stop):
            contexts[child] = contexts[node] * 2 ** (k - 1)
    return total


def _masks(codes: NDArray[np.int64], n_players: int) -> NDArray[np.bool_]:
    """Bit i of a code says whether player i is in."""
    return (codes[:, None] >> np.arange(n_players)) & 1 == 1


def _sizes(n_players: int) -> NDArray[np.intp]:
    """Players in the coalition of each code: 0, 1, 1, 2, 1, 2, 2, 3 ..."""
    size = np.zeros(1, dtype=np.intp)
    for _ in range(n_players):
        size = np.concatenate([size, size + 1])
    return size


def _leaves_below(nest: Nesting) -> NDArray[np.bool_]:
    """Which leaf positions lie below each node: (m, K)."""
    return nest.node_sums(np.eye(nest.leaves.size)).T > 0


def _distinct(
    words: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Distinct rows, and the place of every row among them."""
    order = np.lexsort(words.T)
    ordered = words[order]
    is_new = np.append(True, np.any(ordered[1:] != ordered[:-1], axis=1))
    where = np.empty(len(words), dtype=np.int64)
    where[order] = np.cumsum(is_new) - 1
    return np.ascontiguousarray(ordered[is_new]), where
