"""The stream drifts as it says, and every day is judged by the one after it."""

from __future__ import annotations

import numpy as np
import pytest

from hcdv.bench import stream as stand
from hcdv.bench.cells import Ask, run
from hcdv.bench.methods import Problem, Scores, top


def test_a_day_has_the_columns_and_the_share_of_purchases_asked_for():
    day = stand.ClickStream(0).day(3, 20_000, 0)
    assert day.X.shape == (20_000, 64)
    hot = day.X[:, : stand.N_DEVICES + stand.N_HOURS + stand.N_CATEGORIES]
    assert set(np.unique(hot)) == {0.0, 1.0}
    assert np.all(hot.sum(axis=1) == 3)
    assert day.chance.mean() == pytest.approx(stand.PURCHASES, abs=1e-6)
    assert day.y.mean() == pytest.approx(stand.PURCHASES, abs=0.01)


def test_a_day_is_a_function_of_its_seed_number_and_part():
    one = stand.ClickStream(1).day(2, 50, 0)
    assert np.array_equal(one.X, stand.ClickStream(1).day(2, 50, 0).X)
    for other in (
        stand.ClickStream(2).day(2, 50, 0),
        stand.ClickStream(1).day(3, 50, 0),
        stand.ClickStream(1).day(2, 50, 1),
    ):
        assert not np.array_equal(one.X, other.X)


def test_weights_turn_further_the_more_days_go_by():
    stream = stand.ClickStream(0)

    def weights(day: int) -> np.ndarray:
        at = np.array([np.cos(day * stand.TURN), np.sin(day * stand.TURN)])
        return np.tensordot(at, stream.weights, 1)

    gaps = [np.linalg.norm(weights(day) - weights(1)) for day in (1, 2, 5, 10)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 3 * gaps[1]


def test_a_method_sees_all_so_far_and_may_remember_between_days(monkeypatch):
    seen: list[tuple[int, int]] = []

    def remembering():
        days = []

        def step(problem: Problem, n_new: int) -> Scores:
            days.append(n_new)
            seen.append((len(problem.y), len(days)))
            values = np.arange(len(problem.y), dtype=float)
            return Scores(values, 0.0, top(values))

        return step

    monkeypatch.setitem(stand.METHODS, "latest", remembering)
    key = {"method": "latest", "seed": 0}
    found = stand.BENCH.measured(key, Ask(out=None, fast=True))
    assert seen == [(300, 1), (600, 2), (900, 3)]
    assert found["n_kept"] == [60, 120, 180]
    assert found["of_last_day"] == [1.0, 1.0, 1.0]
    assert found["final_auc"] == found["auc"][-1]


def test_no_model_beats_the_law_itself():
    found = stand.BENCH.measured(
        {"method": "all data", "seed": 0}, Ask(out=None, fast=True)
    )
    assert 0.5 < found["final_auc"] < found["bayes_auc"][-1]


def test_the_table_shows_every_method(tmp_path):
    page = run(stand.BENCH, Ask(tmp_path, fast=True)).read_text(encoding="utf-8")
    rows = {
        line.split("|")[1].strip() for line in page.splitlines() if line.startswith("|")
    }
    assert rows >= set(stand.METHODS)
    assert (tmp_path / "stream-fast.png").stat().st_size > 5_000


def _cell(method, seed, auc, cpu):
    return {"method": method, "seed": seed, "auc": [0.6, auc], "final_auc": auc, "cpu": cpu}


def test_updates_are_held_against_full_valuation_stream_by_stream():
    from hcdv.bench.stream_page import _against_full

    records = [
        _cell(name, seed, 0.7 + 0.1 * seed + off + jitter * seed, cpu)
        for name, off, jitter, cpu in (
            ("hcdv full", 0.0, 0.0, [1.0, 4.0]),
            ("hcdv incremental", -0.01, 0.02, [1.0, 0.5]),
        )
        for seed in (0, 1)
    ]
    title, _, lines = _against_full(records)
    assert title.endswith("Against hcdv full, on the same stream")
    cells = [cell.strip() for cell in lines.splitlines()[-1].split("|")[1:-1]]
    # differences −0.01 and 0.01: mean 0, half a width of 12.706·0.0141/√2
    assert cells[1].lstrip("-") == "0.0000 (-0.1271 to 0.1271)"
    assert cells[2] == "100.0 (49.2 to 150.8)"
    assert [cell.split(" ")[0] for cell in cells[5:]] == ["3.3", "8.0", "8.0"]
    assert _against_full(records[:1]) == []
    del records[0]["cpu"]
    assert _against_full(records[:3]) == []


@pytest.mark.parametrize("refreshed", [False, True])
def test_the_incremental_methods_go_on_with_one_estimator(refreshed):
    stream, step = stand.ClickStream(0), stand.incrementally(refreshed=refreshed)
    days = [stream.day(number, 150, 0) for number in (1, 2, 3)]
    models = []
    for n in (1, 2, 3):
        X, y = (
            np.concatenate([d.X for d in days[:n]]),
            np.concatenate([d.y for d in days[:n]]),
        )
        judges = stream.day(n, 60, 1)
        scores = step(Problem(X, y, judges.X, judges.y, 2, 0, "auc"), 150)
        assert len(scores.values) == 150 * n
        assert len(scores.pick(0.2)) == 30 * n
        assert scores.fitted is not None
        assert scores.fitted.stale_.any() == (n > 1 and not refreshed)
        assert scores.values.sum() == pytest.approx(scores.fitted.surplus_, abs=1e-9)
        models.append(scores.fitted)
    assert models[0] is models[2]
    kinds = models[0].history_["kind"].tolist()
    assert kinds.count("update") == 2
    assert kinds.count("refresh") == (2 if refreshed else 0)
