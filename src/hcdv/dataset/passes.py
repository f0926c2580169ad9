"""The passes over a data set, one after the other; each goes on where it was interrupted.

labels    the label column alone: classes and how many rows each has
sample    all columns: a sample, and the labels of every level of text columns
gather    all columns: vectors, leaves, statistics
value     the vectors: flat marginals, dispersion, doubts
write     what was found: every row's share, as Parquet
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.dataset.finishing import Finishing, Shares
from hcdv.dataset.gathering import Gathering, Sums
from hcdv.dataset.model import Model
from hcdv.dataset.run import VALUES
from hcdv.dataset.sampling import Sample, Sampling, SegmentSampling
from hcdv.dataset.task import Task
from hcdv.dataset.valuing import Found, Questions, Valuing
from hcdv.dataset.workspace import Arrays, Workspace
from hcdv.engines.local import one_thread_each
from hcdv.progress import rows_bar
from hcdv.targets import Target

PAUSE = 15.0  # seconds between checkpoints
_N_DONE = "n_done"


Engine = Callable[[Callable[[int], Any], Iterable[int]], Iterator[Any]]
"""work, segments → answers, in the order of the segments."""


def local(work: Callable[[int], Any], segments: Iterable[int]) -> Iterator[Any]:
    """One segment after the other, here; threads share the work within each."""
    return map(work, segments)


@dataclass
class Passes:
    """One task, its workspace, and where segments are worked on."""

    task: Task
    workspace: Workspace
    target: Target
    count: NDArray[np.int64]
    validation: Sample | None
    verbose: bool = False
    engine: Engine = local
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    kept: float = 0.0  # when the last checkpoint was written

    @property
    def n_jobs(self) -> int | None:
        """Threads of one segment: where segments are worked on side by side, one."""
        return self.task.plan.n_jobs if self.engine is local else 1

    def run(self) -> tuple[Model, Sums, Shares]:
        """All passes but the first; values lie in the workspace then."""
        with one_thread_each():
            model = self._model()
            sums = self._gathered(model)
            found = self._found(model, sums)
            with self._timed("games"):
                shares = Shares.of(model, sums, found, self.task.plan.n_jobs)
            self._write(shares)
        return model, sums, shares

    def _model(self) -> Model:
        sampling, done = Sampling(self.task, self.target), 0
        if self.workspace.has("sample"):
            held = self.workspace.get("sample")
            done = int(held.pop(_N_DONE)[0])
            sampling.restore(held)
        left = range(done, self.task.n_segments)
        with self._timed("sample"), self._bar("1/4 sample", done) as tick:
            for segment, _ in zip(left, self._sampled(sampling, left), strict=True):
                self._keep("sample", sampling.state, segment + 1)
                tick(len(self.task.rows(segment)))
        with self._timed("tree"):
            return Model.of(
                self.task, self.target, self.count, sampling.sample(), sampling.mass,
                self.validation,
            )  # fmt: skip

    def _sampled(self, sampling: Sampling, segments: range) -> Iterator[None]:
        if self.engine is local:
            yield from map(sampling.read, segments)
            return
        for found in self.engine(SegmentSampling(self.task, self.target), segments):
            yield sampling.add(found)

    def _gathered(self, model: Model) -> Sums:
        work = Gathering(model, self.workspace.folder, self.n_jobs)
        return self._summed("gather", "2/4 gather", work, Sums.from_arrays)

    def _found(self, model: Model, sums: Sums) -> Found:
        questions = Questions.of(model, sums, self.task.plan.n_jobs)
        work = Valuing(questions, self.workspace.folder, self.n_jobs)
        return self._summed("value", "3/4 value", work, lambda held: Found(**held))

    def _write(self, shares: Shares) -> None:
        (self.workspace.folder / VALUES).mkdir(exist_ok=True)
        work = Finishing(shares, self.workspace.folder)
        with self._timed("write"), self._bar("4/4 write", 0) as tick:
            segments = range(self.task.n_segments)
            for segment, _ in zip(segments, self.engine(work, segments), strict=True):
                tick(len(self.task.rows(segment)))

    def _summed(
        self, name: str, what: str, work: Callable[[int], Any],
        from_arrays: Callable[[Arrays], Any],
    ) -> Any:  # fmt: skip
        """Work on every segment not done yet, and add up the answers in their order."""
        total, done = None, 0
        if self.workspace.has(name):
            held = self.workspace.get(name)
            done = int(held.pop(_N_DONE)[0])
            total = from_arrays(held)
        with self._timed(name), self._bar(what, done) as tick:
            left = range(done, self.task.n_segments)
            for segment, answer in zip(left, self.engine(work, left), strict=True):
                total = answer if total is None else total + answer
                self._keep(name, total.arrays, segment + 1)
                tick(len(self.task.rows(segment)))
        return total

    def _keep(self, name: str, state: Callable[[], Arrays], n_done: int) -> None:
        """Write a checkpoint, if the last is some time ago or the pass ends."""
        now = time.monotonic()
        if now - self.kept >= PAUSE or n_done == self.task.n_segments:
            self.workspace.put(name, state() | {_N_DONE: np.array([n_done])})
            self.kept = now

    def _bar(self, what: str, done: int) -> Any:
        from contextlib import nullcontext

        if not self.verbose:
            return nullcontext(lambda _: None)
        return rows_bar(
            what, self.task.n_rows, min(done * self.task.layout.segment, self.task.n_rows)
        )

    def _timed(self, name: str) -> _Timer:
        return _Timer(self, name)


class _Timer:
    """Seconds of a with block, by the clock and of all cores, under a name."""

    def __init__(self, passes: Passes, name: str) -> None:
        self.passes, self.name = passes, name

    def __enter__(self) -> None:
        self.began = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.passes.seconds[self.name] = time.perf_counter() - self.began[0]
        self.passes.cpu_seconds[self.name] = time.process_time() - self.began[1]
