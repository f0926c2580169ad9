"""Files that land in a watched folder join the run exactly once, whatever kills the watch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hcdv import HCDV
from hcdv.apps.cli import main
from hcdv.store import check, query

QUICK = ["--contexts", "8", "--permutations", "2", "--leaf-size", "16", "--branching", "3",
         "--utility", "linear", "--jobs", "1"]  # fmt: skip
MOMENTS = np.random.default_rng(0)


def table(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    frame = pd.DataFrame({"a": rng.normal(size=n) + 2 * y, "b": rng.normal(size=n)})
    return frame.assign(kind=np.array(["cat", "dog", "eel"])[y])


def hcdv(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def landed(folder: Path, number: int) -> str:
    """Land a file of three rows, whole at once, as of a minute ago."""
    path = folder / f"{number:05}.csv"
    draft = path.with_name(f".{path.name}")
    table(3, 1000 + number).to_csv(draft, index=False)
    os.utime(draft, (time.time() - 60, time.time() - 60))
    draft.rename(path)
    return path.name


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    table(48, 0).to_csv(folder / "pets.csv", index=False)
    done = hcdv(
        "value", folder / "pets.csv", "--target", "kind", "--out", folder / "run", *QUICK
    )
    assert done.exit_code == 0, done.stderr
    return folder / "run"


@pytest.fixture
def run(made, tmp_path) -> Path:
    (tmp_path / "in").mkdir()
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture
def folder(run) -> Path:
    return run.parent / "in"


def test_files_are_taken_in_by_name_and_once(run, folder):
    names = [landed(folder, number) for number in (2, 0, 1)]
    for name in (".hidden.csv", "half.csv.tmp", "notes.txt"):
        (folder / name).write_text("a,b,kind\n1,2,cat\n")
    first = hcdv("watch", run, folder, "--once")
    assert first.exit_code == 0, first.stderr
    lines = first.stdout.splitlines()
    assert [name in line for name, line in zip(sorted(names), lines, strict=True)] == [
        True
    ] * 3
    landed(folder, 3)
    assert len(hcdv("watch", run, folder, "--once").stdout.splitlines()) == 1
    assert hcdv("watch", run, folder, "--once").stdout == ""
    files = query(run, "SELECT name, number FROM files ORDER BY name")
    assert files["number"].tolist() == [1, 2, 3, 4]
    assert HCDV.load(run).run_.n_rows == 60
    assert check(run) == []


def test_a_file_that_cannot_be_taken_in_is_named_and_stops_nobody(run, folder):
    (folder / "a.csv").write_text("a,b,kind\n1,2,gnu\n")
    (folder / "b.csv").write_text("a,kind\n1,cat\n")
    landed(folder, 7)
    said = hcdv("watch", run, folder, "--once").stdout
    assert "a.csv: refused: y must hold classes seen in the fit, got 'gnu'" in said
    assert "b.csv: refused: X must have the columns seen in training: missing 'b'" in said
    assert HCDV.load(run).run_.n_rows == 51
    refused = query(run, "SELECT name FROM files WHERE refused IS NOT NULL ORDER BY name")
    assert refused["name"].tolist() == ["a.csv", "b.csv"]
    assert hcdv("watch", run, folder, "--once").stdout == ""
    assert check(run) == []


def test_a_file_changed_after_it_was_taken_in_is_left(run, folder):
    name = landed(folder, 0)
    hcdv("watch", run, folder, "--once")
    table(5, 5).to_csv(folder / name, index=False)
    assert "changed after it was taken in" in hcdv("watch", run, folder, "--once").stdout
    assert HCDV.load(run).run_.n_rows == 51


def test_a_folder_that_is_not_there_is_told(run, folder):
    done = hcdv("watch", run, folder / "nowhere")
    assert done.exit_code == 1
    assert "FOLDER must be a folder" in done.stderr


def test_a_watch_goes_on_until_it_is_stopped_and_holds_the_run(run, folder):
    landed(folder, 0)
    line = [sys.executable, "-m", "hcdv.apps.cli", "watch", run, folder, "--every", "0.1"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"00000.csv" in process.stdout.readline()
        second = hcdv("refresh", run)
        assert second.exit_code == 1
        assert f"process {process.pid} on " in second.stderr
        assert f"watch {run}" in second.stderr
        assert hcdv("show", run).exit_code == 0
        landed(folder, 1)
        assert b"00001.csv" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"every file told of is in the run" in stderr
    assert HCDV.load(run).run_.n_rows == 54
    assert hcdv("refresh", run).exit_code == 0


# Forks a watch for every line it reads, with all imports done: kills hit the work itself.
FORKS = """
import os, sys, traceback
from pathlib import Path
import pandas, pyarrow.parquet, scipy.stats
import hcdv.apps.reading, hcdv.estimator, hcdv.store
from hcdv.apps.watching import watched

run, folder, told = map(Path, sys.argv[1:])
hcdv.store.load(run)

def tell(line):
    with told.open("a") as file:
        file.write(line + chr(10))

for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            watched(run, folder, every=0.01, once=False, tell=tell)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def killed_at_random(run: Path, folder: Path, n_kills: int) -> Path:
    """Kill the watch again and again while files land; what it told of before it died.

    Moments are uniform over twice the time that the first watch took to take a file in.
    """
    told, number, typical = run.parent / "told", 0, 0.0
    told.touch()
    line = [sys.executable, "-c", FORKS, str(run), str(folder), str(told)]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for kill in range(n_kills):
            while number < len(told.read_text().splitlines()) + 4:
                landed(folder, number)
                number += 1
            server.stdin.write("go\n")
            child, began = int(server.stdout.readline()), time.perf_counter()
            if kill == 0:
                while not told.read_text():
                    assert time.perf_counter() - began < 60, "nothing was taken in"
                    time.sleep(0.005)
                typical = time.perf_counter() - began
            else:
                time.sleep(2.0 * typical * MOMENTS.random())
            os.kill(child, signal.SIGKILL)
            assert int(server.stdout.readline()) == -signal.SIGKILL
        server.stdin.close()
    return told


def survives(made: Path, run: Path, folder: Path, n_kills: int) -> None:
    told = killed_at_random(run, folder, n_kills)
    said = [line for line in told.read_text().splitlines() if line]
    acknowledged = {line.partition(" rows of ")[2].partition(";")[0] for line in said}
    assert len(acknowledged) == len(said) > n_kills / 10
    known = query(run, "SELECT name FROM files")["name"].tolist()
    assert {Path(name).name for name in acknowledged} <= set(known)
    assert check(run) == []
    hcdv("watch", run, folder, "--once")
    assert hcdv("refresh", run).exit_code == 0
    assert check(run) == []
    files = query(run, "SELECT name, number FROM files ORDER BY name")
    assert files["name"].tolist() == sorted(path.name for path in folder.glob("*.csv"))
    assert files["number"].tolist() == list(range(1, len(files) + 1))

    whole = Path(shutil.copytree(made, run.parent / "uninterrupted"))
    hcdv("watch", whole, folder, "--once")
    hcdv("refresh", whole)
    survivor, other = HCDV.load(run), HCDV.load(whole)
    assert survivor.ids_.tolist() == other.ids_.tolist()
    assert np.allclose(survivor.values_, other.values_, rtol=0, atol=1e-9)
    lazily = "SELECT number, sum(value) AS total FROM worth GROUP BY number"
    assert np.allclose(query(run, lazily), query(whole, lazily), rtol=0, atol=1e-9)


def test_a_watch_killed_at_any_moment_goes_on_where_it_was(made, run, folder):
    survives(made, run, folder, 8)


@pytest.mark.slow
def test_two_hundred_kills_lose_and_repeat_nothing(made, run, folder):
    survives(made, run, folder, 200)
