"""The stream's cells as a page: AUC on the next day, and what valuing every day costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hcdv.bench.cells import Record
from hcdv.bench.pages import Column, field, table
from hcdv.bench.stream import KEPT, METHODS
from hcdv.errors import need

NO_SELECTION = "all data"
FULL = "hcdv full"
INTERVALS = (
    "Mean of the differences, stream by stream, with its 95 % interval (Student's t). *Gain*: "
    "AUC above one half, which is what no data give."
)
PARTS = {"utility": "C0", "dispersion": "C1", "consistency": "C2"}
LEGEND = (
    "Mean ± standard deviation over {streams}. *final AUC* is that on day {after} of a "
    "model taught on the {kept:.0%} kept of days 1 to {days}; the true chances of a purchase "
    "have {bayes:.4f} there. Bold: the best that keeps {kept:.0%}. *Seconds* are "
    "of valuation, by the clock, *CPU* seconds of valuation by the processors, all threads "
    "together; *processor seconds* are of the whole cell, training and all. These grow less "
    "where others use the machine."
)
ON_PRINTED = (
    "The paper prints no table for the stream, and its figure is not in its source. Its text "
    "says of incremental updates that they keep 99.6 % of the gain of a full recomputation at "
    "2.5 times less cost, at under two seconds an update, and that Group Shapley is worse in "
    "AUC at a higher cost."
)


def page(records: list[Record]) -> str:
    """All cells as Markdown."""
    n_days = max(len(record["auc"]) for record in records)
    totals = [
        Column("final AUC", field("final_auc"), digits=4),
        Column("mean AUC", lambda r: float(np.mean(r["auc"])), digits=4),
        Column("seconds, all days", field("cumulative_seconds"), 0, digits=1),
        Column("seconds a day", field("mean_seconds"), 0, digits=2),
        Column(
            "seconds a day from the 2nd", lambda r: float(np.mean(r["seconds"][1:])), 0, 3
        ),
        Column("CPU seconds, all days", lambda r: _total(r, 0), 0, digits=2),
        Column(
            "CPU ms a day from the 2nd", lambda r: _mean_ms(r, slice(1, None)), 0, digits=0
        ),
        Column("CPU ms, last day", lambda r: _mean_ms(r, slice(-1, None)), 0, digits=0),
        Column("rebalances", lambda r: r.get("rebalances", [None])[-1], 0, digits=0),
        Column("seconds, last day", lambda r: r["seconds"][-1], 0, digits=2),
        Column("processor seconds", field("cell_cpu_seconds"), 0, digits=1),
        Column("purchases kept, %", _last("purchases_kept", 100), 0, digits=1),
        Column("of the last day, %", _last("of_last_day", 100), 0, digits=1),
    ]
    days = [Column(f"{day + 2}", _at("auc", day)) for day in range(n_days)]
    bayes = np.mean([record["bayes_auc"][-1] for record in records])
    parts = [
        "# Table `stream`: sessions valued anew every day",
        LEGEND.format(
            streams=_streams(records), after=n_days + 1, days=n_days, kept=KEPT, bayes=bayes
        ),
        table(records, totals, beside=[NO_SELECTION]),
        "## AUC by the day scored, that after the last one valued",
        table(records, days, beside=[NO_SELECTION]),
        *_against_full(records),
        "## Against random, on the same stream",
        table(_leads(records), [Column("final AUC", field("final"), 0, 4),
                                Column("mean AUC", field("mean"), 0, 4)]),
        "## As the paper printed it",
        ON_PRINTED,
        *_protocol(),
    ]  # fmt: skip
    return "\n\n".join(parts)


def _streams(records: list[Record]) -> str:
    """How many streams the methods were measured on."""
    counts: dict[int, list[str]] = {}
    for name in dict.fromkeys(record["method"] for record in records):
        own = sum(record["method"] == name for record in records)
        counts.setdefault(own, []).append(name)
    most = max(counts)
    fewer = [f"{n} for {', '.join(names)}" for n, names in counts.items() if n < most]
    return f"{most} streams" + (f" ({'; '.join(fewer)})" if fewer else "")


def _total(record: Mapping[str, Any], first: int) -> float | None:
    """CPU seconds of valuation; cells of earlier versions have none."""
    return float(np.sum(record["cpu"][first:])) if "cpu" in record else None


def _mean_ms(record: Mapping[str, Any], days: slice) -> float | None:
    return 1e3 * float(np.mean(record["cpu"][days])) if "cpu" in record else None


def _against_full(records: list[Record]) -> list[str]:
    """What updates keep of what valuing all anew gains, stream by stream, and at what cost."""
    full = {r["seed"]: r for r in records if r["method"] == FULL and "cpu" in r}
    lines: list[str] = []
    for name in METHODS:
        own = [r for r in records if r["method"] == name and r["seed"] in full]
        if "incremental" not in name or len(own) < 2:
            continue
        its = [full[record["seed"]] for record in own]
        cells = [name]
        for field_of in (_final, _mean_auc):
            gap = np.array(
                [field_of(a) - field_of(b) for a, b in zip(own, its, strict=True)]
            )
            gain = np.mean([field_of(b) - 0.5 for b in its])
            cells += [with_interval(gap, 4), with_interval(100 * (1 + gap / gain), 1)]
        for days in (slice(None), slice(1, None), slice(-1, None)):
            times = [np.sum(b["cpu"][days]) / np.sum(a["cpu"][days])
                     for a, b in zip(own, its, strict=True)]  # fmt: skip
            cells.append(with_interval(np.array(times), 1))
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return []
    head = (
        "method", "final AUC", "% of its gain", "mean AUC", "% of its gain",
        "times less CPU, all days", "from the 2nd day", "on the last day",
    )  # fmt: skip
    head_and_rule = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    title = f"## Against {FULL}, on the same stream"
    return [title, INTERVALS, "\n".join([*head_and_rule, *lines])]


def _final(record: Record) -> float:
    return record["final_auc"]


def _mean_auc(record: Record) -> float:
    return float(np.mean(record["auc"]))


def with_interval(found: Any, digits: int) -> str:
    """Mean and 95 % interval."""
    from scipy.stats import t

    numbers = np.asarray(found, dtype=np.float64)
    n = len(numbers)
    half = t.ppf(0.975, n - 1) * numbers.std(ddof=1) / np.sqrt(n)
    low, high = numbers.mean() - half, numbers.mean() + half
    return f"{numbers.mean():.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _at(name: str, day: int) -> Callable[[Any], float | None]:
    return lambda record: record[name][day] if day < len(record[name]) else None


def _last(name: str, scale: float) -> Callable[[Any], float]:
    return lambda record: scale * record[name][-1]


def _leads(records: list[Record]) -> list[Record]:
    """How far every method is ahead of random on the same stream."""
    base = {r["seed"]: r for r in records if r["method"] == "random"}
    return [
        {
            "method": record["method"],
            "final": record["final_auc"] - base[record["seed"]]["final_auc"],
            "mean": float(np.mean(record["auc"]) - np.mean(base[record["seed"]]["auc"])),
        }
        for record in records
        if record["seed"] in base and record["method"] != "random"
    ]


def _protocol() -> list[str]:
    import hcdv.bench.stream as protocol

    return ["## Protocol", (protocol.__doc__ or "").partition("\n\n")[2].strip()]


def figure(records: list[Record], folder: Path) -> list[Path]:
    """AUC on the next day, what a day's valuation takes, and the surplus with its parts."""
    need("matplotlib", extra="bench", what="drawing a table")
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(13.0, 3.8), layout="constrained")
    left, middle, right = drawn.subplots(1, 3)
    n_days = max(len(record["auc"]) for record in records)
    n_streams = len({record["seed"] for record in records})
    for number, name in enumerate(METHODS):
        own = [record for record in records if record["method"] == name]
        if len(own) < n_streams:  # other streams: not to be compared
            continue
        style = {"label": name, "color": f"C{number}", "marker": "o", "markersize": 3}
        line = "--" if name in (NO_SELECTION, "random") else "-"
        auc = np.mean([record["auc"] for record in own], axis=0)
        days = np.arange(1, len(auc) + 1)
        left.plot(days, auc, linestyle=line, **style)
        if name not in (NO_SELECTION, "random") and all("cpu" in r for r in own):
            took = np.mean([record["cpu"] for record in own], axis=0)
            middle.plot(days, took, linestyle=line, **style)
    _surplus(right, records)
    left.set(xlabel="day", ylabel="AUC on the next day")
    middle.set(xlabel="day", ylabel="CPU seconds of the day's valuation", yscale="log")
    right.set(xlabel="day", ylabel="surplus and its parts")
    for panel in (left, middle, right):
        panel.set_xticks(range(1, n_days + 1))
        panel.spines[["top", "right"]].set_visible(False)
    drawn.legend(
        *left.get_legend_handles_labels(), fontsize=8, frameon=False, ncols=len(METHODS),
        loc="outside lower left",
    )  # fmt: skip
    path = folder / "stream.png"
    drawn.savefig(path, dpi=150)
    return [path]


def _surplus(panel: Any, records: list[Record]) -> None:
    """Of all rows so far: the updated run's, drawn through, and full valuation's, dashed."""
    shown = (("hcdv incremental", "-", "updated"), (FULL, ":", "in full"))
    for method, line, word in shown:
        own = [
            r for r in records if r["method"] == method and (r.get("surplus") or [None])[0]
        ]
        if not own:
            continue
        for part, colour in PARTS.items():
            mean = np.mean([[day[part] for day in r["surplus"]] for r in own], axis=0)
            panel.plot(np.arange(1, len(mean) + 1), mean, line, color=colour, marker=".",
                       label=f"{part}, {word}")  # fmt: skip
        total = np.mean([[sum(day.values()) for day in r["surplus"]] for r in own], axis=0)
        panel.plot(np.arange(1, len(total) + 1), total, line, color="black", marker=".",
                   label=f"surplus, {word}")  # fmt: skip
    if panel.get_legend_handles_labels()[0]:
        panel.set_ylim(top=1.45 * panel.get_ylim()[1])
        panel.legend(fontsize=7, frameon=False, ncols=2, loc="upper left")
