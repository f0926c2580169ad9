"""Data sets come from the folder first, then from OpenML, or it is said what to do."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from hcdv.bench import datasets as stand
from hcdv.errors import DataError

CENSUS = pd.DataFrame(
    {
        "age": [30, 40, 50],
        "sex": ["Male", "Female", "Male"],
        "income": ["<=50K", ">50K", "<=50K"],
        "split": ["train", "train", "test"],
        "label": [0, 1, 0],
    }
)


@pytest.fixture(autouse=True)
def no_folder_named(monkeypatch):
    monkeypatch.delenv(stand.FOLDER, raising=False)


def no_network(**_: object) -> None:
    raise OSError("unreachable")


def test_the_folder_comes_before_openml(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    CENSUS.to_parquet(tmp_path / "adult.parquet")
    found = stand.load("adult", tmp_path)
    assert list(found.X) == ["age", "sex"]
    assert found.y.tolist() == [0, 1, 0]


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    CENSUS.to_parquet(tmp_path / "adult.parquet")
    monkeypatch.setenv(stand.FOLDER, str(tmp_path))
    assert stand.load("adult").y.tolist() == [0, 1, 0]


def test_images_are_read_from_the_files_as_published(tmp_path):
    images = np.arange(3 * 784, dtype=np.uint8).reshape(3, 28, 28)
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    for part, held, offset in (
        ("train-images-idx3", images[:2], 16), ("t10k-images-idx3", images[2:], 16),
        ("train-labels-idx1", np.array([4, 7], np.uint8), 8),
        ("t10k-labels-idx1", np.array([9], np.uint8), 8),
    ):  # fmt: skip
        path = folder / f"{part}-ubyte.gz"
        path.write_bytes(gzip.compress(bytes(offset) + held.tobytes()))
    found = stand.load("fashion-mnist", tmp_path)
    assert np.array_equal(found.X, images)
    assert found.y.tolist() == [4, 7, 9]


def test_what_the_folder_lacks_is_fetched_from_openml(tmp_path, monkeypatch):
    asked = []

    def fetched(data_id: int, *, as_frame: bool, parser: str) -> Bunch:
        asked.append(data_id)
        if as_frame:
            return Bunch(data=CENSUS[["age"]], target=CENSUS["income"].astype("category"))
        return Bunch(data=np.full((2, 784), 7.0), target=np.array(["3", "0"], dtype=object))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetched)
    census, clothes = stand.load("adult", tmp_path), stand.load("fashion-mnist")
    assert census.y.tolist() == [0, 1, 0]
    assert clothes.X.shape == (2, 28, 28)
    assert clothes.X.dtype == np.uint8
    assert clothes.y.tolist() == [3, 0]
    assert asked == [stand.OPENML["adult"], stand.OPENML["fashion-mnist"]]


@pytest.mark.parametrize("name", list(stand.OPENML))
def test_without_folder_and_network_both_ways_out_are_told(name, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    with pytest.raises(DataError, match=rf"{name} must be .* --data or HCDV_DATA"):
        stand.load(name)


@pytest.mark.parametrize("name", list(stand.EMBEDDINGS))
def test_embeddings_are_in_the_folder_or_nowhere(name, tmp_path):
    with pytest.raises(DataError, match=f"{tmp_path} does not hold it"):
        stand.load(name, tmp_path)
    emb = np.ones((2, 3), dtype=np.float16)
    np.savez(tmp_path / f"{name}_any.npz", emb=emb, label=[1, 0])
    assert stand.load(name, tmp_path).y.tolist() == [1, 0]


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(DataError, match="--data must be a folder"):
        stand.data_folder(tmp_path / "nowhere")
