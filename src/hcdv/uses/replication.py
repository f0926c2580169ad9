"""What a seller would gain by copying rows, its own or another's, or by splitting in two.

Each is done to the statistics of the sellers' rows, or to the rows themselves where these are
what is paid, and everything is valued again: gains are measured, not bounded in theory. Shapley
values are not proof against any of the three.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.uses.sellers import Floats, played, summed
from hcdv.valuation.contexts import mix
from hcdv.valuation.nested import flat_batches
from hcdv.valuation.points import Case
from hcdv.valuation.probe import ProbeGame
from hcdv.valuation.statistics import Statistics

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.result import Run

OWN, OTHERS, SPLIT = "copies its own rows", "copies the rows of", "splits in two"
_CONTEXTS = 64
_GAIN = 0.01  # of the revenue, beyond which a move is warned of
_ADVICE = {
    OWN: "refuse rows that come twice",
    OTHERS: "refuse rows that another seller offers",
    SPLIT: "see to it that sellers are who they say",
}


@dataclass(frozen=True)
class Move:
    """What a seller does, and what all sellers are worth then, its parts added up."""

    seller: int
    what: str
    value: Floats  # (P,)


@dataclass(frozen=True)
class Stakes:
    """Class counts and sums of each seller's rows: all that dispersion asks of them."""

    count: Floats  # (P, C)
    sums: Floats  # (P, C, d)

    @classmethod
    def of(cls, case: Case, seller: NDArray[np.intp], n_sellers: int) -> Stakes:
        """Of the rows of a case."""
        points = case.points
        n_classes = max(1, points.n_classes)
        code = seller * n_classes + (points.target if points.n_classes else 0)
        count = np.bincount(code, minlength=n_sellers * n_classes)
        sums = np.zeros((n_sellers * n_classes, points.Z.shape[1]))
        np.add.at(sums, code, points.Z.astype(np.float64))
        shape = (n_sellers, n_classes)
        return cls(count.reshape(shape).astype(float), sums.reshape(*shape, -1))

    def dispersion(self) -> Floats:
        """Each seller's Shapley value of the dispersion of all rows, (P,)."""
        n, s = self.count.sum(axis=0), self.sums.sum(axis=0)
        n_pairs = (n.sum() ** 2 - (n**2).sum()) / 2
        if n_pairs == 0:  # one class, or numbers: nothing lies across
            return np.zeros(len(self.count))
        apart = self.count @ (n.sum() - n) - np.einsum(
            "pcd,cd->p", self.sums, s.sum(axis=0) - s
        )
        return apart / (2 * n_pairs)

    def copied(self, seller: int, of: int) -> Stakes:
        """With copies of the rows of one in the hands of another."""
        count, sums = self.count.copy(), self.sums.copy()
        count[seller] += self.count[of]
        sums[seller] += self.sums[of]
        return Stakes(count, sums)


def moves_of_players(
    halves: ProbeGame, stakes: Stakes, weight: float, value: Floats, seed: int
) -> Iterator[Move]:
    """Every move of every seller, in the game among sellers.

    halves: the game in which each seller is two players, 2p and 2p + 1. weight: λ.
    """
    n = len(value)
    whole = merged(halves)

    def worth(game: ProbeGame, of: int) -> Floats:
        return played(game, of, np.random.default_rng([seed, 8])).value

    for p in range(n):
        for source in (p, _best_other(value, p)):
            after = worth(copied(whole, p, source), n)
            after = after + weight * stakes.copied(p, source).dispersion()
            yield Move(p, OWN if source == p else f"{OTHERS} #{source}", after)
        apart = worth(split(halves, p), n + 1)
        joined = np.append(apart[:-1], 0.0)[:n]
        joined[p] += apart[-1]
        yield Move(p, SPLIT, joined + weight * stakes.dispersion())


def moves_of_rows(
    run: Run, seller: NDArray[np.intp], value: Floats, weight: float
) -> Iterator[Move]:
    """Every move of every seller where the sums of row values are paid.

    Rows are valued anew with the copies among them, by fewer contexts, the same before and
    after. Splitting changes no row's value, and no sum.
    """
    n = len(value)
    before = _row_sums(run, seller, n)
    stakes = Stakes.of(run.case, seller, n)
    for p in range(n):
        for source in (p, _best_other(value, p)):
            extra = np.flatnonzero(seller == source)
            everyone = np.append(seller, np.full(len(extra), p))
            gained = _row_sums(run, everyone, n, extra) - before
            gained += weight * (stakes.copied(p, source).dispersion() - stakes.dispersion())
            yield Move(p, OWN if source == p else f"{OTHERS} #{source}", value + gained)
        yield Move(p, SPLIT, value)


def _row_sums(
    run: Run, seller: NDArray[np.intp], n: int, extra: NDArray[np.intp] | None = None
) -> Floats:
    case = run.case
    if extra is not None:
        rows = np.append(np.arange(len(case.points)), extra)
        fresh = mix(case.points.key[extra] + np.uint64(0x9E3779B97F4A7C15))
        key = np.append(case.points.key, fresh)
        case = replace(case, views=[replace(v.take(rows), key=key) for v in case.views])
    plan = replace(run.plan, n_contexts=min(_CONTEXTS, run.plan.n_contexts))
    probe = replace(run.valuation.probe, memo={})
    return summed(seller, flat_batches(case, probe, plan).mean(), n)


def move_table(
    moves: Iterable[Move], names: list[Any], value: Floats, units: int, digits: int
) -> pd.DataFrame:
    """A line a move: what the seller is worth before and after, and gets more, in money."""
    import pandas as pd

    before = _shares(value)
    lines: list[dict[str, Any]] = []
    for move in moves:
        gain = float(_shares(move.value)[move.seller] - before[move.seller])
        what, _, source = move.what.partition(" #")
        lines.append({
            "seller": names[move.seller],
            "move": f"{what} {names[int(source)]}" if source else what,
            "value_before": value[move.seller], "value_after": move.value[move.seller],
            "amount_gain": round(gain * units / 10**digits, digits), "share_gain": gain,
        })  # fmt: skip
    columns = ["seller", "move", "value_before", "value_after", "amount_gain", "share_gain"]
    return pd.DataFrame(lines, columns=columns)


def warnings(moves: pd.DataFrame, digits: int) -> list[str]:
    """The largest gain of every kind of move, where it is worth a warning."""
    notes: list[str] = []
    for kind, advice in _ADVICE.items():
        own = moves[moves["move"].str.startswith(kind) & (moves["share_gain"] > _GAIN)]
        if len(own):
            line = own.loc[own["share_gain"].idxmax()].to_dict()
            notes.append(
                f"{line['seller']} would get {line['amount_gain']:,.{digits}f} more if it "
                f"{line['move']}: {advice}"
            )
    return notes


def _shares(value: Floats) -> Floats:
    positive = np.maximum(value, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(value), 1.0 / len(value))


def merged(halves: ProbeGame) -> ProbeGame:
    """Of players 2p and 2p + 1, one."""
    return replace(halves, taught=[_paired(stats) for stats in halves.taught])


def copied(game: ProbeGame, seller: int, of: int) -> ProbeGame:
    """The game in which a seller also brings copies of all rows of another, or of its own."""

    def more(stats: Statistics) -> Statistics:
        gram, cross = stats.gram.copy(), stats.cross.copy()
        gram[seller] += stats.gram[of]
        cross[seller] += stats.cross[of]
        return Statistics(gram, cross)

    return replace(game, taught=[more(stats) for stats in game.taught])


def split(halves: ProbeGame, seller: int) -> ProbeGame:
    """The game in which one seller is two players, its own place and a last one."""

    def apart(stats: Statistics) -> Statistics:
        whole, last = _paired(stats), 2 * seller + 1
        gram = np.concatenate([whole.gram, stats.gram[last : last + 1]])
        cross = np.concatenate([whole.cross, stats.cross[last : last + 1]])
        gram[seller], cross[seller] = stats.gram[last - 1], stats.cross[last - 1]
        return Statistics(gram, cross)

    return replace(halves, taught=[apart(stats) for stats in halves.taught])


def halved(case: Case, seller: NDArray[np.intp]) -> NDArray[np.intp]:
    """Players 2p and 2p + 1 of each row: half of a seller's rows each, by their hashes."""
    order = np.lexsort((mix(case.points.key), seller))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return 2 * seller + place % 2


def _paired(stats: Statistics) -> Statistics:
    n = len(stats.gram) // 2
    gram = stats.gram.reshape(n, 2, *stats.gram.shape[1:])
    cross = stats.cross.reshape(n, 2, *stats.cross.shape[1:])
    return Statistics(gram, cross).sum(axis=1)


def _best_other(value: Floats, p: int) -> int:
    others = value.copy()
    others[p] = -np.inf
    return int(np.argmax(others))
