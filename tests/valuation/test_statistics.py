"""Additive statistics against sums over the rows."""

from itertools import pairwise

import numpy as np
import pytest

from cases import a_case, contexts_of, numbered, some_points
from hcdv.valuation.contexts import semivalue_contexts
from hcdv.valuation.features import linear_features
from hcdv.valuation.statistics import (
    Statistics,
    chunks,
    context_statistics,
    group_statistics,
    row_dtype,
)

POINTS = some_points(200, 3, 0, d=4, n_folds=4)
FEATURES = linear_features(POINTS.Z)
JOBS = (1, 2, 4)
WEIGHT = np.random.default_rng(1).gamma(2, size=200)


def plainly(rows, weight=None):
    """XᵀX and XᵀY of some rows, added one by one."""
    x = FEATURES(POINTS.Z, np.dtype(float))
    y = POINTS.targets(slice(None), np.dtype(float))
    w = np.ones(200) if weight is None else weight
    gram = sum((w[i] * np.outer(x[i], x[i]) for i in rows), np.zeros((5, 5)))
    cross = sum((w[i] * np.outer(x[i], y[i]) for i in rows), np.zeros((5, 3)))
    return gram, cross


def bits_of(stats):
    return stats.gram.tobytes() + stats.cross.tobytes()


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_groups_have_the_sums_of_their_rows(weight):
    code = np.random.default_rng(2).integers(0, 5, 200)
    code[code == 1] = 0  # group 1 is empty, and code 4 is none of the groups
    stats = group_statistics(POINTS, FEATURES, code, 4, weight=weight)
    for group in range(4):
        gram, cross = plainly(np.flatnonzero(code == group), weight)
        assert stats.gram[group] == pytest.approx(gram, abs=1e-10)
        assert stats.cross[group] == pytest.approx(cross, abs=1e-10)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_contexts_have_the_sums_of_their_members_less_the_barred_folds(weight):
    contexts = semivalue_contexts(3, 5, 0)
    barred = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]], dtype=bool)
    stats = context_statistics(POINTS, FEATURES, contexts, barred, weight=weight)
    for order in range(3):
        inside = contexts.uniforms(order, POINTS.key) < contexts.p[order][:, None]
        inside &= ~barred[order, POINTS.fold]
        for place, mask in enumerate(inside):
            gram, cross = plainly(np.flatnonzero(mask), weight)
            assert stats.gram[order, place] == pytest.approx(gram, abs=1e-10)
            assert stats.cross[order, place] == pytest.approx(cross, abs=1e-10)


def test_the_empty_and_the_full_context_are_reached():
    points = numbered(POINTS)
    contexts = contexts_of([np.zeros(200), np.ones(200)])
    stats = context_statistics(points, FEATURES, contexts, np.zeros((2, 4), bool))
    assert not stats.gram[0].any()
    assert stats.gram[1, 0, -1, -1] == 200


def test_unions_add_and_forgotten_rows_subtract():
    one, two, both = (
        Statistics(*plainly(rows)) for rows in (range(80), range(80, 200), range(200))
    )
    assert (one + two).gram == pytest.approx(both.gram, abs=1e-10)
    assert (both - two).cross == pytest.approx(one.cross, abs=1e-10)
    stacked = Statistics(np.stack([one.gram, two.gram]), np.stack([one.cross, two.cross]))
    assert stacked.sum(0).gram == pytest.approx(both.gram, abs=1e-10)


def test_sums_on_the_grid_are_exact_in_any_order():
    code = np.random.default_rng(0).integers(0, 9, 200)
    plain = group_statistics(POINTS, FEATURES, code, 9, weight=WEIGHT)
    exact = plain.on_grid()
    for name in ("gram", "cross"):
        before, after = getattr(plain, name), getattr(exact, name)
        scale = np.abs(before).sum(axis=0).max()
        assert np.abs(before - after).max() <= 2.0**-52 * scale
        forth, back = (np.add.accumulate(part)[-1] for part in (after, after[::-1]))
        assert np.array_equal(forth, back)
        plainly_forth = np.add.accumulate(before)[-1]
        assert not np.array_equal(plainly_forth, np.add.accumulate(before[::-1])[-1])


def test_no_rows_at_all_have_a_grid_too():
    nothing = Statistics(np.zeros((2, 3, 3)), np.zeros((2, 3, 1))).on_grid()
    assert not nothing.gram.any()


def test_any_number_of_workers_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr("hcdv.valuation.statistics._CHUNK_ROWS", (16, 16))
    contexts, code = semivalue_contexts(3, 5, 0), np.arange(200) % 7
    barred = np.zeros((3, 4), bool)
    group = {bits_of(group_statistics(POINTS, FEATURES, code, 7, n_jobs=j)) for j in JOBS}
    context = {
        bits_of(context_statistics(POINTS, FEATURES, contexts, barred, n_jobs=j))
        for j in JOBS
    }
    assert len(group) == len(context) == 1


@pytest.mark.parametrize("n", [1, 2047, 2048, 40_000, 2_000_001])
def test_chunks_cover_every_row_once(n):
    covered = list(chunks(n))
    assert covered[0].start == 0
    assert covered[-1].stop == n
    assert all(a.stop == b.start for a, b in pairwise(covered))


def test_only_large_data_is_multiplied_in_single_precision():
    assert row_dtype(1000, 129) == np.float64
    assert row_dtype(10**6, 129) == np.float32


def test_single_precision_products_are_summed_in_double(monkeypatch):
    monkeypatch.setattr("hcdv.valuation.statistics._DOUBLE", 0)
    stats = group_statistics(POINTS, FEATURES, np.zeros(200, np.intp), 1)
    assert stats.gram.dtype == np.float64
    assert stats.gram[0] == pytest.approx(plainly(range(200))[0], abs=1e-4)


def test_a_case_without_rows_in_a_context_has_no_statistics():
    case = a_case(10, 2, n_folds=2)
    barred = np.ones((1, 2), dtype=bool)
    stats = context_statistics(
        case.points, linear_features(case.points.Z), semivalue_contexts(1, 3, 0), barred
    )
    assert not stats.gram.any()
