"""Texts of Arrow → hashes: by content alone, wherever and in whatever company they lie."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcdv.dataset.levels import hashed_texts, levels_of

TEXTS = ["", "a", "12345678", "123456789", "ü", "a\0", "b" * 40, "b" * 41, "=", "1" * 16]


def cell_hashes(rows: pa.Table | pd.DataFrame) -> np.ndarray:
    codes, hashed = levels_of(rows, "t")
    return hashed[codes]


def test_texts_that_differ_have_hashes_that_differ():
    rng = np.random.default_rng(0)
    many = pa.array([*TEXTS, *{f"{k:08x}" for k in rng.integers(2**32, size=50_000)}])
    assert len(np.unique(hashed_texts(many))) == len(many)


def test_hashes_fill_buckets_evenly():
    hashed = hashed_texts(pa.array([f"{k:08x}" for k in range(2**16)]))
    count = np.bincount((hashed % np.uint64(256)).astype(int), minlength=256)
    assert abs(count - 256).max() < 6 * 16  # Poisson: a deviation of 16


@given(st.lists(st.text(max_size=20), max_size=12), st.integers(0, 3))
def test_a_text_has_its_hash_in_any_array(texts, skipped):
    whole = pa.array(["before", *texts, "after"])[1:-1]
    alone = [hashed_texts(pa.array([text]))[0] for text in texts]
    assert list(hashed_texts(whole)) == alone
    rest = whole.cast(pa.large_string())[skipped:]
    assert list(hashed_texts(rest)) == alone[skipped:]


@pytest.mark.parametrize("kind", ["plain", "dictionary", "large", "chunks", "frame"])
def test_cells_read_alike_however_they_are_held(kind):
    cells = ["b", None, "a", "", "b", "longer than a word"]
    expected = cell_hashes(pa.table({"t": pa.array(cells)}))
    column = pa.array(cells)
    held = {
        "plain": column,
        "dictionary": pa.array([*cells, "z"]).dictionary_encode()[:-1],
        "large": column.cast(pa.large_string()),
        "chunks": pa.chunked_array([column[:2], column[2:]]),
    }
    rows = pd.DataFrame({"t": cells}) if kind == "frame" else pa.table({"t": held[kind]})
    assert np.array_equal(cell_hashes(rows), expected)
    assert expected[0] == expected[4]
    assert len(set(expected.tolist())) == 5


@pytest.mark.parametrize("gaps", [False, True])
def test_only_the_levels_that_occur_are_hashed(gaps):
    many = pa.array([f"level {k}" for k in range(1000)])
    own = [999, None, 3, 999] if gaps else [999, 5, 3, 999]
    column = pa.DictionaryArray.from_arrays(pa.array(own, pa.int32()), many)
    codes, hashed = levels_of(pa.table({"t": column}), "t")
    assert len(hashed) == 4 - gaps
    texts = [None if k is None else f"level {k}" for k in own]
    plain = cell_hashes(pa.table({"t": pa.array(texts)}))
    assert np.array_equal(hashed[codes], plain)


def test_a_column_of_nothing_is_missing_throughout():
    rows = pa.table({"t": pa.nulls(3)})
    gap = cell_hashes(pa.table({"t": pa.array(["x", None])}))[1]
    assert list(cell_hashes(rows)) == [gap] * 3
