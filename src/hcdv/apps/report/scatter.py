"""The map of a run: every row as a point, or, of many, how densely they lie and what is there."""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.apps.report.palette import CLASSES, SUSPECT, diverging, of_classes, rgb
from hcdv.apps.report.png import data_uri
from hcdv.apps.report.spread import ranked_codes, signed_scale
from hcdv.uses.plane import Density, density, plane_of

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.estimator import HCDV

MOST_POINTS = 20_000  # beyond, points would only cover each other
GRID = (360, 270)  # cells of a density at most, width and height
_ROWS_A_CELL = 1.5  # on average over the frame, where rows are few
_REACH = 0.99  # quantile of |asinh(value/scale)| at which the colours end
_FULL = 16  # rows of a cell whose share of suspects is told at full strength


def plane_facts(model: HCDV, doubted: pd.DataFrame) -> dict[str, Any]:
    """Points as bytes in base64, or pictures of the density in three colourings."""
    plane = plane_of(model.embedding_)
    values = model.values_
    scale = signed_scale(values)
    share = np.arcsinh(values / scale)
    share /= float(np.quantile(np.abs(share), _REACH)) or 1.0
    is_suspect = np.zeros(len(values), dtype=bool)
    is_suspect[doubted.loc[doubted["is_suspect"], "row"].to_numpy()] = True
    names, code, numbers = _labels(model)
    found = {
        "kind": "points" if len(values) <= MOST_POINTS else "density",
        "n": len(values), "share": plane.share, "classes": names,
        "numbers": numbers, "n_suspects": int(is_suspect.sum()),
    }  # fmt: skip
    if found["kind"] == "points":
        return found | _points(plane.at, share, code, is_suspect)
    return found | {"pictures": _pictures(plane.at, share, code, is_suspect)}


def _labels(model: HCDV) -> tuple[list[str], NDArray[np.intp], dict[str, float] | None]:
    """Class codes, the commonest first; of numbers to predict, fifths of them."""
    target, labels = model.run_.target, model.run_.labels
    if target.classes is not None:
        names, code = ranked_codes(labels, target.classes.tolist(), len(CLASSES))
        return names, code, None
    edges = np.quantile(labels, [0.2, 0.4, 0.6, 0.8])
    ends = [float(labels.min()), *edges.tolist(), float(labels.max())]
    names = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(ends)]
    return names, np.searchsorted(edges, labels), {"low": ends[0], "high": ends[-1]}


def _points(
    at: NDArray[np.float64], share: NDArray[np.float64], code: NDArray[np.intp],
    is_suspect: NDArray[np.bool_],
) -> dict[str, str]:  # fmt: skip
    """x and y of 16 bits, the value, the class and doubt of 8: eight bytes a row as text."""
    places = np.rint(at * 65535).astype("<u2")
    worth = np.rint((np.clip(share, -1, 1) + 1) * 127.5).astype(np.uint8)
    classes = np.where(code < 0, 255, code).astype(np.uint8)
    parts = {
        "x": places[:, 0], "y": places[:, 1], "value": worth, "class": classes,
        "suspect": is_suspect.astype(np.uint8),
    }  # fmt: skip
    return {
        name: base64.b64encode(np.ascontiguousarray(part).tobytes()).decode("ascii")
        for name, part in parts.items()
    }


def _pictures(
    at: NDArray[np.float64], share: NDArray[np.float64], code: NDArray[np.intp],
    is_suspect: NDArray[np.bool_],
) -> dict[str, str]:  # fmt: skip
    """Densities whose colour says what lies there, and whose opacity how much of it."""
    size = min(1.0, np.sqrt(len(at) / _ROWS_A_CELL / np.prod(GRID)))
    grid = density(at, *(round(side * size) for side in GRID))
    share_wrong = np.nan_to_num(grid.mean(is_suspect.astype(np.float64)))
    doubted = np.clip(share_wrong * np.minimum(1.0, grid.count / _FULL) * 2.0, 0.0, 1.0)
    gray, red = (np.array(rgb(each), dtype=np.float64) for each in ("#a3a3a3", SUSPECT))
    mixed = gray + doubted[..., None] * (red - gray)
    colours = {
        "value": diverging(grid.mean(np.clip(share, -1, 1))),
        "class": of_classes(grid.commonest(code)),
        "suspect": np.rint(mixed).astype(np.uint8),
    }
    return {name: _picture(each, grid) for name, each in colours.items()}


def _picture(colour: NDArray[np.uint8], grid: Density) -> str:
    """Colours rounded and with an opacity of few steps, so that the file stays small."""
    most = np.log1p(grid.count.max())
    opacity = np.where(grid.count > 0, 0.35 + 0.65 * np.log1p(grid.count) / most, 0.0)
    alpha = (np.rint(opacity * 15) * 17).astype(np.uint8)
    rounded = (colour & 0xF0) | (colour >> 4)
    rounded[grid.count == 0] = 0
    return data_uri(np.dstack([rounded, alpha]))
