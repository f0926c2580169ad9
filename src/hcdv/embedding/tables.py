"""Columns of any kind → numbers, with what was learnt on the training rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.columns import Column, column_from_state, fit_column
from hcdv.embedding.rows import Rows, read_rows
from hcdv.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Rows", "TableEncoder", "read_rows"]


class TableEncoder:
    """A frame becomes float64 columns; arrays, images and sparse matrices pass through.

    numeric    missing → median, then standardised; constant columns → 0
    boolean    0 or 1
    date       days since the median date, standardised; weekday, month, hour if they vary
    levels     one column a level, rare ones pooled; beyond max_levels signed hashing
    texts      mostly distinct cells of several words: hashed words, rare ones weigh more
    """

    def __init__(self, max_levels: int = 32, n_hash: int = 64) -> None:
        if max_levels < 1:
            raise ParameterError("max_levels", max_levels, "at least 1")
        if n_hash < 2:
            raise ParameterError("n_hash", n_hash, "at least 2")
        self.max_levels = max_levels
        self.n_hash = n_hash
        self.notes: list[str] = []

    def fit(self, rows: Rows) -> Self:
        """Learn medians, scales and levels from the training rows."""
        self.kind = rows.kind
        self.shape = tuple(int(size) for size in rows.table.shape[1:])
        self.columns: list[Column] = []
        if rows.frame is not None:
            self.columns = [
                fit_column(name, rows.frame[name], self.max_levels, self.n_hash)
                for name in rows.frame.columns
            ]
        self.feature_names_out = self._labels()
        self.notes = [note for column in self.columns for note in column.notes()]
        self.notes += _shape_notes(len(rows), len(self.feature_names_out))
        self._had_missing: set[str] | None = None
        return self

    def transform(self, rows: Rows, out: NDArray[np.floating] | None = None) -> Any:
        """(n, p) float64 for a frame; otherwise the array or csr matrix itself.

        out: what to fill for a frame, of any precision.
        """
        if not hasattr(self, "kind"):
            raise DataError("TableEncoder must be fitted before transform. Call fit(rows).")
        self._refuse_other_shape(rows)
        return rows.table if rows.frame is None else self._encoded(rows.frame, out)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything learnt, as JSON-able settings (no arrays are needed)."""
        settings = {
            "max_levels": self.max_levels,
            "n_hash": self.n_hash,
            "kind": self.kind,
            "shape": list(self.shape),
            "columns": [column.state() for column in self.columns],
            "notes": list(self.notes),
            "had_missing": None if self._had_missing is None else sorted(self._had_missing),
        }
        return settings, {}

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:  # noqa: ARG003, as all states
        """The table encoder that `state` described."""
        encoder = cls(settings["max_levels"], settings["n_hash"])
        encoder.kind = settings["kind"]
        encoder.shape = tuple(settings["shape"])
        encoder.columns = [column_from_state(state) for state in settings["columns"]]
        encoder.feature_names_out = encoder._labels()
        encoder.notes = list(settings["notes"])
        had_missing = settings["had_missing"]
        encoder._had_missing = None if had_missing is None else set(had_missing)
        return encoder

    def _labels(self) -> list[str]:
        if self.kind == "frame":
            return [label for column in self.columns for label in column.labels()]
        return [f"x{j}" for j in range(int(np.prod(self.shape)))]

    def _encoded(
        self, frame: pd.DataFrame, out: NDArray[np.floating] | None
    ) -> NDArray[np.floating]:
        if out is None:
            out = np.empty((len(frame), len(self.feature_names_out)))
        at, n_missing, unseen, holed = 0, 0, dict[str, int](), set[str]()
        for column in self.columns:
            width = len(column.labels())
            met = column.write(frame[column.name], out[:, at : at + width])
            at, n_missing = at + width, n_missing + met.missing
            if met.missing:
                holed.add(column.name)
            if met.unseen:
                unseen[column.name] = met.unseen
        self._note_missing(n_missing, holed)
        for name, count in unseen.items():
            self._note(f"column {name!r}: {count} cells of a level not seen in training")
        return out

    def _note_missing(self, n_missing: int, holed: set[str]) -> None:
        """The first transform tells of all filled cells, later ones of new columns."""
        is_first, had = self._had_missing is None, self._had_missing or set()
        if new := sorted(holed - had):
            names = ", ".join(map(repr, new[:5])) + (" …" if len(new) > 5 else "")
            first = f"{n_missing} missing cells filled, in {len(new)} columns: {names}"
            later = f"missing cells filled in columns complete until now: {names}"
            self._note(first if is_first else later)
        self._had_missing = had | holed

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _refuse_other_shape(self, rows: Rows) -> None:
        if rows.kind != self.kind:
            raise DataError(
                f"X must be of the kind seen in training ({self.kind}), got {rows.kind}. "
                "Pass the same kind of table to fit and afterwards."
            )
        if rows.frame is None:
            shape = tuple(rows.table.shape[1:])
            if shape != self.shape:
                flat = len(shape) == len(self.shape) == 1
                known = (
                    f" X has {shape[0]} features, but HCDV is expecting {self.shape[0]} "
                    "features as input."
                )
                raise DataError(
                    f"X must have rows of shape {self.shape}, as in training, got {shape}."
                    f"{known if flat else ''}"
                )
            return
        expected = [column.name for column in self.columns]
        given = list(rows.frame.columns)
        missing = [name for name in expected if name not in set(given)]
        extra = [name for name in given if name not in set(expected)]
        if missing or extra:
            raise DataError(
                "X must have the columns seen in training: "
                f"{_listed('missing', missing)}{_listed('not known', extra)}"
                "Add, drop or rename columns so that the names are the same."
            )


def _listed(what: str, names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")
    return f"{what} {shown}. " if names else ""


def _shape_notes(n_rows: int, n_columns: int) -> list[str]:
    notes: list[str] = []
    if n_rows < 20:
        notes.append(f"only {n_rows} rows: values of so few points are very uncertain")
    if n_columns > n_rows:
        notes.append(
            f"more columns ({n_columns}) than rows ({n_rows}): chance can look like a pattern"
        )
    return notes
