"""A candidate is worth what it would add to the data, and enters nobody's context."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from fits import flipped, quick, two_classes
from hcdv import HCDV
from hcdv.embedding.rows import read_rows
from hcdv.errors import DataError, ParameterError
from hcdv.uses import candidates as stand
from hcdv.uses import scoring
from hcdv.uses.admission import quotas
from hcdv.valuation.nested import flat_contexts
from hcdv.valuation.probe import solve
from hcdv.valuation.statistics import Statistics


@pytest.fixture(scope="module")
def data():
    X, y = load_digits(return_X_y=True)
    return X, y.astype(np.intp)


@pytest.fixture(scope="module")
def model(data):
    X, y = data
    return HCDV(random_state=0, n_contexts=64).fit(
        X[:400], y[:400], X[800:1200], y[800:1200]
    )


def parts_of(model, X, y):
    Z = model.encoder_.transform(np.asarray(X, dtype=float))
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    points = stand.as_points(model.run_, Z, model.run_.target.coded(np.asarray(y)))
    return stand.labelled_parts(model.run_, points, stand.ask(model.run_, points))


def test_the_marginal_is_what_retraining_with_the_candidate_gains(data, model):
    X, y = data
    x, label = X[500:503], y[500:503]
    run = model.run_
    probe, points = run.valuation.probe, run.case.points
    kept = next(one for one in probe.memo.values() if one.contexts is not None)
    features, moments = probe.features[0], probe.moments[0]
    encoded = model.encoder_.transform(x)
    encoded /= np.linalg.norm(encoded, axis=1, keepdims=True)
    Z = features(encoded, np.dtype(float))
    gains = np.zeros(3)
    contexts = kept.contexts
    for i in range(3):
        target = np.full(points.n_classes, -1.0 / points.n_classes)
        target[label[i]] += 1.0
        for order in range(contexts.n_orders):
            own = Statistics(kept.stats.gram[order], kept.stats.cross[order])
            more = Statistics(
                own.gram + np.outer(Z[i], Z[i]), own.cross + np.outer(Z[i], target)
            )
            gain = moments.utility(solve(more, probe.ridge)) - moments.utility(
                solve(own, probe.ridge)
            )
            gains[i] += np.mean(contexts.weight[order] * gain) / contexts.n_orders
    found = parts_of(model, x, label)
    assert found.marginal == pytest.approx(gains, rel=0.05, abs=1e-7)


def test_rows_of_the_data_seen_as_candidates_agree_with_their_values(data, model):
    X, y = data
    again = parts_of(model, X[:400], y[:400])
    assert np.corrcoef(again.dispersion, model.parts_["dispersion"])[0, 1] > 0.999
    assert np.corrcoef(again.consistency, model.parts_["consistency"])[0, 1] > 0.98
    utility = again.marginal + again.coalition
    assert np.corrcoef(utility, model.parts_["utility"])[0, 1] > 0.7


def test_a_wrong_label_makes_a_candidate_worth_less(data, model):
    X, y = data
    right = parts_of(model, X[400:500], y[400:500]).values
    wrong = parts_of(model, X[400:500], (y[400:500] + 1) % 10).values
    assert np.mean(wrong < right) > 0.95


def test_a_candidate_is_valued_alone_whoever_comes_with_it(data, model):
    X, y = data
    many = parts_of(model, X[400:420], y[400:420]).values
    alone = parts_of(model, X[405:406], y[405:406]).values
    assert alone[0] == pytest.approx(many[5], rel=1e-9)


def test_the_nearest_leaf_of_a_row_of_a_tight_leaf_is_its_own(model):
    tree, Z = model.tree_, model.embedding_
    nearest = tree.leaves[stand.nearest_leaf(tree, Z, Z)]
    assert np.mean(nearest == tree.leaf_of_row) > 0.6


def brute_marginal(model, z, target):
    """What teaching every context once more, with the row, gains; the mean over judges."""
    run = model.run_
    case, probe, plan = run.case, run.valuation.probe, run.plan
    contexts = flat_contexts(plan, len(case.judges))
    points, features = case.points, probe.features[0]
    X = features(points.Z, np.dtype(float))
    Y = points.targets(slice(None), np.dtype(float))
    x = features(z[None], np.dtype(float))
    members = contexts.members(points.key)
    gains = np.zeros(len(case.judges))
    for order in range(contexts.n_orders):
        k = contexts.stream[order] % len(case.judges)
        judge, moments = case.judges[k], probe.moments[k]
        found = []
        for context, weight in zip(members[order], contexts.weight[order], strict=True):
            inside = context & case.taught(judge)
            own = Statistics(X[inside].T @ X[inside], X[inside].T @ Y[inside])
            more = Statistics(own.gram + x.T @ x, own.cross + x.T @ target[None])
            worth = [moments.utility(solve(one, probe.ridge)) for one in (own, more)]
            found.append(weight * (worth[1] - worth[0]))
        gains[k] += case.taught(judge).mean() * np.mean(found)
    return gains.sum() / contexts.n_orders  # as many orders for every judge


@pytest.mark.parametrize("kind", ["validated", "cross-fitted", "regression", "loaded"])
def test_a_value_is_the_brute_force_marginal_to_the_same_contexts(kind, tmp_path):
    X, y = two_classes(80)
    if kind == "regression":
        y = X[:, 0] + 0.25
    judged = (X[50:], y[50:]) if kind == "validated" else ()
    model = quick().fit(X[:50], y[:50], *judged)
    if kind == "loaded":
        model.save(tmp_path / "run")
        model = HCDV.load(tmp_path / "run")
    run = model.run_
    new = slice(60, 64)
    Z = model.encoder_.transform(model.table_encoder_.transform(read_rows(X[new])))
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    code = run.target.coded(y[new])
    points = stand.as_points(run, Z, code)
    target = points.targets(slice(None), np.dtype(float))
    parts = stand.labelled_parts(run, points, stand.ask(run, points))
    for i in range(4):
        assert parts.marginal[i] == pytest.approx(
            brute_marginal(model, Z[i], target[i]), rel=1e-8, abs=1e-13
        )
    told = model.score_candidates(X[new], y[new])
    assert told["value"].to_numpy() == pytest.approx(parts.values, rel=1e-9)
    summed = told[["utility", "dispersion", "consistency"]].sum(axis=1).to_numpy()
    assert summed == pytest.approx(parts.values, rel=1e-9)


def test_dispersion_is_half_of_what_a_row_adds_to_all_pairs(data, model):
    X, y = data
    run = model.run_
    own = run.case.points
    found = parts_of(model, X[500:501], y[500:501]).dispersion[0]
    z = model.encoder_.transform(X[500:501].astype(float))[0]
    z /= np.linalg.norm(z)
    other = own.target != y[500]
    pairs = (own.target[:, None] != own.target[None]).sum() / 2
    added = (1 - own.Z[other] @ z).sum() / pairs
    assert found == pytest.approx(run.plan.dispersion_weight * added / 2, rel=1e-9)


@pytest.mark.parametrize("validated", [True, False])
def test_candidates_rank_as_they_do_once_they_are_in_the_data(data, validated):
    X, y = data
    y = flipped(y, 0.1, np.random.default_rng(0))[0]
    judged = (X[1200:], y[1200:]) if validated else ()
    outside = HCDV(random_state=0).fit(X[:500], y[:500], *judged)
    told = outside.score_candidates(X[500:560], y[500:560])["value"]
    inside = outside.partial_fit(X[500:560], y[500:560], lazy=False).values_[500:]
    assert spearmanr(told, inside).statistic > 0.9
    assert np.corrcoef(told, inside)[0, 1] > 0.95


def test_nothing_is_changed_by_asking(data, model):
    X, _ = data
    before = model.values_.copy(), list(model.table_encoder_.notes), len(model.history_)
    model.score_candidates(X[400:405])
    after = model.values_, model.table_encoder_.notes, len(model.history_)
    assert np.array_equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_without_labels_the_value_is_expected_over_the_likely_ones(data, model):
    X, y = data
    told = model.score_candidates(X[400:460])
    assert np.mean(told["suggested"] == y[400:460]) > 0.75
    assert told["certainty"].between(0.1, 1.0).all()
    sure = told["certainty"] > 1 - 1e-3
    known = model.score_candidates(X[400:460], told["suggested"].to_numpy())
    assert told["value"][sure].to_numpy() == pytest.approx(known["value"][sure], rel=1e-6)
    assert (told["spread"][sure] < 1e-9).all()
    unsure = told["certainty"].argmin()
    values = [
        model.score_candidates(X[400 + unsure : 401 + unsure], [c])["value"][0]
        for c in range(10)
    ]
    assert min(values) < told["value"][unsure] < max(values)
    assert told["spread"][unsure] > 0


def test_chances_of_labels_are_the_shares_of_right_ones(data):
    mixed = np.random.default_rng(0).permutation(1797)
    X, y = data[0][mixed], data[1][mixed]
    told = HCDV(random_state=0).fit(X[:600], y[:600]).score_candidates(X[600:])
    right = told["suggested"] == y[600:]
    assert told["certainty"].mean() == pytest.approx(right.mean(), abs=0.04)
    unsure = told["certainty"] < told["certainty"].quantile(0.2)
    assert told["certainty"][unsure].mean() == pytest.approx(right[unsure].mean(), abs=0.1)


def test_copies_and_novelty_are_told(data, model):
    X, y = data
    some = np.concatenate([X[5:6], X[600:603], X[601:602], 16 - X[603:604]])
    labels = np.concatenate([y[5:6], y[600:603], y[601:602], y[603:604]])
    told = model.score_candidates(some, labels)
    assert told["is_duplicate"].tolist() == [True, False, False, False, True, False]
    assert told["copy_of"][[0, 4]].tolist() == ["row 5", "candidate 2"]
    assert told["nearest"][0] == 5
    assert told["novelty"][0] == 0
    assert told["novelty"][5] > 0.99
    assert told["leaf_distance"].idxmax() == 5


def test_what_is_kept_covers_every_class_and_everything_has_its_reason(data, model):
    X, y = data
    wrong = np.r_[np.zeros(80, bool), np.ones(10, bool)]
    label = np.where(wrong, (y[400:490] + 1) % 10, y[400:490])
    some = np.concatenate([X[400:490], X[:3]])
    told = model.score_candidates(some, np.append(label, y[:3]), keep=30)
    assert told["keep"].sum() == 30
    assert sorted(set(told["label"][told["keep"]])) == list(range(10))
    assert told["label"][told["keep"]].value_counts().max() <= 4
    assert not told["keep"][90:].any()
    assert told["reason"][90:].str.startswith("a copy of row").all()
    doubted = told["reason"].str.startswith("label probably wrong")
    assert wrong[np.flatnonzero(doubted)].mean() > 0.85
    assert doubted[80:90].sum() >= 8
    assert sorted(told["rank"]) == list(range(1, 94))
    assert (told["rank"][told["keep"]] <= 30).all()
    of_class = told[told["label"] == 3]
    free = of_class[~of_class["reason"].str.contains("copy|wrong|nothing")]
    assert free["keep"][free["value"].idxmax()]  # the best of a class is always in
    assert (told["reason"] != "").all()


def test_no_more_are_kept_than_are_worth_it(data, model):
    X, y = data
    told = model.score_candidates(X[:20], y[:20], keep=10)
    assert told["keep"].sum() == 0


def test_groups_are_compared(data, model):
    X, y = data
    label = np.r_[y[400:430], (y[430:460] + 1) % 10]
    told = model.score_candidates(
        X[400:460], label, groups=["right"] * 30 + ["wrong"] * 30, keep=20
    )
    table = scoring.compared(told)
    assert table["group"].tolist() == ["right", "wrong"]
    assert table["rows"].tolist() == [30, 30]
    assert table["kept"][0] > 0.5
    assert table["kept"][1] < 0.1
    assert table["wrong"][1] > 0.7


@pytest.mark.parametrize(
    ("share", "k", "expected"),
    [
        ([0.5, 0.3, 0.2], 10, [5, 3, 2]),
        ([0.98, 0.01, 0.01], 10, [8, 1, 1]),
        ([0.5, 0.5, 0.0], 10, [2, 7, 1]),
        ([0.2, 0.3, 0.5], 2, [0, 1, 1]),
        ([0.5, 0.3, 0.2], 1000, [2, 40, 40]),
    ],
)
def test_quotas_follow_the_shares_and_what_there_is(share, k, expected):
    there = np.array([2, 40, 40]) if share[0] == 0.5 and share[1] != 0.3 else None
    there = np.array([2, 40, 40]) if k == 1000 else there
    there = np.array([50, 40, 40]) if there is None else there
    assert quotas(there, np.array(share), k).tolist() == expected


@pytest.mark.parametrize("keep", [0, -1, 2.5, "all", True])
def test_a_number_to_keep_that_is_none_is_refused(model, data, keep):
    with pytest.raises(
        ParameterError, match="keep must be None or a number of rows from 1"
    ):
        model.score_candidates(data[0][:3], keep=keep)


def test_what_candidates_lack_is_told(data, model):
    X, y = data
    with pytest.raises(DataError, match="X_new: "):
        model.score_candidates(X[:3, :10], y[:3])
    with pytest.raises(
        DataError, match="X_new: y must hold classes seen in the fit, got 11"
    ):
        model.score_candidates(X[:3], [1, 11, 2])
    with pytest.raises(DataError, match="groups must have one entry for each of 3 rows"):
        model.score_candidates(X[:3], y[:3], groups=["a"])
    with pytest.raises(DataError, match="groups must have no missing entries, got 1"):
        model.score_candidates(X[:3], y[:3], groups=["a", None, "b"])


def test_runs_whose_encoders_saw_labels_need_a_validation_set():
    X, y = two_classes(80)
    model = quick(encoder="linear").fit(X[:50], y[:50])
    with pytest.raises(DataError, match="encoder must not have seen labels"):
        model.score_candidates(X[50:])
    judged = quick(encoder="linear").fit(X[:50], y[:50], X[60:], y[60:])
    assert len(judged.score_candidates(X[50:60])) == 10


@pytest.mark.parametrize(
    "settings",
    [
        {"utility": "knn"}, {"method": "paper"}, {"method": "winter"},
        {"semivalue": "banzhaf"}, {"semivalue": "loo"}, {"metric": "accuracy"},
    ],
)  # fmt: skip
def test_every_kind_of_run_values_candidates(settings):
    X, y = two_classes(80)
    wrong = np.arange(20) < 8
    label = np.where(wrong, 1 - y[50:70], y[50:70])
    told = quick(**settings).fit(X[:50], y[:50]).score_candidates(X[50:70], label)
    assert np.isfinite(told["value"]).all()
    assert told["value"][~wrong].mean() > told["value"][wrong].mean()


def test_rows_that_their_places_do_not_tell_apart_are_no_copies():
    X = np.random.default_rng(0).normal(size=(80, 1))  # unit vectors of one number: ±1
    y = (X[:, 0] > 0).astype(int)
    told = quick().fit(X[:50], y[:50]).score_candidates(X[50:], y[50:])
    assert not told["is_duplicate"].any()
