"""What the explorer shows now: the latest state of a run, opened anew when an update comes."""

from __future__ import annotations

import threading
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hcdv.apps.explorer.comparing import Comparison
from hcdv.apps.explorer.decisions import Decisions
from hcdv.apps.explorer.opened import Opened, Scratch, opened
from hcdv.apps.explorer.queries import Queries
from hcdv.errors import DataError, HCDVError
from hcdv.store.ledger import Update, all_updates, is_living, reading
from hcdv.store.rows import stored
from hcdv.uses.together import Worth

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.hierarchy.tree import Tree
    from hcdv.result import Run

MOST_DESCRIBED = 1_000_000  # rows that are held in memory to be described
_EVERY = 0.5  # seconds between looks at the ledger


class Current:
    """One state: its files, the questions that can be asked of them, and its statistics."""

    def __init__(self, state: Opened, scratch: Path) -> None:
        self.opened = state
        self.queries = Queries(state, scratch)
        self._lock = threading.Lock()
        self._words: dict[int, str] = {}

    @cached_property
    def run(self) -> Run:
        """The run with its arrays on disk; refused where no vectors were kept."""
        if self.opened.run is None:
            raise DataError(
                "this needs the vectors of the rows, and the run of a data set larger than "
                "memory keeps none. Value a sample of it as a table in memory for this."
            )
        return self.opened.run()

    @property
    def worth(self) -> Worth:
        """The game between a selection and the rest."""
        with self._lock:  # statistics are gathered once, whoever asks first
            return self._worth

    def words_of(self, node: int) -> str:
        """What sets a coalition apart from all rows; nothing where there are no words for it."""
        from hcdv.uses.description import described, words

        with self._lock:
            if self.opened.is_dataset or self.opened.n_rows > MOST_DESCRIBED:
                return ""
            if node not in self._words:
                found = described(self._given, self._tree, [node])
                self._words[node] = words(found[0], at_length=True)
            return self._words[node]

    @cached_property
    def _tree(self) -> Tree:
        return self.run.tree

    @cached_property
    def _given(self) -> pd.DataFrame | None:
        """The rows as they were given, in the run's order."""
        kept = stored(self.opened.folder)
        if kept is None or kept.kind != "table":
            return None
        return cast("pd.DataFrame", kept.rows(self.run.ids).table)

    @cached_property
    def _worth(self) -> Worth:
        return Worth(self.run)


class Session:
    """A run folder being looked at, and perhaps another beside it."""

    def __init__(self, folder: Path, other: Path | None = None) -> None:
        self.folder, self.other = folder, other
        self.scratch = Scratch()
        try:
            self._now = Current(opened(folder, self.scratch.path), self.scratch.path)
            self.decisions = Decisions(folder)
            self._second = None if other is None else self._opened_beside(other)
        except BaseException:
            self.scratch.close()
            raise
        self._looked = time.monotonic()
        self._opening: threading.Thread | None = None
        self._lock = threading.Lock()
        self._comparison: Comparison | None = None
        self.failure: str | None = None

    @property
    def now(self) -> Current:
        """The latest state that is open; a later one is opened meanwhile."""
        self.look()
        return self._now

    @property
    def comparison(self) -> Comparison:
        """The run beside the other one."""
        if self._second is None:
            raise DataError(
                "a comparison needs two runs, got one. Start it with hcdv explore RUN OTHER."
            )
        with self._lock:
            if self._comparison is None or self._comparison.first is not self._now.opened:
                self._comparison = Comparison(
                    self._now.opened, self._second, self.scratch.path
                )
            return self._comparison

    def updates(self) -> list[Update]:
        """Every update of the ledger; none for a run that was never changed."""
        if not is_living(self.folder):
            return []
        with reading(self.folder) as ledger:
            return all_updates(ledger)

    def look(self) -> None:
        """See whether an update came, and open it beside what is shown."""
        with self._lock:
            busy = self._opening is not None and self._opening.is_alive()
            if busy or time.monotonic() - self._looked < _EVERY:
                return
            self._looked = time.monotonic()
            if not is_living(self.folder):
                return
            with reading(self.folder) as ledger:
                found = ledger.execute("SELECT max(number) FROM updates").fetchone()[0]
            if found is not None and found != self._now.opened.number:
                self._opening = threading.Thread(target=self._open_latest, daemon=True)
                self._opening.start()

    def _open_latest(self) -> None:
        try:
            later = Current(opened(self.folder, self.scratch.path), self.scratch.path)
        except (HCDVError, OSError) as error:
            self.failure = " ".join(str(error).split())
            return
        self.failure, self._now = None, later

    def _opened_beside(self, other: Path) -> Opened:
        second = opened(other, self.scratch.path)
        Comparison(self._now.opened, second, self.scratch.path).refuse_unless_common()
        return second

    def close(self) -> None:
        """Remove what was written for the time."""
        self._now.queries.close()
        self.scratch.close()


def counted(updates: list[Update]) -> list[dict[str, Any]]:
    """Updates as lines of a table."""
    names = (
        "number", "at", "kind", "n_rows", "came", "gone", "changed", "stale", "surplus",
        "utility", "dispersion", "consistency",
    )  # fmt: skip
    return [{name: getattr(update, name) for name in names} for update in updates]
