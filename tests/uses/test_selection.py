"""Selections: exactly so many rows, the best by each of three rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fits import flipped, quick, two_classes
from hcdv.errors import DataError, ParameterError
from hcdv.uses.selection import HOW, best_of_each

X, Y = two_classes(67)
X_VAL, Y_VAL = two_classes(200, seed=1)


@pytest.fixture(scope="module")
def v():
    ids = np.random.default_rng(0).permutation(67)
    return quick().fit(X, Y, X_VAL, Y_VAL, ids=ids)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.3, 0.5, 0.777, 0.999, 1])
def test_a_share_is_exactly_so_many_different_rows_in_order(v, how, fraction):
    rows = v.select(fraction, how)
    assert len(rows) == round(fraction * 67)
    assert (np.diff(rows) > 0).all()
    assert rows.dtype.kind == "i"
    assert 0 <= rows.min() <= rows.max() < 67


def test_top_takes_the_best_of_all(v):
    rows = v.select(0.3)
    assert v.values_[rows].min() >= np.delete(v.values_, rows).max()


def test_quota_takes_the_best_of_every_leaf_and_the_same_share(v):
    rows, leaf = v.select(0.3, "quota"), v.tree_.leaf_of_row
    kept = np.isin(np.arange(67), rows)
    for one in np.unique(leaf):
        inside = leaf == one
        assert abs(kept[inside].sum() - 0.3 * inside.sum()) < 1
        if kept[inside].any() and not kept[inside].all():
            assert v.values_[inside & kept].min() >= v.values_[inside & ~kept].max()


@given(
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=8), share=st.floats(0.01, 1.0)
)
def test_quotas_are_the_largest_remainders(sizes, share):
    group = np.repeat(np.arange(len(sizes)), sizes)
    n_kept = max(1, round(share * len(group)))
    values = np.random.default_rng(0).normal(size=len(group))
    kept = best_of_each(values, group, n_kept)
    assert len(set(kept)) == len(kept) == n_kept
    exact = np.array(sizes) * n_kept / len(group)
    assert (np.abs(np.bincount(group[kept], minlength=len(sizes)) - exact) < 1).all()


def test_greedy_takes_rows_that_help_together_and_spares_copies():
    rng = np.random.default_rng(0)
    lone = rng.normal(size=(30, 6))
    X = np.r_[lone, np.repeat(lone[:1], 30, axis=0)]  # half of the rows are one row
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    v = quick(consistency_weight=0.0, encoder="identity", dispersion_weight=0.0)
    v.fit(X, y, X_VAL[:, [0, 1, 2, 3, 4, 0]], (X_VAL[:, 0] + X_VAL[:, 1] > 0).astype(int))
    greedy = v.select(0.2, "greedy")
    assert np.isin(greedy, np.r_[0, 30:60]).mean() < 0.5


def test_selected_rows_teach_better_than_rows_at_random():
    from sklearn.linear_model import LogisticRegression

    X, clean = two_classes(150)
    y, _ = flipped(clean, 0.25, np.random.default_rng(0))
    v = quick().fit(X, y)

    def accuracy(rows):
        return LogisticRegression().fit(X[rows], y[rows]).score(X_VAL, Y_VAL)

    rng = np.random.default_rng(0)
    chance = np.mean([accuracy(rng.choice(150, 45, replace=False)) for _ in range(20)])
    for how in HOW:
        assert accuracy(v.select(0.3, how)) > chance + 0.02


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1, np.nan, None, "third"])
def test_a_share_outside_its_range_is_refused(v, fraction):
    with pytest.raises(ParameterError, match="fraction must be above 0 and at most 1, got"):
        v.select(fraction)


def test_a_share_too_small_for_one_row_is_refused(v):
    with pytest.raises(
        DataError, match=r"at least one row, got 0.001 of 67. Raise it to 0.0149"
    ):
        v.select(0.001)


def test_an_unknown_rule_is_refused_with_the_right_one():
    v = quick().fit(X, Y)
    with pytest.raises(ParameterError, match=r'how must be one of "top", .*mean "quota"'):
        v.select(0.3, "quotas")
    with pytest.raises(ParameterError, match="how must be one of"):
        v.select(0.3, None)
