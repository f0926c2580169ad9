"""Valuing the peers' own tables: seconds and wrong labels found, side by side.

    python benchmarks/against_peers.py [-o FILE]

Reads benchmarks/results/peers-speed.json (made by benchmarks/peers/time_peers.py: pyDVL and
OpenDataVal, one thread, logistic regression) and values the same rows here with the default
settings on one thread, and with few contexts and orders of a linear probe ("quick": 16 and
4 in place of 200 and 64). CPU seconds on both sides, since a shared machine stretches the wall's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from speed import command

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
from flipped import TABLES  # noqa: E402  the peers' own tables

from hcdv import HCDV  # noqa: E402
from hcdv.bench.provenance import provenance  # noqa: E402

QUICK = {"n_contexts": 16, "n_permutations": 4, "utility": "linear"}


def ours(table: dict, **settings) -> dict:
    """The fastest of three warm runs."""
    seconds = []
    for _ in range(4):
        began = time.process_time()
        v = HCDV(random_state=0, n_jobs=1, **settings).fit(
            table["X_train"], table["y_train"], table["X_val"], table["y_val"]
        )
        seconds.append(time.process_time() - began)
    score = -v.suspects().set_index("row")["score"].sort_index().to_numpy()
    return {"cpu": min(seconds[1:]), "values": v.values_, "suspects": score}


def found(score: np.ndarray, flipped: np.ndarray) -> dict:
    lowest = np.argsort(score, kind="stable")[: int(flipped.sum())]
    return {
        "AUROC": f"{roc_auc_score(~flipped, score):.3f}",
        "precision": f"{flipped[lowest].mean():.2f}",
    }


def _shown(number: float | None, digits: int) -> str:
    return "" if number is None else f"{number:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "peers.json")
    args = parser.parse_args()
    peers = json.loads((HERE / "results" / "peers-speed.json").read_text())
    rows = []
    for name, make in TABLES.items():
        table = make()
        mine, quick = ours(table), ours(table, **QUICK)
        for run, score, how in (
            (mine, "values", "values"),
            (mine, "suspects", "suspects"),
            (quick, "values", "values, quick"),
        ):
            cells = {"CPU s": f"{run['cpu']:.2f}", "times ours": "1", "times quick": ""}
            cells |= found(run[score], table["flipped"])
            rows.append({"table": name, "library": "hcdv", "method": how, **cells})
        for run in (run for run in peers["runs"] if run["data"] == name):
            cpu = run.get("cpu_seconds_for_all", run["cpu_seconds"])
            how = run.get("for_all_is", "measured")
            rows.append({
                "table": name,
                "library": run["peer"],
                "method": run["method"],
                "CPU s": f"{cpu:,.2f}" + ("" if how == "measured" else f" ({how})"),
                "times ours": f"{cpu / mine['cpu']:,.1f}",
                "times quick": f"{cpu / quick['cpu']:,.0f}",
                "AUROC": _shown(run.get("auroc"), 3),
                "precision": _shown(run.get("precision_at_flips"), 2),
            })  # fmt: skip
        print(*rows[-7:], sep="\n", flush=True)
    args.out.write_text(
        json.dumps({"provenance": provenance(command()), "rows": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
