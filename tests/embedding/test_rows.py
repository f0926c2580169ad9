"""Any table goes in as it is; what cannot be valued is refused before work starts."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse

from hcdv.embedding.rows import read_rows
from hcdv.errors import DataError


def test_plain_numbers_stay_an_array_of_floats():
    assert read_rows([[1, 2], [3, 4]]).array.dtype == np.float64
    assert read_rows(np.ones((3, 2), np.float32)).array.dtype == np.float32
    assert read_rows(np.ones((3, 2), bool)).array.tolist() == [[1.0, 1.0]] * 3
    assert read_rows(np.ones((3, 2), np.float16)).array.dtype == np.float32


def test_what_was_read_is_not_read_again():
    rows = read_rows(np.ones((3, 2)))
    assert read_rows(rows) is rows
    assert (len(rows), rows.kind) == (3, "array")


@pytest.mark.parametrize("shape", [(5, 8, 8), (5, 8, 8, 3), (5, 3, 8, 8)])
def test_images_keep_their_shape(shape):
    rows = read_rows(np.zeros(shape, np.uint8))
    assert rows.kind == "image"
    assert rows.array.shape == shape
    assert rows.array.dtype == np.float32


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
def test_sparse_matrices_stay_sparse(make):
    rows = read_rows(make(np.eye(4, dtype=np.int64)))
    assert rows.kind == "sparse"
    assert rows.sparse.toarray().tolist() == np.eye(4).tolist()


def test_polars_arrow_and_pandas_give_the_same_frame():
    columns = {"a": [1.0, None, 3.0], "s": ["x", None, "y"], "b": [True, False, None]}
    tables = [
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pl.DataFrame(columns).lazy(),
        pa.table(columns),
        pa.RecordBatch.from_pydict(columns),
        columns,
        [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ],
    ]
    for table in tables:
        frame = read_rows(table).frame
        assert list(frame.columns) == ["a", "s", "b"]
        assert frame.isna().to_numpy().tolist() == [
            [False, False, False],
            [True, True, False],
            [False, False, True],
        ]
        assert frame["a"].to_list()[::2] == [1.0, 3.0]


def test_anything_that_speaks_arrow_is_read_through_it():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"a": [1, 2]}).__arrow_c_stream__(requested_schema)

    assert read_rows(Stream()).frame["a"].to_list() == [1, 2]


def hugging_face(*bases, **members):
    """A stand-in of datasets' module name: the library is told by name, not imported."""
    kind = type("Dataset", bases, members)
    kind.__module__ = "datasets.arrow_dataset"
    return kind()


def test_a_hugging_face_dataset_becomes_a_frame_with_its_vectors_spread():
    frame = pd.DataFrame({"n": [1, 2], "emb": [[0.0, 1.0], [2.0, 3.0]]})
    rows = read_rows(hugging_face(to_pandas=lambda self: frame))
    assert list(rows.frame.columns) == ["n", "emb[0]", "emb[1]"]
    assert rows.frame["emb[1]"].to_list() == [1.0, 3.0]


def test_a_hugging_face_dict_of_splits_asks_for_one_of_them():
    with pytest.raises(DataError, match="Pick a split"):
        read_rows(hugging_face(dict))


class Pairs(torch.utils.data.Dataset):
    def __init__(self, x, y=None):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] if self.y is None else (self.x[i], self.y[i])


def test_torch_datasets_and_tensors_are_stacked_and_their_labels_kept():
    x, y = torch.arange(12.0).reshape(4, 3), torch.tensor([0, 1, 0, 1])
    assert read_rows(x).array.tolist() == x.tolist()
    assert read_rows(x.to(torch.bfloat16)).array.tolist() == x.tolist()
    assert read_rows(Pairs(x)).target is None
    for data in (Pairs(x, y), torch.utils.data.TensorDataset(x, y)):
        rows = read_rows(data)
        assert rows.array.tolist() == x.tolist()
        assert rows.target.tolist() == [0, 1, 0, 1]
    assert read_rows(Pairs(torch.zeros(4, 3, 8, 8), y)).kind == "image"


def test_a_torch_dataset_of_several_shapes_names_the_first_odd_row():
    with pytest.raises(DataError, match=r"\(3,\) at row 0 and \(2,\) at row 1"):
        read_rows(Pairs([torch.zeros(3), torch.zeros(2)]))


def test_a_loader_or_a_stream_of_torch_is_refused_with_a_way_out():
    loader = torch.utils.data.DataLoader(Pairs(torch.zeros(4, 3)))
    with pytest.raises(DataError, match=r"loader\.dataset"):
        read_rows(loader)


def test_mixed_plain_rows_become_a_frame_with_numbers_apart_from_text():
    for mixed in ([[1, "a"], [2, "b"]], np.array([[1, "a"], [2, "b"]], dtype=object)):
        frame = read_rows(mixed).frame
        assert frame.iloc[:, 0].dtype.kind == "i"
        assert frame.iloc[:, 1].to_list() == ["a", "b"]


def test_masked_cells_are_missing_cells():
    masked = np.ma.masked_invalid([[1.0, np.nan], [2.0, 3.0]])
    assert read_rows(masked).frame.isna().to_numpy().tolist() == [
        [False, True],
        [False, False],
    ]


def test_structured_arrays_keep_their_column_names():
    records = np.array([(1, 2.5)], dtype=[("a", int), ("b", float)])
    assert list(read_rows(records).frame.columns) == ["a", "b"]


REFUSED = {
    "one dimension": (np.arange(3.0), r"reshape\(-1, 1\)"),
    "a series": (pd.Series([1.0, 2.0]), "to_frame"),
    "five dimensions": (np.zeros((1, 1, 1, 1, 1)), "shape"),
    "no rows": (np.zeros((0, 3)), "at least one row"),
    "no columns": (np.zeros((3, 0)), "at least one row and one column"),
    "an empty frame": (pd.DataFrame({"a": []}), "at least one row"),
    "NaN": (np.array([[0.0, 1.0], [2.0, np.nan]]), r"NaN at row 1, column 1 \(1 such"),
    "infinity": (np.array([[0.0, np.inf]]), "infinity at row 0, column 1"),
    "minus infinity": (np.array([[0.0, -np.inf]]), "infinity at row 0, column 1"),
    "infinity in a sparse matrix": (sparse.csr_array([[np.inf, 0.0]]), "1 stored cells"),
    "complex numbers": (np.ones((2, 2), complex), "complex128"),
    "a path": ("data.csv", "Read the file first"),
    "ragged rows": ([[1.0], [1.0, 2.0]], "rows of one length"),
    "a number": (3.0, "shape"),
    "columns of one name": (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        "'a' more than once",
    ),
    "cells that are matrices": (pd.DataFrame({"m": [np.eye(2), np.eye(2)]}), "column 'm'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_with_what_was_seen(case):
    X, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        read_rows(X)


def test_opposite_infinities_do_not_hide_each_other():
    with pytest.raises(DataError, match="2 such cells"):
        read_rows(np.array([[np.inf, -np.inf]]))


def test_finite_cells_that_overflow_in_a_sum_are_let_through():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_rows(np.full((3, 2), 1.5e308)).array.shape == (3, 2)


def test_a_frame_with_tuple_column_names_gets_plain_ones():
    frame = pd.DataFrame(
        np.ones((2, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    )
    assert list(read_rows(frame).frame.columns) == ["a/1", "a/2"]
