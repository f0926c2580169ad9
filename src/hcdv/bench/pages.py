"""Tables as Markdown: a row a method, mean ± deviation over seeds, the best of a column bold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Record = Mapping[str, Any]
Number = Callable[[Record], float | None]


@dataclass(frozen=True)
class Column:
    """One number of the records: those that have none of it are passed over."""

    title: str
    of: Number
    better: int = 1  # 1: higher is better, -1: lower, 0: none is marked
    digits: int = 3


def field(name: str, **where: Any) -> Number:
    """The number of that name in the records with these values."""

    def of(record: Record) -> float | None:
        fits = all(record.get(key) == value for key, value in where.items())
        return record.get(name) if fits else None

    return of


def table(
    records: Sequence[Record],
    columns: Sequence[Column],
    *,
    by: str = "method",
    beside: Sequence[str] = (),
) -> str:
    """A line for every value of `by`, in the order met; those in `beside` win no column."""
    names = list(dict.fromkeys(str(record[by]) for record in records))
    found = {
        name: [
            _numbers([r for r in records if str(r[by]) == name], column)
            for column in columns
        ]
        for name in names
    }
    columns = list(columns)
    kept = [j for j in range(len(columns)) if any(found[name][j] for name in names)]
    rivals = [name for name in names if name not in beside]
    best = {j: _best([found[name][j] for name in rivals], columns[j]) for j in kept}
    lines = ["| " + " | ".join([by, *(columns[j].title for j in kept)]) + " |"]
    lines.append("|" + "---|" * (len(kept) + 1))
    for name in names:
        shown = [
            in_words(found[name][j], columns[j].digits, bold=name in rivals and best[j])
            for j in kept
        ]
        lines.append("| " + " | ".join([name, *shown]) + " |")
    return "\n".join(lines)


def in_words(numbers: Sequence[float], digits: int = 3, bold: float | bool = False) -> str:
    """Mean ± standard deviation (n − 1), bold where the mean shows as the best one does."""
    if not numbers:
        return "–"
    mean = f"{np.mean(numbers):.{digits}f}"
    spread = f" ± {np.std(numbers, ddof=1):.{digits}f}" if len(numbers) > 1 else ""
    is_best = not isinstance(bold, bool) and mean == f"{bold:.{digits}f}"
    return f"**{mean}**{spread}" if is_best else mean + spread


def _numbers(records: Sequence[Record], column: Column) -> list[float]:
    found = (column.of(record) for record in records)
    return [float(number) for number in found if number is not None]


def _best(of_rows: Sequence[Sequence[float]], column: Column) -> float | bool:
    means = [float(np.mean(numbers)) for numbers in of_rows if numbers]
    if column.better == 0 or len(means) < 2:
        return False
    return max(means) if column.better > 0 else min(means)
