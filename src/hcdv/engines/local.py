"""Run fixed blocks of work on this machine: any number of workers, the same bits.

A kernel is cut into tasks that do not depend on the number of workers, BLAS is held to
one thread inside each, and results come back in task order, so that a reduction over
them adds in the same order whoever computed them.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Answer = TypeVar("Answer")


class _Pinned:
    """How many blocks hold BLAS to one thread, and the limits to restore."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.depth = 0
        self.limits: Any = None
        self.n_modules = 0
        self.found: ThreadpoolController | None = None

    def libraries(self) -> ThreadpoolController:
        """Looked for again only where something was imported since, which may bring its own."""
        if self.found is None or self.n_modules != len(sys.modules):
            self.n_modules, self.found = len(sys.modules), ThreadpoolController()
        return self.found


_PINNED = _Pinned()


def n_workers(n_jobs: int | None) -> int:
    """Resolve n_jobs as joblib does: None is one worker, -1 is every available core."""
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )
    if n_jobs is None:
        return 1
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Hold BLAS to one thread within a with block: small solves collapse under more.

    The limit is the process's, and finding its libraries takes milliseconds: blocks within
    blocks share the outermost one's, which the last to leave lifts.
    """
    with _PINNED.lock:
        _PINNED.depth += 1
        if _PINNED.depth == 1:
            _PINNED.limits = _PINNED.libraries().limit(limits=1)
    try:
        yield
    finally:
        with _PINNED.lock:
            _PINNED.depth -= 1
            if _PINNED.depth == 0 and _PINNED.limits is not None:
                _PINNED.limits.restore_original_limits()


_TICK: ContextVar[Callable[[], object]] = ContextVar("tick", default=lambda: None)


@contextmanager
def watched(tick: Callable[[], object]) -> Iterator[None]:
    """Call tick whenever a block of work is done within a with block."""
    token = _TICK.set(tick)
    try:
        yield
    finally:
        _TICK.reset(token)


def ordered_map(
    work: Callable[[Task], Answer], tasks: Iterable[Task], n_jobs: int | None = None
) -> Iterator[Answer]:
    """Yield work(task) in task order, computing at most two tasks ahead per worker."""
    workers, tick = n_workers(n_jobs), _TICK.get()

    def done(answer: Answer) -> Answer:
        tick()
        return answer

    with one_thread_each():
        if workers == 1:
            yield from (done(work(task)) for task in tasks)
            return
        pending: deque[Future[Answer]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            try:
                for task in tasks:
                    pending.append(pool.submit(work, task))
                    if len(pending) >= 2 * workers:
                        yield done(pending.popleft().result())
                while pending:
                    yield done(pending.popleft().result())
            finally:
                for future in pending:
                    future.cancel()
