"""Revenue shared among the sellers of rows: by what their rows are worth, to the last cent.

A seller is worth M + λΔ of its rows: label consistency is left out, for it rewards copies
(copies agree). `basis` says how: "sellers", the exact Shapley value of the game in which the
sellers are the players; "rows", the sum of its rows' values; "model", the same game as
"sellers" with your own model taught anew on every coalition. The others stand beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError, ParameterError
from hcdv.uses.money import (
    PayoutRule,
    checked_currency,
    digits_of,
    in_words,
    money_of,
    shared_out,
    units_of,
)
from hcdv.uses.owners import Owners, copies_between, owners_of
from hcdv.uses.replication import (
    Move,
    Stakes,
    halved,
    merged,
    move_table,
    moves_of_players,
    moves_of_rows,
    warnings,
)
from hcdv.uses.sellers import (
    MOST_EXACT,
    MOST_PLAYERS,
    Floats,
    Played,
    errors_of_rows,
    played,
    retrained_game,
    sampled_again,
    summed,
    tuned,
)
from hcdv.valuation.utility import LeastSquares

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.given import Given
    from hcdv.result import Run
    from hcdv.valuation.probe import ProbeGame

BASES = ("sellers", "rows", "model")
_CLEARLY = 2.0  # standard errors that all sellers together must be worth
_CHEAP = 6  # sellers up to which replication is measured unasked


@dataclass(frozen=True)
class Payouts:
    """Who gets what, why, and how sure that is. Prints as text; see `save` for statements."""

    table: pd.DataFrame  # a line a seller: seller, rows, value, stderr, share, amount, …
    statements: pd.DataFrame  # a line a seller and coalition it has rows in
    replication: pd.DataFrame  # a line a move; none where it was not measured
    agreement: pd.DataFrame  # what is paid beside each reference: Pearson, Spearman
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def amounts(self) -> dict[Any, Any]:
        """Money by seller, as Decimal; it sums to the revenue."""
        return dict(zip(self.table["seller"], self.table["amount"], strict=True))

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        return list(self.facts["notes"])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON-able data; money as text, so that no cent is lost."""
        frames = ("table", "replication", "agreement", "statements")
        found = {name: getattr(self, name).to_dict("records") for name in frames}
        sellers = [{**one, "amount": str(one["amount"])} for one in found.pop("table")]
        return {**self.facts, "sellers": sellers, **found}

    def save(self, folder: Any) -> Any:
        """Write payouts.csv, statements.csv and statements.html to a new folder."""
        from hcdv.uses.statements import write

        return write(self, folder)

    def __str__(self) -> str:
        from hcdv.uses.statements import text

        return text(self)

    __repr__ = __str__


@dataclass(frozen=True)
class Market:
    """A run and who owns its rows, in the run's own order."""

    run: Run
    given: Given | None
    owners: Owners
    seller: NDArray[np.intp]  # (n,)  canonical order

    @property
    def weight(self) -> float:
        """λ."""
        return self.run.plan.dispersion_weight

    def sums(self, part: str) -> Floats:
        """A part of the row values by seller."""
        values = self.run.valuation.parts[part]
        return summed(self.seller, values, self.owners.n)


def payouts(
    run: Run, given: Given | None, owners: Any, revenue: Any, *, rule: PayoutRule | None = None,
    currency: str | None = None, basis: str | None = None, model: Any = None,
    replication: bool | None = None,
) -> Payouts:  # fmt: skip
    """Share a revenue among the owners of a run's rows."""
    began = time.perf_counter()
    rule, currency = rule or PayoutRule(), checked_currency(currency)
    digits = digits_of(currency)
    units, least, most = _bounds(rule, revenue, digits)
    who = owners_of(owners, given, run.ids)
    basis = _checked_basis(basis, who.n, model, run)
    market = Market(run, given, who, who.code[run.position])
    games = _games(market, model)
    value, errors = _valued(market, basis, games)
    weights = _weights(value, errors, rule)
    amounts = shared_out(weights, units, least, most)
    stderr = _money_errors(weights, errors, units)
    table = _table(market, value, errors, games)
    table.insert(4, "share", [each / max(units, 1) for each in amounts])
    table.insert(5, "amount", [money_of(each, digits) for each in amounts])
    table.insert(6, "amount_stderr", stderr / 10**digits)
    moves = _moves(market, basis, games, value, units, digits, replication)
    facts = {
        "revenue": str(money_of(units, digits)), "currency": currency, "digits": digits,
        "rule": in_words(rule), "basis": basis, "metric": run.plan.metric,
        "gini": gini(np.array(amounts, dtype=np.float64)),
        "notes": _notes(market, basis, games, value, moves, digits),
    }  # fmt: skip
    statements = _statements(market, value, basis)
    agreement = _agreement(value, table)
    facts["seconds"] = round(time.perf_counter() - began, 3)
    return Payouts(table, statements, moves, agreement, facts)


def gini(shares: Floats) -> float:
    """Mean difference over twice the mean: 0 for equal shares, 1 − 1/P for one taker."""
    x = np.sort(shares)
    n, total = len(x), float(x.sum())
    if total == 0:
        return 0.0
    return float((2 * np.arange(1, n + 1) - n - 1) @ x / (n * total))


def _bounds(rule: PayoutRule, revenue: Any, digits: int) -> tuple[int, int, int | None]:
    units = units_of(revenue, digits, "revenue")
    least = units_of(rule.minimum, digits, "minimum")
    most = None if rule.cap is None else units_of(rule.cap, digits, "cap")
    return units, least, most


def _checked_basis(basis: str | None, n: int, model: Any, run: Run) -> str:
    if basis is None:
        return "sellers" if n <= MOST_PLAYERS else "rows"
    if basis not in BASES:
        raise ParameterError("basis", basis, 'one of "sellers", "rows", "model"')
    if basis == "model" and model is None:
        raise ParameterError(
            "basis",
            basis,
            '"sellers" or "rows" without a model',
            "Pass model=, an estimator.",
        )
    if basis != "rows" and n > MOST_PLAYERS:
        raise ParameterError(
            "basis", basis, f'"rows" for more than {MOST_PLAYERS:,} sellers ({n:,} here)',
            "Each holds too few rows for a game of its own.",
        )  # fmt: skip
    if basis == "rows" and run.plan.semivalue != "shapley":
        raise ParameterError(
            "basis", basis, '"sellers" for values of another semivalue than Shapley\'s',
            "Those do not add up to what all rows are worth.",
        )  # fmt: skip
    return basis


@dataclass(frozen=True)
class Games:
    """What was played among the sellers."""

    halves: ProbeGame | None = None
    probe: Played | None = None
    model: Played | None = None


def _games(market: Market, model: Any) -> Games:
    run, n = market.run, market.owners.n
    if n > MOST_PLAYERS:
        return Games()
    rng = np.random.default_rng([run.plan.seed, 8])
    pairs = halved(run.case, market.seller)
    halves = run.valuation.probe.game(run.case, pairs, 2 * n, run.plan.n_jobs)
    ridge = tuned(merged(halves), n).ridge
    halves = replace(halves, ridge=ridge)
    by_model = None
    if model is not None:
        by_model = played(retrained_game(run, market.seller, n, model), n, rng)
    return Games(halves, played(merged(halves), n, rng), by_model)


def _valued(market: Market, basis: str, games: Games) -> tuple[Floats, Floats]:
    """Values of the sellers, and their errors (P, r)."""
    dispersion = market.sums("dispersion")
    if basis == "rows":
        return market.sums("utility") + dispersion, _errors_by_rows(market)
    found = games.model if basis == "model" else games.probe
    assert found is not None
    return found.value + dispersion, found.errors


def _errors_by_rows(market: Market) -> Floats:
    run, n = market.run, market.owners.n
    if run.plan.method == "nested" and isinstance(run.plan.utility, LeastSquares):
        flat, upper = sampled_again(run)
        return errors_of_rows(run, flat, upper, market.seller, n)
    at_most = summed(market.seller, run.valuation.stderr, n)
    return at_most[:, None]  # as if all rows erred alike


def _weights(value: Floats, errors: Floats, rule: PayoutRule) -> Floats:
    """What the money is proportional to; refuse to share out what is worth nothing."""
    total, error = (
        float(value.sum()),
        float(np.linalg.norm(np.nan_to_num(errors).sum(axis=0))),
    )
    if total > _CLEARLY * error and total > 1e-9 * float(np.abs(value).sum()):
        return np.maximum(value, 0.0)
    if rule.worthless == "equal":
        return np.ones(len(value))
    raise DataError(
        f"sellers' values must sum to clearly more than zero, got {total:+.3g} ± {error:.1g}: "
        "shares of nothing mean nothing. Fit on more rows or another metric, or share equally "
        'on request: PayoutRule(worthless="equal"), --worthless equal.'
    )


def _money_errors(weights: Floats, errors: Floats, units: int) -> Floats:
    """Standard errors of weights/Σweights in money, to first order."""
    total = float(weights.sum())
    own = (weights > 0)[:, None] * errors
    return (
        units
        * np.linalg.norm(own - np.outer(weights / total, own.sum(axis=0)), axis=1)
        / total
    )


def _table(market: Market, value: Floats, errors: Floats, games: Games) -> pd.DataFrame:
    import pandas as pd

    dispersion = market.sums("dispersion")
    columns: dict[str, Any] = {
        "seller": market.owners.names, "rows": np.bincount(market.seller), "value": value,
        "stderr": np.linalg.norm(errors, axis=1),
        "sum_of_rows": market.sums("utility") + dispersion,
    }  # fmt: skip
    for name, found in (("game", games.probe), ("model_game", games.model)):
        if found is not None:
            columns[name] = found.value
            columns[f"{name.removesuffix('game')}leave_one_out"] = found.without
    columns["also_elsewhere"] = copies_between(market.run, market.seller)
    return pd.DataFrame(columns)


def _agreement(value: Floats, table: pd.DataFrame) -> pd.DataFrame:
    """Correlations of what is paid with each of the other columns."""
    import pandas as pd
    from scipy.stats import spearmanr

    others = ("sum_of_rows", "game", "leave_one_out", "model_game", "model_leave_one_out")
    lines: list[dict[str, Any]] = []
    for name in others:
        if name not in table or len(value) < 3:
            continue
        known = table[name].to_numpy(dtype=np.float64)
        varies = float(np.ptp(known)) > 0 and float(np.ptp(value)) > 0
        lines.append({
            "reference": name,
            "pearson": float(np.corrcoef(value, known)[0, 1]) if varies else None,
            "spearman": float(spearmanr(value, known).statistic) if varies else None,
        })  # fmt: skip
    return pd.DataFrame(lines, columns=["reference", "pearson", "spearman"])


def _statements(market: Market, value: Floats, basis: str) -> pd.DataFrame:
    """A line for every seller and coalition it has rows in: rows, worth, share, words."""
    import pandas as pd

    from hcdv.uses.description import description, words

    run, n = market.run, market.owners.n
    tree, users = run.canonical_tree, run.tree
    nodes = np.asarray(tree.cut(tree.game_level(64)))
    width = len(nodes)
    code = market.seller * width + np.asarray(tree.codes(nodes))
    own = run.valuation.parts["utility"] + run.valuation.parts["dispersion"]
    rows = np.bincount(code, minlength=n * width)
    worth = np.bincount(code, own, minlength=n * width).reshape(n, width)
    if basis != "rows":  # the rest is spread over a seller's rows
        rest = (value - worth.sum(axis=1)) / np.bincount(market.seller)
        worth = worth + rest[:, None] * rows.reshape(n, width)
    told = [words(each) for each in description(market.given, run.ids, users, nodes)]
    mix = run.label_mix()
    held = np.flatnonzero(rows)
    at, of = np.divmod(held, width)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(value[at] != 0, worth.ravel()[held] / value[at], 0.0)
    frame = pd.DataFrame({
        "seller": [market.owners.names[p] for p in at], "coalition": nodes[of],
        "rows": rows[held], "value": worth.ravel()[held], "share_of_value": share,
        "description": [told[c] or mix[nodes[c]] for c in of],
    })  # fmt: skip
    order = np.lexsort((-frame["value"].to_numpy(), at))
    return frame.iloc[order].reset_index(drop=True)


def _moves(
    market: Market, basis: str, games: Games, value: Floats, units: int, digits: int,
    asked: bool | None,
) -> pd.DataFrame:  # fmt: skip
    """What each move would do to a seller's value and money."""
    run, n = market.run, len(value)
    wanted = asked if asked is not None else n <= _CHEAP and basis == "sellers"
    found: Iterable[Move] = ()
    if wanted and basis == "rows":
        found = moves_of_rows(run, market.seller, value, market.weight)
    elif wanted and games.halves is not None:
        stakes = Stakes.of(run.case, market.seller, n)
        found = moves_of_players(games.halves, stakes, market.weight, value, run.plan.seed)
    return move_table(found, market.owners.names, value, units, digits)


def _notes(
    market: Market,
    basis: str,
    games: Games,
    value: Floats,
    moves: pd.DataFrame,
    digits: int,
) -> list[str]:
    run, names = market.run, market.owners.names
    notes: list[str] = []
    if run.target.n_classes and run.plan.metric == "loss":
        notes.append(
            "values are shares of squared loss: it can rank sellers backwards where buyers "
            'count accuracy, balanced or not; fit with metric="balanced_accuracy" for those'
        )
    if basis != "rows" and games.probe is not None and not games.probe.is_exact:
        notes.append(f"more than {MOST_EXACT} sellers: their game is sampled, with errors")
    if below := [str(names[p]) for p in np.flatnonzero(value < 0)]:
        notes.append(f"worth less than nothing, counted as zero: {_few(below)}")
    if lacking := _lacking(market):
        notes.append(f"without rows of some class: {_few(lacking)}")
    if run.stale.any():
        notes.append(f"{int(run.stale.sum()):,} row values are stale: refresh them first")
    return notes + warnings(moves, digits)


def _lacking(market: Market) -> list[str]:
    target, seller = market.run.case.points.target, market.seller
    n_classes = market.run.target.n_classes
    if not n_classes:
        return []
    held = np.bincount(seller * n_classes + target, minlength=market.owners.n * n_classes)
    lacks = (held.reshape(-1, n_classes) == 0).any(axis=1)
    return [str(market.owners.names[p]) for p in np.flatnonzero(lacks)]


def _few(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
