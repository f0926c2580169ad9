"""Scikit-learn's own checks of an estimator, every one of them, and what tools do with one."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
    parametrize_with_checks,
)

from fits import quick, two_classes
from hcdv import HCDV

EXPECTED_TO_FAIL: dict[str, str] = {}  # none


# check_array_api_input skips itself, inside scikit-learn, unless SCIPY_ARRAY_API is set.
@parametrize_with_checks(
    [HCDV(n_contexts=8, n_permutations=2, utility="linear", n_jobs=1)],
    expected_failed_checks=lambda _: EXPECTED_TO_FAIL,
)
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


def test_no_exception_is_declared_without_a_check_of_that_name():
    names = {
        getattr(check, "func", check).__name__
        for _, check in estimator_checks_generator(HCDV())
    }
    assert len(names) > 30
    assert set(EXPECTED_TO_FAIL) <= names


def test_a_clone_has_the_settings_and_none_of_the_results():
    v = quick(metric="auc").fit(*two_classes())
    twin = clone(v)
    assert twin.get_params() == v.get_params()
    assert not hasattr(twin, "values_")


def test_the_text_of_an_estimator_names_what_was_changed():
    assert repr(HCDV(metric="auc")) == "HCDV(metric='auc')"


def test_fitting_leaves_the_settings_and_the_data_alone():
    X, y = two_classes()
    before, settings = (X.copy(), y.copy()), quick().get_params()
    v = quick().fit(X, y)
    assert v.get_params() == settings
    assert np.array_equal(before[0], X)
    assert np.array_equal(before[1], y)
