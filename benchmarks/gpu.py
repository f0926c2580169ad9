"""The kernels on a device, with data that lie there: milliseconds beside what the card allows.

    python benchmarks/gpu.py --device cuda
    python benchmarks/gpu.py --device cpu --rows 200000 --times 2

Two cases of made-up rows, 64 contexts, the linear probe: 70,000 x 64 of 10 classes, and
45 million x 32 of 2 (--rows). `points` is what values all rows: statistics of the contexts,
their coefficients, marginals. `doubts` are the label margins of the linear probe, `assign`
and `groups` what the tree needs of the rows. Times are the median of CUDA events, after two
runs to warm up. The limit is the counted operations over the rate of large float32 products
plus the counted bytes over the rate of a copy, both measured in the same process.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from hcdv.bench.provenance import provenance
from hcdv.engines.arrays import torch_arrays
from hcdv.hierarchy.assignment import Prototypes
from hcdv.hierarchy.growth import grow
from hcdv.valuation.consistency import agreement
from hcdv.valuation.contexts import mix, semivalue_contexts, share_contexts
from hcdv.valuation.doubts import taught
from hcdv.valuation.features import linear_features
from hcdv.valuation.marginals import point_marginals
from hcdv.valuation.moments import judge_moments
from hcdv.valuation.points import Points
from hcdv.valuation.probe import coefficients, sketch_columns
from hcdv.valuation.statistics import Statistics, context_statistics, group_statistics

RESULTS = Path(__file__).resolve().parent / "results" / "gpu.json"
ORDERS, THRESHOLDS, DOUBTS, FOLDS, LEAF = 8, 8, 4, 4, 64
TARGETS = {"70k x 64 x 10": {"points": 30.0}, "45M x 32 x 2": {"points": 1000.0}}


def made(xp, n: int, d: int, classes: int) -> Points:
    """Unit rows of noisy classes, made where they lie."""
    draw = torch.Generator(device=xp.device).manual_seed(0)
    Z = torch.randn(n, d, generator=draw, device=xp.device)
    target = torch.randint(classes, (n,), generator=draw, device=xp.device)
    for c in range(classes):
        Z[:, c] += 2.0 * (target == c)
    Z /= Z.norm(dim=1, keepdim=True)
    key = mix(torch.arange(n, device=xp.device))
    fold = torch.arange(n, device=xp.device) % FOLDS
    return Points(Z, target, classes, key, fold)


def some(xp, points: Points, n: int) -> Points:
    """The first rows, in memory."""
    Z, target = xp.get(points.Z[:n]), xp.get(points.target[:n])
    key, fold = xp.get(points.key[:n]).view(np.uint64), xp.get(points.fold[:n])
    return Points(Z, target, points.n_classes, key, fold)


class Work:
    """Every kernel on one case."""

    def __init__(self, xp, n: int, d: int, classes: int) -> None:
        self.points = made(xp, n, d, classes)
        few = some(xp, self.points, min(n, 20_000))
        self.features = linear_features(few.Z)
        self.judge = judge_moments(few, self.features, "loss")
        self.contexts = semivalue_contexts(ORDERS, THRESHOLDS, 0)
        self.asking = share_contexts(DOUBTS, 4, 0, 0.3, 0.9)
        self.barred = np.arange(ORDERS)[:, None] % FOLDS == np.arange(FOLDS)
        tree = grow(few.Z, branching=8, leaf_size=LEAF, rng=np.random.default_rng(0))
        self.prototypes = Prototypes.of(tree, few.Z)
        self.ridge, self.nobody = 0.03 * n, np.zeros((DOUBTS, FOLDS), dtype=bool)
        self.weight = torch.ones(n, device=xp.device)
        self.sketch = sketch_columns(n, ORDERS * THRESHOLDS, d + 1) or d + 1

    def points_(self):
        stats = context_statistics(self.points, self.features, self.contexts, self.barred)
        asked = [
            coefficients(
                Statistics(stats.gram[r], stats.cross[r]), self.judge, self.ridge,
                sketch_columns(len(self.points), ORDERS * THRESHOLDS, self.features.width),
                np.random.default_rng(r),
            )
            for r in range(ORDERS)
        ]  # fmt: skip
        return point_marginals(
            self.points,
            self.features,
            self.contexts,
            asked,
            [self.judge] * ORDERS,
            self.barred,
        )

    def doubts(self):
        stats = context_statistics(
            self.points, self.features, self.asking, self.nobody, weight=self.weight
        )
        n, width = len(self.points), self.features.width
        models = taught(stats, self.asking, 0.003 * n, n, width, 0, 1)
        return agreement(
            self.points, self.features, self.asking, models, ~self.nobody, self.nobody,
            self.weight,
        )  # fmt: skip

    def assign(self):
        return self.prototypes.leaves(self.points.Z)

    def groups(self):
        code = self.points.fold + FOLDS * (self.points.key.remainder(128))
        return group_statistics(self.points, self.features, code, 128 * FOLDS)

    def counted(self) -> dict[str, tuple[float, float]]:
        """Operations and bytes that each cannot do without."""
        n, D, C = len(self.points), self.features.width, self.points.n_classes
        T, row = ORDERS * THRESHOLDS, 4.0 * (D - 1)
        gram = 2.0 * n * D * (D + C)
        asked = 2.0 * n * D * (2 * C + 2 * self.sketch) * T
        margins = 2.0 * n * D * (C + self.sketch) * self.asking.p.size
        levels = self.prototypes.shape.depth
        return {
            "points": (ORDERS * gram + asked, n * (2 * row + 12 + 4.0 * ORDERS)),
            "doubts": (DOUBTS * gram + margins, n * (2 * row + 12 + 4.0 * (DOUBTS + C))),
            "assign": (2.0 * n * (D - 1) * 8 * levels, n * (row + 4)),
            "groups": (gram, n * (row + 12)),
        }


def milliseconds(job, device: torch.device, times: int) -> float:
    """The median, after two runs to warm up."""
    found = []
    for run in range(times + 2):
        if device.type == "cuda":
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            job()
            ended.record()
            torch.cuda.synchronize(device)
            took = began.elapsed_time(ended)
        else:
            start = time.perf_counter()
            job()
            took = 1000.0 * (time.perf_counter() - start)
        if run > 1:
            found.append(took)
    return float(np.median(found))


def rates(device: torch.device) -> dict[str, float]:
    """GFLOP/s of float32 products and GB/s of reading and writing."""
    side = 8192 if device.type == "cuda" else 1024
    a, b = torch.rand(2, side, side, device=device)
    big = torch.rand(2**28 if device.type == "cuda" else 2**24, device=device)
    return {
        "gflop_s": 2.0 * side**3 / milliseconds(lambda: a @ b, device, 5) / 1e6,
        "gb_s": 2.0 * big.nbytes / milliseconds(big.clone, device, 5) / 1e6,
    }


def measured(xp, name: str, shape: tuple[int, int, int], rate: dict, times: int) -> list:
    """A line a kernel."""
    work, lines = Work(xp, *shape), []
    for part, (flops, moved) in work.counted().items():
        job = work.points_ if part == "points" else getattr(work, part)
        took = milliseconds(job, xp.device, times)
        limit = flops / rate["gflop_s"] / 1e6 + moved / rate["gb_s"] / 1e6
        line = {
            "case": name, "n": shape[0], "part": part, "ms": took, "limit_ms": limit,
            "ratio": took / limit, "target_ms": TARGETS[name].get(part),
        }  # fmt: skip
        lines.append(line)
        print(json.dumps(line), flush=True)
    return lines


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    asked.add_argument("--rows", type=int, default=45_000_000, help="of the larger case")
    asked.add_argument("--times", type=int, default=9)
    options = asked.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        asked.error(
            "PyTorch finds no CUDA device; --device cpu tries the script without one"
        )
    xp = torch_arrays(options.device)
    rate = rates(xp.device)
    lines = measured(
        xp, "70k x 64 x 10", (min(70_000, options.rows), 64, 10), rate, options.times
    )
    lines += measured(xp, "45M x 32 x 2", (options.rows, 32, 2), rate, options.times)
    about = provenance("python benchmarks/gpu.py")
    if options.device == "cuda":
        about["device"] = torch.cuda.get_device_name()
        RESULTS.write_text(
            json.dumps({"rates": rate, "rows": lines, "provenance": about}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
