"""Agreement with models taught again, one by one, without the row they judge."""

import numpy as np
import pytest

from cases import contexts_of, numbered, some_points, taught
from hcdv.valuation.consistency import agreement, context_models
from hcdv.valuation.features import linear_features
from hcdv.valuation.points import class_weights
from hcdv.valuation.statistics import Statistics, context_statistics

N, RIDGE = 24, 0.7
NOBODY = np.zeros((3, 1), dtype=bool)


def asked(points, inside, judged=None, barred=None, sketch=None, **how):
    """The agreement over contexts named row by row, and the weights of the rows."""
    features, contexts = linear_features(points.Z), contexts_of(inside)
    weight = class_weights(points)
    barred = NOBODY if barred is None else barred
    judged = ~NOBODY if judged is None else judged
    stats = context_statistics(points, features, contexts, barred, weight=weight)
    models = [
        context_models(Statistics(gram, cross), RIDGE, sketch, np.random.default_rng(0))
        for gram, cross in zip(stats.gram, stats.cross, strict=True)
    ]
    return agreement(points, features, contexts, models, judged, barred, weight, **how)


def refitted(points, members, row):
    """Scores (C,) of a row by a model taught with the members, less the row."""
    rows = np.flatnonzero(members)
    rows = rows[rows != row]
    features = linear_features(points.Z)
    W = taught(points, features, rows, RIDGE, class_weights(points))
    return (features(points.Z[[row]], np.dtype(float)) @ W)[0]


def margin(points, scores, row):
    if not points.n_classes:
        return -abs(points.target[row] - scores[0])
    own = points.target[row]
    return np.clip(scores[own] - np.max(np.delete(scores, own)), -1, 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4, 0])
def test_rows_inside_and_outside_are_judged_as_if_refitted_without_them(
    n_classes, weighted
):
    weight = np.random.default_rng(4).gamma(2, 0.5, N) if weighted else None
    points = numbered(some_points(N, n_classes, 0, weight=weight))
    inside = np.random.default_rng(1).random((3, N)) < [[0.3], [0.6], [1.0]]
    found = asked(points, inside)
    scores = np.array(
        [[refitted(points, members, row) for row in range(N)] for members in inside]
    )
    margins = np.array(
        [[margin(points, of_row, row) for row, of_row in enumerate(s)] for s in scores]
    )
    assert found.margin == pytest.approx(margins, abs=1e-9)
    assert found.scores == pytest.approx(scores.mean(axis=0).T, abs=1e-9)


def test_a_held_out_fold_is_not_taken_for_members_of_the_contexts():
    """Its rows may hash into a context that was taught without them all the same."""
    points = numbered(some_points(N, 2, 0, n_folds=2))
    inside = np.ones((3, N), dtype=bool)
    own = np.array([[True, False]] * 3)
    found = asked(points, inside, judged=own, barred=own)
    of_fold = points.fold == 0
    expected = [
        margin(points, refitted(points, ~of_fold, row), row)
        for row in np.flatnonzero(of_fold)
    ]
    assert np.all(np.isnan(found.margin[:, ~of_fold]))
    assert found.margin[0, of_fold] == pytest.approx(expected, abs=1e-9)


def test_an_order_that_does_not_judge_a_row_says_nothing_of_it():
    points = numbered(some_points(N, 3, 0, n_folds=3))
    inside = np.random.default_rng(1).random((3, N)) < 0.5
    nobody = np.zeros((3, 3), dtype=bool)
    everyone = asked(points, inside, judged=~nobody, barred=nobody)
    own = asked(points, inside, judged=np.eye(3, dtype=bool), barred=nobody)
    seen = points.fold == np.arange(3)[:, None]
    assert np.array_equal(np.isnan(own.margin), ~seen)
    assert np.array_equal(own.margin[seen], everyone.margin[seen])
    single = asked(points, inside[[0]], judged=~nobody[:1], barred=nobody[:1])
    assert own.scores[:, points.fold == 0] == pytest.approx(
        single.scores[:, points.fold == 0], abs=1e-12
    )


def test_workers_and_blocks_do_not_matter(monkeypatch):
    points = numbered(some_points(300, 3, 0))
    inside = np.random.default_rng(1).random((3, 300)) < 0.5
    one, two = (asked(points, inside, n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(one.margin, two.margin)
    monkeypatch.setattr("hcdv.valuation.statistics._CHUNK_ROWS", (17, 17))
    monkeypatch.setattr("hcdv.valuation.blocks._SCRATCH", 64)
    monkeypatch.setattr("hcdv.valuation.blocks._COLUMNS", 4)
    cut = asked(points, inside)
    assert cut.margin == pytest.approx(one.margin, abs=1e-12)
    assert cut.scores == pytest.approx(one.scores, abs=1e-12)


def test_a_sketched_leverage_comes_near_the_exact_one_and_stays_finite():
    points = numbered(some_points(300, 2, 0))
    inside = np.random.default_rng(1).random((3, 300)) < 0.5
    exact, near = (asked(points, inside, sketch=sketch) for sketch in (None, 16))
    assert np.abs(near.margin - exact.margin).max() < 0.05
    few = np.arange(300) < 2  # two rows of great leverage: sketches overshoot 1
    tight = asked(points, np.tile(few, (3, 1)), sketch=2)
    assert np.isfinite(tight.margin).all()
    assert np.abs(tight.margin).max() <= 1
