"""Table `ctr`: choices on click logs of growing size, beside the best AUC there is.

- The log is generated (`ctr.py`), so that the AUC no model can surpass is known and any
  size can be had: what values cost, and whether acting on them pays, as rows grow.
- Where the data folder holds a log with Criteo's columns (`criteo*.parquet`, `.tsv` or
  `.txt`, these two also with `.gz`) of at least 20,000 rows, its first 60,000 are the
  further set *criteo*: a tenth of them tests, and its best AUC is not known.
- The rest is the protocol of the main table: 1,000 validation rows judge the values and
  stop the model, the best 30 % are kept, and the model is taught on these from scratch.
  `hcdv` and `hcdv top` share one valuation.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
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
    SETS,
    Split,
    retrained,
    split,
    split_of,
)

SIZES = (6_000, CTR_ROWS, 200_000)
FAST_SIZES = (600, 1_200)
METHODS = ("hcdv", "hcdv top", "group shapley", "knn 10", "random", ALL)
FAST_METHODS = ("hcdv", "random", ALL)
LEAST_ROWS = 20_000
CRITEO = "criteo"


def criteo_file(folder: Path | None) -> Path | None:
    """The log in the folder that is long enough to learn from."""
    for path in [] if folder is None else sorted(folder.glob("criteo*")):
        is_log = path.name.removesuffix(".gz").endswith((".parquet", ".tsv", ".txt"))
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


def rows_of(size: str) -> int:
    """The rows of a size's name."""
    return int(size.removesuffix(" rows"))


@lru_cache(maxsize=1)
def _best(seed: int, n: int) -> float:
    return ClickLog(seed, CTR_RATE).bayes_auc(n)


class CTRTable:
    """Choices on click logs by size."""

    name = "ctr"

    def cells(self, ask: Ask) -> Iterable[Key]:
        """By size or file, labels, split and method."""
        sizes = [f"{n} rows" for n in (FAST_SIZES if ask.fast else SIZES)]
        real = None if ask.fast else criteo_file(ask.data)
        for rows in [*sizes, *([CRITEO] if real else [])]:
            for labels in LABELS[: 1 if ask.fast else None]:
                for seed in range(1 if ask.fast else ask.seeds):
                    for method in FAST_METHODS if ask.fast else METHODS:
                        yield {
                            "rows": rows, "labels": labels, "method": method, "seed": seed,
                        }  # fmt: skip

    def measured(self, key: Key, ask: Ask) -> Record:
        """Numbers of one cell, and the best AUC there is."""
        if key["rows"] == CRITEO:
            path = criteo_file(ask.data)
            assert path is not None
            cut = criteo_split(path, key["labels"], key["seed"])
            return retrained(cut, SETS["ctr"], key["method"])
        cut = split("ctr", key["labels"], key["seed"], None, rows_of(key["rows"]))
        found = retrained(cut, SETS["ctr"], key["method"])
        return {**found, "best": _best(key["seed"], 2**14 if ask.fast else 2**19)}

    def page(self, records: list[Record]) -> str:
        """All cells as Markdown."""
        from hcdv.bench.ctr_page import page

        return page(records)

    def figures(self, records: list[Record], folder: Path) -> list[Path]:
        """AUC and seconds by rows."""
        from hcdv.bench.ctr_page import figure

        return figure(records, folder)


BENCH = CTRTable()
