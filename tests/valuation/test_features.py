"""Feature maps against the kernels that they stand for."""

import numpy as np
import pytest

from cases import some_points
from hcdv.valuation.features import fourier_features, kernel_features, linear_features

Z = some_points(80, 2, 0, d=4).Z
GAP = np.sum((Z[:, None] - Z) ** 2, axis=2)
DOUBLE = np.dtype(float)


def rng():
    return np.random.default_rng(0)


def test_linear_features_are_the_embedding_and_a_constant():
    x = linear_features(Z)(Z, DOUBLE)
    assert x[:, :-1] == pytest.approx(Z)
    assert np.all(x[:, -1] == 1)


def test_the_kernels_width_is_the_median_distance():
    features = kernel_features(Z, 8, rng())
    median = np.median(GAP[~np.eye(80, dtype=bool)])
    assert features.gamma == pytest.approx(1 / median, rel=0.15)


def test_as_many_landmarks_as_points_give_the_kernel_itself():
    features = kernel_features(Z, 80, rng())
    x = features(Z, DOUBLE)[:, :-1]
    assert x @ x.T == pytest.approx(np.exp(-features.gamma * GAP), abs=1e-3)


def test_a_third_of_the_points_as_landmarks_come_near_it():
    features = kernel_features(Z, 27, rng())
    x = features(Z, DOUBLE)[:, :-1]
    assert np.abs(x @ x.T - np.exp(-features.gamma * GAP)).mean() < 0.01


def test_fourier_features_are_unbiased_for_the_kernel():
    """4,000 cosines of mean k and variance below 2: an error beyond .15 is 6 deviations."""
    features = fourier_features(Z, 4000, rng())
    x = features(Z, DOUBLE)[:, :-1]
    assert np.abs(x @ x.T - np.exp(-features.gamma * GAP)).max() < 0.15


def test_repeated_points_and_repeated_landmarks_stay_finite_and_small():
    repeated = np.repeat(Z[:3], 20, axis=0)
    x = kernel_features(repeated, 40, rng())(repeated, DOUBLE)
    assert np.isfinite(x).all()
    assert np.sum(x[:, :-1] ** 2, axis=1) == pytest.approx(1.0, abs=1e-3)


def test_points_all_alike_have_features():
    x = kernel_features(np.ones((5, 2)), 4, rng())(np.ones((5, 2)), DOUBLE)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("make", [kernel_features, fourier_features])
def test_single_precision_features_are_the_same_to_its_precision(make):
    features = make(Z, 12, rng())
    single = features(Z.astype(np.float32), np.dtype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(features(Z, DOUBLE), abs=2e-4)


@pytest.mark.parametrize("make", [kernel_features, fourier_features])
def test_a_map_applies_row_by_row_and_knows_its_width(make):
    features = make(Z, 12, rng())
    assert features.width == 13
    assert features(Z[7:9], DOUBLE) == pytest.approx(features(Z, DOUBLE)[7:9], abs=1e-12)


def test_a_small_set_has_as_many_landmarks_as_points():
    assert kernel_features(Z[:5], 128, rng()).width == 6
