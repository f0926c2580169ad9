"""Arrays of any kind come back from bytes as they were put."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hcdv.store.shelf import Shelf


def there_and_back(array: np.ndarray) -> np.ndarray:
    shelf = Shelf()
    shelf.put("it", array)
    return Shelf.from_bytes(shelf.to_bytes()).get("it", (None,) * array.ndim, "biufUSMm")


@given(
    hnp.arrays(
        st.one_of(
            hnp.integer_dtypes(endianness="?"), hnp.unsigned_integer_dtypes(),
            hnp.floating_dtypes(endianness="?", sizes=(32, 64)), hnp.boolean_dtypes(),
        ),
        hnp.array_shapes(min_dims=1, max_dims=3),
    )
)  # fmt: skip
def test_numbers_come_back_bit_for_bit(array):
    back = there_and_back(array)
    assert back.shape == array.shape
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")


@given(st.lists(st.text(st.characters(exclude_characters="\0")), min_size=1))
def test_text_of_any_script_comes_back(words):
    assert there_and_back(np.array(words)).tolist() == np.array(words).tolist()


@pytest.mark.parametrize("kind", ["M8[D]", "M8[ns]", ">M8[us]", "m8[s]", "S4"])
def test_dates_and_bytes_come_back(kind):
    array = np.array([1, 2, 30], dtype="i8").astype(kind)
    back = there_and_back(array)
    assert np.array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("<")


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1], np.s_[:, 1], np.s_[:, ::-1]])
def test_parts_of_other_arrays_are_kept_as_they_are_seen(view):
    array = np.arange(24.0).reshape(6, 4)[view]
    assert np.array_equal(there_and_back(array), array)
    assert np.array_equal(there_and_back(array.T), array.T)
    spread = np.broadcast_to(np.arange(3.0), (2, 3))
    assert np.array_equal(there_and_back(spread), spread)


def test_what_is_not_as_told_is_refused():
    shelf = Shelf()
    shelf.put("it", np.arange(4))
    with pytest.raises(ValueError, match="it is int64 of shape"):
        shelf.get("it", (5,), "i")
    with pytest.raises(ValueError, match="it is int64"):
        shelf.get("it", (4,), "f")
    with pytest.raises(ValueError, match="0 to 2"):
        shelf.index("it", (4,), 3)
    with pytest.raises(KeyError):
        shelf.get("other", (4,), "i")


def test_numbers_of_numpy_among_the_settings_are_written_as_numbers():
    shelf = Shelf()
    shelf.settings = {"a": np.float64(0.5), "b": np.int8(3), "c": float("inf")}
    back = Shelf.from_bytes(shelf.to_bytes())
    assert back.settings == {"a": 0.5, "b": 3, "c": float("inf")}
