"""The closed form against its definition over pairs, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hcdv.embedding import linear
from hcdv.embedding.column_moments import column_scaling
from hcdv.embedding.linear import (
    LinearContrastive,
    Scatter,
    contrastive_directions,
    label_scatter,
)
from hcdv.errors import DataError


def by_pairs(X, y):
    """Both scatters as they are defined, over O(n²) pairs."""
    i, j = np.triu_indices(len(X), k=1)
    is_cross = y[i] != y[j]
    D = (X[i] - X[j])[is_cross]
    inside = np.vstack([X[y == c] - X[y == c].mean(axis=0) for c in np.unique(y)])
    return Scatter(
        D.T @ D / is_cross.sum(), inside.T @ inside / (len(X) - len(np.unique(y)))
    )


@given(st.integers(2, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_scatters_from_sums_equal_those_over_all_pairs(n_classes, p, seed):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 30)]
    X = rng.normal(size=(len(y), p)) * 10.0 ** rng.integers(-2, 3, p) + rng.normal(size=p)
    scaling = column_scaling(X, standardise=True)
    found, expected = label_scatter(X, y, scaling), by_pairs(X * scaling.factor, y)
    assert found.across == pytest.approx(expected.across, abs=1e-9)
    assert found.within == pytest.approx(expected.within, abs=1e-9)


def test_directions_solve_the_generalised_problem():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 6)), np.arange(80) % 3
    scatter = by_pairs(X, y)
    W = contrastive_directions(scatter, 6, 0.5)
    bound = scatter.within + 0.5 * np.trace(scatter.within) / 6 * np.eye(6)
    mu = np.diag(W.T @ bound @ W)  # each is √μ long, so that its squared length is μ
    assert scatter.across @ W == pytest.approx(bound @ W * mu)
    assert (np.diff(mu) <= 1e-9).all()


def test_the_direction_that_parts_the_labels_comes_first():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 10))
    X[:, 3] += 4 * y
    encoder = LinearContrastive(2).fit(X, y, rng)
    assert abs(encoder.directions[:, 0]).argmax() == 3
    Z = encoder.transform(X)
    assert Z.shape == (300, 2)
    assert abs(np.corrcoef(Z[:, 0], y)[0, 1]) > 0.85


def test_more_columns_than_rows_and_equal_columns_are_no_trouble():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 60))
    X = np.hstack([X, X, np.ones((20, 3))])
    Z = LinearContrastive(8).fit(X, np.arange(20) % 2, rng).transform(X)
    assert np.isfinite(Z).all()
    assert Z.shape == (20, 8)


def test_rows_equal_inside_their_class_are_no_trouble():
    y = np.arange(20) % 2
    X = np.column_stack([y, 1 - y, y]).astype(float)
    Z = (
        LinearContrastive(2, standardise=False)
        .fit(X, y, np.random.default_rng(0))
        .transform(X)
    )
    assert np.isfinite(Z).all()
    assert abs(Z[0, 0] - Z[1, 0]) > 0


def test_very_wide_and_sparse_tables_are_reduced_first(monkeypatch):
    monkeypatch.setattr(linear, "WIDEST", 16)
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 40)) + 3 * y[:, None] * (np.arange(40) == 5)
    for table in (X, sparse.csr_array(X)):
        encoder = LinearContrastive(2).fit(table, y, rng)
        assert "16 principal directions" in encoder.notes[0]
        assert abs(np.corrcoef(encoder.transform(table)[:, 0], y)[0, 1]) > 0.5


def test_numeric_targets_are_binned_and_said_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    encoder = LinearContrastive(1).fit(X, X[:, 2] + 0.1 * rng.normal(size=300), rng)
    assert abs(encoder.directions[:, 0]).argmax() == 2
    assert "quantile classes" in encoder.notes[0]


def test_labels_are_required():
    with pytest.raises(DataError, match='encoder="linear" must have labels'):
        LinearContrastive().fit(np.ones((3, 2)), None, np.random.default_rng(0))
