"""The estimator: same seed same bits, utilities of your own, precision, time and estimates."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.preprocessing import StandardScaler

from fits import quick, two_classes
from hcdv import HCDV
from hcdv.errors import HCDVError, ParameterError, PayoffError

X, Y = two_classes(60)
X_VAL, Y_VAL = two_classes(30, seed=1)

SAME_BITS = {
    "default": {},
    "kernel": {"utility": "kernel"},
    "neighbours": {"utility": "knn"},
    "winter": {"method": "winter"},
    "paper": {"method": "paper"},
    "supervised encoder": {"encoder": "linear"},
    "your own payoff": {"utility": lambda rows: len(rows) / 60},
}


def all_of(v):
    return np.concatenate(
        [v.values_, v.stderr_, v.coalitions_["value"], v.embedding_.ravel()]
    )


@pytest.mark.parametrize("settings", SAME_BITS.values(), ids=SAME_BITS)
def test_the_seed_fixes_every_bit_whatever_the_number_of_threads(settings):
    one, two, four = (all_of(quick(n_jobs=k, **settings).fit(X, Y)) for k in (1, 2, 4))
    assert np.array_equal(one, two)
    assert np.array_equal(one, four)


def test_threads_do_not_change_bits_where_rows_fill_many_blocks():
    X, y = two_classes(5000, 8)
    one, four = (
        all_of(quick(n_jobs=k, leaf_size=256, n_contexts=8).fit(X, y)) for k in (1, 4)
    )
    assert np.array_equal(one, four)


def test_another_seed_gives_other_values_that_agree_within_their_errors():
    settings = {"n_contexts": 512, "consistency_weight": 0.0, "branching": "flat"}
    a, b = (quick(random_state=seed, **settings).fit(X, Y, X_VAL, Y_VAL) for seed in (0, 1))
    assert not np.array_equal(a.values_, b.values_)
    assert np.corrcoef(a.values_, b.values_)[0, 1] > 0.95


def test_fitting_again_forgets_the_first_fit():
    v = quick().fit(X[:40], Y[:40])
    assert np.array_equal(all_of(v.fit(X, Y)), all_of(quick().fit(X, Y)))


@pytest.mark.parametrize(
    "ask",
    [
        lambda v: v.select(0.3),
        lambda v: v.suspects(),
        lambda v: v.explain(0),
        lambda v: v.forget([0]),
        lambda v: v.to_frame(),
        lambda v: v.coalitions_,
        lambda v: v.save("nowhere"),
        lambda v: v.guarantees(),
    ],
)
def test_questions_before_a_fit_are_refused(ask):
    with pytest.raises((NotFittedError, AttributeError)):
        ask(quick())


def test_rows_that_help_are_worth_more_than_rows_that_mislead():
    X, y = two_classes(200, noise=0.0)
    wrong = np.zeros(200, bool)
    wrong[np.random.default_rng(0).choice(200, 20, replace=False)] = True
    for settings in ({}, {"consistency_weight": 0.0}, {"utility": "knn"}):
        v = quick(**settings).fit(X, np.where(wrong, 1 - y, y), X_VAL, Y_VAL)
        assert v.values_[wrong].mean() < v.values_[~wrong].mean()


def test_weights_of_the_parts_scale_the_parts():
    one, two = (
        quick(dispersion_weight=0.1 * k, consistency_weight=1.0 * k).fit(X, Y)
        for k in (1, 2)
    )
    assert np.allclose(2 * one.parts_["dispersion"], two.parts_["dispersion"], atol=1e-12)
    assert np.allclose(2 * one.parts_["consistency"], two.parts_["consistency"], atol=1e-12)
    assert np.array_equal(one.parts_["utility"], two.parts_["utility"])


# Utilities of your own.


def test_a_payoff_that_adds_up_gives_every_coalition_its_sum():
    worth = np.random.default_rng(0).random(60) / 60
    v = quick(utility=lambda rows: worth[rows].sum(), consistency_weight=0.0).fit(X, Y)
    sums = v.tree_.node_sums(worth)
    assert np.allclose(v.coalitions_["utility"], sums, atol=1e-12)


def test_a_payoff_is_asked_about_rows_in_the_order_they_came():
    worth = np.random.default_rng(0).random(60) / 60
    ids = np.random.default_rng(1).permutation(60)
    v = quick(utility=lambda rows: worth[rows].sum()).fit(X, Y, ids=ids)
    assert np.allclose(v.coalitions_["utility"], v.tree_.node_sums(worth), atol=1e-12)


BAD_PAYOFFS = {
    "nan": (lambda rows: np.nan, "got nan"),
    "an array": (lambda rows: np.ones(3), r"an array of shape \(3,\)"),
    "out of range": (lambda rows: 3.0, r"a number in \[0, 1\], got 3"),
    "nothing": (lambda rows: None, "got None"),
    "text": (lambda rows: "much", "got 'much'"),
    "an error": (lambda rows: 1 / 0, "ZeroDivisionError"),
    "nan for few rows": (lambda rows: np.nan if len(rows) < 20 else 0.5, "got nan"),
}


@pytest.mark.parametrize(("payoff", "says"), BAD_PAYOFFS.values(), ids=BAD_PAYOFFS)
def test_a_payoff_that_is_none_is_refused_with_a_way_out(payoff, says):
    with pytest.raises(PayoffError, match=f"{says}.*return the score of a constant guess"):
        quick(utility=payoff).fit(X, Y)


class Fails(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("no luck today")


def test_a_model_most_of_whose_fits_fail_is_refused():
    with pytest.raises(PayoffError, match=r"fits failed.*RuntimeError: no luck today"):
        quick(utility=Fails(), leaf_size=16).fit(X, Y, X_VAL, Y_VAL)


def test_a_model_without_probabilities_is_judged_by_accuracy_only():
    with pytest.raises(ParameterError, match="no probabilities: use 'accuracy'"):
        quick(utility=Perceptron()).fit(X, Y, X_VAL, Y_VAL)
    v = quick(utility=Perceptron(), metric="accuracy", leaf_size=32).fit(X, Y, X_VAL, Y_VAL)
    assert v.checks_["failures"] == 0


def test_a_model_trained_anew_pays_the_whole_set_what_it_scores_there():
    model = LogisticRegression()
    v = quick(utility=model, metric="accuracy", leaf_size=32, consistency_weight=0.0)
    v.fit(X, Y, X_VAL, Y_VAL)
    score = model.fit(X, Y).score(X_VAL, Y_VAL)
    assert v.parts_["utility"].sum() == pytest.approx(score - 0.5, abs=1e-12)


def test_a_regression_model_values_numbers_of_a_frame():
    frame = pd.DataFrame(X, columns=list("abcde"))
    v = quick(utility=Ridge(), leaf_size=32).fit(frame, X[:, 0] + 0.1 * X[:, 1])
    assert v.checks_["sum_error"] <= 1e-9
    assert v.surplus_ > 0


# Encoders.


@pytest.mark.parametrize(
    "encoder",
    ["pca", "identity", "linear", StandardScaler(), lambda rows: np.asarray(rows) ** 2],
    ids=["pca", "identity", "linear", "transformer", "function"],
)
def test_rows_may_be_embedded_in_any_way(encoder):
    v = quick(encoder=encoder).fit(X, Y, X_VAL, Y_VAL)
    assert v.checks_["sum_error"] <= 1e-9
    assert len(v.embedding_) == 60


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "shape"), [("mlp", (40, 6)), ("conv", (40, 8, 8))])
def test_rows_may_be_embedded_by_a_small_network(encoder, shape):
    rows = np.random.default_rng(0).random(shape)
    v = quick(encoder=encoder).fit(rows, np.arange(40) % 2)
    assert v.checks_["sum_error"] <= 1e-9


def test_embeddings_at_hand_are_taken_as_they_are():
    Z = np.random.default_rng(0).normal(size=(60, 3))
    v = quick(encoder=Z).fit(X, Y)
    assert np.allclose(v.embedding_, Z / np.linalg.norm(Z, axis=1, keepdims=True))
    with pytest.raises(HCDVError, match="precomputed embeddings"):
        quick(encoder=Z[:7]).fit(X, Y)


@pytest.mark.parametrize(
    ("encoder", "says"),
    [
        (lambda rows: np.asarray(rows)[:3], "one vector a row"),
        (lambda rows: np.asarray(rows) * np.nan, "finite vectors"),
    ],
)
def test_an_encoder_that_fails_some_rows_is_refused(encoder, says):
    with pytest.raises(HCDVError, match=says):
        quick(encoder=encoder).fit(X, Y)


# How much is sampled.


@pytest.mark.parametrize("kappa", [0.0, 4.0])
@pytest.mark.parametrize("judges", [(), (X_VAL, Y_VAL)], ids=["cross-fitted", "validated"])
def test_sampling_goes_on_until_the_precision_is_reached(kappa, judges):
    coarse = quick(consistency_weight=kappa).fit(X, Y, *judges)
    wanted = coarse.stderr_.mean() / 3
    fine = quick(consistency_weight=kappa, precision=wanted).fit(X, Y, *judges)
    assert fine.stderr_.mean() <= wanted
    assert fine.checks_["n_contexts"] > coarse.checks_["n_contexts"]
    assert fine.checks_["sum_error"] <= 1e-9
    assert not any("was not reached" in note for note in fine.notes_)


def test_a_precision_that_is_there_already_costs_no_round():
    v = quick(precision=1e3).fit(X, Y)
    assert np.array_equal(v.values_, quick().fit(X, Y).values_)


def test_a_precision_out_of_reach_stops_and_says_so(monkeypatch):
    monkeypatch.setattr("hcdv.valuation.plan.MAX_ROUNDS", 3)
    v = quick(precision=1e-9).fit(X, Y)
    assert v.checks_["n_contexts"] == 3 * 16
    assert any("precision 1e-09 was not reached" in note for note in v.notes_)


def test_rounds_use_fresh_draws_and_keep_the_first_ones(monkeypatch):
    monkeypatch.setattr("hcdv.valuation.plan.MAX_ROUNDS", 40)
    first = quick().fit(X, Y, X_VAL, Y_VAL)
    many = quick(precision=1e-9).fit(X, Y, X_VAL, Y_VAL)
    doubts = many.run_.valuation.doubts
    assert np.array_equal(doubts.margins[:4], first.run_.valuation.doubts.margins)
    assert len(np.unique(doubts.margins.sum(axis=1))) == len(doubts.margins) == 160
    ratio = many.stderr_.mean() / first.stderr_.mean()
    assert ratio == pytest.approx(40**-0.5, rel=0.4)
    kept = [name for name in many.run_.valuation.probe.memo if name.startswith("contexts")]
    assert len(kept) == 1  # memory does not grow with the rounds


def test_exact_coalitions_and_points_need_rounds_for_the_label_doubts_alone():
    coarse = quick(utility="knn").fit(X, Y, X_VAL, Y_VAL)
    assert coarse.checks_["coalitions_exact"]
    wanted = coarse.stderr_.mean() / 2
    fine = quick(utility="knn", precision=wanted).fit(X, Y, X_VAL, Y_VAL)
    assert fine.stderr_.mean() <= wanted
    assert np.array_equal(fine.parts_["utility"], coarse.parts_["utility"])
    nothing_left = quick(utility="knn", consistency_weight=0.0, time_budget=3600.0)
    assert not nothing_left.fit(X, Y, X_VAL, Y_VAL).stderr_.any()


def test_a_time_budget_is_spent_in_rounds_and_never_less_than_one(monkeypatch):
    ticks = iter(np.arange(0.0, 1e6, 1.0))
    monkeypatch.setattr("hcdv.valuation.plan.time.monotonic", lambda: float(next(ticks)))
    assert quick(time_budget=0.5).fit(X, Y).checks_["n_contexts"] == 16
    assert quick(time_budget=5.0).fit(X, Y).checks_["n_contexts"] == 5 * 16


def test_more_contexts_and_orders_make_smaller_errors():
    settings = {"leaf_size": 2, "branching": 16, "consistency_weight": 0.0}
    few = quick(n_contexts=16, n_permutations=8, **settings).fit(X, Y, X_VAL, Y_VAL)
    more = quick(n_contexts=256, n_permutations=64, **settings).fit(X, Y, X_VAL, Y_VAL)
    error = [np.delete(v.coalitions_["stderr"], 0).mean() for v in (few, more)]
    assert more.stderr_.mean() < few.stderr_.mean()
    assert error[1] < error[0]


def test_standard_errors_are_of_the_size_of_the_errors():
    runs = [
        quick(random_state=s, consistency_weight=0.0).fit(X, Y, X_VAL, Y_VAL)
        for s in range(24)
    ]
    spread = np.std([v.values_ for v in runs], axis=0, ddof=1).mean()
    told = np.mean([v.stderr_ for v in runs])
    assert 0.5 < told / spread < 2.0


# What it says.


def test_the_work_is_estimated_before_it_is_done(caplog):
    with caplog.at_level(logging.INFO, logger="hcdv"):
        quick(precision=1.0).fit(X, Y)
    said = [record.getMessage() for record in caplog.records]
    estimate = next(i for i, text in enumerate(said) if text.startswith("about "))
    assert (
        "s of work: 16 contexts and 4 orders a round, until a mean standard"
        in said[estimate]
    )
    assert estimate < next(i for i, text in enumerate(said) if "no validation set" in text)


def test_long_retraining_is_announced_and_what_was_timed_for_it_is_kept(
    caplog, monkeypatch
):
    monkeypatch.setattr("hcdv.valuation.payoffs._LONG", 0.0)
    asked: list[tuple[int, ...]] = []

    def payoff(rows):
        asked.append(tuple(rows))
        return len(rows) / 60

    with caplog.at_level(logging.INFO, logger="hcdv"):
        v = quick(utility=payoff, leaf_size=6, n_permutations=16).fit(X, Y)
    assert any("of work:" in text and "calls more" in text for text in caplog.messages)
    assert len(asked) == len(set(asked))
    assert v.run_.seconds["estimated"] >= v.checks_["estimated_seconds"]


def test_nothing_is_printed_by_default_nor_into_a_pipe(capfd):
    quick().fit(X, Y)
    quick(verbose=True, utility=lambda rows: 0.5).fit(X, Y)
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err == ""


def test_the_defaults_are_those_that_are_documented():
    text = HCDV.__doc__ or ""
    for name in HCDV().get_params():
        assert name in text
