"""In OpenDataVal's harness as outside of it: the same rows get the same values."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.datasets import load_iris

from hcdv import HCDV
from hcdv.errors import MissingExtra

ROOT = Path(__file__).resolve().parents[2]
THEIRS = os.environ.get("HCDV_PEERS")  # the Python of an environment with opendataval
BRIDGE = "hcdv.integrations.opendataval"
QUICK = {"n_contexts": 16, "n_permutations": 4, "utility": "linear"}


def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    return X[order[:100]], y[order[:100]], X[order[100:]], y[order[100:]]


class Tensor:
    """What the bridge asks of a tensor."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def numpy(self, force=False):
        assert force  # it may be on a device, or in a graph
        return self.array


class Rows:
    """A data set that gives its rows one by one."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return len(self.array)

    def __getitem__(self, i):
        return Tensor(self.array[i])


class DataEvaluator:
    """What OpenDataVal's base class does to its children."""

    def __init__(self, random_state=None):
        self.random_state = np.random.RandomState(random_state)

    def train(self, x_train, y_train, x_valid, y_valid, **settings):
        self.x_train, self.y_train = x_train, y_train
        self.x_valid, self.y_valid = x_valid, y_valid
        self.train_data_values(**settings)
        return self

    @property
    def data_values(self):
        return self.evaluate_data_values()


class ModelLessMixin:
    def embeddings(self, *tensors):
        if self.embedding_model is None:
            return tensors
        return tuple(self.embedding_model(tensor) for tensor in tensors)


@pytest.fixture
def bridge(monkeypatch):
    """The bridge, built on the stand-in."""
    stand_in, dataval = ModuleType("opendataval"), ModuleType("opendataval.dataval")
    dataval.DataEvaluator, dataval.ModelLessMixin = DataEvaluator, ModelLessMixin
    monkeypatch.setitem(sys.modules, "opendataval", stand_in)
    monkeypatch.setitem(sys.modules, "opendataval.dataval", dataval)
    monkeypatch.delitem(sys.modules, BRIDGE, raising=False)
    yield importlib.import_module(BRIDGE)
    sys.modules.pop(BRIDGE, None)


def test_values_in_the_harness_are_those_outside(bridge):
    X, y, X_val, y_val = iris()
    evaluator = bridge.HCDVEvaluator(random_state=3, **QUICK)
    one_hot = np.eye(3)
    evaluator.train(
        Tensor(X), Tensor(one_hot[y]), Tensor(X_val), Tensor(one_hot[y_val]), epochs=5
    )
    alone = HCDV(random_state=3, **QUICK).fit(X, y, X_val, y_val)
    np.testing.assert_array_equal(evaluator.data_values, alone.values_)


def test_rows_may_come_one_by_one_with_more_axes_and_through_an_embedding(bridge):
    X, y, X_val, y_val = iris()
    squares = bridge.HCDVEvaluator(
        random_state=0, embedding_model=lambda rows: Rows(2 * rows.array), **QUICK
    )
    train, valid = Rows(X.reshape(-1, 2, 2)), Rows(X_val.reshape(-1, 2, 2))
    squares.train(train, Tensor(np.eye(3)[y]), valid, Tensor(np.eye(3)[y_val]))
    alone = HCDV(random_state=0, **QUICK).fit(2 * X, y, 2 * X_val, y_val)
    np.testing.assert_array_equal(squares.data_values, alone.values_)


def test_a_single_column_of_targets_is_taken_as_numbers(bridge):
    X, _, X_val, _ = iris()
    target, target_val = X[:, :1] + X[:, 1:2], X_val[:, :1] + X_val[:, 1:2]
    evaluator = bridge.HCDVEvaluator(random_state=0, **QUICK)
    evaluator.train(Tensor(X), Tensor(target), Tensor(X_val), Tensor(target_val))
    alone = HCDV(random_state=0, **QUICK)
    alone.fit(X, target.ravel(), X_val, target_val.ravel())
    np.testing.assert_array_equal(evaluator.data_values, alone.values_)


def test_without_opendataval_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendataval", None)
    monkeypatch.delitem(sys.modules, BRIDGE, raising=False)
    with pytest.raises(MissingExtra, match="which is not installed"):
        importlib.import_module(BRIDGE)


IN_THE_HARNESS = """
import sys
import numpy as np
from opendataval.dataloader import DataFetcher
from opendataval.dataval import RandomEvaluator
from opendataval.experiment import ExperimentMediator, noisy_detection
from opendataval.model import ModelFactory
from hcdv.integrations.opendataval import HCDVEvaluator

with np.load(sys.argv[1]) as rows:
    X, y, X_val, y_val, wrong = (rows[name] for name in ("X", "y", "X_val", "y_val", "wrong"))
hot = np.eye(3)
fetcher = DataFetcher.from_data_splits(
    X, hot[y], X_val, hot[y_val], X_val, hot[y_val], one_hot=True, random_state=0
)
fetcher.noisy_train_indices = np.flatnonzero(wrong)
mediator = ExperimentMediator(fetcher, ModelFactory("sklogreg", fetcher), raises_error=True)
mediator.compute_data_values([HCDVEvaluator(random_state=3), RandomEvaluator(0)])
found = mediator.evaluate(noisy_detection)
f1 = found.loc[[name for name in found.index if "HCDV" in name], "kmeans_f1"]
np.savez(sys.argv[2], values=mediator.data_evaluators[0].data_values, f1=float(f1.iloc[0]))
"""


if THEIRS:

    def test_in_the_installed_harness_the_values_are_those_outside(tmp_path):
        from hcdv.bench.detection import cluster_f1

        X, y, X_val, y_val = iris()
        X, X_val = X.astype(np.float32), X_val.astype(np.float32)
        wrong = np.arange(100) % 10 == 0
        y = np.where(wrong, (y + 1) % 3, y)
        rows, values = tmp_path / "rows.npz", tmp_path / "values.npz"
        np.savez(rows, X=X, y=y, X_val=X_val, y_val=y_val, wrong=wrong)
        stub = ROOT / "benchmarks" / "peers" / "torchvision_stub"
        path = os.pathsep.join([str(ROOT / "src"), str(stub)])
        done = subprocess.run(
            [THEIRS, "-c", IN_THE_HARNESS, str(rows), str(values)],
            env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        alone = HCDV(random_state=3).fit(X, y, X_val, y_val)
        with np.load(values) as found:
            np.testing.assert_allclose(found["values"], alone.values_, rtol=1e-6, atol=1e-9)
            assert found["f1"] == pytest.approx(cluster_f1(alone.values_, wrong))
