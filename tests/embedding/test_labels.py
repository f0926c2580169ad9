"""Labels as classes: distinct values, or quantile bins of a numeric target."""

from __future__ import annotations

import numpy as np
import pytest

from hcdv.embedding.labels import label_classes, required_labels
from hcdv.errors import DataError


@pytest.mark.parametrize(
    "y",
    [[3, 1, 3], ["b", "a", "b"], [1.0, 0.0, 1.0], [True, False, True], [0.5, -0.5, 0.5]],
)
def test_distinct_labels_are_the_classes(y):
    classes = label_classes(np.array(y))
    assert classes.codes(y).tolist() == [1, 0, 1]
    assert classes.notes() == []


def test_a_label_not_seen_in_training_has_no_class():
    assert label_classes(np.array([1, 2])).codes([0, 1, 2, 3]).tolist() == [-1, 0, 1, -1]


@pytest.mark.parametrize("y", [np.linspace(0, 1, 200), np.arange(200)])
def test_numeric_targets_are_cut_into_ten_equal_bins_with_a_note(y):
    classes = label_classes(y)
    assert np.bincount(classes.codes(y)).tolist() == [20] * 10
    assert "10 quantile classes" in classes.notes()[0]
    assert classes.codes([-5.0, 500.0]).tolist() == [0, 9]


def test_a_numeric_target_with_one_value_in_most_rows_keeps_fewer_bins():
    y = np.r_[np.zeros(180), np.linspace(0.1, 1, 20)]
    classes = label_classes(y)
    assert set(classes.codes(y).tolist()) == set(range(len(classes.levels)))


def test_many_codes_with_many_rows_each_stay_classes():
    y = np.repeat(np.arange(100), 20)
    assert len(label_classes(y).levels) == 100


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y=None"),
        ([1, 2], "one label a row"),
        ([1.0, np.nan, 2.0], "NaN or infinity in 1"),
        ([[1], [2], [3]], "one label a row"),
    ],
)
def test_labels_that_cannot_be_learnt_from_are_refused(y, message):
    with pytest.raises(DataError, match=message):
        required_labels(y, 3, "linear")


def test_one_class_is_refused_with_a_way_out():
    with pytest.raises(DataError, match='encoder="pca"'):
        label_classes(np.zeros(4))
