"""Rows of any kind, told apart once: an array, a sparse matrix or a frame."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from hcdv.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """One of array (2-d, or 3-d/4-d images), sparse (csr) or frame; target if X held it."""

    array: Array | None = None
    sparse: csr_array | None = None
    frame: pd.DataFrame | None = None
    target: Array | None = None

    @property
    def table(self) -> Any:
        """Whichever of the three is held."""
        held = (part for part in (self.array, self.sparse, self.frame) if part is not None)
        return next(held)

    @property
    def kind(self) -> str:
        """array, image, sparse or frame."""
        if self.array is not None:
            return "array" if self.array.ndim == 2 else "image"
        return "sparse" if self.sparse is not None else "frame"

    def __len__(self) -> int:
        return int(self.table.shape[0])


def read_rows(X: Any) -> Rows:
    """Take X as it comes; refuse what cannot be valued before any work is done.

    NaN and None are missing cells in frames, to be filled and counted; in a plain array
    nothing says that they were meant, so that they are refused there.
    """
    if isinstance(X, Rows):
        return X
    rows = _told_apart(X)
    n, *shape = rows.table.shape
    if n == 0 or 0 in shape:
        raise DataError(
            f"X must hold at least one row and one column, got {_counted(n, shape)}. "
            "Check the filter that produced it."
        )
    return rows


def _told_apart(X: Any) -> Rows:
    libraries = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    if issparse(X):
        return _from_sparse(X)
    if "pandas" in libraries:
        return _from_frame(X)
    if "polars" in libraries:
        frame = X.collect() if hasattr(X, "collect") else X
        return _from_frame(frame.to_pandas())
    if "datasets" in libraries and (isinstance(X, dict) or hasattr(X, "to_pandas")):
        return _from_hugging_face(X)
    if "torch" in libraries:
        return _from_torch(X)
    if "pyarrow" in libraries and hasattr(X, "to_table"):
        return _from_arrow(X.to_table())
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _from_arrow(X)
    return _from_plain(X)


def _from_sparse(X: Any) -> Rows:
    if X.ndim != 2:
        raise _not_a_table(X.shape)
    matrix = csr_array(X)
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"X must hold real numbers, got a sparse matrix of {matrix.dtype}.")
    if matrix.dtype.kind != "f" or matrix.dtype.itemsize < 4:
        matrix = matrix.astype(np.float64)
    if not np.isfinite(matrix.data).all():
        n_bad = int((~np.isfinite(matrix.data)).sum())
        raise DataError(
            f"X must be finite, got NaN or infinity in {n_bad} stored cells of a sparse "
            "matrix. Set X.data[~np.isfinite(X.data)] = 0, or drop those rows."
        )
    return Rows(sparse=matrix)


def _from_frame(frame: Any) -> Rows:
    if getattr(frame, "ndim", 2) != 2:
        raise _not_a_table(frame.shape)
    names = [
        "/".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in frame.columns
    ]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise DataError(
            f"X must have one column of each name, got {', '.join(map(repr, twice[:5]))} "
            "more than once. Rename or drop the repeated columns."
        )
    return Rows(frame=_vectors_spread(frame.set_axis(names, axis=1)))


def _vectors_spread(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns whose cells are vectors (embeddings kept in a table) become plain columns."""
    import pandas as pd

    parts: list[pd.DataFrame] = []
    for name in frame.columns:
        column = frame[name]
        if column.dtype != object:
            continue
        first = column.dropna().head(1).to_list()
        if not first or not isinstance(first[0], (list, tuple, np.ndarray)):
            continue
        vectors = _stacked(column.to_list(), f"column {name!r}")
        if vectors.ndim != 2:
            raise DataError(
                f"column {name!r} must hold one vector a row, got cells of shape "
                f"{vectors.shape[1:]}. Pass such arrays as X of their own."
            )
        names = [f"{name}[{j}]" for j in range(vectors.shape[1])]
        parts.append(pd.DataFrame(vectors, index=frame.index, columns=names))
        frame = frame.drop(columns=name)
    return pd.concat([frame, *parts], axis=1) if parts else frame


def _from_arrow(table: Any) -> Rows:
    import pyarrow as pa

    if not isinstance(table, (pa.Table, pa.RecordBatch)):
        table = pa.table(table)
    return _from_frame(table.to_pandas(date_as_object=False))


def _from_hugging_face(X: Any) -> Rows:
    if not hasattr(X, "to_pandas"):
        raise DataError(
            f"X must be one table, got a {type(X).__name__}. Pick a split of it, as in "
            'X["train"], or collect a stream: datasets.Dataset.from_list(list(X)).'
        )
    return _from_frame(X.to_pandas())


def _from_torch(X: Any) -> Rows:
    if hasattr(X, "detach"):
        return _from_array(_as_numpy(X))
    if hasattr(X, "tensors"):  # TensorDataset: no need to go row by row
        x, *rest = (_as_numpy(tensor) for tensor in X.tensors)
        rows = _from_array(x)
        return Rows(array=rows.array, target=rest[0] if rest else None)
    if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise DataError(
            f"X must be a dataset with a length and numbered rows, got {type(X).__name__}. "
            "Pass the dataset behind a loader (loader.dataset), or list(X) of a stream."
        )
    return _from_items([X[i] for i in range(len(X))])


def _from_items(items: list[Any]) -> Rows:
    """Rows of a map-style dataset: x alone, or (x, y, …)."""
    if not items:
        raise DataError("X must hold at least one row, got an empty dataset.")
    if not isinstance(items[0], (tuple, list)):
        return _from_array(_stacked(items, "X"))
    array = _from_array(_stacked([item[0] for item in items], "X")).array
    has_target = len(items[0]) > 1
    target = np.asarray([_as_numpy(item[1]) for item in items]) if has_target else None
    return Rows(array=array, target=target)


def _stacked(cells: list[Any], where: str) -> Array:
    arrays = [np.asarray([]) if cell is None else _as_numpy(cell) for cell in cells]
    shape = arrays[0].shape
    odd = next((i for i, array in enumerate(arrays) if array.shape != shape), None)
    if odd is not None:
        raise DataError(
            f"{where} must hold rows of one shape, got {shape} at row 0 and "
            f"{arrays[odd].shape} at row {odd}. Resize or pad the rows."
        )
    stack = np.stack(arrays)
    return stack.reshape(-1, 1) if stack.ndim == 1 else stack


def _as_numpy(value: Any) -> Array:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        return np.asarray(value.float() if "bfloat16" in str(value.dtype) else value)
    return np.asarray(value)


def _from_plain(X: Any) -> Rows:
    import pandas as pd

    if isinstance(X, (str, bytes)) or hasattr(X, "__fspath__"):
        raise DataError(
            f"X must be a table, got {X!r}. Read the file first: pd.read_csv(…)."
        )
    if isinstance(X, dict) or (isinstance(X, list) and X and isinstance(X[0], dict)):
        return _from_frame(pd.DataFrame(X))
    if isinstance(X, np.ma.MaskedArray):
        return _from_frame(pd.DataFrame(X.data).mask(np.ma.getmaskarray(X)))
    try:
        array = np.asarray(X)
    except ValueError as error:  # ragged nested lists
        raise DataError(f"X must have rows of one length. {error}") from error
    if isinstance(X, (list, tuple)) and array.ndim == 2 and array.dtype.kind in "US":
        return _from_frame(pd.DataFrame(list(X)))  # numpy made text of the numbers, too
    if array.dtype.names is not None:
        return _from_frame(pd.DataFrame.from_records(array.reshape(-1)))
    return _from_array(array)


def _from_array(array: Array) -> Rows:
    import pandas as pd

    if not 2 <= array.ndim <= 4:
        raise _not_a_table(array.shape)
    if array.ndim == 2 and array.dtype.kind in "OUSMm":
        text = array.astype("U") if array.dtype.kind == "S" else array
        return _from_frame(pd.DataFrame(text).infer_objects())
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"X must hold real numbers, got an array of {array.dtype} with "
            f"{array.ndim} dimensions. {_complex(array.dtype)}Convert it with X.astype(float)."
        )
    if array.ndim > 2:
        array = array.astype(np.float32, copy=False)
    elif array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    _refuse_unless_finite(array)
    return Rows(array=array)


def _refuse_unless_finite(array: Array) -> None:
    # The sum is finite unless a cell is not (or it overflows): no mask for clean data.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    what = "NaN" if np.isnan(array[first]) else "infinity"
    way_out = (
        "Fill or drop them, or pass a DataFrame, where NaN means a missing cell."
        if what == "NaN"
        else "Replace them, or clip the column to its largest finite value."
    )
    raise DataError(
        f"X must be finite, got {what} at row {first[0]}, column {first[1]} "
        f"({int(bad.sum())} such cells in all). {way_out}"
    )


def _counted(n: int, shape: list[int]) -> str:
    """Rows and columns in words, with those of scikit-learn where it has some for the case."""
    if n:
        return (
            f"{n} rows: 0 feature(s) (shape={(n, *shape)}) while a minimum of 1 is required"
        )
    return f"0 rows and {' × '.join(map(str, shape))} columns"


def _complex(dtype: np.dtype[Any]) -> str:
    return "Complex data not supported. " if dtype.kind == "c" else ""


def _not_a_table(shape: tuple[int, ...]) -> DataError:
    if len(shape) == 1:
        return DataError(
            f"X must be a table of rows and columns, got one dimension of {shape[0]}. "
            "Use X.reshape(-1, 1) (a Series: X.to_frame()) if it is a single column."
        )
    return DataError(
        "X must be a table of rows and columns, or images with 3 or 4 dimensions, got "
        f"shape {shape}. Reshape it to (n_rows, n_columns)."
    )
