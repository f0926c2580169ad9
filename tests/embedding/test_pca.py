"""Principal directions: as a full decomposition finds them, however the table is held."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hcdv.embedding import pca
from hcdv.embedding.pca import IdentityEncoder, PCAEncoder, shares_scale
from hcdv.errors import DataError


def sloping(n=300, p=30, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(p, p)))[0]
    return rng.normal(size=(n, p)) * 0.8 ** np.arange(p) @ turn + 3


def fitted(X, d=5, **settings):
    return PCAEncoder(d, **settings).fit(X, None, np.random.default_rng(0))


def svd_scores(X, d):
    _, _, Vt = np.linalg.svd(X, full_matrices=False)
    return X @ Vt[:d].T


def aligned(Z, expected):
    return Z * np.sign((Z * expected).sum(axis=0))


def test_scores_are_those_of_the_singular_value_decomposition():
    X = sloping()
    expected = svd_scores(X - X.mean(axis=0), 5)
    Z = fitted(X, standardise=False).transform(X)
    assert aligned(Z, expected) == pytest.approx(expected)


@pytest.mark.parametrize("standardise", [True, False])
def test_single_precision_finds_the_scores_to_seven_digits(standardise):
    X = sloping()
    made = fitted(X, standardise=standardise)
    Z = made.transform(X)
    single = made.transform(X, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=2e-6 * np.abs(Z).max())


def test_a_table_too_wide_for_its_covariance_gets_the_same_directions(monkeypatch):
    X = sloping()
    expected = fitted(X).directions
    monkeypatch.setattr(pca, "GRAM_COLUMNS", 3)
    assert fitted(X).directions == pytest.approx(expected, abs=1e-3)


def test_sparse_rows_get_a_truncated_decomposition_without_centring():
    X = sparse.random_array((200, 400), density=0.05, rng=np.random.default_rng(0))
    for scale, m in ((1, 2), (0.5, 3)):  # two directions well above the rest
        X = X + scale * sparse.csr_array(
            np.outer(np.arange(200) % m, np.arange(400) % (m + 1))
        )
    X = sparse.csr_array(X)
    expected = svd_scores(X.toarray(), 2)
    Z = fitted(X, 2).transform(X)
    assert aligned(Z, expected) == pytest.approx(expected, abs=1e-2)


def test_signs_do_not_depend_on_the_order_of_rows():
    X = sloping()
    assert fitted(X[::-1]).directions == pytest.approx(fitted(X).directions)


def test_more_directions_than_the_rows_span_are_not_made_up():
    X = np.random.default_rng(0).normal(size=(4, 50))
    assert fitted(X, 64).transform(X).shape == (4, 3)  # four centred rows span three
    assert fitted(np.ones((5, 4)), 64).transform(np.ones((5, 4))).tolist() == [[0.0]] * 5


def test_mixed_units_are_standardised_and_a_shared_scale_is_kept():
    units = np.random.default_rng(0).normal(size=(200, 6)) * 10.0 ** np.arange(6)
    assert np.ptp(fitted(units).scaling.factor) > 0.1
    assert (fitted(sloping()).scaling.factor == 1).all()


def test_a_shared_scale_is_told_from_mixed_units():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 20))
    assert shares_scale(Z)
    assert shares_scale(Z / np.linalg.norm(Z, axis=1, keepdims=True))
    assert shares_scale(Z * np.linspace(1, 4, 20))
    assert not shares_scale(Z * 10.0 ** np.arange(20))
    assert not shares_scale(np.ones((5, 1)))


def test_images_are_taken_as_rows_of_pixels():
    images = sloping(60, 64).reshape(60, 8, 8)
    flat = fitted(images.reshape(60, 64))
    assert (
        fitted(images).transform(images) == flat.transform(images.reshape(60, 64))
    ).all()


def test_identity_keeps_or_standardises_columns():
    X = sloping()
    rng = np.random.default_rng(0)
    assert IdentityEncoder().fit(X, None, rng).transform(X) is X
    Z = IdentityEncoder(standardise=True).fit(X, None, rng).transform(X)
    assert Z.mean(axis=0) == pytest.approx(0)
    assert Z.std(axis=0) == pytest.approx(1)


def test_a_sparse_matrix_too_large_to_unpack_is_refused():
    X = sparse.csr_array((10**6, 10**6))
    with pytest.raises(DataError, match='encoder="pca"'):
        IdentityEncoder().transform(X)
    assert (
        IdentityEncoder().transform(sparse.csr_array(np.eye(3))).tolist()
        == np.eye(3).tolist()
    )


def test_many_workers_give_the_same_bits():
    X = sloping()
    assert (fitted(X, n_jobs=1).directions == fitted(X, n_jobs=3).directions).all()
