"""The latest state of a run folder with its arrays left on disk, for those who look at little."""

from __future__ import annotations

import hashlib
import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hcdv.errors import HCDVError, StoreError
from hcdv.store.folder import FILES, damaged_state, read_about
from hcdv.store.ledger import is_living, latest, reading
from hcdv.store.living import taken_living
from hcdv.store.shelf import SETTINGS, Shelf
from hcdv.store.state import taken_run

if TYPE_CHECKING:
    from hcdv.result import Run

_DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4",
    "I32": "<i4", "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip


class State(NamedTuple):
    """Which update a run folder is at, and the file that has all of it."""

    number: int
    path: Path
    sha256: str


def latest_state(folder: Path) -> State:
    """The state of the last committed update, or of the fit."""
    if is_living(folder):
        with reading(folder) as ledger:
            update = latest(ledger)
        if update is not None:
            return State(update.number, folder / update.state, update.state_sha256)
    digests = read_about(folder)["sha256"]
    return State(0, folder / FILES[2], str(digests.get(FILES[2])))


def mapped_run(folder: Path) -> tuple[State, Run]:
    """The run of the latest state, its arrays mapped into memory; damage is named."""
    state = latest_state(folder)
    for _ in range(5):  # a state may go while it is opened, if two updates come meanwhile
        with suppress(FileNotFoundError):
            return state, _run_of(state)
        state = latest_state(folder)
    raise StoreError(
        f"'{state.path}' must be there, got no such file. Restore the folder from a copy."
    )


def _run_of(state: State) -> Run:
    with state.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != state.sha256:
        raise damaged_state(state.path, ValueError("it is not what was written"))
    try:
        shelf = mapped_shelf(state.path)
        return taken_living(shelf, taken_run(shelf))
    except (
        HCDVError, ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error,
        OverflowError, RecursionError,
    ) as error:  # fmt: skip
        raise damaged_state(state.path, error) from error


def mapped_shelf(path: Path) -> Shelf:
    """What `Shelf.to_bytes` wrote, as views of the file."""
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    whole = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + size)
    shelf = Shelf()
    for name, about in header.items():
        low, high = about["data_offsets"]
        part = whole[low:high].view(np.dtype(_DTYPES[about["dtype"]]))
        shelf.arrays[name] = part.reshape(about["shape"])
    own = json.loads(shelf.arrays.pop(SETTINGS).tobytes())
    shelf.settings, shelf.kinds = own["settings"], own["kinds"]
    return shelf
