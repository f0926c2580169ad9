"""The rows on a plane: their two principal directions, and how densely they lie there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BLOCK = 65_536
_FAR = 0.001  # share of the rows beyond each edge: a few outliers must not set the scale


@dataclass(frozen=True)
class Plane:
    """Places of rows, and the share of their vectors' variance that the plane shows."""

    at: NDArray[np.float64]  # (n, 2)  0 … 1 within the frame; a few rows lie on its edge
    share: float


@dataclass(frozen=True)
class Density:
    """A grid over the frame of a plane: rows of every cell, and means over them."""

    count: NDArray[np.int64]  # (height, width)
    cell: NDArray[np.intp]  # (n,)  the flat index of each row's cell

    def mean(self, of: NDArray[np.floating]) -> NDArray[np.float64]:
        """Mean of a number over the rows of every cell; nan where there are none."""
        total = np.bincount(self.cell, weights=of, minlength=self.count.size)
        with np.errstate(invalid="ignore"):
            return (total / self.count.ravel()).reshape(self.count.shape)

    def commonest(self, code: NDArray[np.integer]) -> NDArray[np.intp]:
        """The commonest of some codes in every cell; −1 where there are no rows."""
        n_codes = int(code.max(initial=0)) + 1
        best = np.zeros(self.count.size, dtype=np.int64)
        found = np.full(self.count.size, -1, dtype=np.intp)
        for each in range(n_codes):
            own = np.bincount(self.cell[code == each], minlength=self.count.size)
            found[own > best] = each
            best = np.maximum(best, own)
        return found.reshape(self.count.shape)


def plane_of(Z: NDArray[np.floating]) -> Plane:
    """Principal directions of the vectors, signs fixed; one of no spread is a line."""
    n, d = Z.shape
    mean = Z.mean(axis=0, dtype=np.float64)
    moments = np.zeros((d, d))
    for start in range(0, n, _BLOCK):
        block = Z[start : start + _BLOCK] - mean
        moments += block.T @ block
    power, directions = np.linalg.eigh(moments)
    turn = directions[:, ::-1][:, :2]
    turn = turn * np.sign(turn[np.abs(turn).argmax(axis=0), range(turn.shape[1])])
    blocks = (Z[start : start + _BLOCK] - mean for start in range(0, n, _BLOCK))
    at = np.concatenate([block @ turn for block in blocks])
    if at.shape[1] < 2:
        at = np.column_stack([at, np.zeros(n)])
    low, high = np.quantile(at, [_FAR, 1 - _FAR], axis=0)
    reach = float(np.max(high - low)) or 1.0
    middle = (low + high) / 2
    placed = np.clip((at - middle) / (1.04 * reach) + 0.5, 0.0, 1.0)
    total = float(power.sum())
    share = float(power[-2:].sum() / total) if total > 0 else 1.0
    return Plane(placed.astype(np.float64), share)


def density(at: NDArray[np.float64], width: int, height: int) -> Density:
    """Rows counted over a grid; the first row of cells is the top."""
    column = np.minimum((at[:, 0] * width).astype(np.intp), width - 1)
    line = np.minimum(((1.0 - at[:, 1]) * height).astype(np.intp), height - 1)
    cell = line * width + column
    count = np.bincount(cell, minlength=width * height).reshape(height, width)
    return Density(count, cell)
