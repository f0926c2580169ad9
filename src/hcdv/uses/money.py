"""Money shared out by weights: to the smallest unit, in full, for any number of takers.

    q_p = clip(μ·w_p, least, most),  μ such that Σ q_p = revenue

A weight below zero counts as zero. Quotas are exact fractions; each taker gets the whole units
of its own, and the units left go one each to the largest remainders, ties to who is named
first. Where a cap leaves money that no one with a weight may take, those without share it
alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError, ParameterError

_DIGITS = {  # of currencies that do not have two (ISO 4217)
    "BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0,
    "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
    "BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
}  # fmt: skip
_EXACT = 2**80  # weights as whole numbers: far finer than the smallest unit
WORTHLESS = ("refuse", "equal")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How values become money, beside their proportion.

    minimum, cap: what every seller gets at least and at most, in money. worthless: what to do
    where no seller has a value that is clearly above zero, "refuse" or share "equal"ly.
    """

    minimum: Any = 0
    cap: Any = None
    worthless: str = "refuse"

    def __post_init__(self) -> None:
        """Refuse what is no rule."""
        if self.worthless not in WORTHLESS:
            raise ParameterError("worthless", self.worthless, '"refuse" or "equal"')


def in_words(rule: Rule) -> str:
    """The rule as a sentence of a statement."""
    said = "in proportion to values; a value below zero counts as zero"
    if rule.minimum:
        said += f"; everyone gets at least {rule.minimum}"
    if rule.cap is not None:
        said += f"; nobody gets more than {rule.cap}"
    return said


def digits_of(currency: str | None) -> int:
    """Digits behind the point of a currency's smallest unit."""
    return _DIGITS.get((currency or "").upper(), 2)


def checked_currency(currency: Any) -> str | None:
    """A code of three letters, or None."""
    if currency is None:
        return None
    if not (isinstance(currency, str) and len(currency) == 3 and currency.isalpha()):
        raise ParameterError("currency", currency, "a code of three letters, such as EUR")
    return currency.upper()


def units_of(money: Any, digits: int, name: str) -> int:
    """An amount of money in smallest units; a fraction of one is refused."""
    if isinstance(money, bool):
        raise ParameterError(name, money, "an amount of money, such as 12345.67")
    try:
        exact = Decimal(str(money))
    except InvalidOperation as error:
        raise ParameterError(name, money, "an amount of money, such as 12345.67") from error
    if not exact.is_finite() or exact < 0:
        raise ParameterError(name, money, "zero or more")
    units = Fraction(exact) * 10**digits
    if units.denominator != 1:
        raise ParameterError(
            name, money, f"whole smallest units, with at most {digits} digits after the point",
            "Round it; pass text or a Decimal where a float has more digits than you wrote.",
        )  # fmt: skip
    return int(units)


def money_of(units: int, digits: int) -> Decimal:
    """Smallest units as an amount."""
    return Decimal(units).scaleb(-digits)


def shared_out(
    weights: NDArray[np.float64], units: int, least: int = 0, most: int | None = None
) -> list[int]:
    """Units for each weight; they sum to `units`."""
    n = len(weights)
    if n == 0 or not np.all(np.isfinite(weights)):
        raise DataError(f"weights must be finite numbers, one at least, got {weights!r}.")
    most = units if most is None else most
    if least * n > units or most * n < units or least > most:
        raise DataError(
            f"{units} smallest units must be shared by {n} with at least {least} and at most "
            f"{most} each, which no rule can do. Change the minimum or the cap."
        )
    return _rounded(_quotas(_whole(weights), units, least, min(most, units)), units)


def _whole(weights: NDArray[np.float64]) -> list[int]:
    positive = np.maximum(weights, 0.0)
    top = float(positive.max())
    if top == 0.0:
        return [0] * len(weights)
    return [int(Fraction(float(w)) * _EXACT / Fraction(top)) for w in positive]


def _quotas(weight: list[int], units: int, least: int, most: int) -> list[Fraction]:
    """Quotas by the one μ at which they sum to all there is."""
    carried = [p for p, w in enumerate(weight) if w > 0]
    bare = len(weight) - len(carried)
    left = units - bare * least
    if len(carried) * most <= left:  # all are at the cap: the rest goes to those without
        rest = Fraction(units - len(carried) * most, max(1, bare))
        return [Fraction(most) if w > 0 else rest for w in weight]
    mu = _scale([weight[p] for p in carried], left, least, most)
    low, high = Fraction(least), Fraction(most)
    return [min(max(mu * w, low), high) if w > 0 else low for w in weight]


def _scale(weight: list[int], units: int, least: int, most: int) -> Fraction:
    """μ with Σ clip(μ·w, least, most) = units: walk up the points at which a taker's bound ends."""
    events = sorted(
        [(Fraction(least, w), w, 1) for w in weight]
        + [(Fraction(most, w), w, -1) for w in weight],
        key=lambda event: (event[0], -event[2]),
    )
    fixed, moving = least * len(weight), 0
    for at, w, turn in events:
        if moving and fixed + moving * at >= units:
            break
        fixed += -least if turn > 0 else most
        moving += turn * w
    return Fraction(units - fixed, moving) if moving else Fraction(0)


def _rounded(quotas: Sequence[Fraction], units: int) -> list[int]:
    whole = [quota.numerator // quota.denominator for quota in quotas]
    left = units - sum(whole)
    order = sorted(range(len(quotas)), key=lambda p: (whole[p] - quotas[p], p))
    for p in order[:left]:
        whole[p] += 1
    return whole
