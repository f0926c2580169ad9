"""What a trained model is worth on the validation rows, and what knowing nothing is.

The four metrics named here score models that have never seen some of the classes; any
other scikit-learn scorer, or a callable scorer(model, X, y), is taken as it is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from hcdv.errors import DataError, ParameterError, PayoffError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Scorer = str | Callable[[Any, Any, Any], Any]

Bounds = tuple[float, float]
UNIT: Bounds = (0.0, 1.0)
AT_MOST_ONE: Bounds = (-np.inf, 1.0)
ANY_NUMBER: Bounds = (-np.inf, np.inf)

_METRICS = {  # name → range, and whether the model must give scores for classes
    "accuracy": (UNIT, False),
    "balanced_accuracy": (UNIT, False),
    "auc": (UNIT, True),
    "loss": (AT_MOST_ONE, True),
    "r2": (AT_MOST_ONE, False),
}


@dataclass(frozen=True, slots=True)
class Scoring:
    """One scorer on one validation set; `score(model, labels)` is a payoff not yet checked.

    `empty` is v(∅), the score of a predictor without data: 1/C for accuracy and balanced
    accuracy, 1/2 for AUC, 0 for R² (the validation mean) and for 1 − loss/loss(∅), where
    loss(∅) is that of the uniform guess, log C. For other scorers it is the score of the
    constant guess from all training labels (their shares, or their mean).
    """

    name: str
    X_val: Any
    y_val: NDArray[Any]
    classes: NDArray[Any] | None  # sorted labels; None for regression
    bounds: Bounds
    empty: float
    scorer: Callable[[Any, Any, Any], Any] | None = None  # None: a metric named here

    def score(self, model: Any, labels: NDArray[Any]) -> Any:
        """Score a model trained on rows with these labels."""
        if self.classes is not None:
            present = np.unique(labels)
            if len(present) < len(self.classes):
                model = AllClasses(model, self.classes, present)
        if self.scorer is not None:
            return self.scorer(model, self.X_val, self.y_val)
        if self.name == "r2":
            return _r2(self.y_val, np.asarray(model.predict(self.X_val)))
        assert self.classes is not None
        if self.name in {"accuracy", "balanced_accuracy"}:
            hits = np.asarray(model.predict(self.X_val)).reshape(-1) == self.y_val
            return _mean_recall(hits, self.y_val) if "bal" in self.name else hits.mean()
        metric = _auc if self.name == "auc" else _one_minus_log_loss
        return metric(class_scores(model, self.X_val, self.name), self.y_val, self.classes)


class AllClasses:
    """A model that has met some of the classes, answering with a column for each of them.

    A class it has not met gets probability 0, and margin 0 everywhere: a constant, which
    AUC counts as 1/2. All else is the model's own.
    """

    def __init__(self, model: Any, classes: NDArray[Any], present: NDArray[Any]) -> None:
        self.model = model
        self.classes_ = classes
        self.columns = np.searchsorted(classes, getattr(model, "classes_", present))

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self.__dict__["model"], name)
        if name not in {"predict_proba", "decision_function"}:
            return answer

        def widened(X: Any) -> NDArray[np.float64]:
            narrow = np.asarray(answer(X))
            if narrow.ndim == 1:  # two classes: one margin, for the second
                narrow = np.column_stack([-narrow, narrow])
            wide = np.zeros((len(narrow), len(self.classes_)))
            wide[:, self.columns] = narrow
            return wide

        widened.__name__ = name  # scikit-learn's scorers read it
        return widened


def scoring_of(
    scorer: Scorer,
    estimator: Any,
    train: tuple[Any, NDArray[Any]],
    validation: tuple[Any, NDArray[Any]],
    *,
    bounds: Bounds | None = None,
    empty: float | None = None,
) -> Scoring:
    """Resolve a metric's or scikit-learn scorer's name, or a callable, for this data."""
    y, y_val = train[1], validation[1]
    name = scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "scorer")
    is_own = isinstance(scorer, str) and scorer in _METRICS
    classifies = _classifies(estimator, name if isinstance(scorer, str) else "", y)
    if is_own and name == "loss" and not classifies:
        name = "r2"  # 1 − loss/loss(∅) of squared loss, with the mean as the empty model
    own_bounds, needs_scores = _METRICS[name] if is_own else (ANY_NUMBER, False)
    classes = _all_classes(y, y_val) if classifies else None
    if is_own:
        _check_validation(name, y_val, classes)
    if needs_scores:
        _check_gives_scores(name, estimator)
    call = None if is_own else _scorer_named(scorer)
    if empty is None and call is None:
        empty = _no_data(name, 1 if classes is None else len(classes))
    elif empty is None and call is not None:
        empty = _constant_guess(call, name, train, validation, classifies)
    assert empty is not None
    return Scoring(name, *validation, classes, bounds or own_bounds, empty, call)


def class_scores(model: Any, X: Any, name: str) -> NDArray[np.float64]:
    """Return a column a class: probabilities, or margins where AUC allows them."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), np.float64)
    if name != "auc":
        raise AttributeError(f"{type(model).__name__} has no predict_proba")
    margins = np.asarray(model.decision_function(X), np.float64)
    return np.column_stack([-margins, margins]) if margins.ndim == 1 else margins


def _auc(scores: NDArray[np.float64], y: NDArray[Any], classes: NDArray[Any]) -> np.float64:
    """Return the AUC of the second class of two, else the mean of each against the rest."""
    if len(classes) == 2:
        scores, classes = scores[:, 1:], classes[1:]
    positive = y[:, None] == classes  # (n_val, C)
    n_positive = positive.sum(axis=0)
    n_pairs = n_positive * (len(y) - n_positive)
    rank_sum = (rankdata(scores, axis=0) * positive).sum(axis=0)
    wins = rank_sum - n_positive * (n_positive + 1) / 2
    return (wins[n_pairs > 0] / n_pairs[n_pairs > 0]).mean()


def _one_minus_log_loss(
    probability: NDArray[np.float64], y: NDArray[Any], classes: NDArray[Any]
) -> np.float64:
    """Return 1 − loss/log C, clipping at machine precision as scikit-learn does."""
    tiny = np.finfo(np.float64).eps
    of_label = probability[np.arange(len(y)), np.searchsorted(classes, y)]
    return 1 + np.log(np.clip(of_label, tiny, 1)).mean() / np.log(len(classes))


def _mean_recall(hits: NDArray[np.bool_], y: NDArray[Any]) -> np.float64:
    _, code, count = np.unique(y, return_inverse=True, return_counts=True)
    return (np.bincount(code, hits) / count).mean()


def _r2(y: NDArray[Any], predicted: NDArray[Any]) -> np.float64:
    residual, total = y - predicted.reshape(y.shape), y - y.mean(axis=0)
    return np.mean(1 - (residual**2).sum(axis=0) / (total**2).sum(axis=0))


def _no_data(name: str, n_classes: int) -> float:
    chance = 1 / n_classes
    return {"accuracy": chance, "balanced_accuracy": chance, "auc": 0.5}.get(name, 0.0)


def _constant_guess(
    scorer: Callable[[Any, Any, Any], Any],
    name: str,
    train: tuple[Any, NDArray[Any]],
    validation: tuple[Any, NDArray[Any]],
    classifies: bool,
) -> float:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    guess = DummyClassifier(strategy="prior") if classifies else DummyRegressor()
    with warnings.catch_warnings():  # some metrics warn of any constant guess
        warnings.simplefilter("ignore")
        try:
            return float(scorer(guess.fit(*train), *validation))
        except Exception as error:
            raise PayoffError(
                f"{name} must score a constant guess, got {type(error).__name__}: {error}. "
                "Pass empty=, the payoff of no rows at all."
            ) from error


def _scorer_named(scorer: Scorer) -> Callable[[Any, Any, Any], Any]:
    if callable(scorer):
        return scorer
    from sklearn.metrics import get_scorer, get_scorer_names

    names = sorted({*_METRICS, *get_scorer_names()})
    if scorer not in names:
        raise ParameterError("scorer", scorer, f"a function or one of {', '.join(names)}")
    return get_scorer(scorer)


def _classifies(estimator: Any, name: str, y: NDArray[Any]) -> bool:
    if name in {"accuracy", "balanced_accuracy", "auc", "r2"}:
        return name != "r2"
    from sklearn.base import is_classifier, is_regressor

    try:
        if is_classifier(estimator) or is_regressor(estimator):
            return is_classifier(estimator)
    except AttributeError:
        pass  # a model that is not scikit-learn's: its labels tell
    return y.ndim == 1 and y.dtype.kind not in "fc"


def _all_classes(y: NDArray[Any], y_val: NDArray[Any]) -> NDArray[Any]:
    if y.ndim != 1 or y_val.ndim != 1:
        raise DataError(f"Labels must be one a row, got an array of shape {y.shape}.")
    return np.unique(np.concatenate([y, y_val]))


def _check_validation(name: str, y_val: NDArray[Any], classes: NDArray[Any] | None) -> None:
    needs_two = name in {"auc", "r2"}
    if classes is not None and len(classes) < 2:
        raise DataError(
            f"Labels must be of at least two classes, got only {classes[0]!r}: every model "
            "would predict it."
        )
    if needs_two and (y_val == y_val[:1]).all():
        raise DataError(
            f"{name} needs validation labels that differ, and all {len(y_val)} are equal. "
            "Draw the validation rows anew."
        )


def _check_gives_scores(name: str, estimator: Any) -> None:
    if hasattr(estimator, "predict_proba"):
        return
    if name == "auc" and hasattr(estimator, "decision_function"):
        return
    raise ParameterError(
        "scorer",
        name,
        f"one that {type(estimator).__name__} can be scored by",
        "It gives no probabilities: use 'accuracy', or wrap it in CalibratedClassifierCV.",
    )
