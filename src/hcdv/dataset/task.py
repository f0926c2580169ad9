"""What is to be valued, and how: everything a pass needs to know before it reads a row."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.dataset.source import BLOCK, Source
from hcdv.embedding.target_statistics import MOST_BYTES
from hcdv.errors import ParameterError
from hcdv.intake import row_keys
from hcdv.judging import hashed_folds
from hcdv.valuation.plan import Plan

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FEWEST_IN_LEAF = 32  # rows of the sample
_BASE = 700 * 2**20  # bytes of the libraries, of statistics and of products
_WIDTH = 64  # columns of a vector, at most or about
_CELLS = 4  # columns a text column becomes, about
_LEAST_SAMPLE = 2**14


@dataclass(frozen=True)
class Layout:
    """How much is held at once. Another layout gives other samples, so other values."""

    block: int = BLOCK  # rows read and encoded at once
    segment: int = 8 * BLOCK  # rows behind one addend of every sum: one checkpoint
    n_sampled: int = 2**17  # rows that encoder, tree, features and judges are made of
    level_bytes: int = MOST_BYTES  # of the labels of levels

    def halved(self) -> Layout:
        """Half of everything, but for the block that is read."""
        return Layout(
            self.block, max(self.block, self.segment // 2), self.n_sampled // 2,
            self.level_bytes // 2,
        )  # fmt: skip

    def n_bytes(self, n_columns: int, n_text: int, letters: float = 8.0) -> int:
        """About what a run of this layout holds at its peak, in whichever pass that is."""
        cells = n_columns + _CELLS * n_text
        levels = self.level_bytes if n_text else 0
        texts = int(self.n_sampled * n_text * (60 + 3 * letters))
        sampling = 9 * levels // 4 + texts
        growing = levels + texts + self.n_sampled * 24 * cells
        gathering = levels // 4 + self.block * 24 * cells
        gathering += (self.n_sampled * 8 + self.segment * 12) * _WIDTH
        return _BASE + max(sampling, growing, gathering)


def layout_within(memory: int, n_columns: int, n_text: int, letters: float = 8.0) -> Layout:
    """The default layout, or the largest part of it that stays within so many bytes."""
    layout = Layout()
    while layout.n_bytes(n_columns, n_text, letters) > memory:
        if layout.n_sampled <= _LEAST_SAMPLE:
            least = layout.n_bytes(n_columns, n_text, letters) / 2**20
            raise ParameterError(
                "memory", f"{memory / 2**20:.0f} MB", f"at least {least:.0f} MB for "
                f"{n_columns} columns", "Drop columns, or use a larger machine.",
            )  # fmt: skip
        layout = layout.halved()
    return layout


@dataclass(frozen=True)
class Task:
    """One data set and the settings it is valued with."""

    source: Source
    target: str
    features: tuple[str, ...]
    encoder: str
    branching: Any
    leaf_size: int
    plan: Plan
    layout: Layout = Layout()

    @property
    def n_rows(self) -> int:
        """n."""
        return self.source.n_rows

    @property
    def n_segments(self) -> int:
        """How many addends every sum has."""
        return -(-self.n_rows // self.layout.segment)

    @property
    def columns(self) -> list[str]:
        """All that is read."""
        return [*self.features, self.target]

    def rows(self, segment: int) -> range:
        """Row numbers of a segment."""
        size = self.layout.segment
        return range(segment * size, min((segment + 1) * size, self.n_rows))

    def keys(self, rows: range) -> NDArray[np.uint64]:
        """Keys of rows, by their numbers."""
        return row_keys(np.arange(rows.start, rows.stop))

    def folds(self, key: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Folds of rows, by their keys."""
        return hashed_folds(key, self.plan.seed)

    def about(self) -> dict[str, Any]:
        """As plain data: a run is taken up only for the same."""
        plan = {each.name: getattr(self.plan, each.name) for each in fields(self.plan)}
        del plan["n_jobs"], plan["engine"]  # the values do not depend on them
        return {
            "files": [[shard.path, shard.n_rows, shard.size] for shard in self.source.shards],
            "skipped": list(self.source.skipped), "columns": self.columns,
            "encoder": self.encoder, "branching": self.branching,
            "leaf_size": self.leaf_size, "plan": {**plan, "utility": repr(plan["utility"])},
            "layout": asdict(self.layout), "format": 1,
        }  # fmt: skip


def as_frame(table: pa.Table, plain: frozenset[str] | None = None) -> pd.DataFrame:
    """A block as a frame; text as categories, but in the columns named (None: in all)."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        wanted = plain is None or field.name in plain
        if wanted and pa.types.is_dictionary(field.type):
            cells = table.column(number).cast(field.type.value_type)
            table = table.set_column(number, field.name, cells)
    return table.to_pandas()
