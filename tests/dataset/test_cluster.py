"""The passes on a Ray cluster of several nodes: the same values, whatever is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from clusters import in_session
from datasets import frame_of, people, valued, written
from hcdv import DatasetRun, MissingExtra
from hcdv.apps.cli import main

SCRIPT = """
import os, signal, sys, threading, time
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
from ray.cluster_utils import Cluster
from datasets import valued
data, out, what = Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
unfinished = out.with_name(out.name + ".unfinished")
def meddle():
    while not list(unfinished.glob("vectors-*")):
        time.sleep(0.02)
    if what == "node":
        cluster.remove_node(second, allow_graceful=False)
        (out.parent / "killed").touch()
    if what == "driver":
        os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=meddle, daemon=True).start()
try:
    valued(data, out, engine="ray", address=cluster.address)
except Exception as error:
    print(type(error).__name__, error)
finally:
    import ray
    ray.shutdown()
    cluster.shutdown()
"""


def on_two_nodes(data: Path, out: Path, what: str = "") -> subprocess.CompletedProcess[str]:
    """Value a data set on a cluster of two nodes."""
    return in_session(SCRIPT, data, out, what)


def same(a: DatasetRun, b: DatasetRun) -> None:
    pd.testing.assert_frame_equal(frame_of(a), frame_of(b), check_exact=True)
    pd.testing.assert_frame_equal(a.coalitions_, b.coalitions_, check_exact=True)


@pytest.fixture
def data(tmp_path) -> Path:
    return written(tmp_path / "data", people(6000), (1000, 1500, 4500))


@pytest.mark.slow
def test_two_nodes_find_the_bits_of_one_machine(tmp_path, data):
    done = on_two_nodes(data, tmp_path / "run")
    assert done.returncode == 0, done.stdout
    same(DatasetRun.open(tmp_path / "run"), valued(data, tmp_path / "local"))


@pytest.mark.slow
def test_a_node_killed_in_the_middle_changes_nothing(tmp_path, data):
    done = on_two_nodes(data, tmp_path / "run", "node")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "killed").exists()
    same(DatasetRun.open(tmp_path / "run"), valued(data, tmp_path / "local"))


@pytest.mark.slow
def test_a_killed_driver_is_taken_up_here_or_there(tmp_path, data):
    done = on_two_nodes(data, tmp_path / "run", "driver")
    assert done.returncode == -signal.SIGKILL, done.stdout
    assert not (tmp_path / "run").exists()
    same(valued(data, tmp_path / "run"), valued(data, tmp_path / "local"))


@pytest.mark.slow
def test_a_poisoned_file_is_named_and_nothing_is_half_written(tmp_path, data):
    path = data / "shard-002.parquet"
    held = bytearray(path.read_bytes())
    held[len(held) // 3] ^= 0xFF
    path.write_bytes(held)
    done = on_two_nodes(data, tmp_path / "run")
    assert "DataError" in done.stdout
    assert "shard-002.parquet' must be a whole Parquet file" in done.stdout
    assert not (tmp_path / "run").exists()


def test_without_ray_the_install_line_is_told(tmp_path, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtra, match=r"Run pip install 'hcdv\[ray\]', or use engine="
    ):
        valued(data, tmp_path / "run", engine="ray")
    arguments = ["value", str(data), "--target", "label", "--engine", "ray"]
    done = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path / "cli")])
    assert done.exit_code == 1
    assert "pip install 'hcdv[ray]'" in done.stderr
