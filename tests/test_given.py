"""Rows as they were given come back by id, whatever came and went since."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from fits import quick
from hcdv import DataError
from hcdv.embedding.rows import Rows, read_rows
from hcdv.given import MOST_COLUMNS, Given, Part, part_of, pixels

FRAME = pd.DataFrame({"age": [30, 41, 28, 55], "job": ["a", None, "c", "a"]})


def parts():
    first = Part(np.array([10, 11, 12]), FRAME.iloc[:3])
    return first, Part(np.array([13, 11]), FRAME.iloc[[3, 0]])


def test_rows_come_back_in_the_order_asked():
    found = Given.of(parts()[0]).rows(np.array([12, 10]))
    assert found.table["age"].tolist() == [28, 30]
    assert found.ids.tolist() == [12, 10]


def test_of_an_id_that_came_twice_the_later_row_counts():
    first, later = parts()
    found = Given.of(first).joined(later).rows(np.array([11, 13, 10, 12]))
    assert found.table["age"].tolist() == [30, 55, 30, 28]


def test_rows_that_went_cannot_be_asked_for():
    first, later = parts()
    given = Given.of(first).without(np.array([11]))
    with pytest.raises(DataError, match="got 11"):
        given.rows(np.array([11]))
    assert given.joined(later).rows(np.array([11])).table["age"].tolist() == [30]


def test_what_came_before_is_left_as_it_was():
    first, later = parts()
    given = Given.of(first)
    given.joined(later)
    given.without(first.ids)
    assert given.rows(first.ids).table["age"].tolist() == [30, 41, 28]


def test_plain_arrays_get_names_and_are_copied():
    X = np.arange(6.0).reshape(3, 2)
    part = part_of(read_rows(X), np.arange(3))
    X[:] = -1
    assert part.table.columns.tolist() == ["x0", "x1"]
    assert part.table["x1"].tolist() == [1, 3, 5]


def test_what_nobody_would_read_is_not_kept():
    ids = np.arange(2)
    wide = np.zeros((2, MOST_COLUMNS + 1))
    assert part_of(Rows(sparse=csr_array(np.eye(2))), ids) is None
    assert part_of(read_rows(wide), ids) is None
    assert part_of(read_rows(pd.DataFrame(wide)), ids) is None


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (np.array([[[0.0, 255.0]]]), [[[0, 255]]]),
        (np.array([[[0.0, 1.0]]]), [[[0, 255]]]),
        (np.array([[[-1.0, 1.0]]]), [[[0, 255]]]),
        (np.array([[[16.0, 8.0]]]), [[[16, 8]]]),
        (np.zeros((1, 1, 2)), [[[0, 0]]]),
    ],
)
def test_images_become_bytes(images, expected):
    assert pixels(images).tolist() == expected
    assert pixels(images).dtype == np.uint8


def test_images_have_their_channels_last_and_only_those_that_can_be_shown():
    rng = np.random.default_rng(0)
    assert pixels(rng.random((2, 3, 4, 5))).shape == (2, 4, 5, 3)
    assert pixels(rng.random((2, 4, 5, 3))).shape == (2, 4, 5, 3)
    assert pixels(rng.random((2, 7, 4, 5))).shape == (2, 4, 5)


def test_a_fit_keeps_its_rows_and_updates_follow():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "n": np.arange(60)})
    y = (frame["x"] > 0).to_numpy().astype(int)
    v = quick().fit(frame[:50], y[:50], ids=np.arange(50)[::-1])
    assert v.given_.rows(v.ids_).table["n"].tolist() == list(range(50))
    v.partial_fit(frame[50:], y[50:])
    v.forget([0, 55])
    shown = v.given_.rows(v.ids_).table["n"].tolist()
    assert shown == [n for n in range(60) if n not in {0, 55}]
    with pytest.raises(DataError, match="forgotten are gone"):
        v.given_.rows(np.array([49]))


def test_rows_out_of_age_are_not_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    v = quick(max_rows=40).fit(X[:40], y[:40])
    v.partial_fit(X[40:], y[40:])
    assert sum(len(part.ids) for part in v.given_.parts) == 40
    assert np.array_equal(v.given_.rows(v.ids_).table.to_numpy(), X[20:])


def test_a_fitted_model_can_still_be_pickled():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    again = pickle.loads(pickle.dumps(quick().fit(X, y)))
    assert np.array_equal(again.given_.rows(again.ids_).table.to_numpy(), X)


def test_parts_that_come_one_by_one_are_put_together():
    given = Given.of(Part(np.arange(100), pd.DataFrame({"n": np.arange(100)})))
    for n in range(100, 200):
        given = given.joined(Part(np.array([n]), pd.DataFrame({"n": [n]})))
    assert len(given.parts) < 10
    assert given.rows(np.array([3, 199, 100])).table["n"].tolist() == [3, 199, 100]


def test_what_a_long_history_leaves_is_the_rows_that_are_there():
    given = Given.of(Part(np.arange(10), pd.DataFrame({"n": np.arange(10)})))
    for n in range(10, 300):
        given = given.joined(Part(np.array([n]), pd.DataFrame({"n": [n]})))
        given = given.without(np.array([n - 10]))
    assert sum(len(part.ids) for part in given.parts) == 10
    assert given.gone is None


def test_columns_that_are_all_missing_in_a_part_are_put_together_without_a_warning():
    first, later = parts()
    empty = pd.DataFrame({"job": [None], "age": [np.nan]})
    given = Given.of(later).joined(Part(np.array([14]), empty)).joined(first)
    assert given.rows(np.array([14])).table.columns.tolist() == ["age", "job"]
    assert pd.isna(given.rows(np.array([14, 13])).table["age"]).tolist() == [True, False]


def test_rows_of_another_kind_are_not_joined():
    given = Given.of(parts()[0])
    image = Part(np.array([9]), np.zeros((1, 2, 2), dtype=np.uint8))
    assert given.joined(image) is given
    assert given.joined(None) is given
