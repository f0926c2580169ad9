"""Second pass: rows become vectors, find their leaf, and are summed into statistics.

A segment of fixed row numbers is one addend of every sum, and segments are added in their
order, so that the sums have the same bits on any number of machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.dataset.model import Model
from hcdv.dataset.workspace import Arrays, Workspace
from hcdv.embedding.dispersion import class_sums
from hcdv.engines.local import n_workers, ordered_map
from hcdv.judging import N_FOLDS
from hcdv.valuation.doubts import probes_of
from hcdv.valuation.points import Points
from hcdv.valuation.statistics import Statistics, context_statistics, group_statistics

_ENCODING = 2  # workers that encode: as many blocks as they hold are in memory at once


@dataclass(frozen=True)
class Sums:
    """All that the later passes need to know of the rows together; sums of row sets add."""

    contexts: Statistics  # (R, L, …)  of the marginals' contexts
    groups: Statistics  # (players · folds, …)  of the game's players
    asked: tuple[Statistics, ...]  # by probe: (R, L, …)  of the contexts that doubt labels
    count: NDArray[np.float64]  # (C,)
    total: NDArray[np.float64]  # (C, d)  of vectors by class
    leaves: NDArray[np.float64]  # (K, C)  rows by leaf and class; (K, 2): rows, and Σy

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.contexts + other.contexts, self.groups + other.groups,
            tuple(a + b for a, b in zip(self.asked, other.asked, strict=True)),
            self.count + other.count, self.total + other.total, self.leaves + other.leaves,
        )  # fmt: skip

    @property
    def n_in_leaf(self) -> NDArray[np.int64]:
        """(K,) rows of each leaf."""
        if len(self.count):
            return self.leaves.sum(axis=1).astype(np.int64)
        return self.leaves[:, 0].astype(np.int64)

    def arrays(self) -> Arrays:
        """As named arrays."""
        stacks = {"contexts": self.contexts, "groups": self.groups}
        stacks |= {f"asked{k}": stats for k, stats in enumerate(self.asked)}
        found: Arrays = {"count": self.count, "total": self.total, "leaves": self.leaves}
        for name, stats in stacks.items():
            found |= {f"{name}.gram": stats.gram, f"{name}.cross": stats.cross}
        return found

    @classmethod
    def from_arrays(cls, held: Arrays) -> Sums:
        """The sums that `arrays` described."""
        n_asked = sum(name.startswith("asked") for name in held) // 2
        names = ["contexts", "groups", *(f"asked{k}" for k in range(n_asked))]
        contexts, groups, *asked = (
            Statistics(held[f"{name}.gram"], held[f"{name}.cross"]) for name in names
        )
        return cls(
            contexts, groups, tuple(asked), held["count"], held["total"], held["leaves"]
        )


@dataclass(frozen=True)
class Gathering:
    """The second pass over one segment: vectors are written, sums returned."""

    model: Model
    folder: Path
    n_jobs: int | None

    def __call__(self, segment: int) -> Sums:
        """Read, embed and assign the rows of a segment, and sum them up."""
        points = self._read(segment)
        leaf = self.model.prototypes.leaves(points.Z)
        Workspace(self.folder).put(vectors_of(segment), {
            "Z": points.Z, "target": points.target, "leaf": leaf,
        })  # fmt: skip
        return summed(self.model, points, leaf, self.n_jobs)

    def _read(self, segment: int) -> Points:
        task, encoder = self.model.task, self.model.rows
        rows = task.rows(segment)
        blocks = task.source.blocks(
            rows.start, rows.stop, task.columns, n_rows=task.layout.block
        )
        workers = min(n_workers(self.n_jobs), _ENCODING)
        Z: NDArray[Any] = np.zeros(0)
        target: NDArray[Any] = np.zeros(0)
        at = 0
        for block in ordered_map(lambda held: encoder.block(*held), blocks, workers):
            if not at:
                Z = np.empty((len(rows), block.Z.shape[1]), dtype=block.Z.dtype)
                target = np.empty(len(rows), dtype=block.target.dtype)
            Z[at : at + len(block)], target[at : at + len(block)] = block.Z, block.target
            at += len(block)
        return points_of(self.model, segment, Z, target)


def vectors_of(segment: int) -> str:
    """Name of a segment's vectors, labels and leaves in the workspace."""
    return f"vectors-{segment:05d}"


def points_of(model: Model, segment: int, Z: NDArray[Any], target: NDArray[Any]) -> Points:
    """Rows of a segment, from what was written of them."""
    key = model.task.keys(model.task.rows(segment))
    return Points(Z, target, model.rows.target.n_classes, key, model.task.folds(key))


def summed(
    model: Model, points: Points, leaf: NDArray[np.integer], n_jobs: int | None
) -> Sums:
    """The statistics of some rows."""
    kernel, dtype = model.probe.features[0], model.dtype
    weight = model.weights(points)
    none_barred = np.zeros((model.asking.n_orders, N_FOLDS), dtype=bool)
    asked = [
        context_statistics(
            points, features, model.asking, none_barred, weight=weight,
            dtype=model.dtype_of(features), n_jobs=n_jobs,
        )
        for features, _ in probes_of(kernel)
    ]  # fmt: skip
    player = model.upper.code[leaf]
    groups = group_statistics(
        points, kernel, player * N_FOLDS + points.fold, len(model.upper.players) * N_FOLDS,
        dtype=dtype, n_jobs=n_jobs,
    )  # fmt: skip
    contexts = context_statistics(
        points, kernel, model.contexts, model.barred, dtype=dtype, n_jobs=n_jobs
    )
    count, total = np.zeros(0), np.zeros((0, points.Z.shape[1]))
    if points.n_classes:
        count, total = class_sums(points.Z, points.target, points.n_classes)
    return Sums(contexts, groups, tuple(asked), count, total, _by_leaf(model, points, leaf))


def _by_leaf(
    model: Model, points: Points, leaf: NDArray[np.integer]
) -> NDArray[np.float64]:
    n_leaves, classes = model.prototypes.n_leaves, points.n_classes
    if classes:
        both = leaf.astype(np.int64) * classes + points.target
        count = np.bincount(both, minlength=n_leaves * classes)
        return count.reshape(n_leaves, classes).astype(np.float64)
    own = [np.ones(len(points)), points.target]
    sums = [np.bincount(leaf, each, minlength=n_leaves) for each in own]
    return np.stack(sums, axis=1).astype(np.float64)
