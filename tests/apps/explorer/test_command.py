"""`hcdv explore` on the command line: what it refuses, and how it starts and stops."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from hcdv.apps.cli import main

SRC = Path(__file__).resolve().parents[3] / "src"


def explore(*args):
    done = CliRunner().invoke(main, ["explore", *map(str, args), "--no-browser"])
    assert "Traceback" not in done.output
    return done


def refused(*args):
    done = explore(*args)
    assert done.exit_code == 1, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_what_is_no_run_is_refused(made, tmp_path):
    assert "must be a run folder, got" in refused(tmp_path / "nothing")
    assert "which has no run.json" in refused(tmp_path)
    (tmp_path / "file").write_text("")
    assert "which is a file" in refused(tmp_path / "file")
    assert "Did you mean" in refused(made / "shopp")
    assert "must be a run folder" in refused(made / "shop", tmp_path / "nothing")


@pytest.mark.parametrize("name", ["run.json", "state.safetensors"])
def test_a_damaged_run_is_refused_and_named(made, tmp_path, name):
    run = shutil.copytree(made / "later", tmp_path / "run")
    shutil.rmtree(run / "explorer", ignore_errors=True)
    content = bytearray((run / name).read_bytes())
    content[len(content) // 2] ^= 1
    (run / name).write_bytes(content)
    assert f"{name}' must be as it was written, got a damaged file" in refused(run)
    assert not (run / "explorer").exists()


def test_rows_that_are_damaged_are_named(made, tmp_path):
    run = shutil.copytree(made / "later", tmp_path / "run")
    (run / "rows" / "000000.parquet").write_bytes(b"PAR1 and no more")
    assert "the run's files must be readable" in refused(run)


def test_a_file_of_a_data_set_that_is_missing_is_named(made, tmp_path):
    run = Path(shutil.copytree(made / "clicks.hcdv", tmp_path / "run"))
    next(run.glob("values/part-*")).unlink()
    assert "it is missing" in refused(run)


def test_a_port_that_is_taken_is_refused(made):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        said = refused(made / "shop", "--port", port)
    assert f"--port must be one that is free, got {port}" in said


def test_runs_without_a_common_row_are_refused(made):
    assert "OTHER must have rows of RUN by id" in refused(made / "shop", made / "numbers")


def test_a_port_beyond_all_ports_is_misuse(made):
    assert explore(made / "shop", "--port", "70000").exit_code == 2
    assert explore().exit_code == 2


@pytest.mark.parametrize("package", ["duckdb", "starlette", "uvicorn"])
def test_without_the_extra_the_line_that_installs_it_is_told(made, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    said = refused(made / "shop")
    assert (
        f"needs {package}, which is not installed. Run pip install 'hcdv[explore]'" in said
    )


def test_it_serves_this_machine_alone_until_it_is_stopped(made):
    command = [
        sys.executable,
        "-m",
        "hcdv.apps.cli",
        "explore",
        made / "shop",
        "--no-browser",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(SRC)},
    )  # fmt: skip
    try:
        address = re.search(
            r"http://127\.0\.0\.1:\d+/\?token=\S{32}", process.stdout.readline()
        )[0]
        base, _, token = address.partition("/?token=")
        with urllib.request.urlopen(f"{base}/overview.json?token={token}") as answer:
            assert json.load(answer)["run"]["n_rows"] == 90
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{base}/overview.json")
        port = int(base.rpartition(":")[2])
        if other := _other_address():
            with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
                socket.create_connection((other, port), timeout=2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert err.strip() == "hcdv: stopped."
    assert out == ""


def _other_address() -> str:
    """An address of this machine that others may know, if it has one."""
    try:
        found = socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""
    return "" if found.startswith("127.") else found
