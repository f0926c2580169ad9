"""Explanations: one row's value taken apart, in text and as plain data."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from fits import flipped, quick, two_classes
from hcdv.errors import ParameterError

X, CLEAN = two_classes(120, noise=0.0)
Y, WRONG = flipped(CLEAN, 0.1, np.random.default_rng(0))
NAMES = np.array(["cat", "dog"])[Y]
IDS = np.array([f"r{i:03}" for i in np.random.default_rng(1).permutation(120)])


@pytest.fixture(scope="module")
def v():
    return quick().fit(X, NAMES, ids=IDS)


def test_value_parts_and_rank_are_those_of_the_run(v):
    for i in (0, 57, 119):
        told = v.explain(i)
        assert (told.row, told.id) == (i, IDS[i])
        assert told.value == v.values_[i]
        assert told.stderr == v.stderr_[i]
        assert told.parts == {name: part[i] for name, part in v.parts_.items()}
        assert sum(told.parts.values()) == pytest.approx(told.value, abs=1e-12)
    best = v.explain(int(np.argmax(v.values_)))
    worst = v.explain(int(np.argmin(v.values_)))
    assert (best.rank, worst.rank, worst.n_rows) == (1, 120, 120)


def test_the_path_runs_from_the_whole_set_to_the_rows_leaf(v):
    for i in (0, 57):
        path = v.explain(i).path
        assert path[0]["id"] == 0
        assert path[0]["size"] == 120
        assert path[-1]["id"] == v.tree_.leaf_of_row[i]
        assert [step["level"] for step in path] == list(range(len(path)))
        for step in path:
            assert i in v.tree_.rows(step["id"])
            assert step["value"] == pytest.approx(v.coalitions_["value"][step["id"]])


def test_neighbours_are_the_nearest_of_each_side_and_never_the_row_itself(v):
    told = v.explain(5)
    cosine = v.embedding_ @ v.embedding_[5]
    same, other = np.isin(NAMES, NAMES[5]), np.arange(120) != 5
    for near, side in ((told.supporters, same & other), (told.opponents, ~same)):
        expected = np.flatnonzero(side)[np.argsort(-cosine[side])][:5]
        assert [n["row"] for n in near] == expected.tolist()
        assert all(n["label"] == NAMES[n["row"]] for n in near)
        assert all(n["value"] == v.values_[n["row"]] for n in near)


def test_a_wrong_label_is_called_doubted_and_a_right_one_supported(v):
    first = int(v.suspects(1)["row"][0])
    assert WRONG[first]
    label = v.explain(first).label
    assert label["is_suspect"]
    assert label["given"] == NAMES[first]
    assert label["suggested"] != NAMES[first]
    assert f"label {NAMES[first]} is doubted" in str(v.explain(first))
    last = int(v.suspects()["row"].iloc[-1])
    assert f"label {NAMES[last]} is supported" in str(v.explain(last))


def test_the_text_reads_from_value_to_neighbours(v):
    lines = str(v.explain(5)).splitlines()
    assert lines[0].startswith(f"row 5 (id {IDS[5]}): value ")
    assert "made of utility " in lines[1]
    assert lines[-2].strip().startswith("nearest rows with same label: ")
    assert repr(v.explain(5)) == str(v.explain(5))


def test_the_data_of_an_explanation_are_plain(v):
    told = json.loads(json.dumps(v.explain(5).to_dict()))
    assert told["row"] == 5
    assert set(told) >= {"value", "parts", "label", "path", "supporters", "opponents"}
    numbers = quick().fit(pd.DataFrame(X), X[:, 0] + 0.1).explain(np.int64(3))
    json.dumps(numbers.to_dict())


def test_a_class_of_one_row_has_no_supporters():
    y = (np.arange(40) == 7).astype(int)
    told = quick().fit(X[:40], y).explain(7)
    assert told.supporters == []
    assert "nearest rows with same label: none" in str(told)


@pytest.mark.parametrize("i", [-1, 120, 1.0, "r001", None])
def test_a_row_that_is_not_there_is_refused(v, i):
    with pytest.raises(ParameterError, match="i must be a row number from 0 to 119, got"):
        v.explain(i)
