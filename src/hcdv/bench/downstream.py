"""The models that are retrained on chosen rows, taught alike whatever method chose them.

Every model is fitted from scratch on the rows given, and sees no others but a validation
set. A setting that is tuned is tuned there, by log loss, from the few candidates listed
here; networks stop there too, and keep their best weights:

logistic   scikit-learn's, lbfgs; C from 0.01, 0.1, 1
trees      HistGradientBoosting, learning rate 0.1, 31 leaves; 20 … 200 trees
mlp        64-64 ReLU; Adam 2e-3, batches of 128, at most 200 epochs, patience 15;
           weight decay from 1e-4, 1e-2
convnet    two convolutions of 16 and 32 channels and 64 ReLU; Adam on one rise and fall of
           the rate to 4e-3, batches of 128, 5 epochs, the best weights kept
wide-deep  a linear map beside 2 × 128 ReLU; Adam 1e-3, batches of 128, at most 20 epochs,
           patience 3

`balanced` weighs classes alike, in teaching and in the validation loss. A subset of one
class teaches a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hcdv.errors import ParameterError, need

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

_LEAST = 1e-7  # probability below which none is counted


class Fitted(Protocol):
    """A taught model."""

    def predict_proba(self, X: Any) -> Floats:
        """Chances of the classes, (n, C)."""
        ...


@dataclass(frozen=True)
class Lesson:
    """What a model is taught with, and stopped and tuned by."""

    X: Any
    y: Labels
    X_val: Any
    y_val: Labels
    n_classes: int
    class_weight: Floats  # (C,)
    seed: int

    def loss(self, probabilities: Floats) -> float:
        """Weighted log loss on the validation rows."""
        chance = probabilities[np.arange(len(self.y_val)), self.y_val]
        weight = self.class_weight[self.y_val]
        return float(-(weight * np.log(np.maximum(chance, _LEAST))).sum() / weight.sum())


def train(
    model: str, X: Any, y: Labels, X_val: Any, y_val: Labels, seed: int, *,
    balanced: bool = False,
) -> Fitted:  # fmt: skip
    """A model of that name, fitted from scratch on (X, y)."""
    if model not in MODELS:
        raise ParameterError("model", model, f"one of {', '.join(MODELS)}")
    n_classes = int(max(y.max(), y_val.max())) + 1
    counts = np.bincount(y, minlength=n_classes)
    if (counts > 0).sum() == 1:
        return Constant((counts + 1) / (counts + 1).sum())
    weight = np.ones(n_classes)
    if balanced:
        weight = len(y) / ((counts > 0).sum() * np.maximum(counts, 1))
    return MODELS[model](Lesson(X, y, X_val, y_val, n_classes, weight, seed))


def wide_and_deep(X: Any, y: Labels, X_val: Any, y_val: Labels, seed: int) -> Fitted:
    """A linear map beside a perceptron of 2 × 128 ReLU, on a matrix of numbers."""
    return train("wide-deep", X, y, X_val, y_val, seed)


@dataclass(frozen=True)
class Constant:
    """The same chances for every row."""

    chances: Floats

    def predict_proba(self, X: Any) -> Floats:
        """Chances of the classes, (n, C)."""
        return np.tile(self.chances, (len(X), 1))


@dataclass(frozen=True)
class FromScikit:
    """A scikit-learn classifier, or trees up to some stage; absent classes have chance 0."""

    model: Any
    n_classes: int
    n_trees: int | None = None

    def predict_proba(self, X: Any) -> Floats:
        """Chances of the classes, (n, C)."""
        if self.n_trees is None:
            found = self.model.predict_proba(X)
        else:
            stages = enumerate(self.model.staged_predict_proba(X), start=1)
            found = next(p for number, p in stages if number == self.n_trees)
        out = np.zeros((len(found), self.n_classes))
        out[:, self.model.classes_] = found
        return out


def _logistic(lesson: Lesson) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    def fitted(strength: float) -> Fitted:
        model = LogisticRegression(C=strength, max_iter=2000)
        model.fit(lesson.X, lesson.y, sample_weight=lesson.class_weight[lesson.y])
        return FromScikit(model, lesson.n_classes)

    return _best(lesson, [fitted(strength) for strength in (0.01, 0.1, 1.0)])


def _trees(lesson: Lesson) -> Fitted:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=200, early_stopping=False, random_state=lesson.seed
    )
    model.fit(lesson.X, lesson.y, sample_weight=lesson.class_weight[lesson.y])
    stages = (20, 50, 100, 200)
    return _best(lesson, [FromScikit(model, lesson.n_classes, stage) for stage in stages])


def _best(lesson: Lesson, candidates: list[Fitted]) -> Fitted:
    losses = [lesson.loss(one.predict_proba(lesson.X_val)) for one in candidates]
    return candidates[int(np.argmin(losses))]


@dataclass(frozen=True)
class Descent:
    """How a network is taught."""

    network: Callable[[tuple[int, ...], int], Any]  # shape of a row, classes → module
    rate: float
    epochs: int
    patience: int
    decays: tuple[float, ...] = (0.0,)
    one_cycle: bool = False
    batch: int = 128

    def __call__(self, lesson: Lesson) -> Fitted:
        """The candidate of least validation loss."""
        need("torch", extra="bench", what="this downstream model")
        with threadpool_limits(limits=1):  # the same bits for any number of cores
            return _best(lesson, [self._taught(lesson, decay) for decay in self.decays])

    def _taught(self, lesson: Lesson, decay: float) -> Fitted:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(lesson.seed)
            module = self.network(np.shape(lesson.X)[1:], lesson.n_classes)
        steps = -(-len(lesson.y) // self.batch)
        adam = torch.optim.AdamW(module.parameters(), lr=self.rate, weight_decay=decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            adam, self.rate, total_steps=self.epochs * steps
        )
        taught, least, waited = Network(module), np.inf, 0
        best = _copied(module)
        generator = torch.Generator().manual_seed(lesson.seed)
        for _ in range(self.epochs):
            order = torch.randperm(len(lesson.y), generator=generator).numpy()
            for rows in np.array_split(order, steps):
                adam.zero_grad()
                _batch_loss(module, lesson, rows).backward()
                adam.step()
                if self.one_cycle:
                    schedule.step()
            loss = lesson.loss(taught.predict_proba(lesson.X_val))
            waited = 0 if loss < least else waited + 1
            if loss < least:
                least, best = loss, _copied(module)
            if waited > self.patience:
                break
        module.load_state_dict(best)
        return taught


@dataclass(frozen=True)
class Network:
    """A torch module that gives the log odds of the classes."""

    module: Any

    def predict_proba(self, X: Any) -> Floats:
        """Chances of the classes, (n, C)."""
        import torch

        with torch.no_grad():
            odds = [
                self.module(_tensor(X[at : at + 2048])) for at in range(0, len(X), 2048)
            ]
        return torch.cat(odds).double().softmax(dim=1).numpy()


def _batch_loss(module: Any, lesson: Lesson, rows: Labels) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(
        module(_tensor(lesson.X[rows])),
        torch.as_tensor(lesson.y[rows]),
        torch.as_tensor(lesson.class_weight, dtype=torch.float32),
    )


def _tensor(X: Any) -> Any:
    """Rows as float32; bytes are pixels, 0 … 1."""
    import torch

    rows = torch.as_tensor(np.ascontiguousarray(X))
    return rows.float() / 255 if rows.dtype == torch.uint8 else rows.float()


def _copied(module: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def _perceptron(shape: tuple[int, ...], n_outputs: int, width: int = 64) -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Linear(shape[0], width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, n_outputs),
    )  # fmt: skip


def _convnet(shape: tuple[int, ...], n_outputs: int) -> Any:
    from torch import nn

    cells = (shape[0] // 4) * (shape[1] // 4)
    return nn.Sequential(
        nn.Unflatten(1, (1, shape[0])),
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * cells, 64), nn.ReLU(), nn.Linear(64, n_outputs),
    )  # fmt: skip


def _wide_deep(shape: tuple[int, ...], n_outputs: int) -> Any:
    from torch import nn

    class WideDeep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Linear(shape[0], n_outputs)
            self.deep = _perceptron(shape, n_outputs, width=128)

        def forward(self, X: Any) -> Any:
            return self.wide(X) + self.deep(X)

    return WideDeep()


MODELS: dict[str, Callable[[Lesson], Fitted]] = {
    "logistic": _logistic,
    "trees": _trees,
    "mlp": Descent(_perceptron, 2e-3, 200, 15, decays=(1e-4, 1e-2)),
    "convnet": Descent(_convnet, 4e-3, 5, 5, one_cycle=True),
    "wide-deep": Descent(_wide_deep, 1e-3, 20, 3),
}


def scored(metric: str, y: Labels, probabilities: Floats) -> float:
    """auc (two classes), accuracy, balanced_accuracy or macro_f1 of the likeliest class."""
    from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

    if metric == "auc":
        return float(roc_auc_score(y, probabilities[:, 1]))
    guess = probabilities.argmax(axis=1)
    if metric == "accuracy":
        return float((guess == y).mean())
    if metric == "balanced_accuracy":
        return float(balanced_accuracy_score(y, guess))
    if metric == "macro_f1":
        return float(f1_score(y, guess, average="macro", zero_division=0.0))
    raise ParameterError("metric", metric, "auc, accuracy, balanced_accuracy or macro_f1")
