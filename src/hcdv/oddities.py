"""What a reader of the values should know about the data: repeats, rare classes, gaps in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.rows import Rows
from hcdv.targets import Target

_RARE = 0.2  # of an equal share: a class of fewer rows hardly moves a mean over rows


def row_notes(X: Any, target: Target, rows: Rows) -> list[str]:
    """Constant columns of a plain array, and rows that are there more than once."""
    notes: list[str] = []
    dense = isinstance(X, np.ndarray)
    if rows.kind == "array":  # a frame's constant columns are noted by name
        constant = np.flatnonzero(X.max(axis=0) == X.min(axis=0))
        if 0 < len(constant) < X.shape[1]:
            shown = ", ".join(map(str, constant[:5])) + (" …" if len(constant) > 5 else "")
            notes.append(f"{len(constant)} columns are constant and carry nothing: {shown}")
    flat = X.reshape(len(X), -1) if dense else X
    mark = np.random.default_rng(0).normal(size=flat.shape[1])  # equal rows, equal sums
    total = np.einsum("nd,d->n", flat, mark) if dense else flat @ mark
    first, code, count = np.unique(total, return_inverse=True, return_counts=True)
    if len(first) == 1:
        notes.append("all rows are identical: their labels alone can tell them apart")
    elif len(first) < len(total):
        pairs = np.unique(np.stack([code, _label_codes(target)]), axis=1)
        mixed = np.bincount(pairs[0], minlength=len(first)) > 1
        notes.append(
            f"{int(count[count > 1].sum())} rows are there more than once, "
            f"{int(count[mixed].sum())} of them with different labels"
        )
    return notes


def _kind_notes(classes: NDArray[Any]) -> list[str]:
    """What labels that are no numbers were taken for."""
    kind = {"U": "text", "b": "booleans"}.get(classes.dtype.kind)
    shown = ", ".join(map(repr, classes[:5].tolist())) + (" …" if len(classes) > 5 else "")
    return [] if kind is None else [f"labels are {kind}: {len(classes)} classes, {shown}"]


def _rare_notes(classes: NDArray[Any], count: NDArray[np.intp], metric: str) -> list[str]:
    """Classes of so few rows that chance, or the plain mean over rows, decides on them."""
    n, least = int(count.sum()), int(count.min())
    name = classes[int(np.argmin(count))].item()
    notes: list[str] = []
    if least < 5:
        notes.append(f"class {name!r} has only {least} of {n} rows: its values are rough")
    if metric in ("loss", "accuracy") and least * len(classes) < _RARE * n:
        notes.append(
            f"class {name!r} has {least / n:.1%} of the rows, which move {metric} little: "
            'metric="balanced_accuracy" counts every class alike'
        )
    return notes


def _label_codes(target: Target) -> NDArray[np.intp]:
    return np.unique(target.labels, return_inverse=True)[1]


def label_notes(target: Target, metric: str, judged: Any) -> list[str]:
    """What is odd about the labels, of training and of validation rows."""
    notes: list[str] = []
    if target.classes is not None:
        code = target.coded(target.labels)
        count = np.bincount(code, minlength=target.n_classes)
        notes += [*_kind_notes(target.classes), *_rare_notes(target.classes, count, metric)]
        if judged is not None:
            seen = np.bincount(target.coded(judged[1]), minlength=target.n_classes) > 0
            if not seen.all():
                lost = ", ".join(map(repr, target.classes[~seen][:5].tolist()))
                notes.append(
                    f"validation has no row of class {lost}: its rows are judged by others"
                )
    if judged is None:
        notes.append(
            "no validation set: folds of the training rows judge models taught with the others"
        )
    return notes
