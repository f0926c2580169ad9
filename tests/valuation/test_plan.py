"""How much is sampled by default, and when sampling stops."""

import pytest

from hcdv.valuation import plan as plans
from hcdv.valuation.plan import Deadline, Plan, default_contexts, default_permutations
from hcdv.valuation.utility import LeastSquares, Neighbours


def test_small_data_gets_as_many_contexts_as_the_evidence_asks_for():
    """Warning 18: at least 200 up to 10,000 points."""
    assert [default_contexts(n) for n in (2, 10_000)] == [200, 200]
    counts = [default_contexts(n) for n in (10_000, 10_001, 200_000, 200_001, 10**8)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] >= 8


def test_permutations_fill_latin_squares_of_eight_children():
    assert default_permutations() % 16 == 0


def test_points_are_split_by_the_probe_whatever_coalitions_are_paid_by():
    own = LeastSquares(features="linear")
    assert Plan(utility=own).surrogate is own
    assert Plan(utility=Neighbours()).surrogate == LeastSquares()


@pytest.fixture
def clock(monkeypatch):
    """A clock that is moved by hand."""
    now = [0.0]
    monkeypatch.setattr(plans.time, "monotonic", lambda: now[0])
    return now


def test_one_round_is_enough_where_nothing_is_asked():
    assert not Deadline(Plan()).another(lambda: 1.0)


def test_sampling_stops_at_the_precision_asked_for():
    deadline = Deadline(Plan(precision=0.1))
    assert [deadline.another(lambda e=error: e) for error in (0.3, 0.11, 0.1)] == [
        True,
        True,
        False,
    ]
    assert deadline.rounds == 3


def test_no_round_is_begun_that_would_end_past_the_budget(clock):
    deadline = Deadline(Plan(time_budget=10.0))
    clock[0] = 4.0
    assert deadline.another(lambda: 1.0)  # a round takes 4: 8 is within 10
    clock[0] = 8.0
    assert not deadline.another(lambda: 1.0)  # 12 is not


def test_the_budget_ends_sampling_before_the_precision_is_reached(clock):
    deadline = Deadline(Plan(time_budget=10.0, precision=0.1))
    clock[0] = 6.0
    assert not deadline.another(lambda: 0.5)
    assert not Deadline(Plan(time_budget=10.0, precision=0.1)).another(lambda: 0.05)


def test_a_precision_out_of_reach_ends_after_many_rounds(monkeypatch):
    monkeypatch.setattr(plans, "MAX_ROUNDS", 3)
    deadline = Deadline(Plan(precision=1e-12))
    assert [deadline.another(lambda: 1.0) for _ in range(3)] == [True, True, False]
