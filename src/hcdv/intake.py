"""From what a user passes to what Stage III sees: checks, keys, folds, vectors, one case.

Rows are put in the order of their ids once, so that the result depends on the ids and not
on the order in which the rows came.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.encoders import Encoder, make_encoder
from hcdv.embedding.folds import fold_encoders
from hcdv.embedding.neural import NeuralEncoder
from hcdv.embedding.rows import Rows, read_rows
from hcdv.embedding.tables import TableEncoder
from hcdv.errors import DataError
from hcdv.judging import Folds, group_folds, random_folds, time_folds
from hcdv.oddities import label_notes, row_notes
from hcdv.targets import Target, as_labels, read_target, resolve_metric
from hcdv.valuation.contexts import mix
from hcdv.valuation.points import Case, Judge, Originals, Points

_SINGLE = 2**22  # entries of an embedding past which it is kept in float32


@dataclass(frozen=True)
class EncoderSettings:
    """How rows become vectors."""

    encoder: Any = "auto"
    dispersion_weight: float = 0.1
    smoothness_weight: float = 0.01
    device: str = "auto"


@dataclass(frozen=True)
class Table:
    """The training rows in canonical order, read and checked."""

    rows: Rows
    target: Target
    metric: str
    ids: NDArray[Any]  # (n,)  in the canonical order
    key: NDArray[np.uint64]
    position: NDArray[np.intp]  # (n,)  place of each row in the user's order
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    time: NDArray[Any] | None


@dataclass(frozen=True)
class Intake:
    """A case ready to be valued, and what is needed to read further rows the same way."""

    case: Case
    table_encoder: TableEncoder
    encoder: Encoder
    notes: list[str] = field(default_factory=list)


def read_table(
    X: Any, y: Any, *, metric: str = "auto", ids: Any = None, sample_weight: Any = None,
    groups: Any = None, time: Any = None,
) -> Table:  # fmt: skip
    """Check the training rows and put them in the order of their ids."""
    rows = read_rows(X)
    n = len(rows)
    if n < 2:
        raise DataError(
            f"X must hold at least 2 rows, got n_samples = {n}: one row has no others to be "
            "compared with. Check the filter that produced it."
        )
    y = rows.target if y is None else y
    target = read_target(y, n, metric)
    groups = _column(groups, rows, n, "groups")
    time = _column(time, rows, n, "time")
    weight = checked_weights(sample_weight, n)
    ids = np.arange(n) if ids is None else checked_ids(ids, n)
    position = np.argsort(ids, kind="stable")
    if np.array_equal(position, np.arange(n)):
        return Table(
            rows, target, resolve_metric(metric, target), ids, row_keys(ids), position, weight,
            groups, time,
        )  # fmt: skip
    target = Target(target.labels[position], target.classes, target.centre, target.scale)
    return Table(
        take(rows, position), target, resolve_metric(metric, target), ids[position],
        row_keys(ids[position]), position, *(
            None if part is None else part[position] for part in (weight, groups, time)
        ),
    )  # fmt: skip


def take(rows: Rows, index: NDArray[Any]) -> Rows:
    """Some of the rows, by index or mask."""
    if rows.frame is not None:
        return Rows(
            frame=rows.frame.iloc[np.flatnonzero(index) if index.dtype == bool else index]
        )
    if rows.sparse is not None:
        return Rows(sparse=rows.sparse[index])
    assert rows.array is not None
    return Rows(array=rows.array[index])


def row_keys(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """64-bit keys of row ids: context membership is a hash of these."""
    if ids.dtype.kind in "iu":
        return mix(ids.astype(np.int64).view(np.uint64))
    import pandas as pd

    return np.asarray(pd.util.hash_array(ids.astype(object)), dtype=np.uint64)


def build_case(
    table: Table,
    settings: EncoderSettings,
    X_val: Any,
    y_val: Any,
    seed: int,
    n_jobs: int | None,
) -> Intake:
    """Embed the rows, and set up who judges whom."""
    target = table.target
    judged = _validation(X_val, y_val, target)
    if judged is not None and not target.n_classes:
        numbers = judged[1].astype(np.float64)
        target = Target(target.labels, None, float(numbers.mean()), target.scale)
    table_encoder = TableEncoder().fit(table.rows)
    encoder = make_encoder(
        _in_order(settings.encoder, table), table.rows,
        dispersion_weight=settings.dispersion_weight,
        smoothness_weight=settings.smoothness_weight, device=settings.device, n_jobs=n_jobs,
    )  # fmt: skip
    numbers = table_encoder.transform(table.rows)
    refuse_huge(numbers)
    X = table.rows.frame if takes_frame(encoder, table.rows) else numbers
    ruled = table.groups is not None or table.time is not None
    folds = _folds(table, target, seed, need=judged is None or encoder.supervised or ruled)
    rng = np.random.default_rng([seed, 0])
    code = target.coded(target.labels)
    with _told_of_validation():
        X_judge = None if judged is None else table_encoder.transform(judged[0])
    if judged is not None and takes_frame(encoder, table.rows):
        X_judge = judged[0].frame
    encoder = _fitted(encoder, X, target, X_judge, judged, rng)
    Zs, judging_view = _embedded(encoder, X, target, folds, rng)
    points = [
        Points(Z, code, target.n_classes, table.key, folds.fold, table.weight) for Z in Zs
    ]
    if judged is None:
        judges = _fold_judges(points, folds, judging_view)
    else:
        none = np.zeros(len(judged[1]), dtype=np.intp)
        own = Points(
            unit(encoder.transform(X_judge)), target.coded(judged[1]), target.n_classes,
            none.astype(np.uint64), none,
        )  # fmt: skip
        judges = [Judge(own, 0, np.ones(folds.eligible.shape[1], dtype=bool))]
    originals_judged = _judged_originals(table.rows, target, folds, judged)
    originals = Originals(table.rows.table, target.labels, originals_judged, table.position)
    notes = [
        *table_encoder.notes,
        *row_notes(numbers, target, table.rows),
        *label_notes(target, table.metric, judged),
    ]
    reason = getattr(encoder, "reason", "")
    if reason:
        notes.append(f"encoder: {reason}")
    return Intake(
        Case(points, judges, judging_view, originals, folds.asking if ruled else None),
        table_encoder, encoder, notes,
    )  # fmt: skip


def _embedded(
    encoder: Encoder, X: Any, target: Target, folds: Folds, rng: np.random.Generator
) -> tuple[list[NDArray[np.floating]], NDArray[np.intp]]:
    """The rows in every view, and the view in which each fold's labels are doubted."""
    n_folds = folds.eligible.shape[1]
    encoders = [encoder]
    if encoder.supervised:
        encoders += fold_encoders(encoder, X, target.labels, folds.fold, rng)
    views = [unit(one.transform(X)) for one in encoders]
    return views, np.arange(1, len(views)) if encoder.supervised else np.zeros(
        n_folds, np.intp
    )


def _fold_judges(
    views: list[Points], folds: Folds, judging_view: NDArray[np.intp]
) -> list[Judge]:
    """Every judging fold as the validation set of models taught with its eligible folds."""
    return [
        Judge(
            views[judging_view[fold]].take(np.flatnonzero(folds.fold == fold)),
            int(judging_view[fold]),
            eligible,
        )
        for fold, eligible in zip(folds.judging, folds.eligible, strict=True)
    ]


def _judged_originals(
    rows: Rows, target: Target, folds: Folds, judged: tuple[Rows, NDArray[Any]] | None
) -> list[tuple[Any, NDArray[Any]]]:
    """Validation rows and labels as the user gave them, by judge."""
    if judged is not None:
        return [(judged[0].table, judged[1])]
    own = [np.flatnonzero(folds.fold == fold) for fold in folds.judging]
    return [(take(rows, some).table, target.labels[some]) for some in own]


def takes_frame(encoder: Encoder, rows: Rows) -> bool:
    """Whether the encoder picks columns by name, from rows that have names."""
    return getattr(encoder, "takes_frame", False) and rows.frame is not None


def _in_order(encoder: Any, table: Table) -> Any:
    """Embeddings handed in as the encoder follow the rows into the canonical order."""
    is_array = hasattr(encoder, "__array__") or isinstance(encoder, list)
    if not is_array or len(encoder) != len(table.position):
        return encoder
    return np.asarray(encoder)[table.position]


def _fitted(
    encoder: Encoder, X: Any, target: Target, X_judge: Any, judged: Any,
    rng: np.random.Generator,
) -> Encoder:  # fmt: skip
    """Learn from the training rows; a validation set tells neural encoders when to stop."""
    if isinstance(encoder, NeuralEncoder) and judged is not None:
        return encoder.fit(X, target.labels, rng, X_judge, judged[1])
    return encoder.fit(X, target.labels if encoder.supervised else None, rng)


def unit(Z: Any, n_rows: int | None = None) -> NDArray[np.floating]:
    """Rows scaled to unit length; a zero row stays zero. n_rows: of which these are a part."""
    Z = np.asarray(Z)
    Z = Z.astype(vector_dtype(len(Z) if n_rows is None else n_rows, Z.shape[1]))
    norm = np.sqrt(np.einsum("nd,nd->n", Z, Z))
    Z /= np.where(norm > 0, norm, 1.0)[:, None]
    return Z


def vector_dtype(n_rows: int, width: int) -> np.dtype:
    """Of vectors: float64 while they are few."""
    return np.dtype(np.float64 if n_rows * width <= _SINGLE else np.float32)


@contextmanager
def _told_of_validation() -> Iterator[None]:
    """Errors that name X are about X_val here."""
    try:
        yield
    except DataError as error:
        raise DataError(f"X_val: {error}") from error


def refuse_huge(X: Any) -> None:
    """Squares of larger cells overflow, and everything after them is NaN."""
    cells = X.data if hasattr(X, "tocsr") else np.asarray(X)
    if not cells.size or cells.dtype.kind != "f":
        return
    limit = 1e-3 * float(np.finfo(cells.dtype).max) ** 0.5
    largest = max(float(cells.max()), -float(cells.min()))
    if largest > limit:
        raise DataError(
            f"X must hold numbers of size up to {limit:.0e}, got {largest:.3g}: its square "
            "overflows. Rescale the columns, as in X / abs(X).max(axis=0)."
        )


def _validation(X_val: Any, y_val: Any, target: Target) -> tuple[Rows, NDArray[Any]] | None:
    if X_val is None and y_val is None:
        return None
    if X_val is None:
        raise DataError("X_val must be given with y_val, got None. Pass both, or neither.")
    with _told_of_validation():
        rows = read_rows(X_val)
    labels = as_labels(rows.target if y_val is None else y_val, len(rows), "y_val")
    if target.classes is not None:
        labels = labels.astype(target.labels.dtype) if labels.dtype.kind == "O" else labels
        if len(np.unique(labels)) < 2:
            raise DataError(
                f"y_val must have at least 2 classes, got one: {labels[0].item()!r}. A "
                "validation set of one class cannot tell models apart."
            )
        target.coded(labels)  # refuses unknown classes before any encoder is fitted
    elif float(np.std(labels.astype(np.float64))) == 0:
        raise DataError(f"y_val must vary, got {labels[0]} in all {len(labels)} rows.")
    return rows, labels


def _folds(table: Table, target: Target, seed: int, *, need: bool) -> Folds:
    if not need:
        n = len(table.rows)
        return Folds(
            np.zeros(n, np.intp), np.zeros(0, np.intp), np.ones((0, 1), dtype=bool)
        )
    if table.time is not None:
        return time_folds(table.time)
    if table.groups is not None:
        return group_folds(table.groups, seed)
    return random_folds(
        table.key, target.coded(target.labels) if target.n_classes else None, seed
    )


def _column(given: Any, rows: Rows, n: int, name: str) -> NDArray[Any] | None:
    """A column by its name in the frame, or an array of one entry a row."""
    if given is None:
        return None
    if isinstance(given, str):
        if rows.frame is None or given not in rows.frame.columns:
            known = (
                "X has no named columns"
                if rows.frame is None
                else (f"X has {', '.join(map(repr, list(rows.frame.columns)[:8]))}")
            )
            raise DataError(f"{name} must name a column of X, got {given!r}; {known}.")
        given = rows.frame[given]
    column = np.asarray(given)
    if column.shape != (n,):
        raise DataError(
            f"{name} must have one entry for each of {n} rows, got shape {column.shape}."
        )
    if column.dtype.kind == "O":
        import pandas as pd

        if pd.isna(column).any():
            raise DataError(
                f"{name} must have no missing entries, got {int(pd.isna(column).sum())}."
            )
        column = column.astype(str)
    return column


def checked_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """One finite weight a row, none negative."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must hold numbers: {error}.") from error
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim != 1:
        raise DataError(
            f"sample_weight must be one-dimensional: Sample weights must be 1D array or "
            f"scalar, got shape {weight.shape}."
        )
    if len(weight) != n:
        raise DataError(
            f"sample_weight must have one entry for each of {n} rows: sample_weight.shape == "
            f"{weight.shape}, expected {(n,)}!"
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
        raise DataError(
            "sample_weight must be finite, none negative and not all zero, got values from "
            f"{weight.min()} to {weight.max()}."
        )
    return weight


def checked_ids(ids: Any, n: int) -> NDArray[Any]:
    """One id a row, each once: numbers or text."""
    found = np.asarray(ids)
    if found.shape != (n,):
        raise DataError(
            f"ids must have one entry for each of {n} rows, got shape {found.shape}."
        )
    if found.dtype.kind not in "iu":
        import pandas as pd

        if n_missing := int(pd.isna(found).sum()):
            raise DataError(f"ids must have no missing entries, got {n_missing}.")
        found = found.astype(str)
    names, count = np.unique(found, return_counts=True)
    if len(names) < n:
        raise DataError(
            f"ids must be unique, got {names[np.argmax(count)].item()!r} {count.max()} times. "
            "Drop the repeated rows, or leave ids out to use row numbers."
        )
    return found
