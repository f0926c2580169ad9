"""Files of an unfinished run are whole or not there."""

from __future__ import annotations

import numpy as np
import pytest

from hcdv import StoreError
from hcdv.dataset.workspace import Workspace


def test_arrays_come_back_as_they_were(tmp_path):
    workspace = Workspace.beside(tmp_path / "run")
    assert not workspace.begin({"n": 3})
    arrays = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.zeros((0, 2), np.int32)}
    workspace.put("x", arrays)
    found = workspace.get("x")
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)
    workspace.drop("x")
    assert not workspace.has("x")


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    workspace = Workspace.beside(tmp_path / "run")
    workspace.begin({})
    workspace.put("x", {"a": np.zeros(2)})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        workspace.put("x", {"a": np.ones(2)})
    assert not workspace.get("x")["a"].any()


def test_the_same_task_is_taken_up_and_another_is_not(tmp_path):
    workspace = Workspace.beside(tmp_path / "run")
    workspace.begin({"seed": 1, "files": [["a", 2]]})
    assert workspace.begin({"seed": 1, "files": [("a", 2)]})
    with pytest.raises(StoreError, match="got another: seed differ"):
        workspace.begin({"seed": 2, "files": [["a", 2]]})
