"""First pass: a random sample of the rows, and what rows of every level are labelled.

The sample is that of the smallest hashes of the rows' keys, so that it does not depend on
the order of the files' blocks. Labels are looked at before, in a pass over their column
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.dataset.levels import levels_of
from hcdv.dataset.source import Source
from hcdv.dataset.task import Task, as_frame
from hcdv.dataset.workspace import Arrays
from hcdv.embedding.target_statistics import LevelMass
from hcdv.errors import DataError
from hcdv.judging import N_FOLDS
from hcdv.targets import Target, as_labels, read_target
from hcdv.valuation.contexts import hashed_uniform

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_STREAM = (1 << 21) + 1  # of the hash behind the sample
_MORE = 2  # times as many rows are looked at as are drawn: surely enough of thousands
_LABELS = 2**20  # labels read at once
_MOST_CLASSES = 1000


@dataclass(frozen=True)
class Sample:
    """Rows at hand, in the order of their hashes."""

    frame: pd.DataFrame  # features
    labels: NDArray[Any]
    number: NDArray[np.int64]  # of the row


@dataclass
class _Seen:
    """What is known of the labels so far."""

    classes: NDArray[Any] | None = None
    count: NDArray[np.int64] | None = None  # of each class
    n: int = 0
    mean: float = 0.0
    square: float = 0.0  # sum of squares about the mean
    fractions: bool = False

    def add(self, labels: NDArray[Any]) -> None:
        found, count = np.unique(labels, return_counts=True)
        if labels.dtype.kind in "iuf":
            self._add_numbers(found.astype(np.float64), count)
            self.fractions |= bool(labels.dtype.kind == "f" and np.any(found % 1 != 0))
        if self.classes is None or self.count is None:
            self.classes, self.count = found, count
        elif not self.fractions:
            every = np.concatenate([self.classes, found])
            self.classes, at = np.unique(every, return_inverse=True)
            both = np.concatenate([self.count, count])
            self.count = np.bincount(at, weights=both).astype(np.int64)

    def _add_numbers(self, value: NDArray[np.float64], count: NDArray[np.int64]) -> None:
        n = int(count.sum())
        mean = float(value @ count) / n
        square = float(np.square(value - mean) @ count)
        gap, whole = mean - self.mean, self.n + n
        self.square += square + gap**2 * self.n * n / whole
        self.mean += gap * n / whole
        self.n = whole


def read_labels(
    source: Source, target: str, metric: str
) -> tuple[Target, NDArray[np.int64]]:
    """Classes and the rows of each, or centre and scale; the labels themselves are not kept."""
    seen = _Seen()
    for first, table in source.blocks(0, source.n_rows, [target], n_rows=_LABELS):
        seen.add(labels_of(table, source, target, first))
    assert seen.classes is not None, "a source holds rows"
    assert seen.count is not None, "a source holds rows"
    if seen.fractions or (metric == "r2" and seen.classes.dtype.kind in "iuf"):
        if not seen.square:
            raise DataError(
                f"{target!r} must vary, got one number in all {seen.n:,} rows. There is nothing "
                "to predict."
            )
        return Target(np.zeros(0), None, seen.mean, float(np.sqrt(seen.square / seen.n))), (
            np.zeros(0, dtype=np.int64)
        )
    if len(seen.classes) > _MOST_CLASSES:
        raise DataError(
            f"{target!r} must have at most {_MOST_CLASSES} classes, got {len(seen.classes):,}. If "
            'it is a number to predict, pass metric="r2".'
        )
    twice = np.repeat(seen.classes, 2)
    found = read_target(twice, len(twice), "auto")  # refuses what cannot be told apart
    return Target(found.labels[:0], found.classes), seen.count


def labels_of(table: pa.Table, source: Source, target: str, first: int) -> NDArray[Any]:
    """The labels of a block whose first row has that number, none missing."""
    column = table.column(target)
    if column.null_count:
        row = first + int(np.argmax(column.is_null().to_numpy()))
        path = next(each.path for each in source.shards if row < each.stop)
        raise DataError(
            f"column {target!r} must hold a label for every row, got none at row {row:,} of "
            f"the data set, in '{path}'. Drop the rows without."
        )
    cells = as_frame(table.select([target]))[target].to_numpy()
    return as_labels(cells, len(cells), target)


class Sampling:
    """The first pass, segment by segment, and its state between two of them."""

    def __init__(self, task: Task, target: Target) -> None:
        self.task, self.target = task, target
        text = [name for name, kind in task.source.columns if kind == "text"]
        self.text = tuple(name for name in text if name in task.features)
        self.mass = LevelMass.empty(
            self.text, target.n_classes, N_FOLDS, task.layout.level_bytes
        )
        self.parts: list[pa.Table] = []
        self.hash = np.zeros(0)
        self.number = np.zeros(0, dtype=np.int64)

    def read(self, segment: int) -> None:
        """Take up the rows of a segment."""
        task = self.task
        rows = task.rows(segment)
        for first, table in task.source.blocks(
            rows.start, rows.stop, task.columns, n_rows=task.layout.block
        ):
            key = task.keys(range(first, first + table.num_rows))
            if self.text:
                codes = self.target.coded(labels_of(table, task.source, task.target, first))
                cells = partial(levels_of, table)
                self.mass.add(cells, task.folds(key), codes, task.plan.n_jobs)
            self._draw(first, table, hashed_uniform(key, task.plan.seed, _STREAM))

    def _draw(self, first: int, table: pa.Table, hash_: NDArray[np.float64]) -> None:
        """Keep the rows of the smallest hashes so far."""
        import pyarrow as pa

        n_sampled = self.task.layout.n_sampled
        limit = min(
            1.0, _MORE * n_sampled / self.task.n_rows
        )  # past it are none of the sample
        if len(self.hash) >= n_sampled:
            limit = min(limit, float(self.hash.max()))
        new = np.flatnonzero(hash_ < limit)
        if self.parts and not len(new):
            return  # the first part, even of no rows, has the columns
        self.hash = np.append(self.hash, hash_[new])
        self.number = np.append(self.number, first + new)
        self.parts.append(without_dictionaries(table.take(pa.array(new))))
        if len(self.hash) > 2 * self.task.layout.n_sampled:
            self._cut()

    def _cut(self) -> None:
        import pyarrow as pa

        order = np.argsort(self.hash, kind="stable")[: self.task.layout.n_sampled]
        whole = _together(self.parts)
        self.parts = [whole.take(pa.array(order)).combine_chunks()]
        self.hash, self.number = self.hash[order], self.number[order]

    def found(self) -> SegmentFound:
        """What one segment, read on its own, adds to the others."""
        at = np.flatnonzero(self.mass.mass)
        table = self.parts[0] if len(self.parts) == 1 else _together(self.parts)
        return SegmentFound(at, self.mass.mass.ravel()[at], self.hash, self.number, table)

    def add(self, found: SegmentFound) -> None:
        """Take up what was found elsewhere in a segment."""
        self.mass.mass.reshape(-1)[found.at] += found.count
        self.hash = np.append(self.hash, found.hash)
        self.number = np.append(self.number, found.number)
        self.parts.append(found.rows)
        if len(self.hash) > 2 * self.task.layout.n_sampled:
            self._cut()

    def sample(self) -> Sample:
        """The rows drawn."""
        self._cut()
        frame = as_frame(self.parts[0])
        labels = labels_of(self.parts[0], self.task.source, self.task.target, 0)
        return Sample(frame[list(self.task.features)], labels, self.number)

    def state(self) -> Arrays:
        """All that is known so far."""
        import pyarrow as pa

        if len(self.parts) > 1 or len(self.hash) > self.task.layout.n_sampled:
            self._cut()
        held = pa.BufferOutputStream()
        with pa.ipc.new_stream(held, self.parts[0].schema) as writer:
            writer.write_table(self.parts[0])
        rows = np.frombuffer(held.getvalue(), dtype=np.uint8)
        return {
            "mass": self.mass.mass, "hash": self.hash, "number": self.number, "rows": rows,
        }  # fmt: skip

    def restore(self, state: Arrays) -> None:
        """Go on from there."""
        import pyarrow as pa

        self.mass = LevelMass(self.text, self.target.n_classes, state["mass"].copy())
        self.hash, self.number = state["hash"], state["number"]
        self.parts = [pa.ipc.open_stream(state["rows"].tobytes()).read_all()]


@dataclass(frozen=True)
class SegmentFound:
    """A segment's addends: only what is not 0 travels."""

    at: NDArray[np.intp]  # places in the mass of levels
    count: NDArray[np.int64]
    hash: NDArray[np.float64]
    number: NDArray[np.int64]
    rows: pa.Table


@dataclass(frozen=True)
class SegmentSampling:
    """The first pass over one segment, wherever it is worked on."""

    task: Task
    target: Target

    def __call__(self, segment: int) -> SegmentFound:
        """Read the rows of a segment."""
        own = Sampling(self.task, self.target)
        own.read(segment)
        return own.found()


def _together(parts: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(parts, promote_options="permissive")


def without_dictionaries(table: pa.Table) -> pa.Table:
    """Text without dictionaries: a few rows of a block do not need its levels."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            cells = table.column(number).cast(field.type.value_type)
            table = table.set_column(number, field.name, cells)
    return table
