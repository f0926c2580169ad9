"""Memory stays within what was asked for, however many rows there are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

SCRIPT = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from hcdv import HCDV
run = HCDV(random_state=0, n_jobs=2).fit_dataset(
    sys.argv[2], "label", sys.argv[3], memory=int(sys.argv[4])
)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"peak": peak, "rows": run.n_rows}))
"""
N, TEXTS, LETTERS = 250_000, 10, 400


def peak(data: Path, out: Path, memory: int) -> dict[str, int]:
    source = Path(__file__).resolve().parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(source), str(data), str(out), str(memory)],
        stdout=subprocess.PIPE, check=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def write_texts(path: Path) -> None:
    """Two columns of numbers and ten of long texts, which are small on disk alone."""
    rng = np.random.default_rng(0)
    levels = pa.array([f"{level:0{LETTERS}}" for level in range(500)])
    columns = {f"x{k}": pa.array(rng.normal(size=N)) for k in range(2)}
    for k in range(TEXTS):
        codes = pa.array(rng.integers(500, size=N), pa.int32())
        columns[f"t{k}"] = pa.DictionaryArray.from_arrays(codes, levels)
    columns["label"] = pa.array((rng.random(N) < 0.4).astype(np.int8))
    parquet.write_table(pa.table(columns), path, store_schema=False)


@pytest.mark.slow
def test_the_ceiling_is_kept_at_a_tenth_of_the_data_and_peaks_hardly_grow(tmp_path):
    """Three million rows: one file is there eleven times, by links."""
    folder, memory = tmp_path / "texts", 1000 * 2**20
    folder.mkdir()
    write_texts(folder / "0.parquet")
    few = peak(folder, tmp_path / "few", memory)
    for number in range(1, 11):
        (folder / f"{number}.parquet").hardlink_to(folder / "0.parquet")
    many = peak(folder, tmp_path / "many", memory)
    assert many["rows"] == 11 * few["rows"]
    unpacked = many["rows"] * (TEXTS * LETTERS + 17)
    assert memory < unpacked / 10
    assert few["peak"] < memory
    assert many["peak"] < memory
    assert many["peak"] < 1.35 * few["peak"]
