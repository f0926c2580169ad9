"""The JSON of a benchmark as the Markdown table that the documentation shows.

python benchmarks/tables.py        writes the tables anew into the pages of docs/

A page marks where a table goes with `<!-- table: NAME -->`, and ends it with
`<!-- end of table -->`; NAME.json is in benchmarks/results. A test compares the two.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

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


TABLES = {
    "explorer": explorer,
    "scale": scale,
    "scale-parts": scale_parts,
    "detection": detection,
    "probes": probes,
    "sensitivity": sensitivity,
    "speed": speed,
    "peers": peers,
}


def made(found: dict) -> str:
    """The command and commit behind a table."""
    about = found.get("provenance", found)
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
