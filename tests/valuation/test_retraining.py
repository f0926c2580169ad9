"""Any model as a game: what it pays, what it refuses, and that workers change nothing."""

import itertools
import os
import threading
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hcdv.errors import DataError, ParameterError, PayoffError
from hcdv.valuation.retraining import CallableGame, RetrainingGame
from hcdv.valuation.training import _seeded


def all_masks(n_players):
    return np.array(list(itertools.product([False, True], repeat=n_players)))


def problem(n=60, n_players=5, n_classes=2, seed=0):
    X, y = make_classification(
        n_samples=n + 40,
        n_informative=4,
        n_features=6,
        n_classes=n_classes,
        random_state=seed,
    )
    groups = np.random.default_rng(seed).permutation(np.arange(n) % n_players)
    return X[:n], y[:n], X[n:], y[n:], groups


def logistic_game(**settings):
    return RetrainingGame(
        LogisticRegression(), *problem(), **{"scorer": "accuracy", **settings}
    )


class Fails(ClassifierMixin, BaseEstimator):
    """Cannot be fitted where the rule says so."""

    def __init__(self, rule):
        self.rule = rule

    def fit(self, X, y):
        if self.rule(X):
            raise RuntimeError(f"no fit on {len(X)} rows")
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


def test_payoffs_are_those_of_a_hand_written_loop():
    X, y, X_val, y_val, groups = problem()
    masks = all_masks(5)
    expected = []
    for mask in masks:
        rows = mask[groups]
        if not rows.any():
            expected.append(0.5)
        else:
            model = LogisticRegression().fit(X[rows], y[rows])
            expected.append(accuracy_score(y_val, model.predict(X_val)))
    assert logistic_game()(masks) == pytest.approx(expected, abs=1e-15)


def test_exact_shapley_of_the_game_equals_the_sum_over_orders():
    X, y, X_val, y_val, groups = problem(n_players=4)
    game = RetrainingGame(LinearRegression(), X, y, X_val, y_val, groups, scorer="r2")
    by_order = np.zeros(4)
    for order in itertools.permutations(range(4)):
        seen, before = [], 0.0
        for player in order:
            seen.append(player)
            rows = np.isin(groups, seen)
            after = r2_score(y_val, LinearRegression().fit(X[rows], y[rows]).predict(X_val))
            by_order[player] += (after - before) / factorial(4)
            before = after
    by_subset = np.zeros(4)
    masks = all_masks(4)
    payoff = dict(zip(map(tuple, masks), game(masks), strict=True))
    for mask in masks:
        for player in np.flatnonzero(mask):
            without = mask.copy()
            without[player] = False
            s = without.sum()
            weight = factorial(s) * factorial(3 - s) / factorial(4)
            by_subset[player] += weight * (payoff[tuple(mask)] - payoff[tuple(without)])
    assert by_subset == pytest.approx(by_order, abs=1e-10)
    assert by_subset.sum() == pytest.approx(payoff[(True,) * 4] - 0.0, abs=1e-10)


def test_a_coalition_is_trained_once_however_often_it_is_asked_for():
    asked = []

    def scorer(model, X, y):
        asked.append(1)
        return model.score(X, y)

    game = logistic_game(scorer=scorer, empty=0.5)
    masks = all_masks(5)[[0, 3, 3, 31, 0]]
    first = game(masks)
    again = game(masks[::-1])
    assert len(asked) == game.report.fits == 2
    assert np.array_equal(first[::-1], again)
    assert game.report.cached == 2 + 5


def test_no_coalitions_have_no_payoffs():
    assert logistic_game()(np.zeros((0, 5), bool)).shape == (0,)


@pytest.mark.parametrize(
    ("estimator", "n_jobs"),
    [
        (LogisticRegression(), 2),
        (make_pipeline(StandardScaler(), SGDClassifier()), 2),
        (RandomForestClassifier(4), 2),
        pytest.param(RandomForestClassifier(4), 4, marks=pytest.mark.slow),
    ],
    ids=["logistic, 2", "pipeline, 2", "forest, 2", "forest, 4"],
)
def test_payoffs_are_equal_for_any_number_of_workers_and_any_order(estimator, n_jobs):
    data, masks = problem(), all_masks(5)
    serial = RetrainingGame(estimator, *data, scorer="accuracy", seed=3)
    expected = serial(masks)
    game = RetrainingGame(estimator, *data, scorer="accuracy", seed=3, n_jobs=n_jobs)
    assert np.array_equal(game(masks[::-1]), expected[::-1])
    assert game.report == serial.report


def test_another_seed_trains_another_forest():
    data, masks = problem(), all_masks(5)
    forest = RandomForestClassifier(2, max_depth=1)
    payoffs = [RetrainingGame(forest, *data, scorer="loss", seed=s)(masks) for s in (0, 1)]
    assert not np.array_equal(*payoffs)


def test_every_random_state_gets_a_seed_of_its_own():
    pipeline = make_pipeline(RandomForestClassifier(), SGDClassifier())
    seeds = [
        value
        for coalition in (b"\x01", b"\x02")
        for name, value in _seeded(pipeline, 0, coalition).get_params().items()
        if name.endswith("random_state")
    ]
    assert len(set(seeds)) == len(seeds) == 4
    assert pipeline.get_params()["sgdclassifier__random_state"] is None


def test_a_model_that_always_fails_is_refused_with_its_first_error():
    game = RetrainingGame(Fails(lambda X: True), *problem(), scorer="accuracy")
    with pytest.raises(PayoffError, match=r"31 of 31 fits failed.*RuntimeError: no fit on"):
        game(all_masks(5))
    with pytest.raises(PayoffError, match="31 of 31"):
        game(all_masks(5)[:1])  # a cached answer is refused as well


def test_a_hopeless_model_is_given_up_early():
    X, y, X_val, y_val, _ = problem()
    model = Fails(lambda X: True)
    game = RetrainingGame(model, X, y, X_val, y_val, np.arange(60) % 8, scorer="accuracy")
    with pytest.raises(PayoffError, match="50 of 50 fits failed"):
        game(all_masks(8))


@pytest.mark.parametrize(("limit", "refused"), [(25, False), (37, True)])
def test_failures_are_paid_as_nothing_until_they_are_the_majority(limit, refused):
    game = RetrainingGame(Fails(lambda X: len(X) < limit), *problem(), scorer="accuracy")
    masks = all_masks(5)
    if refused:  # 25 of 31 coalitions have at most three groups of twelve
        with pytest.raises(PayoffError, match="25 of 31"):
            game(masks)
        return
    payoffs = game(masks)
    assert game.report.failures == 15
    assert game.report.first_error.startswith("RuntimeError: no fit on")
    assert (payoffs[masks.sum(axis=1) <= 2] == 0.5).all()
    assert (payoffs[masks.sum(axis=1) > 2] != 0.5).any()


def test_a_model_that_fails_only_in_prediction_is_counted():
    model = KNeighborsClassifier(n_neighbors=20)  # raises in predict below 20 rows
    game = RetrainingGame(model, *problem(), scorer="accuracy")
    game(all_masks(5))
    assert game.report.failures == 5
    assert "n_neighbors" in game.report.first_error


def test_running_out_of_memory_is_not_a_failed_fit():
    def starved(X):
        raise MemoryError

    game = RetrainingGame(Fails(starved), *problem(), scorer="accuracy")
    with pytest.raises(MemoryError):
        game(all_masks(5))


@pytest.mark.parametrize(
    ("score", "told"),
    [
        (np.nan, "got nan"),
        (np.inf, "got inf"),
        (np.ones(3), r"got an array of shape \(3,\)"),
        ("0.5", "got '0.5'"),
        (None, "got None"),
        (1.5, r"in \[0, 1\], got 1.5"),
    ],
)
def test_a_score_that_is_no_payoff_is_refused_and_placed(score, told):
    game = logistic_game(scorer=lambda *_: score, empty=0.5, bounds=(0.0, 1.0))
    with pytest.raises(PayoffError, match=told) as caught:
        game(all_masks(5)[-2:])
    assert "points of 2 classes (0, 1)" in str(caught.value)
    assert "return the score of a constant guess" in str(caught.value)


def test_a_coalition_of_one_class_predicts_it():
    X, y, X_val, y_val, _ = problem()
    game = RetrainingGame(LogisticRegression(), X, y, X_val, y_val, y, scorer="accuracy")
    payoffs = game(np.array([[True, False], [False, True], [True, True]]))
    assert payoffs[:2] == pytest.approx([(y_val == 0).mean(), (y_val == 1).mean()])
    assert (game.report.one_class, game.report.fits) == (2, 1)


def test_one_class_is_named_when_its_score_is_refused():
    X, y, X_val, y_val, _ = problem()
    game = RetrainingGame(
        LogisticRegression(), X, y, X_val, y_val, y, scorer=lambda *_: np.nan, empty=0
    )
    with pytest.raises(
        PayoffError, match=r"got nan for \d+ points that are all of class 1"
    ):
        game(np.array([[False, True]]))


def test_a_pipeline_is_trained_on_rows_of_a_table_with_text():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": rng.normal(size=80), "town": rng.choice(["a", "b", "c"], 80)}
    )
    table.index = table.index[::-1]  # rows are taken by position, not by label
    y = pd.Series(np.where((table["x"] > 0) | (table["town"] == "a"), "yes", "no"))
    columns = ColumnTransformer(
        [
            ("x", StandardScaler(), ["x"]),
            ("town", OneHotEncoder(handle_unknown="ignore"), ["town"]),
        ]
    )
    model = make_pipeline(columns, LogisticRegression())
    groups = np.arange(50) % 4
    data = (table.iloc[:50], y[:50], table.iloc[50:], y[50:], groups)
    payoffs = RetrainingGame(model, *data, scorer="accuracy")(all_masks(4))
    rows = np.isin(groups, [0, 2])
    by_hand = model.fit(table.iloc[:50][rows], y[:50].to_numpy()[rows])
    assert payoffs[0b1010] == by_hand.score(table.iloc[50:], y[50:])
    parallel = RetrainingGame(model, *data, scorer="accuracy", n_jobs=2)
    assert np.array_equal(parallel(all_masks(4)), payoffs)


def test_sparse_rows_are_worth_what_dense_rows_are():
    X, y, X_val, y_val, groups = problem()
    dense = logistic_game()(all_masks(5))
    coo, coo_val = sparse.coo_matrix(X), sparse.coo_matrix(X_val)
    game = RetrainingGame(
        LogisticRegression(), coo, y, coo_val, y_val, groups, scorer="accuracy"
    )
    assert game(all_masks(5)) == pytest.approx(
        dense, abs=0.03
    )  # solvers may differ in an ulp


def test_weights_of_rows_reach_the_last_step_of_a_pipeline():
    X, y, X_val, y_val, groups = problem()
    weight = np.random.default_rng(1).random(60)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    game = RetrainingGame(
        model, X, y, X_val, y_val, groups, scorer="loss", sample_weight=weight
    )
    model.fit(X, y, logisticregression__sample_weight=weight)
    loss = -np.log(model.predict_proba(X_val)[np.arange(40), y_val]).mean()
    assert game(np.ones((1, 5), bool)) == pytest.approx(1 - loss / np.log(2), abs=1e-12)
    with pytest.raises(ParameterError, match="KNeighborsClassifier, whose fit takes none"):
        RetrainingGame(
            KNeighborsClassifier(), *problem(), scorer="accuracy", sample_weight=weight
        )


def test_a_model_that_is_not_scikit_learns_is_copied_and_trained():
    class Nearest:
        def fit(self, X, y):
            assert not hasattr(self, "X")
            self.X, self.y = X, y

        def predict(self, X):
            return self.y[((X[:, None] - self.X) ** 2).sum(axis=2).argmin(axis=1)]

    game = RetrainingGame(Nearest(), *problem(), scorer="accuracy")
    by_name = RetrainingGame(KNeighborsClassifier(1), *problem(), scorer="accuracy")
    assert np.array_equal(game(all_masks(5)), by_name(all_masks(5)))


def test_a_lambda_travels_to_other_processes():
    scorer = lambda model, X, y: model.score(X, y)  # noqa: E731  the point of the test
    expected = logistic_game(scorer=scorer, empty=0.5)(all_masks(5))
    assert np.array_equal(
        logistic_game(scorer=scorer, empty=0.5, n_jobs=2)(all_masks(5)), expected
    )


def test_what_cannot_travel_is_told_to_use_one_process():
    lock = threading.Lock()

    def scorer(model, X, y):
        with lock:
            return model.score(X, y)

    with pytest.raises(ParameterError, match=r"n_jobs must be 1.*use n_jobs=1"):
        logistic_game(scorer=scorer, empty=0.5, n_jobs=2)(all_masks(5))
    logistic_game(scorer=scorer, empty=0.5)(all_masks(5))


def test_a_run_goes_on_from_saved_payoffs(tmp_path):
    masks = all_masks(5)
    whole = logistic_game()
    expected = whole(masks)
    half = logistic_game()
    half(masks[:16])
    np.savez(tmp_path / "payoffs.npz", **half.cache_arrays())
    resumed = logistic_game()
    with np.load(tmp_path / "payoffs.npz", allow_pickle=False) as arrays:
        assert resumed.load_cache(arrays) == 16
    assert np.array_equal(resumed(masks), expected)
    assert resumed.report.fits == whole.report.fits == 31
    assert resumed.report.cached == 16


def test_saved_failures_still_count():
    model = Fails(lambda X: len(X) < 37)
    game = RetrainingGame(model, *problem(), scorer="accuracy")
    with pytest.raises(PayoffError):
        game(all_masks(5))
    again = RetrainingGame(model, *problem(), scorer="accuracy")
    again.load_cache(game.cache_arrays())
    with pytest.raises(PayoffError, match=r"25 of 31.*RuntimeError: no fit on"):
        again(all_masks(5))


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"scorer": "loss"},
        {"estimator": LogisticRegression(C=2.0)},
        {"sample_weight": np.ones(60)},
        {"data": (problem()[0] + 1.0, *problem()[1:])},
        {"data": (*problem()[:2], problem()[2] + 1.0, *problem()[3:])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_payoffs_of_another_game_are_refused(change):
    saved = logistic_game().cache_arrays()
    estimator = change.pop("estimator", LogisticRegression())
    data = change.pop("data", problem())
    other = RetrainingGame(estimator, *data, **{"scorer": "accuracy", **change})
    with pytest.raises(DataError, match="another game"):
        other.load_cache(saved)


def test_progress_ends_at_the_total():
    seen = []
    game = logistic_game(progress=lambda done, total: seen.append((done, total)))
    game(all_masks(5)[:8])
    game(all_masks(5))
    assert seen[:8] == [(k, 8) for k in range(1, 9)]
    assert seen[8:] == [(k, 24) for k in range(1, 25)]


def test_warnings_of_fits_are_counted_not_repeated():
    game = RetrainingGame(LogisticRegression(max_iter=1), *problem(), scorer="accuracy")
    game(all_masks(5))
    assert game.report.warned == 31
    assert game.report.first_warning.startswith("ConvergenceWarning")


def test_the_cost_is_told_before_it_is_paid():
    game = logistic_game()
    estimate = game.estimate_seconds(all_masks(5), n_probes=4)
    assert (estimate.n_probes, estimate.n_left) == (5, 27)
    assert estimate.seconds > 0
    assert len(game.cache_arrays()["payoffs"]) == 5
    game(all_masks(5))
    assert game.report.fits == 31
    assert game.estimate_seconds(all_masks(5)) == (0.0, 0, 0)


def test_the_estimate_weighs_each_probe_by_its_share_of_sizes(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("hcdv.valuation.cached_game.time.perf_counter", lambda: clock[0])

    def utility(rows):
        clock[0] += len(rows) ** 3
        return 0.0

    rows_of = 2 ** np.arange(6)  # coalitions of 0 … 63 rows, in no order of size
    game = CallableGame(utility, 63, np.repeat(np.arange(6), rows_of))
    estimate = game.estimate_seconds(all_masks(6), n_probes=8)
    left = np.sum(np.arange(64) ** 3) - clock[0]
    assert estimate.seconds == pytest.approx(left, rel=0.1)


def test_sizes_of_the_arguments_must_agree():
    X, y, X_val, y_val, groups = problem()
    with pytest.raises(DataError, match="y must have one entry a row, 60, got 59"):
        RetrainingGame(DummyClassifier(), X, y[1:], X_val, y_val, groups, scorer="accuracy")
    with pytest.raises(ParameterError, match=r"masks must be bool of shape \(m, 5\)"):
        logistic_game()(np.ones((2, 5)))
    with pytest.raises(ParameterError, match="numbered from 0"):
        CallableGame(len, 2, [-1, 0])
    with pytest.raises(DataError, match="groups must have one entry a row, 3, got 2"):
        CallableGame(len, 3, [0, 1])


def test_a_function_is_given_the_sorted_rows_of_the_coalition():
    groups = np.array([1, 0, 1, 2])
    game = CallableGame(lambda rows: rows.tolist() == [0, 2, 3], 4, groups)
    masks = np.array([[False, True, True], [True, True, True], [False, False, False]])
    assert np.array_equal(game(masks), [1, 0, 0])


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_a_function_is_asked_once_a_coalition_by_any_number_of_threads(n_jobs):
    asked = []

    def utility(rows):
        asked.append(len(rows))
        return np.sin(rows.sum()) ** 2

    game = CallableGame(utility, 12, np.arange(12) % 4, n_jobs=n_jobs)
    payoffs = game(np.vstack([all_masks(4), all_masks(4)]))
    serial = CallableGame(utility, 12, np.arange(12) % 4)
    assert np.array_equal(payoffs[:16], serial(all_masks(4)))
    assert np.array_equal(payoffs[:16], payoffs[16:])
    assert len(asked) == 16 + 16
    assert game.report.fits == 15


def test_the_empty_set_is_asked_for_only_without_a_given_payoff():
    def utility(rows):
        return 1 / len(rows)

    nobody = np.zeros((1, 2), bool)
    assert CallableGame(utility, 2, [0, 1], empty=0.25)(nobody) == [0.25]
    with pytest.raises(PayoffError, match=r"ZeroDivisionError.*for 0 of 2 points.*empty="):
        CallableGame(utility, 2, [0, 1])(nobody)
    with pytest.raises(PayoffError, match=r"empty must return a number in \[0, 1\], got 2"):
        CallableGame(utility, 2, [0, 1], empty=2.0)


@pytest.mark.parametrize("bad", [np.nan, 1.2, -0.1, np.zeros(2), "1"])
def test_a_utility_that_returns_no_payoff_is_refused(bad):
    game = CallableGame(lambda rows: bad, 3, [0, 0, 0])
    with pytest.raises(
        PayoffError,
        match=r"utility must return a number in \[0, 1\], got .* for 3 of 3 points",
    ):
        game(np.ones((1, 1), bool))


def test_a_wider_range_is_taken_when_stated():
    game = CallableGame(lambda rows: -5.0, 3, [0, 0, 0], bounds=(-10, 0))
    assert game(np.ones((1, 1), bool)) == [-5.0]


def test_a_functions_payoffs_are_taken_up_for_the_same_groups_only():
    def game(groups):
        return CallableGame(lambda rows: len(rows) / 4, 4, groups)

    saved = game([0, 0, 1, 1])
    saved(all_masks(2))
    assert game([0, 0, 1, 1]).load_cache(saved.cache_arrays()) == 4
    with pytest.raises(DataError, match="another game"):
        game([0, 1, 1, 1]).load_cache(saved.cache_arrays())


# Each of these ends its workers, which take a second to start again: they come last.
def test_a_refusal_in_another_process_reads_the_same():
    game = logistic_game(scorer=lambda *_: np.nan, empty=0.5, n_jobs=2)
    with pytest.raises(PayoffError, match=r"got nan for \d+ points of 2 classes"):
        game(all_masks(5)[-2:])


def test_a_worker_that_dies_is_told_of_and_what_was_paid_for_is_kept():
    def scorer(model, X, y):
        if model.coef_.sum() != 0:
            os._exit(1)

    game = logistic_game(scorer=scorer, empty=0.5, n_jobs=2)
    game(all_masks(5)[:1])
    with pytest.raises(PayoffError, match="A worker process ended while training"):
        game(all_masks(5)[-2:])
    assert len(game.cache_arrays()["payoffs"]) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interruption_keeps_what_was_paid_for(n_jobs):
    def interrupt(done, total):
        if done >= 10:
            raise KeyboardInterrupt

    game = logistic_game(progress=interrupt, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        game(all_masks(5))
    kept = len(game.cache_arrays()["payoffs"])
    assert 10 <= kept < 32
    game.progress = None
    assert np.array_equal(game(all_masks(5)), logistic_game()(all_masks(5)))
    assert game.report.fits == 31
