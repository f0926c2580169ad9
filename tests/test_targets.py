"""Labels: classes told from numbers, read once, refused where they make no sense."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fits import quick, two_classes
from hcdv.errors import DataError, ParameterError
from hcdv.targets import as_labels, read_target, resolve_metric

X, Y = two_classes(40, 4)

REFUSED = {
    "no labels": (None, "got None: valuation requires y to be passed"),
    "one class": (np.ones(40), "at least 2 classes, got one class: 1.0"),
    "labels that all differ": (np.arange(40), 'got 40 different ones.*metric="r2"'),
    "text that all differs": ([f"s{i}" for i in range(40)], "Is it an id column"),
    "a missing label": (np.r_[np.nan, Y[1:]], "NaN in 1 of 40 rows, first at row 0"),
    "None among labels": ([None, *"ab" * 19, "a"], "in 1 of 40 rows, first at row 0"),
    "NA among labels": (pd.Series([0, None, *Y[2:]], dtype="Int64"), "first at row 1"),
    "infinity": (np.r_[np.inf, X[1:, 0]], "infinity in 1 rows"),
    "many labels a row": (np.c_[Y, 1 - Y], "Multi-label targets are not supported"),
    "lists of labels": ([[1], [0, 1]] * 20, "Multi-label targets are not supported"),
    "sets of labels": ([{1, 2}, {1}] * 20, "got {1, 2}. Multi-label"),
    "tuples of labels": (pd.Series([(1, 2), (1,)] * 20), r"got \(1, 2\). Multi-label"),
    "complex numbers": (Y + 1j, "complex data not supported"),
    "one number throughout": (np.full(40, 0.5), "y must vary, got the number 0.5"),
}


@pytest.mark.parametrize(("y", "says"), REFUSED.values(), ids=REFUSED)
def test_labels_that_make_no_sense_are_refused(y, says):
    with pytest.raises(DataError, match=says):
        quick().fit(X, y)


def test_a_sparse_matrix_of_labels_is_refused():
    from scipy.sparse import csr_array

    with pytest.raises(
        DataError, match=r"got a sparse matrix\. Multi-label targets are not"
    ):
        as_labels(csr_array(np.c_[Y, 1 - Y]), 40)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([True, False, True], [False, True]),
        (["yes", "no", "yes"], ["no", "yes"]),
        ([2.0, 1.0, 2.0], [1.0, 2.0]),
        (np.array([3, 1, 3], dtype=object), [1, 3]),
        (np.array([True, False, True], dtype=object), [False, True]),
        (np.array([1, "a", 1], dtype=object), ["1", "a"]),
        (np.array([[1], [0], [1]]), [0, 1]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([1, 0, 1], dtype="Int64"), [0, 1]),
        (pd.DataFrame({"y": [1, 0, 1]}), [0, 1]),
        ([2**62, 0, 2**62], [0, 2**62]),
    ],
)
def test_classes_are_what_was_given(y, classes):
    assert read_target(y, 3, "auto").classes.tolist() == classes


@pytest.mark.parametrize(
    ("y", "y_val"),
    [
        (Y.astype(object), Y[:12]),
        (Y, Y[:12].astype(float)),
        (Y.astype(bool), Y[:12]),
        (np.where(Y, "a", "bcdef"), np.where(Y[:12], "a", "bcdef").astype(object)),
        (pd.Series(Y, dtype="Int64"), Y[:12]),
    ],
)
def test_validation_labels_of_another_type_are_understood(y, y_val):
    plain = quick().fit(X, Y, X[:12], Y[:12])
    given = quick().fit(X, y, X[:12], y_val)
    if np.asarray(y).dtype.kind != "U":  # the order of text classes is another
        assert np.array_equal(given.values_, plain.values_)


def test_a_longer_name_of_an_unknown_class_is_not_cut_to_a_known_one():
    with pytest.raises(DataError, match="got 'abc'"):
        quick().fit(X, np.where(Y, "a", "b"), X[:12], np.where(Y[:12], "abc", "b"))


def test_fractions_are_numbers_to_predict_and_whole_numbers_are_classes():
    assert read_target([0.5, 1.0, 2.0], 3, "auto").classes is None
    assert read_target([0.0, 1.0, 0.0], 3, "auto").classes is not None
    assert read_target([0, 1, 2], 3, "r2").classes is None


def test_numbers_are_centred_and_scaled_and_codes_count_classes():
    target = read_target([1.5, 2.5, 3.5], 3, "auto")
    assert np.allclose(target.coded(target.labels), [-(1.5**0.5), 0, 1.5**0.5])
    target = read_target(["b", "a", "b"], 3, "auto")
    assert target.coded(np.array(["a", "b"])).tolist() == [0, 1]


def test_a_metric_must_suit_the_target():
    classes, numbers = read_target(Y, 40, "auto"), read_target(X[:, 0], 40, "auto")
    assert resolve_metric("auto", classes) == "loss"
    assert resolve_metric("auto", numbers) == "r2"
    with pytest.raises(ParameterError, match='one of "auto", "loss", "r2" for regression'):
        resolve_metric("auc", numbers)


def test_numbers_are_valued_with_and_without_a_validation_set():
    X, _ = two_classes(80, 4)
    y = X[:, 0] + 0.1 * X[:, 1] ** 2
    y[:8] += np.where(np.arange(8) % 2, 4.0, -4.0)
    for given in ((), (X[40:], y[40:])):
        v = quick().fit(X, y, *given)
        assert v.checks_["sum_error"] <= 1e-9
        assert v.surplus_ > 0
        assert set(v.suspects(8)["row"]) == set(range(8))
        assert v.coalitions_["label_mix"][0].startswith("mean ")
        assert not hasattr(v, "classes_")
        assert "nearest rows" in str(v.explain(0))


def test_whole_numbers_that_hardly_repeat_are_no_classes():
    prices = np.array(
        [260_665.0, 183_844.0] * 2 + [float(n) for n in range(100_000, 100_040)]
    )
    with pytest.raises(DataError, match=r'If it is a number to predict, pass metric="r2"'):
        read_target(prices, len(prices), "auto")
    assert read_target(prices, len(prices), "r2").n_classes == 0
    assert read_target(np.arange(40) % 20, 40, "auto").n_classes == 20
