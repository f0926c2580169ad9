"""Progress bars: on a terminal, or in a notebook; nothing in a pipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def bar(what: str) -> Callable[[int, int], None]:
    """A callback (done, total) that draws a bar on standard error if that is a terminal."""
    from tqdm.auto import tqdm

    drawn: dict[str, Any] = {}

    def show(done: int, total: int) -> None:
        if "bar" not in drawn:
            drawn["bar"] = tqdm(total=total, desc=what, disable=None, leave=False)
        drawn["bar"].total = total
        drawn["bar"].update(done - drawn["bar"].n)
        if done >= total:
            drawn.pop("bar").close()

    return show
