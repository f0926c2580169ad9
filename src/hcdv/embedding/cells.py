"""The cells of one column as numbers, moments in time or levels, whatever held them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

DAY_NS = 86_400_000_000_000


def kind_of(column: pd.Series, name: str) -> str:
    """numeric, boolean, date or levels: by dtype, or by the cells of an object column."""
    import pandas as pd

    types = pd.api.types
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "levels"
    if types.is_bool_dtype(column.dtype):
        return "boolean"
    if types.is_datetime64_any_dtype(column.dtype) or isinstance(
        column.dtype, pd.PeriodDtype
    ):
        return "date"
    if types.is_complex_dtype(column.dtype):
        raise DataError(f"column {name!r} must hold real numbers, got complex ones.")
    if types.is_numeric_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype):
        return "numeric"
    found = types.infer_dtype(column, skipna=True)
    if found == "string":
        return "date" if _holds_iso_dates(column) else "levels"
    if found in ("integer", "floating", "decimal", "mixed-integer-float", "empty"):
        return "numeric"
    if found in ("datetime", "datetime64", "date", "period"):
        return "date"
    return "boolean" if found == "boolean" else "levels"


def _holds_iso_dates(column: pd.Series) -> bool:
    """True if every text starts as 2024-01-31 does and all of them parse as dates."""
    import pandas as pd

    known = column.dropna()
    if not known.head(100).str.match(r"\d{4}-\d\d-\d\d(?!\d)").all():
        return False
    parsed = pd.to_datetime(known, utc=True, errors="coerce", format="ISO8601")
    return bool(parsed.notna().all())


def as_numbers(column: pd.Series, name: str) -> NDArray[np.float64]:
    """A column as float64 with NaN for missing cells; infinity is refused."""
    import pandas as pd

    if pd.api.types.is_timedelta64_dtype(column.dtype):
        column = column / pd.Timedelta(days=1)
    try:
        if column.dtype == object:
            column = column.where(column.notna(), None).astype("float64")
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"column {name!r} must hold numbers, as it did in training, got "
            f"{column.dtype}: {error}. Convert it with pandas.to_numeric first."
        ) from error
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise DataError(
            f"column {name!r} must be finite, got {values[row]} at row {row} "
            f"({int(np.isinf(values).sum())} such cells). Replace them by a missing value."
        )
    return values


def as_stamps(column: pd.Series, name: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Nanoseconds since 1970 (zones turned to UTC) and which cells are missing."""
    import pandas as pd

    try:
        if isinstance(column.dtype, pd.PeriodDtype):
            column = column.dt.to_timestamp()
        if column.dtype == object and pd.api.types.infer_dtype(column) == "period":
            column = column.map(lambda period: period.to_timestamp(), na_action="ignore")
        is_text = pd.api.types.infer_dtype(column) == "string"
        how = {"format": "ISO8601"} if is_text else {}
        dates = pd.Series(pd.to_datetime(column, utc=True, **how))
        stamps = dates.dt.tz_localize(None).to_numpy().astype("datetime64[ns]")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"column {name!r} must hold dates between the years 1678 and 2261, as it did "
            f"in training: {error}. Convert it with pandas.to_datetime first."
        ) from error
    is_missing = np.isnat(stamps)
    return np.where(is_missing, 0, stamps.astype(np.int64)), is_missing


def as_levels(column: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Codes (−1 for missing) into the distinct levels as text, whatever their type was."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, levels = column.cat.codes.to_numpy(), column.cat.categories
    elif column.dtype == object and pd.api.types.infer_dtype(column) != "string":
        text = column.where(column.isna(), column.map(_text))
        codes, levels = pd.factorize(text)
    else:
        codes, levels = pd.factorize(column)
    # Two levels may read alike (1 and 1.0); unused categories are dropped.
    names = np.asarray(levels, dtype=object)
    if pd.api.types.infer_dtype(names, skipna=False) != "string":
        names = np.array([_text(level) for level in names], dtype=object)
    merge, texts = pd.factorize(names)
    codes = np.append(merge, -1)[codes] if len(merge) else np.asarray(codes)
    used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(texts)))
    renumber = np.full(len(texts) + 1, -1)
    renumber[used] = np.arange(len(used))
    return renumber[codes].astype(np.intp), [str(text) for text in texts[used]]


def hashed_levels(column: pd.Series) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Codes of the cells, and the fixed 64-bit hash of each level; code −1, the last: missing."""
    import pandas as pd

    codes, found = as_levels(column)
    # A missing cell is the level "", which no text of a cell is mistaken for.
    texts = np.array([*(f"={level}" for level in found), ""], dtype=object)
    return codes, np.asarray(pd.util.hash_array(texts, categorize=False), dtype=np.uint64)


def _text(level: Any) -> str:
    """1 and 1.0 are one level: a missing cell turns integers to floats in pandas."""
    is_whole = isinstance(level, (float, np.floating)) and float(level).is_integer()
    return str(int(level)) if is_whole else str(level)


def date_parts(stamps: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Weekday (0 is Monday), month (1 … 12) and hour of each moment."""
    days = stamps // DAY_NS
    months = stamps.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64)
    return {
        "weekday": (days + 3) % 7,  # 0 is Monday: day 0 of 1970 was a Thursday
        "month": months % 12 + 1,
        "hour": stamps // (DAY_NS // 24) % 24,
    }
