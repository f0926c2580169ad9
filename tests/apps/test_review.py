"""hcdv suspects --review and --apply: decisions, kept as they come, and the table they make."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hcdv import HCDV
from hcdv.apps.cli import main
from hcdv.apps.review import _picture

QUICK = ["--contexts", "8", "--permutations", "2", "--leaf-size", "16", "--branching", "3",
         "--utility", "linear", "--jobs", "1", "--quiet"]  # fmt: skip
WRONG = [6, 13, 20, 27]


def table():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    a, b = rng.normal(size=(2, 90)) + 6 * np.array([y == 1, y == 2])
    frame = pd.DataFrame({"a": a, "b": b, "say": "a sentence of some length"})
    given = y.copy()
    given[WRONG] = (y[WRONG] + 1) % 3
    names = np.array(["cat", "dog", "owl"])
    keys = [f"k{i}" for i in range(90)]
    return frame.assign(pet=names[given], key=keys), names[y]


def hcdv(*args, typed=None):
    return CliRunner().invoke(main, [str(arg) for arg in args], input=typed)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    table()[0].to_csv(folder / "pets.csv", index=False)
    roles = ["--target", "pet", "--id", "key"]
    done = hcdv("value", folder / "pets.csv", *roles, "--out", folder / "run", *QUICK)
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def run(made, tmp_path) -> Path:
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def first(run):
    frame = HCDV.load(run).suspects()
    return frame[frame["is_suspect"]].reset_index(drop=True)


def made_in(run):
    return [json.loads(line) for line in (run / "decisions.jsonl").read_text().splitlines()]


def test_rows_are_shown_as_they_were_given_with_labels_and_neighbours(run):
    done = hcdv("suspects", run, "--review", typed="q\n")
    row = int(first(run)["row"][0])
    given = table()[0].iloc[row]
    assert f"row {row} (id k{row})" in done.stdout
    assert f"a = {given['a']:.6g}" in done.stdout
    assert f"given       {given['pet']}" in done.stdout
    assert f"suggested   {table()[1][row]}" in done.stdout
    assert done.stdout.count("near, same label") == done.stdout.count("near, other") == 3
    assert ": a sentence of some length" in done.stdout
    assert not (run / "decisions.jsonl").exists()


def test_decisions_are_kept_and_gone_on_with(run):
    suspects = first(run)
    assert set(suspects["row"]) == set(WRONG)
    hcdv("suspects", run, "--review", typed="r\nk\ns\n")  # the input ends here
    assert [each["decision"] for each in made_in(run)] == ["relabel", "keep", "skip"]
    assert made_in(run)[0]["label"] == suspects["suggested"][0]
    again = hcdv("suspects", run, "--review", typed="d\nq\n")
    assert "4 suspects, 2 decided before" in again.stdout
    assert [each["id"] for each in made_in(run)] == [
        f"k{r}" for r in suspects["row"][[0, 1, 2, 2]]
    ]
    assert "1 keep, 1 relabel, 1 drop, 0 skip" in again.stdout


def test_the_last_decision_can_be_undone(run):
    done = hcdv("suspects", run, "--review", typed="u\nd\nu\nk\nq\n")
    assert "there is nothing to undo" in done.stdout
    assert [each["decision"] for each in made_in(run)] == ["drop", "undo", "keep"]
    assert "1 keep, 0 relabel, 0 drop" in done.stdout


def test_another_label_must_be_one_there_is(run):
    done = hcdv("suspects", run, "--review", typed="o cow\nz\no owl\no\ncat\nq\n")
    assert "the label must be one of cat, dog, owl, got 'cow'" in done.stdout
    assert "'z' is none of k, r, o, d, s, u, q" in done.stdout
    assert [each["label"] for each in made_in(run)] == ["owl", "cat"]


@pytest.mark.parametrize("source", ["where it was", "named", "kept in the run"])
def test_the_cleaned_table_has_what_was_decided(made, run, tmp_path, source):
    suspects = first(run)
    hcdv("suspects", run, "--review", typed="r\nd\nk\no owl\n")
    out = tmp_path / "cleaned.csv"
    moved = made / "pets.csv"
    options = []
    if source == "named":
        options = ["--table", shutil.copy(moved, tmp_path / "copy.csv")]
    hidden = made / "hidden.csv"
    if source != "where it was":
        moved.rename(hidden)
    try:
        done = hcdv("suspects", run, "--apply", "-o", out, *options)
    finally:
        if source != "where it was":
            hidden.rename(moved)
    assert done.exit_code == 0, done.stderr
    assert "89 of 90 rows, 2 relabelled, 1 dropped" in done.stderr
    before, after = table()[0], pd.read_csv(out)
    rows = suspects["row"].tolist()
    expected = before["pet"].copy()
    expected[rows[0]] = suspects["suggested"][0]
    expected[rows[3]] = "owl"
    assert after["pet"].tolist() == expected.drop(rows[1]).tolist()
    if source != "kept in the run":
        assert list(after.columns) == list(before.columns)
        assert after["key"].tolist() == before["key"].drop(rows[1]).tolist()


def test_another_table_is_not_relabelled(run, tmp_path):
    hcdv("suspects", run, "--review", typed="r\n")
    table()[0].iloc[::-1].to_csv(tmp_path / "other.csv", index=False)
    out = tmp_path / "cleaned.csv"
    done = hcdv("suspects", run, "--apply", "-o", out, "--table", tmp_path / "other.csv")
    assert done.exit_code == 1
    assert (
        "--table must be the table that was valued, got another label in row" in done.stderr
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--apply", "-o", "x.csv"], 1, "--apply must have decisions to go by"),
        (["--apply"], 2, "--apply needs -o FILE"),
        (["-o", "x.csv"], 2, "-o and --table are for --apply"),
        (["--review", "--noise"], 2, "asked one at a time"),
        (["--apply", "-o", "x.what"], 1, "-o must end in"),
    ],
)
def test_what_does_not_go_together_is_refused(
    run, tmp_path, monkeypatch, options, code, message
):
    monkeypatch.chdir(tmp_path)
    done = hcdv("suspects", run, *options)
    assert done.exit_code == code
    assert message in done.stderr
    assert not list(tmp_path.glob("x.*"))


def test_noise_is_told_in_words_and_as_data(run):
    said = hcdv("suspects", run, "--noise").stdout
    assert "labels are wrong (95% interval" in said
    told = json.loads(hcdv("suspects", run, "--noise", "--json").stdout)
    assert told["low"] < 4 / 90 < told["high"] + 0.02
    assert hcdv("suspects", run, "--noise", "--csv").stdout.startswith(
        "given,true,rows,share"
    )


def test_a_second_look_is_had_by_asking(run):
    once, twice = (hcdv("suspects", run, "--csv", *more) for more in ([], ["--twice"]))
    assert twice.exit_code == 0, twice.stderr
    assert twice.stdout != once.stdout


def test_images_are_shown_in_characters():
    image = np.zeros((28, 28), dtype=np.uint8)
    image[:, 14:] = 255
    lines = _picture(image)
    assert len(lines) == 14
    assert all(line == "  " + " " * 14 + "@" * 14 for line in lines)
    assert len(_picture(np.zeros((200, 300, 3), dtype=np.uint8))[0]) <= 66
