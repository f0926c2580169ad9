"""The least-squares probe: models of coalitions from additive statistics, nothing retrained.

Notation:  A = XᵀX + ρI · P = A⁻¹ · W = P·XᵀY · G = VW − b · U = P·G
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.arrays import arrays_of
from hcdv.engines.local import ordered_map
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.moments import Moments, metric_of_models
from hcdv.valuation.points import Floats, Judge
from hcdv.valuation.statistics import Statistics

SKETCH = 16  # columns: relative error of h and q √(2/16) a context, ~1 % after averaging
_EXACT_WORK = 2e9  # n·T·D² up to which both are exact: a fifth of a second
_BASE = 16  # rows of a triangular matrix that are inverted as they are
_MASKS = 64  # coalitions solved at once: their Gram matrices stay in cache at D ~ 128


def sketch_columns(n_rows: int, n_contexts: int, width: int) -> int | None:
    """Columns that stand for the quadratic forms of rows in contexts; None: exact ones."""
    cheap = float(n_rows) * n_contexts * width**2 <= _EXACT_WORK
    return None if cheap or width <= SKETCH else SKETCH


def solve(stats: Statistics, ridge: float) -> Floats:
    """W of a stack of row sets, (…, D, C)."""
    A = np.array(stats.gram)
    np.einsum("...ii->...i", A)[...] += ridge  # the diagonals, as a view
    # LAPACK wants columns: a symmetric matrix turned over is copied without a stride.
    return np.asarray(np.linalg.solve(np.swapaxes(A, -1, -2), stats.cross))


@dataclass(frozen=True)
class ProbeGame:
    """Payoff M of unions of groups: the mean over judges of the probe taught with the union."""

    judges: list[Judge]
    features: list[FeatureMap]  # by view
    moments: list[Moments]  # by judge
    taught: list[Statistics]  # by judge: (K, D, D) of each group's eligible rows
    ridge: float
    metric: str
    n_jobs: int | None = None

    def __call__(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Pay coalitions (m, K)."""
        return self.payoffs(masks, self.metric)[0]

    def payoffs(self, masks: NDArray[np.bool_], *metrics: str) -> NDArray[np.float64]:
        """Payoffs (metrics, m) of coalitions (m, K), each taught once for all metrics."""
        if not len(masks):
            return np.zeros((len(metrics), 0))
        starts = range(0, len(masks), _MASKS)
        parts = ordered_map(
            lambda i: self._block(masks[i : i + _MASKS], metrics), starts, self.n_jobs
        )
        return np.concatenate(list(parts), axis=1)

    def _block(
        self, masks: NDArray[np.bool_], metrics: tuple[str, ...]
    ) -> NDArray[np.float64]:
        member = masks.astype(np.float64)
        total = np.zeros((len(metrics), len(masks)))
        for judge, moments, stats in zip(
            self.judges, self.moments, self.taught, strict=True
        ):
            union = Statistics(
                np.tensordot(member, stats.gram, 1), np.tensordot(member, stats.cross, 1)
            )
            models = solve(union, self.ridge)
            models[~masks.any(axis=1)] = 0.0
            features = self.features[judge.view]
            for row, metric in enumerate(metrics):
                total[row] += metric_of_models(
                    metric, models, judge.points, features, moments
                )
        return total / len(self.judges)


@dataclass(frozen=True)
class Coefficients:
    """What one context asks of every row, as columns of a single product: see `marginals`."""

    model: Floats  # (T, D, C)  W
    pull: Floats  # (T, D, C)  U = P·G
    leverage: Floats  # (T, D, k)  ‖leverageᵀx‖² = xᵀPx
    spread: Floats  # (T, D, k)  ‖spreadᵀx‖² = xᵀPVPx


def inverse_root(stats: Statistics, ridge: float) -> NDArray[np.float64]:
    """R with R·Rᵀ = A⁻¹, from the Cholesky factor of A."""
    xp = arrays_of(stats.gram)
    factor = xp.cholesky(stats.gram + xp.put(ridge * np.eye(stats.gram.shape[-1])))
    return triangular_inverse(factor).swapaxes(-1, -2)


def triangular_inverse(lower: Floats) -> Floats:
    """L⁻¹ of a stack of lower triangular matrices, by halves.

    numpy has none, and its general inverse takes five times as long at D = 129.
    """
    xp = arrays_of(lower)
    half = lower.shape[-1] // 2
    if half < _BASE:
        return xp.inv(lower)
    out = xp.zeros(lower.shape, lower.dtype)
    first = triangular_inverse(xp.contiguous(lower[..., :half, :half]))
    last = triangular_inverse(xp.contiguous(lower[..., half:, half:]))
    out[..., :half, :half], out[..., half:, half:] = first, last
    out[..., half:, :half] = -last @ (lower[..., half:, :half] @ first)
    return out


def coefficients(
    stats: Statistics,
    moments: Moments,
    ridge: float,
    sketch: int | None,
    rng: np.random.Generator,
) -> Coefficients:
    """Coefficients of a stack of contexts (T, …).

    The two quadratic forms are sums of squares over D columns; a Gaussian sketch replaces
    them by `sketch` columns each, unbiased, with relative error √(2/sketch) a row and
    context (dropping them instead is wrong at every |S|: means off by 1.6-2.1x and ~0x).
    """
    root = inverse_root(stats, ridge)
    xp = arrays_of(root)

    def solved(columns: Floats) -> Floats:
        return root @ (root.swapaxes(-1, -2) @ columns)

    W = solved(stats.cross)
    pull = solved(xp.put(moments.V) @ W - xp.put(moments.b))
    spread = xp.put(moments.root)
    if sketch is None:
        return Coefficients(W, pull, root, solved(spread))
    lever = root @ xp.put(_gaussian(len(root), root.shape[-1], sketch, rng))
    columns = xp.put(_gaussian(len(root), spread.shape[-1], sketch, rng))
    return Coefficients(W, pull, lever, solved(spread @ columns))


def _gaussian(n: int, width: int, columns: int, rng: np.random.Generator) -> Floats:
    return rng.normal(scale=columns**-0.5, size=(n, width, columns))
