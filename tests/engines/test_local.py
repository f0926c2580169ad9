"""Blocks of work on this machine: in order for any number of workers, and watched."""

from __future__ import annotations

import pytest

from hcdv.engines.local import ordered_map, watched


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 4])
def test_answers_come_in_order_and_every_block_is_told_of(n_jobs):
    ticks = []
    with watched(lambda: ticks.append(1)):
        answers = list(ordered_map(lambda task: task**2, range(20), n_jobs))
    assert answers == [task**2 for task in range(20)]
    assert len(ticks) == 20


def test_nobody_is_told_after_the_watch_has_ended():
    ticks = []
    with pytest.raises(ZeroDivisionError), watched(lambda: ticks.append(1)):
        list(ordered_map(lambda task: 1 / task, [1, 0], 1))
    list(ordered_map(str, range(9), 2))
    assert len(ticks) == 1
