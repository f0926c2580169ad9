"""Wrong labels found: exact KNN-Shapley against HCDV's values and its suspects.

    python benchmarks/detection.py [--data FOLDER] [--only digits bbc] [--seeds 3] [-o FILE]

Labels of the training rows and of 100 validation rows are flipped at the same rate:
`uniform` to any other class, `pair` to the next one. KNN-Shapley and HCDV see the same unit
vectors, labels and validation rows. AUROC: of each score as a sign of a flipped label.
Within classes: the mean of the AUROC among the rows of each given label, so that finding
the rare class counts for nothing. The folder may be named by HCDV_DATA instead.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from speed import command

from hcdv import HCDV
from hcdv.bench.datasets import NAMES, DataSet, load
from hcdv.bench.noise import flipped
from hcdv.bench.provenance import provenance
from hcdv.functional import knn_shapley

HERE = Path(__file__).resolve().parent
N_VAL = 100
RATES = (0.05, 0.10, 0.20)
N_ROWS = {"digits": 1600, "fashion-mnist": 6000}  # 3,000 of the others


def within_classes(wrong: NDArray[np.bool_], score: Any, given: NDArray[np.intp]) -> float:
    """Mean AUROC among the rows of each given label that has right and wrong ones."""
    of_class = [given == c for c in np.unique(given)]
    both = [rows for rows in of_class if 0 < wrong[rows].sum() < rows.sum()]
    return float(np.mean([roc_auc_score(wrong[rows], score[rows]) for rows in both]))


def one_run(data: DataSet, rate: float, kind: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, round(100 * rate), kind == "pair"])
    order = rng.permutation(len(data.y))
    n = min(N_ROWS.get(data.name, 3000), len(data.y) - N_VAL)
    X, y = data.rows(order[:n])
    X_val, y_val = data.rows(order[n : n + N_VAL])
    given, wrong = flipped(y, data.n_classes, rate, rng, kind)
    y_val, _ = flipped(y_val, data.n_classes, rate, rng, kind)
    began = time.perf_counter()
    v = HCDV(random_state=seed, n_jobs=1).fit(X, given, X_val, y_val)
    seconds = time.perf_counter() - began
    case = v.run_.case  # rows keep their order where no ids are given
    vectors = (v.embedding_, given, case.judges[0].points.Z, y_val)
    doubted = v.suspects().sort_values("row")["score"].to_numpy()
    scores = {
        "knn5": -knn_shapley(*vectors, 5), "knn10": -knn_shapley(*vectors, 10),
        "values": -v.values_, "suspects": doubted,
    }  # fmt: skip
    found = {name: float(roc_auc_score(wrong, score)) for name, score in scores.items()}
    found |= {
        f"{name} within": within_classes(wrong, score, given)
        for name, score in scores.items()
    }
    return {"seed": seed, "n_rows": n, "seconds": round(seconds, 2), **found}


def runs(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name in given.only or NAMES:
        data = load(name, given.data)
        # of two classes both kinds are one
        for kind in ("uniform", "pair") if data.n_classes > 2 else ("uniform",):
            for rate in RATES:
                for seed in range(given.seeds):
                    found = one_run(data, rate, kind, seed)
                    yield {"data": name, "noise": kind, "rate": rate, **found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--only", nargs="+", choices=NAMES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results/detection.json")
    given = parser.parse_args()
    about, found = provenance(command()), []
    for run in runs(given):
        found.append(run)
        print(json.dumps(run), file=sys.stderr, flush=True)
    given.out.write_text(json.dumps({"provenance": about, "runs": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
