"""Progress bars: on a terminal, or in a notebook; nothing in a pipe."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LONG = 3.0  # seconds that need no announcement


def in_notebook() -> bool:
    """Whether output goes to a notebook: its kernel shows bars, though it is no terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _tqdm() -> tuple[Any, bool | None]:
    """The bar of where we are, and whether it stays away; None: unless there is a terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets the bar is text
        from tqdm.auto import tqdm
    return tqdm, False if in_notebook() else None


def bar(what: str) -> Callable[[int, int], None]:
    """A callback (done, total) that draws a bar on standard error if that is a terminal."""
    tqdm, away = _tqdm()
    drawn: dict[str, Any] = {}

    def show(done: int, total: int) -> None:
        if "bar" not in drawn:
            drawn["bar"] = tqdm(total=total, desc=what, disable=away, leave=False)
        drawn["bar"].total = total
        drawn["bar"].update(done - drawn["bar"].n)
        if done >= total:
            drawn.pop("bar").close()

    return show


@contextmanager
def timed_bar(what: str, expected: float) -> Iterator[Callable[[], None]]:
    """A callback that moves a bar along the seconds expected; past them the bar is full."""
    if expected < LONG:
        yield lambda: None
        return
    tqdm, away = _tqdm()

    minutes, seconds = divmod(round(expected), 60)
    about = f"{{elapsed}} of about {minutes:02}:{seconds:02}"
    started = time.monotonic()
    with tqdm(
        total=expected, desc=what, disable=away, leave=False,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| " + about,
    ) as drawn:  # fmt: skip

        def tick() -> None:
            drawn.update(min(time.monotonic() - started, expected) - drawn.n)

        yield tick


@contextmanager
def rows_bar(what: str, total: int, before: int = 0) -> Iterator[Callable[[int], Any]]:
    """A callback that counts further rows: how many a second, and the time left, are shown."""
    tqdm, away = _tqdm()

    with tqdm(
        total=total, initial=before, desc=what, unit=" rows", unit_scale=True, disable=away,
        leave=False,
    ) as drawn:  # fmt: skip
        yield drawn.update
