"""Training raises the objective, repeats under its seed, and leaves torch as it was."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from hcdv.embedding.encoders import encoder_from_state
from hcdv.embedding.neural import NeuralEncoder
from hcdv.errors import DataError, MissingExtra, ParameterError


def digits(n=300):
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


def trained(network="mlp", seed=0, n=300, **settings):
    X, y = digits(n)
    X = X.reshape(-1, 8, 8) if network == "conv" else X
    settings = {"n_epochs": 3, "n_hidden": 32, "batch_size": 64, **settings}
    encoder = NeuralEncoder(network, 8, **settings)
    return encoder.fit(X, y, np.random.default_rng(seed)), X, y


@pytest.mark.parametrize("network", ["mlp", "conv"])
def test_the_objective_rises_in_a_small_run(network):
    encoder, _, _ = trained(network, n_epochs=6)
    found = [epoch["objective"] for epoch in encoder.history_]
    assert found[-1] > found[0] + 0.1
    assert encoder.history_[-1]["utility"] > encoder.history_[0]["utility"]


def test_a_trained_embedding_parts_rows_it_has_not_seen():
    encoder, X, y = trained(n=600, n_epochs=8)
    X_new, y_new = (part[600:900] for part in load_digits(return_X_y=True))
    old, new = encoder.transform(X), encoder.transform(X_new)
    old, new = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (old, new))
    nearest = y[(new @ old.T).argmax(axis=1)]
    assert (nearest == y_new).mean() > 0.8


@pytest.mark.parametrize("network", ["mlp", "conv"])
def test_the_same_seed_gives_the_same_weights_and_leaves_the_global_seed(network):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    (one, X, _), (two, _, _), (other, _, _) = (trained(network, seed) for seed in (0, 0, 1))
    assert (torch.random.get_rng_state() == before).all()
    assert (one.transform(X) == two.transform(X)).all()
    assert (one.transform(X) != other.transform(X)).any()


def test_training_stops_when_held_out_rows_no_longer_gain_and_keeps_the_best():
    encoder, _, _ = trained(n_epochs=40, patience=1, learning_rate=0.3)
    held_out = [epoch["held_out"] for epoch in encoder.history_]
    assert len(held_out) < 40
    assert encoder.best_epoch_ == int(np.argmax(held_out))
    assert len(held_out) == encoder.best_epoch_ + 2
    # Seen alone, the best epoch is the last: training that long gives the same weights.
    shorter, X, _ = trained(n_epochs=encoder.best_epoch_ + 1, patience=1, learning_rate=0.3)
    assert (encoder.transform(X) == shorter.transform(X)).all()


def test_a_given_validation_set_is_what_stops_training():
    X, y = digits()
    settings = {"n_epochs": 2, "n_hidden": 16}
    one = NeuralEncoder("mlp", 4, **settings)
    one.fit(X[:200], y[:200], np.random.default_rng(0), X[200:], y[200:])
    two = NeuralEncoder("mlp", 4, **settings)
    two.fit(X[:200], y[:200], np.random.default_rng(0), X[200:], y[200:][::-1])
    assert one.history_[0]["objective"] == two.history_[0]["objective"]
    assert one.history_[0]["held_out"] != two.history_[0]["held_out"]


def test_validation_labels_training_has_not_are_left_out():
    X, y = digits()
    encoder = NeuralEncoder("mlp", 4, n_epochs=1, n_hidden=16)
    encoder.fit(X[:200], y[:200], np.random.default_rng(0), X[200:], y[200:] + 100)
    assert "a tenth held out" in encoder.notes[-1]


@pytest.mark.parametrize("network", ["mlp", "conv"])
def test_a_trained_encoder_survives_json_and_arrays(network):
    encoder, X, _ = trained(network)
    settings, arrays = encoder.state()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    again = encoder_from_state(json.loads(json.dumps(settings)), arrays)
    assert (again.transform(X) == encoder.transform(X)).all()


def test_numeric_targets_are_binned_and_said_so():
    X, _ = digits()
    encoder = NeuralEncoder("mlp", 4, n_epochs=1).fit(
        X, X[:, 20] / 3, np.random.default_rng(0)
    )
    assert "quantile classes" in encoder.notes[0]


def test_convolutions_want_images():
    X, y = digits()
    with pytest.raises(DataError, match='encoder="mlp"'):
        NeuralEncoder("conv").fit(X, y, np.random.default_rng(0))


def test_too_few_rows_are_refused():
    X, y = digits(10)
    with pytest.raises(DataError, match="at least 16 rows to train on, got 10"):
        NeuralEncoder("mlp").fit(X, y, np.random.default_rng(0))


def test_an_unknown_network_is_refused():
    with pytest.raises(ParameterError, match="'mlp' or 'conv'"):
        NeuralEncoder("transformer")


def test_without_torch_the_install_line_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    expected = (
        'encoder="mlp" needs torch, which is not installed. '
        "Run pip install 'hcdv[torch]', or use encoder=\"linear\"."
    )
    with pytest.raises(MissingExtra) as error:
        NeuralEncoder("mlp").fit(*digits(50), np.random.default_rng(0))
    assert str(error.value) == expected
