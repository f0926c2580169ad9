"""hcdv augment: candidates judged, chosen and written, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hcdv.apps.cli import main

QUICK = ["--contexts", "8", "--permutations", "2", "--leaf-size", "16", "--branching", "3",
         "--utility", "linear", "--jobs", "1", "--quiet"]  # fmt: skip


def table(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    a, b, c, d = rng.normal(size=(4, n))
    frame = pd.DataFrame({"a": a + 3 * (y == 1), "b": b + 3 * (y == 2), "c": c, "d": d})
    return frame.assign(
        kind=[f"c{k}" for k in y], key=[f"k{i}" for i in range(n)], note="-"
    )


def hcdv(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    table(90, 0).to_csv(folder / "pets.csv", index=False)
    done = hcdv(
        "value", folder / "pets.csv", "--target", "kind", "--id", "key", "--drop", "note",
        "--out", folder / "run", *QUICK,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    more = table(40, 1).drop(columns=["key", "note"])
    more["how"] = np.where(np.arange(40) < 20, "asked", "made")
    more.loc[30:, "kind"] = np.roll(more["kind"][30:], 1)
    more = pd.concat(
        [more, table(90, 0).head(2).drop(columns=["key", "note"]).assign(how="made")]
    )
    more.to_csv(folder / "more.csv", index=False)
    more.drop(columns="kind").to_csv(folder / "bare.csv", index=False)
    return folder / "run"


def test_the_kept_are_written_as_they_stand_and_the_run_stays(run, tmp_path):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    out = tmp_path / "kept.csv"
    done = hcdv(
        "augment", run, run.parent / "more.csv", "--keep", 9, "--group", "how", "-o", out
    )
    assert done.exit_code == 0, done.stderr
    assert "42 candidates, held against 90 rows" in done.stdout
    assert "kept          9, 3 of 3 classes" in done.stdout
    assert re.search(r"[23] copies of rows of the data", done.stdout)
    assert "labels more likely wrong than right" in done.stdout
    assert done.stdout.index("asked") < done.stdout.index("made ")
    kept = out.read_text().splitlines()
    lines = (run.parent / "more.csv").read_text().splitlines()
    assert kept[0] == lines[0]
    assert len(kept) == 10
    assert set(kept) < set(lines)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_every_candidate_has_a_line_of_csv(run):
    done = hcdv(
        "augment", run, run.parent / "more.csv", "--group", "how", "--keep", 9, "--csv"
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        "row,value,stderr,utility,dispersion,consistency,label,wrong"
    )
    assert len(lines) == 43


def test_json_tells_kept_rows_by_number(run):
    done = hcdv(
        "augment", run, run.parent / "more.csv", "--group", "how", "--keep", 6, "--json"
    )
    told = json.loads(done.stdout)
    assert told["kept"]["n"] == len(told["kept"]["rows"]) == 6
    assert sum(told["dropped"].values()) == 36


@pytest.mark.parametrize("how", ["a table without labels", "labels left out of account"])
def test_without_labels_values_are_expected_ones(run, how):
    bare = how == "a table without labels"
    asked = [run.parent / ("bare.csv" if bare else "more.csv"), "--group", "how"]
    done = hcdv("augment", run, *asked, *([] if bare else ["--unlabelled"]), "--keep", 5)
    assert done.exit_code == 0, done.stderr
    assert "without labels: values are expected ones" in done.stdout
    assert "suggested" in done.stdout


def test_without_keep_nothing_is_chosen(run):
    done = hcdv("augment", run, run.parent / "more.csv", "--group", "how")
    assert "--keep N chooses" in done.stdout
    assert "kept" not in done.stdout


def test_row_numbers_and_arrays_can_be_asked_for(run, tmp_path):
    done = hcdv(
        "augment",
        run,
        run.parent / "more.csv",
        "--group",
        "how",
        "--keep",
        3,
        "-o",
        tmp_path / "k.txt",
    )
    assert done.exit_code == 0, done.stderr
    assert len((tmp_path / "k.txt").read_text().split()) == 3
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 0] += 3 * y
    np.savez(tmp_path / "a.npz", X=X[:50], y=y[:50])
    np.savez(tmp_path / "b.npz", X=X[50:], y=y[50:])
    hcdv("value", tmp_path / "a.npz", "--out", tmp_path / "of-arrays", *QUICK)
    asked = ["augment", tmp_path / "of-arrays", tmp_path / "b.npz", "--keep", 4]
    done = hcdv(*asked, "-o", tmp_path / "rows.txt")
    assert done.exit_code == 0, done.stderr
    refused = hcdv(*asked, "-o", tmp_path / "rows.csv")
    assert refused.exit_code == 1
    assert "-o must end in .txt" in refused.stderr
    assert hcdv(*asked, "--group", "a").exit_code == 2


@pytest.mark.parametrize(
    ("change", "options", "code", "message"),
    [
        ({"drop": "a"}, [], 1, "missing 'a'"),
        ({"kind": "c9"}, [], 1, "y must hold classes seen in the fit, got 'c9'"),
        ({}, ["--group", "hwo"], 1, "--group must name a column"),
        ({}, ["-o", "x.csv"], 2, "-o needs --keep"),
        ({}, ["--keep", "0"], 2, "0 is not in the range"),
        ({}, ["--keep", "3", "-o", "x.what"], 1, "-o must end in"),
        ({}, ["--csv", "--json"], 2, "cannot both be given"),
        ({"missing": True}, [], 1, "CANDIDATES must be a file"),
    ],
)
def test_bad_candidates_are_one_line_and_nothing_is_written(
    run, tmp_path, monkeypatch, change, options, code, message
):
    monkeypatch.chdir(tmp_path)
    frame = table(10, 2)
    if "drop" in change:
        frame = frame.drop(columns=change["drop"])
    if "kind" in change:
        frame["kind"] = change["kind"]
    if "missing" not in change:
        frame.to_csv("c.csv", index=False)
    done = hcdv("augment", run, "c.csv", *options)
    assert done.exit_code == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) in (["c.csv"], [])
