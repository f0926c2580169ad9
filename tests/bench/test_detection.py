"""The two clusters are the best two, and scores say what they are named for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcdv.bench.detection import (
    auroc,
    auroc_within,
    cluster_f1,
    found_by_share,
    lower_cluster,
)

NUMBERS = st.lists(st.floats(-100, 100, width=16), min_size=2, max_size=12)


def spread(values):
    return np.sum((values - values.mean()) ** 2)


@given(NUMBERS)
def test_no_other_cut_leaves_less_spread(numbers):
    values = np.array(numbers)
    low = lower_cluster(values)
    ascending = np.sort(values)
    best = min(spread(ascending[:i]) + spread(ascending[i:]) for i in range(1, len(values)))
    assert 0 < low.sum() < len(values)
    assert values[low].max() <= values[~low].min()
    assert spread(values[low]) + spread(values[~low]) == pytest.approx(best, abs=1e-8)


def opendataval_f1(values, wrong):
    """The package's `noisy_detection`, line by line."""
    order = np.argsort(values, kind="stable")
    sums, squares = (np.r_[0.0, np.cumsum(values[order] ** p)] for p in (1, 2))

    def cost(i, j):
        total = sums[j + 1] - sums[i]
        mean = total / (j - i + 1)
        return mean**2 * (j - i + 1) + (squares[j + 1] - squares[i]) - 2 * mean * total

    n = len(values)
    split = min(range(1, n), key=lambda i: cost(0, i - 1) + cost(i, n - 1))
    said, true = set(order[:split].tolist()), set(np.flatnonzero(wrong).tolist())
    return 2 * len(said & true) / (len(said) + len(true))


@pytest.mark.parametrize("seed", range(10))
def test_f1_is_opendatavals(seed):
    rng = np.random.default_rng(seed)
    wrong = rng.random(200) < 0.1
    values = rng.normal(size=200) - rng.uniform(0, 4) * wrong
    assert cluster_f1(values, wrong) == pytest.approx(opendataval_f1(values, wrong))


def test_a_gap_where_the_noise_is_makes_the_f1_one_and_a_gap_elsewhere_does_not():
    wrong = np.arange(100) < 10
    assert cluster_f1(np.where(wrong, -1.0, 1.0) + np.arange(100) / 1000, wrong) == 1
    elsewhere = np.where(np.arange(100) < 50, -1.0, 1.0) + np.arange(100) / 1000
    assert cluster_f1(elsewhere, wrong) == pytest.approx(2 * 10 / 60)
    assert auroc(elsewhere, wrong) == 1  # the order is right all the same


def test_finding_the_noisy_class_is_not_finding_noise_within_classes():
    given_label = np.repeat([0, 1], 100)
    wrong = np.r_[np.arange(100) % 2 == 0, np.arange(100) == 0]
    by_class = given_label.astype(float)  # all of class 0 below all of class 1
    assert auroc(by_class, wrong) > 0.8
    assert auroc_within(by_class, wrong, given_label) == pytest.approx(0.5)
    assert auroc_within(-wrong.astype(float), wrong, given_label) == 1


def test_the_discovery_curve_counts_wrong_labels_from_the_lowest_value():
    wrong = np.array([True, False, False, True])
    found = found_by_share(
        np.array([0.1, 0.4, 0.3, 0.2]), wrong, np.array([0, 0.25, 0.5, 1])
    )
    assert found.tolist() == [0, 0.5, 1, 1]
