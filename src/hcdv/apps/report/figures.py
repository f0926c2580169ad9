"""Numbers as shapes: where the lines, bars and ticks of a figure lie in its frame.

Every figure is drawn in a frame of 400 × 240, so that text is legible at any width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

WIDTH, HEIGHT = 400.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 20.0, 10.0, 34.0
_ROW = 26.0  # height of a class among the values
_NAME = 96.0  # room for its name


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two, at even steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [
        round(k * step, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)
    ]


def chart(
    lines: Sequence[tuple[str, Sequence[float], Sequence[float]]], *,
    dots: tuple[Sequence[float], Sequence[float]] = ((), ()), percent: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Lines (kind, x, y) over shares 0 … 1, with ticks."""
    every = [y for _, _, ys in lines for y in ys] + list(dots[1])
    low, high = min([*every, 0.0] if percent else every), max(every)
    low = max(low, -1.0) if percent else low
    high = high if high > low else low + 1.0
    high += 0.03 * (high - low)
    place_x, place_y = _across(0.0, 1.0), _upward(low, high)
    return {
        "lines": [
            {
                "kind": kind,
                "points": " ".join(
                    f"{place_x(x):.1f},{place_y(max(y, low)):.1f}"
                    for x, y in zip(xs, ys, strict=True)
                ),
            }
            for kind, xs, ys in lines
        ],
        "dots": [
            {"x": place_x(x), "y": place_y(y), "share": x, "figure": y}
            for x, y in zip(*dots, strict=True)
        ],
        "x_ticks": [(place_x(each), f"{each:.0%}") for each in (0, 0.25, 0.5, 0.75, 1)],
        "y_ticks": [
            (place_y(each), f"{each:.0%}" if percent else f"{each:.3g}")
            for each in ticks(low, high)
        ],
        "left": _LEFT, "right": WIDTH - _RIGHT, "top": _TOP, "bottom": HEIGHT - _BOTTOM,
    }  # fmt: skip


def _across(low: float, high: float) -> Callable[[float], float]:
    return lambda x: _LEFT + (x - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)


def _upward(low: float, high: float) -> Callable[[float], float]:
    return lambda y: HEIGHT - _BOTTOM - (y - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)


def bar(pieces: Sequence[float]) -> list[dict[str, float]]:
    """Pieces of a bar, one after the other from zero: what is below goes back; shares of it."""
    ends = np.cumsum([0.0, *pieces])
    low, high = float(ends.min()), float(ends.max())
    reach = (high - low) or 1.0
    return [
        {
            "x": (min(a, b) - low) / reach * WIDTH, "width": abs(b - a) / reach * WIDTH,
            "is_below": float(b < a),
        }
        for a, b in pairwise(ends)
    ]  # fmt: skip


def hills(
    spread: dict[str, Any], unit: float, tell: Callable[[float], str]
) -> dict[str, Any]:
    """A hill for every class over one axis of values, even near zero and logarithmic far out."""
    edges = np.asarray(spread["edges"])
    low, high = float(edges[0]), float(edges[-1])
    room = WIDTH - _NAME - _RIGHT

    def place(x: float) -> float:
        return _NAME + (x - low) / (high - low) * room

    rows: list[dict[str, Any]] = []
    for number, group in enumerate(spread["groups"]):
        base = _TOP + (number + 1) * _ROW
        share = np.asarray(group["counts"], dtype=float) / max(group["n"], 1)
        tall = np.sqrt(share / (share.max() or 1.0)) * (_ROW - 5)
        middle = (edges[:-1] + edges[1:]) / 2
        path = " ".join(
            f"L{place(x):.1f} {base - h:.1f}" for x, h in zip(middle, tall, strict=True)
        )
        rows.append({
            "name": group["name"], "y": base,
            "path": f"M{place(low):.1f} {base:.1f} {path} L{place(high):.1f} {base:.1f} Z",
        })  # fmt: skip
    bottom = _TOP + len(rows) * _ROW
    marks = [
        (place(math.asinh(v / spread["scale"])), tell(v))
        for v in _asinh_ticks(low, high, spread["scale"], unit)
    ]
    return {
        "rows": rows, "height": bottom + 30, "bottom": bottom, "zero": place(0.0),
        "x_ticks": _apart(marks), "left": _NAME, "right": WIDTH - _RIGHT,
    }  # fmt: skip


def _asinh_ticks(low: float, high: float, scale: float, unit: float) -> list[float]:
    """Zero, and powers of ten on either side as far as the axis goes."""
    found = [0.0]
    power = unit * 10.0 ** math.ceil(math.log10(scale / unit) - 0.5)
    for _ in range(6):
        found += [v for v in (power, -power) if low <= math.asinh(v / scale) <= high]
        power *= 10
    return sorted(found)


def _apart(marks: list[tuple[float, str]], least: float = 38.0) -> list[tuple[float, str]]:
    """Ticks whose words do not run into each other; zero stays."""
    kept: list[tuple[float, str]] = []
    for mark in sorted(marks, key=lambda each: (each[1] != "0", each[0])):
        if all(abs(mark[0] - other[0]) >= least for other in kept):
            kept.append(mark)
    return kept


def heat(
    certainty: dict[str, Any], unit: float, tell: Callable[[float], str]
) -> dict[str, Any]:
    """Cells of a grid of counts as squares of an opacity; ticks of value and error."""
    x_edges, y_edges = np.asarray(certainty["x_edges"]), np.asarray(certainty["y_edges"])
    count = np.asarray(certainty["count"], dtype=float)
    place_x = _across(float(x_edges[0]), float(x_edges[-1]))
    place_y = _upward(float(y_edges[0]), float(y_edges[-1]))
    most = math.log1p(count.max()) or 1.0
    cells = [
        {
            "x": place_x(x_edges[i]), "y": place_y(y_edges[j + 1]),
            "width": place_x(x_edges[i + 1]) - place_x(x_edges[i]) + 0.3,
            "height": place_y(y_edges[j]) - place_y(y_edges[j + 1]) + 0.3,
            "opacity": round(0.12 + 0.88 * math.log1p(count[i, j]) / most, 2),
        }
        for i, j in zip(*np.nonzero(count), strict=True)
    ]  # fmt: skip
    scale = certainty["scale"]
    marks = [
        (place_x(math.asinh(v / scale)), tell(v))
        for v in _asinh_ticks(float(x_edges[0]), float(x_edges[-1]), scale, unit)
    ]
    shift = math.log10(unit)
    powers = range(math.ceil(y_edges[0] - shift), math.floor(y_edges[-1] - shift) + 1)
    few = [unit * 10.0**p for p in powers] or [
        10.0 ** float((y_edges[0] + y_edges[-1]) / 2)
    ]
    return {
        "cells": cells, "x_ticks": _apart(marks),
        "y_ticks": [(place_y(math.log10(v)), tell(v).lstrip("+")) for v in few],
        "left": _LEFT, "right": WIDTH - _RIGHT, "top": _TOP, "bottom": HEIGHT - _BOTTOM,
    }  # fmt: skip
