"""Run blocks of work as tasks of a Ray cluster: answers in task order, whatever fails.

Work is sent to each node once, tasks are numbers, and only answers come back. A task whose
worker or node dies is started again elsewhere; an error of the work itself ends the whole.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from hcdv.errors import need

_AHEAD = 2  # tasks per core that are handed out before the first is asked for


@contextmanager
def ray_engine(
    address: str | None = None,
) -> Iterator[Callable[[Callable[[int], Any], Iterable[int]], Iterator[Any]]]:
    """An engine on the Ray cluster at an address; None: one on this machine, for the time."""
    ray: Any = need("ray", extra="ray", what='engine="ray"', instead='use engine="local"')
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    joined = ray.is_initialized()
    if not joined:
        own = {} if address else {"include_dashboard": False}
        ray.init(
            address=address or "local", log_to_driver=False, logging_level="ERROR", **own
        )
    try:
        yield partial(_ordered, ray)
    finally:
        if not joined:
            ray.shutdown()


def _ordered(ray: Any, work: Callable[[int], Any], tasks: Iterable[int]) -> Iterator[Any]:
    remote = ray.remote(num_cpus=1, max_retries=-1)(_worked)
    shared = ray.put(work)
    cores = int(ray.cluster_resources().get("CPU", 1))
    pending: deque[Any] = deque()
    try:
        for task in tasks:
            pending.append(remote.remote(shared, task))
            if len(pending) >= _AHEAD * max(1, cores):
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
