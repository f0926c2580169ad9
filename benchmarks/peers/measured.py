"""What a peer's run reports: seconds, processor seconds, fits, memory."""

from __future__ import annotations

import argparse
import json
import resource
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np


class OutOfTime(BaseException):
    """The limit passed in the middle of a permutation.

    Not an Exception: the peers swallow those and go on.
    """


class Meter:
    """Counts fitted models and stops the run at its limit.

    The limit is of processor seconds, which a busy machine does not stretch.
    """

    def __init__(self, max_cpu_seconds):
        self.max_cpu_seconds = max_cpu_seconds
        self.memory_before = peak_megabytes()
        self.start()

    def start(self):
        self.fits = self.permutations = 0
        self.wall, self.cpu = time.perf_counter(), processor_seconds()
        self.of_permutations = {}

    def seconds(self):
        return time.perf_counter() - self.wall

    def cpu_seconds(self):
        return processor_seconds() - self.cpu

    def fit_scored(self):
        self.fits += 1
        if self.cpu_seconds() > self.max_cpu_seconds:
            raise OutOfTime

    def permutation_done(self):
        """Note the time: what comes after it belongs to a permutation cut short."""
        self.permutations += 1
        self.of_permutations = {
            "permutations_done": self.permutations,
            "seconds_of_those": round(self.seconds(), 3),
            "cpu_seconds_of_those": round(self.cpu_seconds(), 3),
        }

    def read(self):
        return self.of_permutations | {
            "seconds": round(self.seconds(), 3),
            "cpu_seconds": round(self.cpu_seconds(), 3),
            "fits": self.fits,
            "peak_mb": round(peak_megabytes(), 1),
            "peak_mb_after_import": round(self.memory_before, 1),
        }


def processor_seconds():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_megabytes():
    """Return the most this process has held at once.

    VmHWM, because ru_maxrss starts from what the parent held.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def versions(*packages):
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", help="npz with X_train, y_train, X_val, y_val")
    parser.add_argument("out", help="npz to write: values and report, a JSON text")
    parser.add_argument("--method", choices=["knn", "tmc"], default="knn")
    parser.add_argument("--k", type=int, default=5, help="neighbours")
    parser.add_argument("--permutations", type=int, default=100)
    parser.add_argument("--max-cpu-seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def read_table(path):
    with np.load(path) as stored:
        return tuple(stored[name] for name in ("X_train", "y_train", "X_val", "y_val"))


def write_values(path, values, report):
    np.savez(path, values=np.asarray(values, dtype=float), report=json.dumps(report))
