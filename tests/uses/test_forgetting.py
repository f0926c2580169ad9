"""Forgetting: subtraction gives what valuing the rows that stay gives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fits import quick, two_classes
from hcdv.errors import DataError
from hcdv.uses.forgetting import restricted
from hcdv.valuation.methods import value
from hcdv.valuation.moments import judge_moments
from hcdv.valuation.pointwise import Probe

X, Y = two_classes(70)
X_VAL, Y_VAL = two_classes(30, seed=1)
GONE = [3, 7, 20, 21, 22, 55]
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 70)

SETTINGS = {
    "default": {},
    "kernel": {"utility": "kernel"},
    "neighbours": {"utility": "knn"},
    "auc": {"metric": "auc"},
    "winter": {"method": "winter"},
    "paper": {"method": "paper"},
    "retrained": {"utility": LogisticRegression(), "leaf_size": 32},
    "supervised encoder": {"encoder": "linear"},
    "semivalue": {"semivalue": "banzhaf"},
    "in rounds": {"precision": 1e-9},
    "flat": {"branching": "flat"},
}


@pytest.fixture(autouse=True)
def _three_rounds_at_most(monkeypatch):
    monkeypatch.setattr("hcdv.valuation.plan.MAX_ROUNDS", 3)


@pytest.fixture(params=[False, True], ids=["cross-fitted", "validated"])
def judges(request):
    return (X_VAL, Y_VAL) if request.param else ()


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def weights(request):
    return {"sample_weight": WEIGHT} if request.param else {}


def valued_anew(v, gone):
    """Values, by id, of the rows that stay: same tree and features, all else from scratch."""
    run = v.run_
    keep = np.ones(run.n_rows, bool)
    keep[gone] = False
    keep = keep[run.position]
    case, old = restricted(run.case, keep), run.valuation.probe
    moments = [
        judge_moments(judge.points, old.features[judge.view], old.metric)
        for judge in case.judges
    ]
    probe = Probe(old.features, moments, old.ridge, old.metric)
    found = value(case, run.canonical_tree.restrict(keep), run.plan, probe=probe)
    return dict(zip(run.canonical_ids[keep].tolist(), found.values.tolist(), strict=True))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_rows_that_stay_are_worth_what_they_are_worth_valued_anew(settings, judges):
    ids = np.random.default_rng(2).permutation(70)
    v = quick(**settings).fit(X, Y, *judges, ids=ids)
    expected = valued_anew(v, GONE)
    v.forget(GONE)
    assert v.ids_.tolist() == np.delete(ids, GONE).tolist()
    assert np.allclose(v.values_, [expected[i] for i in v.ids_.tolist()], rtol=0, atol=1e-9)


def test_weights_are_subtracted_with_their_rows(judges):
    v = quick().fit(X, Y, *judges, sample_weight=WEIGHT)
    expected = valued_anew(v, GONE)
    assert np.allclose(v.forget(GONE).values_, list(expected.values()), rtol=0, atol=1e-9)


def test_numbers_are_forgotten_as_classes_are(judges):
    y = X[:, 0] + 0.1 * X[:, 1]
    v = quick().fit(X, y, *(() if not judges else (X_VAL, X_VAL[:, 0])))
    expected = valued_anew(v, GONE)
    assert np.allclose(v.forget(GONE).values_, list(expected.values()), rtol=0, atol=1e-9)


def test_the_case_left_is_that_of_the_rows_left(judges):
    run = quick().fit(X, Y, *judges).run_
    keep = np.ones(70, bool)
    keep[GONE] = False
    left = restricted(run.case, keep)
    assert np.array_equal(left.points.Z, run.case.points.Z[keep])
    assert np.array_equal(left.originals.labels, Y[keep])
    assert np.array_equal(left.originals.position, np.arange(64))
    n_judging = sum(len(judge.points) for judge in left.judges)
    assert n_judging == (30 if judges else 64)
    for judge, (table, labels) in zip(left.judges, left.originals.judged, strict=True):
        assert len(judge.points) == len(labels) == len(table)


def test_a_forgotten_row_leaves_no_trace_in_the_statistics(judges):
    poisoned = X.copy()
    poisoned[GONE] *= -30.0  # loud rows, but not landmarks of a linear probe
    clean = quick(encoder="identity", branching="flat").fit(X, Y, *judges).forget(GONE)
    loud = (
        quick(encoder="identity", branching="flat").fit(poisoned, Y, *judges).forget(GONE)
    )
    assert np.allclose(clean.values_, loud.values_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("nobody", [[], np.zeros(70, bool), np.zeros(0, int)])
def test_forgetting_nobody_changes_nothing(nobody, judges, weights):
    v = quick().fit(X, Y, *judges, **weights)
    before = v.values_.copy(), v.coalitions_
    v.forget(nobody)
    assert np.allclose(v.values_, before[0], rtol=0, atol=1e-12)
    assert np.allclose(v.coalitions_["value"], before[1]["value"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_forgetting_twice_is_forgetting_at_once(settings, judges):
    weights = {} if "knn" in settings.values() else {"sample_weight": WEIGHT}
    once = quick(**settings).fit(X, Y, *judges, **weights).forget([3, 7, 20, 21])
    twice = quick(**settings).fit(X, Y, *judges, **weights)
    twice.forget([20, 7]).forget([3, 19])  # 21 is the 19th of those that stay
    assert np.array_equal(once.ids_, twice.ids_)
    assert np.allclose(once.values_, twice.values_, rtol=0, atol=1e-9)
    assert np.allclose(once.stderr_, twice.stderr_, rtol=0, atol=1e-7)


def test_rows_are_named_by_number_or_by_mask():
    mask = np.isin(np.arange(70), GONE)
    a, b = quick().fit(X, Y).forget(GONE), quick().fit(X, Y).forget(mask)
    assert np.array_equal(a.values_, b.values_)
    assert mask.sum() == len(GONE)
    repeated = quick().fit(X, Y).forget([*GONE, *GONE])
    assert np.array_equal(a.values_, repeated.values_)
    assert len(quick().fit(X, Y).forget(5).values_) == 69


def test_a_payoff_of_your_own_is_asked_about_the_rows_by_their_first_numbers():
    worth = np.random.default_rng(0).random(70) / 70
    ids = np.random.default_rng(1).permutation(70)
    v = quick(utility=lambda rows: worth[rows].sum(), consistency_weight=0.0)
    v.fit(X, Y, ids=ids).forget([3, 7]).forget([0, 60])
    left = np.delete(np.delete(worth, [3, 7]), [0, 60])
    assert np.allclose(v.coalitions_["utility"], v.tree_.node_sums(left), atol=1e-12)


def test_everything_else_follows_the_rows_that_stay():
    v = quick().fit(X, Y).forget(GONE)
    assert (
        len(v.values_) == len(v.embedding_) == len(v.to_frame()) == len(v.suspects()) == 64
    )
    assert v.coalitions_["size"][0] == 64
    assert v.to_frame()["label"].tolist() == np.delete(Y, GONE).tolist()
    assert len(v.select(0.5)) == 32
    assert v.explain(63).id == 69
    assert v.checks_["sum_error"] <= 1e-9
    assert any("6 rows forgotten" in note for note in v.notes_)


def test_a_coalition_that_loses_all_its_rows_is_worth_nothing():
    v = quick().fit(X, Y, X_VAL, Y_VAL)
    leaf = int(v.tree_.leaves[0])
    v.forget(v.tree_.rows(leaf))
    assert v.coalitions_["size"][leaf] == 0
    assert v.coalitions_["value"][leaf] == 0.0
    assert np.isfinite(v.coalitions_["stderr"]).all()


REFUSED = {
    "a row past the end": ([70], "from 0 to 69, got 70"),
    "a negative row": ([-1], "from 0 to 69, got -1"),
    "names": (["r1"], "row numbers or a mask of 70 entries"),
    "a short mask": ([True, False], "row numbers or a mask of 70 entries"),
    "fractions": ([1.5], "row numbers or a mask"),
    "a whole class": (np.flatnonzero(Y), "at least 2 classes"),
    "all rows": (np.arange(70), "at least 2 classes"),
}


@pytest.mark.parametrize(("rows", "says"), REFUSED.values(), ids=REFUSED)
def test_rows_that_cannot_be_forgotten_are_refused_and_nothing_changes(rows, says):
    v = quick().fit(X, Y, X_VAL, Y_VAL)
    before = v.values_
    with pytest.raises(DataError, match=says):
        v.forget(rows)
    assert v.values_ is before


def test_a_fold_cannot_be_forgotten_whole():
    v = quick().fit(X, Y)
    fold = v.run_.case.points.fold
    with pytest.raises(DataError, match="a fold withdrawn whole"):
        v.forget(np.flatnonzero(fold == 2))


def test_two_numbers_must_stay_at_least():
    v = quick().fit(X, X[:, 0], X_VAL, X_VAL[:, 0])
    with pytest.raises(DataError, match="leave at least 2 rows, got all but 1"):
        v.forget(np.arange(69))
