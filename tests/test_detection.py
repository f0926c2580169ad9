"""Wrong labels found, rare classes spared, and no row judged by what has seen its label."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score

from fits import flipped, quick, row_scores
from hcdv import HCDV
from hcdv.functional import knn_shapley
from hcdv.intake import EncoderSettings, build_case, read_table
from hcdv.valuation.doubts import label_doubts
from hcdv.valuation.features import linear_features
from hcdv.valuation.points import Case, Judge
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.utility import LeastSquares

DATA = os.environ.get("HCDV_DATA")  # a folder of larger sets, for two slow tests


def held_against_neighbours(X, y, n, rate, kind, seed=0):
    """AUROC of flips by values, suspects and exact KNN-Shapley, K = 5 and 10, same input."""
    rng = np.random.default_rng([seed, round(100 * rate)])
    order = rng.permutation(len(y))
    train, judges = order[:n], order[n : n + 100]
    given, wrong = flipped(y[train], rate, rng, kind)
    y_val, _ = flipped(y[judges], rate, rng, kind)
    v = HCDV(random_state=seed, n_jobs=1).fit(X[train], given, X[judges], y_val)
    vectors = (v.embedding_, given, v.run_.case.judges[0].points.Z, y_val)
    knn = max(roc_auc_score(wrong, -knn_shapley(*vectors, k)) for k in (5, 10))
    return knn, roc_auc_score(wrong, -v.values_), roc_auc_score(wrong, row_scores(v))


@pytest.mark.parametrize("kind", ["uniform", "pair"])
def test_wrong_digits_are_found_better_than_by_exact_knn_shapley(kind):
    knn, values, suspects = held_against_neighbours(
        *load_digits(return_X_y=True), 800, 0.1, kind
    )
    assert knn > 0.7
    assert values > knn + 0.01
    assert suspects > knn + 0.01
    assert suspects > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("kind", ["uniform", "pair"])
def test_so_they_are_at_every_rate_of_noise(rate, kind):
    found = [
        held_against_neighbours(*load_digits(return_X_y=True), 1600, rate, kind, seed)
        for seed in range(2)
    ]
    knn, values, suspects = np.mean(found, axis=0)
    assert min(values, suspects) > knn


def fashion(folder):
    """Fashion-MNIST's training images and labels, from a folder or its sub-folder."""
    at = next(Path(folder).rglob("train-images-idx3-ubyte.gz")).parent
    read = [
        np.frombuffer(gzip.decompress((at / name).read_bytes()), np.uint8, offset=skip)
        for name, skip in (
            ("train-images-idx3-ubyte.gz", 16), ("train-labels-idx1-ubyte.gz", 8),
        )
    ]  # fmt: skip
    return read[0].reshape(-1, 28, 28), read[1].astype(int)


if DATA:

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["uniform", "pair"])
    def test_wrong_garments_are_found_better_than_by_exact_knn_shapley(kind):
        knn, values, suspects = held_against_neighbours(*fashion(DATA), 6000, 0.1, kind)
        assert min(values, suspects) > knn + 0.03

    @pytest.mark.slow
    @pytest.mark.parametrize("share", [0.15, 0.24])
    def test_rich_people_are_not_all_suspects_nor_dropped(share):
        import pandas as pd

        table = pd.read_parquet(Path(DATA) / "adult.parquet")
        X = table.drop(columns=["income", "split", "label"])
        rows, y = skewed(None, table["label"].to_numpy().astype(int), share, 2000)
        found = on_unbalanced(X.iloc[rows], y, "auto")
        assert min(found.within) > 0.7
        assert found.kept >= 0.5


# Rare classes.


def skewed(X, y, share, n, seed=0):
    """Some rows of which a given share is of class 1: rows (or their numbers) and labels."""
    rng = np.random.default_rng(seed)
    n_rare = round(share * n)
    rare = rng.choice(np.flatnonzero(y == 1), n_rare, replace=False)
    other = rng.choice(np.flatnonzero(y == 0), n - n_rare, replace=False)
    rows = rng.permutation(np.r_[rare, other])
    return (rows if X is None else X[rows]), y[rows]


class on_unbalanced:
    """Five per cent flipped: AUROC within each given class; the share of rare rows kept."""

    def __init__(self, X, y, metric):
        rng = np.random.default_rng(1)
        given, wrong = flipped(y, 0.05, rng)
        v = HCDV(random_state=0, n_jobs=1, metric=metric).fit(X, given)
        score, right = row_scores(v), (y == 1) & ~wrong
        self.overall = roc_auc_score(wrong, score)
        self.values = roc_auc_score(wrong, -v.values_)
        self.within = [
            roc_auc_score(wrong[given == c], score[given == c])
            for c in (0, 1)
            if wrong[given == c].sum() > 2
        ]
        kept = v.select(0.3)
        self.kept = right[kept].mean() / right.mean()


def table_of(name):
    if name == "tumours":
        X, y = load_breast_cancer(return_X_y=True)
        return X, 1 - y
    if name == "threes":
        X, y = load_digits(return_X_y=True)
        return X, (y == 3).astype(int)
    X = np.random.default_rng(0).normal(size=(8000, 10))
    score = X[:, 0] + X[:, 1] ** 2 / 2
    return X, (score > np.quantile(score, 0.75)).astype(int)


UNBALANCED = [
    ("tumours", 0.03, 360), ("tumours", 0.15, 400), ("tumours", 0.24, 450),
    ("threes", 0.10, 500), ("drawn", 0.15, 500), ("drawn", 0.24, 500),
]  # fmt: skip


@pytest.mark.parametrize(("name", "share", "n"), UNBALANCED)
def test_wrong_labels_are_found_within_each_class_of_unbalanced_data(name, share, n):
    found = on_unbalanced(*skewed(*table_of(name), share, n), "auto")
    assert min(found.within) > 0.7
    assert found.overall > 0.8
    assert found.values > 0.8


def test_the_rare_class_is_not_the_list_of_suspects():
    X, y = skewed(*table_of("tumours"), 0.05, 370)
    v = HCDV(random_state=0, n_jobs=1).fit(X, y)  # nothing is flipped
    table = v.suspects()
    assert table.loc[table["given"] == 1, "is_suspect"].mean() < 0.5


@pytest.mark.parametrize(
    ("name", "share", "n", "metric"),
    [
        ("tumours", 0.15, 400, "auto"),
        ("tumours", 0.24, 450, "auto"),
        ("drawn", 0.24, 500, "auto"),
        # The loss of all rows alike is hardly moved by a class of 3 %: ask for what is.
        ("tumours", 0.03, 360, "balanced_accuracy"),
        ("threes", 0.10, 500, "balanced_accuracy"),
        ("drawn", 0.03, 500, "balanced_accuracy"),
        ("drawn", 0.15, 500, "balanced_accuracy"),
    ],
)
def test_the_best_rows_hold_at_least_half_of_the_rare_classs_share(name, share, n, metric):
    assert on_unbalanced(*skewed(*table_of(name), share, n), metric).kept >= 0.5


# No row is judged by what has seen its label.


def noise_case(encoder, seed, n=160, d=300):
    """Labels that nothing predicts, and columns enough for any encoder to learn them by heart."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    return build_case(read_table(X, y), EncoderSettings(encoder), None, None, seed, 1).case


def leaky(case):
    """The same case in the one embedding that saw all labels: what must not be done."""
    judging = np.zeros_like(case.judging_view)
    judges = [
        Judge(case.views[0].take(np.flatnonzero(case.points.fold == k)), 0, judge.eligible)
        for k, judge in enumerate(case.judges)
    ]
    return Case(case.views, judges, judging, case.originals)


def mean_agreement(case):
    features = [linear_features(points.Z) for points in case.views]
    return np.nanmean(label_doubts(case, features, 0, 1).margins)


def surplus_of_models(case):
    probe = Probe.of(case, LeastSquares(features="linear"), "loss", 0)
    everyone = np.zeros(len(case.points), dtype=np.intp)
    game = probe.game(case, everyone, 1, 1)
    paid = np.asarray(game(np.array([[False], [True]])))
    return float(paid[1] - paid[0])


@pytest.mark.parametrize("encoder", ["linear", pytest.param("mlp", marks=pytest.mark.slow)])
def test_labels_that_nothing_predicts_are_not_predicted(encoder):
    cases = [noise_case(encoder, seed) for seed in range(4 if encoder == "linear" else 2)]
    for case in cases:
        assert len(case.views) == 1 + len(case.judges)
    assert abs(np.mean([mean_agreement(case) for case in cases])) < 0.15
    assert np.mean([surplus_of_models(case) for case in cases]) < 0.05
    # The same two measures tell an encoder that leaks: they would fail.
    assert np.mean([mean_agreement(leaky(case)) for case in cases]) > 0.3
    assert np.mean([surplus_of_models(leaky(case)) for case in cases]) > 0.2


@pytest.mark.parametrize("encoder", ["linear", "identity"])
def test_values_under_pure_noise_tell_a_random_half_from_the_other_by_chance(encoder):
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(160, 100)), rng.integers(0, 2, 160)
        v = quick(encoder=encoder).fit(X, y)
        half = rng.permutation(160) < 80
        found += [roc_auc_score(half, v.values_), roc_auc_score(half, row_scores(v))]
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)


def test_a_leaking_case_hides_wrong_labels_that_the_honest_one_finds():
    """Encoders that saw a wrong label place its row among that label's rows."""
    found, hidden, leaked = [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(160, 120))
        y, wrong = flipped((X[:, :3].sum(axis=1) > 0).astype(int), 0.15, rng)
        settings = EncoderSettings("linear")
        case = build_case(read_table(X, y), settings, None, None, 0, 1).case
        features = [linear_features(points.Z) for points in case.views]
        honest = label_doubts(case, features, 0, 1).agreement
        leaking = label_doubts(leaky(case), features, 0, 1).agreement
        found.append(roc_auc_score(wrong, -honest))
        hidden.append(np.mean(honest[wrong] > 0))
        leaked.append(np.mean(leaking[wrong] > 0))
    assert np.mean(found) > 0.65
    assert np.mean(leaked) > 1.5 * np.mean(hidden)


def test_each_fold_is_judged_in_the_embedding_that_never_saw_it():
    case = noise_case("linear", 0)
    changed = replace(case.points, target=1 - case.points.target)
    for k, judge in enumerate(case.judges):
        assert judge.view == case.judging_view[k] == k + 1
        own = case.points.fold == k
        assert np.array_equal(judge.points.Z, case.views[k + 1].Z[own])
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(160, 300)), rng.integers(0, 2, 160)
    table = read_table(X, y)
    first = build_case(table, EncoderSettings("linear"), None, None, 0, 1).case
    own = first.points.fold == 0
    swapped = np.where(
        own, 1 - y, y
    )  # folds are even by class: relabel within fold 0 alone
    relabelled = replace(table.target, labels=swapped)
    second = build_case(
        replace(table, target=relabelled), EncoderSettings("linear"), None, None, 0, 1
    ).case
    if np.array_equal(first.points.fold, second.points.fold):
        assert np.allclose(first.views[1].Z, second.views[1].Z)
    assert len(changed) == 160
