"""The augmentation cells as a page: accuracy with every slice, and what slices are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hcdv.bench.augment import CONTROL, METHODS, SLICE, SLICES
from hcdv.bench.augmentations import KINDS
from hcdv.bench.cells import Record
from hcdv.bench.pages import Column, Number, field, table
from hcdv.errors import need

LEGEND = (
    "Mean ± standard deviation over {seeds} seeds; {originals:,} originals, {made:,} "
    "candidates, slices of {cut:,}. Test accuracy in %; the best in bold. `originals` is a "
    "slice of further originals instead of candidates, `random` tells how far apart slices "
    "of equal worth come out."
)
ON_PRINTED = (
    "The paper prints no table here, and its figures are not in its source. Its text says: "
    "HCDV's top 1,000 have 2.8 points more than its bottom 1,000, and 0.9 to 1.2 more than "
    "those of MCDS and Group Shapley; 42 % of them lie in leaves without originals; all 10 "
    "classes are there; 51 % are from diffusion, 23 % affine, 7 % cutout."
)


def page(records: list[Record]) -> str:
    """All cells as Markdown."""
    first = records[0]
    seeds = {record["seed"] for record in records}
    made = first["n_candidates"]
    legend = LEGEND.format(
        seeds=len(seeds), originals=first["n_originals"], made=made, cut=round(SLICE * made)
    )
    ranked = [record for record in records if record["method"] != CONTROL]
    parts = ["# Table `augment`: which made images are worth training on", legend]
    for how, said in (
        ("added", "added once"),
        ("amplified", "amplified to 30 % of the rows"),
    ):
        if not any(f"{how} top" in record for record in records):
            continue
        parts += [f"## The slice {said}", table(records, _accuracy(how), beside=[CONTROL])]
    return "\n\n".join(
        [
            *parts,
            "## Cost",
            table(records, _cost()),
            "## What the top slice is made of",
            table(ranked, _make_up("top")),
            "## What the bottom slice is made of",
            table(ranked, _make_up("bottom")),
            "## As the paper printed it",
            ON_PRINTED,
            *_protocol(),
        ]
    )


def _percent(name: str) -> Number:
    return lambda record: 100 * record[name] if name in record else None


def _accuracy(how: str) -> list[Column]:
    def lead(record: Any) -> float | None:
        pair = (record.get(f"{how} top"), record.get(f"{how} bottom"))
        return None if None in pair else 100 * (pair[0] - pair[1])

    columns = [Column(name, _percent(f"{how} {name}"), name == "top", 2) for name in SLICES]
    return [*columns, Column("top − bottom", lead, 0, 2)]


def _cost() -> list[Column]:
    minutes = [
        Column(f"training minutes, {how}", field(f"minutes {how} top"), 0, 2)
        for how in ("added", "amplified")
    ]
    return [Column("valuation seconds", field("seconds"), 0, 1), *minutes]


def _make_up(name: str) -> list[Column]:
    columns = [Column(f"{kind}, %", _percent(f"{kind} {name}"), 0, 1) for kind in KINDS]
    return [
        *columns,
        Column("classes", field(f"classes {name}"), 0, 1),
        Column("overlap, %", _percent(f"overlap {name}"), 0, 1),
        Column("originals in the leaf, %", _percent(f"originals near {name}"), 0, 1),
    ]


def _protocol() -> list[str]:
    import hcdv.bench.augment as protocol

    return ["## Protocol", (protocol.__doc__ or "").partition("\n\n")[2].strip()]


def figure(records: list[Record], folder: Path, stem: str = "augment") -> list[Path]:
    """Accuracy with every slice, added and amplified, and the mix of the top slice."""
    need("matplotlib", extra="bench", what="drawing a table")
    from matplotlib.figure import Figure

    names = [name for name in METHODS if any(r["method"] == name for r in records)]
    if not names:
        return []
    ways = [how for how in ("added", "amplified") if f"{how} top" in records[0]]
    drawn = Figure(figsize=(4.0 * len(ways) + 3.0, 3.6), layout="constrained")
    *panels, mix = drawn.subplots(1, len(ways) + 1)
    for panel, how in zip(panels, ways, strict=True):
        _dots(panel, records, names, how)
        panel.set_title(f"slice {how}", fontsize=10)
    panels[0].set_ylabel("test accuracy, %")
    marks, labels = panels[0].get_legend_handles_labels()
    drawn.legend(marks, labels, loc="outside lower left", ncols=2, fontsize=8)
    bottom = np.zeros(len(names))
    for kind in KINDS:
        height = [100 * _mean(records, name, f"{kind} top") for name in names]
        mix.bar(names, height, bottom=bottom, label=kind, width=0.7)
        bottom += height
    mix.set_title("mix of the top slice, %", fontsize=10)
    marks, labels = mix.get_legend_handles_labels()
    drawn.legend(marks, labels, loc="outside lower right", ncols=2, fontsize=8)
    for panel in (*panels, mix):
        panel.tick_params(axis="x", rotation=40, labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    path = folder / f"{stem}.png"
    drawn.savefig(path, dpi=150)
    return [path]


def _mean(records: list[Record], method: str, name: str) -> float:
    return float(np.mean([r[name] for r in records if r["method"] == method]))


def _dots(panel: Any, records: list[Record], names: list[str], how: str) -> None:
    marks = {
        "top": ("^", "#1b7837"),
        "middle": ("o", "#999999"),
        "bottom": ("v", "#b2182b"),
    }
    for name, (mark, colour) in marks.items():
        height = [100 * _mean(records, method, f"{how} {name}") for method in names]
        panel.plot(names, height, mark, color=colour, label=f"{name} slice")
    if any(r["method"] == CONTROL for r in records):
        level = 100 * _mean(records, CONTROL, f"{how} top")
        panel.axhline(level, linestyle="--", color="black", linewidth=0.8, label=CONTROL)
