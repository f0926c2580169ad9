"""A second look orders doubted labels better, by models that these taught less."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score

from fits import flipped, quick, two_classes
from hcdv import HCDV
from hcdv.uses import second_look as stand


@pytest.fixture(scope="module")
def made():
    X, y = load_digits(return_X_y=True)
    given, wrong = flipped(y[:900].astype(int), 0.2, np.random.default_rng(0), "pair")
    return HCDV(random_state=0).fit(X[:900], given), y[:900], given, wrong


def test_more_wrong_labels_come_first(made):
    v, y, _, wrong = made
    once, twice = (v.suspects(twice=each).sort_values("row") for each in (False, True))
    first, second = (average_precision_score(wrong, t["score"]) for t in (once, twice))
    assert second > first
    right = twice["suggested"].to_numpy()[wrong] == y[wrong]
    assert right.mean() > 0.85


def test_the_chances_are_those_of_the_first_look_in_another_order(made):
    v = made[0]
    once, twice = v.suspects(), v.suspects(twice=True)
    assert np.array_equal(once["probability"], twice["probability"])
    assert once["row"].tolist() != twice["row"].tolist()
    assert twice["score"].is_monotonic_decreasing
    assert sorted(twice["row"]) == list(range(900))
    assert (twice["suggested"] != twice["given"])[twice["is_suspect"]].all()
    assert v.suspects(5, twice=True).equals(twice.head(5))


def test_doubted_rows_teach_less(made, monkeypatch):
    v, _, _, wrong = made
    seen = []
    real = stand._asked

    def watched(run, fold, trust):
        seen.append(trust)
        return real(run, fold, trust)

    monkeypatch.setattr(stand, "_asked", watched)
    stand.second_look(v.run_)
    of_wrong = wrong[v.run_.position]
    assert len(seen) == 2
    assert seen[1][of_wrong].mean() < seen[0][of_wrong].mean()
    assert seen[1][~of_wrong].mean() > 0.85


def test_nobody_is_asked_by_a_model_that_was_taught_with_it(made):
    v = made[0]
    fold = stand._folds(v.run_)
    target = v.run_.case.points.target
    counts = np.array([np.bincount(fold[target == c], minlength=5) for c in range(10)])
    assert np.ptp(counts, axis=1).max() <= 1
    trust = np.ones(len(fold))
    before = stand._asked(v.run_, fold, trust)
    trust[fold == 2] = 1e-9
    after = stand._asked(v.run_, fold, trust)
    assert np.array_equal(before[:, fold == 2], after[:, fold == 2])
    assert not np.allclose(before[:, fold == 1], after[:, fold == 1])


@pytest.mark.parametrize("kind", ["numbers", "groups", "fold encoders"])
def test_where_there_is_no_second_look_the_first_stays(kind):
    X, y = two_classes(60)
    if kind == "numbers":
        v = quick().fit(X, X[:, 0] + 0.25)
    elif kind == "groups":
        v = quick().fit(X, y, groups=np.arange(60) // 6)
    else:
        v = quick(encoder="linear").fit(X, y)
    assert v.suspects(twice=True).equals(v.suspects())
