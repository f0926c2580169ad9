"""Train on the rows of one coalition and score: the work a process does.

Seeds come from the coalition's bits and inner threads are held to one, so a payoff is the
same whatever was played before it and however many workers play.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from hcdv.errors import ParameterError
from hcdv.valuation.cached_game import Outcome, Played, as_payoff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hcdv.valuation.scoring import Scoring


@dataclass(frozen=True, slots=True)
class Training:
    """All that playing a coalition needs; the only thing sent to workers."""

    estimator: Any
    X: Any
    y: NDArray[Any]
    groups: NDArray[np.intp]
    sample_weight: NDArray[np.float64] | None
    scoring: Scoring
    seed: int


@dataclass(frozen=True, slots=True)
class Batches:
    """Coalitions by the batch, for workers elsewhere: a task is the number of a batch."""

    training: Training
    masks: NDArray[np.bool_]
    size: int

    def __call__(self, batch: int) -> list[Played]:
        """Play the coalitions of a batch."""
        first = batch * self.size
        return train_and_score_all(self.training, self.masks[first : first + self.size])

    @property
    def n_batches(self) -> int:
        """How many tasks there are."""
        return -(-len(self.masks) // self.size)


def train_and_score_all(training: Training, masks: NDArray[np.bool_]) -> list[Played]:
    """Play some coalitions one after the other: a worker's task."""
    with threadpool_limits(1):
        return [train_and_score(training, mask) for mask in masks]


def train_and_score(training: Training, mask: NDArray[np.bool_]) -> Played:
    """Train on the union of the mask's groups, score, and say how it went."""
    scoring = training.scoring
    rows = np.flatnonzero(mask[training.groups])
    if not len(rows):
        return Played(scoring.empty, Outcome.EMPTY)
    labels = training.y[rows]
    is_one_class = scoring.classes is not None and (labels == labels[0]).all()
    # Thousands of fits would repeat the same warning: the report counts and shows one.
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        try:
            fit = _constant if is_one_class else _fitted
            model = fit(training, mask, rows)
            score = scoring.score(model, labels)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  counted, shown, refused when frequent
            return Played(scoring.empty, Outcome.FAILED, told(error))
    payoff = as_payoff(score, scoring.bounds, "scorer", _described(labels, scoring))
    outcome = Outcome.ONE_CLASS if is_one_class else Outcome.FITTED
    return Played(payoff, outcome, warning=told(met[0].message) if met else "")


def _constant(training: Training, _: NDArray[np.bool_], rows: NDArray[np.intp]) -> Any:
    from sklearn.dummy import DummyClassifier

    guess = DummyClassifier(strategy="most_frequent")
    return guess.fit(_take(training.X, rows[:1]), training.y[rows[:1]])


def _fitted(training: Training, mask: NDArray[np.bool_], rows: NDArray[np.intp]) -> Any:
    model = _seeded(training.estimator, training.seed, np.packbits(mask).tobytes())
    weights = {}
    if training.sample_weight is not None:
        weights[weight_name(model)] = training.sample_weight[rows]
    fitted = model.fit(_take(training.X, rows), training.y[rows], **weights)
    return model if fitted is None else fitted


def _seeded(estimator: Any, seed: int, coalition: bytes) -> Any:
    """Return an unfitted copy whose every random_state depends on the coalition alone."""
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    from sklearn.base import clone

    model: Any = clone(estimator)
    names = [n for n in model.get_params() if n.split("__")[-1] == "random_state"]
    if names:
        model.set_params(**{name: _seed_of(seed, name, coalition) for name in names})
    return model


def _seed_of(seed: int, name: str, coalition: bytes) -> int:
    digest = blake2b(f"{seed}:{name}:".encode() + coalition, digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1  # 31 bits: some libraries take signed seeds


def weight_name(estimator: Any) -> str:
    """Return what fit calls the row weights; in a pipeline they go to its last step."""
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_name(last)}"
    parameters = inspect.signature(estimator.fit).parameters.values()
    if not any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters):
        raise ParameterError(
            "sample_weight",
            "given",
            f"None for {type(estimator).__name__}, whose fit takes none",
        )
    return "sample_weight"


def as_rows(X: Any) -> Any:
    """Return rows that can be picked by number: a table, a csr matrix or an array."""
    if hasattr(X, "columns"):
        return X
    return X.tocsr() if sparse.issparse(X) else np.asarray(X)


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _described(labels: NDArray[Any], scoring: Scoring) -> str:
    if scoring.classes is None:
        return f"{len(labels)} points"
    present = [str(label) for label in np.unique(labels)]
    if len(present) == 1:
        return f"{len(labels)} points that are all of class {present[0]}"
    shown = ", ".join(present[:5]) + (", …" if len(present) > 5 else "")
    return f"{len(labels)} points of {len(present)} classes ({shown})"


def told(error: object) -> str:
    """Return an error or warning as one line of a report."""
    return f"{type(error).__name__}: {error}".strip(": \n")[:500]
