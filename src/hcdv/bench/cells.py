"""Cells of a table: measured once, kept in a JSON file, taken up again after an interruption.

A cell is named by its key, such as {"data": "adult", "method": "hcdv", "seed": 0}. What was
measured for it is stored under that key with the commit, versions and machine it was
measured with, right after it is done: whatever interrupts a run, no finished cell is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Protocol

from hcdv.bench.provenance import provenance
from hcdv.errors import DataError

Key = Mapping[str, Any]
Record = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """What a run of a table is asked for."""

    out: Path
    data: Path | None = None  # folder of the data sets
    seeds: int = 3
    fast: bool = False  # the smallest run that shows every part of the table at work
    only: Mapping[str, str] = field(default_factory=dict)  # {"method": "hcdv"}: some cells
    again: bool = False  # measure cells anew that are there
    command: str = ""


class Bench(Protocol):
    """A table: its cells, how one is measured, and how all are shown."""

    name: str

    def cells(self, ask: Ask) -> Iterable[Key]:
        """Keys of all cells, in the order they are measured."""
        ...

    def measured(self, key: Key, ask: Ask) -> Record:
        """Numbers of one cell, JSON-able."""
        ...

    def page(self, records: list[Record]) -> str:
        """All cells as Markdown."""
        ...

    def figures(self, records: list[Record], folder: Path) -> list[Path]:
        """Draw what the table does not show; the files written."""
        ...


def run(bench: Bench, ask: Ask, tell: Callable[[str], None] = lambda _: None) -> Path:
    """Measure the cells that are missing, and write JSON, Markdown and figures.

    Returns the path of the Markdown page.
    """
    stem = f"{bench.name}-fast" if ask.fast else bench.name
    path = ask.out / f"{stem}.json"
    ask.out.mkdir(parents=True, exist_ok=True)
    kept = read(path)
    keys = [key for key in bench.cells(ask) if _matches(key, ask.only)]
    if not keys:
        raise DataError(
            f"--only must name cells of the table {bench.name}, got {dict(ask.only)}. "
            f"Its cells look like {dict(next(iter(bench.cells(ask))))}."
        )
    about = provenance(ask.command)
    todo = [key for key in keys if ask.again or _name(key) not in kept]
    for number, key in enumerate(todo, start=1):
        tell(f"{number}/{len(todo)} " + " ".join(f"{v}" for v in key.values()))
        began = process_time()
        found = bench.measured(key, ask)
        seconds = round(process_time() - began, 3)
        kept[_name(key)] = {**key, **found, "cell_cpu_seconds": seconds, "made": about}
        write(path, kept)
    records = list(kept.values())
    page = path.with_suffix(".md")
    page.write_text(bench.page(records) + "\n", encoding="utf-8")
    _drawn(bench, records, ask)
    return page


def _drawn(bench: Bench, records: list[Record], ask: Ask) -> None:
    """The figures into the folder; those of a fast run beside the others, not over them."""
    with TemporaryDirectory(dir=ask.out) as folder:
        for figure in bench.figures(records, Path(folder)):
            end = "-fast" if ask.fast else ""
            figure.replace(ask.out / f"{figure.stem}{end}{figure.suffix}")


def read(path: Path) -> dict[str, Record]:
    """Finished cells by name; none where there is no file yet."""
    if not path.exists():
        return {}
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        keys = [cell["key"] for cell in cells]
        return {
            _name(key): {**key, **cell["found"], "made": cell["made"]}
            for key, cell in zip(keys, cells, strict=True)
        }
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} must hold the cells of an earlier run, got {error!r}. "
            "Move it away to start anew."
        ) from error


def write(path: Path, kept: Mapping[str, Record]) -> None:
    """All finished cells, in place of the file at once."""
    cells: list[dict[str, Any]] = []
    for name, record in kept.items():
        key = dict(json.loads(name))
        found = {k: v for k, v in record.items() if k not in key and k != "made"}
        cells.append({"key": key, "found": found, "made": record["made"]})
    part = path.with_suffix(".part")
    lines = ",\n".join(json.dumps(cell, allow_nan=True) for cell in cells)
    part.write_text(f'{{"cells": [\n{lines}\n]}}\n', encoding="utf-8")
    part.replace(path)


def _name(key: Key) -> str:
    return json.dumps(dict(key), sort_keys=True)


def _matches(key: Key, only: Mapping[str, str]) -> bool:
    return all(str(key.get(name)) in value.split(",") for name, value in only.items())
