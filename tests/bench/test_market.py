"""Sellers are drawn to their profiles, and payoffs become shares that sum to one."""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import numpy as np
import pandas as pd
import pytest

from hcdv.bench import market as stand
from hcdv.bench.cells import Ask, run
from hcdv.bench.datasets import DataSet
from hcdv.errors import DataError


def census(n: int = 6_000, seed: int = 0) -> DataSet:
    rng = np.random.default_rng(seed)
    female = rng.random(n) < 0.33
    age = rng.integers(17, 80, n)
    schooling = rng.integers(0, 16, n)
    chance = 1 / (1 + np.exp(3 - schooling / 4 - age / 60 + female))
    table = pd.DataFrame(
        {
            "age": age,
            "education": [f"level {k:02d}" for k in schooling],
            "education_num": schooling,
            "sex": np.where(female, "Female", "Male"),
        }
    )
    return DataSet("adult", table, (rng.random(n) < chance).astype(np.intp))


@pytest.fixture(scope="module")
def small() -> stand.Market:
    return stand.market(census(), 0, scale=0.1)


def test_sellers_have_the_profiles_asked_for(small):
    for asked, found in zip(stand.PROFILES, stand.reached(small), strict=True):
        assert found.n_rows == round(0.1 * asked.n_rows)
        assert abs(found.high_income - asked.high_income) < 2.0
        assert abs(found.female - asked.female) < 2.0
        assert abs(found.median_age - asked.median_age) <= 1.0
        assert found.n_levels <= asked.n_levels


def test_no_row_is_sold_twice_nor_held_out_as_well():
    data = census()
    data.X["number"] = np.arange(len(data.y))
    table = stand.market(data, 1, scale=0.1)
    parts = [table.problem.X, table.problem.X_val, table.X_test]
    numbers = pd.concat([part["number"] for part in parts])
    assert numbers.is_unique


def test_a_pool_too_small_for_a_seller_is_refused():
    profile = replace(stand.PROFILES[0], n_rows=900)
    data = census(800)
    with pytest.raises(DataError, match="must hold 900 rows"):
        stand.drawn_rows(data, np.arange(800), profile, 900, np.random.default_rng(0))


def test_shapley_values_of_the_game_add_up_and_leave_one_out_is_the_last_step():
    paid = np.random.default_rng(0).random(32)
    assert stand.shapley_of(paid).sum() == pytest.approx(paid[31] - paid[0])
    assert stand.leave_one_out(paid)[2] == paid[31] - paid[0b11011]


@pytest.mark.parametrize(
    ("payoff", "expected"),
    [
        ([1.0, 3.0], [0.25, 0.75]),
        ([-1.0, 2.0, 2.0], [0.0, 0.5, 0.5]),
        ([-1.0, -2.0], [0.5, 0.5]),
    ],
)
def test_negative_payoffs_count_as_zero(payoff, expected):
    assert stand.shares(np.array(payoff)) == expected


def test_shares_sum_to_one():
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert abs(fsum(stand.shares(rng.normal(size=7) ** 3)) - 1.0) < 1e-12


def test_gini_is_zero_for_equal_shares_and_largest_for_one_taker():
    assert stand.gini([0.2] * 5) == pytest.approx(0.0)
    assert stand.gini([1.0, 0, 0, 0, 0]) == pytest.approx(0.8)


def test_one_level_of_sellers_pays_what_the_probe_is_worth(small):
    """Efficiency: payoffs add up to the balanced accuracy of all rows above a guess."""
    payoff = stand.METHODS["group shapley"](small)
    assert 0.0 < payoff.sum() < 0.5


def test_the_table_shows_every_method_and_its_correlations(tmp_path, monkeypatch):
    monkeypatch.setattr(stand, "load", lambda *_: census())
    monkeypatch.setattr(stand, "N_HELD_OUT", 5_000)
    monkeypatch.setattr(
        stand, "PROFILES", tuple(replace(p, n_rows=p.n_rows // 2) for p in stand.PROFILES)
    )
    page = run(stand.BENCH, Ask(tmp_path, fast=True)).read_text(encoding="utf-8")
    rows = {
        line.split("|")[1].strip() for line in page.splitlines() if line.startswith("|")
    }
    assert rows >= {stand.EXACT, *stand.METHODS}
    assert "ρ exact Shapley" in page
    assert (tmp_path / "market-fast.png").stat().st_size > 5_000
