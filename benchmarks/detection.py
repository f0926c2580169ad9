"""Wrong labels found: exact KNN-Shapley against HCDV's values and its suspects.

    python benchmarks/detection.py [--data FOLDER] [--only digits bbc] [--seeds 3] [-o FILE]

Labels of the training rows and of 100 validation rows are flipped at the same rate:
`uniform` to any other class, `pair` to the next one. KNN-Shapley and HCDV see the same unit
vectors, labels and validation rows. AUROC: of each score as a sign of a flipped label.
Within classes: the mean of the AUROC among the rows of each given label, so that finding
the rare class counts for nothing. Without --data only the set that scikit-learn brings runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from hcdv import HCDV
from hcdv.functional import knn_shapley

HERE = Path(__file__).resolve().parent
N_VAL = 100
RATES = (0.05, 0.10, 0.20)
NAMES = ("digits", "fashion-mnist", "bbc", "imdb", "cifar10", "adult")
COLUMNS = {
    "knn5": "KNN-Shapley K=5", "knn10": "K=10", "values": "HCDV values",
    "suspects": "HCDV suspects", "knn10 within": "K=10 in class",
    "values within": "values in class", "suspects within": "suspects in class",
}  # fmt: skip


def data_set(name: str, folder: Path) -> tuple[Any, NDArray[np.intp], int]:
    """Rows, labels and how many rows to value."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, y, 1600
    if name == "adult":
        adult = pd.read_parquet(folder / "adult.parquet")
        table = adult.drop(columns=["income", "split", "label"])
        return table, adult["label"].to_numpy().astype(np.intp), 3000
    if name == "fashion-mnist":
        from encoders import _idx

        images = _idx(folder / "fashion-mnist/train-images-idx3-ubyte.gz", 16)
        labels = _idx(folder / "fashion-mnist/train-labels-idx1-ubyte.gz", 8)
        return images.reshape(-1, 28, 28), labels.astype(np.intp), 6000
    file = {"cifar10": "cifar10_efficientnet_lite0_pca384"}.get(name, f"{name}_minilm")
    with np.load(folder / f"{file}.npz") as held:
        return held["emb"].astype(np.float32), held["label"].astype(np.intp), 3000


def flipped(
    y: NDArray[np.intp], rate: float, kind: str, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Labels of which exactly a share is wrong, and which those are."""
    n_classes = int(y.max()) + 1
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(rate * len(y)), replace=False)] = True
    shift = rng.integers(1, n_classes, len(y)) if kind == "uniform" else 1
    return np.where(wrong, (y + shift) % n_classes, y), wrong


def within_classes(wrong: NDArray[np.bool_], score: Any, given: NDArray[np.intp]) -> float:
    """Mean AUROC among the rows of each given label that has right and wrong ones."""
    of_class = [given == c for c in np.unique(given)]
    both = [rows for rows in of_class if 0 < wrong[rows].sum() < rows.sum()]
    return float(np.mean([roc_auc_score(wrong[rows], score[rows]) for rows in both]))


def one_run(X: Any, y: Any, n: int, rate: float, kind: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, round(100 * rate), kind == "pair"])
    order = rng.permutation(len(y))
    n = min(n, len(y) - N_VAL)
    train, judges = order[:n], order[n : n + N_VAL]
    take = (lambda at: X.iloc[at]) if hasattr(X, "iloc") else (lambda at: X[at])
    given, wrong = flipped(y[train], rate, kind, rng)
    y_val, _ = flipped(y[judges], rate, kind, rng)
    began = time.perf_counter()
    v = HCDV(random_state=seed, n_jobs=1).fit(take(train), given, take(judges), y_val)
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
    names = given.only or (NAMES if given.data else NAMES[:1])
    for name in names:
        X, y, n = data_set(name, given.data)
        kinds = ("uniform", "pair") if y.max() > 1 else ("uniform",)  # of two they are one
        for kind in kinds:
            for rate in RATES:
                for seed in range(given.seeds):
                    found = one_run(X, y, n, rate, kind, seed)
                    yield {"data": name, "noise": kind, "rate": rate, **found}


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    yield "| data | n | noise | " + " | ".join(COLUMNS.values()) + " |"
    yield "| --- " * (3 + len(COLUMNS)) + "|"
    frame = pd.DataFrame(found)
    for (name, n, noise, rate), part in frame.groupby(
        ["data", "n_rows", "noise", "rate"], sort=False
    ):
        cells = [f"{part[c].mean():.3f}" for c in COLUMNS]
        yield f"| {name} | {n:,} | {rate:.0%} {noise} | " + " | ".join(cells) + " |"


def circumstances(seeds: int) -> dict[str, Any]:
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=HERE, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    return {
        "commit": git("rev-parse", "HEAD"),
        "changed_since": git("status", "--porcelain", "--", "../src").splitlines(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "machine": {
            "system": platform.system(),
            "kind": platform.machine(),
            "cores": os.cpu_count(),
        },
        "n_val": N_VAL,
        "seeds": list(range(seeds)),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--only", nargs="+", choices=NAMES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--out", type=Path, help="JSON file to write")
    given = parser.parse_args()
    if given.data is None and set(given.only or ()) - {"digits"}:
        sys.exit("Sets other than digits need --data FOLDER.")
    about, found = circumstances(given.seeds), []
    for run in runs(given):
        found.append(run)
        print(json.dumps(run), file=sys.stderr, flush=True)
        if given.out:  # after every run: what is done is not lost
            given.out.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(about | {"runs": found}, indent=1)
            given.out.write_text(text + "\n", encoding="utf-8")
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
