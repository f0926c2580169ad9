"""One state of a run folder, laid out to be queried: a line a row in Parquet, coalitions beside.

A run of a data set already is a line a row. Of a table's run, the latest state is written out
once as `explorer/points-<number>-<hash>.parquet` in the run folder, or elsewhere where that
cannot be written to: values, doubts, and where each row lies on the map.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import StoreError
from hcdv.store.folder import read_about
from hcdv.store.mapping import State, latest_state, mapped_run
from hcdv.store.rows import ROWS
from hcdv.store.saving import DATASET
from hcdv.uses.plane import plane_of

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.result import Run

EXPLORER = "explorer"
_LAYOUT = 1  # of the points file; another one is written anew
_GROUP = 1 << 16  # rows of a Parquet row group


@dataclass(frozen=True)
class Opened:
    """A state of a run, as files and small tables."""

    folder: Path
    about: dict[str, Any]
    number: int
    points: list[Path]
    coalitions: pd.DataFrame
    share: float  # of the vectors' variance that the map shows
    run: Callable[[], Run] | None  # opens the state; None where no vectors are kept

    @property
    def is_dataset(self) -> bool:
        """Whether the run is that of a data set larger than memory."""
        return self.about.get("kind") == DATASET

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes, and not numbers."""
        return bool(self.about.get("n_classes"))

    @property
    def n_rows(self) -> int:
        """Rows of this state."""
        return int(self.coalitions["size"].iloc[0])

    @cached_property
    def given(self) -> list[Path]:
        """Files of the rows as they were given, the oldest first."""
        return sorted((self.folder / ROWS).glob("*.parquet"))

    @cached_property
    def leaf_ranges(self) -> LeafRanges:
        """Which leaves lie below a coalition."""
        return LeafRanges(self.coalitions["parent"].to_numpy())


class LeafRanges:
    """Nodes below a node: one range of numbers a level, since nodes are numbered breadth first."""

    def __init__(self, parent: NDArray[np.integer]) -> None:
        n = len(parent)
        self.n_children = np.bincount(parent[1:], minlength=n)
        self.first_child = 1 + np.cumsum(self.n_children) - self.n_children

    def below(self, node: int) -> list[tuple[int, int]]:
        """First and last number of the nodes on every level from `node` down."""
        low, high = node, node
        found = [(low, high)]
        while True:
            inner = low + np.flatnonzero(self.n_children[low : high + 1])
            if not len(inner):
                return found
            last = int(inner[-1])
            low = int(self.first_child[inner[0]])
            high = int(self.first_child[last] + self.n_children[last] - 1)
            found.append((low, high))


def opened(folder: Path, scratch: Path) -> Opened:
    """The latest state of a run folder. scratch: where to write what the folder will not hold."""
    import pandas as pd

    about = read_about(folder)
    if about.get("kind") == DATASET:
        from hcdv.dataset.run import COALITIONS, VALUES, DatasetRun

        DatasetRun.open(folder)  # refuses files that are not whole
        files = [folder / name for name in about["bytes"] if name.startswith(f"{VALUES}/")]
        frame = pd.read_parquet(folder / COALITIONS)
        return Opened(folder, about, 0, files, frame, 0.0, None)
    state = latest_state(folder)
    place = _laid_out(folder, state) or _laid_out_in(scratch, state)
    if place is None:
        state, place = _lay_out(folder, scratch)
    beside = json.loads(place.with_suffix(".json").read_text(encoding="utf-8"))
    frame = pd.read_parquet(_coalitions_beside(place))
    return Opened(
        folder, about, state.number, [place], frame, float(beside["share"]),
        lambda: mapped_run(folder)[1],
    )  # fmt: skip


def _name(state: State) -> str:
    return f"points-{state.number:06}-{state.sha256[:16]}-{_LAYOUT}.parquet"


def _laid_out(folder: Path, state: State) -> Path | None:
    return _laid_out_in(folder / EXPLORER, state)


def _laid_out_in(place: Path, state: State) -> Path | None:
    """The points of a state, if they lie there whole: their record is written last."""
    path = place / _name(state)
    try:
        float(json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["share"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return path if path.is_file() and _coalitions_beside(path).is_file() else None


def _coalitions_beside(path: Path) -> Path:
    return path.with_name(f"coalitions-{path.name.partition('-')[2]}")


def _lay_out(folder: Path, scratch: Path) -> tuple[State, Path]:
    state, run = mapped_run(folder)
    tables = {"coalitions": run.coalitions(), "points": _points(run)}
    share = tables["points"].attrs.pop("share")
    for place in (folder / EXPLORER, scratch):
        with suppress(OSError):
            place.mkdir(exist_ok=True)
            return state, _written(place, state, tables, share)
    raise StoreError(
        f"'{scratch}' must be writable, got a folder that is not. Free some space, or name "
        "another place for temporary files in TMPDIR."
    )


def _written(place: Path, state: State, tables: dict[str, Any], share: float) -> Path:
    name = _name(state)
    for kind, frame in tables.items():
        path = place / f"{kind}-{name.partition('-')[2]}"
        draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            frame.to_parquet(draft, engine="pyarrow", index=False, row_group_size=_GROUP)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    path = place / name
    path.with_suffix(".json").write_text(json.dumps({"share": share}), encoding="utf-8")
    for old in [
        *place.glob("points-*"),
        *place.glob("coalitions-*"),
    ]:  # of states that are over
        number = old.name.split("-")[1]
        if number.isdecimal() and int(number) < state.number - 1:
            old.unlink(missing_ok=True)
    return path


def _points(run: Run) -> pd.DataFrame:
    """Everything of every row that is sorted, filtered or drawn by."""
    doubts, target = run.valuation.doubts, run.target
    frame = run.frame()
    frame["doubt"] = run.users(np.asarray(doubts.chance))
    if target.classes is None:
        suggested = np.asarray(doubts.scores[0]) * target.scale + target.centre
    else:
        suggested = target.classes[np.argmax(doubts.scores, axis=0)]
    frame["suggested"] = run.users(suggested)
    frame["stale"] = run.stale
    plane = plane_of(run.case.points.Z)
    frame["x"], frame["y"] = run.users(plane.at.T.astype(np.float32))
    frame.attrs["share"] = plane.share
    return frame


class Scratch:
    """A folder of its own for temporary files, gone when the explorer ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="hcdv-explore-"))

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
