"""Run blocks of work as tasks of a Ray cluster: answers in task order, whatever fails.

Work is sent to each node once, tasks are numbers, and only answers come back. A task whose
worker or node dies is started again elsewhere, as often as the caller allows; an error of
the work itself ends the whole.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from hcdv.errors import ExecutorError, need

_AHEAD = 2  # tasks per core that are handed out before the first is asked for


Engine = Callable[[Callable[[int], Any], Iterable[int]], Iterator[Any]]
"""work, tasks → answers, in the order of the tasks."""


@contextmanager
def ray_engine(address: str | None = None, retries: int = -1) -> Iterator[Engine]:
    """An engine on the Ray cluster at an address; None: one on this machine, for the time.

    A cluster that this process has joined is used as it is. retries: of a task whose worker
    dies; −1: for ever, for work that does not kill its worker.
    """
    ray: Any = need("ray", extra="ray", what='engine="ray"', instead='use engine="local"')
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    joined = ray.is_initialized()
    if not joined:
        own = {} if address else {"include_dashboard": False}
        if not address:  # Ray would let its workers wait behind all else: niceness 15
            os.environ.setdefault("RAY_worker_niceness", "0")
        ray.init(
            address=address or "local", log_to_driver=False, logging_level="ERROR", **own
        )
    try:
        yield partial(_ordered, ray, retries)
    finally:
        if not joined:
            ray.shutdown()


def n_cores() -> int:
    """Cores of the cluster that this process has joined."""
    ray: Any = need("ray", extra="ray", what='engine="ray"')
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _ordered(
    ray: Any, retries: int, work: Callable[[int], Any], tasks: Iterable[int]
) -> Iterator[Any]:
    remote = ray.remote(num_cpus=1, max_retries=retries)(_worked)
    shared = ray.put(work)
    pending: deque[Any] = deque()
    try:
        for task in tasks:
            pending.append(remote.remote(shared, task))
            if len(pending) >= _AHEAD * n_cores():
                yield _answer(ray, pending)
        while pending:
            yield _answer(ray, pending)
    finally:
        for left in pending:
            ray.cancel(left, force=True)


def _worked(work: Callable[[int], Any], task: int) -> Any:
    """What a worker does: one thread, as one core was asked for."""
    from hcdv.engines.local import one_thread_each

    with one_thread_each():
        return work(task)


def _answer(ray: Any, pending: deque[Any]) -> Any:
    """The first answer; errors of the work come back as they were raised."""
    first = pending.popleft()
    try:
        return ray.get(first)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        why = str(error).strip().partition("\n")[0].rstrip(".")
        raise ExecutorError(
            f"the workers of a task died as often as was allowed: {why}. Where memory is short, "
            "give Ray fewer cores (ray start --num-cpus)."
        ) from error
