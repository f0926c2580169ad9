"""Data sets valued in parts: time, memory and bytes by number of rows, and part by part.

    python benchmarks/scale.py sweep --rows 1000000,5000000 --folder DIR
    python benchmarks/scale.py parts --folder DIR
    python benchmarks/scale.py figure

Click logs with Criteo's columns are made in DIR, a million rows a file (not counted), and
valued with the default settings from Parquet to Parquet. CPU seconds are those of the whole
process and all its threads: on a machine that others use they say more than the clock does.
`parts` works on one segment with one thread. The limit of a part is its floating-point
operations over the GEMM rate of one thread plus its bytes over the read bandwidth of one
thread, measured in the same process just after; they are counted from the algorithm.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from hcdv.bench.provenance import provenance

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
SHARD = 1_000_000
PASSES = ("labels", "sample", "tree", "gather", "value", "games", "write")


def made(folder: Path, n_rows: int) -> Path:
    """A folder of links to the first shards of one log, which are made if they are not there."""
    from hcdv.bench.ctr import ClickLog, write_clicks

    log, data = ClickLog(), folder / f"clicks-{n_rows}"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    for start in range(0, n_rows, SHARD):
        n = min(SHARD, n_rows - start)
        shard = folder / f"shard-{start:011d}-{n}.parquet"
        if not shard.exists():
            draft = shard.with_suffix(".draft.parquet")
            write_clicks(draft, log, n, start)
            draft.rename(shard)
        (data / shard.name).symlink_to(shard.resolve())
    return data


def one(data: Path, out: Path, memory: str) -> dict:
    """Value a data set in this process, and say what it took."""
    from hcdv import HCDV
    from hcdv.apps.options import Size

    before = _written()
    wall, cpu = time.perf_counter(), time.process_time()
    run = HCDV(random_state=0).fit_dataset(
        data, "label", out, memory=Size().convert(memory, None, None)
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    after, about = _written(), run.about
    return {
        "n": run.n_rows, "wall": wall, "cpu": cpu, "memory": memory,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "data_mb": about["source"]["bytes"] / 2**20,
        "read_mb": (after["rchar"] - before["rchar"]) / 2**20,
        "written_mb": (after["wchar"] - before["wchar"]) / 2**20,
        "values_mb": sum(about["bytes"].values()) / 2**20,
        "seconds": about["seconds"], "cpu_seconds": about["cpu_seconds"],
        "sum_error": about["checks"]["sum_error"], "load": Path("/proc/loadavg").read_text()[:4],
    }  # fmt: skip


def _written() -> dict[str, int]:
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(count) for name, count in (line.split(": ") for line in lines)}


def sweep(folder: Path, sizes: list[int], memory: str) -> None:
    """One process a size, so that peaks are its own."""
    path = RESULTS / "scale.json"
    found = json.loads(path.read_text()) if path.exists() else {"rows": []}
    for n_rows in sizes:
        data, out = made(folder, n_rows), folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        code = (
            "import sys, json; sys.path.insert(0, sys.argv[1]); import scale; from pathlib "
            "import Path; print(json.dumps(scale.one(Path(sys.argv[2]), Path(sys.argv[3]), "
            "sys.argv[4])))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(HERE), str(data), str(out), memory],
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        row = json.loads(done.stdout.splitlines()[-1])
        print(json.dumps(row))
        row["commit"] = provenance()["commit"]
        rows = [each for each in found["rows"] if each["n"] != n_rows]
        found["rows"] = sorted([*rows, row], key=lambda each: each["n"])
        command = "python benchmarks/scale.py sweep"
        found["provenance"] = provenance(command)
        path.write_text(json.dumps(found, indent=1) + "\n")
        shutil.rmtree(out)


class Parts:
    """CPU seconds of every part of the work on the first segment, one thread."""

    def __init__(self, data: Path, work: Path) -> None:
        from hcdv import HCDV
        from hcdv.dataset.passes import Passes
        from hcdv.dataset.sampling import read_labels
        from hcdv.dataset.source import open_source
        from hcdv.dataset.task import Task
        from hcdv.dataset.workspace import Workspace
        from hcdv.settings import checked_plan

        source = open_source(str(data), ("label",), skip_damaged=False)
        target, count = read_labels(source, "label", "auto")
        plan = checked_plan(HCDV(random_state=0, n_jobs=1))(source.n_rows, "loss")
        names = tuple(name for name in source.names if name != "label")
        self.task = Task(source, "label", names, "auto", 8, 64, plan)
        self.passes = Passes(self.task, Workspace(work), target, count, None)
        self.work, self.target = work, target
        self.took: dict[str, float] = {}
        self.model = self.passes._model()

    def timed(self, name: str, job):
        began = time.process_time()
        answer = job()
        self.took[name] = self.took.get(name, 0.0) + time.process_time() - began
        return answer

    def read(self):
        """Decode, hash and encode."""
        from hcdv.dataset.gathering import points_of
        from hcdv.dataset.levels import levels_of
        from hcdv.dataset.sampling import Sampling, labels_of

        task, source = self.task, self.task.source
        rows, size = task.rows(0), task.layout.block
        blocks = self.timed(
            "decode", lambda: list(source.blocks(0, rows.stop, task.columns, n_rows=size))
        )
        sampling = Sampling(task, self.target)
        for first, table in blocks:
            fold = task.folds(task.keys(range(first, first + len(table))))
            codes = self.target.coded(labels_of(table, source, "label", first))

            def counted(table=table, fold=fold, codes=codes):
                sampling.mass.add(partial(levels_of, table), fold, codes, 1)

            self.timed("hash and count levels", counted)
        encoded = self.timed(
            "encode", lambda: [self.model.rows.block(*block) for block in blocks]
        )
        Z = np.concatenate([block.Z for block in encoded])
        return points_of(self.model, 0, Z, np.concatenate([b.target for b in encoded]))

    def value(self, points) -> None:
        """Assign, sum up, ask and write."""
        from hcdv.dataset.finishing import Finishing, Shares
        from hcdv.dataset.gathering import Gathering, summed, vectors_of
        from hcdv.dataset.valuing import Questions, Valuing
        from hcdv.dataset.workspace import Workspace

        model, work, passes = self.model, self.work, self.passes
        leaf = self.timed("assign", lambda: model.prototypes.leaves(points.Z))
        self.timed("statistics", lambda: summed(model, points, leaf, 1))
        sums = passes._summed("gather", "", Gathering(model, work, 1), None)
        questions = Questions.of(model, sums, 1)
        self.timed("marginals", lambda: questions.marginals(points, 1))
        self.timed("doubts", lambda: questions.doubts(points, 1))
        held = {"Z": points.Z, "target": points.target, "leaf": leaf}
        self.timed("write", lambda: Workspace(work).put(vectors_of(0), held))
        found = passes._summed("value", "", Valuing(questions, work, 1), None)
        shares = Shares.of(model, sums, found, 1)
        (work / "values").mkdir()
        self.timed("write", lambda: Finishing(shares, work)(0))


def parts(folder: Path) -> None:
    """Every part of the work, beside its limit."""
    from hcdv.engines.local import one_thread_each

    work = folder / "parts"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with one_thread_each():
        of = Parts(made(folder, SHARD), work)
        of.value(of.read())
    rates, n = one_thread_rates(), len(of.task.rows(0))
    table = _limits(of.took, n, of.model, of.task.source, rates)
    found = {"rows": table, "rates": rates, "n": n}
    found["provenance"] = provenance("python benchmarks/scale.py parts")
    (RESULTS / "scale-parts.json").write_text(json.dumps(found, indent=1) + "\n")
    shutil.rmtree(work)
    print(json.dumps(table, indent=1))


def _limits(took, n, model, source, rates) -> list[dict]:
    """Operations and bytes a row that each part cannot do without."""
    d, D = model.sample.points.Z.shape[1], model.probe.features[0].width
    p = model.rows.encoder.chosen.directions.shape[0]
    C, k = 2, 16
    T, R = model.contexts.p.size, model.contexts.n_orders
    Ta, Ra = model.asking.p.size, model.asking.n_orders
    features = 2 * d * (D - 1) + 2 * (D - 1) ** 2
    decoded = 13 * 8 + 26 * 4 + 1
    size = model.prototypes.shape.depth * 8
    n_bytes = source.n_bytes / source.n_rows
    work = {
        "decode": (0, n_bytes + decoded),
        "hash and count levels": (0, 26 * (4 + 16)),
        "encode": (2 * p * d, decoded + 8 * p + 4 * d),
        "assign": (2 * size * d, 4 * d),
        "statistics": ((R + 1) * D**2 + Ra * (D**2 + (d + 1) ** 2) + features, 8 * d),
        "marginals": (2 * D * (2 * C + 2 * k) * T + features, 4 * (d + R)),
        "doubts": (2 * (D + d + 1) * (C + k) * Ta + features, 4 * (d + Ra + C)),
        "write": (0, 2 * (4 * d + 8) + 60),
    }
    table = []
    for name, seconds in took.items():
        flops, n_bytes = work[name]
        limit = flops / (rates["gemm_f32"] * 1e9) + n_bytes / (rates["read_gb_s"] * 1e9)
        table.append({
            "part": name, "us_a_row": 1e6 * seconds / n, "flops": flops, "bytes": n_bytes,
            "limit_us": 1e6 * limit, "ratio": seconds / n / limit,
        })  # fmt: skip
    return table


def one_thread_rates() -> dict[str, float]:
    """GEMM rate (GFLOP/s) and read bandwidth (GB/s) of one thread, by its CPU time."""
    from hcdv.engines.local import one_thread_each

    a = np.random.default_rng(0).random((2048, 2048)).astype(np.float32)
    big = np.ones(2**26, dtype=np.float32)

    def best(job) -> float:
        spent = []
        for _ in range(4):
            began = time.process_time()
            job()
            spent.append(time.process_time() - began)
        return min(spent)

    with one_thread_each():
        gemm, read = best(lambda: a @ a), best(big.max)
    return {"gemm_f32": 2 * 2048**3 / gemm / 1e9, "read_gb_s": big.nbytes / read / 1e9}


def figure() -> None:
    """CPU time by pass and peak memory, by number of rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = json.loads((RESULTS / "scale.json").read_text())["rows"]
    n = np.array([row["n"] for row in rows]) / 1e6
    drawn, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    below = np.zeros(len(n))
    place = np.arange(len(n))
    for name in PASSES:
        each = np.array([row["cpu_seconds"].get(name, 0.0) for row in rows]) / n
        left.bar(place, each, bottom=below, label=name)
        below += each
    left.set_xticks(place, [f"{value:g}" for value in n])
    left.set_xlabel("million rows")
    left.set_ylabel("CPU µs a row")
    left.set_ylim(0, 1.35 * below.max())
    left.legend(fontsize=7, ncols=4, loc="upper center")
    right.plot(n, [row["peak_mb"] for row in rows], "o-", label="peak memory")
    right.plot(n, [row["data_mb"] for row in rows], "s--", label="Parquet files")
    right.set_xlabel("million rows")
    right.set_ylabel("MB")
    right.set_ylim(bottom=0)
    right.legend(fontsize=8)
    drawn.tight_layout()
    drawn.savefig(HERE.parent / "docs" / "scale.png", dpi=110)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("what", choices=["sweep", "parts", "figure"])
    asked.add_argument("--rows", default="1000000")
    asked.add_argument("--folder", type=Path, default=Path("scale-data"))
    asked.add_argument("--memory", default="4G")
    options = asked.parse_args()
    if options.what == "sweep":
        sweep(options.folder, [int(n) for n in options.rows.split(",")], options.memory)
    elif options.what == "parts":
        parts(options.folder)
    else:
        figure()


if __name__ == "__main__":
    main()
