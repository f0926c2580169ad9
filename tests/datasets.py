"""Small data sets on disk, and the settings they are valued with in parts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from hcdv import HCDV, DatasetRun
from hcdv.dataset.task import Layout
from hcdv.dataset.valuation import Request, value_dataset

LAYOUT = Layout(block=256, segment=1024, n_sampled=1500, level_bytes=2**22)


def people(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, a few levels, many levels that matter, a date, and labels with noise."""
    rng = np.random.default_rng(seed)
    city = rng.zipf(1.3, n) % 400
    age, income = rng.normal(size=(2, n))
    log_odds = age - 0.5 * income + np.where(city % 3 == 0, 1.5, -1.0)
    bought = rng.random(n) < 1 / (1 + np.exp(-2 * log_odds))
    income[rng.random(n) < 0.1] = np.nan
    colour = np.array(["red", "green", "blue"])[rng.integers(3, size=n)].astype(object)
    colour[rng.random(n) < 0.05] = None
    return pd.DataFrame({
        "age": age, "income": income, "colour": colour,
        "city": [f"town {c}" for c in city],
        "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(300, size=n), "D"),
        "label": np.where(bought, "yes", "no"),
    })  # fmt: skip


def written(
    folder: Path, frame: pd.DataFrame, cuts: tuple[int, ...] = (), groups: int = 10**6
) -> Path:
    """A folder of Parquet files, cut at these rows."""
    folder.mkdir(exist_ok=True)
    edges = [0, *cuts, len(frame)]
    for number, (low, high) in enumerate(pairwise(edges)):
        table = pa.Table.from_pandas(frame.iloc[low:high], preserve_index=False)
        path = folder / f"shard-{number:03d}.parquet"
        parquet.write_table(table, path, row_group_size=groups, write_page_checksum=True)
    return folder


def valued(dataset: Path, out: Path, layout: Layout = LAYOUT, **settings) -> DatasetRun:
    names = settings.keys() & {"validation", "drop", "skip_damaged", "address"}
    asked = {name: settings.pop(name) for name in names}
    model = HCDV(**{"random_state": 0, "leaf_size": 32, "branching": 4, **settings})
    return value_dataset(model, Request(str(dataset), "label", out, layout=layout, **asked))


def frame_of(run: DatasetRun) -> pd.DataFrame:
    return pa.concat_tables(run.parts()).to_pandas()
