"""Which encoder is meant by a name or an object, what `auto` takes, and saving."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.decomposition import PCA

from hcdv.embedding.encoders import encoder_from_state, make_encoder
from hcdv.embedding.linear import LinearContrastive
from hcdv.embedding.neural import NeuralEncoder
from hcdv.embedding.pca import IdentityEncoder, PCAEncoder
from hcdv.embedding.tables import TableEncoder, read_rows
from hcdv.embedding.wrapped import (
    CallableEncoder,
    PrecomputedEncoder,
    TorchEncoder,
    TransformerEncoder,
)
from hcdv.errors import DataError, ParameterError

RNG = np.random.default_rng(0)
Z = np.random.default_rng(0).normal(size=(100, 6))
y = np.arange(100) % 2
ROWS = read_rows(Z)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("pca", PCAEncoder),
        ("identity", IdentityEncoder),
        ("precomputed", IdentityEncoder),
        ("linear", LinearContrastive),
        ("mlp", NeuralEncoder),
        ("conv", NeuralEncoder),
        (PCA(2), TransformerEncoder),
        (torch.nn.Linear(6, 2), TorchEncoder),
        (np.tanh, CallableEncoder),
        (Z[:, :2], PrecomputedEncoder),
        (torch.tensor(Z), PrecomputedEncoder),
        (Z.tolist(), PrecomputedEncoder),
        (pd.DataFrame(Z), PrecomputedEncoder),
    ],
)
def test_each_kind_of_encoder_is_recognised(spec, kind):
    encoder = make_encoder(spec, ROWS)
    assert type(encoder) is kind
    assert isinstance(encoder.supervised, bool)


def test_an_encoder_of_ours_is_taken_as_it_is():
    mine = LinearContrastive(3)
    assert make_encoder(mine, ROWS) is mine


@pytest.mark.parametrize(
    ("name", "meant"), [("lineer", "linear"), ("PCA", "pca"), ("cnv", "conv")]
)
def test_an_unknown_name_lists_the_names_and_suggests_the_closest(name, meant):
    with pytest.raises(
        ParameterError, match=rf"auto, pca.*got '{name}'\. Did you mean '{meant}'"
    ):
        make_encoder(name, ROWS)


@pytest.mark.parametrize("spec", [3, None, PCA])
def test_what_is_no_encoder_is_refused(spec):
    with pytest.raises(ParameterError, match="encoder must be"):
        make_encoder(spec, ROWS)


@pytest.mark.parametrize(
    "settings",
    [{"n_components": 0}, {"dispersion_weight": -1}, {"smoothness_weight": np.nan}],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        make_encoder("mlp", ROWS, **settings)


def auto(table):
    rows = read_rows(table)
    X = TableEncoder().fit(rows).transform(rows)
    return make_encoder("auto", rows, n_components=8).fit(X, None, RNG), X


MIXED = Z * 10.0 ** np.arange(6)
WIDE = np.random.default_rng(1).normal(size=(100, 70))


@pytest.mark.parametrize(
    ("table", "kind", "standardised", "said"),
    [
        (pd.DataFrame(MIXED), IdentityEncoder, False, "6 columns, no more than 64"),
        (Z, IdentityEncoder, False, "at the scale they have"),
        (MIXED, IdentityEncoder, True, "standardised"),
        (WIDE[:, :64], IdentityEncoder, False, "64 columns, no more than 64"),
        (WIDE[:, :65], PCAEncoder, False, "65 columns, more than 64: PCA"),
        (pd.DataFrame(WIDE), PCAEncoder, False, "at the scale they have"),
        (WIDE * 10.0 ** (np.arange(70) % 7), PCAEncoder, True, "standardised"),
        (sparse.csr_array(Z), PCAEncoder, False, "truncated SVD"),
        (WIDE[:, :64].reshape(100, 8, 8), PCAEncoder, False, "images of 64 numbers"),
    ],
)
def test_auto_picks_by_the_input_and_says_why(table, kind, standardised, said):
    encoder, X = auto(table)
    assert type(encoder.chosen) is kind
    assert encoder.chosen.standardise is standardised
    assert said in encoder.reason
    assert not encoder.supervised
    assert len(encoder.transform(X)) == 100


@pytest.mark.parametrize("name", ["auto", "pca", "identity", "linear"])
@pytest.mark.parametrize(
    "table", [Z, MIXED, WIDE, sparse.csr_array(Z), WIDE.reshape(100, 7, 10)]
)
def test_encoders_survive_json_and_arrays(name, table):
    rows = read_rows(table)
    encoder = make_encoder(name, rows, n_components=4).fit(rows.table, y, RNG)
    settings, arrays = encoder.state()
    again = encoder_from_state(json.loads(json.dumps(settings)), arrays)
    assert (again.transform(rows.table) == encoder.transform(rows.table)).all()
    assert again.supervised == encoder.supervised
    assert getattr(again, "reason", "") == getattr(encoder, "reason", "")


def test_an_encoder_of_yours_must_be_handed_in_again():
    settings, arrays = make_encoder(PCA(2), ROWS).state()
    with pytest.raises(DataError, match=r"got your own PCA\. Pass it again as encoder="):
        encoder_from_state(settings, arrays)


@pytest.mark.parametrize("name", ["auto", "pca", "identity"])
def test_unsupervised_encoders_give_the_same_vectors_whatever_the_labels(name):
    one = make_encoder(name, ROWS).fit(Z, y, np.random.default_rng(0)).transform(Z)
    two = make_encoder(name, ROWS).fit(Z, 1 - y, np.random.default_rng(0)).transform(Z)
    assert (one == two).all()
