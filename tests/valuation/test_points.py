"""Targets, weights, and who may teach whom."""

import numpy as np
import pytest

from cases import a_case, some_points
from hcdv.valuation.points import Points, class_weights


def labelled(target, n_classes=3, weight=None):
    n = len(target)
    return Points(
        np.zeros((n, 1)), np.array(target), n_classes, np.arange(n, dtype=np.uint64),
        np.zeros(n, np.intp), weight,
    )  # fmt: skip


def test_targets_are_one_hot_less_chance_so_that_no_model_is_the_uniform_guess():
    y = labelled([0, 2, 1]).targets(slice(0, 2), np.dtype(np.float32))
    assert y.dtype == np.float32
    assert y == pytest.approx(np.array([[2, -1, -1], [-1, -1, 2]]) / 3)


def test_targets_of_regression_are_the_centred_numbers():
    points = labelled([0.5, -1.5], n_classes=0)
    assert points.width == 1
    assert points.targets(slice(None), np.dtype(float)).tolist() == [[0.5], [-1.5]]


def test_every_class_present_weighs_the_same_and_weights_sum_to_the_rows():
    weight = class_weights(labelled([0, 0, 0, 1], n_classes=3))
    assert weight == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])


def test_sample_weights_count_inside_classes():
    own = np.array([1.0, 3.0, 2.0, 0.0])
    weight = class_weights(labelled([0, 0, 1, 1], n_classes=2, weight=own))
    assert weight == pytest.approx([0.75, 2.25, 3.0, 0.0])


def test_a_class_of_no_weight_does_not_divide_by_zero():
    own = np.array([1.0, 1.0, 0.0])
    weight = class_weights(labelled([0, 0, 1], n_classes=2, weight=own))
    assert weight == pytest.approx([1.0, 1.0, 0.0])


def test_regression_has_no_classes_to_balance():
    assert class_weights(labelled([0.5, -0.5], n_classes=0)).tolist() == [1.0, 1.0]


def test_taking_rows_keeps_their_keys_folds_and_weights():
    points = some_points(6, 2, 0, n_folds=3, weight=np.arange(6.0))
    some = points.take(np.array([4, 1]))
    assert some.key.tolist() == points.key[[4, 1]].tolist()
    assert some.fold.tolist() == [1, 1]
    assert some.weight.tolist() == [4.0, 1.0]
    masked = points.take(np.arange(6) > 3)
    assert np.array_equal(masked.Z, points.Z[4:])


def test_another_view_changes_the_embedding_alone():
    points = some_points(6, 2, 0)
    seen = points.seen_in(points.Z[:, :1])
    assert seen.Z.shape == (6, 1)
    assert np.array_equal(seen.target, points.target)


def test_no_fold_teaches_its_own_judge():
    case = a_case(9, 2, n_folds=3)
    taught = np.array([case.taught(judge) for judge in case.judges])
    assert np.array_equal(taught, case.points.fold != np.arange(3)[:, None])
