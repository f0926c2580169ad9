"""Which probe and which ρ: the choices behind the defaults, measured.

    python benchmarks/probes.py --data FOLDER [--rows 1000] [--seeds 3] [-o FILE]

A tenth of the training labels, and of 100 validation labels, is drawn anew among the other
classes. AUROC: of a score as a sign of a flipped training label. `utility`: the part M of the
values; `doubt`: the chance that the label is wrong; `sd`: standard error of the sum of the
flat values before it is corrected, over the surplus.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from encoders import data_sets
from sklearn.metrics import roc_auc_score
from speed import command

from hcdv import HCDV
from hcdv.bench.noise import flipped
from hcdv.bench.provenance import provenance
from hcdv.valuation.utility import LeastSquares

N_VAL, RATE = 100, 0.1
PROBES = {
    "linear": LeastSquares(features="linear"),
    "fourier 128": LeastSquares(features="fourier", n_features=128),
    "fourier 256": LeastSquares(features="fourier", n_features=256),
    "fourier 512": LeastSquares(features="fourier", n_features=512),
    "kernel 64": LeastSquares(n_features=64),
    "kernel 128": LeastSquares(),
    **{f"kernel 128, ρ = {r} n": LeastSquares(ridge=r) for r in (0.001, 0.003, 0.01, 0.1)},
}


def take(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def measured(X, y, n_rows: int, seed: int, utility: LeastSquares) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[: n_rows + N_VAL]
    n_classes = int(y.max()) + 1
    train, val = rows[:n_rows], rows[n_rows:]
    y_train, wrong = flipped(y[train], n_classes, RATE, rng)
    y_val, _ = flipped(y[val], n_classes, RATE, rng)
    v = HCDV(utility=utility, random_state=seed).fit(
        take(X, train), y_train, take(X, val), y_val
    )
    found = v.run_.valuation
    clean = ~wrong
    return {
        "utility": roc_auc_score(clean, v.parts_["utility"]),
        "doubt": roc_auc_score(wrong, v.suspects().sort_values("row")["probability"]),
        "values": roc_auc_score(clean, v.values_),
        "surplus": found.surplus["utility"],
        "sd": v.checks_["stderr_before_correction"] / abs(found.surplus["utility"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="or the folder HCDV_DATA names")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "-o", "--out", type=Path, default=Path(__file__).parent / "results" / "probes.json"
    )
    args = parser.parse_args()
    cells = []
    print("| set | probe | surplus M | sd | AUROC utility | doubt | values |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, X, y in data_sets(args.data):
        for probe, utility in PROBES.items():
            runs = [measured(X, y, args.rows, seed, utility) for seed in range(args.seeds)]
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            cells.append({"set": name, "probe": probe, **mean})
            shown = [
                f"{mean[k]:.3f}" for k in ("surplus", "sd", "utility", "doubt", "values")
            ]
            print("| " + " | ".join([name, probe, *shown]) + " |", flush=True)
    args.out.write_text(
        json.dumps({"provenance": provenance(command()), "cells": cells}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
