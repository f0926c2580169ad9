"""Statistics kept through changes are those that gathering the rows anew would give."""

from __future__ import annotations

import numpy as np
import pytest

from cases import a_case, validated
from hcdv.valuation.contexts import semivalue_contexts
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.upkeep import exchanged, regrouped
from hcdv.valuation.utility import LeastSquares

CONTEXTS = semivalue_contexts(4, 6, 0)
CODE = np.arange(50) % 4
MASKS = np.random.default_rng(0).random((9, 4)) < 0.5


def a_probe(case):
    return Probe.of(case, LeastSquares(), "loss", 0)


def gathered(case, code, n_groups):
    probe = a_probe(case)
    probe.game(case, code, n_groups, None, keep_as="game")
    probe.batches(case, CONTEXTS, 0, None)
    return probe


def assert_as_fresh(probe, fresh, case, code, n_groups):
    masks = np.random.default_rng(0).random((9, n_groups)) < 0.5
    assert probe.game(case, code, n_groups, None, keep_as="game")(masks) == pytest.approx(
        fresh.game(case, code, n_groups, None)(masks), abs=1e-10
    )
    assert probe.batches(case, CONTEXTS, 0, None).value == pytest.approx(
        fresh.batches(case, CONTEXTS, 0, None).value, abs=1e-10
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_go_and_come_leave_the_statistics_of_those_there(weighted):
    whole = a_case(50, 2, weighted=weighted)
    one, other = np.arange(50) < 40, np.arange(50) >= 10
    before = validated(whole.points.take(one), whole.judges[0].points)
    after = validated(whole.points.take(other), whole.judges[0].points)
    probe = gathered(before, CODE[:40], 4)
    later = exchanged(
        probe, before, np.arange(40) < 10, after, np.arange(40) >= 30, CODE[10:]
    )
    assert later.memo.keys() == probe.memo.keys()
    assert_as_fresh(later, a_probe(before), after, CODE[10:], 4)


@pytest.mark.parametrize(
    ("after", "n_after"),
    [
        (CODE[::-1].copy(), 4),
        (CODE // 2, 2),
        (CODE + 2 * (np.arange(50) > 30), 6),
        (CODE + 1, 6),
    ],
    ids=["renumbered", "merged", "split", "with empty ones"],
)
def test_coalitions_may_be_merged_split_and_renumbered(after, n_after):
    case = a_case(50, 2)
    later = regrouped(gathered(case, CODE, 4), case, CODE, after, 4, n_after)
    assert_as_fresh(later, a_probe(case), case, after, n_after)
