"""Money is shared out in full, to the smallest unit, whatever the weights."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hcdv.errors import DataError, ParameterError
from hcdv.uses.money import (
    Rule,
    checked_currency,
    digits_of,
    in_words,
    money_of,
    shared_out,
    units_of,
)

numbers = st.one_of(st.floats(-1e6, 1e6), st.just(0.0), st.floats(1e-300, 1e-290))
weights = st.lists(numbers, min_size=1, max_size=40).map(np.array)


@given(weights, st.integers(0, 10**12))
@example(np.array([1.0, 1.0, 1.0]), 100)
@example(np.array([-1.0]), 7)
def test_shares_sum_to_the_revenue_and_differ_from_quotas_by_less_than_a_unit(w, units):
    got = shared_out(w, units)
    assert sum(got) == units
    positive = [Fraction(max(0.0, float(x))) for x in w]
    total = sum(positive)
    if total > 0:
        quotas = [units * x / total for x in positive]
        assert all(
            abs(g - q) < 1 + Fraction(1, 1000) for g, q in zip(got, quotas, strict=True)
        )
        assert all(g == 0 for g, x in zip(got, w, strict=True) if x <= 0)
    else:
        assert max(got) - min(got) <= 1


@given(weights, st.integers(0, 10**9), st.data())
def test_minimum_and_cap_hold_and_order_is_kept(w, units, data):
    n = len(w)
    least = data.draw(st.integers(0, units // n))
    most = data.draw(st.integers(-(-units // n), max(units, 1)))
    got = shared_out(w, units, least, most)
    assert sum(got) == units
    assert all(least <= g <= most for g in got)
    order = np.argsort(np.maximum(w, 0.0), kind="stable")
    ranked = [got[p] for p in order]
    assert all(b >= a - 1 for a, b in pairwise(ranked))


@given(st.integers(1, 10_000), st.integers(0, 2**32 - 1), st.decimals(0, 10**9, places=2))
@settings(max_examples=15, deadline=None)
@example(10_000, 0, Decimal("0.01"))
@example(1, 0, Decimal("12345.67"))
def test_one_to_ten_thousand_sellers_get_every_cent(n, seed, revenue):
    w = np.random.default_rng(seed).normal(size=n)
    units = units_of(revenue, 2, "revenue")
    got = shared_out(w, units, most=max(1, -(-3 * units // n)))
    assert sum(got) == units
    assert sum((money_of(g, 2) for g in got), Decimal(0)) == revenue


def test_largest_remainders_get_what_is_left_and_the_first_of_equals():
    assert shared_out(np.array([1.0, 1.0, 1.0]), 100) == [34, 33, 33]
    assert shared_out(np.array([0.6, 0.25, 0.15]), 10) == [6, 3, 1]
    assert shared_out(np.array([5.0, 3.0, 1.0]), 7) == [4, 2, 1]


def test_what_a_cap_leaves_goes_to_the_others():
    assert shared_out(np.array([8.0, 1.0, 1.0]), 100, most=50) == [50, 25, 25]
    assert shared_out(np.array([1.0, 0.0, -2.0]), 100, most=50) == [50, 25, 25]
    assert shared_out(np.array([9.0, 1.0, 0.0]), 100, least=20) == [60, 20, 20]


@pytest.mark.parametrize(("least", "most"), [(40, None), (0, 30), (20, 10)])
def test_bounds_that_no_rule_can_keep_are_refused(least, most):
    with pytest.raises(DataError, match="Change the minimum or the cap"):
        shared_out(np.ones(3), 100, least, most)


def test_weights_that_are_no_numbers_are_refused():
    with pytest.raises(DataError, match="weights must be finite"):
        shared_out(np.array([1.0, np.nan]), 100)


def test_amounts_are_read_to_the_smallest_unit_of_their_currency():
    assert units_of("12345.67", 2, "revenue") == 1_234_567
    assert units_of(12345.67, 2, "revenue") == 1_234_567
    assert units_of(Decimal("1.234"), digits_of("kwd"), "revenue") == 1234
    assert units_of(100, digits_of("JPY"), "revenue") == 100
    assert str(money_of(1_234_500, 2)) == "12345.00"
    assert checked_currency("eur") == "EUR"
    assert checked_currency(None) is None


@pytest.mark.parametrize(
    "money", ["-1", -0.01, float("nan"), "inf", "ten", None, True, "1.005"]
)
def test_amounts_that_are_none_are_refused_by_name(money):
    with pytest.raises(ParameterError, match="revenue must be"):
        units_of(money, 2, "revenue")


@pytest.mark.parametrize("currency", ["euro", "E1R", 978, ""])
def test_currencies_are_codes(currency):
    with pytest.raises(ParameterError, match="currency must be a code of three letters"):
        checked_currency(currency)


def test_a_rule_is_checked_and_said():
    assert "at least 5" in in_words(Rule(minimum=5))
    assert "more than 100" in in_words(Rule(cap=100))
    with pytest.raises(ParameterError, match="worthless must be"):
        Rule(worthless="zero")
