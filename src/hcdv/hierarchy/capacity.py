r"""Assign points to centroids under a capacity window: prices first, then exact repair.

Many nodes are treated at once, padded to the longest, each with its own window.

    minimise Σ_i cost[label_i, i]   with   low ≤ #{i : label_i = k} ≤ high  for every k

A price per centroid turns the window into plain nearest-centroid search (the dual of the
transport problem). What prices cannot settle, ties above all, `repair` settles exactly.

Notation (paper → code):  G → one node of n_nodes · K → k · s^min, s^max → low, high · γ →
tolerance · shapes: cost (G, k, n), price (G, k), label (G, n), window (G,)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_GROW, _SHRINK = 1.3, 0.5  # of a price's step, when its excess keeps or changes sign
_STEPS = 2.0  # no step outgrows this many mean margins, or one centroid loses every point


class Window(NamedTuple):
    """The smallest and largest number of points a child may hold."""

    low: Ints
    high: Ints

    def of(self, nodes: Ints) -> Window:
        """The windows of some of the nodes."""
        return Window(self.low[nodes], self.high[nodes])

    def outside(self, count: NDArray[np.number]) -> NDArray[np.number]:
        """(G, k) how far each count is above the window, or below it (negative)."""
        return count - np.clip(count, self.low[:, None], self.high[:, None])


def window(size: ArrayLike, k: ArrayLike, tolerance: float) -> Window:
    """Eqs. (34), (35): ⌊(1−γ)s⌋ … ⌈(1+γ)s⌉ with s = ⌈|G|/K⌉, narrowed to what can be met.

    departs from paper: no child is empty (|G| ≥ K), and k·low ≤ |G| ≤ k·high always; as
    printed, γ = 0 asks for K·s > |G| points and s = 1 allows empty children.
    """
    size, k = np.asarray(size, dtype=np.int64), np.asarray(k, dtype=np.int64)
    s = -(-size // k)
    # 1e-9: (1 + 0.1)·50 is 55.00000000000001 in floats, and its ceiling is 56
    low = np.floor((1 - tolerance) * s + 1e-9).astype(np.int64)
    high = np.ceil((1 + tolerance) * s - 1e-9).astype(np.int64)
    low = np.minimum(np.maximum(low, 1), size // k)
    return Window(low, np.minimum(high, size - (k - 1) * low))


class Prices:
    """Dual ascent, kept warm while centroids move: one pass is one search over k x n."""

    def __init__(self, cost: Floats, is_real: NDArray[np.bool_] | None) -> None:
        self.is_real = is_real
        self.price = np.zeros(cost.shape[:2], dtype=np.float32)
        self.rescale(cost)

    def rescale(self, cost: Floats) -> None:
        """Take the mean margin, second cheapest less cheapest, as the unit of a step."""
        paid = cost + self.price[:, :, None]
        least = paid.min(axis=1, keepdims=True)
        paid[paid <= least] = np.inf
        margin = paid.min(axis=1) - least[:, 0]
        margin[~np.isfinite(margin)] = 0
        unit = margin.mean(axis=1, keepdims=True)
        self.limit = _STEPS * unit
        self.step = np.repeat(unit, cost.shape[1], axis=1)
        self.excess = np.zeros_like(self.price)

    def choice(self, cost: Floats, price: Floats | None = None) -> Floats:
        """(G, k, n) 1 at the cheapest centroid of each point; ties are 1 more than once."""
        paid = cost + (self.price if price is None else price)[:, :, None]
        chosen = (paid <= paid.min(axis=1, keepdims=True)).astype(np.float32)
        if self.is_real is not None:
            chosen *= self.is_real[:, None, :]
        return chosen

    def climb(self, cost: Floats, bounds: Window, n_passes: int) -> Floats:
        """Raise the price of the overfull, lower the underfull's; the best choice met."""
        per_point = np.float32(cost.shape[1] / cost.shape[2])
        price, best = self.price, np.full(len(cost), np.inf)
        best_choice = np.empty(0, dtype=np.float32)
        for _ in range(n_passes):
            chosen = self.choice(cost, price)
            excess = bounds.outside(chosen.sum(axis=2))
            off = np.abs(excess).sum(axis=1)
            better = off < best
            if better.all():
                self.price, best_choice = price, chosen
            else:
                self.price = np.where(better[:, None], price, self.price)
                best_choice[better] = chosen[better]
            best = np.minimum(best, off)
            if not best.any():
                break
            turn = excess * self.excess
            change = np.where(turn > 0, _GROW, np.where(turn < 0, _SHRINK, 1.0))
            self.step = np.minimum(self.step * change, self.limit).astype(np.float32)
            self.excess = excess
            price = (price + self.step * excess * per_point).astype(np.float32)
        return best_choice


def labels_of(chosen: Floats, is_real: NDArray[np.bool_] | None) -> Ints:
    """(G, n) index of the last 1; k for padding."""
    k = chosen.shape[1]
    index = np.arange(k, dtype=np.float32)[:, None]
    label = (chosen * index).max(axis=1).astype(np.int64)
    if is_real is not None:
        label[~is_real] = k
    return label


def indicator(label: Ints, k: int) -> Floats:
    """(G, k, n) 1 where a point has the label; none for padding."""
    return (label[:, None, :] == np.arange(k)[:, None]).astype(np.float32)


def counts_of(label: Ints, k: int) -> Ints:
    """(G, k) points of each label; the padding label k is not counted."""
    n_nodes = len(label)
    at = label + np.arange(n_nodes)[:, None] * (k + 1)
    return np.bincount(at.ravel(), minlength=n_nodes * (k + 1)).reshape(-1, k + 1)[:, :k]


def repair(label: Ints, cost: Floats, bounds: Window) -> int:
    """Bring every count inside its window, in place; how many moves it took.

    Overfull children give what they have too much, then children still short take from
    those that can spare. Always ends inside: k·low ≤ n ≤ k·high.
    """
    low, high = bounds.low[:, None], bounds.high[:, None]
    count = counts_of(label, cost.shape[1])
    moves = _move(label, cost, np.maximum(count - high, 0), np.maximum(high - count, 0))
    count = counts_of(label, cost.shape[1])
    return moves + _move(
        label, cost, np.maximum(count - low, 0), np.maximum(low - count, 0)
    )


def _move(label: Ints, cost: Floats, spare: Ints, room: Ints) -> int:
    """Move the points that lose least until each node is out of spare points or of room.

    Each round fills a receiver or uses up all spare points, so at most k rounds are needed.
    """
    k, moves = cost.shape[1], 0
    spare = np.column_stack([spare, np.zeros(len(spare), dtype=np.int64)])  # padding stays
    while True:
        is_open = spare.any(axis=1) & room.any(axis=1)
        if not is_open.any():
            return moves
        spare[~is_open] = 0
        node, point = np.nonzero(np.take_along_axis(spare, label, axis=1))
        own = label[node, point]
        offers = np.where(room[node] > 0, cost[node, :, point], np.inf)
        target = offers.argmin(axis=1)
        loss = offers[np.arange(len(node)), target] - cost[node, own, point]
        goes = _rank(node * k + own, loss) < spare[node, own]
        node, point, own, target = node[goes], point[goes], own[goes], target[goes]
        fits = _rank(node * k + target, loss[goes]) < room[node, target]
        node, point, own, target = node[fits], point[fits], own[fits], target[fits]
        label[node, point] = target
        np.subtract.at(spare, (node, own), 1)
        np.subtract.at(room, (node, target), 1)
        moves += len(node)


def _rank(group: Ints, by: NDArray[np.floating]) -> Ints:
    """Place of each entry within its group, smallest first, ties by position."""
    along = np.lexsort((by, group))
    sorted_group, place = group[along], np.arange(len(group))
    is_first = np.diff(sorted_group, prepend=-1) > 0
    rank = np.empty(len(group), dtype=np.int64)
    rank[along] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return rank
