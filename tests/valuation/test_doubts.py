"""Wrong labels are doubted inside each class, however rare; evidence's warning 14 in small."""

import numpy as np
import pytest

from cases import a_case, cross_fitted, some_points, validated
from hcdv.valuation.doubts import label_doubts
from hcdv.valuation.features import kernel_features, linear_features
from hcdv.valuation.points import Points

N = 1500


def flipped(share, seed=0, flips=0.05):
    """Two clouds, the second class holding a share of the rows, 5 % of the labels wrong."""
    rng = np.random.default_rng(seed)
    truth = (np.arange(N) < share * N).astype(np.intp)
    Z = rng.normal(size=(N, 8))
    Z[:, 0] += 2.0 * truth
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    wrong = rng.random(N) < flips
    key = np.arange(N).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    points = Points(Z, truth ^ wrong, 2, key, np.zeros(N, np.intp))
    return validated(points, points), wrong


def auroc(score, positive):
    rank = np.argsort(np.argsort(score)) + 1
    n = positive.sum()
    return (rank[positive].sum() - n * (n + 1) / 2) / (n * (len(score) - n))


def within_classes(case, agreement, wrong):
    """How well low agreement finds wrong labels, among rows of one given label."""
    labels = case.points.target
    return [auroc(-agreement[labels == c], wrong[labels == c]) for c in (0, 1)]


@pytest.mark.parametrize("share", [0.03, 0.15, 0.24])
def test_suspects_are_not_simply_the_rare_class(share):
    case, wrong = flipped(share)
    agreement = label_doubts(case, [linear_features(case.points.Z)], 0, None).agreement
    assert min(within_classes(case, agreement, wrong)) > 0.7
    # No doubt of the rare class as such: of the best 30 % it has half of its share or more.
    clean_rare = (case.points.target == 1) & ~wrong
    best = np.argsort(-agreement)[: round(0.3 * N)]
    assert clean_rare[best].mean() > 0.5 * clean_rare.mean()


def test_without_weights_the_rare_class_would_be_all_suspects(monkeypatch):
    """The trap: no clean row of a 3 % class is among the best, and few agree at all."""
    case, wrong = flipped(0.03)
    monkeypatch.setattr(
        "hcdv.valuation.doubts.class_weights", lambda points: np.ones(len(points))
    )
    agreement = label_doubts(case, [linear_features(case.points.Z)], 0, None).agreement
    clean_rare = (case.points.target == 1) & ~wrong
    best = np.argsort(-agreement)[: round(0.3 * N)]
    assert not clean_rare[best].any()
    assert agreement[clean_rare].mean() < 0
    monkeypatch.undo()
    fair = label_doubts(case, [linear_features(case.points.Z)], 0, None).agreement
    assert fair[clean_rare].mean() > agreement[clean_rare].mean() + 0.3


def test_wrong_numbers_agree_less_than_right_ones():
    points = some_points(400, 0, 1, noise=0.2)
    wrong = np.random.default_rng(0).random(400) < 0.1
    target = points.target / points.target.std()
    target[wrong] = -target[wrong] + 2 * np.sign(-target[wrong])
    case = validated(
        Points(points.Z, target, 0, points.key, points.fold), some_points(20, 0, 2)
    )
    doubts = label_doubts(case, [linear_features(points.Z)], 0, None)
    assert auroc(-doubts.agreement, wrong) > 0.95
    assert np.abs(doubts.agreement).max() <= 1
    assert doubts.agreement[~wrong].mean() > 0.5


def test_the_error_is_that_of_independent_orders():
    case = a_case(60, 2)
    doubts = label_doubts(case, [linear_features(case.points.Z)], 0, None)
    R = len(doubts.batches)
    assert R >= 4
    assert doubts.agreement == pytest.approx(doubts.batches.mean(axis=0), abs=1e-12)
    expected = doubts.batches.var(axis=0, ddof=1) / R
    assert doubts.variance == pytest.approx(expected, abs=1e-12)


def test_a_kernel_probe_is_asked_beside_the_linear_one():
    """A ring around a cloud: no plane tells them apart."""
    rng = np.random.default_rng(0)
    n = 300
    angle, label = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    radius = np.where(label, 1.0, 0.2)
    Z = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    points = Points(Z, label, 2, np.arange(n).astype(np.uint64) << np.uint64(20), 0 * label)
    case = validated(points, points)
    linear = label_doubts(case, [linear_features(Z)], 0, None)
    both = label_doubts(case, [kernel_features(Z, 30, rng)], 0, None)
    assert np.abs(linear.agreement).mean() < 0.2
    assert both.agreement.mean() > 0.4


def test_a_row_is_judged_in_the_view_whose_encoder_has_not_seen_it_and_there_alone():
    points = some_points(120, 2, 3, n_folds=3)
    views = [points.seen_in(points.Z * scale) for scale in (1.0, 0.9, 0.8, 0.7)]
    case = cross_fitted(points, views, np.arange(1, 4))
    features = [linear_features(view.Z) for view in views]
    doubts = label_doubts(case, features, 0, None)
    judged = ~np.isnan(doubts.batches)
    assert np.array_equal(judged.sum(axis=0), np.full(120, 2))
    assert np.isfinite(doubts.agreement).all()
    moved = [views[0], views[1], views[2], points.seen_in(points.Z * [0.1, 1, 2])]
    other = label_doubts(cross_fitted(points, moved, np.arange(1, 4)), features, 0, None)
    changed = ~np.isclose(other.agreement, doubts.agreement, atol=1e-9)
    assert changed[points.fold == 2].mean() > 0.5
    assert not changed[points.fold != 2].any()


def test_no_row_teaches_the_models_that_judge_its_own_fold():
    points = some_points(120, 2, 3, n_folds=3)
    views = [points.seen_in(points.Z * scale) for scale in (1.0, 0.9, 0.8, 0.7)]
    moved = views[1].Z.copy()
    moved[3] = -moved[3]
    features = [linear_features(points.Z)] * 4
    one, two = (
        label_doubts(cross_fitted(points, seen, np.arange(1, 4)), features, 0, None)
        for seen in (views, [views[0], points.seen_in(moved), *views[2:]])
    )
    assert points.fold[3] == 0
    changed = np.flatnonzero(one.agreement != two.agreement)
    assert changed.tolist() == [3]


def test_workers_and_row_order_do_not_matter():
    case = a_case(80, 3)
    features = [kernel_features(case.points.Z, 12, np.random.default_rng(0))]
    one, two = (label_doubts(case, features, 0, jobs) for jobs in (1, 2))
    assert np.array_equal(one.agreement, two.agreement)
    perm = np.random.default_rng(0).permutation(80)
    moved = validated(case.points.take(perm), case.judges[0].points)
    again = label_doubts(moved, features, 0, None)
    assert again.agreement == pytest.approx(one.agreement[perm], abs=1e-12)
    assert again.scores == pytest.approx(one.scores[:, perm], abs=1e-12)


def test_rows_of_no_weight_are_judged_but_do_not_teach():
    weight = np.where(np.arange(60) % 5, 1.0, 0.0)
    case = a_case(60, 2)
    points = case.points
    weighted = validated(
        Points(points.Z, points.target, 2, points.key, points.fold, weight), points
    )
    flipped_target = np.where(weight > 0, points.target, 1 - points.target)
    other = validated(
        Points(points.Z, flipped_target, 2, points.key, points.fold, weight), points
    )
    features = [linear_features(points.Z)]
    one, two = (label_doubts(c, features, 0, None).agreement for c in (weighted, other))
    assert one[weight > 0] == pytest.approx(two[weight > 0], abs=1e-12)
    assert one[weight == 0] == pytest.approx(-two[weight == 0], abs=1e-12)
