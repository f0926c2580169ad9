import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from games import RADIUS, shapley_by_subsets, slow_knn_game, small_knn_data
from hcdv.errors import DataError, ParameterError
from hcdv.valuation.knn import (
    knn_regression_shapley,
    knn_shapley,
    soft_knn_shapley,
    threshold_knn_shapley,
)

SEEDS = st.integers(0, 2**32 - 1)
VALUES = {
    "hard": knn_shapley,
    "soft": soft_knn_shapley,
    "regression": knn_regression_shapley,
    "threshold": lambda X, y, X_val, y_val, k, **how: threshold_knn_shapley(
        X, y, X_val, y_val, RADIUS, **how
    ),
}


@pytest.mark.parametrize("kind", VALUES)
@given(n=st.integers(1, 6), k=st.integers(1, 8), seed=SEEDS)
def test_the_closed_form_is_the_shapley_value(kind, n, k, seed):
    data = small_knn_data(n, seed, kind == "regression")
    weights = np.random.default_rng(seed).dirichlet(np.ones(3))
    expected = shapley_by_subsets(slow_knn_game(kind, *data, k, weights), n)
    got = VALUES[kind](*data, k, sample_weight_val=weights * 7)
    assert got == pytest.approx(expected, abs=1e-12)


def large(n=3000, n_val=40, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(n, 5)), rng.normal(size=(n_val, 5))
    y, y_val = ((part[:, 0] + rng.normal(size=len(part)) > 0) * 1 for part in (X, X_val))
    return X, y, X_val, y_val


@pytest.mark.parametrize("kind", VALUES)
def test_values_sum_to_what_everyone_is_paid(kind):
    X, y, X_val, y_val = large(400)
    if kind == "regression":
        y, y_val = X[:, 0] + 1, X_val[:, 0]
    game = slow_knn_game(kind, X, y, X_val, y_val, 10)
    everyone, no_one = game(np.array([np.ones(400, bool), np.zeros(400, bool)]))
    assert VALUES[kind](X, y, X_val, y_val, 10).sum() == pytest.approx(everyone - no_one)


@pytest.mark.parametrize("kind", VALUES)
def test_any_number_of_workers_gives_the_same_bits(kind, monkeypatch):
    monkeypatch.setattr("hcdv.valuation.neighbours.BLOCK_BYTES", 8 * 500 * 3)
    data = large(500)
    one, two = (VALUES[kind](*data, 5, n_jobs=n) for n in (None, 2))
    assert np.array_equal(one, two)
    monkeypatch.setattr("hcdv.valuation.neighbours.BLOCK_BYTES", 8 * 500 * 40)
    assert VALUES[kind](*data, 5) == pytest.approx(one, abs=1e-12)


@pytest.mark.parametrize("values", [knn_shapley, soft_knn_shapley])
@pytest.mark.parametrize("tolerance", [0.1, 0.01, 0.002])
def test_a_partial_sort_is_within_its_tolerance_and_keeps_the_sum(values, tolerance):
    data = large()
    exact = values(*data, 10, tolerance=0.0)
    quick = values(*data, 10, tolerance=tolerance)
    assert not np.array_equal(quick, exact)
    assert np.abs(quick - exact).max() <= tolerance
    assert quick.sum() == pytest.approx(exact.sum(), abs=1e-12)


def test_a_partial_sort_is_within_its_tolerance_for_a_single_validation_row():
    """Nothing averages out: the bound holds row by row, in the worst order of labels."""
    X = np.arange(200.0)[:, None]
    for y in (X[:, 0] >= 100, X[:, 0] < 100, X[:, 0] % 2 == 0):
        exact, quick = (
            knn_shapley(X, y, [[-1.0]], [True], 3, tolerance=tol) for tol in (0, 1 / 20)
        )
        assert 0 < np.abs(quick - exact).max() <= 1 / 20
        assert quick.sum() == pytest.approx(exact.sum(), abs=1e-12)


def test_a_partial_sort_keeps_the_ranking():
    data = large(3000, 200)
    exact, quick = (knn_shapley(*data, 10, tolerance=tol) for tol in (0, 0.003))
    assert spearmanr(exact, quick).statistic > 0.95


def test_a_mislabelled_row_is_worth_less():
    X, y, X_val, y_val = large(500)
    y, y_val = (X[:, 0] > 0) * 1, (X_val[:, 0] > 0) * 1
    y[:50] = 1 - y[:50]
    value = soft_knn_shapley(X, y, X_val, y_val)
    assert value[:50].mean() < 0 < value[50:].mean()


def test_labels_may_be_words_and_a_validation_class_may_be_unseen():
    X, X_val = [[0.0], [1.0], [2.0]], [[0.1], [0.2]]
    value = soft_knn_shapley(X, ["a", "b", "a"], X_val, ["a", "c"], 1)
    assert value.sum() == pytest.approx(0.5 - 1 / 3)
    wider = soft_knn_shapley(X, ["a", "b", "a"], X_val, ["a", "c"], 1, n_classes=5)
    assert wider.sum() == pytest.approx(0.5 - 1 / 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"tolerance": -1.0}, "tolerance must be zero or more, got -1.0"),
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"sample_weight_val": [1.0, 2.0]}, "sample_weight_val must be 40 weights"),
        ({"sample_weight_val": np.zeros(40)}, "sample_weight_val must be 40 weights"),
        ({"y": [0, 1]}, r"y and y_val must hold one label per row, got shapes \(2,\)"),
        ({"X": np.full((60, 5), np.nan)}, "X must be finite"),
        ({"X": np.zeros((60, 4))}, "the same columns, got 4 and 5"),
        ({"X_val": np.zeros((0, 5))}, "X_val must be a table with at least one row"),
    ],
)
def test_what_cannot_be_valued_is_refused(change, message):
    given_ = dict(zip(("X", "y", "X_val", "y_val"), large(60), strict=True)) | change
    with pytest.raises((ParameterError, DataError), match=message):
        soft_knn_shapley(**given_)


def test_a_target_or_a_radius_that_is_missing_is_refused():
    X, y, X_val, y_val = large(60)
    with pytest.raises(DataError, match="y and y_val must be finite"):
        knn_regression_shapley(X, np.where(y, np.nan, 1.0), X_val, y_val)
    with pytest.raises(DataError, match="y and y_val must hold one number per row"):
        knn_regression_shapley(X, y[1:], X_val, y_val)
    with pytest.raises(ParameterError, match="radius must be more than zero, got 0"):
        threshold_knn_shapley(X, y, X_val, y_val, 0.0)
