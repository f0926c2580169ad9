"""Mean labels of levels: out of fold, drawn towards all, and the same in any order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hcdv.embedding.cells import hashed_levels
from hcdv.embedding.target_statistics import LevelMass

PRIOR = 20.0


def rows(n: int = 400, classes: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    town = rng.integers(6, size=n)
    frame = pd.DataFrame({"town": [f"t{t}" for t in town]}).where(rng.random((n, 1)) > 0.1)
    fold = rng.integers(4, size=n)
    target = rng.integers(classes, size=n) if classes else rng.normal(size=n)
    return frame, fold, target


def cells(frame):
    return lambda name: hashed_levels(frame[name])


def read(means, frame, fold) -> np.ndarray:
    out = np.empty((len(frame), means.width))
    means.read(cells(frame), fold, out)
    return out


def counted(frame, fold, target, classes=2, **options) -> LevelMass:
    mass = LevelMass.empty(("town",), classes, 4, **options)
    mass.add(cells(frame), fold, target)
    return mass


@pytest.mark.parametrize("classes", [2, 3, 0])
def test_a_row_reads_the_mean_label_of_its_level_in_the_other_folds(classes):
    frame, fold, target = rows(classes=classes)
    found = read(counted(frame, fold, target, classes).means(("town",)), frame, fold)
    kinds = {2: [1], 3: [0, 1, 2], 0: [None]}[classes]
    for column, kind in enumerate(kinds):
        y = target if kind is None else (target == kind).astype(float)
        for i in range(0, 400, 17):
            level = frame["town"].iloc[i]
            alike = frame["town"].isna() if pd.isna(level) else frame["town"] == level
            others = alike.to_numpy() & (fold != fold[i])
            total = y[others].sum() + PRIOR * y.mean()
            expected = total / (others.sum() + PRIOR) - y.mean()
            assert found[i, column] == pytest.approx(expected, abs=2e-6)


def test_no_row_reads_its_own_label():
    frame, fold, target = rows()
    row = int(np.flatnonzero(frame["town"].notna())[0])
    other = target.copy()
    other[row] = 1 - other[row]
    moved = np.abs(
        read(counted(frame, fold, target).means(("town",)), frame, fold)
        - read(counted(frame, fold, other).means(("town",)), frame, fold)
    )
    alike = (frame["town"] == frame["town"][row]).to_numpy() & (fold != fold[row])
    assert moved[row] < 1 / len(target)  # as the mean of all labels has moved
    assert moved[alike].min() > 2 / len(target)


@pytest.mark.parametrize("classes", [2, 0])
def test_sums_have_the_same_bits_in_any_order_of_the_rows(classes):
    frame, fold, target = rows(classes=classes)
    whole = counted(frame, fold, target, classes)
    mixed = np.random.default_rng(1).permutation(400)
    parts = LevelMass.empty(("town",), classes, 4)
    for some in np.array_split(mixed, 7):
        parts.add(cells(frame.iloc[some]), fold[some], target[some])
    assert np.array_equal(whole.mass, parts.mass)


def test_rows_of_no_fold_read_all_folds():
    frame, fold, target = rows()
    found = read(counted(frame, fold, target).means(("town",)), frame, np.full(400, -1))
    level = (frame["town"] == "t1").to_numpy()
    total, n = target[level].sum() + PRIOR * target.mean(), level.sum() + PRIOR
    assert found[level] == pytest.approx(total / n - target.mean(), abs=1e-6)


def test_columns_are_scaled_to_deviation_one():
    frame, fold, target = rows()
    means = counted(frame, fold, target).means(("town",)).scaled(cells(frame), fold)
    assert read(means, frame, fold).std() == pytest.approx(1.0)


def test_fewer_bytes_give_fewer_buckets():
    full = LevelMass.empty(("a", "b"), 2, 4)
    small = LevelMass.empty(("a", "b"), 2, 4, most_bytes=full.mass.nbytes // 4)
    assert small.mass.nbytes == full.mass.nbytes // 4


def test_without_columns_of_many_levels_there_is_nothing_to_scale():
    frame, fold, target = rows()
    means = counted(frame, fold, target).means(())
    assert means.scaled(cells(frame), fold).width == 0
