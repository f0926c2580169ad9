"""Rows as they were given, kept by id: to be shown and told apart in words, not computed with.

A part holds rows that came together: a frame, or images as bytes. Rows that come later are
further parts; of an id that came twice the later row counts. Nothing is copied until it is
asked for, and a run read from disk reads its parts then, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.rows import Rows
from hcdv.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

MOST_COLUMNS = 256  # a row of more is nothing that a person reads
MOST_CELLS = 2**22  # of a plain array, which has no words in it
MOST_BYTES = 2**29  # of images
_GRAY_OR_COLOUR = (1, 3, 4)


@dataclass(frozen=True)
class Part:
    """Rows that came together: a frame, or images (n, height, width[, channels]) of bytes."""

    ids: NDArray[Any]
    table: pd.DataFrame | NDArray[np.uint8]

    @property
    def kind(self) -> str:
        """table or image."""
        return "image" if isinstance(self.table, np.ndarray) else "table"

    def take(self, at: NDArray[Any]) -> Part:
        """Some of the rows, by place or mask."""
        at = np.flatnonzero(at) if at.dtype == bool else at
        table = self.table
        some = table[at] if isinstance(table, np.ndarray) else table.iloc[at]
        return Part(self.ids[at], some)


def part_of(rows: Rows, ids: NDArray[Any]) -> Part | None:
    """What is kept of rows; None where it would be nothing to look at, or too much of it."""
    import pandas as pd

    if rows.frame is not None:
        if rows.frame.shape[1] > MOST_COLUMNS:
            return None
        return Part(ids, rows.frame.reset_index(drop=True))
    if rows.array is None:
        return None
    if rows.kind == "image":
        return None if rows.array.size > MOST_BYTES else Part(ids, pixels(rows.array))
    if rows.array.shape[1] > MOST_COLUMNS or rows.array.size > MOST_CELLS:
        return None
    names = [f"x{j}" for j in range(rows.array.shape[1])]
    return Part(ids, pd.DataFrame(rows.array.copy(), columns=names))


def pixels(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Images as bytes, channels last; 0 … 255 and 0 … 1 as such, other ranges stretched."""
    if images.ndim == 4 and images.shape[3] not in _GRAY_OR_COLOUR:
        images = np.moveaxis(images, 1, 3)
    if images.ndim == 4 and images.shape[3] not in _GRAY_OR_COLOUR:
        images = images[..., 0]
    low, high = float(images.min()), float(images.max())
    if low >= 0 and high <= 255:
        low, high = 0.0, (255.0 if high > 1 else 1.0)
    scaled = (images - low) * (255.0 / ((high - low) or 1.0))
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


class Given:
    """All that was given: what lies in a folder, if anything does, and what is at hand.

    stored, stored_kind: get the parts of the folder, and table or image, when asked for.
    came: parts that came since. gone: ids of rows of the folder that went since.
    """

    def __init__(
        self,
        came: tuple[Part, ...] = (),
        stored: Callable[[], list[Part]] = list,
        stored_kind: Callable[[], str] | None = None,
        gone: NDArray[Any] | None = None,
    ) -> None:
        self.came, self.gone = came, gone
        self._stored, self._stored_kind = stored, stored_kind

    @classmethod
    def of(cls, *parts: Part) -> Given:
        """Of parts at hand."""
        return cls(parts)

    @cached_property
    def parts(self) -> list[Part]:
        """What is there now."""
        held = self._stored()
        if self.gone is not None:
            held = [part.take(~np.isin(part.ids, self.gone)) for part in held]
        return [*held, *self.came]

    @cached_property
    def kind(self) -> str:
        """table or image."""
        return self._stored_kind() if self._stored_kind is not None else self.came[0].kind

    def joined(self, part: Part | None) -> Given:
        """With a further part, if it is of this kind; this one stays as it is.

        Small parts are put together as they grow many, so that there are few.
        """
        if part is None or part.kind != self.kind:
            return self
        came = [*self.came, part]
        while len(came) > 1 and len(came[-2].ids) < 2 * len(came[-1].ids):
            first, last = came[-2:]
            both = _stacked([first.table, last.table])
            came[-2:] = [Part(np.concatenate([first.ids, last.ids]), both)]
        return Given(tuple(came), self._stored, self._stored_kind, self.gone)

    def without(self, ids: NDArray[Any]) -> Given:
        """No row of these ids is kept, in no part."""
        if not len(ids):
            return self
        left = [part.take(~np.isin(part.ids, ids)) for part in self.came]
        came = tuple(part for part in left if len(part.ids)) or tuple(left[:1])
        gone = None
        if self._stored_kind is not None:
            at_hand = np.concatenate([ids[:0], *(part.ids for part in self.came)])
            gone = ids[~np.isin(ids, at_hand)]
            gone = gone if self.gone is None else np.concatenate([self.gone, gone])
        return Given(came, self._stored, self._stored_kind, gone)

    def rows(self, ids: NDArray[Any]) -> Part:
        """Rows by id, in the order asked."""
        place = self._places(ids)
        if len(self.parts) == 1:
            return Part(ids, self.parts[0].take(place).table)
        edges = np.cumsum([0, *(len(part.ids) for part in self.parts)])
        of = np.searchsorted(edges, place, side="right") - 1
        found = [
            part.take(place[of == k] - edges[k]).table
            for k, part in enumerate(self.parts)
            if (of == k).any()
        ]
        by_part = np.argsort(of, kind="stable")
        return Part(ids[by_part], _stacked(found)).take(np.argsort(by_part, kind="stable"))

    def _places(self, ids: NDArray[Any]) -> NDArray[np.intp]:
        """Places in all parts one after the other; of an id that came twice the later."""
        known, last = self._known
        at = known.get_indexer(ids)
        if (at < 0).any():
            raise DataError(
                f"ids must be of rows that were kept, got {ids[at < 0][0].item()!r}. Rows that "
                "were forgotten are gone."
            )
        return last[at]

    @cached_property
    def _known(self) -> tuple[pd.Index, NDArray[np.intp]]:
        import pandas as pd

        ids = np.concatenate([part.ids for part in self.parts])
        last = np.flatnonzero(~pd.Series(ids).duplicated(keep="last").to_numpy())
        return pd.Index(ids[last]), last


def _stacked(tables: list[Any]) -> Any:
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    import pandas as pd

    tables = [table.reindex(columns=tables[0].columns) for table in tables]
    first, *others = (table.dtypes for table in tables)
    unlike = np.any([first != other for other in others], axis=0)
    if unlike.any():  # pandas guesses, and warns, where one column is all missing
        as_they_are = dict.fromkeys(first.index[unlike], object)
        tables = [table.astype(as_they_are) for table in tables]
    return pd.concat(tables, ignore_index=True)
