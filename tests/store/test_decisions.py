"""Decisions are added and never rewritten, and a torn line is none."""

from __future__ import annotations

import pytest

from hcdv.errors import StoreError
from hcdv.store.decisions import DECISIONS, Decision, decide, decisions


def test_the_latest_decision_of_an_id_counts_and_undo_takes_it_back(tmp_path):
    decide(tmp_path, Decision("a", 1, "keep"))
    decide(tmp_path, Decision(7, "cat", "relabel", "dög"))
    decide(tmp_path, Decision("a", 1, "drop"))
    found = decisions(tmp_path)
    assert (found["a"].decision, found[7].label) == ("drop", "dög")
    decide(tmp_path, Decision("a", 1, "undo"))
    assert decisions(tmp_path)["a"].decision == "keep"
    decide(tmp_path, Decision("a", 1, "undo"))
    assert set(decisions(tmp_path)) == {7}
    assert len((tmp_path / DECISIONS).read_text().splitlines()) == 5
    assert all(made.at for made in found.values())


def test_none_are_made_where_there_is_no_file(tmp_path):
    assert decisions(tmp_path) == {}


def test_a_line_cut_short_is_no_decision_and_spoils_no_other(tmp_path):
    decide(tmp_path, Decision("a", 1, "keep"))
    with (tmp_path / DECISIONS).open("ab") as file:
        file.write(b'{"id": "b", "giv')
    assert set(decisions(tmp_path)) == {"a"}
    decide(tmp_path, Decision("c", 1, "drop"))
    assert set(decisions(tmp_path)) == {"a", "c"}


@pytest.mark.parametrize(
    "line", ['{"id": 1}', "[1]", "hello", '{"id": 1, "given": 1, "decision": "eat"}']
)
def test_what_is_no_decision_is_named_by_its_line(tmp_path, line):
    decide(tmp_path, Decision("a", 1, "keep"))
    with (tmp_path / DECISIONS).open("a") as file:
        file.write(line + "\n")
    if line == "[1]":
        line = "[1]"
    with pytest.raises(
        StoreError, match=r"decisions.jsonl' must hold a decision a line, .* line 2"
    ):
        decisions(tmp_path)


def test_a_folder_that_is_gone_is_told(tmp_path):
    with pytest.raises(StoreError, match="must be writable, got: No such file"):
        decide(tmp_path / "gone", Decision("a", 1, "keep"))
