"""What is saved comes back equal, whatever it was; nothing that is loaded can run code."""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from hcdv import HCDV, StoreError
from hcdv.embedding.neural import NeuralEncoder
from hcdv.errors import ParameterError
from hcdv.store import read_about, saving
from hcdv.valuation.utility import LeastSquares, Neighbours

RNG = np.random.default_rng(7)
N = 48
Y = np.arange(N) % 3
X = pd.DataFrame({"a": RNG.normal(size=N) + Y, "b": RNG.normal(size=N)})
X_VAL, Y_VAL = X[::4] + 0.1, Y[::4]
NAMES = [f"k{7 * i % N:02}" for i in range(N)]
FAST = {
    "n_contexts": 8, "n_permutations": 2, "leaf_size": 12, "branching": 3, "random_state": 0,
    "utility": LeastSquares(n_features=8),
}  # fmt: skip


def fitted(X=X, y=Y, *validation, ids=None, sample_weight=None, **settings) -> HCDV:
    model = HCDV(**{**FAST, **settings})
    return model.fit(X, y, *validation, ids=ids, sample_weight=sample_weight)


def assert_equal(one: HCDV, other: HCDV) -> None:
    assert np.array_equal(one.values_, other.values_)
    assert np.array_equal(one.stderr_, other.stderr_)
    assert np.array_equal(one.embedding_, other.embedding_)
    assert np.array_equal(one.ids_, other.ids_)
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame())
    pd.testing.assert_frame_equal(one.coalitions_, other.coalitions_)
    pd.testing.assert_frame_equal(one.suspects(), other.suspects())
    for how in ("top", "quota"):
        assert np.array_equal(one.select(0.3, how), other.select(0.3, how))
    assert str(one.explain(5)) == str(other.explain(5))
    assert (one.surplus_, one.notes_) == (other.surplus_, other.notes_)
    assert one.checks_ == other.checks_


@pytest.fixture(scope="module")
def model() -> HCDV:
    return fitted()


@pytest.fixture
def folder(model, tmp_path):
    return model.save(tmp_path / "run")


CASES = {
    "arrays": lambda: fitted(X.to_numpy()),
    "validation": lambda: fitted(X, Y, X_VAL, Y_VAL),
    "text labels": lambda: fitted(X, np.array(["a", "bb", "é"])[Y]),
    "text labels of objects": lambda: fitted(X, np.array(["a", "bb", "é"], object)[Y]),
    "boolean labels": lambda: fitted(X, Y > 0),
    "dates as labels": lambda: fitted(X, np.array(["2020", "2021", "2022"], "M8[D]")[Y]),
    "numbers to predict": lambda: fitted(X, X["a"].to_numpy() ** 2, X_VAL, X_VAL["a"] ** 2),
    "names of rows": lambda: fitted(ids=NAMES),
    "weights": lambda: fitted(sample_weight=RNG.random(N)),
    "groups": lambda: fitted(groups=np.arange(N) // 6, branching=["classes", 3]),
    "times": lambda: fitted(time=pd.date_range("2024-01-01", periods=N).to_numpy()),
    "a supervised encoder": lambda: fitted(encoder="linear"),
    "gaps and categories": lambda: fitted(
        X.assign(a=X["a"].where(X["b"] > -1), c=list("pqr") * 16)
    ),
    "neighbours": lambda: fitted(utility=Neighbours(k=3)),
    "fourier features": lambda: fitted(
        utility=LeastSquares(features="fourier", n_features=8)
    ),
    "a linear probe": lambda: fitted(utility="linear"),
    "another semivalue": lambda: fitted(semivalue=("beta", 1, 4)),
    "the paper's method": lambda: fitted(method="paper"),
    "a metric of hits": lambda: fitted(metric="accuracy"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_run_does_all_that_the_saved_one_does(case, tmp_path):
    model = CASES[case]()
    loaded = HCDV.load(model.save(tmp_path / "run"))
    assert_equal(model, loaded)
    assert np.array_equal(model.select(0.2, "greedy"), loaded.select(0.2, "greedy"))
    assert_equal(model, HCDV.load(loaded.save(tmp_path / "again")))
    model.forget([0, 7])
    loaded.forget([0, 7])
    np.testing.assert_allclose(loaded.values_, model.values_, rtol=0, atol=1e-9)
    assert_equal(loaded, HCDV.load(loaded.save(tmp_path / "less")))


def test_a_run_some_rows_of_which_were_forgotten_is_saved_as_it_is_then(tmp_path):
    model = fitted(ids=NAMES).forget([3, 4, 20])
    assert_equal(model, HCDV.load(model.save(tmp_path / "run")))


def test_a_loaded_model_has_the_settings_and_the_encoders_of_the_saved_one(model, folder):
    loaded = HCDV.load(folder)
    assert loaded.get_params() == model.get_params()
    assert list(loaded.feature_names_in_) == ["a", "b"]
    assert loaded.n_features_in_ == 2
    assert np.array_equal(loaded.classes_, [0, 1, 2])
    assert loaded.encoder_.reason == model.encoder_.reason
    assert loaded.table_encoder_.state() == model.table_encoder_.state()


def test_the_loaded_encoder_gives_the_same_vectors(tmp_path):
    model = fitted(X.to_numpy(), encoder="pca")
    loaded = HCDV.load(model.save(tmp_path / "run"))
    rows = RNG.normal(size=(5, 2))
    assert np.array_equal(model.encoder_.transform(rows), loaded.encoder_.transform(rows))


def test_the_values_in_the_folder_are_those_of_the_model(model, folder):
    values = pd.read_parquet(folder / "values.parquet")
    pd.testing.assert_frame_equal(values, model.to_frame(), check_dtype=False)
    coalitions = pd.read_parquet(folder / "coalitions.parquet")
    pd.testing.assert_frame_equal(coalitions, model.coalitions_, check_dtype=False)


def test_run_json_says_what_was_done_in_strict_json(model, folder):
    def refuse(number: str) -> None:
        raise AssertionError(number)

    about = json.loads((folder / "run.json").read_text(), parse_constant=refuse)
    assert about["format"] == 1
    assert about["surplus"] == model.surplus_
    assert about["seed"] == 0
    assert about["settings"]["leaf_size"] == 12
    assert {"numpy", "scikit-learn", "python"} <= about["versions"].keys()
    assert about["checks"]["sum_error"] < 1e-12
    assert set(about["sha256"]) == {
        "values.parquet", "coalitions.parquet", "state.safetensors", "run.json",
    }  # fmt: skip


def test_the_seed_that_was_drawn_is_written_down(tmp_path):
    model = fitted(random_state=None)
    about = read_about(model.save(tmp_path / "run"))
    assert about["settings"]["random_state"] is None
    again = fitted(random_state=about["seed"])
    assert np.array_equal(again.values_, model.values_)


def test_a_model_of_the_users_own_is_named_and_not_saved(tmp_path):
    model = fitted(utility=LogisticRegression(), leaf_size=24)
    loaded = HCDV.load(model.save(tmp_path / "run"))
    assert_equal(model, loaded)
    with pytest.raises(
        StoreError, match=r"LogisticRegression\(\).*code of yours is not saved"
    ):
        loaded.forget([1])
    assert_equal(model, HCDV.load(loaded.save(tmp_path / "again")))
    with pytest.raises(ParameterError, match="utility must be"):
        loaded.fit(X, Y)


def test_an_encoder_of_the_users_own_is_named_and_not_saved(tmp_path):
    model = fitted(X.to_numpy(), encoder=PCA(2))
    loaded = HCDV.load(model.save(tmp_path / "run"))
    assert_equal(model, loaded)
    with pytest.raises(StoreError, match="your own PCA"):
        loaded.encoder_.transform(X.to_numpy())
    assert_equal(model, HCDV.load(loaded.save(tmp_path / "again")))


def test_a_network_is_kept_even_where_torch_is_missing(tmp_path, monkeypatch):
    rows = X.to_numpy(np.float32)
    model = fitted(rows)
    model.encoder_ = NeuralEncoder(n_components=3, n_epochs=1).fit(rows, Y, RNG)
    vectors = model.encoder_.transform(rows)
    model.save(tmp_path / "run")
    assert np.array_equal(HCDV.load(tmp_path / "run").encoder_.transform(rows), vectors)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        without = HCDV.load(tmp_path / "run")
        assert_equal(model, without)
        with pytest.raises(StoreError, match="torch"):
            without.encoder_.transform(rows)
        without.save(tmp_path / "again")
    assert np.array_equal(HCDV.load(tmp_path / "again").encoder_.transform(rows), vectors)


def test_settings_that_are_objects_come_back_as_their_names(tmp_path):
    model = fitted(time=np.arange(N))
    loaded = HCDV.load(model.save(tmp_path / "run"))
    assert loaded.time == "<not saved: ndarray of shape (48,)>"
    assert saving._setting(np.int64(3)) == 3
    assert saving._setting(float("nan")) == {"not_saved": "nan"}


def test_loading_reads_numbers_and_text_and_runs_nothing(folder, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a run folder was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    HCDV.load(folder)


def test_plain_data_has_neither_numpy_nor_what_json_lacks():
    given = {"a": np.float32(1), 2: (np.nan, np.arange(2)), "b": [True, None, np.bool_(0)]}
    assert saving.plain(given) == {"a": 1.0, "2": [None, [0, 1]], "b": [True, None, False]}
    assert saving.plain(np.datetime64("2024-01-31")) == "2024-01-31"
