"""What rows look like: an image as a thumbnail, a text as text, a row of a table as its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.apps.report.png import data_uri
from hcdv.store import plain

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.given import Given

SIDE = 64  # pixels of a thumbnail
MOST_CELLS = 12  # of a row
_TEXT = 40  # letters of a cell, on average, from which a column is text to read
_LONGEST = 320  # letters shown of a text
_SHORT = 60  # of a cell
_DIM = 64  # images that reach no further are stretched: 0 … 16 is not meant to be black


def looks(given: Given, ids: NDArray[Any], side: int = SIDE) -> list[dict[str, Any]]:
    """Of every row {"image": a data URI}, {"text": …} or {"cells": [[column, cell], …]}."""
    if not len(ids):
        return []
    table = given.rows(ids).table
    if isinstance(table, np.ndarray):
        return thumbnails(table, side)
    return cells(table)


def thumbnails(images: NDArray[np.uint8], side: int = SIDE) -> list[dict[str, Any]]:
    """Images no larger than `side`; smaller ones as they are."""
    brightest = int(images.max(initial=0))
    if 0 < brightest <= _DIM:
        images = (images.astype(np.float64) * (255.0 / brightest)).astype(np.uint8)
    height, width = images.shape[1:3]
    return [
        {"image": data_uri(_shrunk(image, side)), "width": width, "height": height}
        for image in images
    ]


def _shrunk(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Means over blocks, so that no side is longer."""
    step = -(-max(image.shape[:2]) // side)
    if step <= 1:
        return image
    height, width = (max(1, n // step) for n in image.shape[:2])
    part = image[: height * step, : width * step]
    if part.shape[0] < step or part.shape[1] < step:  # a strip thinner than a block
        return image[::step, ::step]
    blocks = part.reshape(height, step, width, step, -1).mean(axis=(1, 3))
    return np.rint(blocks).astype(np.uint8)


def cells(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table: the text where a column holds one, and the first cells."""
    columns = list(frame.columns)
    written = [name for name in columns if _is_text(frame[name])]
    reading = max(written, key=lambda name: _letters(frame[name]), default=None)
    shown = [name for name in columns if name != reading][:MOST_CELLS]
    found: list[dict[str, Any]] = []
    for at in range(len(frame)):
        row: dict[str, Any] = {
            "cells": [[str(name), said(frame[name].iloc[at])] for name in shown],
            "n_more": len(columns) - len(shown) - (reading is not None),
        }
        if reading is not None:
            row["text"] = said(frame[reading].iloc[at], _LONGEST)
        found.append(row)
    return found


def said(cell: Any, longest: int = _SHORT) -> str:
    """A cell as a person reads it."""
    import pandas as pd

    cell = cell.item() if isinstance(cell, np.generic) else cell
    if cell is None or (pd.api.types.is_scalar(cell) and pd.isna(cell)):
        return "missing"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    text = " ".join(str(plain(cell)).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _is_text(column: pd.Series) -> bool:
    return column.dtype.kind not in "biufMm" and _letters(column) >= _TEXT


def _letters(column: pd.Series) -> float:
    return float(column.dropna().astype(str).str.len().mean() or 0.0)
