"""Time and memory of a valuation, stage by stage, against what this machine can do at all.

    python benchmarks/speed.py [--sizes 3000,48842,70000,1000000] [-o FILE]

Embeddings (d = 64) are given; settings are the defaults; the second of two runs counts.
The limit of a stage is its floating-point operations over the GEMM rate plus its bytes over
the read bandwidth, both measured in the same process just after. Operations are counted
from the algorithm for the stated T and D: what must be done, not what was done.
With benchmarks/results/peers-speed.json (made by benchmarks/peers/time_peers.py) the table of
peers is added: the same data files, the same labels flipped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
from tables import markdown, speed

from hcdv.bench.provenance import provenance

HERE = Path(__file__).resolve().parent
CLASSES = {3_000: 2, 48_842: 2, 70_000: 10, 1_000_000: 2}
D_IN, N_VAL = 64, 1000


def embeddings(n: int, n_classes: int, seed: int = 0):
    """A mixture of 50 blobs, a label a blob, 10 % of the labels drawn anew."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(50, D_IN)).astype(np.float32)
    blob = rng.integers(50, size=n)
    Z = np.empty((n, D_IN), dtype=np.float32)
    for start in range(0, n, 65536):
        part = slice(start, min(start + 65536, n))
        noise = rng.standard_normal((part.stop - start, D_IN), dtype=np.float32)
        Z[part] = 0.7 * centres[blob[part]] + noise
    y = blob % n_classes
    anew = rng.random(n) < 0.1
    y[anew] = rng.integers(n_classes, size=int(anew.sum()))
    return Z, y


def rates() -> dict[str, float]:
    """GEMM rates (GFLOP/s, all cores) and read bandwidth (GB/s) of this machine, now."""
    found: dict[str, float] = {}
    for name, dtype in (("gemm_f32", np.float32), ("gemm_f64", np.float64)):
        a = np.random.default_rng(0).random((2048, 2048)).astype(dtype)
        a @ a
        best = min(_seconds(lambda a=a: a @ a) for _ in range(3))
        found[name] = 2 * 2048**3 / best / 1e9
    from concurrent.futures import ThreadPoolExecutor

    big = np.ones(2**27, dtype=np.float32)  # 512 MiB, past every cache
    halves = np.split(big, os.cpu_count() or 1)
    with ThreadPoolExecutor(len(halves)) as pool:
        best = min(_seconds(lambda: list(pool.map(np.max, halves))) for _ in range(3))
    found["read_gb_s"] = big.nbytes / best / 1e9
    return found


def _seconds(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def work_of(v, n: int, n_classes: int) -> dict[str, dict[str, float]]:
    """Floating-point operations and bytes that each stage cannot do without."""
    from hcdv.valuation import doubts
    from hcdv.valuation.plan import N_ORDERS
    from hcdv.valuation.probe import sketch_columns

    plan, tree = v.run_.plan, v.tree_
    D = v.run_.valuation.probe.features[0].width
    C, m, d = n_classes, D - 1, D_IN
    T, R = plan.n_contexts // N_ORDERS * N_ORDERS, N_ORDERS
    k = sketch_columns(n, T, D) or D
    per = next(times for most, times in doubts.N_THRESHOLDS.items() if n <= most)
    T_a, R_a = 4 * per, 4
    k_a = {w: sketch_columns(n, T_a, w) or w for w in (D, d + 1)}
    features = 2.0 * n * d * m + 2.0 * n * m * m  # one pass of the kernel map
    size = 4 if n * D > 2**22 else 8
    Z = float(n * d * 4)
    # Solves are in float64 whatever the rows are: a third of D³ and the two products of a
    # payoff; of a context also the inverse root and the two square products of its forms.
    payoffs = v.checks_["n_payoffs"] * (D**3 / 3 + 4 * D**2 * C)
    context = 2.0 * D**3 / 3 + 4.0 * D**3
    roots = [2.0 * w**3 / 3 for w in (D, d + 1)]
    splits = sum(2.0 * tree.size[~tree.is_leaf & (tree.level == level)].sum() * d * 8
                 for level in range(tree.depth))  # fmt: skip
    return {
        "tree": {"flop": splits, "bytes": Z * tree.depth},
        "games": {
            "flop": features + n * D * (D + 2 * C),
            "double": payoffs,
            "bytes": Z,
        },
        "points": {
            "flop": 2 * features
            + R * n * D * (D + 2 * C)
            + 2.0 * n * T * D * (2 * C + 2 * k),
            "double": T * context,
            "bytes": 2 * Z,
        },
        "consistency": {
            "flop": 2 * features
            + sum(
                R_a * n * w * (w + 2 * C) + 2.0 * n * T_a * w * (C + k_a[w])
                for w in (D, d + 1)
            ),
            "double": T_a * sum(roots),
            "bytes": 4 * Z,
        },
        "settings": {
            "T": T,
            "D": D,
            "sketch": sketch_columns(n, T, D) or 0,
            "T_consistency": T_a,
            "bytes_a_number": size,
        },
    }


def measure(n: int, pipe) -> None:
    """Value n rows twice in this process and send what the second run took."""
    from hcdv import HCDV
    from hcdv.valuation import nested  # noqa: F401  what a fit imports is not its memory

    imported = _peak_mb()
    Z, y = embeddings(n + N_VAL, CLASSES.get(n, 2))
    before = _peak_mb()
    stages = Stages()
    for _ in range(2):
        stages.clear()
        v = None  # the first run's arrays are not the second's memory
        began, cpu = time.perf_counter(), time.process_time()
        v = HCDV(encoder="precomputed", random_state=0)
        v.fit(Z[N_VAL:], y[N_VAL:], Z[:N_VAL], y[:N_VAL])
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = _peak_mb()
    speed = rates()
    work = work_of(v, n, CLASSES.get(n, 2))
    settings = work.pop("settings")
    gemm = speed["gemm_f64" if settings["bytes_a_number"] == 8 else "gemm_f32"] * 1e9
    limit = {
        stage: part["flop"] / gemm
        + part.get("double", 0.0) / speed["gemm_f64"] / 1e9
        + part["bytes"] / speed["read_gb_s"] / 1e9
        for stage, part in work.items()
    }
    seconds = {"tree": v.run_.seconds["tree"], **stages.seconds}
    pipe.send({
        "n": n, "classes": CLASSES.get(n, 2), "settings": settings, "machine_rates": speed,
        "seconds": seconds | {"all": wall}, "cpu_seconds": cpu,
        "limit_seconds": limit | {"all": sum(limit.values())},
        "gflop": {s: (w["flop"] + w.get("double", 0.0)) / 1e9 for s, w in work.items()},
        "ratio": {s: seconds[s] / limit[s] for s in limit} | {"all": wall / sum(limit.values())},
        "data_mb": Z[N_VAL:].nbytes / 2**20, "peak_mb": peak, "import_mb": imported,
        "before_fit_mb": before, "load_average": os.getloadavg()[0],
        "sum_error": v.checks_["sum_error"],
    })  # fmt: skip


class Stages:
    """Times the parts of a valuation by wrapping the functions that make them."""

    def __init__(self) -> None:
        from hcdv.valuation import nested

        self.seconds: dict[str, float] = {}
        for stage, name in (
            ("games", "coalition_game"), ("games", "coalition_values"),
            ("games", "surrogate_check"),
            ("points", "flat_batches"), ("consistency", "label_doubts"),
        ):  # fmt: skip
            setattr(nested, name, self._timed(stage, getattr(nested, name)))

    def clear(self) -> None:
        self.seconds.clear()

    def _timed(self, stage, function):
        def timed(*args, **kwargs):
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                passed = time.perf_counter() - began
                self.seconds[stage] = self.seconds.get(stage, 0.0) + passed

        return timed


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def command() -> str:
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="3000,48842,70000,1000000")
    parser.add_argument("-o", "--out", type=Path, default=HERE / "results" / "speed.json")
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")  # each size starts from an empty process
    rows = []
    for n in map(int, args.sizes.split(",")):
        here, there = context.Pipe()
        process = context.Process(target=measure, args=(n, there))
        process.start()
        rows.append(here.recv())
        process.join()
        print(markdown(speed({"rows": rows[-1:]})).splitlines()[-1], flush=True)
    args.out.write_text(
        json.dumps({"provenance": provenance(command()), "rows": rows}, indent=1) + "\n"
    )
    print(markdown(speed({"rows": rows})))


if __name__ == "__main__":
    main()
