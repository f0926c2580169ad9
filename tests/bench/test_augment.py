"""Slices are cut from a ranking, and the table shows every method with its control."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hcdv.bench import augment as stand
from hcdv.bench import downstream
from hcdv.bench.cells import Ask, run
from hcdv.bench.datasets import DataSet

SIZE = stand.Size(originals=240, candidates=80, judges=100, test=100, epochs=1)


def clothes(n: int = 500) -> DataSet:
    """Three kinds of bright bars."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n).astype(np.intp)
    X = rng.integers(0, 60, (n, 28, 28)).astype(np.uint8)
    for i, kind in enumerate(y):
        X[i, :, 4 + 8 * kind : 10 + 8 * kind] += 150
    return DataSet("fashion-mnist", X, y)


@pytest.fixture
def small(monkeypatch):
    stand._pool.cache_clear()
    monkeypatch.setattr(stand, "N_TRAIN", 300)
    monkeypatch.setattr(stand, "FAST", SIZE)
    monkeypatch.setattr(stand, "load", lambda *_: clothes())
    short = replace(downstream.MODELS["convnet"], epochs=1)
    monkeypatch.setitem(downstream.MODELS, "convnet", short)
    yield
    stand._pool.cache_clear()


def test_slices_are_the_top_the_middle_and_the_bottom():
    values = np.arange(10_000.0)[::-1]
    cut = stand.slices(values)
    assert cut["top"].tolist() == list(range(1_000))
    assert cut["middle"].tolist() == list(range(4_000, 5_000))
    assert cut["bottom"].tolist() == list(range(9_000, 10_000))


def test_ranked_within_classes_every_slice_holds_all_of_them_evenly():
    y = np.repeat([0, 1, 2], [20, 30, 50])
    values = np.random.default_rng(0).random(100) + 5.0 * y
    cut = stand.slices(stand.within_classes(values, y))
    for rows in cut.values():
        assert np.abs(np.bincount(y[rows]) - [2, 3, 5]).max() <= 1
    assert y[stand.slices(values)["top"]].min() == 2
    best = [np.flatnonzero(y == c)[values[y == c].argmax()] for c in range(3)]
    assert set(best) <= set(cut["top"])


def test_a_class_is_ranked_as_one_by_group_shapley(small):
    found = stand.pool(clothes(), SIZE, 0)
    order = found.made.y[np.argsort(-stand.METHODS["group shapley"](found))]
    assert np.count_nonzero(np.diff(order)) == 2


def test_test_images_never_judge_nor_teach(small):
    data = clothes()
    data.X[:, 0, 0], data.X[:, 0, 1] = np.divmod(np.arange(500), 256)
    found = stand.pool(data, SIZE, 0)
    parts = [found.problem.X, found.problem.X_val, found.X_test]
    number = np.concatenate([256 * X[:, 0, 0].astype(int) + X[:, 0, 1] for X in parts])
    assert len(np.unique(number)) == len(number)
    assert (
        number[: len(found.problem.y)].max() < 300 <= number[len(found.problem.y) :].min()
    )


def test_a_training_set_keeps_its_size_whatever_the_slice(small, monkeypatch):
    seen: list[int] = []
    real = downstream.train

    def counted(name, X, y, *others):
        seen.append(len(y))
        return real(name, X, y, *others)

    monkeypatch.setattr(downstream, "train", counted)
    found = stand.pool(clothes(), SIZE, 0)
    stand._taught(found, found.made.X[:8], found.made.y[:8], "top")
    assert seen == [240, 240]


def test_the_table_shows_every_method_and_the_control(small, tmp_path):
    page = run(stand.BENCH, Ask(tmp_path, fast=True)).read_text(encoding="utf-8")
    rows = {
        line.split("|")[1].strip() for line in page.splitlines() if line.startswith("|")
    }
    assert rows >= {stand.CONTROL, *stand.METHODS}
    assert "overlap, %" in page
    assert (tmp_path / "augment-fast.png").stat().st_size > 5_000
