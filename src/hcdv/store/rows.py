"""The rows of a run as they were given, in its folder: a Parquet file of those that came together.

`rows/000000.parquet` holds the rows of the fit, `rows/000017.parquet` those that came with
update 17. They are looked at and never computed with, so they lie under no checksum of the
run's but Parquet's own, and may be deleted. Rows that are forgotten are taken out of the files:
their ids are noted before the update is committed, and gone once it is, whatever happens
between. Rows that only went out of age stay until the next forgetting or refresh.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import StoreError
from hcdv.given import Given, Part
from hcdv.store.folder import replace_file

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = "rows"
_ID, _IMAGE, _SHAPE = "hcdv:id", "hcdv:image", b"hcdv:shape"
_GONE = ".gone"


def first_rows(given: Given, ids: NDArray[Any]) -> dict[str, bytes]:
    """The rows of a run that is saved anew, in its order, as a file of its folder."""
    return {_name(0): bytes_of(given.rows(ids))}


def stored(folder: Path) -> Given | None:
    """The rows a run folder holds; None if it holds none."""
    if not any((folder / ROWS).glob("*.parquet")):
        return None
    paths = sorted((folder / ROWS).glob("*.parquet"))
    return Given(
        stored=lambda: [
            part_at(path) for path in sorted((folder / ROWS).glob("*.parquet"))
        ],
        stored_kind=lambda: _kind_at(paths[0]),
    )


def _kind_at(path: Path) -> str:
    """table or image, without reading the rows."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return "image" if _IMAGE in parquet.read_schema(path).names else "table"
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def bytes_of(part: Part) -> bytes:
    """Rows as a Parquet file; images as their bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    table = part.table
    if isinstance(table, np.ndarray):
        n_bytes = int(np.prod(table.shape[1:]))
        cells = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(n_bytes),
            len(table),
            [None, pa.py_buffer(np.ascontiguousarray(table))],
        )
        held = pa.table({_ID: part.ids, _IMAGE: cells})
        held = held.replace_schema_metadata({_SHAPE: json.dumps(table.shape[1:])})
    else:
        held = _arrow(table).append_column(_ID, pa.array(part.ids))
    out = io.BytesIO()
    parquet.write_table(held, out, compression="zstd", write_page_checksum=True)
    return out.getvalue()


def part_at(path: Path) -> Part:
    """What `bytes_of` wrote; StoreError if it is damaged."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            held = file.read()
        ids = held[_ID].to_numpy(zero_copy_only=False)
        ids = ids.astype(str) if ids.dtype == object else ids
        if _IMAGE in held.column_names:
            shape = json.loads(held.schema.metadata[_SHAPE])
            return Part(ids, _images(held[_IMAGE], len(held), shape))
        return Part(ids, held.drop_columns(_ID).to_pandas())
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"'{path}' must hold rows as they were given, got: {error}. Delete the file to do "
        "without them: the values do not depend on it."
    )


def note_later(folder: Path, number: int, given: Given | None) -> None:
    """Before an update is committed: write rows that came with it, and note those that go."""
    if given is None:
        return
    if any(len(part.ids) for part in given.came):
        new = Given.of(*given.came)
        ids = np.concatenate([part.ids for part in given.came])
        replace_file(folder / _name(number), bytes_of(new.rows(ids)))
    if given.gone is not None:
        ids = json.dumps(given.gone.tolist())
        replace_file(folder / ROWS / f"{number:06}{_GONE}", ids.encode())


def settle(folder: Path, number: int, *, purge: bool) -> None:
    """After update `number` is committed: drop what belongs to none, and purge rows that went."""
    for path in (folder / ROWS).glob("*"):
        own = path.name.partition(".")[0]
        if not own.isdecimal() or int(own) > number or path.suffix == ".tmp":
            path.unlink(missing_ok=True)
    notes = sorted((folder / ROWS).glob(f"*{_GONE}"))
    if not purge or not notes:
        return
    for path in sorted((folder / ROWS).glob("*.parquet")):
        _purge(path, notes)
    for note in notes:
        note.unlink(missing_ok=True)


def _purge(path: Path, notes: list[Path]) -> None:
    """Take out of a file the rows that went after it was written."""
    since = [
        note for note in notes if note.name.partition(".")[0] > path.name.partition(".")[0]
    ]
    part = part_at(path)
    gone = [each for note in since for each in json.loads(note.read_bytes())]
    is_gone = np.isin(part.ids, np.array(gone, dtype=part.ids.dtype if gone else None))
    if is_gone.all() and since:
        path.unlink()
    elif is_gone.any():
        replace_file(path, bytes_of(part.take(~is_gone)))


def _name(number: int) -> str:
    return f"{ROWS}/{number:06}.parquet"


def _images(column: Any, n: int, shape: list[int]) -> NDArray[np.uint8]:
    cells = column.combine_chunks()
    whole = np.frombuffer(cells.buffers()[1], dtype=np.uint8)
    first = cells.offset * int(np.prod(shape))
    return whole[first : first + n * int(np.prod(shape))].reshape(n, *shape)


def _arrow(frame: Any) -> pa.Table:
    """A frame as Arrow; columns that it has no type for as their text."""
    import pyarrow as pa

    return pa.table({name: _column(frame[name]) for name in frame.columns})


def _column(cells: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(cells)
    except (pa.ArrowException, TypeError, ValueError):
        return pa.Array.from_pandas(cells.astype(str).where(cells.notna(), None))
