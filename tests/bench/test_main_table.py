"""The main table: splits, choices by every method, what they teach, and how it is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hcdv.bench import main_table as stand
from hcdv.bench import methods, stability
from hcdv.bench.cells import Ask

KEY = {"part": "choice", "data": "synthetic", "labels": "noisy", "seed": 0}


@pytest.fixture(scope="module")
def cut():
    return stand.split("synthetic", "noisy", 0, None, 300)


def test_a_tenth_of_the_labels_is_wrong_and_none_of_the_test_labels(cut):
    clean = stand.split("synthetic", "clean", 0, None, 300)
    assert cut.wrong.sum() == 30
    assert np.array_equal(cut.problem.y != clean.problem.y, cut.wrong)
    assert np.array_equal(cut.y_test, clean.y_test)
    assert np.array_equal(cut.X_test, clean.X_test)
    assert not clean.wrong.any()


def test_rows_to_value_to_judge_and_to_test_are_others(cut):
    rows = np.concatenate([cut.X, cut.X_val, cut.X_test])
    assert len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.parametrize(
    "name", ["hcdv paper", "mcds", "banzhaf", "loo", "knn 10", "hcdv top"]
)
def test_baselines_keep_their_own_highest_values(cut, name):
    scores = stand.valued(name, cut.problem)
    kept = scores.pick(0.3)
    assert len(kept) == 90
    others = np.setdiff1d(np.arange(300), kept)
    assert scores.values[kept].min() >= scores.values[others].max()


def test_the_rules_of_hcdv_share_one_valuation(cut):
    first, second = (stand.valued(name, cut.problem) for name in ("hcdv", "hcdv top"))
    assert first.fitted is second.fitted
    assert not np.array_equal(first.pick(0.3), second.pick(0.3))


def test_a_cell_tells_what_the_rows_kept_teach(cut):
    found = stand.retrained(cut, stand.SETS["synthetic"], "hcdv")
    assert 0 < found["score"] <= 1
    kept = stand.valued("hcdv", cut.problem).pick(0.3)
    assert found["wrong_kept"] == cut.wrong[kept].mean()
    assert found["noise_auroc"] > 0.6
    assert found["valuation_seconds"] > 0
    everything = stand.retrained(cut, stand.SETS["synthetic"], stand.ALL)
    assert everything["wrong_kept"] == pytest.approx(0.1)
    assert "valuation_seconds" not in everything


def test_what_would_take_too_long_is_told_and_not_run(cut, monkeypatch):
    monkeypatch.setattr(stand, "too_long", lambda *_: 7200.0)
    record = {**KEY, "method": "hcdv greedy"} | stand.retrained(
        cut, stand.SETS["synthetic"], "hcdv greedy"
    )
    assert "score" not in record
    shown = {
        **record,
        "method": "hcdv",
        "score": 0.9,
        "macro_f1": 0.8,
        "unfinished_seconds": 0,
    }
    del shown["unfinished_seconds"]
    page = stand.BENCH.page([shown, record])
    assert "Not run: hcdv greedy on synthetic, seed 0: about 2.0 h" in page


def test_values_that_do_not_move_are_stable():
    values = np.tile(np.arange(1.0, 5.0), (5, 1))
    assert stability.coefficient_of_variation(values) == 0
    moved = values * (1 + 0.1 * np.array([-1, -0.5, 0, 0.5, 1]))[:, None]
    expected = np.std([0.9, 0.95, 1, 1.05, 1.1], ddof=1)
    assert stability.coefficient_of_variation(moved) == pytest.approx(expected)


def test_with_the_tree_fixed_only_sampling_is_drawn_anew(cut):
    problem = replace(cut.problem, X=cut.problem.X[:80], y=cut.problem.y[:80])
    runs = stability.repeated("hcdv", problem, "fixed", n_runs=2)
    again = stability.repeated("hcdv", problem, "fixed", n_runs=2)
    assert np.array_equal(runs, again)
    assert not np.array_equal(runs[0], runs[1])


def test_a_fast_run_has_cells_of_every_set_and_part():
    cells = list(stand.BENCH.cells(Ask(out=None, fast=True)))
    assert {cell["data"] for cell in cells} == set(stand.SETS)
    assert {cell["part"] for cell in cells} == {"choice", "stability"}
    assert {cell["method"] for cell in cells if cell["data"] == "synthetic"} >= set(
        stand.METHODS
    )


def test_every_method_of_the_table_is_known():
    others = {stand.ALL, "data-oob"}
    assert set(stand.METHODS) - others <= set(methods.METHODS)
