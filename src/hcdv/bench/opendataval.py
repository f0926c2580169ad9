"""OpenDataVal's three tasks on its three embedding sets: wrong labels, removal, addition.

Protocol, as OpenDataVal 1.3.0 has it in code, and what it leaves open:

- 1,000 rows to train on, 100 validation rows, and clean test rows: 3,000 of CIFAR-10, 500 of
  the text sets. All are drawn anew for every seed; both rates flip labels of the same rows.
- Labels are flipped to any other class, exactly a share of them; validation labels at the
  same rate as those to train on (`mix_labels`).
- Detection: F1 of the lower of two clusters of the values (`noisy_detection`).
- Removal: test accuracy after the rows of highest value are gone; addition: of a model
  trained on the rows of lowest value alone (`remove_high_low`). Lower is better for both.
  The table shows the share that is also the noise rate; the JSON file holds others.
- The model is scikit-learn's LogisticRegression as it comes, refitted from scratch, and, as
  in OpenDataVal's wrapper, the most frequent class where a class is missing.
- Its embeddings are DistilBERT's and ResNet-50's; these are MiniLM's and, reduced to 384
  columns, EfficientNet's. Its published numbers are therefore not comparable.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from hcdv.bench import opendataval_page, players
from hcdv.bench.cells import Ask, Key, Record
from hcdv.bench.datasets import load
from hcdv.bench.detection import auroc, auroc_within, cluster_f1, found_by_share
from hcdv.bench.methods import METHODS, Floats, Problem
from hcdv.bench.noise import flipped
from hcdv.errors import DataError

SETS = {"bbc": 500, "imdb": 500, "cifar10": 3000}  # name → clean test rows
RATES = (0.05, 0.15)
N_TRAIN, N_VAL = 1000, 100
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # of the rows, removed or trained on
INSPECTED = tuple(np.linspace(0, 1, 21).round(2).tolist())

OURS = ("hcdv", "hcdv κ=0", "hcdv paper")
ENGINE = ("mcds", "banzhaf", "loo", "knn 10", "knn 100", "random")
PEERS = (
    "random", "loo", "data shapley", "beta shapley", "data banzhaf", "ame", "data-oob",
    "dvrl", "lava", "knn 10", "knn 100",
)  # fmt: skip
FAST_PEERS = ("data-oob", "knn 10", "knn 100")  # of a fast run
THEIRS = "odv "  # before the name of a method whose values OpenDataVal computed
PEER_VALUES = "peers-opendataval"  # .npz and .json, by benchmarks/peers


@dataclass(frozen=True)
class Drawn:
    """Rows of one set with wrong labels among those to train on and those to judge by."""

    problem: Problem
    wrong: NDArray[np.bool_]  # of the rows to train on
    X_test: NDArray[np.float32]
    y_test: NDArray[np.intp]

    @property
    def digest(self) -> str:
        """What a peer's values must have been computed for."""
        p = self.problem
        parts = (p.X, p.y, p.X_val, p.y_val)
        return sha256(
            b"".join(np.ascontiguousarray(a).tobytes() for a in parts)
        ).hexdigest()


def draw(
    data: str, rate: float, seed: int, folder: Path | None, *, whole: bool = False
) -> Drawn:
    """Rows of a set, shuffled by the seed and cut in three; labels flipped at the rate.

    `whole`: those of whole players.
    """
    rows = load(data, folder)
    order = np.random.default_rng(seed).permutation(len(rows.y))
    ends = np.cumsum([N_TRAIN, N_VAL, SETS[data]])
    (X, y), (X_val, y_val), (X_test, y_test) = (
        rows.rows(part) for part in np.split(order, ends)[:3]
    )
    rng = np.random.default_rng([seed, round(100 * rate)])
    flip = players.flipped_whole if whole else flipped
    y, wrong = flip(y, rows.n_classes, rate, rng)
    y_val, _ = flipped(y_val, rows.n_classes, rate, rng)
    problem = Problem(X, y, X_val, y_val, rows.n_classes, seed)
    return Drawn(problem, wrong, X_test, y_test)


def accuracy(case: Drawn, rows: NDArray[np.intp]) -> float:
    """Test accuracy of a model trained on some of the rows."""
    X, y = case.problem.X[rows], case.problem.y[rows]
    if len(np.unique(y)) < case.problem.n_classes:
        return float(np.mean(case.y_test == np.bincount(y).argmax()))
    # One thread: the products are so small that others only wait, up to 40 times as long.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # as the wrapper does
        model = LogisticRegression().fit(X, y)
    return float(model.score(case.X_test, case.y_test))


def acted_on(case: Drawn, order: NDArray[np.intp]) -> Record:
    """Accuracy without the last rows of an order, and of its first rows alone."""
    n = len(order)
    counts = {f"{share:.2f}": round(share * n) for share in SHARES}
    return {
        "all": accuracy(case, order),
        "removal": {share: accuracy(case, order[: n - k]) for share, k in counts.items()},
        "addition": {share: accuracy(case, order[:k]) for share, k in counts.items()},
    }


def scored(case: Drawn, values: Floats) -> Record:
    """All numbers of the table for the values of one case."""
    return {
        "f1": cluster_f1(values, case.wrong),
        "auroc": auroc(values, case.wrong),
        "auroc_within": auroc_within(values, case.wrong, case.problem.y),
        "found": found_by_share(values, case.wrong, np.array(INSPECTED)).tolist(),
        **acted_on(case, np.argsort(values, kind="stable")),
    }


def scored_players(case: Drawn, values: Floats, noise: str) -> Record:
    """The same for players: found whole, or by their rows, and acted on whole."""
    each, wrong = values, case.wrong
    if noise == "whole":
        each, wrong = players.sums(values), players.sums(case.wrong.astype(float)) > 0
    found = {"f1": cluster_f1(each, wrong), "auroc": auroc(each, wrong)}
    return {**found, **acted_on(case, players.rows_by_player(values))}


@dataclass(frozen=True)
class PeerValues:
    """Values that OpenDataVal computed for these rows, and what each column of them took."""

    columns: dict[str, Floats]  # set/rate/seed/method
    runs: dict[str, dict[str, Any]]

    @staticmethod
    def name(key: Key) -> str:
        """The column of a cell."""
        method = str(key["method"]).removeprefix(THEIRS)
        return f"{key['data']}/{round(100 * key['rate']):02d}/{key['seed']}/{method}"

    def of(self, key: Key, case: Drawn) -> tuple[Floats, dict[str, Any]]:
        """The column of a cell, and its run; refused where it was made of other rows."""
        name = self.name(key)
        run = self.runs[name]
        if run["rows"] != case.digest:
            raise DataError(
                f"{PEER_VALUES}.npz must hold values of the rows that are drawn, got others "
                f"for {name}. Make it again with benchmarks/peers/run_opendataval_table.py."
            )
        return self.columns[name].astype(np.float64), run


@cache
def peer_values(out: Path) -> PeerValues:
    """What is in the folder of the results or in the checkout; none where there is no file."""
    checkout = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
    for folder in (out, checkout):
        path = folder / f"{PEER_VALUES}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as held:
                columns = {name: held[name] for name in held.files}
            told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            runs = {
                PeerValues.name({**run, "method": answer}): run
                for run in told["runs"]
                for answer in run["answers"]
            }
            return PeerValues(columns, runs)
    return PeerValues({}, {})


def theirs(of: Key, there: Container[str], peers: Iterable[str]) -> list[str]:
    """Those of some peers that valued the rows of a draw, as methods."""
    names = [THEIRS + peer for peer in peers]
    return [name for name in names if PeerValues.name({**of, "method": name}) in there]


class OpenDataValTable:
    """The 18 cells: three sets, two rates of noise, three tasks."""

    name = "opendataval"

    def cells(self, ask: Ask) -> Iterator[Key]:
        """Every method on every draw, rows first; peers where their values are at hand."""
        there = peer_values(ask.out).columns
        peers = FAST_PEERS if ask.fast else PEERS
        draws = [
            {"data": data, "rate": rate, "seed": seed}
            for seed in range(2 if ask.fast else ask.seeds)
            for data in (["bbc"] if ask.fast else SETS)
            for rate in RATES
        ]
        for of in draws:
            methods = (*OURS, *ENGINE, *theirs(of, there, peers))
            yield from ({**of, "method": method} for method in methods)
        for of in draws[:1] if ask.fast else draws:
            for noise in players.NOISE:
                known = theirs(of, there, peers if noise == "points" else ())
                methods = (*players.PLAYED, *known)
                yield from ({**of, "players": noise, "method": m} for m in methods)

    def measured(self, key: Key, ask: Ask) -> Record:
        """Values of one method on one draw, scored."""
        noise, method = key.get("players"), str(key["method"])
        case = draw(key["data"], key["rate"], key["seed"], ask.data, whole=noise == "whole")
        if method.startswith(THEIRS):
            values, run = peer_values(ask.out).of(key, case)
            told = {"seconds": run["seconds"], "ended_by_limit": run["ended_by_limit"]}
        else:
            p = case.problem
            scores = players.valued(p, method) if noise else METHODS[method](p)
            values, told = scores.values, {"seconds": round(scores.seconds, 4)}
        found = scored_players(case, values, noise) if noise else scored(case, values)
        return {**found, **told}

    def page(self, records: list[Record]) -> str:
        """The tables as Markdown."""
        told = {"rows": __doc__, "players": players.__doc__}
        protocol = {name: (doc or "").partition("\n\n")[2] for name, doc in told.items()}
        return opendataval_page.page(records, protocol)

    def figures(self, records: list[Record], folder: Path) -> list[Path]:
        """Curves of noise discovery, removal and addition."""
        of_rows = [record for record in records if "players" not in record]
        return opendataval_page.figures(of_rows, folder, INSPECTED)


BENCH = OpenDataValTable()
