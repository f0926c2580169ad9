"""The user's own encoders: used as they are, checked in what they return."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from hcdv.embedding.wrapped import (
    CallableEncoder,
    PrecomputedEncoder,
    TorchEncoder,
    TransformerEncoder,
    learns_from_labels,
)
from hcdv.errors import DataError

RNG = np.random.default_rng(0)
X = np.random.default_rng(0).normal(size=(40, 6))
y = np.arange(40) % 2


def test_a_transformer_is_cloned_and_fitted_on_the_training_rows():
    mine = PCA(2, svd_solver="full")
    encoder = TransformerEncoder(mine).fit(X, None, RNG)
    assert not hasattr(mine, "components_")
    assert encoder.transform(X) == pytest.approx(PCA(2, svd_solver="full").fit_transform(X))


def test_images_reach_a_transformer_as_rows():
    images = X.reshape(40, 2, 3)
    assert TransformerEncoder(StandardScaler()).fit(images, None, RNG).transform(
        images
    ).shape == (40, 6)


SUPERVISED = [
    LinearDiscriminantAnalysis(),
    NeighborhoodComponentsAnalysis(),
    SelectKBest(),
    PLSRegression(),
    make_pipeline(LinearDiscriminantAnalysis(), StandardScaler()),
    make_pipeline(StandardScaler(), FeatureUnion([("k", SelectKBest(k=2)), ("p", PCA(2))])),
]


@pytest.mark.parametrize("transformer", SUPERVISED, ids=lambda t: type(t).__name__)
def test_transformers_that_need_labels_count_as_supervised(transformer):
    assert learns_from_labels(transformer)
    with pytest.raises(DataError, match="must have labels"):
        TransformerEncoder(transformer).fit(X, None, RNG)


class Peeking(StandardScaler):
    """Takes y if it is given."""

    def fit(self, X, y=None):
        assert y is None
        return super().fit(X)


@pytest.mark.parametrize(
    "transformer", [PCA(2), make_pipeline(StandardScaler(), PCA(2)), Peeking()]
)
def test_all_others_never_see_a_label(transformer):
    encoder = TransformerEncoder(transformer)
    assert not encoder.supervised
    encoder.fit(X, y, RNG)


def test_a_supervised_transformer_is_given_the_labels():
    Z = TransformerEncoder(LinearDiscriminantAnalysis()).fit(X, y, RNG).transform(X)
    assert Z.shape == (40, 1)


def test_a_torch_module_runs_in_batches_without_training_and_is_put_back(monkeypatch):
    monkeypatch.setattr("hcdv.embedding.wrapped.TORCH_BATCH", 16)
    module = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.Dropout(0.5))
    module.train()
    Z = TorchEncoder(module).fit(X, y, RNG).transform(X)
    assert module.training
    module.eval()
    expected = module(torch.tensor(X, dtype=torch.float32)).detach().numpy()
    assert pytest.approx(expected, abs=1e-6) == Z
    assert all(parameter.grad is None for parameter in module.parameters())


def test_a_module_without_parameters_works_and_images_keep_their_shape():
    images = np.ones((5, 3, 4, 4), np.float32)
    assert TorchEncoder(torch.nn.Flatten()).transform(images).shape == (5, 48)


def test_a_function_may_return_any_kind_of_matrix():
    for function in (
        lambda X: X[:, :2],
        sparse.csr_array,
        torch.as_tensor,
        np.round,
    ):
        assert len(CallableEncoder(function).fit(X, None, RNG).transform(X)) == 40


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: X[:, 0], r"shape \(40, d\), got \(40,\)"),
        (lambda X: X[:10], r"got \(10, 6\)"),
        (lambda X: X[:, :0], r"got \(40, 0\)"),
        (lambda X: X.astype(str), "real numbers"),
        (
            lambda X: np.where(np.arange(40)[:, None] == 7, np.nan, X),
            "in 1 rows, first at row 7",
        ),
        (lambda _: None, r"got \(\)"),
    ],
)
def test_what_an_encoder_returns_is_checked(function, message):
    with pytest.raises(DataError, match=message):
        CallableEncoder(function).transform(X)


def test_precomputed_vectors_belong_to_the_training_rows():
    Z = np.arange(80.0).reshape(40, 2)
    encoder = PrecomputedEncoder(Z).fit(X, None, RNG)
    assert (encoder.transform(X) == Z).all()
    for others in (X[:10], X + 1, X[::-1]):
        with pytest.raises(DataError, match="training rows"):
            encoder.transform(others)


def test_precomputed_vectors_must_be_as_many_as_the_rows():
    with pytest.raises(DataError, match="40 rows of X, got 39"):
        PrecomputedEncoder(np.ones((39, 2))).fit(X, None, RNG)
    with pytest.raises(DataError, match=r"shape \(40, d\), got \(39, 2\)"):
        PrecomputedEncoder(np.ones((39, 2)), 40)
