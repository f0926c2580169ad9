"""A summary's facts are plain data, and its words say what they mean."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from hcdv import HCDV
from hcdv.apps.summary import facts, ranked_coalitions, suspects_text, text

N = 60
RNG = np.random.default_rng(4)
Y = np.arange(N) % 2
X = RNG.normal(size=(N, 2)) + 4 * (2 * Y[:, None] - 1)
FAST = {
    "n_contexts": 8,
    "n_permutations": 2,
    "leaf_size": 10,
    "branching": 3,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def model() -> HCDV:
    y = Y.copy()
    y[:3] = 1 - y[:3]
    return HCDV(**FAST).fit(X, y)


@pytest.fixture(scope="module")
def found(model) -> dict:
    return facts(model)


def test_facts_are_json_as_they_are(found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_parts_add_up_to_the_surplus(found):
    assert sum(found["surplus_parts"].values()) == pytest.approx(found["surplus"])


def test_best_and_worst_rows_and_coalitions_are_those_of_the_model(model, found):
    assert found["values"]["best_rows"][0] == int(np.argmax(model.values_))
    assert found["values"]["worst_rows"][0] == int(np.argmin(model.values_))
    leaves = ranked_coalitions(model)
    worth = [each["value_per_row"] for each in leaves]
    assert worth == sorted(worth, reverse=True)
    assert sum(each["size"] for each in leaves) == N
    assert found["best_coalitions"][0]["id"] == leaves[0]["id"]
    assert found["worst_coalitions"][0]["id"] == leaves[-1]["id"]


def test_planted_wrong_labels_are_told_with_what_they_should_be(found):
    assert {each["row"] for each in found["suspects"][:3]} == {0, 1, 2}
    said = text(found)
    for each in found["suspects"][:3]:
        assert f"{each['row']} ({each['given']}, rather {1 - each['given']})" in said


def test_every_line_begins_with_what_it_is_about(found):
    heads = {line[:14].strip() for line in text(found).splitlines()[1:]}
    expected = {"surplus", "values", "coalitions", "suspects", "checks", "notes"}
    assert expected <= heads


def test_no_coalitions_and_no_suspects_are_told_as_that():
    model = HCDV(**{**FAST, "branching": "flat"}).fit(X, Y)
    said = text(facts(model))
    assert "coalitions    none" in said
    assert "suspects      none" in said


def test_a_semivalue_that_does_not_add_up_says_so():
    said = text(facts(HCDV(**FAST, semivalue="banzhaf").fit(X, Y)))
    assert "banzhaf values need not add up to the surplus" in said


def test_numbers_to_predict_are_told_as_numbers():
    found = facts(HCDV(**FAST).fit(X, X[:, 0] ** 2))
    assert found["n_classes"] is None
    assert "a number to predict" in text(found)
    assert "share of the variance explained" in text(found)


def test_groups_with_names_are_shown_by_name():
    groups = np.array(["north", "south"])[Y]
    settings = {**FAST, "branching": ["groups"], "groups": groups}
    said = text(facts(HCDV(**settings).fit(X, np.arange(N) % 3)))
    assert "north" in said


def test_the_table_of_suspects_shows_ids_only_where_they_are_not_the_rows(model):
    frame = model.suspects(3)
    frame.insert(1, "id", frame["row"])
    assert "id" not in suspects_text(frame, 0).splitlines()[0].split()
    frame["id"] = ["x", "y", "z"]
    shown = suspects_text(frame, 1_200)
    assert "id" in shown.splitlines()[0].split()
    assert "… 1,200 more" in shown
    assert suspects_text(pd.DataFrame(), 0).startswith("no suspects")


def test_coalitions_are_told_in_the_words_of_the_table():
    frame = pd.DataFrame({"town": np.where(Y == 1, "Ulm", "Bonn"), "same": 1.0})
    found = facts(HCDV(**FAST | {"leaf_size": 30, "branching": 2}).fit(frame, Y))
    assert "town Ulm" in {each["description"] for each in found["best_coalitions"]}
    assert "\n               town Ulm" in text(found)
