"""Values of a data set in parts: those of a table in memory, however it is cut up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from datasets import LAYOUT, frame_of, people, valued, written
from hcdv import HCDV, DataError, ParameterError, StoreError
from hcdv.dataset import valuing
from hcdv.dataset.model import Model
from hcdv.dataset.passes import Passes
from hcdv.dataset.valuation import Request, value_dataset
from hcdv.hierarchy.tree import Tree
from hcdv.valuation import calibration, doubts
from hcdv.valuation.nested import value_nested
from hcdv.valuation.points import Case, Originals, Points

REGRESSION = {"metric": "r2"}


def all_points(model: Model) -> Points:
    """Every row of the data set at once, as the model embeds it."""
    task = model.task
    blocks = [
        model.rows.block(first, table)
        for first, table in task.source.blocks(
            0, task.n_rows, task.columns, n_rows=task.layout.block
        )
    ]
    names = ("Z", "target", "key", "fold")
    whole = {name: np.concatenate([getattr(b, name) for b in blocks]) for name in names}
    return Points(**whole, n_classes=blocks[0].n_classes)


def as_in_memory(model: Model) -> tuple[Case, Tree]:
    """The same rows, judges and tree, for the code that wants them all in memory."""
    points = all_points(model)
    originals = Originals(None, points.target, [], np.arange(len(points)))
    case = Case([points], model.sample.judges, model.sample.judging_view, originals)
    shape, leaf = model.prototypes.shape, model.prototypes.leaves(points.Z)
    before = np.append(0, np.cumsum(np.bincount(leaf, minlength=shape.n_rows)))
    order = np.argsort(leaf, kind="stable")
    return case, Tree(order, shape.parent, before[shape.start], before[shape.stop])


@pytest.fixture
def caught(monkeypatch) -> list[Model]:
    """Models of runs as they are made."""
    found = []
    run = Passes.run

    def spied(self):
        answer = run(self)
        found.append(answer[0])
        return answer

    monkeypatch.setattr(Passes, "run", spied)
    return found


@pytest.fixture
def one_curve(monkeypatch) -> None:
    """Doubts in memory by the curve that was fitted on the sample, instead of on all rows."""
    curves = []

    def fitted(scores, points):
        curves.append(calibration.calibrated(scores, points))
        return curves[-1]

    monkeypatch.setattr(valuing, "calibrated", fitted)
    monkeypatch.setattr(doubts, "calibrated", lambda *_: curves[0])


@pytest.mark.usefixtures("one_curve")
@pytest.mark.parametrize(
    "settings", [{}, {"utility": "linear", "metric": "auc"}, REGRESSION]
)
def test_values_in_parts_are_those_of_the_same_rows_and_tree_in_memory(
    tmp_path, caught, settings
):
    frame = people()
    if settings == REGRESSION:
        frame["label"] = frame["age"] * 2 + np.random.default_rng(1).normal(size=len(frame))
    run = valued(
        written(tmp_path / "data", frame, (700, 2100)), tmp_path / "run", **settings
    )
    model = caught[0]
    case, tree = as_in_memory(model)
    assert len(model.sample.points) < len(case.points)
    twin = value_nested(case, tree, model.task.plan, probe=model.probe)
    found, scale = frame_of(run), np.abs(twin.values).max()
    np.testing.assert_allclose(found["value"], twin.values, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(found["stderr"], twin.stderr, rtol=0, atol=1e-9 * scale)
    for name, part in twin.parts.items():
        np.testing.assert_allclose(found[name], part, rtol=0, atol=1e-9 * scale)
    assert np.array_equal(found["leaf"], tree.leaf_of_row)
    assert np.array_equal(found["row"], np.arange(len(found)))
    nodes, size = run.coalitions_, np.abs(twin.values).sum()
    for name in ("as_player", "correction"):
        np.testing.assert_allclose(nodes[name], getattr(twin, name), atol=1e-9 * size)
    np.testing.assert_allclose(nodes["stderr"], twin.node_stderr, atol=1e-9 * size)
    np.testing.assert_allclose(
        nodes["value"], tree.node_sums(twin.values), atol=1e-9 * size
    )
    assert run.surplus_ == pytest.approx(sum(twin.surplus.values()), rel=1e-9)


def test_a_sample_of_all_rows_gives_the_values_of_memory_without_more_ado(tmp_path, caught):
    layout = replace(LAYOUT, n_sampled=5000)
    run = valued(written(tmp_path / "data", people()), tmp_path / "run", layout)
    model = caught[0]
    case, tree = as_in_memory(model)
    twin = value_nested(case, tree, model.task.plan, probe=model.probe)
    scale = np.abs(twin.values).max()
    np.testing.assert_allclose(
        frame_of(run)["value"], twin.values, rtol=0, atol=1e-9 * scale
    )
    doubt = frame_of(run)["doubt"]
    np.testing.assert_allclose(doubt, twin.doubts.chance, rtol=0, atol=1e-9)


def test_values_add_up_and_find_wrong_labels(tmp_path):
    frame = people(4000)
    wrong = np.random.default_rng(2).random(4000) < 0.1
    flipped = np.where(frame["label"] == "yes", "no", "yes")
    frame["label"] = np.where(wrong, flipped, frame["label"])
    run = valued(written(tmp_path / "data", frame), tmp_path / "run")
    found = frame_of(run)
    assert found["value"].sum() == pytest.approx(run.surplus_, rel=1e-9)
    order = found["value"].rank()
    auroc = (order[~wrong].mean() - order[wrong].mean()) / len(found) + 0.5
    assert auroc > 0.8
    assert list(found["label"]) == list(frame["label"])


def test_values_have_the_same_bits_however_rows_are_dealt_out_to_files(tmp_path):
    frame = people()
    whole = valued(written(tmp_path / "one", frame), tmp_path / "a")
    cut = written(tmp_path / "many", frame, (1, 256, 1300, 1301, 2999), groups=97)
    dealt = valued(cut, tmp_path / "b", n_jobs=1)
    pd.testing.assert_frame_equal(frame_of(whole), frame_of(dealt), check_exact=True)
    pd.testing.assert_frame_equal(whole.coalitions_, dealt.coalitions_, check_exact=True)


def test_a_glob_and_a_single_file_are_data_sets_too(tmp_path):
    folder = written(tmp_path / "data", people(), (1000,))
    pattern = valued(folder / "*.parquet", tmp_path / "a")
    one = valued(folder / "shard-001.parquet", tmp_path / "b")
    assert (pattern.n_rows, one.n_rows) == (3000, 2000)


def test_validation_rows_judge(tmp_path):
    data = written(tmp_path / "data", people())
    judged = written(tmp_path / "judged", people(500, seed=9))
    run = valued(data, tmp_path / "run", validation=str(judged))
    assert run.surplus_ > 0
    assert not any("no validation set" in note for note in run.about["notes"])


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
from hcdv.dataset import passes
from hcdv.dataset.workspace import Workspace
from datasets import valued
publish, left = Workspace._publish, [int(sys.argv[5])]
def publish_and_die(self, path, content):
    if left[0] == 0 and sys.argv[6] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    publish(self, path, content)
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
Workspace._publish = publish_and_die
passes.PAUSE = 0.0
valued(Path(sys.argv[3]), Path(sys.argv[4]))
"""


def killed(data: Path, out: Path, n_written: int, when: str) -> int:
    here = Path(__file__).parent.parent
    source = here.parent / "src"
    arguments = [str(source), str(here), str(data), str(out), str(n_written), when]
    return subprocess.run(
        [sys.executable, "-c", KILLED, *arguments], check=False, env=os.environ
    ).returncode


# Files are written in this order: the task, then for each of three segments the sample;
# vectors and sums; findings and sums.
@pytest.mark.parametrize(
    ("n_written", "when"),
    [
        (2, "after"), (5, "before"), (6, "after"), (11, "after"),
        *(pytest.param(n, w, marks=pytest.mark.slow)
          for n in (0, 1, 3, 4, 7, 8, 9, 10, 12, 13, 14) for w in ("before", "after")),
    ],
)  # fmt: skip
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, n_written, when):
    data = written(tmp_path / "data", people(), (1500,))
    assert killed(data, tmp_path / "run", n_written, when) == -signal.SIGKILL
    assert not (tmp_path / "run").exists()
    resumed = valued(data, tmp_path / "run")
    assert not (tmp_path / "run.unfinished").exists()
    whole = valued(data, tmp_path / "whole")
    pd.testing.assert_frame_equal(frame_of(resumed), frame_of(whole), check_exact=True)
    assert resumed.coalitions_.equals(whole.coalitions_)


def test_a_run_goes_on_while_its_values_are_written(tmp_path, monkeypatch):
    from hcdv.dataset import passes

    data = written(tmp_path / "data", people())
    real = passes.Finishing.__call__

    def interrupted(self, segment):
        if segment == 1:
            raise KeyboardInterrupt
        real(self, segment)

    monkeypatch.setattr(passes.Finishing, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        valued(data, tmp_path / "run")
    monkeypatch.undo()
    assert (tmp_path / "run.unfinished" / "values" / "part-00000.parquet").is_file()
    resumed, whole = valued(data, tmp_path / "run"), valued(data, tmp_path / "whole")
    pd.testing.assert_frame_equal(frame_of(resumed), frame_of(whole), check_exact=True)


def test_an_unfinished_run_of_other_settings_is_not_taken_up(tmp_path):
    data = written(tmp_path / "data", people())
    assert killed(data, tmp_path / "run", 3, "after") == -signal.SIGKILL
    with pytest.raises(StoreError, match="plan differ"):
        valued(data, tmp_path / "run", random_state=1)


def test_a_finished_run_leaves_values_coalitions_and_a_record(tmp_path):
    run = valued(written(tmp_path / "data", people()), tmp_path / "run")
    names = {str(p.relative_to(run.folder)) for p in run.folder.rglob("*") if p.is_file()}
    parts = {f"values/part-{k:05d}.parquet" for k in range(3)}
    assert names == {"run.json", "coalitions.parquet", *parts}


def test_a_smaller_layout_is_taken_where_memory_is_small():
    from hcdv.dataset.task import Layout, layout_within

    full = Layout()
    assert layout_within(2**34, 40, 26) == full
    small = layout_within(full.n_bytes(40, 26) - 1, 40, 26)
    assert small.n_sampled < full.n_sampled
    assert small.n_bytes(40, 26) < full.n_bytes(40, 26)
    with pytest.raises(ParameterError, match="memory must be at least"):
        layout_within(2**27, 40, 26)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"method": "paper"}, "method"), ({"utility": "knn"}, "utility"),
        ({"precision": 0.1}, "precision"), ({"encoder": "linear"}, "encoder"),
        ({"branching": ["classes", 4]}, "branching"), ({"semivalue": "banzhaf"}, "semivalue"),
    ],
)  # fmt: skip
def test_what_does_not_come_in_parts_is_refused_by_name(tmp_path, settings, named):
    data = written(tmp_path / "data", people(300))
    with pytest.raises(ParameterError, match=f"^{named} must be"):
        valued(data, tmp_path / "run", **settings)
    assert not (tmp_path / "run.unfinished").exists()


def test_a_sample_is_that_of_the_smallest_hashes_wherever_they_lie(tmp_path, caught):
    from hcdv.dataset.sampling import _STREAM
    from hcdv.valuation.contexts import hashed_uniform

    layout = replace(LAYOUT, n_sampled=400)
    valued(written(tmp_path / "data", people(6000)), tmp_path / "run", layout)
    model = caught[0]
    key = model.task.keys(range(6000))
    expected = key[np.argsort(hashed_uniform(key, 0, _STREAM))[:400]]
    assert np.array_equal(model.sample.points.key, expected)


def test_an_address_is_for_a_cluster_alone(tmp_path):
    data = written(tmp_path / "data", people(300))
    with pytest.raises(ParameterError, match="address must be None unless"):
        HCDV().fit_dataset(data, "label", tmp_path / "run", address="here:1")


def test_too_few_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match="at least 256 rows"):
        valued(written(tmp_path / "data", people(100)), tmp_path / "run")


def test_fit_dataset_is_how_python_asks(tmp_path):
    data = written(tmp_path / "data", people())
    run = HCDV(random_state=0).fit_dataset(
        data, "label", tmp_path / "run", drop=["seen"], memory=2**32
    )
    assert run.about["n_columns"] == 4
    again = value_dataset(
        HCDV(random_state=0),
        Request(str(data), "label", tmp_path / "other", drop=("seen",), memory=2**32),
    )
    assert frame_of(again).equals(frame_of(run))
