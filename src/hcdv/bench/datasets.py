"""The real data sets of the tables: from a folder, or by scikit-learn from OpenML.

In the folder (`--data`, or the environment variable HCDV_DATA):
    adult.parquet                 the census columns, and `label`: 1 for more than 50K
    fashion-mnist/*-ubyte.gz      the four files as published
    NAME*.npz                     embeddings: `emb` (n, d) and `label` (n,)
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError

FOLDER = "HCDV_DATA"
EMBEDDINGS = {  # name → files of that set, the first that is there
    "bbc": "bbc*.npz",
    "imdb": "imdb*.npz",
    "cifar10": "cifar10*.npz",
}
OPENML = {"adult": 1590, "fashion-mnist": 40996}  # ids of the same tables there
NAMES = ("digits", "adult", "fashion-mnist", *EMBEDDINGS)
_FASHION = (
    "train-images-idx3",
    "t10k-images-idx3",
    "train-labels-idx1",
    "t10k-labels-idx1",
)


@dataclass(frozen=True)
class DataSet:
    """All rows of a set: a frame, vectors (n, d) or images (n, h, w), and class codes."""

    name: str
    X: Any
    y: NDArray[np.intp]

    @property
    def n_classes(self) -> int:
        """C."""
        return int(self.y.max()) + 1

    def rows(self, index: NDArray[np.intp]) -> tuple[Any, NDArray[np.intp]]:
        """Some of the rows."""
        X = self.X.iloc[index] if hasattr(self.X, "iloc") else self.X[index]
        return X, self.y[index]


def data_folder(given: Path | None) -> Path | None:
    """The folder asked for, or the environment's; None: there is none."""
    named = os.environ.get(FOLDER)
    folder = given if given is not None else Path(named) if named else None
    if folder is not None and not folder.is_dir():
        raise DataError(f"--data must be a folder, got {folder}. It holds the data sets.")
    return folder


def load(name: str, folder: Path | None = None) -> DataSet:
    """A data set by name, from the folder first."""
    if name not in NAMES:
        raise DataError(f"data must be one of {', '.join(NAMES)}, got {name}.")
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return DataSet(name, X, y.astype(np.intp))
    folder = data_folder(folder)
    found = None if folder is None else _from_folder(name, folder)
    return found if found is not None else _from_openml(name, folder)


def _from_folder(name: str, folder: Path) -> DataSet | None:
    """The set, or None where its files are not there."""
    if name == "adult":
        path = folder / "adult.parquet"
        return _adult_file(path) if path.exists() else None
    if name == "fashion-mnist":
        paths = [folder / name / f"{part}-ubyte.gz" for part in _FASHION]
        return _fashion_files(paths) if all(path.exists() for path in paths) else None
    paths = sorted(folder.glob(EMBEDDINGS[name]))
    if not paths:
        return None
    with np.load(paths[0], allow_pickle=False) as held:
        X, y = held["emb"].astype(np.float32), held["label"].astype(np.intp)
    return DataSet(name, X, y)


def _adult_file(path: Path) -> DataSet:
    import pandas as pd

    table = pd.read_parquet(path)
    y = table["label"].to_numpy().astype(np.intp)
    return DataSet("adult", table.drop(columns=["income", "split", "label"]), y)


def _fashion_files(paths: list[Path]) -> DataSet:
    parts = [
        np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=offset)
        for path, offset in zip(paths, (16, 16, 8, 8), strict=True)
    ]
    X = np.concatenate(parts[:2]).reshape(-1, 28, 28)
    return DataSet("fashion-mnist", X, np.concatenate(parts[2:]).astype(np.intp))


def _from_openml(name: str, folder: Path | None) -> DataSet:
    where = "no data folder is named" if folder is None else f"{folder} does not hold it"
    way_out = f"Name a folder that does with --data or {FOLDER}"
    if name not in OPENML:
        raise DataError(f"{name} must be in the data folder, got none: {where}. {way_out}.")
    from sklearn.datasets import fetch_openml

    try:
        got = fetch_openml(data_id=OPENML[name], as_frame=name == "adult", parser="auto")
    except Exception as error:
        raise DataError(
            f"{name} must be in the data folder or on OpenML, got neither: {where}, and "
            f"OpenML did not answer ({type(error).__name__}). {way_out}."
        ) from error
    labels = np.asarray(got.target).astype(str)
    if name == "adult":
        return DataSet(name, got.data, (labels == ">50K").astype(np.intp))
    X = np.asarray(got.data, dtype=np.uint8).reshape(-1, 28, 28)
    return DataSet(name, X, labels.astype(np.intp))
