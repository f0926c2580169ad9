"""Progress bars: for long work, on a terminal."""

from __future__ import annotations

import sys
from typing import ClassVar

import numpy as np
import pytest

from fits import quick, two_classes
from hcdv.progress import timed_bar


class Drawn:
    """Stands in for tqdm: what a bar was told, without a terminal's size in it."""

    made: ClassVar[list[Drawn]] = []

    def __init__(self, total, disable, bar_format="", **_):
        self.total, self.text, self.at = total, bar_format, [0.0]
        self.quiet = disable is None and not sys.stderr.isatty()
        Drawn.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def n(self):
        return self.at[-1]

    def update(self, by):
        self.at.append(self.n + by)


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    monkeypatch.setattr("tqdm.auto.tqdm", Drawn)
    monkeypatch.setattr(Drawn, "made", [])
    return Drawn.made


def test_a_bar_moves_with_the_clock_and_stays_full(drawn, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("hcdv.progress.time.monotonic", lambda: now[0])
    with timed_bar("valuing", 80.0) as tick:
        for now[0] in (20.0, 60.0, 100.0, 200.0):
            tick()
    assert drawn[0].at == [0, 20, 60, 80, 80]
    assert drawn[0].total == 80
    assert "of about 01:20" in drawn[0].text


def test_short_work_gets_no_bar_and_a_pipe_a_quiet_one(drawn):
    with timed_bar("valuing", 2.0) as tick:
        tick()
    assert not drawn
    with timed_bar("valuing", 80.0) as tick:
        tick()
    assert drawn[0].quiet


@pytest.mark.parametrize("verbose", [False, True])
def test_a_long_fit_draws_a_bar_if_asked_to_and_has_the_same_values(
    drawn, monkeypatch, verbose
):
    X, y = two_classes()
    plain = quick().fit(X, y)
    monkeypatch.setattr("hcdv.estimator.estimated_seconds", lambda *_: 90.0)
    shown = quick(verbose=verbose).fit(X, y)
    assert len(drawn) == verbose
    assert all(len(one.at) > 3 for one in drawn)
    assert np.array_equal(plain.values_, shown.values_)


class Shell:
    """Stands in for IPython: what `get_ipython` gives in a kernel, or at a prompt."""

    def __init__(self, *, kernel: bool) -> None:
        if kernel:
            self.kernel = object()

    def get_ipython(self):
        return self


@pytest.mark.parametrize("kernel", [True, False])
def test_a_notebook_shows_bars_though_it_is_no_terminal(drawn, monkeypatch, kernel):
    monkeypatch.setitem(sys.modules, "IPython", Shell(kernel=kernel))
    monkeypatch.setattr(Drawn, "__init__", _noting)
    with timed_bar("valuing", 80.0):
        pass
    assert drawn[-1].away is (False if kernel else None)


def _noting(self, disable, **_):
    self.away, self.at = disable, [0.0]
    Drawn.made.append(self)
