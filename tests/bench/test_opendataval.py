"""The table follows OpenDataVal's protocol, takes peers' values of the same rows, and tells."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hcdv.bench import opendataval
from hcdv.bench.cells import Ask, run
from hcdv.bench.opendataval import BENCH, PEER_VALUES, accuracy, draw, scored
from hcdv.bench.opendataval_page import DETECTION, cells_of, means, page, verdict
from hcdv.errors import DataError

N_CLASSES = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A set of the three names, of blobs, all rows different."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, n in (("bbc", 1700), ("imdb", 1800), ("cifar10", 4200)):
        y = rng.integers(0, N_CLASSES, n)
        emb = rng.normal(size=(n, 6)) + 2 * np.eye(N_CLASSES, 6)[y]
        np.savez(folder / f"{name}.npz", emb=emb.astype(np.float16), label=y)
    return folder


@pytest.fixture
def no_peers(monkeypatch):
    monkeypatch.setattr(
        opendataval, "peer_values", lambda _: opendataval.PeerValues({}, {})
    )


def test_rows_are_cut_in_three_and_labels_flipped_but_those_of_the_test(folder):
    case = draw("cifar10", 0.15, 0, folder)
    p = case.problem
    with np.load(folder / "cifar10.npz") as held:
        label = {
            row.tobytes(): y for row, y in zip(held["emb"], held["label"], strict=True)
        }

    def true(X):
        return np.array([label[row.astype(np.float16).tobytes()] for row in X])

    assert [len(p.y), len(p.y_val), len(case.y_test)] == [1000, 100, 3000]
    assert len({row.tobytes() for X in (p.X, p.X_val, case.X_test) for row in X}) == 4100
    assert np.array_equal(true(p.X) != p.y, case.wrong)
    assert case.wrong.sum() == 150
    assert np.sum(true(p.X_val) != p.y_val) == 15
    assert np.array_equal(true(case.X_test), case.y_test)


def test_both_rates_flip_labels_of_the_same_rows_and_seeds_draw_others(folder):
    one, other = draw("bbc", 0.05, 0, folder), draw("bbc", 0.15, 0, folder)
    assert np.array_equal(one.problem.X, other.problem.X)
    assert one.wrong.sum() == 50
    assert one.digest != other.digest
    assert not np.array_equal(one.problem.X, draw("bbc", 0.05, 1, folder).problem.X)


def remove_high_low(case, values):
    """OpenDataVal's loop: accuracy after each step of 5 %, the most valuable rows first."""
    n = len(values)
    step = max(round(n * 0.05), 5)
    ascending = np.argsort(values)
    return [accuracy(case, ascending[: n - gone]) for gone in range(0, n, step)]


def test_removal_and_addition_are_entries_of_their_list(folder):
    case = draw("bbc", 0.15, 0, folder)
    values = np.random.default_rng(0).normal(size=1000) - 2 * case.wrong
    curve, found = remove_high_low(case, values), scored(case, values)
    assert found["all"] == curve[0]
    for share, index in (("0.05", 1), ("0.15", 3), ("0.50", 10)):
        assert found["removal"][share] == curve[index]
        assert found["addition"][share] == curve[20 - index]


def test_where_a_class_is_missing_the_commonest_is_guessed(folder):
    case = draw("bbc", 0.05, 0, folder)
    y = case.problem.y
    rows = np.r_[np.flatnonzero(y == 1)[:9], np.flatnonzero(y == 2)[:5]]
    assert accuracy(case, rows) == np.mean(case.y_test == 1)
    assert accuracy(case, np.arange(200)) > 0.7


def stored_peers(folder, case, key, values):
    """A file of one column, as benchmarks/peers writes it."""
    name = f"{key['data']}/{round(100 * key['rate']):02d}/{key['seed']}/ame"
    np.savez(folder / f"{PEER_VALUES}.npz", **{name: values.astype(np.float32)})
    run = {
        "data": key["data"], "rate": key["rate"], "seed": key["seed"], "answers": ["ame"],
        "method": "ame", "rows": case.digest, "seconds": 7.0, "ended_by_limit": True,
    }  # fmt: skip
    (folder / f"{PEER_VALUES}.json").write_text(json.dumps({"runs": [run]}))


def test_values_of_a_peer_are_scored_as_ours_are(folder, tmp_path):
    key = {"data": "bbc", "rate": 0.15, "seed": 1, "method": "odv ame"}
    case = draw("bbc", 0.15, 1, folder)
    values = np.float32(np.random.default_rng(0).normal(size=1000))
    stored_peers(tmp_path, case, key, values)
    ask = Ask(tmp_path, folder, seeds=2)
    theirs = [k for k in BENCH.cells(ask) if k["method"].startswith("odv")]
    assert theirs == [key, {**key, "players": "points"}]
    told = {"seconds": 7.0, "ended_by_limit": True}
    assert BENCH.measured(key, ask) == scored(case, values.astype(float)) | told


def test_values_of_other_rows_are_refused(folder, tmp_path):
    key = {"data": "bbc", "rate": 0.15, "seed": 1, "method": "odv ame"}
    stored_peers(tmp_path, draw("bbc", 0.15, 0, folder), key, np.zeros(1000))
    with pytest.raises(DataError, match="rows that are drawn"):
        BENCH.measured(key, Ask(tmp_path, folder))


@pytest.mark.usefixtures("no_peers")
def test_the_fast_table_is_one_set_with_two_seeds_and_all_methods(folder, tmp_path):
    ask = Ask(tmp_path, folder, fast=True)
    keys = list(BENCH.cells(ask))
    assert {(k["data"], k["seed"]) for k in keys} == {("bbc", 0), ("bbc", 1)}
    assert {k.get("players") for k in keys} == {None, "whole", "points"}
    only = {"method": "hcdv,knn 10,random", "seed": "0", "rate": "0.05"}
    written = run(BENCH, Ask(tmp_path, folder, fast=True, only=only))
    text = written.read_text()
    assert "leads every other method in" in text
    assert "| hcdv | " in text
    assert "mix_labels" in text  # the protocol
    assert "noise by `whole`" in text
    drawn = sorted(path.name for path in tmp_path.glob("*.png"))
    assert drawn == [
        f"opendataval-{what}-fast.png" for what in ("addition", "found", "removal")
    ]


def record(method, seed, f1, data="bbc", rate=0.05):
    curve = {"0.05": 1 - f1, "0.15": 1 - f1}
    return {
        "data": data, "rate": rate, "seed": seed, "method": method, "f1": f1, "auroc": f1,
        "auroc_within": f1, "removal": curve, "addition": curve, "seconds": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "mark"),
    [
        ([0.90, 0.91, 0.90], "▲"),
        ([0.90, 0.71, 0.80], "△"),
        ([0.90, 0.70, 0.80], "="),
        ([0.89, 0.70, 0.79], "▽"),
        ([0.50, 0.51, 0.50], "▼"),
    ],
)
def test_a_lead_is_told_with_its_standard_error(ours, mark):
    records = [record("hcdv", seed, f1) for seed, f1 in enumerate(ours)]
    records += [record("knn 10", seed, 0.8) for seed in range(3)]
    records += [record("random", seed, 0.1) for seed in range(3)]
    (cell,) = cells_of(records, DETECTION)
    assert cell.mark == mark
    assert cell.strongest == "knn 10"
    told = verdict(records)
    assert ("behind knn 10" in told) == (mark in "▽▼")
    assert ("level with knn 10" in told) == (mark == "=")
    assert f"in {3 * (mark in '▲△')} of 3 cells" in told
    assert mark in page(records, {"rows": "how", "players": "how"})


def test_methods_are_compared_on_the_seeds_both_have():
    records = [record("hcdv", seed, f1) for seed, f1 in enumerate([0.9, 0.8, 0.1, 0.1])]
    records += [record("odv ame", seed, f1) for seed, f1 in enumerate([0.8, 0.7])]
    (cell,) = cells_of(records, DETECTION)
    lead, error = cell.leads()["odv ame"]
    assert lead == pytest.approx(0.1)
    assert error == pytest.approx(0)
    assert cell.best == "odv ame"  # its mean over its own seeds is shown as it is


def test_our_own_other_settings_are_not_rivals_but_can_be_best():
    records = [
        record(m, s, f) for s in range(2) for m, f in (("hcdv", 0.8), ("hcdv κ=0", 0.9))
    ]
    records += [record("random", seed, 0.1) for seed in range(2)]
    (cell,) = cells_of(records, DETECTION)
    assert set(cell.leads()) == {"random"}
    assert cell.best == "hcdv κ=0"


def test_means_are_told_for_methods_that_have_all_cells():
    records = [
        record(m, 0, f, rate=r)
        for m, f in (("hcdv", 0.8), ("knn 10", 0.4))
        for r in (0.05, 0.15)
    ]
    records.append(record("odv ame", 0, 0.9) | {"ended_by_limit": True})
    lines = means(records).splitlines()
    assert lines[2].startswith("| hcdv | 0.800 | 2.000 |")
    assert lines[4].startswith("| odv ame | – | – |")
    assert "1.00 †" in lines[4]
