"""Rows that arrive after the fit: read, checked and embedded as those of the fit were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.rows import Rows, read_rows
from hcdv.embedding.wrapped import PrecomputedEncoder
from hcdv.errors import DataError
from hcdv.intake import (
    checked_ids,
    checked_weights,
    refuse_huge,
    row_keys,
    takes_frame,
    unit,
)
from hcdv.streaming.draft import Arrivals, Judges
from hcdv.targets import Target, as_labels
from hcdv.valuation.contexts import hashed_uniform
from hcdv.valuation.points import Points
from hcdv.valuation.upkeep import n_folds

if TYPE_CHECKING:
    from hcdv.embedding.encoders import Encoder
    from hcdv.embedding.tables import TableEncoder
    from hcdv.result import Run
    from hcdv.streaming.ahead import Ahead

FOLD_STREAM = 1 << 21  # that of the folds of a fit


def read_arrivals(
    run: Run, table_encoder: TableEncoder, encoder: Encoder, X: Any, y: Any, ids: Any,
    sample_weight: Any, ahead: Ahead | None = None,
) -> tuple[Arrivals, list[str]]:  # fmt: skip
    """New rows ready to join a run, and what is to be noted of them.

    ahead: the updates that the run has not caught up with.
    """
    rows = read_rows(X)
    n = len(rows)
    labels = known_labels(run.target, rows.target if y is None else y, n)
    names = _ids_for(run, ahead, ids, n)
    weight = _weights_for(run, sample_weight, n)
    noted = len(table_encoder.notes)
    Z = _embedded(rows, table_encoder, encoder)
    if Z.shape[1] != run.case.points.Z.shape[1]:
        raise DataError(
            f"encoder must return vectors of {run.case.points.Z.shape[1]} numbers, as in the "
            f"fit, got {Z.shape[1]}."
        )
    key = row_keys(names)
    folds = n_folds(run.case)
    fold = np.zeros(n, dtype=np.intp)
    if folds > 1:
        fold = (hashed_uniform(key, run.plan.seed, FOLD_STREAM) * folds).astype(np.intp)
    points = Points(Z, run.target.coded(labels), run.target.n_classes, key, fold, weight)
    notes = table_encoder.notes[noted:] + _mix_notes(_class_counts(run, ahead), points)
    return Arrivals(points, labels, names), notes


def read_judges(
    run: Run, table_encoder: TableEncoder, encoder: Encoder, X_val: Any, y_val: Any
) -> Judges | None:
    """A validation set that takes the place of the one there is; None if none is given."""
    if X_val is None and y_val is None:
        return None
    if not all(judge.eligible.all() for judge in run.case.judges):
        raise DataError(
            "X_val must be left out, as it was in the fit: folds of the rows judge. Fit again "
            "with a validation set."
        )
    if X_val is None:
        raise DataError("X_val must be given with y_val, got None. Pass both, or neither.")
    try:
        rows = read_rows(X_val)
        labels = known_labels(
            run.target, rows.target if y_val is None else y_val, len(rows)
        )
        Z = _embedded(rows, table_encoder, encoder)
    except DataError as error:
        raise DataError(f"X_val: {error}") from error
    if len(np.unique(labels)) < 2:
        raise DataError(
            f"y_val must vary, got {labels[0].item()!r} in all {len(labels)} rows: such a "
            "validation set cannot tell models apart."
        )
    none = np.zeros(len(rows), dtype=np.intp)
    target = run.target.coded(labels)
    points = Points(Z, target, run.target.n_classes, none.astype(np.uint64), none)
    return Judges(points, labels)


def known_labels(target: Target, y: Any, n_rows: int) -> NDArray[Any]:
    """Labels of the kind and of the classes of the fit."""
    labels = as_labels(y, n_rows)
    if target.classes is None:
        if labels.dtype.kind not in "biuf":
            raise DataError(
                f"y must hold numbers, as in the fit, got {labels[0].item()!r}. Pass numbers."
            )
        return labels
    is_text = target.classes.dtype.kind in "US"
    if is_text:
        labels = labels.astype(target.classes.dtype.kind)
    elif labels.dtype.kind in "US":
        raise _unknown(labels[:1], target)
    unknown = np.unique(labels[~np.isin(labels, target.classes)])
    if len(unknown):
        raise _unknown(unknown, target)
    return labels


def _unknown(labels: NDArray[Any], target: Target) -> DataError:
    assert target.classes is not None
    return DataError(
        f"y must hold classes seen in the fit, got {labels[0].item()!r}; known are "
        f"{', '.join(map(repr, target.classes[:5].tolist()))}. The values of all rows hang on "
        "the classes there are: fit again once there are rows of the new one."
    )


def _ids_for(run: Run, ahead: Ahead | None, ids: Any, n: int) -> NDArray[Any]:
    living = run.living if ahead is None else ahead.living
    assert living is not None
    known = run.canonical_ids
    are_numbers = known.dtype.kind in "iu"
    if ids is None:
        if not are_numbers:
            raise DataError(
                f"ids must be given, as the rows of the fit have them, such as "
                f"{known[0].item()!r}. Pass ids, one for each of {n} rows."
            )
        return living.next_id + np.arange(n)
    names = checked_ids(ids, n)
    if (names.dtype.kind in "iu") != are_numbers:
        raise DataError(
            f"ids must be {'numbers' if are_numbers else 'text'}, as in the fit, got "
            f"{names[0].item()!r}."
        )
    everyone = [known] if ahead is None else ahead.ids
    taken = np.any([_among(names, ids) for ids in everyone], axis=0)
    if taken.any():
        raise DataError(
            f"ids must be new, got {names[taken][0].item()!r}, which a live row has. To change "
            "its label, use relabel; to replace it, forget it first."
        )
    return names


def _weights_for(run: Run, given: Any, n: int) -> NDArray[np.float64] | None:
    weighted = run.case.points.weight is not None
    if given is None:
        return np.ones(n) if weighted else None
    if not weighted:
        raise DataError(
            "sample_weight must be left out, as it was in the fit. Fit again with weights."
        )
    return checked_weights(given, n)


def _embedded(
    rows: Rows, table_encoder: TableEncoder, encoder: Encoder
) -> NDArray[np.floating]:
    if isinstance(encoder, PrecomputedEncoder):
        raise DataError(
            "encoder must be able to embed new rows, got the embeddings of the first. Fit with "
            'the embeddings as X and encoder="identity".'
        )
    numbers = table_encoder.transform(rows)
    refuse_huge(numbers)
    X = rows.frame if takes_frame(encoder, rows) else numbers
    return unit(encoder.transform(X))


def _among(names: NDArray[Any], ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the names are ids of live rows; these are many, and not sorted for it."""
    taken = ids[np.isin(ids, names)]
    return np.isin(names, taken)


def _class_counts(run: Run, ahead: Ahead | None) -> NDArray[Any]:
    if ahead is not None:
        return ahead.tally.counts.sum(axis=0)
    points = run.case.points
    return np.bincount(points.target if points.n_classes else [0])


def _mix_notes(before: NDArray[Any], points: Points) -> list[str]:
    """A batch whose labels are mixed unlike those of the live rows."""
    if not points.n_classes:
        return []
    from scipy.stats import chi2_contingency

    counts = np.zeros((2, points.n_classes))
    counts[0, : len(before)] = before
    counts[1] = np.bincount(points.target, minlength=points.n_classes)
    counts = counts[:, counts.any(axis=0)]
    if chi2_contingency(counts).pvalue >= 1e-3:
        return []
    return [
        "labels of arriving rows are mixed unlike those before: history_ has the shares"
    ]


def read_candidates(
    run: Run, table_encoder: TableEncoder, encoder: Encoder, X: Any, y: Any
) -> tuple[Rows, NDArray[np.floating], NDArray[Any] | None]:
    """Rows outside the data, embedded as those in it, and their labels if they have any."""
    if any(judge.view for judge in run.case.judges):
        raise DataError(
            "encoder must not have seen labels for rows outside the data to be valued, got one "
            "encoder for each fold that judges. Pass X_val and y_val to fit."
        )
    try:
        rows = read_rows(X)
        y = rows.target if y is None else y
        labels = None if y is None else known_labels(run.target, y, len(rows))
        Z = _embedded(rows, table_encoder, encoder)
    except DataError as error:
        raise DataError(f"X_new: {error}") from error
    if Z.shape[1] != run.case.points.Z.shape[1]:
        raise DataError(
            f"encoder must return vectors of {run.case.points.Z.shape[1]} numbers, as in the "
            f"fit, got {Z.shape[1]}."
        )
    return rows, Z, labels


def read_groups(groups: Any, rows: Rows) -> NDArray[Any] | None:
    """What candidates are compared by: one entry a row, of any kind."""
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.shape != (len(rows),):
        raise DataError(
            f"groups must have one entry for each of {len(rows)} rows, got shape {found.shape}."
        )
    import pandas as pd

    if n_missing := int(pd.isna(found).sum()):
        raise DataError(f"groups must have no missing entries, got {n_missing}.")
    return found.astype(str) if found.dtype.kind == "O" else found
