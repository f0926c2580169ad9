"""Rows taken in by sums alone are worth what they are worth when all rows are looked at."""

from __future__ import annotations

import numpy as np
import pytest

from fits import quick, two_classes
from hcdv.streaming.ahead import Ahead

X, Y = two_classes(220)
X_VAL, Y_VAL = two_classes(40, seed=9)
N = 110
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
NUMBERS = X[:, 0] + 0.1 * X[:, 1]

SETTINGS = {
    "default": {},
    "kernel and auc": {"utility": "kernel", "metric": "auc"},
    "leaves that may sprout": {"spawn_distance": 1.5},
    "flat": {"branching": "flat"},
    "many at the first level": {"branching": 9, "leaf_size": 4},
    "in one leaf": {"leaf_size": 500},
}


@pytest.fixture
def the_long_way(monkeypatch):
    def long(act):
        with monkeypatch.context() as patch:
            patch.setattr("hcdv.estimator.Ahead.of", lambda run: None)
            return act()

    return long


def lived(y=Y, weight=None, judges=None, *, looking=False, **settings):
    """A run after rows came in batches of 1, 7, 30 and 12."""
    own = {} if weight is None else {"sample_weight": weight[:N]}
    v = quick(**settings).fit(X[:N], y[:N], X_VAL, Y_VAL if y is Y else X_VAL[:, 0], **own)
    at = N
    for size in (1, 7, 30, 12):
        part = slice(at, at + size)
        own = {} if weight is None else {"sample_weight": weight[part]}
        v.partial_fit(X[part], y[part], *(judges or ()), **own)
        if looking:
            assert v.values_.sum() == pytest.approx(v.surplus_)
        at += size
    return v


def assert_alike(one, other):
    assert one.tree_ == other.tree_
    assert one.ids_.tolist() == other.ids_.tolist()
    assert one.stale_.tolist() == other.stale_.tolist()
    assert one.surplus_ == pytest.approx(other.surplus_, abs=1e-12)
    for name, part in one.parts_.items():
        assert np.allclose(part, other.parts_[name], rtol=0, atol=1e-12)
    assert np.allclose(one.stderr_, other.stderr_, rtol=0, atol=1e-12)
    mine, theirs = one.coalitions_, other.coalitions_
    for column in ("value", "stderr", "as_player", "correction"):
        assert np.allclose(mine[column], theirs[column], rtol=0, atol=1e-11, equal_nan=True)
    assert np.allclose(
        one.history_.drop(columns="kind"), other.history_.drop(columns="kind")
    )
    assert np.allclose(one.drift()["value"], other.drift()["value"], rtol=0, atol=1e-11)
    assert one.suspects()["row"].tolist() == other.suspects()["row"].tolist()
    assert np.allclose(one.refresh().values_, other.refresh().values_, rtol=0, atol=1e-10)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_sums_alone_give_what_looking_at_all_rows_gives(settings, the_long_way):
    v = lived(**settings)
    assert len(v._ahead.came) == 4
    assert_alike(v, the_long_way(lambda: lived(**settings)))


def test_so_they_do_with_weights_numbers_and_other_judges(the_long_way):
    late = two_classes(30, seed=77)
    for given in ({"weight": WEIGHT}, {"y": NUMBERS}, {"judges": late}):
        v = lived(**given)
        assert v._ahead.came
        assert_alike(v, the_long_way(lambda given=given: lived(**given)))


def test_whether_somebody_looks_in_between_does_not_matter():
    assert_alike(lived(), lived(looking=True))


def test_rows_that_change_leaves_levels_or_contexts_go_the_long_way():
    v = lived(rebalance_every=40)
    assert v.run_.living.n_rebalances == 1
    v = lived(max_rows=120)
    assert len(v.ids_) == 120
    far = quick(spawn_distance=0.05).fit(X[:N], Y[:N], X_VAL, Y_VAL)
    n_leaves = len(far.tree_.leaves)
    assert len(far.partial_fit(X[N:], Y[N:]).tree_.leaves) > n_leaves


def test_an_update_takes_no_longer_where_there_are_more_rows(monkeypatch):
    """No array as long as the rows is made, and none but new rows are asked about."""
    v = lived()
    n = v.run_.n_rows
    asked = []
    monkeypatch.setattr(
        Ahead, "looked_at", lambda self: pytest.fail("all rows were looked at")
    )
    original = np.concatenate

    def counted(arrays, *args, **settings):
        found = original(arrays, *args, **settings)
        asked.append(len(found))
        return found

    monkeypatch.setattr(np, "concatenate", counted)
    v.partial_fit(X[:2], Y[:2])
    assert max(asked, default=0) < n
    assert v._ahead.tally.n_rows == n + 2


def test_the_surplus_is_known_without_looking(monkeypatch):
    v = lived()
    with monkeypatch.context() as patch:
        patch.setattr(Ahead, "looked_at", lambda self: pytest.fail("looked"))
        surplus = v.surplus_
    assert surplus == pytest.approx(v.values_.sum(), abs=1e-12)


def test_ids_of_rows_not_looked_at_yet_are_taken_too():
    v = quick().fit(X[:N], Y[:N], X_VAL, Y_VAL)
    v.partial_fit(X[N : N + 1], Y[N : N + 1], ids=[500])
    with pytest.raises(ValueError, match="ids must be new, got 500"):
        v.partial_fit(X[N : N + 1], Y[N : N + 1], ids=[500])
    assert v.partial_fit(X[N : N + 1], Y[N : N + 1]).ids_[-1] == 501
