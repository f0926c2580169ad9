"""No encoder that embeds row i for judging has seen the label of row i."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from hcdv.embedding.encoders import make_encoder
from hcdv.embedding.folds import fold_encoders
from hcdv.embedding.neural import NeuralEncoder
from hcdv.embedding.tables import read_rows
from hcdv.errors import DataError

X = np.random.default_rng(0).normal(size=(90, 5))
y = np.arange(90) % 3
FOLDS = np.arange(90) // 30


def vectors(encoder, labels):
    found = fold_encoders(encoder, X, labels, FOLDS, np.random.default_rng(0))
    return [fitted.transform(X) for fitted in found]


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_encoder("linear", read_rows(X)),
        lambda: make_encoder(LinearDiscriminantAnalysis(), read_rows(X)),
        lambda: NeuralEncoder("mlp", 4, n_epochs=2, n_hidden=8),
    ],
    ids=["linear", "scikit-learn", "mlp"],
)
def test_changing_a_label_leaves_the_encoder_of_its_fold_as_it_was(make):
    changed = y.copy()
    changed[35] = (changed[35] + 1) % 3  # a row of fold 1
    before, after = vectors(make(), y), vectors(make(), changed)
    assert (before[1] == after[1]).all()
    # In one of the others it may serve to stop training, and move no weight.
    assert any((before[k] != after[k]).any() for k in (0, 2))


def test_an_encoder_that_sees_no_labels_serves_every_fold():
    found = fold_encoders(
        make_encoder("pca", read_rows(X)), X, y, FOLDS, np.random.default_rng(0)
    )
    assert len(found) == 3
    assert found[0] is found[1] is found[2]


def test_one_fold_leaves_nothing_to_fit_on():
    with pytest.raises(DataError, match="at least 2"):
        fold_encoders(
            make_encoder("linear", read_rows(X)), X, y, FOLDS * 0, np.random.default_rng(0)
        )
