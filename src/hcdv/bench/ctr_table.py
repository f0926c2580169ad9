"""Choices on click logs of growing size, beside the AUC that no model can surpass.

The log is generated (`ctr`), so that its best AUC is known and any size can be had: what
values cost, and whether acting on them pays, as rows grow tenfold. Where the data folder
holds a log with Criteo's columns (`criteo*.parquet`, `.tsv` or `.txt`) of at least 20,000
rows, its first 60,000 are the further set "criteo", with no best AUC. The protocol is the
main table's, with labels as clicked and 10 % flipped; the model is Wide & Deep.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from hcdv.bench.cells import Ask, Key, Record
from hcdv.bench.ctr import ClickLog, features, read_clicks
from hcdv.bench.main_table import (
    ALL,
    CTR_RATE,
    CTR_ROWS,
    LABELS,
    METRICS,
    SETS,
    Split,
    retrained,
    split,
    split_of,
)
from hcdv.bench.pages import Column, field, table

SIZES = (6_000, CTR_ROWS, 200_000)
FAST_SIZES = (600, 1_200)
METHODS = ("hcdv", "hcdv top", "group shapley", "knn 10", "random", ALL)
FAST_METHODS = ("hcdv", "random", ALL)
LEAST_ROWS = 20_000


def criteo_file(folder: Path | None) -> Path | None:
    """The log in the folder that is long enough to learn from."""
    for path in [] if folder is None else sorted(folder.glob("criteo*")):
        is_log = path.suffix in {".parquet", ".tsv", ".txt"}
        if is_log and sum(len(part) for part in _head(path, LEAST_ROWS)) >= LEAST_ROWS:
            return path
    return None


def _head(path: Path, n: int) -> list[pd.DataFrame]:
    found: list[pd.DataFrame] = []
    for part in read_clicks(path):
        found.append(part)
        if sum(map(len, found)) >= n:
            break
    return found


def criteo_split(path: Path, labels: str, seed: int) -> Split:
    """A tenth of the rows is the test set."""
    X, y = features(pd.concat(_head(path, CTR_ROWS), ignore_index=True)[:CTR_ROWS])
    order = np.random.default_rng([seed, 38]).permutation(len(y))
    n_test, n_val = len(y) // 10, 1000
    return split_of(X, y, np.split(order, [len(y) - n_test - n_val, len(y) - n_test]),
                    labels, seed)  # fmt: skip


class CTRTable:
    """Choices on click logs by size."""

    name = "ctr"

    def cells(self, ask: Ask) -> Iterable[Key]:
        """By size or file, labels, split and method."""
        sizes = [f"{n:,} rows" for n in (FAST_SIZES if ask.fast else SIZES)]
        real = None if ask.fast else criteo_file(ask.data)
        for rows in [*sizes, *(["criteo"] if real else [])]:
            for labels in LABELS[: 1 if ask.fast else None]:
                for seed in range(1 if ask.fast else ask.seeds):
                    for method in FAST_METHODS if ask.fast else METHODS:
                        yield {
                            "rows": rows, "labels": labels, "method": method, "seed": seed,
                        }  # fmt: skip

    def measured(self, key: Key, ask: Ask) -> Record:
        """Numbers of one cell, and the best AUC there is."""
        if key["rows"] == "criteo":
            path = criteo_file(ask.data)
            assert path is not None
            cut = criteo_split(path, key["labels"], key["seed"])
            return retrained(cut, SETS["ctr"], key["method"])
        n = int(key["rows"].removesuffix(" rows").replace(",", ""))
        cut = split("ctr", key["labels"], key["seed"], None, n)
        found = retrained(cut, SETS["ctr"], key["method"])
        n_best = 2**14 if ask.fast else 2**19
        return {**found, "best": ClickLog(key["seed"], CTR_RATE).bayes_auc(n_best)}

    def page(self, records: list[Record]) -> str:
        """All cells as Markdown."""
        sizes = list(dict.fromkeys(record["rows"] for record in records))
        best = {r["seed"]: r["best"] for r in records if "best" in r}
        parts = [
            "# Click logs",
            f"Generated at {CTR_RATE:.0%} clicks; trained on the best 30 %, {METRICS['auc']} "
            "on further rows. The best AUC there is: "
            + ", ".join(f"{auc:.4f} (seed {seed})" for seed, auc in best.items()) + ".",
        ]  # fmt: skip
        for labels in LABELS:
            of = [record for record in records if record["labels"] == labels]
            for title, name, better, digits in (
                (f"{labels.capitalize()} labels, test AUC", "score", 1, 3),
                (f"{labels.capitalize()} labels, seconds of valuation",
                 "valuation_seconds", 0, 1),
            ) if of else ():  # fmt: skip
                columns = [Column(n, field(name, rows=n), better, digits) for n in sizes]
                shown = [record for record in of if name in record]
                parts += [f"## {title}", table(shown, columns, beside=(ALL,))]
        return "\n\n".join(parts)

    def figures(self, records: list[Record], folder: Path) -> list[Path]:
        """None: the page shows all."""
        del records, folder
        return []


BENCH = CTRTable()
