"""Suspects: every row once, the most doubted first, with the label preferred."""

from __future__ import annotations

import numpy as np
import pytest

from fits import flipped, quick, row_scores, two_classes
from hcdv.errors import ParameterError

X, CLEAN = two_classes(120, noise=0.0)
Y, WRONG = flipped(CLEAN, 0.1, np.random.default_rng(0))


@pytest.fixture(scope="module")
def v():
    ids = np.random.default_rng(1).permutation(120)
    return quick().fit(X, Y, ids=ids)


def test_all_rows_are_told_once_most_suspicious_first(v):
    table = v.suspects()
    assert list(table.columns) == [
        "row", "score", "probability", "is_suspect", "given", "suggested",
    ]  # fmt: skip
    assert sorted(table["row"]) == list(range(120))
    assert table["score"].is_monotonic_decreasing
    assert table["probability"].is_monotonic_decreasing
    assert table["probability"].between(0, 1).all()
    assert table["given"].tolist() == Y[table["row"]].tolist()
    assert table.index.tolist() == list(range(120))


def test_some_rows_are_the_first_of_all(v):
    assert v.suspects(7).equals(v.suspects().head(7))
    assert len(v.suspects(1000)) == 120


def test_wrong_labels_come_first_and_get_the_right_one_suggested(v):
    found = v.suspects(12)
    assert WRONG[found["row"]].mean() >= 0.9
    right = found["suggested"].to_numpy() == CLEAN[found["row"]]
    assert right.mean() >= 0.9
    assert found["is_suspect"].mean() >= 0.9


def test_a_suspect_has_another_label_suggested_and_the_others_their_own(v):
    table = v.suspects()
    other = table["suggested"] != table["given"]
    assert other[table["is_suspect"]].all()
    assert (table.loc[table["is_suspect"], "score"] > 0).all()
    assert (table.loc[table["is_suspect"], "probability"] > 0.5).all()
    assert not table.loc[table["score"] <= 0, "is_suspect"].any()


def test_text_labels_come_back_as_they_were():
    names = np.array(["cat", "dog"])
    table = quick().fit(X, names[Y]).suspects()
    assert set(table["given"]) | set(table["suggested"]) <= {"cat", "dog"}
    assert np.array_equal(table["score"], quick().fit(X, Y).suspects()["score"])


def test_the_more_a_label_is_doubted_the_more_its_row_pays(v):
    table = v.suspects()
    for _, of_label in table.groupby("given"):  # each label is held against its own rate
        paid = v.parts_["consistency"][of_label["row"]]
        assert (np.diff(paid) >= -1e-15).all()
        assert paid[0] < 0 < paid[-1]
    assert v.parts_["consistency"].sum() == pytest.approx(0.0, abs=1e-12)


def test_the_chances_add_up_to_about_as_many_wrong_labels_as_there_are(v):
    assert v.suspects()["probability"].sum() == pytest.approx(WRONG.sum(), rel=0.5)


def test_suspects_are_told_where_consistency_has_no_part_in_the_values(v):
    without = quick(consistency_weight=0.0).fit(X, Y, ids=v.ids_)
    assert np.allclose(row_scores(without), row_scores(v), atol=1e-12)


@pytest.mark.parametrize("k", [0, -1, 1.5, "all"])
def test_a_number_of_rows_that_is_none_is_refused(v, k):
    with pytest.raises(
        ParameterError, match="k must be None or a number of rows from 1, got"
    ):
        v.suspects(k)
