"""The latest state of a run folder, read from where it lies."""

from __future__ import annotations

import numpy as np
import pytest

from fits import quick, two_classes
from hcdv import HCDV, StoreError
from hcdv.store import updating
from hcdv.store.mapping import latest_state, mapped_run


@pytest.fixture
def run(tmp_path):
    X, y = two_classes(60)
    return quick().fit(X, y).save(tmp_path / "run")


def test_a_mapped_run_is_the_one_that_was_saved(run):
    state, found = mapped_run(run)
    v = HCDV.load(run)
    assert state.number == 0
    assert np.array_equal(found.values, v.values_)
    assert found.coalitions().equals(v.coalitions_)
    assert found.ids.tolist() == v.ids_.tolist()


def test_vectors_stay_on_disk(run):
    _, found = mapped_run(run)
    base = found.case.points.Z
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_the_latest_update_counts(run):
    X, y = two_classes(10, seed=3)
    with updating(run) as writer:
        writer.commit(writer.model.partial_fit(X, y))
    assert latest_state(run).number == 1
    state, found = mapped_run(run)
    assert state.number == 1
    assert np.array_equal(found.values, HCDV.load(run).values_)
    assert found.stale.sum() == 60


def test_labels_of_text_come_back(tmp_path):
    X, y = two_classes(40)
    names = np.array(["cat", "dog"])[y]
    quick().fit(X, names).save(tmp_path / "run")
    assert mapped_run(tmp_path / "run")[1].labels.tolist() == names.tolist()


@pytest.mark.parametrize("place", [3, 200, -5])
def test_a_state_that_was_changed_is_named(run, place):
    path = run / "state.safetensors"
    content = bytearray(path.read_bytes())
    content[place] ^= 255
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"state\.safetensors' must be as it was written"):
        mapped_run(run)


def test_a_state_that_is_gone_is_named(run):
    (run / "state.safetensors").unlink()
    with pytest.raises(StoreError, match="must be there, got no such file"):
        mapped_run(run)
