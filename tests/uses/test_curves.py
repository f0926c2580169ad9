"""Curves are what the probe is worth when it is taught anew with the rows they name."""

from __future__ import annotations

import numpy as np
import pytest

from fits import flipped, quick, two_classes
from hcdv.uses.curves import discovery, value_curves
from hcdv.valuation.moments import metric_of_models
from hcdv.valuation.probe import solve
from hcdv.valuation.statistics import group_statistics

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def noisy():
    X, y = two_classes(240, noise=0.1)
    y, wrong = flipped(y, 0.15, RNG)
    return quick().fit(X, y), wrong


def taught_with(run, rows, metric):
    """The metric of the probe taught with some rows (canonical), one model a judge."""
    probe, found = run.valuation.probe, []
    for k, judge in enumerate(run.case.judges):
        code = np.where(rows & run.case.taught(judge), 0, 1)
        points, features = run.case.views[judge.view], probe.features[judge.view]
        model = solve(group_statistics(points, features, code, 1), probe.ridge)
        moments = probe.moments[k]
        found.append(metric_of_models(metric, model, judge.points, features, moments)[0])
    return float(np.mean(found))


@pytest.mark.parametrize("at", [1, 7, 10, 20])
def test_each_step_is_a_model_taught_with_those_rows(noisy, at):
    run = noisy[0].run_
    for curves in value_curves(run):
        order = np.argsort(-run.valuation.values, kind="stable")
        best, worst = np.zeros((2, run.n_rows), bool)
        best[order[: 240 * at // 20]] = True
        worst[order[240 - 240 * at // 20 :]] = True
        assert curves.best[at] == pytest.approx(taught_with(run, best, curves.metric))
        assert curves.worst[at] == pytest.approx(taught_with(run, worst, curves.metric))


def test_what_is_selected_is_taught_as_selected(noisy):
    model = noisy[0]
    curves = value_curves(model.run_)[0]
    at = int(np.flatnonzero(np.isclose(curves.selected_share, 0.3))[0])
    kept = np.zeros(240, bool)
    kept[model.select(0.3)] = True
    own = taught_with(model.run_, kept[model.run_.position], curves.metric)
    assert curves.selected[at] == pytest.approx(own)


def test_all_curves_begin_with_knowing_nothing_and_end_with_all_rows(noisy):
    loss, accuracy = value_curves(noisy[0].run_)
    assert (loss.metric, accuracy.metric) == ("loss", "accuracy")
    assert (loss.empty, accuracy.empty) == (0.0, 0.5)
    for curves in (loss, accuracy):
        for each in (curves.best, curves.worst, curves.random):
            assert each[0] == curves.empty
            assert each[-1] == pytest.approx(curves.whole)


def test_wrong_labels_taken_away_first_help_and_good_ones_harm(noisy):
    curves = value_curves(noisy[0].run_)[0]
    assert curves.best[17] > curves.whole > curves.worst[17]


@pytest.mark.parametrize(("settings", "metric"), [({"metric": "auc"}, "auc"), ({}, "r2")])
def test_other_targets_have_one_curve_of_their_own(settings, metric):
    X, y = two_classes(80)
    y = X[:, 0] * 2.0 + 0.1 if metric == "r2" else y
    (curves,) = value_curves(quick(**settings).fit(X, y).run_)
    assert curves.metric == metric


def test_few_rows_have_few_steps():
    X, y = two_classes(12)
    curves = value_curves(quick(leaf_size=4).fit(X, y).run_)[0]
    assert len(curves.share) == 13
    assert np.isfinite(curves.selected).all()


def test_discovery_counts_what_was_met():
    wrong = np.array([True, False, True, False])
    first = discovery(np.array([0, 2, 1, 3]), wrong)
    assert (first.precision, first.auroc) == (1.0, 1.0)
    assert first.found.tolist() == [0.0, 0.5, 1.0, 1.0, 1.0]
    mixed = discovery(np.array([1, 0, 3, 2]), wrong)
    assert (mixed.precision, mixed.auroc) == (0.5, 0.25)
