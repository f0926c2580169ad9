"""Click logs have Criteo's columns, are the same in any chunks, and are read back as written."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from hcdv.bench import ctr as stand
from hcdv.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def log() -> stand.ClickLog:
    return stand.ClickLog(seed=3, click_rate=0.1)


def test_a_row_is_the_same_in_any_chunk(log):
    whole = log.rows(0, 500)
    parts = list(log.chunks(500, size=130))
    assert len(parts) == 4
    assert np.array_equal(np.concatenate([p.codes for p in parts]), whole.codes)
    assert np.array_equal(np.concatenate([p.label for p in parts]), whole.label)
    assert np.array_equal(np.concatenate([p.probability for p in parts]), whole.probability)


def test_clicks_are_as_common_as_asked_and_no_score_beats_the_law(log):
    rows = log.rows(0, 20_000)
    assert rows.probability.mean() == pytest.approx(0.1, abs=0.005)
    assert rows.label.mean() == pytest.approx(0.1, abs=0.01)
    best = stand.best_auc(rows.probability)
    noisy = rows.probability + np.random.default_rng(0).normal(0, 0.1, 20_000)
    order = np.argsort(noisy)
    positive, rank = rows.probability[order], np.arange(20_000)
    worse = (positive * rank).sum() / positive.sum() / 20_000
    assert 0.5 < worse < best < 1.0


def test_levels_follow_zipf_up_to_millions_of_them(log):
    codes = log.rows(0, 20_000).codes
    few, many = (pd.Series(codes[:, j]) for j in (5, 2))
    assert few.nunique() <= 24 + 1
    assert many.nunique() > 5_000
    assert many[many != 0].value_counts(normalize=True).iloc[0] > 0.02


@pytest.mark.parametrize("name", ["log.parquet", "log.tsv", "log.tsv.gz"])
def test_a_log_is_read_back_as_it_was_written(log, tmp_path, name):
    path = tmp_path / name
    stand.write_clicks(plain := tmp_path / name.removesuffix(".gz"), log, 300)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(plain.read_bytes()))
    found = pd.concat(stand.read_clicks(path, 100), ignore_index=True)
    rows = log.rows(0, 300)
    assert list(found) == list(stand.COLUMNS)
    assert np.array_equal(found["label"], rows.label)
    counts = found[list(stand.COUNTS)].to_numpy(dtype=float)
    assert np.array_equal(counts, rows.counts.astype(float), equal_nan=True)
    for j, column in enumerate(stand.CATEGORIES):
        text = [f"{code & 0xFFFFFFFF:08x}" for code in rows.codes[:, j].tolist()]
        is_missing = rows.codes[:, j] == 0
        assert np.array_equal(found[column].isna(), is_missing)
        assert found[column][~is_missing].tolist() == list(np.array(text)[~is_missing])


def test_counts_become_logarithms_and_gaps_stay():
    frame = pd.DataFrame(
        {"label": [1, 0], **{name: [0.0, np.nan] for name in stand.COUNTS}}
    )
    frame["I1"] = [-1.0, np.e - 1]
    X, y = stand.features(frame)
    assert X["I1"].tolist() == pytest.approx([0.0, 1.0])
    assert X["I2"].isna().tolist() == [False, True]
    assert y.tolist() == [1, 0]
    assert "label" not in X


def test_files_that_are_no_log_are_refused(tmp_path):
    with pytest.raises(DataError, match="must be a file of clicks"):
        next(stand.read_clicks(tmp_path / "none.tsv"))
    pd.DataFrame({"label": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(DataError, match="got none named I1, I2"):
        next(stand.read_clicks(tmp_path / "other.parquet"))
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(DataError, match="must hold 40 columns"):
        next(stand.read_clicks(tmp_path / "other.tsv"))


def test_a_click_rate_outside_its_range_is_refused():
    with pytest.raises(ParameterError, match="click_rate must be between 0 and 1"):
        stand.ClickLog(click_rate=1.0)
