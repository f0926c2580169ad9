"""Labels as classes 0 … C−1 for the encoders that learn from them.

paper silent: P(S) holds pairs whose labels differ, which every pair of a regression is.
Numeric targets are cut at their deciles, and rows of one bin count as alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError

N_BINS = 10
MANY_LEVELS = 50


@dataclass(frozen=True, slots=True)
class LabelClasses:
    """The distinct labels; of a numeric target, the bins between `edges` that are used."""

    levels: NDArray[Any]
    edges: NDArray[np.float64] | None = None

    def codes(self, y: Any) -> NDArray[np.intp]:
        """Class of each label; −1 for one that training did not have."""
        target = np.asarray(y).reshape(-1)
        if self.edges is not None:
            target = np.searchsorted(self.edges, target.astype(np.float64), side="right")
        place = np.minimum(np.searchsorted(self.levels, target), len(self.levels) - 1)
        return np.where(self.levels[place] == target, place, -1)

    def notes(self) -> list[str]:
        """What a user should know of the classes."""
        if self.edges is None:
            return []
        return [f"numeric target cut into {len(self.levels)} quantile classes"]


def label_classes(y: NDArray[Any]) -> LabelClasses:
    """Distinct labels, or decile bins if y is numeric and not a class code.

    It is numeric if it holds fractions, or more than 50 values that fewer than ten rows
    share on average.
    """
    levels = np.unique(y)
    edges = None
    if _is_numeric(y, levels):
        edges = np.quantile(y.astype(np.float64), np.arange(1, N_BINS) / N_BINS)
        levels = np.unique(np.searchsorted(edges, y, side="right"))
    if len(levels) < 2:
        raise DataError(
            "y must hold at least two classes to be told apart, got one. "
            'Use encoder="pca", which needs no labels.'
        )
    return LabelClasses(levels, edges)


def _is_numeric(y: NDArray[Any], levels: NDArray[Any]) -> bool:
    if y.dtype.kind not in "iuf":
        return False
    has_fractions = y.dtype.kind == "f" and bool((levels % 1 != 0).any())
    is_spread = len(levels) > MANY_LEVELS and len(y) < 10 * len(levels)
    return (has_fractions and len(levels) > 2) or is_spread


def required_labels(y: Any, n_rows: int, name: str) -> NDArray[Any]:
    """y as one label a row, without holes."""
    if y is None:
        raise DataError(
            f'encoder="{name}" must have labels to learn from, got y=None. '
            'Pass y, or use encoder="pca".'
        )
    target = np.asarray(y)
    if target.dtype == object:
        target = target.astype(str)
    if target.ndim != 1 or len(target) != n_rows:
        raise DataError(
            f"y must have one label a row ({n_rows}), got shape {target.shape}."
        )
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise DataError(
            f"y must be finite, got NaN or infinity in {int((~np.isfinite(target)).sum())} "
            "rows. Drop the rows without a label."
        )
    return target
