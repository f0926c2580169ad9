"""The JSON of a benchmark as the Markdown table that the documentation shows.

python benchmarks/tables.py detection|probes|speed|peers [FILE]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).resolve().parent / "results"


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
    columns = ["surplus", "sd", "utility", "margin", "votes", "values"]
    mean = cells.groupby("probe", sort=False)[columns].mean().reset_index()
    mean[columns] = mean[columns].map("{:.3f}".format)
    return mean


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
    return pd.DataFrame(found["rows"])


def main() -> None:
    which = sys.argv[1]
    path = Path(sys.argv[2]) if len(sys.argv) > 2 else RESULTS / f"{which}.json"
    print(markdown(globals()[which](json.loads(path.read_text()))))


if __name__ == "__main__":
    main()
