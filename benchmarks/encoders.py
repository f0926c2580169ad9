"""What each encoder is worth on real data: probe accuracy, and wrong labels found.

    python benchmarks/encoders.py --data FOLDER [--rows 2000] [--seeds 3] [--also mlp conv]

Training labels are flipped at random (10 %); an encoder is fitted on them, its vectors
are scaled to unit length, and a ridge probe is fitted on top. `accuracy`: of the probe on
clean test rows. `AUROC`: of the leave-one-out margin as a sign of a flipped label.
`cross-fitted`: each row is scored in the space of an encoder that has not seen its label.
`less PCA`: paired by seed, ± one standard error; AUROC cross-fitted where there is one.

    python benchmarks/encoders.py --data FOLDER --scaling

PCA of the columns as they are and standardised, on sets of both kinds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.metrics import roc_auc_score

from hcdv.bench.datasets import NAMES, load
from hcdv.bench.noise import flipped
from hcdv.embedding.encoders import Encoder, make_encoder
from hcdv.embedding.folds import fold_encoders
from hcdv.embedding.pca import PCAEncoder, shares_scale
from hcdv.embedding.tables import Rows, TableEncoder, read_rows

N_FOLDS = 5
RIDGES = 10.0 ** np.arange(-2, 4)


def data_sets(folder: Path | None) -> Iterator[tuple[str, Any, NDArray[np.intp]]]:
    for name in NAMES[1:]:  # without digits
        data = load(name, folder)
        yield name, data.X, data.y


def encoders(rows: Rows, also: list[str]) -> dict[str, Encoder]:
    names = ["identity", "pca", "linear", "auto"]
    names += [name for name in also if name != "conv" or rows.kind == "image"]
    return {name: make_encoder(name, rows) for name in names}


def measured(
    encoder: Encoder,
    X: Any,
    y: NDArray[np.intp],
    X_test: Any,
    y_test: NDArray[np.intp],
    is_flipped: NDArray[np.bool_],
    rng: np.random.Generator,
) -> dict[str, float]:
    """Accuracy on clean test rows; AUROC of flips, in sample and cross-fitted."""
    encoder.fit(X, y, rng)
    Z, Z_test = unit(encoder.transform(X)), unit(encoder.transform(X_test))
    margin, weights = loo_margin(Z, y)
    accuracy = float((np.argmax(Z_test @ weights, axis=1) == y_test).mean())
    found = {"accuracy": accuracy, "AUROC": roc_auc_score(is_flipped, -margin)}
    if encoder.supervised:
        folds = rng.permutation(len(y)) % N_FOLDS
        honest = np.empty(len(y))
        for k, fitted in enumerate(fold_encoders(encoder, X, y, folds, rng)):
            margin, _ = loo_margin(unit(fitted.transform(X)), y)
            honest[folds == k] = margin[folds == k]
        found["cross-fitted"] = roc_auc_score(is_flipped, -honest)
    return found


def loo_margin(Z: Any, y: NDArray[np.intp]) -> tuple[Any, Any]:
    """Leave-one-out score of the own label less the best other; weights of all rows."""
    target = np.eye(int(y.max()) + 1)[y] - 1 / (int(y.max()) + 1)
    power, turn = eigh(Z.T @ Z)
    turned, moment = Z @ turn, turn.T @ (Z.T @ target)
    best: tuple[float, Any, Any] = (np.inf, None, None)
    for ridge in RIDGES:  # chosen by the leave-one-out error itself
        inverse = 1 / (np.maximum(power, 0) + ridge)
        leverage = (turned**2) @ inverse
        weights = inverse[:, None] * moment
        residual = (target - turned @ weights) / (1 - leverage)[:, None]
        error = float((residual**2).mean())
        if error < best[0]:
            best = (error, target - residual, turn @ weights)
    scores = best[1].copy()
    own = scores[np.arange(len(y)), y].copy()
    scores[np.arange(len(y)), y] = -np.inf
    return own - scores.max(axis=1), best[2]


def unit(Z: Any) -> Any:
    Z = np.asarray(Z, dtype=np.float64)
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    unit_rows = Z / np.maximum(length, 1e-12)
    return np.column_stack([unit_rows, np.ones(len(Z))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="or the folder HCDV_DATA names")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=10)  # settings: chosen on 0, 1
    parser.add_argument("--only", nargs="+", help="names of data sets; all if not given")
    parser.add_argument("--also", nargs="+", default=[], choices=["mlp", "conv"])
    parser.add_argument("--scaling", action="store_true")
    given = parser.parse_args()
    if given.scaling:
        scaling_table(given)
        return
    print("| data | encoder | d | accuracy | less PCA | AUROC | cross-fitted | less PCA |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, X, y in data_sets(given.data):
        if given.only and name not in given.only:
            continue
        found: dict[str, list[dict[str, float]]] = {}
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            for encoder, measures in one_run(X, np.asarray(y), given, seed).items():
                found.setdefault(encoder, []).append(measures)
        for encoder, runs in found.items():
            print(f"| {name} | {encoder} | {_cells(runs, found['pca'])} |", flush=True)


def one_run(X: Any, y: Any, given: argparse.Namespace, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    n_train = min(given.rows, len(y) // 2)
    train, test = order[:n_train], order[n_train : n_train + 2000]
    take = (lambda at: X.iloc[at]) if hasattr(X, "iloc") else (lambda at: X[at])
    rows, test_rows = read_rows(take(train)), read_rows(take(test))
    table = TableEncoder().fit(rows)
    seen, unseen = table.transform(rows), table.transform(test_rows)
    noisy, is_flipped = flipped(y[train].astype(np.intp), int(y.max()) + 1, 0.1, rng)
    out: dict[str, Any] = {}
    for name, encoder in encoders(rows, given.also).items():
        measures = measured(encoder, seen, noisy, unseen, y[test], is_flipped, rng)
        out[name] = measures | {"d": encoder.transform(seen[:5]).shape[1]}
    return out


def _cells(runs: list[dict[str, float]], reference: list[dict[str, float]]) -> str:
    honest = "cross-fitted" if "cross-fitted" in runs[0] else "AUROC"
    cells = [f"{runs[0]['d']:.0f}", _mean(runs, "accuracy")]
    cells += [_less(runs, "accuracy", reference, "accuracy"), _mean(runs, "AUROC")]
    cells.append(_mean(runs, honest) if honest == "cross-fitted" else "")
    return " | ".join([*cells, _less(runs, honest, reference, "AUROC")])


def _mean(runs: list[dict[str, float]], key: str) -> str:
    return f"{np.mean([run[key] for run in runs]):.3f}"


def _less(
    runs: list[dict[str, float]], key: str, reference: list[dict[str, float]], other: str
) -> str:
    if runs is reference:
        return ""
    gains = [run[key] - base[other] for run, base in zip(runs, reference, strict=True)]
    error = np.std(gains, ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else np.nan
    return f"{np.mean(gains):+.3f} ± {error:.3f}"


def scaling_sets(folder: Path | None) -> Iterator[tuple[str, Any, NDArray[np.intp]]]:
    for name in ("digits", "iris", "breast_cancer", "wine"):
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        yield name.replace("_", " "), X, y
    for name, X, y in data_sets(folder):
        if name == "adult":
            numbers = X.select_dtypes("number").to_numpy(float)
            yield "adult, numeric columns", numbers, y
        else:
            yield name, X.reshape(len(X), -1).astype(float), y


def scaling_table(given: argparse.Namespace) -> None:
    """Spread of the columns' ranges, and PCA with and without standardising."""
    print("| data | range, 90th : 10th column | as they are | standardised | taken |")
    print("| --- | --- | --- | --- | --- |")
    for name, X, y in scaling_sets(given.data):
        reach = np.ptp(X[:4096], axis=0)
        low, high = np.quantile(reach[reach > 0], [0.1, 0.9])
        cells = [f"{high / low:.1f}"]
        for standardise in (False, True):
            found = [
                _scaled_run(X, y, standardise, given.rows, given.first_seed + k)
                for k in range(given.seeds)
            ]
            cells.append(f"{_mean(found, 'accuracy')} / {_mean(found, 'AUROC')}")
        taken = "as they are" if shares_scale(X) else "standardised"
        print(f"| {name} | {' | '.join(cells)} | {taken} |", flush=True)


def _scaled_run(
    X: Any, y: Any, standardise: bool, n_rows: int, seed: int
) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    n_train = min(n_rows, len(y) // 2)
    train, test = order[:n_train], order[n_train : n_train + 2000]
    noisy, is_flipped = flipped(y[train].astype(np.intp), int(y.max()) + 1, 0.1, rng)
    encoder = PCAEncoder(64, standardise=standardise)
    return measured(encoder, X[train], noisy, X[test], y[test], is_flipped, rng)


if __name__ == "__main__":
    main()
