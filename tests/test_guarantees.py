import json
from math import factorial, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games import counted, game_of, tables
from hcdv import guarantees
from hcdv.errors import ParameterError
from hcdv.valuation.coalition_game import (
    shapley_exact,
    shapley_sampled,
    winter_exact,
    winter_sampled,
)

SURELY = 1 - 1e-9  # a sampled test may fail by chance once in 1e9 runs


def test_the_payoff_bound_is_the_sum_of_its_parts():
    assert guarantees.payoff_bound(2.0, contrast_weight=0.5) == 2.0
    assert guarantees.payoff_bound(contrast_weight=0, consistency_weight=4) == 5
    with pytest.raises(
        ParameterError, match="contrast_weight must be zero or more, got nan"
    ):
        guarantees.payoff_bound(contrast_weight=float("nan"))


@given(
    st.floats(0.01, 2), st.floats(0.5, 0.999), st.integers(1, 200), st.floats(0.5, 5),
    st.integers(1, 12),
)  # fmt: skip
def test_permutations_errors_and_probabilities_are_one_inequality(
    error, sure, k, bound, block
):
    n = guarantees.permutations_for(error, sure, k, bound, block=block)
    chance = guarantees.deviation_probability(n, error, bound, n_coalitions=k, block=block)
    assert chance <= (1 - sure) * (1 + 1e-9)
    assert guarantees.error_for(n, sure, k, bound, block=block) <= error * (1 + 1e-9)
    fewer = n - block
    if fewer:
        chance = guarantees.deviation_probability(
            fewer, error, bound, n_coalitions=k, block=block
        )
        assert chance > (1 - sure) * (1 - 1e-9)
        assert guarantees.error_for(fewer, sure, k, bound, block=block) > error * (1 - 1e-9)


def test_the_paper_s_256_permutations_promise_little():
    """η = √(8 ln(2K/.05)/T) for λ = 0, K = 32: half of the scale of the metric."""
    assert guarantees.error_for(256, 0.95, 32, 1.0) == pytest.approx(0.4728, abs=1e-4)
    assert guarantees.deviation_probability(256, 0.1, 1.0) == 1.0  # never more than certain


@settings(max_examples=10)
@given(tables(4), st.integers(0, 2**32 - 1), st.booleans())
def test_sampled_values_are_as_near_as_promised(table, seed, independent):
    """B = 1: payoffs in [−1, 1]. A block is a square with its reversal."""
    block = 1 if independent else 2 * 4
    n = guarantees.permutations_for(0.4, SURELY, 4, 1.0, block=block)
    rng = np.random.default_rng(seed)
    got = shapley_sampled(game_of(table), 4, n, rng, independent=independent)
    assert np.abs(got.value - shapley_exact(game_of(table), 4)).max() <= 0.4


@settings(max_examples=10)
@given(tables(4), st.integers(0, 2**32 - 1))
def test_like_players_are_as_near_as_promised(table, seed):
    codes = np.arange(16)
    swapped = (codes & 0b1100) | (codes & 1) << 1 | (codes & 2) >> 1
    game = game_of((table + table[swapped]) / 2)
    n = guarantees.permutations_for(0.4, SURELY, 4, 1.0)
    value = shapley_sampled(game, 4, n, np.random.default_rng(seed), independent=True).value
    assert abs(value[0] - value[1]) <= guarantees.symmetry_bound(0.4) == 0.8
    assert guarantees.dummy_bound(0.4) == 0.4


def test_bernstein_s_error_covers_the_mean_and_beats_the_range_where_spread_is_small():
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = rng.beta(2, 40, size=500)  # in [0, 1], standard deviation 0.03
        error = guarantees.bernstein_error(x, SURELY, spread=1.0)
        assert abs(x.mean() - 2 / 42) <= error < 0.2
    odds = np.log(3 / 0.05)
    expected = np.sqrt(2 * 0.25 * odds / 4) + 3 * 1.0 * odds / 4
    assert guarantees.bernstein_error([0, 1, 0, 1], 0.95) == pytest.approx(expected)
    with pytest.raises(ParameterError, match="samples must be at least 2 numbers"):
        guarantees.bernstein_error([1.0], 0.95)


def test_the_leaf_error_counts_leaves_larger_than_m_alone():
    exact, leaf = [1.0, 3.0, 0.0, 0.0, 6.0], [0, 0, 2, 2, 2]
    assert guarantees.leaf_error(exact, leaf) == 2 + 8
    assert guarantees.leaf_error(exact, leaf, 2) == 8
    assert guarantees.leaf_error(exact, leaf, 3) == 0
    assert guarantees.efficiency_bound([0.1, 0.2], 8) == pytest.approx(8.3)


@given(st.integers(1, 12), st.data())
def test_a_selection_misses_at_most_twice_the_error_a_row(n, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    reference, k = rng.normal(size=n), data.draw(st.integers(0, n))
    values = reference + rng.uniform(-0.7, 0.7, n)
    error = np.abs(values - reference).max()
    missed = guarantees.regret(values, reference, k)
    assert -1e-12 <= missed <= guarantees.regret_bound(k, error) + 1e-12
    assert guarantees.regret(reference, reference, k) == 0


def test_the_regret_bound_is_met_where_errors_swap_the_best():
    assert guarantees.regret([0.5, 0.501], [1.0, 0.0], 1) == 1.0
    assert guarantees.regret_bound(1, 0.501) == pytest.approx(1.002)
    with pytest.raises(ParameterError, match="n_selected must be from 0 to 2, got 3"):
        guarantees.regret([1.0, 2.0], [1.0, 2.0], 3)


@given(tables(4), tables(4))
def test_additivity_is_rounding_with_the_same_permutations_and_not_without(first, second):
    def value(table, seed):
        return shapley_sampled(game_of(table), 4, 4, np.random.default_rng(seed)).value

    parts = value(first, 0), value(second, 0)
    assert guarantees.additivity_gap(*parts, value(first + second, 0)) < 1e-12
    exact = guarantees.additivity_gap(*parts, parts[0] + parts[1] + [0, 0, 0.5, 0])
    assert exact == pytest.approx(0.5)


def test_counted_payoffs_are_those_the_walks_ask_for():
    tree = np.array([-1, *[0] * 3, *np.repeat([1, 2, 3], 8)])
    weights = np.random.default_rng(0).normal(size=24)
    counts = guarantees.payoff_counts([1, 3, 24], 6)
    game, asked = counted(lambda masks: masks @ weights)
    winter_sampled(game, tree, 6, np.random.default_rng(0))
    assert counts["nested"] == 6 * 23 + 2
    # Six orders of three groups: each group alone, and each two, are paid once, not twice.
    assert 0.85 * counts["nested"] < len(asked) <= counts["nested"] - 6

    enumerated, asked = counted(game_of(np.arange(8.0)))
    shapley_exact(enumerated, 3)
    assert guarantees.payoff_counts([3], 6)["enumerated"] == len(asked) == 8
    assert counts["printed_sampled"] == 2 * 6 * 28
    assert counts["telescoped"] == 6 * (0 + 2 + 23) + 2
    assert counts["printed_exact"] == pytest.approx(1 + 6 + factorial(24))
    assert guarantees.payoff_counts([2000], 6)["printed_exact"] == inf


def finished_run(**change):
    tree = np.array([-1, 0, 0, 1, 1, 2, 2])
    game = game_of(np.random.default_rng(3).uniform(-1, 1, size=16))
    got = winter_sampled(game, tree, 32, np.random.default_rng(0))
    exact = winter_exact(game, tree)
    facts = {
        "surplus": exact[0],
        "total": got.value[3:].sum(),
        "level_stderr": [got.stderr[1:3], got.stderr[3:]],
        "level_totals": [got.value[1:3].sum(), got.value[3:].sum()],
        "n_permutations": 32,
        "bound": 1.0,
        "n_selected": 2,
        "max_error": 0.1,
    }
    return guarantees.diagnose(**(facts | change)), np.abs(got.value - exact).max()


def test_a_sound_run_is_told_to_be_sound():
    told, error = finished_run()
    assert told["efficiency"]["exact"]
    assert told["efficiency"]["holds"]
    assert error <= told["deviation"]["estimated"] < told["deviation"]["promised"]
    assert told["symmetry"]["estimated"] == 2 * told["dummy"]["estimated"]
    assert told["regret"] == {"n_selected": 2, "bound": 0.4}
    assert told["cost"]["nested"] == 32 * 3 + 2
    needed = told["deviation"]["permutations_to_promise_the_estimate"]
    estimate = told["deviation"]["estimated"]
    assert guarantees.error_for(needed, 0.95, 4, 1.0) <= estimate
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_lost_value_is_told_at_whatever_level_it_is_lost():
    told, _ = finished_run(level_totals=[7.0])
    assert not told["efficiency"]["exact"]
    assert told["efficiency"]["holds"]  # the points still sum up
    told, _ = finished_run(total=50.0)
    assert not told["efficiency"]["holds"]
    told, _ = finished_run(total=50.0, leaf_error=100.0)
    assert told["efficiency"]["holds"]
    assert not told["efficiency"]["exact"]


def test_an_unbounded_metric_gets_estimates_and_no_promise():
    told, _ = finished_run(bound=None, max_error=None)
    assert told["efficiency"]["promised"] is None
    assert told["efficiency"]["holds"]
    assert told["deviation"]["promised"] is None
    assert told["deviation"]["estimated"] > 0
    assert told["deviation"]["permutations_to_promise_the_estimate"] is None
    assert told["regret"]["bound"] is None
    lost, _ = finished_run(bound=None, total=50.0)
    assert not lost["efficiency"]["holds"]
    json.dumps(told, allow_nan=False)


def test_fewer_permutations_than_a_block_promise_nothing():
    assert guarantees.error_for(31, 0.95, 4, 1.0, block=32) == inf
    assert guarantees.deviation_probability(31, 0.9, 1.0, block=32) == 1.0
    told, _ = finished_run(block=33)
    assert told["deviation"]["promised"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": 1.0}, "confidence must be between 0 and 1, got 1.0"),
        ({"error": 0.0}, "error must be more than zero, got 0.0"),
        ({"n_coalitions": 0}, "n_coalitions must be at least 1, got 0"),
    ],
)
def test_promises_that_cannot_be_made_are_refused(change, message):
    settings_ = {"error": 0.1, "confidence": 0.9, "n_coalitions": 3, "bound": 1.0}
    with pytest.raises(ParameterError, match=message):
        guarantees.permutations_for(**(settings_ | change))
    with pytest.raises(ParameterError, match="block must be at least 1, got 0"):
        guarantees.error_for(10, 0.9, 3, 1.0, block=0)


def test_a_block_is_a_square_with_its_reversal():
    """Averages over whole blocks hold every player once, forth and back, at every place."""
    estimate = shapley_sampled(
        lambda m: m.sum(axis=1) ** 2.0, 5, 10, np.random.default_rng(0)
    )
    assert estimate.value == pytest.approx(np.full(5, 5.0))
