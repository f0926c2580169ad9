"""Parquet files as one numbered sequence of rows, read a block at a time.

Rows are numbered over the files in the order of their names. Blocks are cut at fixed row
numbers, whatever files and row groups they lie in, so that nothing depends on how the rows
were dealt out to files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcdv.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 65_536  # rows read and encoded at once
_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True)
class Shard:
    """One file, and the number of its first row."""

    path: str
    first: int
    n_rows: int
    size: int  # bytes

    @property
    def stop(self) -> int:
        """The number after that of its last row."""
        return self.first + self.n_rows


@dataclass(frozen=True)
class Source:
    """The rows of all shards under one numbering."""

    shards: tuple[Shard, ...]
    columns: tuple[tuple[str, str], ...]  # name and kind: number, text, date, …
    skipped: tuple[str, ...] = ()  # damaged shards left out on request

    @property
    def n_rows(self) -> int:
        """n."""
        return self.shards[-1].stop

    @property
    def n_bytes(self) -> int:
        """Of all files."""
        return sum(shard.size for shard in self.shards)

    @property
    def names(self) -> list[str]:
        """Columns, in the order of the first file."""
        return [name for name, _ in self.columns]

    def blocks(
        self, start: int, stop: int, columns: list[str], *, n_rows: int = BLOCK
    ) -> Iterator[tuple[int, pa.Table]]:
        """First row number and rows of every block from start to stop; text as dictionaries."""
        import pyarrow as pa

        held: list[pa.Table] = []
        at, n_held = start, 0
        for table in self._pieces(start, stop, columns, n_rows):
            rest = table
            while rest.num_rows:
                part = rest.slice(0, n_rows - at % n_rows - n_held)
                rest = rest.slice(part.num_rows)
                held.append(part)
                n_held += part.num_rows
                if (at + n_held) % n_rows == 0:
                    yield at, _joined(pa, held)
                    at, held, n_held = at + n_held, [], 0
        if held:
            yield at, _joined(pa, held)

    def _pieces(
        self, start: int, stop: int, columns: list[str], n_rows: int
    ) -> Iterator[pa.Table]:
        for shard in self.shards:
            if shard.first < stop and start < shard.stop:
                low, high = max(start, shard.first), min(stop, shard.stop)
                with told_of(shard.path):
                    yield from self._rows(
                        shard, low - shard.first, high - shard.first, columns, n_rows
                    )

    def _rows(
        self, shard: Shard, low: int, high: int, columns: list[str], n_rows: int
    ) -> Iterator[pa.Table]:
        """Rows low … high − 1 of one file, by row groups; batches end where blocks do."""
        import pyarrow as pa
        from pyarrow import parquet

        text = [name for name, kind in self.columns if kind == "text" and name in columns]
        with parquet.ParquetFile(
            shard.path, read_dictionary=text, page_checksum_verification=True
        ) as file:
            at, groups, before = 0, list[int](), None
            for group in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                if at < high and low < at + size:
                    groups.append(group)
                    before = at if before is None else before
                at += size
            position = before or 0
            for batch in file.iter_batches(n_rows, row_groups=groups, columns=columns):
                begin = max(0, low - position)
                end = min(batch.num_rows, high - position)
                position += batch.num_rows
                if begin < end:
                    part = batch.slice(begin, end - begin)
                    yield pa.Table.from_batches([part])
            if position < high:
                raise DataError(f"it ends at row {position}, before row {high}")


def _joined(pa: Any, parts: list[pa.Table]) -> pa.Table:
    """One table of one chunk a column, its columns in the order of the first."""
    if len(parts) == 1:
        return parts[0]
    whole = pa.concat_tables(parts, promote_options="permissive")
    return whole.unify_dictionaries().combine_chunks()


@contextmanager
def told_of(path: str) -> Iterator[None]:
    """Whatever is wrong with a file is told with its name."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, DataError) as error:
        if isinstance(error, DataError) and path in str(error):
            raise
        raise DataError(
            f"'{path}' must be a whole Parquet file, got: {str(error).rstrip('.')}. Write it "
            "again, or leave damaged files out with skip_damaged (--skip-damaged)."
        ) from error


def open_source(dataset: str, needed: tuple[str, ...], *, skip_damaged: bool) -> Source:
    """Number the rows of a file, a folder or a glob; columns must be of one kind throughout."""
    shards: list[Shard] = []
    skipped: list[str] = []
    kinds: dict[str, tuple[str, str]] = {}  # by column: kind, and the file that has it
    for path in _files(dataset):
        first = shards[-1].stop if shards else 0
        try:
            shard, found = _looked_at(path, first)
            if skip_damaged:
                _read_through(shard)
        except DataError:
            if not skip_damaged:
                raise
            skipped.append(path)
            continue
        if shard.n_rows:
            _same_columns(kinds, found, path, needed)
            shards.append(shard)
    if not shards:
        raise DataError(
            f"DATASET must hold rows, got none in '{dataset}'"
            + (f" ({len(skipped)} damaged files left out)" if skipped else "")
            + ". Check the name, and what wrote the files."
        )
    return Source(
        tuple(shards), tuple((name, kind) for name, (kind, _) in kinds.items()),
        tuple(skipped),
    )  # fmt: skip


def unpacked_bytes(path: Path) -> int:
    """Bytes of a file's columns before they were compressed; 0 where it cannot be read."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0
    groups = range(about.num_row_groups)
    return sum(about.row_group(group).total_byte_size for group in groups)


def _files(dataset: str) -> list[str]:
    path = Path(dataset)
    if path.is_dir():
        inside = (each for each in path.rglob("*") if each.suffix.lower() in _SUFFIXES)
        found = [
            str(each)
            for each in inside
            if not any(part[0] in "._" for part in each.relative_to(path).parts)
        ]
    elif path.is_file():
        found = [dataset]
    else:
        pattern = str(path.relative_to(path.anchor))
        found = [str(each) for each in Path(path.anchor).glob(pattern) if each.is_file()]
    if not found:
        raise DataError(
            f"DATASET must be a Parquet file, a folder of them or a pattern such as "
            f"'logs/*.parquet', got '{dataset}', which names none."
        )
    return sorted(found)


def _looked_at(path: str, first: int) -> tuple[Shard, dict[str, str]]:
    from pyarrow import parquet

    with told_of(path), parquet.ParquetFile(path) as file:
        size = Path(path).stat().st_size
        shard = Shard(path, first, file.metadata.num_rows, size)
        return shard, {field.name: _kind(field.type) for field in file.schema_arrow}


def _read_through(shard: Shard) -> None:
    """Decode every page once, to know before any work whether the file is whole."""
    from pyarrow import parquet

    with (
        told_of(shard.path),
        parquet.ParquetFile(shard.path, page_checksum_verification=True) as file,
    ):
        n_rows = sum(batch.num_rows for batch in file.iter_batches(BLOCK))
        if n_rows != shard.n_rows:
            raise DataError(f"it holds {n_rows} rows, its footer says {shard.n_rows}")


def _kind(type_: pa.DataType) -> str:
    """What a column holds, wide enough that int32 and double are alike."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return _kind(type_.value_type)
    kinds = (
        ("nothing", types.is_null), ("boolean", types.is_boolean),
        ("number", lambda t: types.is_integer(t) or types.is_floating(t) or types.is_decimal(t)),
        ("date", lambda t: types.is_timestamp(t) or types.is_date(t)),
        ("text", lambda t: types.is_string(t) or types.is_large_string(t)),
    )  # fmt: skip
    return next((name for name, holds in kinds if holds(type_)), str(type_))


def _same_columns(
    kinds: dict[str, tuple[str, str]],
    found: dict[str, str],
    path: str,
    needed: tuple[str, ...],
) -> None:
    """Take up a file's columns, or say how they differ from those of the files before."""
    if missing := [name for name in needed if name not in found]:
        raise DataError(
            f"every file must have the column {missing[0]!r}, got '{path}' with "
            f"{', '.join(map(repr, list(found)[:12]))}. Add it, or leave that file out."
        )
    if not kinds:
        kinds.update({name: (kind, path) for name, kind in found.items()})
        return
    lost = [name for name in kinds if name not in found]
    new = [name for name in found if name not in kinds]
    if lost or new:
        what = f"without {lost[0]!r}" if lost else f"with a column {new[0]!r} more"
        other = next(iter(kinds.values()))[1]
        raise DataError(
            f"all files must have the same columns, got '{path}' {what} than '{other}'. Write "
            "them with one schema, or leave that file out."
        )
    for name, kind in found.items():
        before, where = kinds[name]
        if before == "nothing":
            kinds[name] = (kind, path)
        elif kind not in (before, "nothing"):
            raise DataError(
                f"column {name!r} must be of one kind in all files, got {kind} in '{path}' and "
                f"{before} in '{where}'. Write them with one schema, or leave that file out."
            )
