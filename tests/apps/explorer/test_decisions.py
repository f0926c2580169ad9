"""Decisions are added, never changed; exported; and refused where they break a rule."""

from __future__ import annotations

import csv
import io
import json
import shutil

import pytest

from explored import HERE, customers


def decide(ask, ids, decision, label=None, status=200):
    body = {"ids": ids, "decision": decision, "label": label}
    answer = ask.client.post("/decisions.json", json=body, headers={"origin": HERE})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_decision_is_kept_and_shown(asking, shop):
    ask = asking(shop)
    assert decide(ask, ["c-003", "c-004"], "drop")["n_decided"] == 2
    decide(ask, ["c-003"], "wrong", "yes")
    assert ask("/row", id="c-003")["decision"]["label"] == "yes"
    assert [each["id"] for each in ask("/decisions")["decisions"]] == ["c-003", "c-004"]
    lines = (shop / "explorer" / "decisions.jsonl").read_text().splitlines()
    assert [json.loads(line)["decision"] for line in lines] == ["drop", "drop", "wrong"]
    found = {kind: ask("/rows", decision=kind)["totals"]["n_rows"]
             for kind in ("any", "none", "drop", "wrong", "keep")}  # fmt: skip
    assert found == {"any": 2, "none": 88, "drop": 1, "wrong": 1, "keep": 0}
    decide(ask, ["c-003"], "clear")
    assert [each["id"] for each in ask("/decisions")["decisions"]] == ["c-004"]
    assert len((shop / "explorer" / "decisions.jsonl").read_text().splitlines()) == 4


def test_another_explorer_of_the_run_sees_them(asking, shop):
    decide(asking(shop), ["c-003"], "keep")
    assert asking(shop)("/row", id="c-003")["decision"]["decision"] == "keep"


def test_decisions_are_exported(asking, shop):
    ask = asking(shop)
    decide(ask, ["c-005"], "drop")
    decide(ask, ["c-003"], "wrong", "yes")
    decide(ask, ["c-009"], "drop")
    answer = ask.client.get("/decisions.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [line["id"] for line in lines] == ["c-005", "c-003", "c-009"]
    assert lines[1]["decision"] == "wrong"
    assert lines[1]["label_given"] == customers()["back"][3]
    assert lines[1]["label_corrected"] == "yes"
    assert ask.client.get("/decisions.txt").text == "c-005\nc-009\n"
    assert ask.client.get("/decisions.txt?decision=wrong").text == "c-003\n"


@pytest.mark.parametrize(
    ("ids", "decision", "label", "said"),
    [
        (["c-999"], "keep", None, "ids must be of rows of the run, got 'c-999'"),
        ([], "keep", None, "ids must be a list of 1 to 1,000"),
        ("c-001", "keep", None, "ids must be a list"),
        ([1], "keep", None, "ids must be text"),
        (["c-001"], "burn", None, "decision must be one of wrong, keep, drop, clear"),
        (["c-001"], "wrong", "maybe", "label must be one that the run has, got 'maybe'"),
        (["c-001"], "keep", "yes", "label must be left out"),
        (["c-001"], "wrong", "x" * 600, "label must be text of at most 500 letters"),
    ],
)
def test_what_breaks_a_rule_is_not_kept(asking, shop, ids, decision, label, said):
    assert said in decide(asking(shop), ids, decision, label, status=400)["error"]
    assert not (shop / "explorer" / "decisions.jsonl").exists()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"ids": ["c-001"], "more": 1}', b"[" * 9999]
)
def test_what_is_no_decision_is_refused(asking, shop, body):
    answer = asking(shop).client.post(
        "/decisions.json", content=body, headers={"origin": HERE}
    )
    assert answer.status_code == 400
    assert "must be" in answer.json()["error"]


def test_numbers_are_put_right_by_numbers(asking, made, tmp_path):
    ask = asking(shutil.copytree(made / "numbers", tmp_path / "numbers"))
    decide(ask, ["3"], "wrong", "4.5")
    assert (
        "label must be a number" in decide(ask, ["3"], "wrong", "high", status=400)["error"]
    )


def test_a_line_cut_off_by_a_crash_spoils_no_other(asking, shop):
    ask = asking(shop)
    decide(ask, ["c-003"], "keep")
    path = shop / "explorer" / "decisions.jsonl"
    with path.open("ab") as file:
        file.write(b'{"at": "2026-01-01", "id": "c-00')
    assert [each["id"] for each in ask("/decisions")["decisions"]] == ["c-003"]
    decide(ask, ["c-004"], "drop")
    assert [each["id"] for each in ask("/decisions")["decisions"]] == ["c-004", "c-003"]


def test_a_run_that_cannot_be_written_to_is_browsed_and_refuses_decisions(asking, shop):
    shutil.rmtree(shop / "explorer", ignore_errors=True)
    (shop / "explorer").write_text(
        "a file where the folder would be: nothing can be written"
    )
    ask = asking(shop)
    assert ask("/overview")["run"]["n_rows"] == 90
    assert ask("/spots")["n_rows"] == 90
    said = decide(ask, ["c-003"], "keep", status=409)["error"]
    assert "must be writable to keep decisions" in said
    assert "Copy the run" in said


def test_looking_changes_nothing_but_the_explorers_own_folder(asking, shop):
    before = {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}
    ask = asking(shop)
    for path in ("/overview", "/coalitions", "/map", "/spots", "/rows", "/suspects"):
        ask(path)
    ask("/worth", coalition=1)
    decide(ask, ["c-003"], "keep")
    new = {path for path in shop.rglob("*") if path.is_file()} - before.keys()
    assert {path.parent.name for path in new} == {"explorer"}
    assert all(path.read_bytes() == content for path, content in before.items())
