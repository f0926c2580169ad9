"""The facts of a report are plain data, add up, and are those of the run."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from datasets import people, valued, written
from fits import flipped, quick, two_classes
from hcdv import DataError
from hcdv.apps.report import scatter
from hcdv.apps.report.dataset_facts import dataset_report_facts
from hcdv.apps.report.facts import report_facts
from hcdv.apps.report.forest import MOST_NODES, nodes_facts

RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def fitted():
    X, y = two_classes(200, noise=0.05)
    frame = pd.DataFrame(X, columns=["age", "height", "weight", "pace", "rest"])
    y, wrong = flipped(y, 0.1, RNG)
    return quick().fit(frame, np.array(["no", "yes"])[y]), wrong


@pytest.fixture(scope="module")
def report(fitted):
    model, wrong = fitted
    return report_facts(model, is_wrong=wrong)


def test_they_are_json_as_they_are(report):
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_parts_and_the_groups_of_the_first_level_sum_to_the_surplus(fitted, report):
    total = fitted[0].surplus_
    assert report["surplus"]["total"] == pytest.approx(total)
    assert sum(part["value"] for part in report["surplus"]["parts"]) == pytest.approx(total)
    tree = report["tree"]
    first = [v for v, level in zip(tree["value"], tree["level"], strict=True) if level == 1]
    assert sum(first) == pytest.approx(total, rel=1e-4)


def test_rows_are_listed_as_the_run_has_them(fitted, report):
    model = fitted[0]
    assert report["best"][0]["row"] == int(np.argmax(model.values_))
    assert report["worst"][0]["row"] == int(np.argmin(model.values_))
    doubted = model.suspects()
    assert [each["row"] for each in report["suspects"]] == (
        doubted.loc[doubted["is_suspect"], "row"].head(24).tolist()
    )
    for each in (*report["suspects"], *report["best"]):
        assert each["given"] == model.run_.labels[each["row"]]
        assert each["value"] == pytest.approx(model.values_[each["row"]])
        assert [name for name, _ in each["look"]["cells"]] == list(model.feature_names_in_)


def test_rows_are_left_out_when_asked_and_that_is_said(fitted):
    model = fitted[0]
    found = report_facts(model, rows=False)
    assert all(each["look"] is None for each in found["worst"])
    assert "left out" in found["why_no_rows"]
    assert "traits" not in found["tree"]
    assert "cells" not in json.dumps(found)


def test_the_distributions_count_every_row_once(fitted, report):
    assert sum(sum(group["counts"]) for group in report["spread"]["groups"]) == 200
    assert sum(map(sum, report["certainty"]["count"])) == 200
    labels = fitted[0].run_.labels
    for group in report["spread"]["groups"]:
        own = fitted[0].values_[labels == group["name"]]
        assert group["n"] == len(own)
        assert group["mean"] == pytest.approx(own.mean())


def test_truth_is_held_against_both_orders(fitted, report):
    assert report["discovery"]["n_wrong"] == 20
    assert report["discovery"]["doubt"]["auroc"] > 0.8
    assert report_facts(fitted[0])["discovery"] is None


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (np.zeros(5, bool), "for each of 200 rows"),
        (np.zeros(200, bool), "some labels and not all"),
        (np.arange(200), "True or False"),
    ],
)
def test_a_mask_that_marks_no_labels_is_refused(fitted, mask, said):
    with pytest.raises(DataError, match=said):
        report_facts(fitted[0], is_wrong=mask)


def test_numbers_to_predict_have_thirds_of_the_target_and_no_classes():
    X, _ = two_classes(90)
    found = report_facts(quick().fit(X, X[:, 0] ** 2 + 0.5))
    assert found["target"]["kind"] == "numbers"
    assert len(found["spread"]["groups"]) == 3
    assert found["plane"]["numbers"]["low"] == pytest.approx(0.5, abs=0.2)
    assert [each["metric"] for each in found["curves"]] == ["r2"]


def test_few_rows_are_points_and_many_a_density(fitted, monkeypatch):
    assert report_facts(fitted[0])["plane"]["kind"] == "points"
    monkeypatch.setattr(scatter, "MOST_POINTS", 100)
    found = report_facts(fitted[0])["plane"]
    assert found["kind"] == "density"
    assert found["pictures"].keys() == {"value", "class", "suspect"}


def test_images_have_examples_in_their_coalitions():
    images = RNG.integers(0, 255, (60, 6, 6)).astype(np.float32)
    y = (images[:, 0, 0] > 120).astype(int)
    model = quick().fit(images, y)
    examples = report_facts(model)["tree"]["examples"]
    assert examples["0"][0]["image"].startswith("data:image/png")
    for node, seen in examples.items():
        rows = set(model.tree_.rows(int(node)).tolist())
        assert {each["row"] for each in seen} <= rows


def test_of_a_large_tree_whole_levels_are_drawn_and_the_rest_counted():
    widths = [1, 80, 6400]
    parent = np.concatenate([[-1], np.zeros(80), 1 + np.arange(6400) % 80]).astype(int)
    n = len(parent)
    frame = pd.DataFrame({
        "id": np.arange(n), "parent": parent, "level": np.repeat([0, 1, 2], widths),
        "size": 2, "value": 0.1, "stderr": 0.01, "value_per_row": 0.05, "as_player": np.nan,
        "utility": 0.1, "dispersion": 0.0, "consistency": 0.0, "label_mix": "a 100%",
    })  # fmt: skip
    found = nodes_facts(frame)
    assert len(found["id"]) == 81 <= MOST_NODES
    assert (found["n_levels"], found["n_levels_all"], found["n_all"]) == (2, 3, 6480)
    assert found["is_inner"] == [1] * 81
    assert found["as_player"][0] is None


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    frame = people(2000)
    frame.loc[:119, "label"] = frame.loc[:119, "label"].map({"yes": "no", "no": "yes"})
    return valued(written(folder / "data", frame, (700,)), folder / "run"), frame


def test_a_data_sets_run_is_told_from_its_files(stored):
    run, frame = stored
    found = dataset_report_facts(run, is_wrong=np.arange(2000) < 120)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    values = run.column("value")
    assert found["best"][0]["row"] == int(np.argmax(values))
    assert sum(sum(group["counts"]) for group in found["spread"]["groups"]) == 2000
    assert found["plane"]["kind"] is None
    assert found["curves"] == []
    assert found["discovery"]["n_wrong"] == 120
    worst = found["worst"][0]
    city = dict(worst["look"]["cells"])["city"]
    assert city == frame["city"][worst["row"]]


def test_files_that_changed_are_not_shown_as_the_rows_that_were_valued(stored, tmp_path):
    run, frame = stored
    source = {
        **run.about["source"],
        "table": str(written(tmp_path / "other", frame[:1500])),
    }
    moved = type(run)(run.folder, {**run.about, "source": source})
    found = dataset_report_facts(moved)
    assert found["worst"][0]["look"] is None
    assert "not there any more" in found["why_no_rows"]
