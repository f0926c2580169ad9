"""Wrong labels are doubted inside each class, however rare; evidence's warning 14 in small."""

from dataclasses import replace

import numpy as np
import pytest

from cases import a_case, cross_fitted, some_points, validated
from hcdv.judging import time_folds
from hcdv.valuation.calibration import margins
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


def within_classes(case, chance, wrong):
    """How well a chance of being wrong finds wrong labels, among rows of one given label."""
    labels = case.points.target
    return [auroc(chance[labels == c], wrong[labels == c]) for c in (0, 1)]


@pytest.mark.parametrize("share", [0.03, 0.15, 0.24])
def test_suspects_are_not_simply_the_rare_class(share):
    case, wrong = flipped(share)
    found = label_doubts(case, [linear_features(case.points.Z)], 0, None)
    assert min(within_classes(case, found.chance, wrong)) > 0.7
    # No doubt of the rare class as such: of the rows that pay nothing it has its share.
    clean_rare = (case.points.target == 1) & ~wrong
    trusted = found.agreement == found.agreement.max()
    assert clean_rare[trusted].mean() > 0.5 * clean_rare.mean()


def test_without_weights_the_rare_class_would_be_all_suspects(monkeypatch):
    """The trap: no clean row of a 3 % class is among the best, and few agree at all."""
    case, wrong = flipped(0.03)
    fair = label_doubts(case, [linear_features(case.points.Z)], 0, None)
    monkeypatch.setattr(
        "hcdv.valuation.doubts.class_weights", lambda points: np.ones(len(points))
    )
    unfair = label_doubts(case, [linear_features(case.points.Z)], 0, None)
    clean_rare = (case.points.target == 1) & ~wrong
    margin = unfair.margins.mean(axis=0)
    assert not clean_rare[np.argsort(-margin)[: round(0.3 * N)]].any()
    assert unfair.margins[:, clean_rare].mean() < 0
    assert fair.margins[:, clean_rare].mean() > unfair.margins[:, clean_rare].mean() + 0.3


def test_wrong_numbers_are_doubted_and_right_ones_are_not():
    points = some_points(400, 0, 1, noise=0.2)
    wrong = np.random.default_rng(0).random(400) < 0.1
    target = points.target / points.target.std()
    target[wrong] = -target[wrong] + 2 * np.sign(-target[wrong])
    case = validated(
        Points(points.Z, target, 0, points.key, points.fold), some_points(20, 0, 2)
    )
    doubts = label_doubts(case, [linear_features(points.Z)], 0, None)
    assert auroc(doubts.chance, wrong) > 0.95
    assert doubts.chance[wrong].mean() > 0.8
    assert doubts.chance[~wrong].mean() < 0.2


def test_what_doubted_rows_pay_the_others_get():
    """A(D) = 0; undoubted rows are alike, and the more doubted get less."""
    case, _ = flipped(0.24)
    found = label_doubts(case, [linear_features(case.points.Z)], 0, None)
    assert found.agreement.sum() == pytest.approx(0.0, abs=1e-9)
    label = case.points.target
    trusted = found.chance < found.curve.rates[label] / 2
    assert trusted.any()
    assert np.ptp(found.agreement[trusted]) == 0.0
    for given in (0, 1):
        of = np.flatnonzero(label == given)
        order = of[np.argsort(found.chance[of])]
        assert (np.diff(found.agreement[order]) <= 1e-15).all()


def test_the_error_is_that_of_independent_orders():
    """To first order: the slope of A_i by its margin, and margins that differ by order."""
    case = flipped(0.24)[0]
    doubts = label_doubts(case, [linear_features(case.points.Z)], 0, None)
    n_orders = len(doubts.margins)
    assert n_orders >= 4
    nudge = 1e-6
    up, down = (
        doubts.curve.excess(
            doubts.curve(margins(doubts.scores, case.points) + step, case.points.target),
            case.points.target,
        )
        for step in (nudge, -nudge)
    )
    slope = (down - up) / (2 * nudge)
    moved = slope * (doubts.margins - doubts.margins.mean(axis=0))
    moved -= moved.mean(axis=1, keepdims=True)
    expected = np.sum(moved**2, axis=0) / (n_orders * (n_orders - 1))
    assert doubts.variance == pytest.approx(expected, rel=1e-3, abs=1e-9)


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
    assert np.abs(linear.margins.mean(axis=0)).mean() < 0.2
    assert both.margins.mean() > 0.4


def test_a_row_is_judged_in_the_view_whose_encoder_has_not_seen_it_and_there_alone():
    points = some_points(120, 2, 3, n_folds=3)
    views = [points.seen_in(points.Z * scale) for scale in (1.0, 0.9, 0.8, 0.7)]
    case = cross_fitted(points, views, np.arange(1, 4))
    features = [linear_features(view.Z) for view in views]
    doubts = label_doubts(case, features, 0, None)
    judged = ~np.isnan(doubts.margins)
    assert np.array_equal(judged.sum(axis=0), np.full(120, 2))
    assert np.isfinite(doubts.agreement).all()
    moved = [views[0], views[1], views[2], points.seen_in(points.Z * [0.1, 1, 2])]
    other = label_doubts(cross_fitted(points, moved, np.arange(1, 4)), features, 0, None)
    changed = ~np.isclose(other.scores, doubts.scores, atol=1e-9).all(axis=0)
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
    changed = np.flatnonzero((one.scores != two.scores).any(axis=0))
    assert changed.tolist() == [3]


def paired(n_folds=4):
    """Labels by chance, every row there twice, and both of a pair in one fold."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=(300, 60))
    one /= np.linalg.norm(one, axis=1, keepdims=True)
    fold = np.repeat(rng.integers(0, n_folds, 300), 2)
    key = np.arange(600).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return Points(np.repeat(one, 2, axis=0), np.repeat(np.arange(300) % 2, 2), 2, key, fold)


def test_copies_in_a_fold_that_is_held_out_do_not_vouch_for_each_other():
    points = paired()
    case = validated(points, points)
    features = [linear_features(points.Z)]
    free = label_doubts(case, features, 0, None)
    ruled = label_doubts(replace(case, doubters=~np.eye(4, dtype=bool)), features, 0, None)
    assert free.margins.mean() > 0.05
    assert np.nanmean(ruled.margins) < 0.03
    assert np.array_equal((~np.isnan(ruled.margins)).sum(axis=0), np.full(600, 2))


def test_labels_in_a_block_of_time_are_judged_by_earlier_blocks():
    """The first block, which has none, by its own other rows."""
    points = some_points(160, 2, 3, n_folds=4)
    asking = time_folds(points.fold, 3).asking
    assert asking.tolist() == [
        [True, False, False, False], [True, False, False, False],
        [True, True, False, False], [True, True, True, False],
    ]  # fmt: skip
    features = [linear_features(points.Z)]
    found = []
    for later in (
        points.target,
        np.where(points.fold >= 2, 1 - points.target, points.target),
    ):
        changed = replace(points, target=later)
        case = replace(validated(changed, points), doubters=asking)
        found.append(label_doubts(case, features, 0, None).scores)
    assert np.isfinite(found[0]).all()
    early = points.fold < 2
    # class weights are of all rows: both classes weigh alike before and after, nearly
    assert found[1][:, early] == pytest.approx(found[0][:, early], abs=0.05)
    assert np.abs(found[1][:, ~early] - found[0][:, ~early]).mean() > 0.1


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
    one, two = (
        np.nanmean(label_doubts(c, features, 0, None).margins, axis=0)
        for c in (weighted, other)
    )
    assert one[weight > 0] == pytest.approx(two[weight > 0], abs=1e-12)
    assert one[weight == 0] == pytest.approx(-two[weight == 0], abs=1e-12)
