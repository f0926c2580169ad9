"""Moments in blocks equal those of the whole table, bit for bit for any workers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hcdv.embedding import column_moments
from hcdv.embedding.column_moments import (
    Scaling,
    class_sums,
    column_scaling,
    gram,
    normal_product,
    projected,
)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(column_moments, "BLOCK_CELLS", 35)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(103, 5)) * [1, 2, 3, 4, 5] + 7


def test_scaling_is_mean_and_deviation(X, small_blocks):
    center, factor = column_scaling(X, standardise=True)
    assert center == pytest.approx(X.mean(axis=0))
    assert factor == pytest.approx(1 / X.std(axis=0))


def test_constant_columns_get_factor_zero_even_far_from_zero(small_blocks):
    X = np.column_stack([np.full(50, 0.1), np.full(50, 1e9), np.arange(50.0)])
    assert column_scaling(X, standardise=True).factor[:2].tolist() == [0, 0]


def test_a_mean_far_above_the_deviation_costs_no_digits(small_blocks):
    X = 1e8 + np.random.default_rng(0).normal(size=(200, 3)).round(3)
    scaling = column_scaling(X, standardise=False)
    exact = np.cov(X - 1e8, rowvar=False) * 199
    assert gram(X, scaling) == pytest.approx(exact, rel=1e-6)


def test_weighted_gram_and_class_sums_equal_their_definitions(X, small_blocks):
    rng = np.random.default_rng(1)
    weight, codes = rng.random(len(X)), rng.integers(0, 3, len(X))
    scaling = column_scaling(X, standardise=True)
    S = (X - scaling.center) * scaling.factor
    assert gram(X, scaling, weight) == pytest.approx(
        sum(w * np.outer(s, s) for w, s in zip(weight, S, strict=True))
    )
    expected = [S[codes == c].sum(axis=0) for c in range(3)]
    assert class_sums(X, scaling, codes) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_products_are_the_same_dense_and_sparse(X, make, small_blocks):
    W = np.random.default_rng(2).normal(size=(5, 2))
    assert projected(make(X), None, W) == pytest.approx(X @ W)
    assert normal_product(make(X), None, W) == pytest.approx(X.T @ X @ W)


def test_single_precision_rows_are_added_in_double(small_blocks):
    X = np.full((5000, 1), 0.1, dtype=np.float32)
    assert column_scaling(X, standardise=False).center[0] == pytest.approx(
        float(X[0, 0]), rel=1e-14
    )


def test_any_number_of_workers_gives_the_same_bits(X, small_blocks):
    scaling = column_scaling(X, standardise=True, n_jobs=1)
    again = column_scaling(X, standardise=True, n_jobs=3)
    assert all((a == b).all() for a, b in zip(scaling, again, strict=True))
    assert (gram(X, scaling, n_jobs=1) == gram(X, Scaling(*again), n_jobs=3)).all()
