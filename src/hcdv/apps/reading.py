"""Tables from files: CSV, TSV, Parquet, Arrow and npz, or one line on why not."""

from __future__ import annotations

import bz2
import difflib
import gzip
import lzma
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from hcdv.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".npz")
PACKED = (".gz", ".bz2", ".xz")
_LABELS = ("y", "label", "labels", "target")
_VECTORS = ("X", "x", "emb", "embedding", "embeddings")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SHOWN = 12


@dataclass(frozen=True)
class Roles:
    """Which columns are something other than features."""

    target: str | None = None
    id: str | None = None
    groups: str | None = None
    time: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Column by role, of the roles that are filled."""
        roles = ("target", "id", "groups", "time", "weight")
        return {role: name for role in roles if (name := getattr(self, role)) is not None}


@dataclass(frozen=True)
class Sheet:
    """A table taken apart: features, labels, and what else was named."""

    X: Any
    y: Any
    target: str
    id: Any = None
    groups: Any = None
    time: Any = None
    weight: Any = None
    X_val: Any = None  # an npz file may bring its own
    y_val: Any = None

    def notes(self) -> list[str]:
        """What may be wrong with the table although it can be valued."""
        if not hasattr(self.X, "columns"):
            return []
        import numpy as np

        count = np.arange(len(self.X))
        return [
            f"column {name!r} only counts the rows: leave it out with --drop {name!r}"
            for name in self.X.columns[:1]
            if self.X[name].dtype.kind in "iu"
            and np.ptp(self.X[name].to_numpy() - count) == 0
        ]


def suffix_of(path: Path) -> str:
    """.csv for a.csv and for a.csv.gz."""
    inner = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return inner.suffix.lower()


def read_sheet(path: Path, roles: Roles, name: str = "TABLE") -> Sheet:
    """Read a file and take it apart; `name` is what messages call it."""
    _refuse_unless_file(path, name)
    if suffix_of(path) == ".npz":
        return _sheet_of_arrays(_read_npz(path, name), roles, path, name)
    return _sheet_of_frame(read_frame(path, name), roles, path, name)


def read_validation(path: Path, roles: Roles, taught: Sheet) -> Sheet:
    """As read_sheet, for rows of which only features and labels are asked."""
    name = "--validation"
    _refuse_unless_file(path, name)
    if suffix_of(path) == ".npz":
        return _sheet_of_arrays(_read_npz(path, name), Roles(roles.target), path, name)
    is_text = not hasattr(taught.y, "dtype") or taught.y.dtype.kind not in "biufM"
    frame = read_frame(path, name, text=(taught.target,) if is_text else ())
    others = {name for role, name in roles.named().items() if role != "target"}
    there = [column for column in frame.columns if column in {*others, *roles.drop}]
    return _sheet_of_frame(frame.drop(columns=there), Roles(roles.target), path, name)


def read_more(
    path: Path, roles: Roles, text: tuple[str, ...], name: str = "TABLE"
) -> Sheet:
    """As read_sheet, for a table like one read before; text: roles that were text there."""
    _refuse_unless_file(path, name)
    if suffix_of(path) == ".npz":
        return _sheet_of_arrays(_read_npz(path, name), roles, path, name)
    columns = tuple(roles.named()[role] for role in text if role in roles.named())
    return _sheet_of_frame(read_frame(path, name, text=columns), roles, path, name)


def read_frame(
    path: Path, name: str = "TABLE", *, as_text: bool = False, text: tuple[str, ...] = ()
) -> pd.DataFrame:
    """A file as a frame. as_text, text: a CSV, or columns of it, as the cells stand there."""
    _refuse_unless_file(path, name)
    if path.stat().st_size == 0:
        raise DataError(f"{name} must hold rows, got '{path}', which is empty (0 bytes).")
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv"):
        return _guarded(path, name, lambda: _read_csv(path, name, suffix, as_text, text))
    readers = {".parquet": _read_parquet, ".arrow": _read_arrow, ".feather": _read_arrow}
    if suffix not in readers or path.suffix.lower() in PACKED:
        raise DataError(
            f"{name} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got "
            f"'{path}'. Rename it after what it is, or convert it."
        )
    frame = _guarded(path, name, lambda: readers[suffix](path))
    return frame.set_axis([str(column) for column in frame.columns], axis=1)


def _refuse_unless_file(path: Path, name: str) -> None:
    if path.is_file():
        return
    if path.exists():
        what, way_out = "is a folder", "Name a file in it."
    else:
        what, way_out = "does not exist", _near(path)
    raise DataError(
        f"{name} must be a file, got '{path}', which {what}. {way_out}".rstrip()
    )


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder '{path.parent}' either."
    names = [each.name for each in path.parent.iterdir() if each.is_file()]
    close = difflib.get_close_matches(path.name, names, 1, 0.75)
    return f"Did you mean '{path.parent / close[0]}'?" if close else ""


def _guarded(path: Path, name: str, read: Callable[[], Any]) -> Any:
    """Turn what readers raise about a file's bytes into one line."""
    import pandas as pd
    import pyarrow as pa

    try:
        return read()
    except DataError:
        raise
    except UnicodeDecodeError as error:
        raise _not_utf8(path, name) from error
    except pd.errors.EmptyDataError as error:
        raise DataError(
            f"{name} must hold rows, got '{path}', which has no columns."
        ) from error
    except (
        OSError, EOFError, ValueError, KeyError, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
        NotImplementedError, pa.ArrowException, pd.errors.ParserError, pd.errors.ParserWarning,
    ) as error:  # fmt: skip
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DataError(
            f"{name} must be readable as {suffix_of(path)[1:]}, got '{path}': {why[:300]}. "
            "Check that it is complete and what its name says."
        ) from error


def _not_utf8(path: Path, name: str) -> DataError:
    """Name the line and the byte, and the command that converts the file."""
    where, of = "other bytes", "WINDOWS-1252"
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as found:
                where = f"byte 0x{line[found.start]:02x} in line {number}"
                of = "UTF-16" if line[:2] in _UTF16 else of
                break
    return DataError(
        f"{name} must be UTF-8, got {where} of '{path}'. Convert it: iconv -f {of} -t UTF-8 "
        f"'{path}' > utf8.csv."
    )


def _opened(path: Path) -> IO[bytes]:
    openers = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return cast("IO[bytes]", openers.get(path.suffix.lower(), open)(path, "rb"))


def _read_csv(
    path: Path, name: str, suffix: str, as_text: bool, text: tuple[str, ...]
) -> pd.DataFrame:
    import pandas as pd

    separator = "\t" if suffix == ".tsv" else _separator(path)
    common: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig", "index_col": False}
    as_is: dict[str, Any] = {"dtype": str, "keep_default_na": False}
    names = pd.read_csv(path, header=None, nrows=1, **common, **as_is).iloc[0]
    _refuse_repeats([str(each) for each in names if each], path, name)
    types = {"dtype": dict.fromkeys(text, str), "low_memory": False}
    with warnings.catch_warnings():
        # rows longer than the header would lose cells, or shift their columns, in silence
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(path, **common, **(as_is if as_text else types))


def _separator(path: Path) -> str:
    """A comma, unless the header has none and semicolons or tabs instead."""
    with _opened(path) as file:
        header = next((line for line in file if line.strip()), b"")
    if b"\0" in header and header[:2] not in _UTF16:
        raise ValueError("it holds zero bytes, which no text does")
    return next((mark for mark in ",;\t" if mark.encode() in header), ",")


def _refuse_repeats(names: list[str], path: Path, name: str) -> None:
    twice = [each for each, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{name} must have one column of each name, got {listed(twice)} more than once in "
            f"'{path}'. Rename or drop the repeated columns."
        )


def _read_parquet(path: Path) -> pd.DataFrame:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, page_checksum_verification=True) as file:
        return _without_index(file.read().to_pandas())


def _read_arrow(path: Path) -> pd.DataFrame:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
        return _without_index(table.to_pandas())


def _without_index(frame: pd.DataFrame) -> pd.DataFrame:
    """An index with a name is a column like others, as other programs see it."""
    return frame.reset_index(drop=all(name is None for name in frame.index.names))


def _read_npz(path: Path, name: str) -> dict[str, Any]:
    import numpy as np

    def read() -> dict[str, Any]:
        with path.open("rb") as file:  # np.load leaves damaged files open
            held = np.load(file, allow_pickle=False)
            if not hasattr(held, "files"):
                raise ValueError(
                    "it is one array, saved by np.save; use np.savez with names"
                )
            return {each: held[each] for each in held.files}

    return _guarded(path, name, read)


def _sheet_of_frame(frame: pd.DataFrame, roles: Roles, path: Path, name: str) -> Sheet:
    columns = list(frame.columns)
    assert roles.target is not None, "asked for before"
    for role, column in roles.named().items():
        refuse_unless_column(column, f"--{role}", columns, path)
    for column in roles.drop:
        refuse_unless_column(column, "--drop", columns, path)
    taken = {*roles.named().values(), *roles.drop}
    X = frame[[column for column in columns if column not in taken]]
    if X.shape[1] == 0:
        raise DataError(
            f"{name} must have at least one column beside {listed(sorted(taken))}, got none in "
            f"'{path}'. There is nothing to predict from."
        )
    return Sheet(
        X, frame[roles.target], roles.target,
        **{
            role: _whole(frame[column], role, column)
            for role, column in roles.named().items() if role != "target"
        },
    )  # fmt: skip


def refuse_unless_column(column: str, option: str, columns: list[str], path: Path) -> None:
    """Refuse a name that no column has, with the one it may have been meant for."""
    if column in columns:
        return
    by_lower = {each.lower().strip(): each for each in columns}
    close = difflib.get_close_matches(column.lower().strip(), by_lower, 1)
    meant = f"Did you mean {by_lower[close[0]]!r}? " if close else ""
    raise DataError(
        f"{option} must name a column of '{path}', got {column!r}. {meant}"
        f"It has {listed(columns)}."
    )


def _whole(column: pd.Series, role: str, name: str) -> Any:
    """A column without holes as an array; times as numbers or dates, so that they sort."""
    import numpy as np
    import pandas as pd

    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy()))
        raise DataError(
            f"--{role} must have no missing cells, got {int(column.isna().sum())} in column "
            f"{name!r}, first at row {row}. Fill them, or drop those rows."
        )
    is_text = not pd.api.types.is_numeric_dtype(column.dtype)
    if role == "weight" and is_text:
        raise DataError(
            f"--weight must be numbers, got {column.iloc[0]!r} in column {name!r}."
        )
    if (
        role == "time"
        and is_text
        and not pd.api.types.is_datetime64_any_dtype(column.dtype)
    ):
        try:
            column = pd.to_datetime(column, format="ISO8601", utc=True)
        except (ValueError, TypeError) as error:
            raise DataError(
                f"--time must be numbers or dates like 2024-01-31, got {column.iloc[0]!r} in "
                f"column {name!r}. Write the dates that way, so that they can be put in order."
            ) from error
    if role == "time" and pd.api.types.is_datetime64_any_dtype(column.dtype):
        stamps = (
            column.dt.tz_convert("UTC").dt.tz_localize(None) if column.dt.tz else column
        )
        return stamps.to_numpy()
    return column.to_numpy()


def _sheet_of_arrays(held: dict[str, Any], roles: Roles, path: Path, name: str) -> Sheet:
    """Arrays by their usual names; --target may name the labels' one."""
    labels = roles.target or next((each for each in _LABELS if each in held), None)
    vectors = next((each for each in _VECTORS if each in held and each != labels), None)
    if vectors is None or labels not in held:
        known = listed(list(held)) if held else "no arrays"
        raise DataError(
            f"{name} must hold arrays X (or emb) and y (or label), got {known} in '{path}'"
            + (f" and --target {roles.target!r}" if roles.target else "")
            + ". Save it with np.savez(path, X=…, y=…), or name the labels with --target."
        )
    for role, column in roles.named().items():
        if role != "target":
            refuse_unless_column(column, f"--{role}", list(held), path)
    if roles.drop:
        raise DataError("--drop must be left out for an npz file: X has no named columns.")
    others = {role: held[each] for role, each in roles.named().items() if role != "target"}
    if "id" not in others and "ids" in held:
        others["id"] = held["ids"]
    y_val = held.get(f"{labels}_val", held.get("y_val"))
    return Sheet(
        held[vectors], held[labels], labels, **others,
        X_val=held.get(f"{vectors}_val", held.get("X_val")), y_val=y_val,
    )  # fmt: skip


def listed(names: list[str]) -> str:
    """Names for a message, the first dozen of many."""
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown + (f", … ({len(names)} in all)" if len(names) > _SHOWN else "")
