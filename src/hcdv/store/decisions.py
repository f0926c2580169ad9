"""What a person decided about doubted labels, in the run folder: a line each, never rewritten.

`decisions.jsonl` holds one JSON object a line: at, id, given, decision (keep, relabel, drop,
skip or undo) and label. Of an id that was decided twice the later line counts, and an undo
takes the decision before it back. A line that a crash cut short is no decision; the next one
starts a line of its own.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hcdv.errors import StoreError

DECISIONS = "decisions.jsonl"
FINAL = ("keep", "relabel", "drop")
KINDS = (*FINAL, "skip", "undo")


@dataclass(frozen=True)
class Decision:
    """About one label. label: what it is now, where it was changed."""

    id: Any
    given: Any
    decision: str
    label: Any = None
    at: str = ""


def decide(folder: Path, made: Decision) -> None:
    """Add a decision, on disk before this returns."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    line = json.dumps({**asdict(made), "at": now}, ensure_ascii=False) + "\n"
    path = folder / DECISIONS
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                line = "\n" + line
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise StoreError(
            f"'{path}' must be writable, got: {error.strerror or error}. Decisions made before "
            "are kept."
        ) from error


def decisions(folder: Path) -> dict[Any, Decision]:
    """The decision that counts of every id that has one, skips included."""
    path = folder / DECISIONS
    if not path.exists():
        return {}
    before: dict[Any, list[Decision]] = {}
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            held = json.loads(line)
        except (ValueError, RecursionError) as error:
            if line.startswith(b"{"):
                continue  # cut short by a crash
            raise _damaged(path, number) from error
        try:
            made = Decision(**held)
            known = made.decision in KINDS
        except TypeError as error:
            raise _damaged(path, number) from error
        if not known:
            raise _damaged(path, number)
        of_id = before.setdefault(made.id, [])
        if made.decision == "undo":
            del of_id[-1:]
        else:
            of_id.append(made)
    return {name: of_id[-1] for name, of_id in before.items() if of_id}


def _damaged(path: Path, number: int) -> StoreError:
    return StoreError(
        f"'{path}' must hold a decision a line, got something else in line {number}. Remove "
        "that line, or restore the file from a copy."
    )
