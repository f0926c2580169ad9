"""A run folder that changes: whole after every update, one writer, many readers, no surprise."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fits import quick, two_classes
from hcdv import HCDV
from hcdv.errors import DataError, StoreError
from hcdv.store import check, query, updating
from hcdv.store.ledger import LEDGER

X, Y = two_classes(140)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    return quick().fit(X[:90], Y[:90]).save(tmp_path_factory.mktemp("made") / "run")


@pytest.fixture
def run(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "run"))


def update(run, rows=slice(90, 100)):
    with updating(run) as writer:
        writer.commit(writer.model.partial_fit(X[rows], Y[rows]))


@pytest.fixture
def living(run) -> Path:
    update(run)
    update(run, slice(100, 110))
    with updating(run) as writer:
        writer.commit(writer.model.forget([0, 5]))
    return run


def test_a_run_saved_before_there_were_ledgers_gets_one_with_its_fit_in_it(run):
    before = HCDV.load(run)
    assert not (run / LEDGER).exists()
    with updating(run):
        pass
    found = query(run, "SELECT * FROM updates")
    assert found["kind"].tolist() == ["fit"]
    assert found["surplus"][0] == before.surplus_
    assert query(run, "PRAGMA user_version").iloc[0, 0] == 1
    assert check(run) == []
    assert np.array_equal(HCDV.load(run).values_, before.values_)


def test_what_is_loaded_is_the_last_update(living):
    v = HCDV.load(living)
    twin = quick().fit(X[:90], Y[:90])
    twin.partial_fit(X[90:100], Y[90:100]).partial_fit(X[100:110], Y[100:110])
    twin.forget([0, 5])
    assert v.ids_.tolist() == twin.ids_.tolist()
    assert np.allclose(v.values_, twin.values_, rtol=0, atol=1e-12)
    assert v.history_["kind"].tolist() == ["fit", "update", "update", "forget"]
    assert len(list((living / "states").iterdir())) == 2
    assert check(living) == []


def test_the_value_of_a_row_over_time_is_one_query(living):
    found = query(living, "SELECT number, value, stale FROM worth WHERE id = 95")
    assert found["number"].tolist() == [1, 2, 3]
    assert found["stale"].tolist() == [0, 1, 0]
    sums = query(
        living,
        "SELECT u.kind, u.surplus, sum(w.value) AS paid FROM worth w JOIN updates u "
        "USING (number) GROUP BY number",
    )
    assert np.allclose(sums["paid"], sums["surplus"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("sql", ["DELETE FROM updates", "SELECT nothing FROM updates", "x"])
def test_a_query_changes_nothing_and_its_faults_are_told(living, sql):
    with pytest.raises(DataError, match="SQL must be one query of updates, files, worth"):
        query(living, sql)
    assert check(living) == []


def test_a_run_never_changed_has_no_ledger_to_ask(run):
    with pytest.raises(StoreError, match="must have a ledger"):
        query(run, "SELECT 1")


def test_a_second_writer_is_refused_and_told_who_holds_the_run(run):
    with updating(run), pytest.raises(StoreError, match=f"process {os.getpid()} on "):
        update(run)
    update(run)
    assert check(run) == []


def test_others_read_while_one_writes(living):
    before = HCDV.load(living)
    with updating(living) as writer:
        model = writer.model.partial_fit(X[110:120], Y[110:120])
        assert np.array_equal(HCDV.load(living).values_, before.values_)
        assert len(query(living, "SELECT * FROM updates")) == 4
        writer.commit(model)
        assert len(HCDV.load(living).values_) == len(before.values_) + 10
        assert len(query(living, "SELECT * FROM updates")) == 5


def test_what_a_dead_writer_left_is_cleared_away_and_its_update_is_not_there(living):
    with updating(living) as writer:
        (living / "states" / "000004.safetensors").write_bytes(b"half")
        (living / "worth" / "000004.parquet.77.tmp").write_bytes(b"half")
        before = writer.number
    update(living, slice(120, 125))
    with updating(living) as writer:
        assert writer.number == before + 1
    assert not list(living.rglob("*.tmp"))
    assert check(living) == []


def _bent(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("name", ["worth/000001.parquet", "worth/000003.parquet"])
def test_damaged_values_are_named_and_those_of_the_last_update_can_be_made_again(
    living, name
):
    _bent(living / name)
    assert [name in problem for problem in check(living)] == [True]
    left = check(living, rebuild=True)
    assert left == [] if "000003" in name else name in left[0]


def test_a_damaged_state_is_named_and_never_half_read(living):
    _bent(living / "states" / "000003.safetensors")
    with pytest.raises(StoreError, match=r"000003.safetensors' must be as it was written"):
        HCDV.load(living)
    assert any("000003.safetensors" in problem for problem in check(living))


def test_a_missing_state_is_named(living):
    (living / "states" / "000003.safetensors").unlink()
    with pytest.raises(StoreError, match=r"000003.safetensors' must be there"):
        HCDV.load(living)


def test_a_damaged_ledger_is_named(living):
    with sqlite3.connect(living / LEDGER) as ledger:
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ledger.close()
    (living / LEDGER).write_bytes(b"not a database at all, " * 100)
    with pytest.raises(StoreError, match="damaged file"):
        HCDV.load(living)


def test_sums_and_counts_that_are_wrong_are_found(living):
    with sqlite3.connect(living / LEDGER) as ledger:
        ledger.execute("UPDATE updates SET surplus = 7, n_rows = 50 WHERE number = 1")
    ledger.close()
    said = " ".join(check(living))
    assert "values of update 1 sum to" in said
    assert "update 1 has 50 rows, but 90 + 10 − 0 there should be" in said


def test_a_ledger_of_a_later_version_is_left_alone(living):
    with sqlite3.connect(living / LEDGER) as ledger:
        ledger.execute("PRAGMA user_version = 9")
    ledger.close()
    for act in (lambda: update(living), lambda: HCDV.load(living)):
        with pytest.raises(StoreError, match=r"of version 1 or before, got 9\. Upgrade"):
            act()


def test_a_full_disk_is_told_and_the_run_is_as_it_was(living):
    """No file may grow past 20 kB: as on a full disk, a write ends with an error."""
    before = HCDV.load(living).values_
    script = (
        "import resource, signal, sys, numpy as np\n"
        "from hcdv.store import updating\n"
        "with updating(__import__('pathlib').Path(sys.argv[1])) as writer:\n"
        "    model = writer.model.partial_fit(np.ones((3, 5)), [0, 1, 0])\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))\n"
        "    writer.commit(model)\n"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", script, living], capture_output=True, text=True, check=False
    )
    assert "StoreError" in done.stderr
    assert "The run is as it was" in done.stderr
    assert check(living) == []
    assert np.array_equal(HCDV.load(living).values_, before)
    update(living, slice(110, 120))
    assert check(living) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_read_and_not_changed(living):
    living.chmod(0o500)
    try:
        assert len(HCDV.load(living).values_) == 108
        with pytest.raises(StoreError, match="must be writable"):
            update(living)
    finally:
        living.chmod(0o700)


def test_where_sqlite_may_not_open_the_ledger_a_copy_of_it_is_read(living, monkeypatch):
    from hcdv.store import ledger as module

    opened = module._opened

    def refused(path, mode):
        if mode == "ro":
            raise sqlite3.OperationalError("unable to open database file")
        return opened(path, mode)

    before = HCDV.load(living).values_
    monkeypatch.setattr(module, "_opened", refused)
    assert np.array_equal(HCDV.load(living).values_, before)


def test_a_lock_that_cannot_be_made_is_told(run, monkeypatch):
    def refused(*args, **settings):
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr("hcdv.store.writer.sqlite3.connect", refused)
    with pytest.raises(StoreError, match="must be writable to change the run"):
        update(run)


def test_nothing_in_a_run_folder_runs_code(living):
    about = json.loads((living / "run.json").read_text())
    assert about["format"] == 1
    kinds = {path.suffix for path in living.rglob("*") if path.is_file()}
    assert kinds <= {".json", ".parquet", ".safetensors", ".sqlite", ".lock", ".sqlite-wal",
                     ".sqlite-shm"}  # fmt: skip
