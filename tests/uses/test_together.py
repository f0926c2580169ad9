"""The worth of a selection as one coalition is that of the game the run itself was valued by."""

from __future__ import annotations

import numpy as np
import pytest

from fits import quick, two_classes
from hcdv.embedding.dispersion import cross_label_dispersion
from hcdv.uses.together import Worth
from hcdv.valuation.payoffs import coalition_game


def payoffs(v, rows):
    """M of nothing, of the rows, of all others and of all, from statistics gathered anew."""
    run = v.run_
    code = np.isin(run.position, rows).astype(np.intp)
    game = coalition_game(
        run.case, run.plan.utility, run.valuation.probe, run.plan.metric, code, 2
    )
    return game(np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool))


CASES = {
    "folds judge": ({}, {}),
    "a validation set judges": ({}, {"judged": True}),
    "balanced accuracy": ({"metric": "balanced_accuracy"}, {}),
    "neighbours": ({"utility": "soft-knn"}, {}),
    "numbers": ({}, {"numbers": True}),
    "kernel": ({"utility": "kernel"}, {}),
}


def fitted(settings, numbers=False, judged=False):
    X, y = two_classes(120)
    y = X[:, 0] + 0.1 * X[:, 1] if numbers else y
    own = two_classes(40, seed=1) if judged else ()
    return quick(**settings).fit(X, y, *own)


@pytest.mark.parametrize(("settings", "of"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("rows", [[5], np.arange(20, 50), np.arange(10, 115)])
def test_it_is_what_the_game_pays(settings, of, rows):
    v = fitted(settings, **of)
    found = Worth(v.run_).of(np.asarray(rows))
    none, own, rest, everyone = payoffs(v, rows)
    assert found.n_rows == len(rows)
    assert found.alone["utility"] == pytest.approx(own - none, abs=1e-9)
    assert found.to_others["utility"] == pytest.approx(everyone - rest, abs=1e-9)
    assert found.of_all["utility"] == pytest.approx(everyone - none, abs=1e-9)
    for name, part in v.parts_.items():
        assert found.summed[name] == pytest.approx(part[rows].sum(), abs=1e-12)


def test_all_rows_together_are_worth_the_surplus():
    v = fitted({})
    found = Worth(v.run_).of(np.arange(120))
    for worth in (found.alone, found.to_others, found.of_all):
        assert sum(worth.values()) == pytest.approx(v.surplus_, abs=1e-9)


def test_the_spread_between_classes_is_that_of_the_rows_alone():
    v = fitted({"dispersion_weight": 0.5})
    rows = np.arange(30)
    points = v.run_.case.points
    own = np.isin(v.run_.position, rows)

    def spread(member):
        sums = np.stack([points.Z[member & (points.target == c)].sum(0) for c in (0, 1)])
        count = np.bincount(points.target[member], minlength=2)
        return cross_label_dispersion(count, sums, ratio=False)

    whole = np.bincount(points.target).prod()
    found = Worth(v.run_).of(rows)
    everyone = np.ones(120, dtype=bool)
    assert found.alone["dispersion"] == pytest.approx(0.5 * spread(own) / whole)
    lost = 0.5 * (spread(everyone) - spread(~own)) / whole
    assert found.to_others["dispersion"] == pytest.approx(lost)


def test_the_papers_ratio_is_kept_where_the_run_was_valued_by_it():
    v = fitted({"method": "paper"})
    found = Worth(v.run_).of(np.arange(120))
    assert sum(found.of_all.values()) == pytest.approx(v.surplus_, abs=1e-9)
    half = Worth(v.run_).of(np.arange(60))
    assert half.alone["dispersion"] > 0.5 * half.of_all["dispersion"]  # a mean, not a sum


def test_rows_that_say_the_same_are_missed_less_than_their_values_sum_to():
    X, y = two_classes(60)
    v = quick().fit(np.concatenate([X, X]), np.concatenate([y, y]), X, y)
    found = Worth(v.run_).of(np.arange(60))
    assert found.to_others["utility"] < 0.2 * found.summed["utility"]
    assert found.alone["utility"] > 1.5 * found.summed["utility"]


def test_a_model_that_is_not_kept_is_stood_in_for_by_the_probe():
    v = fitted({"utility": lambda rows: len(rows) / 120})
    assert Worth(v.run_).of(np.arange(30)).is_surrogate
    assert not Worth(fitted({}).run_).of(np.arange(30)).is_surrogate
