"""Figures show the numbers of the run, on axes that are given or made."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from fits import flipped, quick, two_classes
from hcdv import HCDV, MissingExtra, ParameterError, plot
from hcdv.uses.curves import value_curves

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def v():
    X, y = two_classes(150, noise=0.05)
    return quick().fit(X, flipped(y, 0.1, RNG)[0])


@pytest.fixture(scope="module")
def numbers():
    X, _ = two_classes(90)
    return quick().fit(X, X[:, 0] + 0.5)


def test_parts_are_as_wide_as_they_are_worth(v):
    ax = plot.parts(v)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx(list(v.run_.valuation.surplus.values()))
    assert f"{v.surplus_:+.4f}" in ax.get_title()


def test_a_level_of_the_tree_is_as_wide_as_the_rows(v):
    ax = plot.tree(v, levels=2)
    assert len(ax.patches) == 1 + v.tree_.n_children[0]
    assert sum(bar.get_width() for bar in ax.patches) == 2 * 150
    with pytest.raises(ParameterError, match="levels must be"):
        plot.tree(v, levels=0)


@pytest.mark.parametrize("by", plot.COLOURINGS)
def test_every_row_is_a_point_of_the_map(v, numbers, by):
    n_suspects = int(v.suspects()["is_suspect"].sum())
    drawn = sum(len(held.get_offsets()) for held in plot.map(v, by).collections)
    assert drawn == 150 + (n_suspects if by == "suspects" else 0)
    assert len(plot.map(numbers, by).collections[0].get_offsets()) == 90


def test_a_colouring_that_is_none_is_refused(v):
    with pytest.raises(ParameterError, match="one of value, class, suspects"):
        plot.map(v, "worth")


def test_curves_are_those_of_the_run(v, numbers):
    loss, accuracy = value_curves(v.run_)
    assert np.allclose(plot.curves(v).lines[0].get_ydata(), accuracy.best)
    assert np.allclose(plot.curves(v, metric="loss").lines[0].get_ydata(), loss.best)
    assert "r2" in plot.curves(numbers).get_ylabel()
    with pytest.raises(ParameterError, match="one of loss, accuracy for this run"):
        plot.curves(v, metric="auc")


@pytest.mark.parametrize("draw", [plot.parts, plot.tree, plot.map, plot.curves])
def test_axes_that_are_given_are_drawn_on_and_returned(v, draw):
    ax = Figure().subplots()
    assert draw(v, ax=ax) is ax
    with pytest.raises(NotFittedError):
        draw(HCDV())


def test_without_matplotlib_the_way_to_it_is_told(v, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtra, match=r"pip install 'hcdv\[plot\]'"):
        plot.parts(v)
