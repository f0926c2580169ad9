"""Chances of wrong labels from margins alone: against mixtures whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import seeds, some_points
from hcdv.valuation.calibration import (
    _LOOSE,
    PRIOR_RATE,
    Curve,
    Sample,
    _deviance,
    _pooled,
    calibrated,
    margins,
)
from hcdv.valuation.points import Points


def mixture(n, rate, n_classes=2, gap=2.0, seed=0):
    """Scores in which the true class stands out, and points some of whose labels are wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    scores = rng.normal(size=(n_classes, n)) / gap
    scores[truth, np.arange(n)] += 1.0
    wrong = rng.random(n) < rate
    given = (truth + wrong * rng.integers(1, n_classes, n)) % n_classes
    nobody = np.zeros(n, dtype=np.intp)
    return (
        scores,
        Points(np.eye(2)[nobody], given, n_classes, nobody.astype(np.uint64), nobody),
        wrong,
    )


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_share_of_wrong_labels_is_found_without_knowing_one(rate, n_classes):
    scores, points, wrong = mixture(20_000, rate, n_classes)
    curve = calibrated(scores, points)
    assert curve.rates.mean() == pytest.approx(wrong.mean(), rel=0.35, abs=0.01)
    chance = curve(margins(scores, points), points.target)
    assert chance.sum() == pytest.approx(wrong.sum(), rel=0.35, abs=0.01 * len(wrong))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_of_rows_of_one_chance_so_many_are_wrong(n_classes):
    scores, points, wrong = mixture(40_000, 0.15, n_classes)
    chance = calibrated(scores, points)(margins(scores, points), points.target)
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 0.95), (0.95, 1.0)):
        inside = (chance >= low) & (chance < high)
        assert inside.sum() > 50
        assert wrong[inside].mean() == pytest.approx(chance[inside].mean(), abs=0.1)


def test_margins_that_know_nothing_leave_every_label_at_the_prior():
    rng = np.random.default_rng(0)
    nobody = np.zeros(4000, dtype=np.intp)
    points = Points(
        np.eye(2)[nobody], rng.integers(0, 3, 4000), 3, nobody.astype(np.uint64), nobody
    )
    scores = rng.normal(size=(3, 4000))
    chance = calibrated(scores, points)(margins(scores, points), points.target)
    assert chance == pytest.approx(PRIOR_RATE, abs=0.05)
    assert np.ptp(chance) < 0.05


def test_models_that_prefer_other_labels_know_nothing_either():
    """Of random labels, each row left out in turn leaves its own label the less likely."""
    rng = np.random.default_rng(0)
    nobody = np.zeros(2000, dtype=np.intp)
    target = (rng.random(2000) < 0.1).astype(np.intp)
    points = Points(np.eye(2)[nobody], target, 2, nobody.astype(np.uint64), nobody)
    scores = rng.normal(size=(2, 2000))
    scores[target, np.arange(2000)] -= 0.5
    curve = calibrated(scores, points)
    assert curve.knows_nothing
    assert curve(margins(scores, points), target) == pytest.approx(PRIOR_RATE)


def test_the_margin_of_a_label_is_its_score_less_the_best_others():
    scores = np.array([[0.5, 0.1, 0.2], [0.2, 0.4, 0.2], [0.1, 0.3, 0.9]])
    nobody = np.zeros(3, dtype=np.intp)
    points = Points(np.eye(3), np.array([0, 2, 1]), 3, nobody.astype(np.uint64), nobody)
    assert margins(scores, points) == pytest.approx([0.3, -0.1, -0.7])


def test_wrong_numbers_are_told_by_their_distance():
    points = some_points(3000, 0, 1)
    rng = np.random.default_rng(0)
    wrong = rng.random(3000) < 0.1
    own = points.target / points.target.std()
    target = np.where(wrong, rng.permutation(own), own)
    told = Points(points.Z, target, 0, points.key, points.fold)
    scores = (own + 0.2 * rng.normal(size=3000))[None]
    curve = calibrated(scores, told)
    chance = curve(margins(scores, told), told.target)
    assert chance[wrong].mean() > 5 * chance[~wrong].mean()
    assert curve.rates == pytest.approx([0.1], abs=0.06)


def a_sample(seed, leak=0.25):
    rng = np.random.default_rng(seed)
    return Sample(rng.normal(1, 1, 40), rng.normal(-1, 1, 60), rng.random(60), leak)


CENTRE = np.array([-2.0, 0.0, 0.0])


@given(seeds, st.floats(-4, 1), st.floats(-2, 2), st.floats(-1.5, 1.0))
@settings(max_examples=50)
def test_the_slope_of_the_deviance_is_that_of_its_differences(seed, logit_rate, a, log_b):
    sample, theta, step = a_sample(seed), np.array([logit_rate, a, log_b]), 1e-6
    held = np.array([1.0, 0.5, 2.0])
    slope = _deviance(theta, sample, CENTRE, held)[1]
    for axis in range(3):
        nudge = step * np.eye(3)[axis]
        up, down = (_deviance(theta + d, sample, CENTRE, held)[0] for d in (nudge, -nudge))
        assert slope[axis] == pytest.approx((up - down) / (2 * step), rel=1e-3, abs=1e-4)


def test_the_curve_is_at_an_optimum_and_does_not_depend_on_the_scale():
    sample = a_sample(3)
    theta = _pooled(sample)
    centre = np.array([np.log(PRIOR_RATE / (1 - PRIOR_RATE)), 0.0, 0.0])
    assert np.abs(_deviance(theta, sample, centre, _LOOSE)[1]).max() < 1e-3
    tenfold = Sample(10 * sample.given, 10 * sample.other, sample.weight, sample.leak)
    assert _pooled(tenfold) == pytest.approx(theta - [0, 0, np.log(10)], abs=1e-4)


@given(st.floats(0.01, 0.4), st.floats(-2, 2), st.floats(0, 20))
def test_a_label_of_smaller_margin_is_never_doubted_less(rate, offset, slope):
    curve = Curve(*(np.array([0.1, x]) for x in (rate, offset, slope)))
    label = np.ones(50, dtype=np.intp)
    chance = curve(np.linspace(-1, 1, 50), label)
    assert (np.diff(chance) <= 0).all()
    assert (np.diff(curve.excess(chance, label)) <= 0).all()
    assert (curve.slope_of_excess(chance, label) >= 0).all()


def unbalanced(n, share, rate, gap=2.0, seed=0):
    """Two classes, one rare, seen by models that take both as equally likely."""
    scores, points, _ = mixture(4 * n, 0.0, 2, gap, seed)
    rng = np.random.default_rng(seed)
    rare = np.flatnonzero(points.target)[: round(share * n)]
    common = np.flatnonzero(points.target == 0)[: n - len(rare)]
    rows = rng.permutation(np.concatenate([rare, common]))
    wrong = rng.random(n) < rate
    kept = points.take(rows)
    return scores[:, rows], replace(kept, target=kept.target ^ wrong), wrong


@pytest.mark.parametrize("share", [0.04, 0.15])
def test_each_label_has_its_own_share_of_wrong_ones(share):
    """At 4 % positives and 2 % flips a third of the labels of the rare class are wrong."""
    scores, points, wrong = unbalanced(20_000, share, 0.02)
    curve = calibrated(scores, points)
    chance = curve(margins(scores, points), points.target)
    for label in (0, 1):
        of = points.target == label
        truth = wrong[of].mean()
        assert curve.rates[label] == pytest.approx(truth, rel=0.5, abs=0.01)
        assert chance[of].mean() == pytest.approx(truth, rel=0.5, abs=0.01)
    likely = chance > 0.5
    assert wrong[likely].mean() > 0.5


def test_labels_that_are_alike_are_not_told_apart_by_chance():
    """Left alone, 500 rows of each label put their shares of wrong ones 1.5 times apart."""
    apart = []
    for seed in range(6):
        scores, points, _ = mixture(1000, 0.1, 2, 1.2, seed)
        rates = calibrated(scores, points).rates
        apart.append(abs(np.log(rates[0] / rates[1])))
    assert np.mean(apart) < 0.1


def test_labels_that_differ_keep_curves_of_their_own_among_few_rows():
    scores, points, wrong = unbalanced(1500, 0.1, 0.05)
    rates = calibrated(scores, points).rates
    assert wrong[points.target == 1].mean() > 5 * wrong[points.target == 0].mean()
    assert rates[1] > 4 * rates[0]


def test_of_numbers_there_is_one_curve_and_of_labels_one_each():
    scores, points, _ = mixture(3000, 0.1, 4)
    assert calibrated(scores, points).rates.shape == (4,)
    numbers = some_points(300, 0, 1)
    assert calibrated(numbers.target[None], numbers).rates.shape == (1,)
