"""A candidate is worth what it would add to the data, and enters nobody's context."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hcdv import HCDV
from hcdv.bench import candidates as stand
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
    found = stand.candidate_parts(model, x, label)
    assert found.marginal == pytest.approx(gains, rel=0.05, abs=1e-7)


def test_rows_of_the_data_seen_as_candidates_agree_with_their_values(data, model):
    X, y = data
    again = stand.candidate_parts(model, X[:400], y[:400])
    assert np.corrcoef(again.dispersion, model.parts_["dispersion"])[0, 1] > 0.999
    assert np.corrcoef(again.consistency, model.parts_["consistency"])[0, 1] > 0.98
    utility = again.marginal + again.coalition
    assert np.corrcoef(utility, model.parts_["utility"])[0, 1] > 0.7


def test_a_wrong_label_makes_a_candidate_worth_less(data, model):
    X, y = data
    right = stand.candidate_parts(model, X[400:500], y[400:500]).values
    wrong = stand.candidate_parts(model, X[400:500], (y[400:500] + 1) % 10).values
    assert np.mean(wrong < right) > 0.95


def test_a_candidate_is_valued_alone_whoever_comes_with_it(data, model):
    X, y = data
    many = stand.candidate_parts(model, X[400:420], y[400:420]).values
    alone = stand.candidate_parts(model, X[405:406], y[405:406]).values
    assert alone[0] == pytest.approx(many[5], rel=1e-9)


def test_the_nearest_leaf_of_a_row_of_a_tight_leaf_is_its_own(model):
    tree, Z = model.tree_, model.embedding_
    nearest = tree.leaves[stand.nearest_leaf(tree, Z, Z)]
    assert np.mean(nearest == tree.leaf_of_row) > 0.6
