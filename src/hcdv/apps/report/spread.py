"""How values spread, class by class, and how sure they are, as numbers to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 12
N_BINS = 60
_WORTH = 0.01  # a surplus below which an average row is no measure
_PAIRS = 200_000
_TOLD = 2.0  # standard errors


def worth_unit(surplus: float, n_rows: int) -> dict[str, Any]:
    """What values are told in: times an average row; as they are where that is next to none."""
    if surplus >= _WORTH:
        return {"size": surplus / n_rows, "is_average": True}
    return {"size": 1.0, "is_average": False}


def signed_scale(values: NDArray[np.floating]) -> float:
    """s of the axis asinh(value/s): even where most values lie, logarithmic far out."""
    size = np.abs(values)
    return float(np.median(size[size > 0])) if np.any(size > 0) else 1.0


def spread_facts(frame: pd.DataFrame, classes: list[Any] | None) -> dict[str, Any]:
    """Counts of values over one axis for every class; of numbers, by thirds of the target."""
    value = frame["value"].to_numpy()
    scale = signed_scale(value)
    placed = np.arcsinh(value / scale)
    edges = np.linspace(min(placed.min(), 0.0), max(placed.max(), 0.0), N_BINS + 1)
    if edges[-1] == edges[0]:
        edges = np.linspace(-1.0, 1.0, N_BINS + 1)
    bin_of = np.clip(np.searchsorted(edges, placed, side="right") - 1, 0, N_BINS - 1)
    names, code = _groups(frame["given"].to_numpy(), classes)
    found: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        own = code == number
        if not own.any():
            continue
        low, mid, high = np.quantile(value[own], [0.05, 0.5, 0.95])
        found.append({
            "name": name, "n": int(own.sum()), "mean": float(value[own].mean()),
            "median": mid, "low": low, "high": high,
            "share_below": float((value[own] < 0).mean()),
            "counts": np.bincount(bin_of[own], minlength=N_BINS),
        })  # fmt: skip
    return {"scale": scale, "edges": edges, "groups": found}


def ranked_codes(
    labels: NDArray[Any], classes: list[Any] | None, most: int
) -> tuple[list[str], NDArray[np.intp]]:
    """Names of the commonest classes, and the place of every row's among them; −1: beyond."""
    known = np.asarray(classes)
    code = np.searchsorted(known, labels)
    count = np.bincount(code, minlength=len(known))
    order = np.argsort(-count, kind="stable")
    place = np.full(len(known), -1, dtype=np.intp)
    place[order[:most]] = np.arange(min(most, len(order)))
    return [str(known[each]) for each in order[:most].tolist()], place[code]


def _groups(
    labels: NDArray[Any], classes: list[Any] | None
) -> tuple[list[str], NDArray[np.intp]]:
    if classes is not None:
        names, code = ranked_codes(labels, classes, MOST_CLASSES)
        if (code < 0).any():
            names, code = [*names, "all others"], np.where(code < 0, len(names), code)
        return names, code
    low, high = np.quantile(labels, [1 / 3, 2 / 3])
    names = [f"up to {low:.4g}", f"{low:.4g} to {high:.4g}", f"above {high:.4g}"]
    return names, (labels > low).astype(np.intp) + (labels > high)


def certainty_facts(
    value: NDArray[np.floating], stderr: NDArray[np.floating]
) -> dict[str, Any]:
    """What standard errors tell apart, and how they go with the values: a grid of counts."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(len(value), size=(2, _PAIRS))
    gap = np.abs(value[left] - value[right])
    noise = _TOLD * np.hypot(stderr[left], stderr[right])
    other = left != right
    size = np.abs(value)
    scale = signed_scale(value)
    x = np.arcsinh(value / scale)
    x_edges = _edges(x, 48)
    floor = float(np.quantile(stderr, 0.001)) or 1e-300
    y = np.log10(np.maximum(stderr, floor))
    y_edges = _edges(y, 24)
    count = np.histogram2d(x, y, bins=(x_edges, y_edges))[0].astype(int)
    return {
        "share_sign": float((size > _TOLD * stderr).mean()),
        "share_pairs": float((gap > noise)[other].mean()) if other.any() else 0.0,
        "median": float(np.median(stderr)), "largest": float(stderr.max()),
        "scale": scale, "x_edges": x_edges, "y_edges": y_edges, "count": count,
    }  # fmt: skip


def _edges(places: NDArray[np.floating], n_bins: int) -> NDArray[np.float64]:
    low, high = float(places.min()), float(places.max())
    pad = (high - low) * 0.02 or 0.5
    return np.linspace(low - pad, high + pad, n_bins + 1)
