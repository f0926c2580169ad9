"""A run folder that changes: whole after every update, one writer, many readers, no surprise."""

from __future__ import annotations

import json
import os
import re
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
    assert query(run, "PRAGMA user_version").iloc[0, 0] == 2
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


def test_what_coalitions_were_worth_is_kept_too(living):
    found = query(living, "SELECT number, size, value FROM coalitions WHERE key = 0")
    updates = query(living, "SELECT n_rows, surplus FROM updates")
    assert found["number"].tolist() == [0, 1, 2, 3]
    assert found["size"].tolist() == updates["n_rows"].tolist()
    assert np.allclose(found["value"], updates["surplus"], rtol=0, atol=1e-9)
    both = query(
        living,
        "SELECT sum(c.value) AS parts FROM coalitions c WHERE number = 3 AND key IN (1, 2, 3, 4)",
    )
    assert both["parts"][0] == pytest.approx(updates["surplus"].iloc[-1], abs=1e-9)
    with sqlite3.connect(living / LEDGER) as ledger:
        ledger.execute("UPDATE coalitions SET value = 9 WHERE number = 2 AND key = 0")
    ledger.close()
    assert "coalitions of update 2 are worth 9.0" in " ".join(check(living))


def _as_version_1(living):
    with sqlite3.connect(living / LEDGER) as ledger:
        ledger.execute("DROP TABLE coalitions")
        ledger.execute("PRAGMA user_version = 1")
    ledger.close()


def test_a_ledger_of_an_earlier_version_is_read_and_brought_up_to_date(living):
    before = query(living, "SELECT * FROM coalitions")
    _as_version_1(living)
    assert len(HCDV.load(living).values_) == 108
    assert len(query(living, "SELECT * FROM updates")) == 4
    assert check(living) == []
    assert query(living, "PRAGMA user_version").iloc[0, 0] == 1
    with updating(living):
        pass
    assert query(living, "PRAGMA user_version").iloc[0, 0] == 2
    assert np.allclose(query(living, "SELECT * FROM coalitions"), before)
    update(living, slice(110, 115))
    assert check(living) == []


def test_of_updates_committed_as_one_an_earlier_ledger_tells_of_the_last(living):
    with updating(living) as writer:
        model = writer.model.partial_fit(X[110:115], Y[110:115]).refresh()
        writer.commit(model)
    _as_version_1(living)
    with updating(living):
        pass
    found = query(living, "SELECT DISTINCT number FROM coalitions")
    assert found["number"].tolist() == [4]


@pytest.mark.parametrize("sql", ["DELETE FROM updates", "SELECT nothing FROM updates", "x"])
def test_a_query_changes_nothing_and_its_faults_are_told(living, sql):
    with pytest.raises(DataError, match="one query of updates, coalitions, files, worth"):
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
        with pytest.raises(StoreError, match=r"of version 2 or before, got 9\. Upgrade"):
            act()


@pytest.mark.parametrize("limit", [0, 3_000, 20_000, 40_000])
def test_a_full_disk_is_told_and_the_run_is_as_it_was(living, limit):
    """No file may grow past a limit: as on a full disk, a write ends with an error.

    The values are past 3 kB, the state past 20, the ledger, whose log is long, past 40.
    """
    if limit == 40_000:
        reader = sqlite3.connect(living / LEDGER)  # keeps the log from being folded in
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM updates").fetchone()
        with updating(living) as writer:
            for _ in range(9):
                writer.refuse((f"{writer.number}-{_}.csv", "0" * 64), "x" * 4000)
    before = HCDV.load(living).values_
    script = (
        "import resource, signal, sys, numpy as np\n"
        "from hcdv.store import updating\n"
        "with updating(__import__('pathlib').Path(sys.argv[1])) as writer:\n"
        "    model = writer.model.partial_fit(np.ones((3, 5)), [0, 1, 0])\n"
        "    most = int(sys.argv[2]), resource.RLIM_INFINITY\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, most)\n"
        "    writer.commit(model)\n"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", script, living, str(limit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "StoreError" in done.stderr
    assert re.search(r"The run is as it was|what was committed is there", done.stderr)
    assert check(living) == []
    assert np.array_equal(HCDV.load(living).values_, before)
    update(living, slice(110, 120))
    assert check(living) == []


READ_AND_WRITE = """
import sys, pathlib, numpy as np
from hcdv import HCDV
from hcdv.store import check, query, updating
run = pathlib.Path(sys.argv[1])
print(len(HCDV.load(run).values_), len(query(run, "SELECT * FROM updates")), check(run))
with updating(run) as writer:
    writer.commit(writer.model.partial_fit(np.ones((3, 5)), [0, 1, 0]))
"""


@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write anywhere"
)
@pytest.mark.parametrize("beforehand", ["as it was closed", "with its log"])
def test_a_folder_that_cannot_be_written_to_is_read_and_not_changed(living, beforehand):
    """Root gives up its right to pass over what modes forbid, and is refused as others are."""
    line = [sys.executable, "-c", READ_AND_WRITE, str(living)]
    if os.geteuid() == 0:
        rights = "-dac_override,-dac_read_search"
        line = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *line]
    held = sqlite3.connect(living / LEDGER) if beforehand == "with its log" else None
    if held:
        held.execute("SELECT count(*) FROM updates").fetchone()
        update(living, slice(110, 112))
    names = sorted(path.name for path in living.rglob("*"))
    folders = [living, *(path for path in living.iterdir() if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert done.stdout.strip() == ("110 5 []" if held else "108 4 []")
    assert done.returncode == 1
    assert "must be writable to change the run" in done.stderr
    assert sorted(path.name for path in living.rglob("*")) == names
    if held:
        held.close()
    assert check(living) == []


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
