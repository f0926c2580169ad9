"""What Stage III sees of the data: embedded points with labels, keys and folds, and who judges.

Notation (method → code):  z_i → Z[i] (unit norm) · y_i → target[i] · C → n_classes (0: regression)
A *view* is one embedding of the same rows; a supervised encoder has one per fold, so that
no row is judged in an embedding that has seen its label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.arrays import Arrays, arrays_of

Floats = NDArray[Any]  # float32 or float64, as the kernel that made them


@dataclass(frozen=True)
class Points:
    """Rows of one view, in the canonical (key-sorted) order of the run."""

    Z: Floats  # (n, d)
    target: NDArray[Any]  # (n,)  class codes, or centred values for regression
    n_classes: int  # C; 0 for regression
    key: NDArray[
        np.uint64
    ]  # (n,)  hashed row ids: context membership depends on these alone
    fold: NDArray[np.intp]  # (n,)  which judge, if any, holds the row out
    weight: NDArray[np.float64] | None = None  # (n,)  sample weights

    def __len__(self) -> int:
        return len(self.target)

    @property
    def width(self) -> int:
        """Columns of the target matrix."""
        return self.n_classes or 1

    def targets(self, rows: slice | NDArray[np.intp], dtype: np.dtype) -> Floats:
        """Target matrix of some rows, (b, C): one-hot − 1/C, or the centred value."""
        target = self.target[rows]
        xp = arrays_of(target)
        if not self.n_classes:
            matrix = xp.empty((len(target), 1), dtype)
            matrix[:, 0] = target
            return matrix
        matrix = xp.full((len(target), self.n_classes), -1.0 / self.n_classes, dtype=dtype)
        matrix[xp.arange(len(target)), target] += 1.0
        return matrix

    def take(self, rows: NDArray[Any]) -> Points:
        """Some of the points, by index or mask."""
        return Points(
            self.Z[rows],
            self.target[rows],
            self.n_classes,
            self.key[rows],
            self.fold[rows],
            None if self.weight is None else self.weight[rows],
        )

    def on(self, xp: Arrays) -> Points:
        """The same points where these arrays lie."""
        if arrays_of(self.Z) is xp:
            return self
        weight = None if self.weight is None else xp.put(self.weight)
        target = xp.put(self.target, np.int64 if self.n_classes else None)
        return Points(
            xp.put(self.Z), target, self.n_classes, xp.put(self.key),
            xp.put(self.fold), weight,
        )  # fmt: skip

    def seen_in(self, Z: Floats) -> Points:
        """The same points in another view."""
        return replace(self, Z=Z)


@dataclass(frozen=True)
class Judge:
    """A validation set, the view it is scored in, and the folds it may be taught with.

    With a validation set there is one judge and every fold is eligible. Without one, each
    fold is the validation set of one judge: v̄(S) = mean_k v_k(S ∖ F_k).
    """

    points: Points
    view: int
    eligible: NDArray[np.bool_]  # (n_folds,)


def class_weights(points: Points) -> NDArray[np.float64]:
    """Row weights 1/(C · share of the row's class), times sample weights; they sum to n."""
    weight = np.ones(len(points)) if points.weight is None else points.weight
    if points.n_classes:
        mass = np.bincount(points.target, weights=weight, minlength=points.n_classes)
        weight = weight * class_scales(mass)[points.target]
    return weight


def class_scales(mass: NDArray[Any]) -> NDArray[np.float64]:
    """What a row of each class weighs, from what the classes' rows weigh together, (C,)."""
    present = mass > 0
    scale = np.zeros(len(mass))
    scale[present] = mass.sum() / (present.sum() * mass[present])
    return scale


@dataclass(frozen=True)
class Originals:
    """The rows as the user gave them, for utilities that train on those."""

    table: Any  # array, sparse matrix or DataFrame, in the canonical order
    labels: NDArray[Any]
    judged: list[tuple[Any, NDArray[Any]]]  # by judge: validation rows and labels
    position: NDArray[np.intp]  # (n,)  place of each point in the user's own order


@dataclass(frozen=True)
class Case:
    """Everything a valuation looks at, apart from the tree."""

    views: list[Points]  # views[0] is the embedding the tree was grown on
    judges: list[Judge]
    judging_view: NDArray[
        np.intp
    ]  # (n_folds,)  the view in which a fold's labels are doubted
    originals: Originals
    doubters: NDArray[np.bool_] | None = None  # (n_folds, n_folds)  see `asking`

    @property
    def asking(self) -> NDArray[np.bool_] | None:
        """Row k: the folds that teach the models asked about labels of fold k.

        None: all rows do, each left out of the model that is asked about it. Groups, time
        and encoders that saw the labels need folds held out whole; the first block in time
        has no earlier one, and asks itself, row by row.
        """
        if self.doubters is None and len(np.unique(self.judging_view)) > 1:
            return ~np.eye(len(self.judging_view), dtype=bool)
        return self.doubters

    @property
    def points(self) -> Points:
        """The points as the tree sees them."""
        return self.views[0]

    def taught(self, judge: Judge) -> NDArray[np.bool_]:
        """Which rows may teach the models that a judge scores, (n,)."""
        return judge.eligible[self.points.fold]
