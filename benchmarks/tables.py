"""The JSON of a benchmark as the Markdown table that the documentation shows.

python benchmarks/tables.py        writes the tables anew into the pages of docs/

A page marks where a table goes with `<!-- table: NAME -->`, and ends it with
`<!-- end of table -->`; NAME.json is in benchmarks/results. A test compares the two.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PLACE = re.compile(
    r"(?P<head><!-- table: (?P<name>[a-z-]+) -->\n).*?(?P<tail><!-- end of table -->)",
    re.DOTALL,
)


def markdown(frame: pd.DataFrame) -> str:
    head = [" | ".join(map(str, frame.columns)), " | ".join(["---"] * frame.shape[1])]
    body = [" | ".join(map(str, row)) for row in frame.itertuples(index=False)]
    return "\n".join(f"| {line} |" for line in [*head, *body])


def detection(found: dict) -> pd.DataFrame:
    """Mean over seeds; the better of the two neighbours' columns."""
    runs = pd.DataFrame(found["runs"])
    columns = [
        "knn",
        "values",
        "suspects",
        "knn within",
        "values within",
        "suspects within",
    ]
    for end in ("", " within"):
        runs["knn" + end] = runs[["knn5" + end, "knn10" + end]].max(axis=1)
    mean = runs.groupby(["data", "noise", "rate"], sort=False)[columns].mean().reset_index()
    mean["rate"] = mean["rate"].map("{:.0%}".format)
    mean[columns] = mean[columns].map("{:.3f}".format)
    return mean


def probes(found: dict) -> pd.DataFrame:
    """Mean over the sets, a row a probe."""
    cells = pd.DataFrame(found["cells"])
    columns = ["surplus", "sd", "utility", "doubt", "values"]
    mean = cells.groupby("probe", sort=False)[columns].mean().reset_index()
    mean[columns] = mean[columns].map("{:.3f}".format)
    return mean


def sensitivity(found: dict) -> pd.DataFrame:
    """A row a choice, the default first in each setting."""
    rows = pd.DataFrame(found["rows"])
    columns = ["f1", "removal", "addition", "kept", "surplus", "stderr"]
    rows[columns] = rows[columns].map("{:.3f}".format)
    rows["choice"] = rows["choice"].where(~rows["is_default"], "**" + rows["choice"] + "**")
    return rows[["setting", "choice", *columns]]


def speed(found: dict) -> pd.DataFrame:
    """A row a size."""
    rows = []
    for row in found["rows"]:
        stages = ("tree", "games", "points", "consistency", "all")
        seconds = {f"{stage} s": f"{row['seconds'][stage]:.2f}" for stage in stages}
        rows.append({
            "n": f"{row['n']:,}",
            "classes": row["classes"],
            "T": row["settings"]["T"],
            **seconds,
            "limit s": f"{row['limit_seconds']['all']:.2f}",
            "ratio": f"{row['ratio']['all']:.1f}",
            "data MB": f"{row['data_mb']:.0f}",
            "imports MB": f"{row['import_mb']:.0f}",
            "peak MB": f"{row['peak_mb']:.0f}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def peers(found: dict) -> pd.DataFrame:
    """A row a table and method, peers and this library."""
    return pd.DataFrame(found["rows"]).fillna("")


def scale(found: dict) -> pd.DataFrame:
    """A row a number of rows: CPU time by pass, and what it read, wrote and held."""
    rows = []
    for row in found["rows"]:
        passes = ("sample", "tree", "gather", "value", "games", "write")
        rows.append({
            "rows": f"{row['n']:,}",
            **{f"{name} s": f"{row['cpu_seconds'][name]:.1f}" for name in passes},
            "all CPU s": f"{row['cpu']:.0f}",
            "µs a row": f"{1e6 * row['cpu'] / row['n']:.1f}",
            "by the clock s": f"{row['wall']:.0f}",
            "load": row["load"],
            "commit": row["commit"],
            "peak MB": f"{row['peak_mb']:.0f}",
            "data MB": f"{row['data_mb']:.0f}",
            "read MB": f"{row['read_mb']:.0f}",
            "written MB": f"{row['written_mb']:.0f}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def scale_parts(found: dict) -> pd.DataFrame:
    """A row a part of the work, beside its limit."""
    return pd.DataFrame([
        {
            "part": row["part"],
            "CPU µs a row": f"{row['us_a_row']:.2f}",
            "operations a row": f"{row['flops']:,}",
            "bytes a row": f"{row['bytes']:,.0f}",
            "limit µs": f"{row['limit_us']:.2f}",
            "ratio": f"{row['ratio']:.1f}",
        }
        for row in found["rows"]
    ])  # fmt: skip


def living_latency(found: dict) -> pd.DataFrame:
    """A row a number of rows: CPU milliseconds of updates beside valuing all anew."""
    rows = []
    for row in found["rows"]:
        cpu = {name: 1e3 * one["cpu"] for name, one in row["took"].items()}
        rows.append({
            "live rows": f"{row['n']:,}",
            "one row": f"{cpu['one row']:.0f}",
            "1,500 rows": f"{cpu['batch']:.0f}",
            "and all values": f"{cpu['batch and values']:.0f}",
            "first after a fit": f"{cpu['first']:,.0f}",
            "forget 1 %, lazily": f"{cpu['forget']:,.0f}",
            "forget 1 %": f"{cpu['forget, refreshed']:,.0f}",
            "refresh": f"{cpu['refresh']:,.0f}",
            "fit anew": f"{cpu['full']:,.0f}",
            "fit over 1,500 rows": f"{cpu['full'] / cpu['batch']:.0f}×",
            "over these and all values": f"{cpu['full'] / cpu['batch and values']:.0f}×",
        })  # fmt: skip
    return pd.DataFrame(rows)


def living_memory(found: dict) -> pd.DataFrame:
    """A row a mark on the way."""
    return pd.DataFrame([
        {
            "rows kept": row["kept"],
            "updates": f"{row['updates']:,}",
            "live rows": f"{row['live']:,}",
            "MB": f"{row['bytes'] / 2**20:.1f}",
            "kB a live row": f"{row['bytes'] / row['live'] / 2**10:.2f}",
        }
        for row in found["rows"]
    ])  # fmt: skip


def living_folder(found: dict) -> pd.DataFrame:
    """A row a number of rows: what an update of a folder takes and writes."""
    return pd.DataFrame([
        {
            "live rows": f"{row['n']:,}",
            "open, CPU s": f"{row['took']['open']['cpu']:.2f}",
            "commit, CPU s": f"{row['took']['commit']['cpu']:.2f}",
            "state MB": f"{row['mb']['state']:.1f}",
            "values MB": f"{row['mb']['worth']:.1f}",
            "arrived rows MB": f"{row['mb']['rows']:.2f}",
        }
        for row in found["rows"]
    ])  # fmt: skip


def gaps(found: dict) -> pd.DataFrame:
    """A row a kind of rows added: mean gain over seeds, and its standard error."""
    runs = pd.DataFrame(found["rows"]).groupby("added", sort=False)
    columns = ["balanced_accuracy", "log_loss"]
    mean, error = runs[columns].mean(), runs[columns].sem()
    told = {
        name.replace("_", " "): [
            f"{100 * m:+.2f} ± {100 * e:.2f}"
            for m, e in zip(mean[name], error[name], strict=True)
        ]
        for name in columns
    }
    return pd.DataFrame(
        {"150 rows of": mean.index, **told, "seeds": runs.size().to_numpy()}
    )


def labels(found: dict) -> pd.DataFrame:
    """Mean over seeds: order, first and second look beside cleanlab, flags, and the rate."""
    rows = []
    for run in found["runs"]:
        row = {"data": run["data"], "noise": run["kind"], "rate": run["rate"], "seeds": 1}
        for how, name in (("auroc", "AUROC"), ("ap", "AP"), ("f1", "F1 flagged")):
            for who in ("cleanlab", "suspects", "twice"):
                row[f"{name} {who}"] = run[who][how]
        rows.append({**row, "estimated rate": run["noise"]["rate"]})
    runs = pd.DataFrame(rows)
    cells = runs.groupby(["data", "noise", "rate"], sort=False)
    mean = cells.mean().reset_index()
    mean["seeds"] = cells["seeds"].sum().to_numpy()
    mean["rate"] = mean["rate"].map("{:.0%}".format)
    mean["estimated rate"] = mean["estimated rate"].map("{:.1%}".format)
    scores = list(mean.columns[4:-1])
    mean[scores] = mean[scores].map("{:.3f}".format)
    return mean


def explorer(found: dict) -> pd.DataFrame:
    """A row a view, two columns a run: CPU of all threads, and the clock at its best."""
    views = list(dict.fromkeys(view for row in found["rows"] for view in row["views"]))
    columns: dict[str, list[str]] = {"view": views}
    for row in found["rows"]:
        about = f"{row['kind']}, {row['n']:,}"
        cells = [row["views"].get(view) for view in views]
        columns[f"{about}: first, CPU ms"] = [
            "" if each is None else f"{each['first_cpu']:,.0f}" for each in cells
        ]
        columns["then, CPU ms" + " " * (len(columns) // 2)] = [
            "" if each is None or "cpu" not in each else f"{each['cpu']:,.0f}"
            for each in cells
        ]
    return pd.DataFrame(columns).rename(columns=str.strip)


def stream(found: dict) -> pd.DataFrame:
    """A row a method: what a day's valuation takes, and the difference to full valuation."""
    from hcdv.bench.stream_page import FULL, with_interval

    cells = pd.DataFrame([cell["key"] | cell["found"] for cell in found["cells"]])
    cells = cells[cells["cpu"].notna()]  # cells of earlier versions tell no CPU seconds
    full = cells[cells["method"] == FULL].set_index("seed")
    rows = []
    for name, group in cells.groupby("method", sort=False):
        own, its = group.set_index("seed").align(full, join="inner", axis=0)
        gap = own["final_auc"] - its["final_auc"]
        mean_gap = own["auc"].map(np.mean) - its["auc"].map(np.mean)
        times = its["cpu"].map(sum) / own["cpu"].map(sum)
        days = own["cpu"].map(lambda cpu: 1e3 * np.mean(cpu[1:]))
        is_other = name != FULL and len(own) > 1
        rows.append({
            "method": name,
            "streams": len(own),
            "CPU s, ten days": f"{own['cpu'].map(sum).mean():.1f}",
            "CPU ms, a day from the 2nd": f"{days.mean():,.0f}",
            "CPU ms, last day": f"{1e3 * own['cpu'].map(lambda cpu: cpu[-1]).mean():,.0f}",
            "times less, ten days": with_interval(times, 1) if "incr" in name else "",
            "final AUC": f"{own['final_auc'].mean():.4f}",
            "less full, final": with_interval(gap, 4) if is_other else "",
            "less full, mean of days": with_interval(mean_gap, 4) if is_other else "",
        })  # fmt: skip
    return pd.DataFrame(rows)


TABLES = {
    "stream": stream,
    "living-latency": living_latency,
    "living-memory": living_memory,
    "living-folder": living_folder,
    "gaps": gaps,
    "explorer": explorer,
    "scale": scale,
    "scale-parts": scale_parts,
    "detection": detection,
    "labels": labels,
    "probes": probes,
    "sensitivity": sensitivity,
    "speed": speed,
    "peers": peers,
}


def made(found: dict) -> str:
    """The command and commit behind a table."""
    about = found.get("provenance") or (
        found["cells"][-1]["made"] if "cells" in found else found
    )
    return f"\nMade by `{about['command']}` at commit {about['commit']}.\n"


def with_tables(page: str) -> str:
    """A page with its tables written from the JSON."""

    def written(place: re.Match) -> str:
        found = json.loads((RESULTS / f"{place['name']}.json").read_text())
        table = markdown(TABLES[place["name"]](found))
        return f"{place['head']}\n{table}\n{made(found)}\n{place['tail']}"

    return PLACE.sub(written, page)


def main() -> None:
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if text != (new := with_tables(text)):
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
