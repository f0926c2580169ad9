"""The click logs' cells as a page: what choices teach, and what they cost, by rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hcdv.bench.cells import Record
from hcdv.bench.ctr_table import CRITEO, LEAST_ROWS, rows_of
from hcdv.bench.main_table import ALL, CTR_RATE, KEPT, LABELS, RATE
from hcdv.bench.pages import Column, field, table
from hcdv.errors import need

LEGEND = (
    "Mean ± standard deviation over {seeds} seeds, by rows valued; the best in bold, all data "
    "aside. Wide & Deep, taught on the {kept:.0%} kept, is scored by the AUC on further rows "
    "with labels as clicked. Noisy: {rate:.0%} of the labels of training and validation rows "
    "flipped. Generated logs have {clicks:.0%} clicks; the best AUC there is on them: {best}."
)
NO_CRITEO = (
    f"Criteo's own log: not measured. The data folder held no `criteo*` file of "
    f"{LEAST_ROWS:,} rows or more."
)


def page(records: list[Record]) -> str:
    """All cells as Markdown."""
    best = {record["seed"]: record["best"] for record in records if "best" in record}
    legend = LEGEND.format(
        seeds=len({record["seed"] for record in records}), kept=KEPT, rate=RATE,
        clicks=CTR_RATE,
        best=", ".join(f"{auc:.4f} (seed {seed})" for seed, auc in best.items()),
    )  # fmt: skip
    parts = ["# Table `ctr`: click logs by size", legend]
    for labels in LABELS:
        of = [record for record in records if record["labels"] == labels]
        parts += _tables(of, labels) if of else []
    if all(record["rows"] != CRITEO for record in records):
        parts.append(NO_CRITEO)
    return "\n\n".join([*parts, *_protocol()])


def _titled(size: str) -> str:
    return size if size == CRITEO else f"{rows_of(size):,} rows"


def _tables(records: list[Record], labels: str) -> list[str]:
    shown = (
        (f"{labels.capitalize()} labels: test AUC", "score", 1, 4),
        (f"{labels.capitalize()} labels: seconds of valuation", "valuation_seconds", 0, 1),
        (
            f"{labels.capitalize()} labels: processor seconds of the cell, training and all",
            "cell_cpu_seconds",
            0,
            1,
        ),
        ("Share of wrong labels among the rows kept", "wrong_kept", -1, 3),
    )
    parts: list[str] = []
    for title, name, better, digits in shown[: None if labels == "noisy" else 3]:
        columns = [
            Column(_titled(n), field(name, rows=n), better, digits)
            for n in dict.fromkeys(record["rows"] for record in records)
        ]
        of = [record for record in records if name in record]
        parts += [f"## {title}", table(of, columns, beside=(ALL,))]
    return parts


def _protocol() -> list[str]:
    import hcdv.bench.ctr_table as protocol

    return ["## Protocol", (protocol.__doc__ or "").partition("\n\n")[2].strip()]


def figure(records: list[Record], folder: Path) -> list[Path]:
    """AUC and seconds of valuation by rows; nothing where there is one size alone."""
    need("matplotlib", extra="bench", what="drawing a table")
    from matplotlib.figure import Figure

    made = [record for record in records if record["rows"] != CRITEO]
    kinds = [labels for labels in LABELS if any(r["labels"] == labels for r in made)]
    if len({record["rows"] for record in made}) < 2:
        return []
    drawn = Figure(figsize=(3.6 * (len(kinds) + 1), 3.4), layout="constrained")
    *panels, cost = drawn.subplots(1, len(kinds) + 1)
    for panel, labels in zip(panels, kinds, strict=True):
        of = [record for record in made if record["labels"] == labels]
        _lines(panel, of, "score")
        panel.axhline(
            float(np.mean([r["best"] for r in of])), color="black", linewidth=0.8,
            linestyle=":", label="the best there is",
        )  # fmt: skip
        panel.set_title(f"{labels} labels", fontsize=10)
    panels[0].set_ylabel("test AUC")
    _lines(cost, [r for r in made if r.get("valuation_seconds", 0.0) > 0.1],
           "valuation_seconds")  # fmt: skip
    cost.set(yscale="log", ylabel="seconds of valuation")
    for panel in (*panels, cost):
        panel.set(xscale="log", xlabel="rows")
        panel.spines[["top", "right"]].set_visible(False)
    marks, labels = panels[0].get_legend_handles_labels()
    drawn.legend(marks, labels, loc="outside lower center", ncols=7, fontsize=8)
    path = folder / "ctr.png"
    drawn.savefig(path, dpi=150)
    return [path]


def _lines(panel: Any, records: list[Record], name: str) -> None:
    from hcdv.bench.ctr_table import METHODS

    for number, method in enumerate(METHODS):
        own = [r for r in records if r["method"] == method and name in r]
        sizes = sorted({rows_of(r["rows"]) for r in own})
        mean = [np.mean([r[name] for r in own if rows_of(r["rows"]) == n]) for n in sizes]
        if sizes:
            line = "--" if method in (ALL, "random") else "-"
            panel.plot(
                sizes, mean, line, marker="o", markersize=3, color=f"C{number}",
                label=method,
            )  # fmt: skip
