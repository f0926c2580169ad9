"""Selected rows to a file: of the table that was valued, or their numbers, ids and values."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcdv.apps.reading import read_frame, suffix_of
from hcdv.errors import DataError
from hcdv.store import check_new, write_file

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from hcdv.estimator import HCDV

SUFFIXES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".txt")


def refuse_unless_writable(output: Path) -> None:
    """Refuse a name of no known kind, or a place that cannot be written to."""
    if output.suffix.lower() not in SUFFIXES:
        raise DataError(
            f"-o must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got '{output}'. "
            "The ending says what to write."
        )
    check_new(output, "-o")


def write_rows(
    model: HCDV, rows: np.ndarray[Any, Any], output: Path, table: Path | None
) -> None:
    """Write the selected rows, all or nothing."""
    if output.suffix.lower() == ".txt":
        content = "".join(f"{row}\n" for row in rows.tolist()).encode()
    else:
        frame = model.to_frame() if table is None else table_of(model, output, table)
        content = _bytes(frame.iloc[rows], output.suffix.lower())
    write_file(output, content, "-o")


def write_some(rows: np.ndarray[Any, Any], output: Path, table: Path, name: str) -> None:
    """Write some rows of another table, all or nothing; from CSV to CSV every cell as it stands."""
    if output.suffix.lower() == ".txt" or suffix_of(table) == ".npz":
        if output.suffix.lower() != ".txt":
            raise DataError(
                f"-o must end in .txt, to hold row numbers, for the arrays of '{table}', got "
                f"'{output}'. X[rows] picks them."
            )
        write_file(output, "".join(f"{row}\n" for row in rows.tolist()).encode(), "-o")
        return
    both_text = {suffix_of(table), output.suffix.lower()} <= {".csv", ".tsv"}
    frame = read_frame(table, name, as_text=both_text)
    write_file(output, _bytes(frame.iloc[rows], output.suffix.lower()), "-o")


def write_frame(frame: pd.DataFrame, output: Path) -> None:
    """Write a whole frame, all or nothing."""
    if output.suffix.lower() == ".txt":
        raise DataError(
            f"-o must end in {', '.join(SUFFIXES[:-1])}, got '{output}': .txt holds row numbers."
        )
    write_file(output, _bytes(frame, output.suffix.lower()), "-o")


def table_of(model: HCDV, output: Path, table: Path) -> pd.DataFrame:
    """The rows of the table itself; from CSV to CSV every cell as it stands."""
    if suffix_of(table) == ".npz":
        raise DataError(
            f"--table must have columns, got the arrays of '{table}'. Leave it out: -o then "
            "holds row numbers, by which X[rows] picks them."
        )
    both_text = {suffix_of(table), output.suffix.lower()} <= {".csv", ".tsv"}
    frame = read_frame(table, "--table", as_text=both_text)
    if len(frame) != model.run_.n_rows:
        raise DataError(
            f"--table must be the table that was valued, of {model.run_.n_rows:,} rows, got "
            f"{len(frame):,} rows in '{table}'. Name that one, or leave --table out."
        )
    return frame


def _bytes(frame: pd.DataFrame, suffix: str) -> bytes:
    if suffix in (".csv", ".tsv"):
        return frame.to_csv(index=False, sep="\t" if suffix == ".tsv" else ",").encode()
    held = io.BytesIO()
    if suffix == ".parquet":
        frame.to_parquet(held, engine="pyarrow", index=False)
    else:
        frame.reset_index(drop=True).to_feather(held)
    return held.getvalue()
