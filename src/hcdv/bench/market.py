"""Table `market`: five sellers share what their rows of the census are worth to a buyer.

Paper: Sec. "Fair Allocation in the Data Marketplace", Tables `market_stats` and
`combined_analysis`. What it leaves open, and what is done here:

- Rows. A third of Adult is held out by seed: 4,000 validation rows, which belong to the
  buyer and which payoffs may look at, and the test rows, which only the references see.
  Sellers are drawn from the rest, one after the other, no row twice.
- Profiles. Income, sex and age below, at or above the median asked for make 12 cells,
  filled in the proportions of the pool, fitted to the profile. A seller lacks the levels of
  education beyond its number, drawn at random, never one of the six commonest. The page
  prints the profile reached beside the one asked.
- The buyer's model is logistic regression (C = 1) on one-hot and standardised columns, the
  encoding of all sellers' rows; no data pays 1/2.
- `hcdv` pays the sum over a seller's rows of M + λΔ: κ = 0, since copying rows agrees with
  itself. `hcdv payouts` is what `HCDV.payouts` pays: the exact game of the five on the probe,
  regularised as suits them, and λΔ. Sums over 2,000 rows need few samples: 64 contexts and 16
  orders. Baselines pay M alone. All are matched to balanced accuracy except the column that
  says it is not.
- Shares. A negative payoff counts as zero, the rest is divided by its sum; if none is
  positive, all get the same. ρ is taken on payoffs before that.
- References, on test rows: leave-one-out, v(all) − v(all without p), and the exact Shapley
  value of the game of five, from 2⁵ retrainings. `exact, validation` plays that game on the
  buyer's rows: what a payoff that may not see the test rows can reach at best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.bench.cells import Ask, Key, Record
from hcdv.bench.datasets import DataSet, load
from hcdv.bench.methods import Problem, fitted, numbers
from hcdv.engines.local import one_thread_each
from hcdv.errors import DataError, PayoffError
from hcdv.estimator import HCDV
from hcdv.functional import shapley_exact

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

REVENUE = "100000.00"
N_HELD_OUT, N_VALIDATION = 16_281, 4_000
_ALWAYS_TAUGHT = 6  # levels of education that no seller lacks: the commonest
_FITTING_ROUNDS = 200
_SUM_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Profile:
    """What a seller's rows look like, as the paper's table prints it."""

    n_rows: int
    high_income: float  # %
    female: float  # %
    median_age: float
    n_levels: int  # of education


PROFILES = (
    Profile(2_000, 33.1, 35.4, 38, 13),
    Profile(2_100, 41.8, 48.7, 34, 14),
    Profile(1_950, 25.6, 31.9, 42, 11),
    Profile(2_000, 30.2, 37.1, 36, 12),
    Profile(1_950, 36.7, 43.6, 39, 13),
)
PRINTED = {  # method: shares, ρ, Gini, minutes, as in the paper
    "equal split": ((0.20, 0.20, 0.20, 0.20, 0.20), 0.00, 0.00, 0.1),
    "random": ((0.18, 0.21, 0.23, 0.19, 0.19), 0.12, 0.08, 0.1),
    "group shapley": ((0.22, 0.24, 0.17, 0.19, 0.18), 0.77, 0.14, 6.4),
    "mcds": ((0.23, 0.26, 0.16, 0.18, 0.17), 0.89, 0.16, 32.5),
    "hcdv": ((0.25, 0.27, 0.15, 0.21, 0.22), 0.94, 0.11, 3.8),
}


@dataclass(frozen=True)
class Market:
    """The sellers' rows as a problem to value, who owns them, and rows nobody may see."""

    problem: Problem
    seller: Rows  # (n,)
    X_test: Any
    y_test: Rows

    @property
    def n_sellers(self) -> int:
        """P."""
        return int(self.seller.max()) + 1

    def sums(self, values: Floats) -> Floats:
        """What each seller's rows are worth together."""
        summed = np.bincount(self.seller, weights=values, minlength=self.n_sellers)
        return np.asarray(summed, dtype=np.float64)


def market(data: DataSet, seed: int, *, scale: float = 1.0) -> Market:
    """Draw the held-out rows and the sellers. scale: of all sizes."""
    rng = np.random.default_rng([seed, 41])
    order = rng.permutation(len(data.y))
    n_held, n_validation = round(scale * N_HELD_OUT), round(scale * N_VALIDATION)
    held, pool = order[:n_held], order[n_held:]
    drawn: list[Rows] = []
    for profile in PROFILES:
        size = round(scale * profile.n_rows)
        drawn.append(drawn_rows(data, pool, profile, size, rng))
        pool = np.setdiff1d(pool, drawn[-1])
    X, y = data.rows(np.concatenate(drawn))
    X_val, y_val = data.rows(held[:n_validation])
    X_test, y_test = data.rows(held[n_validation:])
    problem = Problem(X, y, X_val, y_val, 2, seed, "balanced_accuracy")
    seller = np.repeat(np.arange(len(drawn)), [len(rows) for rows in drawn])
    return Market(problem, seller, X_test, y_test)


def drawn_rows(
    data: DataSet, pool: Rows, profile: Profile, size: int, rng: np.random.Generator
) -> Rows:
    """Rows of the pool that make up a profile."""
    table = data.X.iloc[pool]
    education = table["education"].astype(str).to_numpy()
    levels = data.X["education"].astype(str).value_counts().index.to_numpy()
    rare = levels[_ALWAYS_TAUGHT:]
    lacking = rng.choice(rare, len(levels) - profile.n_levels, replace=False)
    pool = pool[~np.isin(education, lacking)]
    cell = _cells(data, pool, profile.median_age)
    held = np.bincount(cell, minlength=12)
    wanted = _fitted_table(held.reshape(2, 2, 3), profile).ravel() * size
    count = _whole(wanted, size, held)
    parts = [
        rng.choice(np.flatnonzero(cell == number), few, replace=False)
        for number, few in enumerate(count)
    ]
    return np.sort(pool[np.concatenate(parts)])


def _cells(data: DataSet, rows: Rows, median_age: float) -> Rows:
    """Income, sex, and age below, at or above the median, as one number of 12."""
    table = data.X.iloc[rows]
    female = table["sex"].astype(str).str.strip().to_numpy() == "Female"
    age = table["age"].to_numpy(dtype=float)
    return data.y[rows] * 6 + female * 3 + np.sign(age - median_age).astype(np.intp) + 1


def _fitted_table(held: NDArray[np.intp], profile: Profile) -> Floats:
    """Shares of the cells (2, 2, 3) nearest to the pool's that have the profile's margins."""
    share = np.maximum(held, 0.5) / held.sum()
    at_median = share.sum(axis=(0, 1))[1]
    around = (1.0 - at_median) / 2.0
    high, female = profile.high_income / 100, profile.female / 100
    margins = [(1 - high, high), (1 - female, female), (around, at_median, around)]
    for _ in range(_FITTING_ROUNDS):
        for axis, margin in enumerate(margins):
            others = tuple(other for other in range(3) if other != axis)
            shape = [-1 if other == axis else 1 for other in range(3)]
            share = share * (np.array(margin) / share.sum(axis=others)).reshape(shape)
    return share


def _whole(wanted: Floats, size: int, most: NDArray[np.intp]) -> NDArray[np.intp]:
    """Counts that add up to size, largest remainders first, none above what there is."""
    count = np.minimum(np.floor(wanted).astype(np.intp), most)
    while (short := size - int(count.sum())) > 0:
        room = np.flatnonzero(count < most)
        if not len(room):
            raise DataError(
                f"the pool must hold {size} rows for a seller, got {int(most.sum())}."
            )
        count[room[np.argsort(count[room] - wanted[room], kind="stable")[:short]]] += 1
    return count


def reached(table: Market) -> list[Profile]:
    """The profiles of the sellers as drawn."""
    found: list[Profile] = []
    for p in range(table.n_sellers):
        rows = table.problem.X[table.seller == p]
        female = rows["sex"].astype(str).str.strip() == "Female"
        found.append(
            Profile(
                len(rows), 100 * float(table.problem.y[table.seller == p].mean()),
                100 * float(female.mean()), float(rows["age"].median()),
                int(rows["education"].nunique()),
            )
        )  # fmt: skip
    return found


def retrained(table: Market) -> tuple[Floats, Floats]:
    """Balanced accuracy of the buyer's model for all 2^P coalitions: validation and test.

    Coalition s holds the sellers whose bits are set in s.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import balanced_accuracy_score as score

    problem = table.problem
    X, X_val = numbers(problem)
    _, X_test = numbers(Problem(problem.X, problem.y, table.X_test, table.y_test, 2, 0))
    paid = np.full((2, 1 << table.n_sellers), 0.5)
    with one_thread_each():  # several spend ten times as long waiting for each other
        for code in range(1, 1 << table.n_sellers):
            rows = (code >> table.seller) & 1 == 1
            model = LogisticRegression(solver="newton-cholesky")
            model.fit(X[rows], problem.y[rows])
            paid[0, code] = score(problem.y_val, model.predict(X_val))
            paid[1, code] = score(table.y_test, model.predict(X_test))
    return paid[0], paid[1]


def shapley_of(paid: Floats) -> Floats:
    """Exact Shapley values of a game given by the payoffs of all coalitions."""
    n = int(np.log2(len(paid)))
    bit = 1 << np.arange(n)
    return shapley_exact(lambda masks: paid[masks @ bit], n)


def leave_one_out(paid: Floats) -> Floats:
    """v(all) − v(all without p)."""
    everyone = len(paid) - 1
    n = int(np.log2(len(paid)))
    return paid[everyone] - paid[everyone - (1 << np.arange(n))]


def _fitted(table: Market, metric: str = "balanced_accuracy", **settings: Any) -> HCDV:
    problem = replace(table.problem, metric=metric)
    groups = {"groups": table.seller} if "groups" in settings.get("branching", ()) else {}
    return fitted(problem, consistency_weight=0.0, **settings, **groups)[0]


def _ours(table: Market, **settings: Any) -> Floats:
    return table.sums(_fitted(table, **settings).values_)


def _payouts(table: Market) -> Floats:
    """What a buyer who fits and pays would pay by."""
    model = _fitted(table, **_FEW)
    found = model.payouts(table.seller, revenue=REVENUE, replication=False)
    return found.table["value"].to_numpy(dtype=np.float64)


_FEW: dict[str, Any] = {"n_contexts": 64, "n_permutations": 16}
METHODS: dict[str, Callable[[Market], Floats]] = {
    "hcdv": lambda t: _ours(t, **_FEW),
    "hcdv payouts": _payouts,
    "hcdv metric=loss": lambda t: _ours(t, metric="loss", **_FEW),
    "hcdv by seller": lambda t: _ours(t, branching=["groups", 8], **_FEW),
    "group shapley": lambda t: _ours(t, branching=["groups"], dispersion_weight=0.0),
    "mcds": lambda t: _ours(t, branching="flat", dispersion_weight=0.0),
    "equal split": lambda t: np.full(t.n_sellers, 1.0 / t.n_sellers),
    "random": lambda t: np.random.default_rng([t.problem.seed, 99]).random(t.n_sellers),
}
EXACT = "exact, validation"


def shares(payoff: Floats) -> list[float]:
    """Payoffs as shares of one: negative ones count as zero; alike where none is positive."""
    positive = [max(0.0, float(one)) for one in payoff]
    total = fsum(positive)
    if total == 0.0:
        return [1.0 / len(positive)] * len(positive)
    found = [one / total for one in positive]
    if abs(fsum(found) - 1.0) > _SUM_TOLERANCE:
        raise PayoffError(f"shares must sum to 1, got {fsum(found)!r}.")
    return found


def gini(share: list[float]) -> float:
    """Mean difference over twice the mean: 0 for equal shares, 1 − 1/P for one taker."""
    x = np.asarray(share)
    return float(np.abs(x[:, None] - x).mean() / (2.0 * x.mean()))


class MarketTable:
    """Sellers' payoffs beside two references."""

    name = "market"

    def cells(self, ask: Ask) -> Iterable[Key]:
        """The references of a seed, then its methods."""
        for seed in range(1 if ask.fast else ask.seeds):
            for method in (EXACT, *METHODS):
                yield {"method": method, "seed": seed}

    def measured(self, key: Key, ask: Ask) -> Record:
        """Payoffs and shares of the sellers, and the seconds they took."""
        scale = 0.2 if ask.fast else 1.0
        table = market(load("adult", ask.data), key["seed"], scale=scale)
        began = perf_counter()
        if key["method"] == EXACT:
            validation, test = retrained(table)
            payoff = shapley_of(validation)
            more: Record = {
                "all_sellers": float(test[-1]),
                "leave_one_out": leave_one_out(test).tolist(),
                "exact": shapley_of(test).tolist(),
                "profiles": [vars(one) for one in reached(table)],
            }
        else:
            payoff, more = METHODS[key["method"]](table), {}
        seconds = perf_counter() - began
        share = shares(payoff)
        return {
            "payoff": payoff.tolist(), "share": share, "seconds": seconds,
            "off_from_1": abs(fsum(share) - 1.0), "gini": gini(share), **more,
        }  # fmt: skip

    def page(self, records: list[Record]) -> str:
        """All cells as Markdown."""
        from hcdv.bench.market_page import page

        return page(records)

    def figures(self, records: list[Record], folder: Path) -> list[Path]:
        """Shares of every seller by method, beside the exact ones."""
        from hcdv.bench.market_page import figure

        return figure(records, folder)


BENCH = MarketTable()
