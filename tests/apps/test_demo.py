"""The demo finds what it planted, and takes away no folder but its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hcdv import HCDV
from hcdv.apps import demo


def names(folder: Path = Path()) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_exactly_a_tenth_of_the_labels_is_changed_and_the_seed_says_which():
    y = np.arange(200) % 10
    noisy, is_wrong = demo.flipped(y, 3)
    assert is_wrong.sum() == 20
    assert np.array_equal(noisy != y, is_wrong)
    assert np.array_equal(noisy, demo.flipped(y, 3)[0])
    assert not np.array_equal(noisy, demo.flipped(y, 4)[0])


def test_hits_are_counted_among_as_many_as_were_planted():
    is_wrong = np.array([False, True, False, True])
    assert demo.found_among(np.array([1, 0, 3, 2]), is_wrong) == {
        "precision": 0.5,
        "auroc": 0.75,
    }
    assert demo.found_among(np.array([1, 3, 0, 2]), is_wrong) == {
        "precision": 1.0,
        "auroc": 1.0,
    }


def test_it_values_finds_and_writes_and_can_be_run_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(demo.main)
    assert done.exit_code == 0, done.output
    assert "1,797 handwritten digits; 180 labels (10 %) flipped by seed 0" in done.stdout
    assert "planted       of the 180 most suspicious rows 9" in done.stdout
    assert "surplus       +" in done.stdout
    model = HCDV.load("demo.hcdv")
    assert len(model.values_) == 1797
    demo.remove_own(Path("demo.hcdv"))
    assert names() == []


@pytest.mark.parametrize("whose", ["another run", "a run with a file of yours", "no run"])
def test_a_folder_that_is_not_the_demos_own_stays(whose, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("demo.hcdv")
    if whose == "no run":
        folder.mkdir()
    else:
        from hcdv.store import save

        X = np.random.default_rng(0).normal(size=(12, 2))
        model = HCDV(n_contexts=8, n_permutations=2).fit(X, np.arange(12) % 2)
        save(model, folder, demo.source() if "yours" in whose else {"table": "mine.csv"})
        (folder / "notes.txt").write_text("mine") if "yours" in whose else None
    before = names(folder)
    done = CliRunner().invoke(demo.main)
    assert done.exit_code == 1
    assert "folder must be new, got 'demo.hcdv', which exists" in done.stderr
    assert names(folder) == before
