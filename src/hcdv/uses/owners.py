"""Who owns which row, and which rows more than one of them offers."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError

if TYPE_CHECKING:
    from hcdv.given import Given
    from hcdv.result import Run


@dataclass(frozen=True)
class Owners:
    """Names of the owners, sorted, and which of them each row belongs to."""

    names: list[Any]
    code: NDArray[np.intp]  # (n,)  in the user's order

    @property
    def n(self) -> int:
        """P."""
        return len(self.names)


def owners_of(owners: Any, given: Given | None, ids: NDArray[Any]) -> Owners:
    """Owners from one name a row, or from a column of the rows that were kept."""
    import pandas as pd

    if isinstance(owners, str):
        owners = _column(owners, given, ids)
    try:
        names = np.asarray(owners)
    except ValueError as error:
        raise DataError(f"owners must be one name a row, got {error}.") from error
    if names.ndim != 1 or len(names) != len(ids):
        raise DataError(
            f"owners must be one name for each of {len(ids):,} rows, got shape {names.shape}. "
            "Give them in the order of ids_."
        )
    missing = np.asarray(pd.isna(names)) | (names.astype(str) == "")
    if missing.any():
        raise DataError(
            f"owners must have no missing names, got {int(missing.sum()):,} of "
            f"{len(names):,}, first at row {int(np.argmax(missing))}. Every row is someone's: "
            "name the owner, or forget the row."
        )
    if names.dtype == object and pd.api.types.infer_dtype(names) not in (
        "string",
        "integer",
    ):
        names = names.astype(str)
    found, code = np.unique(names, return_inverse=True)
    if len(found) < 2:
        raise DataError(
            f"owners must be at least 2, got one: {found[0]!s}. A single seller gets all of it."
        )
    return Owners(found.tolist(), code.astype(np.intp))


def copies_between(run: Run, seller: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many rows of each seller another offers too: the same vector and label, (P,)."""
    import pandas as pd

    points = run.case.points
    row = np.ascontiguousarray(np.round(points.Z.astype(np.float64), 9) + 0.0)
    joined = np.column_stack([row, points.target.astype(np.float64)])
    key = pd.util.hash_array(
        np.ascontiguousarray(joined).view(f"V{joined.shape[1] * 8}")[:, 0]
    )
    frame = pd.DataFrame({"key": key, "seller": seller})
    several = frame.groupby("key")["seller"].transform("nunique").to_numpy() > 1
    return np.bincount(seller, several, minlength=int(seller.max()) + 1).astype(np.intp)


def _column(name: str, given: Given | None, ids: NDArray[Any]) -> Any:
    if given is None or given.kind != "table":
        raise DataError(
            f"owners must be one name a row, got the column {name!r} of rows that were not "
            "kept. Pass the column itself."
        )
    table: Any = given.rows(ids).table
    columns = [str(each) for each in table.columns]
    if name not in columns:
        close = difflib.get_close_matches(name, columns, 1)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise DataError(
            f"owners must name a column of the rows, got {name!r}. {meant}A column that was "
            "dropped before the fit is passed as an array."
        )
    return table[name].to_numpy()
