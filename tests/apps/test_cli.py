"""The command line from end to end: what it prints, writes, exits with and leaves behind."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from hcdv import HCDV
from hcdv.apps.cli import main

SRC = Path(__file__).resolve().parents[2] / "src"
N = 48
QUICK = ["--contexts", "8", "--permutations", "2", "--leaf-size", "16", "--branching", "3"]


def names(folder: Path = Path()) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def table(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    y = np.arange(n) % 3
    frame = pd.DataFrame({"a": rng.normal(size=n) + 2 * y, "b": rng.normal(size=n)})
    return frame.assign(kind=np.array(["cat", "dog", "eel"])[y])


def hcdv(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a table and its run."""
    folder = tmp_path_factory.mktemp("work")
    frame = table().assign(key=[f"k{i:02}" for i in range(N)])
    frame.to_csv(folder / "pets.csv", index=False)
    done = hcdv(
        "value", folder / "pets.csv", "--target", "kind", "--id", "key",
        "--out", folder / "pets.hcdv", *QUICK,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (folder / "said").write_text(done.stdout)
    return folder


@pytest.fixture
def run(place) -> Path:
    return place / "pets.hcdv"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table().to_csv("pets.csv", index=False)
    return tmp_path


def shell(*args: object, cwd: Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hcdv.apps.cli", *map(str, args)],
        cwd=cwd, env=os.environ | {"PYTHONPATH": str(SRC)}, text=True, check=False,
        **({"capture_output": True} | options),
    )  # fmt: skip


def test_a_summary_tells_the_surplus_its_parts_the_values_and_what_to_do_next(place, run):
    said = (place / "said").read_text()
    model = HCDV.load(run)
    assert f"{place / 'pets.csv'}: 48 rows, 2 columns, 3 classes" in said
    assert f"surplus       {model.surplus_:+.4f}" in said
    for name, part in model.run_.valuation.surplus.items():
        assert f"  {name:<12}{part:+.4f}" in said
    assert "above zero the row helps" in said
    assert "values add up to the surplus" in said
    assert "no validation set" in said
    assert f"hcdv suspects {run}" in said


def test_columns_with_a_role_are_no_features(run):
    model = HCDV.load(run)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.ids_[:2].tolist() == ["k00", "k01"]


def test_values_are_those_of_the_estimator(run):
    frame = table()
    model = HCDV(
        utility="kernel", n_contexts=8, n_permutations=2, leaf_size=16, branching=3,
        random_state=0,
    ).fit(frame[["a", "b"]], frame["kind"], ids=[f"k{i:02}" for i in range(N)])  # fmt: skip
    assert np.array_equal(HCDV.load(run).values_, model.values_)


def test_the_run_is_named_after_the_table_and_lies_here(here):
    (here / "data").mkdir()
    (here / "pets.csv").rename(here / "data" / "pets.csv")
    assert hcdv("value", "data/pets.csv", "--target", "kind", *QUICK).exit_code == 0
    assert names(here) == ["data", "pets.hcdv"]
    source = json.loads((here / "pets.hcdv" / "run.json").read_text())["source"]
    assert source == {"table": "data/pets.csv", "validation": None, "target": "kind"}


def test_value_as_json_is_json_alone_and_quiet_is_silent(here):
    done = hcdv("value", "pets.csv", "--target", "kind", "--json", *QUICK)
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["run"] == "pets.hcdv"
    assert found["n_rows"] == N
    assert sum(found["surplus_parts"].values()) == pytest.approx(found["surplus"])
    done = hcdv("value", "pets.csv", "--target", "kind", "--out", "b", "--quiet", *QUICK)
    assert (done.exit_code, done.output) == (0, "")


def test_the_same_seed_gives_the_same_values_whatever_the_number_of_threads(here):
    for out, jobs in (("one", 1), ("two", 2)):
        hcdv("value", "pets.csv", "--target", "kind", "--out", out, "--jobs", jobs, *QUICK)
    assert np.array_equal(HCDV.load("one").values_, HCDV.load("two").values_)


def test_validation_rows_judge_and_need_not_have_the_roles(here):
    table().assign(key=range(N), w=2.0).to_csv("pets.csv", index=False)
    table(12).to_parquet("test.parquet")
    options = [
        "--target",
        "kind",
        "--validation",
        "test.parquet",
        "--id",
        "key",
        "--weight",
        "w",
    ]
    done = hcdv("value", "pets.csv", *options, *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "no validation set" not in done.stdout
    assert HCDV.load("pets.hcdv").run_.case.points.weight is not None


def test_groups_and_times_rule_the_folds(here):
    table().assign(g=np.arange(N) // 8, t=pd.date_range("2024-01-01", periods=N)).to_csv(
        "pets.csv", index=False
    )
    done = hcdv(
        "value", "pets.csv", "--target", "kind", "--groups", "g", "--drop", "t", *QUICK
    )
    assert done.exit_code == 0, done.stderr
    fold = HCDV.load("pets.hcdv").run_.case.points.fold
    assert all(len(np.unique(fold[start : start + 8])) == 1 for start in range(0, N, 8))
    options = ["--time", "t", "--drop", "g", "--out", "later"]
    assert hcdv("value", "pets.csv", "--target", "kind", *options, *QUICK).exit_code == 0
    assert np.all(np.diff(HCDV.load("later").run_.case.points.fold) >= 0)


def test_arrays_in_an_npz_file_are_valued(here):
    frame = table()
    X, y = frame[["a", "b"]].to_numpy(), frame["kind"].to_numpy(str)
    np.savez("pets.npz", emb=X, label=y, emb_val=X[:12], label_val=y[:12], ids=np.arange(N))
    done = hcdv("value", "pets.npz", *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "no validation set" not in done.stdout


def test_show_prints_what_value_printed(place, run):
    done = hcdv("show", run)
    said = (place / "said").read_text()
    assert done.stdout == said


def test_show_prints_as_many_coalitions_as_asked(run):
    found = json.loads(hcdv("show", run, "--json", "--coalitions", 2).stdout)
    assert len(found["best_coalitions"]) == len(found["worst_coalitions"]) == 2
    assert "#" in hcdv("show", run, "--coalitions", 1).stdout


def test_show_as_csv_is_the_values_row_by_row(run):
    frame = pd.read_csv(io.StringIO(hcdv("show", run, "--csv").stdout))
    assert np.allclose(frame["value"], HCDV.load(run).values_, rtol=1e-15)
    assert frame["id"].tolist() == [f"k{i:02}" for i in range(N)]


def test_select_prints_one_row_number_a_line(run):
    for how in ("top", "quota", "greedy"):
        done = hcdv("select", run, "--fraction", 0.25, "--how", how)
        assert [int(line) for line in done.stdout.split()] == list(
            HCDV.load(run).select(0.25, how)
        )
    found = json.loads(hcdv("select", run, "--fraction", 0.25, "--json").stdout)
    assert found["ids"] == [f"k{row:02}" for row in found["rows"]]


def test_suspects_are_listed_as_text_csv_and_json(run):
    model = HCDV.load(run)
    doubted = model.suspects()
    flagged = doubted[doubted["is_suspect"]]["row"].tolist()
    frame = pd.read_csv(io.StringIO(hcdv("suspects", run, "--csv").stdout))
    assert frame["row"].tolist() == flagged
    found = json.loads(hcdv("suspects", run, "--json", "-k", 7).stdout)
    assert [each["row"] for each in found] == doubted["row"].tolist()[:7]
    assert found[0]["id"] == f"k{found[0]['row']:02}"
    assert hcdv("suspects", run, "-k", 7).stdout.count("\n") == 8


def test_explain_tells_of_a_row_by_number_or_by_id(run):
    model = HCDV.load(run)
    assert hcdv("explain", run, 5).stdout == f"{model.explain(5)}\n"
    assert hcdv("explain", run, "k05", "--by-id").stdout == hcdv("explain", run, 5).stdout
    assert json.loads(hcdv("explain", run, 5, "--json").stdout)["row"] == 5


MISUSE = {
    "no command at all": ["valu", "pets.csv"],
    "no target": ["value", "pets.csv"],
    "an unknown encoder": ["value", "pets.csv", "--target", "kind", "--encoder", "cnn"],
    "an unknown method": ["value", "pets.csv", "--target", "kind", "--method", "nestd"],
    "an unknown metric": ["value", "pets.csv", "--target", "kind", "--metric", "f1"],
    "an unknown utility": ["value", "pets.csv", "--target", "kind", "--utility", "svm"],
    "one child a node": ["value", "pets.csv", "--target", "kind", "--branching", "1"],
    "no levels": ["value", "pets.csv", "--target", "kind", "--branching", "8,flat"],
    "groups not named": ["value", "pets.csv", "--target", "kind", "--branching", "groups"],
    "no rows in a leaf": ["value", "pets.csv", "--target", "kind", "--leaf-size", "0"],
    "a negative seed": ["value", "pets.csv", "--target", "kind", "--seed", "-1"],
    "no threads": ["value", "pets.csv", "--target", "kind", "--jobs", "0"],
    "no precision": ["value", "pets.csv", "--target", "kind", "--precision", "nan"],
    "one column for two": ["value", "pets.csv", "--target", "kind", "--id", "kind"],
    "a fraction above one": ["select", "pets.hcdv", "--fraction", "3"],
    "no fraction": ["select", "pets.hcdv"],
    "a table and no file": [
        "select",
        "pets.hcdv",
        "--fraction",
        "0.3",
        "--table",
        "pets.csv",
    ],
    "two formats": ["suspects", "pets.hcdv", "--csv", "--json"],
    "no suspects": ["suspects", "pets.hcdv", "-k", "0"],
    "a row that is no number": ["explain", "pets.hcdv", "five"],
}


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_exits_with_2_and_says_how_it_is_used(case, here):
    done = hcdv(*MISUSE[case])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "Usage:" in done.stderr
    assert "Error:" in done.stderr
    assert names(here) == ["pets.csv"]


def test_a_missing_target_names_the_columns(here):
    assert "'pets.csv' has columns 'a', 'b', 'kind'." in hcdv("value", "pets.csv").stderr


REFUSED_RUNS = {
    "show": ["show", "none"],
    "suspects": ["suspects", "none"],
    "explain": ["explain", "none", "0"],
    "select": ["select", "none", "--fraction", "0.3"],
}


@pytest.mark.parametrize("case", REFUSED_RUNS)
def test_a_run_that_is_not_there_exits_with_1_and_one_line(case, here):
    done = hcdv(*REFUSED_RUNS[case])
    assert done.exit_code == 1
    assert done.stderr.startswith("hcdv: folder must be a run folder, got 'none'")
    assert done.stderr.count("\n") == 1


def test_a_damaged_run_exits_with_1_and_names_the_file(here):
    hcdv("value", "pets.csv", "--target", "kind", *QUICK)
    (here / "pets.hcdv" / "values.parquet").write_bytes(b"")
    done = hcdv("show", "pets.hcdv")
    assert done.exit_code == 1
    assert "pets.hcdv/values.parquet' must be as it was written" in done.stderr


def test_a_row_that_is_not_there_is_refused(run):
    assert "from 0 to 47, got 99" in hcdv("explain", run, 99).stderr
    done = hcdv("explain", run, "k05x", "--by-id")
    assert done.exit_code == 1
    assert "got 'k05x'. Did you mean 'k05'?" in done.stderr


def test_a_taken_name_is_refused_before_the_table_is_read(here):
    (here / "pets.hcdv").mkdir()
    done = hcdv("value", "not-there.csv", "--target", "kind", "--out", "pets.hcdv")
    assert done.exit_code == 1
    assert "--out must be new, got 'pets.hcdv', which exists" in done.stderr


def test_a_place_that_cannot_be_written_is_refused_before_the_table_is_read(here):
    done = hcdv("value", "not-there.csv", "--target", "kind", "--out", "pets.csv/run")
    assert done.exit_code == 1
    assert "'pets.csv' is a file" in done.stderr


def raising(error: BaseException):
    def fit(*_, **__):
        raise error

    return fit


def test_ctrl_c_leaves_nothing_and_says_how_to_begin_again(here, monkeypatch):
    monkeypatch.setattr(HCDV, "fit", raising(KeyboardInterrupt()))
    done = hcdv("value", "pets.csv", "--target", "kind", "--out", "my run")
    assert done.exit_code == 130
    assert "nothing was written" in done.stderr
    assert "hcdv value pets.csv --target kind --out 'my run'" in done.stderr
    assert names(here) == ["pets.csv"]


def test_ctrl_c_at_a_terminal_stops_the_work_itself(here):
    reader, terminal = pty.openpty()
    options = ["--target", "kind", "--time-budget", "600"]
    with subprocess.Popen(
        [sys.executable, "-m", "hcdv.apps.cli", "value", "pets.csv", *options],
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(SRC)},
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    ) as working:
        seen = b""
        while b"valuing" not in seen:
            seen += os.read(reader, 1000)
        working.send_signal(signal.SIGINT)
        assert working.wait() == 130
    seen += os.read(reader, 10_000)
    os.close(terminal)
    os.close(reader)
    assert b"nothing was written" in seen
    assert b"Traceback" not in seen
    assert names(here) == ["pets.csv"]


def test_too_little_memory_is_one_line(here, monkeypatch):
    monkeypatch.setattr(HCDV, "fit", raising(MemoryError("Unable to allocate 9 TiB")))
    done = hcdv("value", "pets.csv", "--target", "kind")
    assert done.exit_code == 1
    assert "Unable to allocate 9 TiB" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_error_of_the_system_is_one_line(here, monkeypatch):
    monkeypatch.setattr(
        HCDV, "fit", raising(PermissionError(13, "Permission denied", "a b"))
    )
    done = hcdv("value", "pets.csv", "--target", "kind")
    assert (done.exit_code, done.stderr) == (1, "hcdv: 'a b': Permission denied.\n")


def test_a_full_disk_is_one_line_and_leaves_nothing(here, monkeypatch):
    from hcdv.store import folder

    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "_write", full)
    done = hcdv("value", "pets.csv", "--target", "kind", *QUICK)
    assert done.exit_code == 1
    assert "No space left on device. Free some space" in done.stderr
    assert names(here) == ["pets.csv"]


def test_a_fault_of_ours_is_not_hidden(here, monkeypatch):
    monkeypatch.setattr(HCDV, "fit", raising(ZeroDivisionError("ours")))
    assert isinstance(
        hcdv("value", "pets.csv", "--target", "kind").exception, ZeroDivisionError
    )


def test_in_a_pipe_there_is_no_bar_and_no_step_and_exit_codes_hold(here):
    done = shell("value", "pets.csv", "--target", "kind", *QUICK, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    done = shell("value", "nothing.csv", "--target", "kind", "--out", "x", cwd=here)
    assert done.returncode == 1
    assert done.stderr.startswith("hcdv: TABLE must be a file, got 'nothing.csv'")
    assert "Traceback" not in done.stderr
    done = shell("value", "pets.csv", "--method", "x", cwd=here)
    assert done.returncode == 2
    assert names(here) == ["pets.csv", "pets.hcdv"]


def test_a_person_at_a_terminal_sees_what_is_being_done(here):
    reader, terminal = pty.openpty()
    done = shell(
        "value", "pets.csv", "--target", "kind", *QUICK, cwd=here,
        capture_output=False, stdout=subprocess.DEVNULL, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    seen = os.read(reader, 10_000).decode()
    os.close(reader)
    assert done.returncode == 0
    assert "reading pets.csv …" in seen
    assert "valuing 48 rows …" in seen


def test_a_reader_that_has_seen_enough_is_no_error(run):
    line = f"'{sys.executable}' -m hcdv.apps.cli show '{run}' --csv | head -1"
    done = subprocess.run(
        ["bash", "-c", line], env=os.environ | {"PYTHONPATH": str(SRC)}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("row,id,value")
    assert "Traceback" not in done.stderr


def test_help_is_quick_for_it_loads_nothing_heavy():
    script = "import sys; from hcdv.apps.cli import main; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(SRC)},
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"numpy", "pandas", "sklearn", "torch", "pyarrow", "scipy"})


@pytest.mark.parametrize("command", [None, *main.commands])
def test_every_command_has_help_with_an_example(command):
    done = hcdv(*([command] if command else []), "--help")
    assert done.exit_code == 0
    assert "\n  hcdv " in done.stdout


def test_the_version_is_told():
    assert hcdv("--version").stdout.startswith("hcdv, version 0")


def test_every_choice_of_the_estimator_can_be_made_here():
    from hcdv.embedding.encoders import NAMES
    from hcdv.valuation.methods import METHODS
    from hcdv.valuation.utility import NAMED

    def choices(name: str) -> set[str]:
        kind = next(p.type for p in main.commands["value"].params if p.name == name)
        assert isinstance(kind, click.Choice)
        return set(kind.choices)

    assert choices("encoder") == set(NAMES)
    assert choices("method") == set(METHODS)
    assert choices("utility") == set(NAMED) - {"auto"}
