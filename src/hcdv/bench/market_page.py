"""The market's cells as a page: shares of the sellers, and how they follow the references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hcdv.bench.cells import Record
from hcdv.bench.market import EXACT, METHODS, PRINTED, PROFILES, gini, shares
from hcdv.bench.pages import Column, field, table
from hcdv.errors import need

LEGEND = (
    "Mean ± standard deviation over {n_seeds} draws of the sellers; the best in bold, the row "
    "`exact, validation` aside, which retrains the buyer's model for all 32 coalitions. "
    "Shares sum to one; the sum furthest from it is off by {off:.1e}. ρ is Pearson's, on "
    "payoffs before negative ones count as zero; it does not see scale. *off* does: the mean "
    "distance of a seller's share to its share by exact Shapley values. Lower Gini is not "
    "better: that of the references is in the next table. *Processor seconds*, of the whole "
    "cell, grow less than *seconds* do where others use the machine."
)
ON_REFERENCES = (
    "All sellers together teach a model of {paid:.2f} %; without data it is 50 %. "
    "Leave-one-out drops are {drop:.1f} points at most and do not add up to what all are "
    "worth; exact Shapley values do."
)
ON_PRINTED = (
    "The shares printed for HCDV sum to 1.10; against the leave-one-out drops printed (1.42, "
    "1.61, 0.74, 1.05, 1.18 points) they have ρ = 0.99, not 0.94."
)
REFERENCES = {"leave_one_out": "leave-one-out", "exact": "exact Shapley"}


def with_correlations(records: list[Record]) -> list[Record]:
    """The records, each with its correlations to the references of its seed."""
    truth = {r["seed"]: r for r in records if r["method"] == EXACT}
    found: list[Record] = []
    place = {name: at for at, name in enumerate((EXACT, *METHODS))}
    for record in sorted(records, key=lambda r: place.get(r["method"], len(place))):
        more: Record = {f"share {p + 1}": one for p, one in enumerate(record["share"])}
        if record["seed"] in truth:
            known = np.array(shares(np.array(truth[record["seed"]]["exact"])))
            more["off"] = float(np.mean(np.abs(known - record["share"])))
        if record["seed"] in truth and np.ptp(record["payoff"]) > 0:
            for name in REFERENCES:
                known = truth[record["seed"]][name]
                more[f"rho {name}"] = float(np.corrcoef(record["payoff"], known)[0, 1])
                more[f"ranks {name}"] = _ranks_alike(record["payoff"], known)
        found.append({**record, **more})
    return found


def _ranks_alike(one: Sequence[float], other: Sequence[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


def page(records: list[Record]) -> str:
    """All cells as Markdown."""
    rows = with_correlations(records)
    sellers = [
        Column(f"p{p + 1}", field(f"share {p + 1}"), 0) for p in range(len(PROFILES))
    ]
    agreement = [
        Column(f"{letter} {words}", field(f"{kind} {name}"))
        for name, words in REFERENCES.items()
        for letter, kind in (("ρ", "rho"), ("Spearman", "ranks"))
    ]
    cost = [
        Column("off", field("off"), -1),
        Column("Gini", field("gini"), 0),
        Column("seconds", field("seconds"), 0, digits=1),
        Column("processor seconds", field("cell_cpu_seconds"), 0, digits=1),
    ]
    off = max(record["off_from_1"] for record in records)
    n_seeds = len({record["seed"] for record in records})
    parts = [
        "# Table `market`: what five sellers' rows are worth to a buyer",
        LEGEND.format(n_seeds=n_seeds, off=off),
        table(rows, [*sellers, *agreement, *cost], beside=[EXACT]),
        *_references(records),
        "## As the paper printed it",
        _printed(),
        ON_PRINTED,
        *_protocol(),
    ]
    return "\n\n".join(parts)


def _references(records: list[Record]) -> list[str]:
    truth = [record for record in records if record["method"] == EXACT]
    if not truth:
        return []
    rows = [
        {
            "reference": words, "sum": 100 * sum(record[name]),
            "gini": gini(shares(np.array(record[name]))),
            **{f"p{p + 1}": 100 * one for p, one in enumerate(record[name])},
        }
        for name, words in REFERENCES.items() for record in truth
    ]  # fmt: skip
    names = [f"p{p + 1}" for p in range(len(PROFILES))]
    columns = [Column(name, field(name), 0, digits=2) for name in (*names, "sum")]
    columns.append(Column("Gini", field("gini"), 0))
    paid = 100 * float(np.mean([record["all_sellers"] for record in truth]))
    drop = 100 * float(np.max([np.abs(record["leave_one_out"]) for record in truth]))
    return [
        "## References: points of balanced accuracy on the test rows",
        ON_REFERENCES.format(paid=paid, drop=drop),
        table(rows, columns, by="reference"),
        "## Profiles, reached (asked)",
        _profiles(truth),
    ]


def _profiles(truth: list[Record]) -> str:
    lines = ["| seller | rows | high income, % | female, % | median age | levels |"]
    lines.append("|---|" + "--:|" * 5)
    for p, asked in enumerate(PROFILES):
        drawn = [record["profiles"][p] for record in truth]
        shown = [
            f"{np.mean([one[name] for one in drawn]):.{digits}f} ({wanted:,})"
            for (name, wanted), digits in zip(
                vars(asked).items(), (0, 1, 1, 0, 0), strict=True
            )
        ]
        lines.append(f"| p{p + 1} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _printed() -> str:
    lines = ["| method | " + " | ".join(f"p{p + 1}" for p in range(len(PROFILES)))]
    lines[0] += " | sum | ρ | Gini | minutes |"
    lines.append("|---|" + "--:|" * (len(PROFILES) + 4))
    for name, (share, rho, spread, minutes) in PRINTED.items():
        cells = [*(f"{one:.2f}" for one in (*share, sum(share), rho, spread)), f"{minutes}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _protocol() -> list[str]:
    import hcdv.bench.market as protocol

    return ["## Protocol", (protocol.__doc__ or "").partition("\n\n")[2].strip()]


def figure(records: list[Record], folder: Path) -> list[Path]:
    """Shares of every seller by method, beside those by exact Shapley values."""
    need("matplotlib", extra="bench", what="drawing a table")
    from matplotlib.figure import Figure

    truth = [r for r in records if r["method"] == EXACT]
    names = [n for n in METHODS if any(r["method"] == n for r in records)]
    if not names:
        return []
    drawn = Figure(figsize=(2.0 * len(names), 2.9), layout="constrained")
    panels = drawn.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for panel, name in zip(panels, names, strict=True):
        own = np.array([r["share"] for r in records if r["method"] == name])
        _bars(panel, own, name)
        if truth:
            known = [shares(np.array(r["exact"])) for r in truth]
            panel.plot(
                np.arange(1, len(PROFILES) + 1), np.mean(known, axis=0), "D", color="black",
                markersize=4, label="exact Shapley,\ntest rows",
            )  # fmt: skip
    panels[0].set_ylabel("share of the payoff")
    marks, labels = panels[0].get_legend_handles_labels()
    drawn.legend(marks, labels, loc="outside lower center", ncols=2, fontsize=8)
    path = folder / "market.png"
    drawn.savefig(path, dpi=150)
    return [path]


def _bars(panel: Any, own: Any, name: str) -> None:
    at = np.arange(1, own.shape[1] + 1)
    spread = own.std(axis=0, ddof=1) if len(own) > 1 else np.zeros(len(at))
    panel.bar(
        at, own.mean(axis=0), yerr=spread, color="#8fb4d9", capsize=2, label="mean share"
    )
    panel.set_title(name, fontsize=9)
    panel.set_xticks(at, [f"p{p}" for p in at], fontsize=8)
    panel.spines[["top", "right"]].set_visible(False)
