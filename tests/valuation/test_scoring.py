"""Scores of models that know only some classes, and of knowing nothing."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    log_loss,
    r2_score,
    roc_auc_score,
)
from sklearn.svm import SVC, LinearSVC

from hcdv.errors import DataError, ParameterError, PayoffError
from hcdv.valuation.scoring import scoring_of

rng = np.random.default_rng(0)
X, X_val = rng.normal(size=(90, 3)), rng.normal(size=(60, 3))
TASK = {
    2: ((X[:, 0] > 0.3).astype(int), (X_val[:, 0] > 0.3).astype(int)),
    3: (np.digitize(X[:, 0], [-0.7, 0.5]), np.digitize(X_val[:, 0], [-0.7, 0.5])),
}
NOISE, NOISE_VAL = rng.normal(size=90), rng.normal(size=60)


def scoring(scorer, estimator, n_classes=2, **settings):
    y, y_val = TASK[n_classes]
    return scoring_of(scorer, estimator, (X, y), (X_val, y_val), **settings)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("accuracy", lambda m, y: m.score(X_val, y)),
        ("balanced_accuracy", lambda m, y: balanced_accuracy_score(y, m.predict(X_val))),
        (
            "auc",
            lambda m, y: roc_auc_score(
                y,
                p if (p := m.predict_proba(X_val)).shape[1] > 2 else p[:, 1],
                multi_class="ovr",
            ),
        ),
        (
            "loss",
            lambda m, y: 1 - log_loss(y, m.predict_proba(X_val)) / np.log(len(m.classes_)),
        ),
    ],
)
def test_metrics_are_scikit_learns_where_every_class_is_known(name, theirs, n_classes):
    y, y_val = TASK[n_classes]
    model = LogisticRegression(C=0.1).fit(X + NOISE[:, None], y)
    ours = scoring(name, model, n_classes).score(model, y)
    assert ours == pytest.approx(theirs(model, y_val), abs=1e-12)


@pytest.mark.parametrize("name", ["r2", "loss"])
def test_regression_is_scored_by_r2(name):
    y, y_val = X[:, 0] + NOISE, X_val[:, 0] + NOISE_VAL
    model = LinearRegression().fit(X, y)
    ours = scoring_of(name, model, (X, y), (X_val, y_val))
    assert ours.score(model, y) == pytest.approx(r2_score(y_val, model.predict(X_val)))
    assert (ours.empty, ours.classes) == (0.0, None)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_data_is_worth_a_blind_guess(n_classes):
    model = LogisticRegression()
    empty = {
        name: scoring(name, model, n_classes).empty
        for name in ("accuracy", "balanced_accuracy", "auc", "loss")
    }
    chance = 1 / n_classes
    assert empty == {
        "accuracy": chance,
        "balanced_accuracy": chance,
        "auc": 0.5,
        "loss": 0.0,
    }


def test_other_scorers_start_from_the_share_of_each_class():
    y, y_val = TASK[3]
    guess = DummyClassifier(strategy="prior").fit(X, y)
    empty = f1_score(y_val, guess.predict(X_val), average="macro")
    assert scoring("f1_macro", LogisticRegression(), 3).empty == pytest.approx(empty)
    mean = scoring_of("neg_mean_squared_error", Ridge(), (X, NOISE), (X_val, NOISE_VAL))
    assert mean.empty == pytest.approx(-np.mean((NOISE_VAL - NOISE.mean()) ** 2))
    assert scoring("f1_macro", LogisticRegression(), 3, empty=0.125).empty == 0.125


def test_a_scorer_that_cannot_score_a_guess_says_how_to_go_on():
    def scorer(model, X, y):
        return model.coef_.sum()

    with pytest.raises(
        PayoffError, match=r"scorer must score a constant guess.*Pass empty="
    ):
        scoring(scorer, LogisticRegression())
    assert scoring(scorer, LogisticRegression(), empty=0.0).empty == 0.0


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(), SVC()])
def test_auc_of_a_model_that_has_not_met_a_class_counts_it_as_chance(model):
    y, y_val = TASK[3]
    known = y != 1
    model.fit(X[known], y[known])
    margin = model.decision_function(X_val)
    sides = [roc_auc_score(y_val == 0, -margin), 0.5, roc_auc_score(y_val == 2, margin)]
    assert scoring("auc", model, 3).score(model, y[known]) == pytest.approx(np.mean(sides))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_support_vector_machine_without_probabilities_has_an_auc(n_classes):
    y, y_val = TASK[n_classes]
    model = SVC().fit(X + NOISE[:, None], y)
    margins = model.decision_function(X_val)
    columns = [margins] if n_classes == 2 else list(margins.T)
    labels = [1] if n_classes == 2 else [0, 1, 2]
    pairs = zip(labels, columns, strict=True)
    expected = np.mean([roc_auc_score(y_val == c, m) for c, m in pairs])
    assert scoring("auc", model, n_classes).score(model, y) == pytest.approx(expected)


def test_log_loss_clips_the_classes_a_model_has_not_met():
    y, y_val = TASK[3]
    known = y != 1
    model = LogisticRegression().fit(X[known], y[known])
    probability = np.zeros((60, 3))
    probability[:, [0, 2]] = model.predict_proba(X_val)
    expected = 1 - log_loss(y_val, probability) / np.log(3)
    assert scoring("loss", model, 3).score(model, y[known]) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["roc_auc_ovr", "neg_log_loss", "f1_macro"])
def test_scikit_learns_scorers_see_a_column_for_every_class(name):
    y, _ = TASK[3]
    for known in (y != 1, y == 2):
        fitted = LogisticRegression if len(set(y[known])) > 1 else DummyClassifier
        model = fitted().fit(X[known], y[known])
        assert np.isfinite(scoring(name, model, 3).score(model, y[known]))
    y, _ = TASK[2]
    model = DummyClassifier().fit(X[y == 1], y[y == 1])
    assert scoring("roc_auc", model).score(model, y[y == 1]) == 0.5


def test_a_callable_meets_the_model_itself_beneath():
    y, _ = TASK[3]
    known = y != 1
    model = LogisticRegression().fit(X[known], y[known])
    seen = scoring(
        lambda m, X, y: m.coef_.shape[1] + m.predict_proba(X).shape[1], model, 3, empty=0
    )
    assert seen.score(model, y[known]) == 3 + 3


def test_predictions_in_a_column_are_compared_row_by_row():
    class Column(ClassifierMixin, BaseEstimator):
        def predict(self, X):
            return (X[:, :1] > 0.3).astype(int)

    assert scoring("accuracy", Column()).score(Column(), TASK[2][0]) == 1


def test_labels_may_be_words_and_validation_may_lack_one():
    words = np.array(["cold", "mild", "hot"])
    y, y_val = (words[part] for part in TASK[3])
    warm = y_val != "cold"
    model = LogisticRegression().fit(X, y)
    ours = scoring_of("auc", model, (X, y), (X_val[warm], y_val[warm]))
    probability = model.predict_proba(X_val[warm])  # columns: cold, hot, mild
    sides = [
        roc_auc_score(y_val[warm] == word, probability[:, k])
        for k, word in ((1, "hot"), (2, "mild"))
    ]
    assert ours.score(model, y) == pytest.approx(np.mean(sides))


@pytest.mark.parametrize(
    ("name", "estimator", "told"),
    [
        ("loss", SVC(), "gives no probabilities"),
        ("auc", Ridge(), "gives no probabilities"),
        (
            "no_such",
            SVC(),
            r"scorer must be a function or one of .*accuracy.*got 'no_such'",
        ),
    ],
)
def test_a_scorer_the_model_cannot_have_is_refused_before_any_fit(name, estimator, told):
    with pytest.raises(ParameterError, match=told):
        scoring(name, estimator)


def test_labels_that_cannot_be_scored_are_refused():
    ones = np.ones(60, int)
    y, _ = TASK[2]
    with pytest.raises(DataError, match="auc needs validation labels that differ"):
        scoring_of("auc", LogisticRegression(), (X, y), (X_val, ones))
    with pytest.raises(DataError, match="at least two classes"):
        scoring_of("accuracy", LogisticRegression(), (X, np.ones(90, int)), (X_val, ones))
    with pytest.raises(DataError, match=r"one a row, got an array of shape \(90, 2\)"):
        scoring_of("accuracy", LogisticRegression(), (X, np.eye(2)[y]), (X_val, ones))
