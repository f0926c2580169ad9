"""What rows that come and go cost: time by number of rows, memory, and bytes on disk.

    python benchmarks/living.py latency [--sizes 15000,100000,1000000] [-o FILE]
    python benchmarks/living.py memory [--updates 1000] [-o FILE]
    python benchmarks/living.py folder [--sizes 1500,15000,100000] [-o FILE]

Rows are those of benchmarks/speed.py: 64 numbers, two classes, 1,000 rows that judge. Settings
are the defaults. Processor seconds are of all threads together and hardly change with what
else the machine does; seconds by the clock do.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from speed import N_VAL, command, embeddings
from tables import TABLES, markdown

from hcdv import HCDV
from hcdv.bench.provenance import provenance

HERE = Path(__file__).resolve().parent
BATCH, REPEATS = 1_500, 9


class Stream:
    """A fitted estimator, and the rows that come after those of the fit."""

    def __init__(self, n: int, n_later: int, **settings) -> None:
        self.X, self.y = embeddings(N_VAL + n + n_later, 2)
        self.at, self.settings = N_VAL + n, {"random_state": 0} | settings
        self.v = HCDV()

    def fit(self) -> None:
        rows = slice(N_VAL, self.at)
        self.v = HCDV(**self.settings)
        self.v.fit(self.X[rows], self.y[rows], self.X[:N_VAL], self.y[:N_VAL])

    def comes(self, n: int) -> None:
        rows = slice(self.at, self.at + n)
        self.v.partial_fit(self.X[rows], self.y[rows])
        self.at += n


def timed(act) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    act()
    return {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu}


def median(act, times: int = REPEATS) -> dict[str, float]:
    found = [timed(act) for _ in range(times)]
    return {name: float(np.median([one[name] for one in found])) for name in found[0]}


def latency(n: int) -> dict:
    """What an update of n live rows takes, and valuing all of them anew.

    After every batch the estimator is put back to where it was, so that n hardly grows.
    """
    stream = Stream(n, 2 * BATCH)
    stream.fit()
    found = {"full": timed(stream.fit)}
    v, gone = stream.v, np.arange(n // 100)
    found["first"] = timed(lambda: stream.comes(1))
    found["one row"] = median(lambda: stream.comes(1))
    assert v.values_.sum() > 0
    ahead, at = v._ahead, stream.at
    assert ahead is not None

    def batch() -> None:
        v._ahead, v._run, stream.at = ahead, ahead.run, at
        stream.comes(BATCH)

    def batch_with_values() -> None:
        batch()
        assert abs(v.values_.sum() - v.surplus_) < 1e-9

    found["batch"] = median(batch)
    found["batch and values"] = median(batch_with_values)
    found["forget"] = timed(lambda: v.forget(gone, lazy=True).values_)
    found["refresh"] = timed(v.refresh)
    found["forget, refreshed"] = timed(lambda: v.forget(gone))
    return {"n": n, "took": found, "load": os.getloadavg()[0]}


def memory(n_updates: int) -> list[dict]:
    """Bytes held after updates of 15 rows, where old rows go and where all stay.

    A linear probe and 64 contexts, so that the updates are quick.
    """
    rows = []
    for name, settings in (("the latest 2,000", {"max_rows": 2_000}), ("all", {})):
        quick = {"utility": "linear", "n_contexts": 64}
        stream = Stream(2_000, 15 * n_updates, **quick, **settings)
        tracemalloc.start()
        stream.fit()
        marks = sorted({0, n_updates // 10, n_updates // 4, n_updates // 2, n_updates})
        for number in range(n_updates + 1):
            if number:
                stream.comes(15)
            if number not in marks:
                continue
            live = len(stream.v.values_)
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
            rows.append({"kept": name, "updates": number, "live": live, "bytes": held})
        tracemalloc.stop()
    return rows


def folder(n: int) -> dict:
    """What an update of a run folder reads, writes and takes."""
    from hcdv.store import updating

    stream = Stream(n, 3 * BATCH)
    stream.fit()
    with tempfile.TemporaryDirectory() as place:
        run = stream.v.save(Path(place) / "run")

        def opened() -> None:
            with updating(run) as writer:
                stream.v = writer.model

        found = {"open": timed(opened)}
        with updating(run) as writer:
            stream.v = writer.model
            stream.comes(BATCH)
            writer.commit(stream.v)
            stream.comes(BATCH)
            found["commit"] = timed(lambda: writer.commit(stream.v))
            size = [
                path.stat().st_size / 2**20 if path.exists() else 0.0
                for path in (run / "states/000002.safetensors", run / "worth/000002.parquet",
                             run / "rows/000002.parquet")
            ]  # fmt: skip
    names = ("state", "worth", "rows")
    return {"n": n, "took": found, "mb": dict(zip(names, size, strict=True))}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("latency", "memory", "folder"))
    parser.add_argument("--sizes")
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("-o", "--out", type=Path)
    args = parser.parse_args()
    name = f"living-{args.what}"
    if args.what == "memory":
        rows = memory(args.updates)
    else:
        default = "15000,100000,1000000" if args.what == "latency" else "1500,15000,100000"
        work = latency if args.what == "latency" else folder
        rows = []
        for n in map(int, (args.sizes or default).split(",")):
            rows.append(work(n))
            print(json.dumps(rows[-1]), flush=True)
    found = {"provenance": provenance(command()), "rows": rows}
    path = args.out or HERE / "results" / f"{name}.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(markdown(TABLES[name](found)))


if __name__ == "__main__":
    main()
