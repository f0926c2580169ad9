"""update, forget, refresh, ledger and check on the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hcdv import HCDV
from hcdv.apps.cli import main

N = 48
QUICK = ["--contexts", "8", "--permutations", "2", "--leaf-size", "16", "--branching", "3",
         "--utility", "linear", "--jobs", "1", "--quiet"]  # fmt: skip


def table(n=N, seed=5, first=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    frame = pd.DataFrame({"a": rng.normal(size=n) + 2 * y, "b": rng.normal(size=n)})
    keys = [f"{first + i:04}" for i in range(n)]
    return frame.assign(kind=[f"0{k}" for k in y], key=keys, note="-")


def hcdv(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A run whose labels and ids are text that looks like numbers, and a column left out."""
    folder = tmp_path_factory.mktemp("made")
    table().to_parquet(folder / "pets.parquet")
    done = hcdv(
        "value", folder / "pets.parquet", "--target", "kind", "--id", "key", "--drop", "note",
        "--max-rows", 60, "--spawn-distance", 0.9, "--rebalance-every", 20,
        "--out", folder / "run", *QUICK,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    return folder / "run"


@pytest.fixture
def run(made, tmp_path) -> Path:
    table(10, 6, first=100).to_csv(tmp_path / "more.csv", index=False)
    return Path(shutil.copytree(made, tmp_path / "run"))


def test_a_table_joins_the_run_with_the_roles_its_columns_had(run):
    done = hcdv("update", run, run.parent / "more.csv")
    assert done.exit_code == 0, done.stderr
    assert "10 rows of" in done.stdout
    assert "58 rows, 48 of them corrected, not refreshed; surplus +" in done.stdout
    v = HCDV.load(run)
    assert v.ids_[-1] == "0109"
    assert (v.max_rows, v.spawn_distance, v.rebalance_every) == (60, 0.9, 20)
    done = hcdv("refresh", run)
    assert "58 rows; surplus +" in done.stdout
    assert not HCDV.load(run).stale_.any()


def test_a_table_may_be_valued_anew_as_it_joins(run):
    assert hcdv("update", run, run.parent / "more.csv", "--refresh").exit_code == 0
    assert not HCDV.load(run).stale_.any()


def test_the_oldest_rows_go_where_the_run_was_told_so(run):
    table(20, 7, first=200).to_csv(run.parent / "many.csv", index=False)
    assert "60 rows" in hcdv("update", run, run.parent / "many.csv").stdout
    assert HCDV.load(run).ids_[0] == "0008"


def test_rows_are_withdrawn_by_id(run):
    (run.parent / "gone").write_text("0003\n\n0007\n")
    done = hcdv("forget", run, "--rows", run.parent / "gone")
    assert done.exit_code == 0, done.stderr
    assert "2 rows withdrawn; 46 rows" in done.stdout
    assert not set(HCDV.load(run).ids_) & {"0003", "0007"}
    again = hcdv("forget", run, "--rows", run.parent / "gone")
    assert again.exit_code == 1
    assert "ids of live rows, got '0003' in line 1" in again.stderr
    assert hcdv("forget", run, "--rows", run.parent / "none").exit_code == 1


def test_a_table_that_does_not_fit_changes_nothing(run):
    table(3, first=300).drop(columns="b").to_csv(run.parent / "less.csv", index=False)
    done = hcdv("update", run, run.parent / "less.csv")
    assert done.exit_code == 1
    assert "missing 'b'" in done.stderr
    assert hcdv("check", run).stdout == f"{run}: whole\n"
    assert HCDV.load(run).run_.n_rows == N


def test_the_ledger_answers_in_csv(run):
    hcdv("update", run, run.parent / "more.csv")
    done = hcdv("ledger", run, "SELECT number, kind, n_rows FROM updates")
    assert done.stdout.splitlines() == ["number,kind,n_rows", "0,fit,48", "1,update,58"]
    one = hcdv("ledger", run, "SELECT count(*) AS n FROM worth WHERE id = '0000'")
    assert one.stdout.splitlines() == ["n", "2"]
    wrong = hcdv("ledger", run, "DROP TABLE updates")
    assert wrong.exit_code == 1
    assert "SQL must be one query" in wrong.stderr


def test_groups_that_gained_or_lost_are_told_in_csv(run):
    hcdv("update", run, run.parent / "more.csv")
    done = hcdv("drift", run)
    head, first, *_ = done.stdout.splitlines()
    assert head == "key,node,size_before,value_before,size,value,change"
    assert float(first.split(",")[-1]) >= 0
    assert hcdv("drift", run, "--since", -1).exit_code == 0
    none = hcdv("drift", run, "--since", 7)
    assert none.exit_code == 1
    assert "since must be an update of history_, got 7" in none.stderr


def test_damage_is_named_and_made_good_where_it_can_be(run):
    hcdv("update", run, run.parent / "more.csv")
    (run / "worth" / "000001.parquet").write_bytes(b"")
    broken = hcdv("check", run)
    assert broken.exit_code == 1
    assert "000001.parquet' must be as it was written" in broken.stderr
    assert hcdv("check", run, "--rebuild").stdout == f"{run}: whole\n"
    assert hcdv("check", run).exit_code == 0


def test_a_run_that_was_never_changed_is_checked_too(made):
    assert hcdv("check", made).stdout == f"{made}: whole\n"
    assert hcdv("check", made.parent / "nothing").exit_code == 1
