"""What is to be predicted: classes or numbers, read once and refused where they make no sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError, ParameterError
from hcdv.valuation.moments import CLASSIFICATION_METRICS, REGRESSION_METRICS

_MANY = 20  # rows from which labels that hardly ever repeat are no classes


@dataclass(frozen=True)
class Target:
    """The label column: its classes, or the centre and scale of its numbers."""

    labels: NDArray[Any]  # (n,)  as given
    classes: NDArray[Any] | None  # sorted; None for regression
    centre: float = 0.0
    scale: float = 1.0

    @property
    def n_classes(self) -> int:
        """C; 0 for regression."""
        return 0 if self.classes is None else len(self.classes)

    def coded(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Class codes, or centred and scaled numbers, of these or other rows."""
        if self.classes is None:
            return (labels.astype(np.float64) - self.centre) / self.scale
        code = np.minimum(np.searchsorted(self.classes, labels), self.n_classes - 1)
        unknown = np.unique(labels[self.classes[code] != labels])
        if len(unknown):
            raise DataError(
                f"y_val must hold classes seen in training, got {_listed(unknown)}. Training "
                f"has {_listed(self.classes)}: move rows of the new class there, or drop them."
            )
        return code.astype(np.intp)


def as_labels(y: Any, n_rows: int, name: str = "y") -> NDArray[Any]:
    """One label a row, without holes."""
    if y is None:
        raise DataError(
            f"{name} must hold a label for every row, got None: valuation requires y to be "
            "passed, but the target y is None. Pass the label column."
        )
    if hasattr(y, "toarray"):
        raise DataError(
            f"{name} must be one label a row, got a sparse matrix. Multi-label targets are not "
            "supported: pass one label column as an array."
        )
    try:
        labels = np.asarray(y)
    except ValueError as error:  # lists of labels, of different lengths
        raise DataError(
            f"{name} must have one label a row, got lists of different lengths. Multi-label "
            "targets are not supported: value one label column at a time."
        ) from error
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(
            f"{name} must have one label a row, got shape {labels.shape}. Multi-label targets "
            "are not supported: value one label column at a time."
        )
    if len(labels) != n_rows:
        raise DataError(
            f"{name} must have one label for each of {n_rows} rows, got {len(labels)}: found "
            "input variables with inconsistent numbers of samples. Align the two."
        )
    if labels.dtype.kind == "c":
        raise DataError(f"{name} must be real: complex data not supported.")
    _refuse_holes(labels, name)
    _refuse_several(labels, name)
    return _unboxed(labels) if labels.dtype.kind == "O" else labels


def _refuse_several(labels: NDArray[Any], name: str) -> None:
    """Rows of a set, list or tuple of labels would pass for so many different classes."""
    if labels.dtype.kind != "O":
        return
    several = (set, frozenset, list, tuple, dict, np.ndarray)
    odd = next((label for label in labels if isinstance(label, several)), None)
    if odd is not None:
        raise DataError(
            f"{name} must have one label a row, got {odd!r}. Multi-label targets are not "
            "supported: value one label column at a time."
        )


def _unboxed(labels: NDArray[Any]) -> NDArray[Any]:
    """Numbers and booleans kept as objects become what they are, all else text."""
    plain = np.array(
        [getattr(label, "item", lambda label=label: label)() for label in labels]
    )
    if plain.shape == labels.shape and plain.dtype.kind in "biuf":
        return plain
    return labels.astype(str)


def _refuse_holes(labels: NDArray[Any], name: str) -> None:
    import pandas as pd

    missing = pd.isna(labels)
    if missing.any():
        raise DataError(
            f"{name} must have no missing labels, got NaN in {int(missing.sum())} of "
            f"{len(labels)} rows, first at row {int(np.argmax(missing))}. Drop those rows."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        bad = ~np.isfinite(labels)
        raise DataError(
            f"{name} must be finite, got infinity in {int(bad.sum())} rows, first at row "
            f"{int(np.argmax(bad))}. Drop those rows, or clip the target."
        )


def read_target(y: Any, n_rows: int, metric: str) -> Target:
    """Tell classes from numbers: fractions, or a regression metric, mean numbers."""
    labels = as_labels(y, n_rows)
    numeric = labels.dtype.kind in "iuf"
    fractions = labels.dtype.kind == "f" and bool(np.any(labels % 1 != 0))
    if fractions or (numeric and metric == "r2"):
        spread = float(np.std(labels.astype(np.float64)))
        if spread == 0:
            raise DataError(
                f"y must vary, got the number {labels[0]} in all {len(labels)} rows. "
                "There is nothing to predict."
            )
        return Target(labels, None, float(labels.mean()), spread)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(
            f"y must have at least 2 classes, got one class: {_listed(classes)}. A model of one "
            "class has nothing to learn; check the label column."
        )
    mostly_distinct = len(labels) >= _MANY and 2 * len(classes) > len(labels)
    if mostly_distinct or (len(classes) == len(labels) and len(labels) > 2):
        way = (
            'If it is a number to predict, pass metric="r2" (--metric r2).'
            if numeric
            else ("Is it an id column?")
        )
        raise DataError(
            f"y must repeat its labels, got {len(classes)} different ones in {len(labels)} "
            f"rows, such as {_listed(classes)}. {way}"
        )
    return Target(labels, classes)


def resolve_metric(metric: str, target: Target) -> str:
    """The metric meant, checked against the kind of target."""
    kind = "classification" if target.n_classes else "regression"
    allowed = CLASSIFICATION_METRICS if target.n_classes else REGRESSION_METRICS
    if metric == "auto":
        return "loss" if target.n_classes else "r2"
    if metric not in allowed:
        names = ", ".join(f'"{name}"' for name in ("auto", *allowed))
        raise ParameterError("metric", metric, f"one of {names} for {kind}")
    return metric


def _listed(values: NDArray[Any], most: int = 5) -> str:
    shown = ", ".join(repr(value) for value in values[:most].tolist())
    return shown + (f", … ({len(values)} in all)" if len(values) > most else "")
