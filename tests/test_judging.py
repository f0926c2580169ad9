"""Who judges whom: folds that keep classes even, groups whole and time in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fits import quick, two_classes
from hcdv.errors import DataError
from hcdv.intake import row_keys
from hcdv.judging import N_FOLDS, group_folds, random_folds, time_folds


@given(n=st.integers(2, 200), n_classes=st.integers(1, 5), seed=st.integers(0, 99))
def test_random_folds_hold_every_class_evenly(n, n_classes, seed):
    codes = np.random.default_rng(seed).integers(0, n_classes, n)
    folds = random_folds(row_keys(np.arange(n)), codes, seed)
    for rows in (codes == c for c in range(n_classes)):
        count = np.bincount(folds.fold[rows], minlength=folds.eligible.shape[1])
        assert np.ptp(count) <= 1
    assert np.ptp(np.bincount(folds.fold)) <= 1
    assert np.array_equal(folds.eligible, ~np.eye(min(N_FOLDS, n), dtype=bool))


def test_random_folds_follow_the_rows_and_the_seed():
    key, order = row_keys(np.arange(50)), np.random.default_rng(0).permutation(50)
    folds = random_folds(key, None, 0).fold
    same = random_folds(key[order], None, 0).fold
    assert np.array_equal(folds[order], same)
    assert not np.array_equal(folds, random_folds(key, None, 1).fold)


@given(
    groups=st.lists(st.integers(0, 12), min_size=2, max_size=120).filter(
        lambda g: len(set(g)) > 1
    ),
    seed=st.integers(0, 99),
)
def test_a_group_is_never_split_and_no_fold_is_empty(groups, seed):
    folds = group_folds(np.array(groups), seed)
    pairs = {(g, int(f)) for g, f in zip(groups, folds.fold, strict=True)}
    assert len(pairs) == len(set(groups))
    assert sorted(set(folds.fold.tolist())) == list(range(folds.eligible.shape[1]))
    assert 2 <= folds.eligible.shape[1] <= N_FOLDS


@given(
    time=st.lists(st.integers(0, 20), min_size=2, max_size=120).filter(
        lambda t: len({*t}) > 1
    )
)
def test_models_are_taught_with_earlier_rows_than_they_are_judged_by(time):
    at = np.array(time)
    folds = time_folds(at)
    for k, fold in enumerate(folds.judging):
        taught = folds.eligible[k][folds.fold]
        assert taught.any()
        assert at[taught].max() < at[folds.fold == fold].min()
    assert not (folds.judging == 0).any()


@pytest.mark.parametrize("make", [lambda one: group_folds(one, 0), time_folds])
def test_one_group_or_one_moment_cannot_be_held_out(make):
    with pytest.raises(DataError, match=r"at least 2 different|at least 2 groups"):
        make(np.zeros(10))


def test_near_copies_in_one_group_do_not_vouch_for_each_other():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 40)), 4, axis=0)  # wide: copies are all that fits
    y = np.repeat(rng.integers(0, 2, 30), 4)
    X = X + 0.01 * rng.normal(size=X.shape)
    apart = quick(consistency_weight=0).fit(X, y, groups=np.arange(120) // 4)
    mixed = quick(consistency_weight=0).fit(X, y)
    assert mixed.surplus_ > 0.35
    assert apart.surplus_ < 0.2


def test_rows_that_come_last_in_time_teach_nobody():
    X, y = two_classes(80)
    v = quick(time=np.arange(80), branching="flat").fit(X, y)
    assert v.run_.case.judges[0].eligible.sum() == 1
    last = v.run_.case.points.fold == v.run_.case.points.fold.max()
    assert not any(v.run_.case.taught(judge)[last].any() for judge in v.run_.case.judges)
    utility = v.parts_["utility"][last]
    assert np.allclose(utility, utility[0], atol=1e-12)  # dummies of the flat game


def test_dates_put_rows_in_order_as_numbers_do():
    import pandas as pd

    X, y = two_classes(40)
    days = pd.date_range("2020-01-01", periods=40)
    by_date = quick(time=days).fit(X, y)
    assert np.array_equal(by_date.values_, quick(time=np.arange(40)).fit(X, y).values_)
