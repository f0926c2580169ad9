"""Figures of a fitted model by matplotlib: each function draws on axes and returns them.

from hcdv import plot
plot.tree(v); plot.map(v, "suspects"); plot.curves(v); plot.parts(v)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hcdv.engines.local import one_thread_each
from hcdv.errors import ParameterError, need
from hcdv.uses.curves import Curves, value_curves
from hcdv.uses.plane import plane_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hcdv.estimator import HCDV

COLOURINGS = ("value", "class", "suspects")
_SCALE = ("#c2500f", "#d9d5cc", "#1d5fb4")  # below zero, zero, above
_CLASSES = (
    "#3b76c4", "#d9822b", "#2f9e77", "#c0518f", "#8a63c9", "#a98a12", "#3aa5c2", "#c4554d",
    "#6b8e23", "#8d6e63",
)  # fmt: skip
_LINES = {"best": "#1d5fb4", "random": "#6f6b64", "worst": "#b23a0c"}
_REACH = 0.95  # quantile of |value| at which colours end


def parts(v: HCDV, ax: Axes | None = None) -> Axes:
    """The surplus by part of the payoff: what is below zero goes back."""
    check_is_fitted(v, "values_")
    ax = _axes(ax, (6.0, 2.2))
    at, found = 0.0, v.run_.valuation.surplus
    for colour, (name, part) in zip(_CLASSES, found.items(), strict=False):
        ax.barh(0, part, left=at, color=colour, label=f"{name} {part:+.4f}")
        at += part
    ax.axvline(0.0, color="0.4", linewidth=1)
    ax.set(yticks=[], title=f"surplus {v.surplus_:+.4f}", xlabel="worth over no data")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.5), ncols=3, frameon=False)
    return ax


def tree(v: HCDV, ax: Axes | None = None, *, levels: int = 4) -> Axes:
    """The upper levels of coalitions: width is rows, colour what a row is worth on average."""
    check_is_fitted(v, "values_")
    if not isinstance(levels, int | np.integer) or levels < 1:
        raise ParameterError("levels", levels, "a number of levels from 1")
    ax = _axes(ax, (9.0, 3.6))
    found, frame = v.tree_, v.coalitions_
    start, stop = found.start.tolist(), found.stop.tolist()
    shown = np.flatnonzero((found.level < levels) & (found.size > 0))
    per_row = frame["value_per_row"].to_numpy()[shown]
    reach = float(np.quantile(np.abs(per_row), _REACH)) or 1.0
    scale, norm = _diverging(reach)
    depth = int(found.level[shown].max()) + 1
    ax.bar(
        found.start[shown], 1.0, found.size[shown], -found.level[shown] - 1.0, align="edge",
        color=scale(norm(per_row)), edgecolor="white", linewidth=0.4,
    )  # fmt: skip
    for node in shown[found.size[shown] > 0.07 * found.n_rows].tolist():
        ax.text(
            (start[node] + stop[node]) / 2, -float(found.level[node]) - 0.5,
            f"#{node}\n{found.size[node]:,}", ha="center", va="center", fontsize=8,
        )  # fmt: skip
    ax.set(
        xlim=(0, found.n_rows), ylim=(-depth, 0), xlabel="rows",
        yticks=-np.arange(depth) - 0.5, yticklabels=range(depth), ylabel="level",
    )  # fmt: skip
    _colour_bar(ax, scale, norm)
    return ax


def map(  # noqa: A001, plot.map says what it is
    v: HCDV, by: str = "value", ax: Axes | None = None
) -> Axes:
    """Rows on the two principal directions of their vectors, coloured by value, class or doubt."""
    check_is_fitted(v, "values_")
    if by not in COLOURINGS:
        raise ParameterError("by", by, f"one of {', '.join(COLOURINGS)}")
    ax = _axes(ax, (7.0, 5.2))
    plane = plane_of(v.embedding_)
    x, y = plane.at.T
    dot: dict[str, Any] = {"s": max(2.0, min(30.0, 30_000 / len(x))), "linewidths": 0}
    if by == "value":
        scale, norm = _diverging(float(np.quantile(np.abs(v.values_), _REACH)) or 1.0)
        order = np.argsort(np.abs(v.values_), kind="stable")
        ax.scatter(x[order], y[order], c=v.values_[order], cmap=scale, norm=norm, **dot)
        _colour_bar(ax, scale, norm)
    elif by == "class" and v.run_.target.classes is None:
        drawn = ax.scatter(x, y, c=v.run_.labels, cmap="viridis", **dot)
        ax.figure.colorbar(drawn, ax=ax, label="target")
    elif by == "class":
        for code, name in enumerate(v.classes_.tolist()):
            own = v.run_.labels == name
            ax.scatter(x[own], y[own], color=_CLASSES[code % 10], label=str(name), **dot)
        ax.legend(frameon=False, markerscale=2, bbox_to_anchor=(1.0, 1.0), loc="upper left")
    else:
        doubted = v.suspects()
        rows = doubted.loc[doubted["is_suspect"], "row"].to_numpy()
        ax.scatter(x, y, color="0.8", **dot)
        ax.scatter(x[rows], y[rows], color="#d4380d", label="looks wrong", **dot)
        ax.legend(frameon=False, markerscale=2)
    ax.set(xticks=[], yticks=[], title=f"{plane.share:.0%} of the variance")
    return ax


def curves(v: HCDV, ax: Axes | None = None, *, metric: str | None = None) -> Axes:
    """What the built-in probe makes of shares of the rows: the best, the worst, any, selected.

    metric: that of the run, or "accuracy" beside the loss. None: accuracy, if it is there.
    """
    check_is_fitted(v, "values_")
    with one_thread_each():
        found = {each.metric: each for each in value_curves(v.run_)}
    if metric is not None and metric not in found:
        raise ParameterError("metric", metric, f"one of {', '.join(found)} for this run")
    shown: Curves = list(found.values())[-1] if metric is None else found[metric]
    ax = _axes(ax, (6.0, 4.0))
    for name, colour in _LINES.items():
        style = "--" if name == "random" else "-"
        told = "any" if name == "random" else f"the {name} first"
        ax.plot(shown.share, getattr(shown, name), style, color=colour, label=told)
    ax.plot(shown.selected_share, shown.selected, "o", color="#1f7a4d", label="selected")
    ax.set(xlabel="share of the rows taught with", ylabel=f"{shown.metric} of the probe")
    ax.legend(frameon=False)
    return ax


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """These axes, or new ones."""
    if ax is not None:
        return ax
    pyplot: Any = need("matplotlib.pyplot", extra="plot", what="hcdv.plot")
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _diverging(reach: float) -> tuple[Any, Any]:
    """Colours from below zero to above, and what puts values on their scale."""
    colours: Any = need("matplotlib.colors", extra="plot", what="hcdv.plot")
    scale = colours.LinearSegmentedColormap.from_list("worth", _SCALE)
    return scale, colours.Normalize(-reach, reach, clip=True)


def _colour_bar(ax: Axes, scale: Any, norm: Any) -> None:
    from matplotlib.cm import ScalarMappable

    drawn = ScalarMappable(norm, scale)
    ax.figure.colorbar(drawn, ax=ax, label="value of a row", extend="both")
