"""Click logs are valued at growing sizes, and Criteo's own file is taken where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from hcdv.bench import ctr_table as stand
from hcdv.bench.cells import Ask, run
from hcdv.bench.ctr import ClickLog, write_clicks


@pytest.fixture(scope="module")
def log():
    return ClickLog(1)


@pytest.fixture
def folder(tmp_path, monkeypatch, log):
    monkeypatch.setattr(stand, "LEAST_ROWS", 1_500)
    for name, n in (("criteo_a_short.parquet", 400), ("criteo_day.tsv", 1_600)):
        write_clicks(tmp_path / name, log, n)
    (tmp_path / "criteo.md").write_text("not a log")
    return tmp_path


def test_the_first_log_that_is_long_enough_is_taken(folder):
    assert stand.criteo_file(folder) == folder / "criteo_day.tsv"
    (folder / "criteo_day.tsv").unlink()
    assert stand.criteo_file(folder) is None
    assert stand.criteo_file(None) is None


def test_a_log_of_criteos_own_is_a_set_more(folder, tmp_path):
    bare = {cell["rows"] for cell in stand.BENCH.cells(Ask(tmp_path, None, 1))}
    more = {cell["rows"] for cell in stand.BENCH.cells(Ask(tmp_path, folder, 1))}
    assert more - bare == {stand.CRITEO}


def test_no_row_of_criteos_log_is_both_valued_and_tested_on(folder):
    cut = stand.criteo_split(folder / "criteo_day.tsv", "clean", 0)
    sizes = [len(cut.problem.y), len(cut.problem.y_val), len(cut.y_test)]
    assert sizes == [440, 1000, 160]
    assert set(cut.problem.X.index).isdisjoint(cut.problem.X_val.index)
    assert cut.X_test.shape == (160, cut.X.shape[1])
    noisy = stand.criteo_split(folder / "criteo_day.tsv", "noisy", 0)
    assert np.array_equal(noisy.problem.y != cut.problem.y, noisy.wrong)


def test_criteos_log_has_a_score_and_no_best(folder):
    key = {"rows": stand.CRITEO, "labels": "clean", "method": "random", "seed": 0}
    found = stand.BENCH.measured(key, Ask(folder, folder, 1))
    assert 0.0 < found["score"] < 1.0
    assert "best" not in found


def test_the_table_shows_every_method_by_rows_and_no_score_above_the_best(tmp_path):
    page = run(stand.BENCH, Ask(tmp_path, fast=True)).read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert lines[0].split("|")[2:4] == [" 600 rows ", " 1,200 rows "]
    assert {line.split("|")[1].strip() for line in lines} >= set(stand.FAST_METHODS)
    assert "Criteo's own log: not measured" in page
    assert (tmp_path / "ctr-fast.png").stat().st_size > 5_000
