"""`hcdv report`, and the report that `hcdv value` leaves behind."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hcdv.apps.cli import main
from hcdv.apps.report.page import MARK

QUICK = ["--contexts", "8", "--permutations", "2", "--leaf-size", "16", "--branching", "3"]
SECRET = "never-shown-to-strangers"


def hcdv(*args: object):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def valued(folder, *options):
    rng = np.random.default_rng(5)
    y = np.arange(48) % 3
    frame = pd.DataFrame({
        "a": rng.normal(size=48) + 2 * y, "kind": np.array(["cat", "dog", "eel"])[y],
        "name": np.where(np.arange(48) % 2, SECRET, "plain"), "key": [f"k{i}" for i in range(48)],
    })  # fmt: skip
    frame.to_csv(folder / "pets.csv", index=False)
    done = hcdv(
        "value", folder / "pets.csv", "--target", "kind", "--id", "key",
        "--out", folder / "pets.hcdv", *QUICK, *options,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "said").write_text(valued(folder).stdout)
    return folder


def test_value_leaves_a_report_in_the_run_folder_and_says_where(place):
    path = place / "pets.hcdv" / "report.html"
    assert f"report        {path}\n" in (place / "said").read_text()
    text = path.read_text(encoding="utf-8")
    assert MARK in text
    assert "pets.csv" in text
    assert SECRET in text
    assert f"hcdv explain {place / 'pets.hcdv'}" in text
    assert hcdv("check", place / "pets.hcdv").exit_code == 0


def test_no_report_leaves_none_and_no_rows_shows_none(tmp_path):
    (tmp_path / "a").mkdir()
    assert "report  " not in valued(tmp_path / "a", "--no-report").stdout
    assert not (tmp_path / "a" / "pets.hcdv" / "report.html").exists()
    (tmp_path / "b").mkdir()
    valued(tmp_path / "b", "--no-rows")
    page = tmp_path / "b" / "pets.hcdv" / "report.html"
    assert SECRET not in page.read_text(encoding="utf-8")
    assert hcdv("report", tmp_path / "b" / "pets.hcdv").exit_code == 0
    assert "were not kept" in page.read_text(encoding="utf-8")


def test_it_is_written_where_asked_and_again(place, tmp_path):
    out = tmp_path / "pets.html"
    for _ in range(2):
        done = hcdv("report", place / "pets.hcdv", "-o", out)
        assert done.stdout == f"report        {out}\n"
    assert SECRET in out.read_text(encoding="utf-8")
    assert hcdv("report", place / "pets.hcdv", "-o", out, "--no-rows").exit_code == 0
    assert SECRET not in out.read_text(encoding="utf-8")


def test_json_is_what_the_page_is_made_of(place):
    found = json.loads(hcdv("report", place / "pets.hcdv", "--json").stdout)
    assert found["n_rows"] == 48
    assert found["source"]["target"] == "kind"
    assert found["run"] == str(place / "pets.hcdv")


def test_known_wrong_labels_are_named_by_id(place, tmp_path):
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("k3\nk5\n")
    done = hcdv("report", place / "pets.hcdv", "--json", "--wrong", wrong)
    assert json.loads(done.stdout)["discovery"]["n_wrong"] == 2


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (["--json", "-o", "x.html"], 2, "leave -o out"),
        (["--wrong", "nowhere.txt"], 1, "--wrong must be a file, got 'nowhere.txt'"),
        (["--wrong", "ids.txt"], 1, "--wrong must list ids of live rows, got 'k99'"),
        (["--wrong", "none.txt"], 1, "is_wrong must mark some labels"),
        (["-o", "mine.html"], 1, "-o must be new or an older report, got 'mine.html'"),
        (["-o", "none/x.html"], 1, "'none' does not exist"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line_and_nothing_is_written(
    place, tmp_path, monkeypatch, args, status, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids.txt").write_text("k3\nk99\n")
    (tmp_path / "none.txt").write_text("\n")
    (tmp_path / "mine.html").write_text("mine")
    before = (place / "pets.hcdv" / "report.html").read_bytes()
    done = hcdv("report", place / "pets.hcdv", *args)
    assert done.exit_code == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x.html").exists()
    assert (tmp_path / "mine.html").read_text() == "mine"
    assert (place / "pets.hcdv" / "report.html").read_bytes() == before


def test_an_update_takes_the_report_away_for_it_tells_what_no_longer_holds(tmp_path):
    valued(tmp_path)
    run = tmp_path / "pets.hcdv"
    (tmp_path / "gone.txt").write_text("k1\n")
    assert hcdv("forget", run, "--rows", tmp_path / "gone.txt").exit_code == 0
    assert not (run / "report.html").exists()
    assert hcdv("report", run).exit_code == 0
    found = json.loads(hcdv("report", run, "--json").stdout)
    assert found["n_rows"] == 47
    assert ["updates", "1 since the fit"] in found["provenance"]


def test_a_lazy_update_is_told_as_not_refreshed(tmp_path):
    valued(tmp_path)
    run = tmp_path / "pets.hcdv"
    more = pd.read_csv(tmp_path / "pets.csv").head(4)
    more.assign(key=[f"new{i}" for i in range(4)]).to_csv(
        tmp_path / "more.csv", index=False
    )
    assert hcdv("update", run, tmp_path / "more.csv").exit_code == 0
    notes = json.loads(hcdv("report", run, "--json").stdout)["notes"]
    assert any("not computed anew" in note for note in notes)


def test_what_is_no_run_has_no_report(tmp_path):
    done = hcdv("report", tmp_path / "nothing.hcdv")
    assert done.exit_code == 1
    assert "must be a run folder" in done.stderr
