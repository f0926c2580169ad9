"""The OpenDataVal cells as tables and curves; who leads is told with its standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hcdv.bench.cells import Record
from hcdv.errors import need

Number = Callable[[Record], float]
BySeed = Mapping[int, float]

LEVEL = 1e-12  # leads smaller than this are rounding
DEFAULT = "hcdv"  # the method whose lead is told; names that begin so are ours


@dataclass(frozen=True)
class Task:
    """One number of a cell: its title, how it is read, and whether higher is better (1)."""

    title: str
    of: Number
    better: int


def _at_rate(what: str) -> Number:
    return lambda record: record[what][f"{record['rate']:.2f}"]


DETECTION = Task("Detection, F1", lambda record: record["f1"], 1)
REMOVAL = Task("Removal, accuracy", _at_rate("removal"), -1)
ADDITION = Task("Addition, accuracy", _at_rate("addition"), -1)
TASKS = (DETECTION, REMOVAL, ADDITION)
AUROC = Task("Detection, AUROC", lambda record: record["auroc"], 1)
WITHIN = Task("Detection, AUROC within classes", lambda record: record["auroc_within"], 1)
SAID = {
    DETECTION: "Wrong labels found: F1 of the lower of two clusters (higher is better)",
    REMOVAL: "Test accuracy without the best rows (lower is better)",
    ADDITION: "Test accuracy of a model of the worst rows alone (lower is better)",
    AUROC: "Wrong labels ranked: AUROC (higher is better)",
    WITHIN: "The same among rows given one label, mean over labels (higher is better)",
}

LEGEND = (
    "Means over seeds; the best in bold. Beside ours, the paired difference to the strongest "
    "other method: ▲ ahead by more than two standard errors, △ ahead within them, ▽ behind "
    "within them, ▼ behind by more, = level. `hcdv` and what begins so is ours, `odv` computed "
    "by OpenDataVal itself. `mcds`, `banzhaf` and `loo` are settings of our engine with "
    "λ = κ = 0; `knn` is our exact KNN-Shapley."
)
SECONDS = (
    "Seconds are those of valuing 1,000 rows, the median over cells; of `odv`, on one thread "
    "of the machine named in peers-opendataval.json. † ended by the limit of processor seconds."
)


@dataclass(frozen=True)
class Cell:
    """One task on one set at one rate: every method's number by seed."""

    title: str
    task: Task
    found: Mapping[str, BySeed]

    def mean(self, method: str) -> float:
        """Mean over the seeds the method has."""
        return float(np.mean(list(self.found[method].values())))

    @property
    def best(self) -> str:
        """The method with the best mean."""
        return max(self.found, key=lambda method: self.task.better * self.mean(method))

    def leads(self) -> dict[str, tuple[float, float]]:
        """Others → mean lead of ours on the seeds both have, and its standard error."""
        ours = self.found[DEFAULT]
        found: dict[str, tuple[float, float]] = {}
        for method, theirs in self.found.items():
            seeds = sorted(ours.keys() & theirs.keys())
            if method.startswith(DEFAULT) or not seeds:
                continue
            gaps = self.task.better * np.array([ours[s] - theirs[s] for s in seeds])
            error = np.std(gaps, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.inf
            found[method] = float(np.mean(gaps)), float(error)
        return found

    @property
    def strongest(self) -> str:
        """The other method over which ours leads least."""
        leads = self.leads()
        return min(leads, key=lambda method: leads[method][0])

    @property
    def mark(self) -> str:
        """How ours stands to the strongest other."""
        if DEFAULT not in self.found or not self.leads():
            return ""
        lead, error = self.leads()[self.strongest]
        if abs(lead) < LEVEL:
            return "="
        beyond = abs(lead) > 2 * error
        if lead > 0:
            return "▲" if beyond else "△"
        return "▼" if beyond else "▽"


def cells_of(records: Sequence[Record], task: Task) -> list[Cell]:
    """The cells of a task, sets and rates in the order met."""
    kinds = sorted({(r["data"], r["rate"]) for r in records}, key=_order(records))
    cells: list[Cell] = []
    for data, rate in kinds:
        found: dict[str, dict[int, float]] = {}
        for record in records:
            if (record["data"], record["rate"]) == (data, rate):
                found.setdefault(record["method"], {})[record["seed"]] = task.of(record)
        cells.append(Cell(f"{data} {rate:.0%}", task, found))
    return cells


def _order(records: Sequence[Record]) -> Callable[[tuple[str, float]], tuple[int, float]]:
    names = list(dict.fromkeys(record["data"] for record in records))
    return lambda kind: (names.index(kind[0]), kind[1])


def methods_of(records: Iterable[Record]) -> list[str]:
    """Methods in the order met."""
    return list(dict.fromkeys(record["method"] for record in records))


def table(records: Sequence[Record], task: Task) -> str:
    """Methods by cells."""
    cells = cells_of(records, task)
    rows: list[list[str]] = []
    for method in methods_of(records):
        row = [method]
        for cell in cells:
            if method not in cell.found:
                row.append("–")
                continue
            shown = f"{cell.mean(method):.3f}"
            shown = f"**{shown}**" if method == cell.best else shown
            row.append(shown + (f" {cell.mark}" if method == DEFAULT else ""))
        rows.append(row)
    return grid(["method", *(cell.title for cell in cells)], rows)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of text as Markdown."""
    ruler = "|---" + "|--:" * (len(head) - 1) + "|"
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], ruler, *lines[1:]])


def verdict(records: Sequence[Record]) -> str:
    """In how many of the cells ours leads, and who is ahead where it does not."""
    cells = [cell for task in TASKS for cell in cells_of(records, task)]
    cells = [cell for cell in cells if cell.mark]
    if not cells:
        return "Ours or all others are missing: nothing is compared."
    ahead = [cell for cell in cells if cell.mark in "▲△"]
    clear = sum(cell.mark == "▲" for cell in cells)
    first = f"`{DEFAULT}` leads every other method in {len(ahead)} of {len(cells)} cells"
    lines = [f"{first}, in {clear} of them by more than two standard errors."]
    for cell in cells:
        lead, error = cell.leads()[cell.strongest]
        where = f"- {cell.task.title}, {cell.title}:"
        if cell.mark == "=":
            lines.append(f"{where} level with {cell.strongest}")
        elif lead < 0:
            by = f"{-lead:.4f} (standard error {error:.4f})"
            lines.append(f"{where} behind {cell.strongest} by {by}")
    return "\n".join(lines)


def means(records: Sequence[Record]) -> str:
    """One line a method: means over the cells, for those that have all of them."""
    tasks = (DETECTION, REMOVAL, ADDITION, AUROC, WITHIN)
    by_task = {task: cells_of(records, task) for task in tasks}
    methods = methods_of(records)

    def mean(method: str, task: Task) -> float:
        cells = by_task[task]
        there = all(method in cell.found for cell in cells)
        return float(np.mean([cell.mean(method) for cell in cells])) if there else np.nan

    neighbours = [mean(m, DETECTION) for m in methods if "knn" in m]
    bar = max((f1 for f1 in neighbours if np.isfinite(f1)), default=np.nan)
    rows: list[list[str]] = []
    for method in methods:
        own = [record for record in records if record["method"] == method]
        numbers = [mean(method, DETECTION), mean(method, DETECTION) / bar]
        numbers += [mean(method, task) for task in tasks[1:]]
        shown = ["–" if np.isnan(number) else f"{number:.3f}" for number in numbers]
        seconds = np.median([record["seconds"] for record in own])
        n_seeds = len({record["seed"] for record in own})
        cut = any(record.get("ended_by_limit") for record in own)
        rows.append([method, *shown, f"{seconds:.2f}{' †' if cut else ''}", str(n_seeds)])
    head = ["method", "F1", "F1 ÷ better KNN", "removal", "addition", "AUROC"]
    return grid([*head, "within", "seconds", "seeds"], rows)


def page(records: list[Record], protocol: Mapping[str, str]) -> str:
    """All tables, with the protocol they were measured by: of rows, and of players."""
    rows = [record for record in records if "players" not in record]
    parts = ["# Table `opendataval`"]
    if rows:
        parts += [verdict(rows), LEGEND]
        for task in TASKS:
            parts += [f"## {SAID[task]}", table(rows, task)]
        parts += ["## Means over the cells", means(rows), SECONDS]
        for task in (AUROC, WITHIN):
            parts += [f"## {SAID[task]}", table(rows, task)]
    for noise in dict.fromkeys(r["players"] for r in records if "players" in r):
        played = [record for record in records if record.get("players") == noise]
        parts += [f"## 100 players of 10 rows, noise by `{noise}`", verdict(played)]
        for task in (*TASKS, AUROC):
            parts += [f"### {SAID[task]}", table(played, task)]
    parts += ["## Protocol", protocol["rows"], "### Players", protocol["players"]]
    return "\n\n".join(part.strip() for part in parts)


def figures(records: list[Record], folder: Path, shares: Sequence[float]) -> list[Path]:
    """Curves of noise discovery, removal and addition: one file each, a panel a cell."""
    need("matplotlib", extra="bench", what="drawing a table")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        "found": ("share of the rows looked at, lowest value first", "wrong labels found"),
        "removal": ("share of the rows removed, highest value first", "test accuracy"),
        "addition": ("share of the rows trained on, lowest value first", "test accuracy"),
    }
    paths: list[Path] = []
    for what, (across, up) in drawn.items():
        path = folder / f"opendataval-{what}.png"
        _draw(records, what, shares, (across, up), path)
        paths.append(path)
    return paths


def _draw(
    records: Sequence[Record],
    what: str,
    inspected: Sequence[float],
    axes: tuple[str, str],
    path: Path,
) -> None:
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(record["data"] for record in records))
    rates = sorted({record["rate"] for record in records})
    figure = Figure(figsize=(3.6 * len(sets) + 2.2, 3 * len(rates)), layout="constrained")
    panels = figure.subplots(len(rates), len(sets), squeeze=False, sharex=True)
    methods = methods_of(records)
    for row, rate in enumerate(rates):
        for column, name in enumerate(sets):
            panel = panels[row, column]
            panel.set_title(f"{name}, {rate:.0%} wrong", fontsize=9)
            for number, method in enumerate(methods):
                at = {"data": name, "rate": rate, "method": method}
                own = [r for r in records if at.items() <= r.items()]
                if own:
                    panel.plot(
                        *_curve(own, what, inspected),
                        label=method,
                        **_style(number, method),
                    )
    figure.supxlabel(axes[0], fontsize=9)
    figure.supylabel(axes[1], fontsize=9)
    lines, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside right upper", fontsize=7)
    figure.savefig(path, dpi=150)


def _curve(
    own: Sequence[Record], what: str, inspected: Sequence[float]
) -> tuple[list[float], Any]:
    """Shares, and the mean over seeds at each."""
    if what == "found":
        return list(inspected), np.mean([record["found"] for record in own], axis=0)
    shares = list(own[0][what])
    heights = np.mean([[record[what][share] for share in shares] for record in own], axis=0)
    everyone = np.mean([record["all"] for record in own])
    if what == "removal":
        return [0.0, *map(float, shares)], np.r_[everyone, heights]
    return [float(share) for share in shares], heights


def _style(number: int, method: str) -> dict[str, Any]:
    """Ours thick and dark, OpenDataVal's dashed."""
    if method == DEFAULT:
        return {"color": "black", "linewidth": 2.2, "zorder": 10}
    dashed = "--" if method.startswith("odv") else "-"
    from matplotlib import colormaps

    colour = colormaps["tab20"](number % 20)
    return {"color": colour, "linewidth": 1.0, "linestyle": dashed}
