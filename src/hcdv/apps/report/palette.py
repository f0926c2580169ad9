"""The colours of figures: values on a scale through zero, and classes apart from each other.

Blue against orange and the classes' colours are told apart without red-green vision; the
page's stylesheet (templates/palette.css) has the same names for light and dark.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORTH = ("#c2410c", "#a8a29e", "#1d5fb4")  # below zero, zero, above: as seen on any ground
CLASSES = (
    "#3b76c4", "#d9822b", "#2f9e77", "#c0518f", "#8a63c9", "#a98a12", "#3aa5c2", "#c4554d",
    "#6b8e23", "#8d6e63",
)  # fmt: skip
OTHER = "#8b8b8b"  # classes beyond these
SUSPECT = "#d4380d"


def rgb(colour: str) -> tuple[int, int, int]:
    """#rrggbb as three bytes."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def diverging(share: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Colours (…, 3) of −1 … 1."""
    low, zero, high = (np.array(rgb(each), dtype=np.float64) for each in WORTH)
    share = np.clip(np.nan_to_num(share), -1.0, 1.0)[..., None]
    end = np.where(share < 0, low, high)
    return np.rint(zero + np.abs(share) * (end - zero)).astype(np.uint8)


def of_classes(code: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Colours (…, 3) of class codes, the commonest first; −1 and those beyond are gray."""
    table = np.array([rgb(each) for each in (*CLASSES, OTHER)], dtype=np.uint8)
    known = (code >= 0) & (code < len(CLASSES))
    return table[np.where(known, code, len(CLASSES))]
