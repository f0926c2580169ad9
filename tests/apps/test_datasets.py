"""The command line on data sets valued in parts, from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from datasets import people, written
from hcdv.apps.cli import main

QUICK = ["--contexts", "8", "--permutations", "4", "--branching", "4"]


def hcdv(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a data set and its run."""
    folder = tmp_path_factory.mktemp("work")
    data = written(folder / "people", people(1200), (500,))
    done = hcdv("value", data, "--target", "label", "--out", folder / "run", *QUICK)
    assert done.exit_code == 0, done.output
    (folder / "said").write_text(done.stdout)
    return folder


def test_value_of_a_folder_says_what_it_found_and_what_comes_next(place):
    said = (place / "said").read_text()
    assert "people (2 files): 1,200 rows, 5 columns, 2 classes" in said
    assert f"hcdv suspects {place}/run" in said
    assert "values add up to the surplus" in said


def test_show_gives_text_json_and_a_line_for_every_row(place):
    assert hcdv("show", place / "run").stdout in (place / "said").read_text()
    found = json.loads(hcdv("show", place / "run", "--json").stdout)
    assert found["n_rows"] == 1200
    lines = hcdv("show", place / "run", "--csv").stdout.splitlines()
    assert len(lines) == 1201
    assert lines[0].startswith("row,value,stderr,utility,dispersion,consistency,leaf")


@pytest.mark.parametrize("how", ["quota", "top"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".txt"])
def test_select_writes_the_rows_asked_for(place, tmp_path, how, suffix):
    output = tmp_path / f"kept{suffix}"
    done = hcdv("select", place / "run", "--fraction", 0.25, "--how", how, "-o", output)
    assert done.exit_code == 0, done.output
    printed = hcdv("select", place / "run", "--fraction", 0.25, "--how", how).stdout.split()
    read = {".parquet": pd.read_parquet, ".csv": pd.read_csv}
    if suffix == ".txt":
        rows = output.read_text().split()
    else:
        rows = read[suffix](output)["row"].astype(str).tolist()
    assert len(rows) == 300
    assert rows == printed


def test_select_top_keeps_the_highest_values(place):
    values = pd.concat(map(pd.read_parquet, sorted((place / "run/values").iterdir())))
    best = values.sort_values("value", ascending=False, kind="stable")["row"][:12]
    printed = hcdv(
        "select", place / "run", "--fraction", 0.01, "--how", "top"
    ).stdout.split()
    assert printed == [str(row) for row in sorted(best)]


def test_suspects_are_those_doubted_most(place):
    frame = pd.concat(map(pd.read_parquet, sorted((place / "run/values").iterdir())))
    listed = json.loads(hcdv("suspects", place / "run", "-k", 7, "--json").stdout)
    expected = frame.sort_values(["doubt", "row"], ascending=[False, True])["row"][:7]
    assert [each["row"] for each in listed] == expected.tolist()
    assert "given" in hcdv("suspects", place / "run", "-k", 2).stdout


def test_explain_tells_the_way_from_all_rows_to_the_leaf(place):
    found = json.loads(hcdv("explain", place / "run", 700, "--json").stdout)
    assert found["row"] == 700
    assert found["path"][0]["size"] == 1200
    assert found["path"][-1]["id"] == found["leaf"]
    assert "row 700  label" in hcdv("explain", place / "run", 700).stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["select", "--fraction", "0.1", "--how", "greedy"], 1, 'how must be "quota" or "top"'),
        (["select", "--fraction", "0.1", "-o", "kept.tsv"], 1, "-o must end in .parquet"),
        (["select", "--fraction", "0.1", "-o", "k.csv", "--table", "t"], 2, "--table is not known"),
        (["explain", "1200"], 1, "row must lie between 0 and 1199"),
        (["explain", "x", "--by-id"], 2, "--by-id is not known"),
    ],
)  # fmt: skip
def test_what_a_run_in_parts_cannot_do_is_told(place, arguments, status, said):
    command, *rest = arguments
    done = hcdv(command, place / "run", *rest)
    assert (done.exit_code, said in done.stderr) == (status, True), done.stderr


def test_a_damaged_run_is_told(place, tmp_path):
    import shutil

    copy = shutil.copytree(place / "run", tmp_path / "copy")
    part = next((copy / "values").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    done = hcdv("show", copy)
    assert done.exit_code == 1
    assert "damaged file" in done.stderr


def test_a_run_in_parts_is_not_loaded_as_one_in_memory(place):
    from hcdv import HCDV, StoreError

    with pytest.raises(StoreError, match=r"hcdv\.DatasetRun\.open"):
        HCDV.load(place / "run")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--id", "city"], "--id is not known"),
        (["--method", "paper"], "method must be 'nested'"),
        (["--memory", "lots"], "'lots' is no size"),
        (["--memory", "100M"], "memory must be at least"),
    ],
)  # fmt: skip
def test_options_that_do_not_come_in_parts_are_refused(place, tmp_path, options, said):
    out = tmp_path / "run"
    done = hcdv("value", place / "people", "--target", "label", "--out", out, *options)
    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_says_how_to_go_on_and_does(place, tmp_path, monkeypatch):
    from hcdv.dataset import passes

    def interrupted(self, segment):
        raise KeyboardInterrupt

    line = [
        "value",
        place / "people",
        "--target",
        "label",
        "--out",
        tmp_path / "run",
        *QUICK,
    ]
    monkeypatch.setattr(passes.Finishing, "__call__", interrupted)
    done = hcdv(*line)
    assert done.exit_code == 130
    assert f"'{tmp_path}/run.unfinished', and the same command goes on" in done.stderr
    monkeypatch.undo()
    assert hcdv(*line).exit_code == 0
    both = [
        hcdv("show", folder, "--csv").stdout for folder in (tmp_path / "run", place / "run")
    ]
    assert both[0] == both[1]


def test_a_pattern_needs_a_name_for_its_run(place):
    done = hcdv("value", place / "people" / "*.parquet", "--target", "label")
    assert done.exit_code == 2
    assert "Missing option '--out'" in done.stderr


def test_one_small_parquet_file_is_valued_in_memory_unless_memory_is_given(place, tmp_path):
    file = place / "people" / "shard-001.parquet"
    for extra, kind in (([], None), (["--memory", "2G"], "dataset")):
        out = tmp_path / f"run{len(extra)}"
        done = hcdv("value", file, "--target", "label", "--out", out, *QUICK, *extra)
        assert done.exit_code == 0, done.output
        assert json.loads((out / "run.json").read_text()).get("kind") == kind
