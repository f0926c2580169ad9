"""How much the default depends on each of its settings, on rows kept for choosing them.

    python benchmarks/sensitivity.py --data FOLDER [--seeds 5 6 7 8 9] [-o FILE]

The draws of table `opendataval` with other seeds: 1,000 rows and 100 validation rows of three
sets, 5 and 15 % wrong labels in both. One setting is changed at a time. `f1`: wrong labels
found by two clusters of the values; `removal`: test accuracy without the best rows (lower is
better); `addition`: of the worst rows alone (lower); `kept`: trained on `select(0.3)`;
`surplus`: M(D) − M(∅); `stderr`: mean standard error of the values over their spread.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from speed import command

from hcdv.bench import methods
from hcdv.bench.detection import cluster_f1
from hcdv.bench.opendataval import RATES, SETS, accuracy, draw
from hcdv.bench.provenance import provenance
from hcdv.valuation.utility import LeastSquares

HERE = Path(__file__).resolve().parent
KEPT = 0.3
# name → what is changed, the default first; lists of settings of the estimator
SWEEPS: dict[str, dict[str, dict[str, Any]]] = {
    "κ": {str(k): {"consistency_weight": k} for k in (32.0, 0.0, 4.0, 8.0, 16.0, 64.0)},
    "λ": {str(k): {"dispersion_weight": k} for k in (0.1, 0.0, 0.3, 1.0)},
    "ρ/n": {str(r): {"utility": LeastSquares(ridge=r)} for r in (0.03, 0.003, 0.01, 0.1)},
    "probe": {
        "kernel 128": {}, "linear": {"utility": "linear"},
        "kernel 256": {"utility": LeastSquares(n_features=256)},
    },
    "contexts": {str(t): {"n_contexts": t} for t in (200, 48, 96, 400)},
    "leaf size": {str(m): {"leaf_size": m} for m in (64, 16, 32, 128)},
    "branching": {str(b): {"branching": b} for b in (8, 4, 16, 32, "flat")},
}  # fmt: skip
COLUMNS = ("f1", "removal", "addition", "kept", "surplus", "stderr")


def measured(
    data: str, rate: float, seed: int, folder: Path | None, settings: dict
) -> dict:
    case = draw(data, rate, seed, folder)
    model, _ = methods.fitted(case.problem, **settings)
    values, n = model.values_, len(case.problem.y)
    order, k = np.argsort(values, kind="stable"), round(rate * n)
    return {
        "f1": cluster_f1(values, case.wrong),
        "removal": accuracy(case, order[: n - k]),
        "addition": accuracy(case, order[:k]),
        "kept": accuracy(case, model.select(KEPT)),
        "surplus": model.run_.valuation.surplus["utility"],
        "stderr": float(model.stderr_.mean() / values.std()),
    }


def swept(seeds: list[int], folder: Path | None) -> list[dict[str, Any]]:
    draws = [(data, rate, seed) for data in SETS for rate in RATES for seed in seeds]
    default: dict[tuple, dict] = {}
    rows: list[dict[str, Any]] = []
    for name, choices in SWEEPS.items():
        for number, (choice, settings) in enumerate(choices.items()):
            found = []
            for of in draws:
                if number == 0 and of in default:  # the default is in every sweep
                    found.append(default[of])
                    continue
                found.append(measured(*of, folder, settings))
                if number == 0:
                    default[of] = found[-1]
            rows.append({"setting": name, "choice": choice, "is_default": number == 0})
            for column in COLUMNS:
                rows[-1][column] = float(np.mean([one[column] for one in found]))
            for data in SETS:
                of_set = [f for f, of in zip(found, draws, strict=True) if of[0] == data]
                rows[-1][f"removal {data}"] = float(np.mean([f["removal"] for f in of_set]))
                rows[-1][f"f1 {data}"] = float(np.mean([f["f1"] for f in of_set]))
            print(name, choice, {c: round(rows[-1][c], 4) for c in COLUMNS}, flush=True)
    return rows


def figure(rows: list[dict[str, Any]], path: Path) -> None:
    """A panel a setting: what each choice does to F1, removal and addition."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = {"f1": "F1 of wrong labels ↑", "removal": "removal ↓", "addition": "addition ↓"}
    fig, axes = plt.subplots(
        len(shown), len(SWEEPS), figsize=(2.1 * len(SWEEPS), 6), sharey="row"
    )
    for column, name in enumerate(SWEEPS):
        of = [row for row in rows if row["setting"] == name]
        if all(_is_number(row["choice"]) for row in of):
            of.sort(key=lambda row: float(row["choice"]))
        for axis, (what, title) in zip(axes[:, column], shown.items(), strict=True):
            heights = [row[what] for row in of]
            axis.plot(range(len(of)), heights, color="0.7", zorder=1)
            colours = ["C1" if row["is_default"] else "C0" for row in of]
            axis.scatter(range(len(of)), heights, c=colours, s=28, zorder=2)
            axis.set_xticks(range(len(of)), [row["choice"] for row in of], rotation=60)
            axis.margins(x=0.15)
            axis.grid(axis="y", alpha=0.3)
            if column == 0:
                axis.set_ylabel(title)
        axes[0, column].set_title(name)
        for axis in axes[:-1, column]:
            axis.tick_params(labelbottom=False)
    fig.tight_layout()
    fig.savefig(path, dpi=110)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="or the folder HCDV_DATA names")
    parser.add_argument("--seeds", type=int, nargs="+", default=[5, 6, 7, 8, 9])
    parser.add_argument(
        "-o", "--out", type=Path, default=HERE / "results" / "sensitivity.json"
    )
    args = parser.parse_args()
    rows = swept(args.seeds, args.data)
    held = {"provenance": provenance(command()), "rows": rows}
    args.out.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    figure(rows, args.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
