"""Selections: exactly so many rows, the best by each of three rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fits import flipped, quick, two_classes
from hcdv.errors import DataError, ParameterError
from hcdv.uses.selection import HOW, evenly
from hcdv.uses.suspects import LIKELY

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
    rows = v.select(0.3, "top")
    assert v.values_[rows].min() >= np.delete(v.values_, rows).max()


def trusted_of(v):
    run = v.run_
    return run.users(run.valuation.doubts.chance <= LIKELY)


def test_quota_keeps_the_same_share_of_every_label_and_leaf(v):
    rows, trusted = v.select(0.3), trusted_of(v)
    assert trusted[rows].all()
    kept = np.isin(np.arange(67), rows)
    share = len(rows) / trusted.sum()
    for label in (0, 1):
        of_label = (v.run_.labels == label) & trusted
        assert abs(kept[of_label].sum() - share * of_label.sum()) <= 1
        for leaf in np.unique(v.tree_.leaf_of_row):
            inside = of_label & (v.tree_.leaf_of_row == leaf)
            assert abs(kept[inside].sum() - share * inside.sum()) <= 1


def test_quota_spreads_over_the_values_of_a_leaf_and_does_not_skim_them():
    v = quick(branching="flat").fit(X, Y, X_VAL, Y_VAL)
    rows, trusted = v.select(0.5), np.flatnonzero(trusted_of(v))
    for label in (0, 1):
        of_label = trusted[v.run_.labels[trusted] == label]
        rank = np.argsort(np.argsort(v.values_[of_label]))
        places = np.sort(rank[np.isin(of_label, rows)])
        assert np.diff(places).max() <= 3
        assert places[0] <= 2
        assert places[-1] >= len(rank) - 3


def test_rows_more_likely_wrong_than_right_come_last():
    X, clean = two_classes(120, noise=0.0)
    y, _ = flipped(clean, 0.1, np.random.default_rng(0))
    v = quick().fit(X, y)
    trusted = trusted_of(v)
    assert 60 < trusted.sum() < 118
    assert trusted[v.select(trusted.sum() / 120)].all()
    more = v.select((trusted.sum() + 2) / 120)
    assert trusted[more].sum() == trusted.sum()
    added = more[~trusted[more]]
    chance = v.run_.users(v.run_.valuation.doubts.chance)
    assert chance[added].max() <= np.delete(chance, more).min()


@given(n=st.integers(1, 300), share=st.floats(0.0, 1.0))
def test_places_are_spread_evenly(n, share):
    n_kept = max(1, round(share * n))
    places = evenly(n_kept, n)
    assert len(set(places)) == n_kept
    assert 0 <= places.min() <= places.max() < n
    gaps = np.diff(places)
    assert not len(gaps) or gaps.max() - gaps.min() <= 1


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
    for how in ("quota", "greedy"):  # the best of all are of few kinds
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
    with pytest.raises(ParameterError, match=r'how must be one of "quota", .*mean "quota"'):
        v.select(0.3, "quotas")
    with pytest.raises(ParameterError, match="how must be one of"):
        v.select(0.3, None)
