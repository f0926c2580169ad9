"""Coalitions as tasks of a Ray cluster: the payoffs of one machine, whatever is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from clusters import Delicate, in_session
from hcdv import HCDV, MissingExtra, ParameterError
from hcdv.valuation.utility import Retrained

SCRIPT = """
import json, os, signal, sys, threading, time
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from clusters import Deadly, Delicate
from valuation.test_retraining_on_ray import fitted
folder, what = Path(sys.argv[3]), sys.argv[4]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
ray.init(cluster.address, log_to_driver=False)
word, kept = folder / "word", folder / "payoffs.npz"
def meddle():
    while not word.exists() or len(word.read_text().splitlines()) < 40:
        time.sleep(0.02)
    if what == "node":
        cluster.remove_node(second, allow_graceful=False)
        (folder / "killed").touch()
    written = kept.stat().st_mtime_ns
    while what == "driver":
        time.sleep(0.02)
        if kept.stat().st_mtime_ns > written:
            os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=meddle, daemon=True).start()
from hcdv.valuation import checkpoint
checkpoint.EVERY = 0.0
try:
    model = (Deadly if what == "deadly" else Delicate)(str(word), 0.02)
    found = fitted(model, checkpoint=kept, engine="ray")
    (folder / "values.json").write_text(json.dumps(found.values_.tolist()))
    (folder / "checks.json").write_text(json.dumps(found.checks_["failures"]))
except Exception as error:
    print(type(error).__name__, error)
finally:
    ray.shutdown()
    cluster.shutdown()
"""


def fitted(model, checkpoint=None, **settings) -> HCDV:
    X, y = make_classification(n_samples=242, n_informative=5, random_state=0)
    utility = Retrained(estimator=model, checkpoint=checkpoint)
    plain = {"random_state": 0, "metric": "accuracy", "leaf_size": 16, "n_permutations": 2}
    return HCDV(utility=utility, **plain, **settings).fit(X, y)


def on_two_nodes(folder: Path, what: str = "") -> subprocess.CompletedProcess[str]:
    return in_session(SCRIPT, folder, what)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["", "node"])
def test_two_nodes_find_the_values_of_one_machine_and_count_failures(tmp_path, what):
    done = on_two_nodes(tmp_path, what)
    assert done.returncode == 0, done.stdout
    here = fitted(Delicate())
    found = json.loads((tmp_path / "values.json").read_text())
    assert np.array_equal(found, here.values_), done.stdout
    failures = json.loads((tmp_path / "checks.json").read_text())
    assert failures == here.checks_["failures"] > 0
    workers = set((tmp_path / "word").read_text().split())
    assert len(workers) >= 2
    assert (tmp_path / "killed").exists() == (what == "node")


@pytest.mark.slow
def test_what_a_killed_driver_has_paid_for_is_not_trained_again(tmp_path):
    done = on_two_nodes(tmp_path, "driver")
    assert done.returncode == -signal.SIGKILL, done.stdout
    again = tmp_path / "again"
    resumed = fitted(Delicate(str(again)), checkpoint=tmp_path / "payoffs.npz")
    here = fitted(Delicate())
    assert np.array_equal(resumed.values_, here.values_)
    assert len(again.read_text().splitlines()) < here.checks_["fits"]


@pytest.mark.slow
def test_a_model_that_kills_its_workers_ends_the_run(tmp_path):
    done = on_two_nodes(tmp_path, "deadly")
    assert "PayoffError Worker processes ended while training" in done.stdout
    assert not (tmp_path / "values.json").exists()


def test_only_models_trained_anew_are_spread(monkeypatch):
    X, y = make_classification(random_state=0)
    for utility in ("kernel", "knn", lambda rows: len(rows) / 100):
        with pytest.raises(ParameterError, match=r"engine must be .*estimator to train"):
            HCDV(engine="ray", utility=utility).fit(X, y)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'hcdv\[ray\]'"):
        HCDV(engine="ray", utility=LogisticRegression()).fit(X, y)
