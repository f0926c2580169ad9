"""Values by OpenDataVal's own methods for the rows of `hcdv bench opendataval`.

    python benchmarks/peers/run_opendataval_table.py draw ROWS --data DATA --seeds 5
    ODV benchmarks/peers/run_opendataval_table.py value ROWS CELLS --jobs 2 --slow-seeds 2
    python benchmarks/peers/run_opendataval_table.py gather CELLS

`draw` runs where hcdv is installed and writes one npz for each set, rate and seed.
`value` runs where opendataval is (ODV: ENVIRONMENTS/opendataval/bin/python of install.sh, or
any Python and make_portable.sh), one process on one thread for each cell, and leaves out
the cells that are there: interrupted, the same command goes on. `gather` needs numpy
alone. It writes benchmarks/results/peers-opendataval.npz, values as float32 under
set/rate/seed/method, and peers-opendataval.json beside it: what each cell took, and with
which versions.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "peers-opendataval"
QUICK = ("random", "knn 10", "knn 100", "lava")
FITTED = ("data-oob", "loo", "data banzhaf", "dvrl", "ame")
SLOW = ("semivalues",)  # until the limit; fewer seeds
SETS, RATES = ("bbc", "imdb", "cifar10"), ("05", "15")


def draw(asked):
    """Write the rows of every set, rate and seed; embeddings in the half precision they have."""
    from hcdv.bench.opendataval import draw as drawn

    asked.rows.mkdir(parents=True, exist_ok=True)
    for seed in range(asked.seeds):
        for data in SETS:
            for rate in RATES:
                case = drawn(data, int(rate) / 100, seed, asked.data)
                p = case.problem
                np.savez_compressed(
                    asked.rows / f"{data}-{rate}-{seed}.npz",
                    X_train=halved(p.X), y_train=p.y, X_val=halved(p.X_val), y_val=p.y_val,
                    n_classes=p.n_classes, digest=case.digest,
                )  # fmt: skip


def halved(X):
    half = X.astype(np.float16)
    return half if np.array_equal(half, X) else X


def value(asked):
    """Run what is missing, the longest first so that no core waits for one at the end."""
    asked.cells.mkdir(parents=True, exist_ok=True)
    cells = [
        (f"{data}-{rate}-{seed}", method)
        for methods in (SLOW, FITTED[::-1], QUICK)
        for seed in range(asked.slow_seeds if methods == SLOW else asked.seeds)
        for method in methods
        if method in asked.methods
        for data in asked.sets
        for rate in RATES
    ]
    todo = [cell for cell in cells if not at(asked, *cell).exists()]
    print(f"{len(cells)} cells, {len(cells) - len(todo)} done", flush=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for number, line in enumerate(pool.map(lambda cell: one(asked, *cell), todo), 1):
            print(f"{number}/{len(todo)} {line}", flush=True)


def at(asked, rows, method):
    return asked.cells / f"{rows}-{method.replace(' ', '_')}.npz"


def one(asked, rows, method):
    """Run one cell in a process of its own; what it says of itself, in a line."""
    out = at(asked, rows, method)
    part = out.with_suffix(".part.npz")
    words = ["--method", method, "--seed", rows.rpartition("-")[2]]
    done = subprocess.run(
        [
            sys.executable, str(HERE / "opendataval_cell.py"),
            str(asked.rows / f"{rows}.npz"), str(part),
            *words, "--max-cpu-seconds", str(asked.max_cpu_seconds),
        ],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        return f"{rows} {method} FAILED: {done.stderr.strip().splitlines()[-1:]}"
    part.replace(out)
    with np.load(out) as stored:
        told = json.loads(str(stored["report"]))
    return f"{rows} {method} {told['cpu_seconds']:.1f} CPU s, {told['fits']} fits"


def gather(asked):
    """Put all cells into one file of values and one of what they took."""
    values, runs = {}, []
    for path in sorted(asked.cells.glob("*.npz")):
        if path.name.endswith(".part.npz"):
            continue
        data, rate, seed, _ = path.stem.split("-", 3)
        with np.load(path) as stored:
            report = json.loads(str(stored["report"]))
            names = [name for name in stored.files if name != "report"]
            values |= {f"{data}/{rate}/{seed}/{name}": stored[name] for name in names}
        cell = {"data": data, "rate": int(rate) / 100, "seed": int(seed)}
        runs.append(cell | {"answers": names} | report)
    about = json.loads((asked.cells / "machine.json").read_text())
    runs_text = ",\n".join(json.dumps(run) for run in runs)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(asked.out.with_suffix(".npz"), **values)
    asked.out.with_suffix(".json").write_text(
        f'{{"made": {json.dumps(about)},\n"runs": [\n{runs_text}\n]}}\n'
    )
    print(f"{len(values)} columns of values in {asked.out}.npz")


def machine(asked):
    """Note where the cells are run, and by what commands."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    path = asked.cells / "machine.json"
    earlier = json.loads(path.read_text())["commands"] if path.exists() else []
    command = shlex.join(
        ["python", "benchmarks/peers/run_opendataval_table.py", *sys.argv[1:]]
    )
    about = {
        "commands": [*earlier, command],
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "jobs": asked.jobs,
        "model": "LogisticRegression(), accuracy on 100 validation rows",
        "threads": 1,
    }
    path.write_text(json.dumps(about, indent=1) + "\n")


def arguments():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    drawing = steps.add_parser("draw")
    drawing.add_argument("rows", type=Path)
    drawing.add_argument("--data", type=Path, help="folder of the data sets")
    drawing.add_argument("--seeds", type=int, default=5)
    valuing = steps.add_parser("value")
    valuing.add_argument("rows", type=Path)
    valuing.add_argument("cells", type=Path)
    valuing.add_argument("--jobs", type=int, default=2)
    valuing.add_argument("--seeds", type=int, default=5)
    valuing.add_argument("--slow-seeds", type=int, default=2, help=f"of {', '.join(SLOW)}")
    every = (*QUICK, *FITTED, *SLOW)
    valuing.add_argument("--methods", nargs="+", choices=every, default=every)
    valuing.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    valuing.add_argument("--max-cpu-seconds", type=float, default=300)
    gathering = steps.add_parser("gather")
    gathering.add_argument("cells", type=Path)
    gathering.add_argument("-o", "--out", type=Path, default=RESULTS)
    return parser.parse_args()


def main():
    asked = arguments()
    if asked.step == "draw":
        draw(asked)
    elif asked.step == "value":
        asked.cells.mkdir(parents=True, exist_ok=True)
        machine(asked)
        value(asked)
    else:
        gather(asked)


if __name__ == "__main__":
    main()
