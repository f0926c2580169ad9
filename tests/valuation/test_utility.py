"""What may be given as a utility, and what is refused."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from hcdv.errors import ParameterError
from hcdv.valuation.utility import (
    NAMED,
    LeastSquares,
    Neighbours,
    Payoffs,
    Retrained,
    resolve_utility,
)


@pytest.mark.parametrize("name", NAMED)
def test_every_name_stands_for_its_settings(name):
    assert resolve_utility(name) == NAMED[name]


def test_names_say_what_they_are():
    assert resolve_utility("auto") == LeastSquares() == resolve_utility("kernel")
    assert resolve_utility("linear").features == "linear"
    assert resolve_utility("fourier").features == "fourier"
    assert resolve_utility("knn").kind == "hard"
    assert resolve_utility("soft-knn").kind == "soft"
    assert resolve_utility("threshold-knn").kind == "threshold"


def test_settings_are_taken_as_they_are():
    own = Neighbours(k=3)
    assert resolve_utility(own) is own


def test_an_estimator_is_retrained_and_a_function_is_asked():
    model = LogisticRegression()
    assert resolve_utility(model) == Retrained(estimator=model)
    assert resolve_utility(len) == Payoffs(function=len)


def test_a_near_name_is_suggested():
    with pytest.raises(ParameterError, match='Did you mean "kernel"'):
        resolve_utility("kernal")


@pytest.mark.parametrize("nonsense", [3, None, np.zeros(2)])
def test_anything_else_is_refused(nonsense):
    with pytest.raises(ParameterError, match="utility must be"):
        resolve_utility(nonsense)


@pytest.mark.parametrize(
    ("make", "wrong", "name"),
    [
        (LeastSquares, {"features": "cubic"}, "features"),
        (LeastSquares, {"n_features": 0}, "n_features"),
        (LeastSquares, {"ridge": 0.0}, "ridge"),
        (LeastSquares, {"ridge": float("nan")}, "ridge"),
        (Neighbours, {"kind": "weighted"}, "kind"),
        (Neighbours, {"k": 0}, "k"),
        (Neighbours, {"radius": 0.0}, "radius"),
        (Neighbours, {"radius": 2.5}, "radius"),
    ],
)
def test_settings_no_utility_has_are_refused_by_name(make, wrong, name):
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        make(**wrong)
