"""What the least-squares probe regresses on: z, random Fourier or Nyström features of z.

Notation:  x = [ map(z), 1 ]   D → FeatureMap.width   k(z, z') = exp(−γ‖z−z'‖²) ≈ map(z)·map(z')
γ = 1/median squared distance. Nyström: map(z) = T·k(L, z) with m landmarks L among the
points and TᵀT = k(L, L)⁻¹; at m = 128 it ranks and predicts as 512 Fourier features do, and
Gram matrices cost the square of the width (departs from method: figures in docs/evidence).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.arrays import arrays_of
from hcdv.valuation.points import Floats, Points

KNOWN = "known"  # kind of a map of points that are features already
_SAMPLE = 1000  # points behind the median distance: its error is ~1 %, far below γ's effect
_FLOOR = 1e-5  # of the landmarks' largest eigenvalue


@dataclass(frozen=True)
class FeatureMap:
    """z → x, by `kind`: linear [z, 1], fourier [√(2/m)·cos(zΩ + b), 1], kernel [T·k(L, z), 1]."""

    kind: str
    n_inputs: int
    gamma: float = 1.0
    basis: NDArray[np.float64] | None = None  # (d, m)  Ω, or Lᵀ
    offset: NDArray[np.float64] | None = None  # (m,)  b, or ‖L‖²
    turn: NDArray[np.float64] | None = None  # (m, m)  Tᵀ of the Nyström map

    @property
    def width(self) -> int:
        """D, the constant included."""
        return 1 + (self.n_inputs if self.basis is None else self.basis.shape[1])

    def __call__(self, Z: Floats, dtype: np.dtype) -> Floats:
        """Features of some points, (b, D); a copy, which may be changed."""
        if self.kind == KNOWN:
            return Z.astype(dtype)
        xp = arrays_of(Z)
        x = xp.empty((len(Z), self.width), dtype=dtype)
        x[:, -1] = 1.0
        if self.basis is None or self.offset is None:
            x[:, :-1] = Z
            return x
        Z = xp.cast(Z, dtype)
        inner = Z @ xp.put(self.basis, dtype)
        offset = xp.put(self.offset, dtype)
        if self.turn is None:
            inner += offset
            xp.cos(inner, out=inner)
            x[:, :-1] = inner * float(np.sqrt(2.0 / inner.shape[1]))
            return x
        inner *= -2.0
        inner += offset
        inner += xp.einsum("bd,bd->b", Z, Z)[:, None]
        inner *= -float(self.gamma)
        xp.exp(inner, out=inner)
        xp.matmul(inner, xp.put(self.turn, dtype), out=x[:, :-1])
        return x


def known_features(points: Points, features: FeatureMap) -> tuple[Points, FeatureMap]:
    """Points that are features already, for many passes over them, and the map of such."""
    x = features(points.Z, np.dtype(float))
    return points.seen_in(x), FeatureMap(KNOWN, features.width - 1)


def linear_features(Z: Floats) -> FeatureMap:
    """x = [z, 1]."""
    return FeatureMap("linear", Z.shape[1])


def fourier_features(Z: Floats, n_features: int, rng: np.random.Generator) -> FeatureMap:
    """Random Fourier features of the Gaussian kernel."""
    gamma = _gamma(Z, rng)
    frequencies = rng.normal(scale=np.sqrt(2.0 * gamma), size=(Z.shape[1], n_features))
    phases = rng.uniform(0.0, 2.0 * np.pi, n_features)
    return FeatureMap("fourier", Z.shape[1], gamma, frequencies, phases)


def kernel_features(Z: Floats, n_features: int, rng: np.random.Generator) -> FeatureMap:
    """Nyström features: the Gaussian kernel against a random subset of the points."""
    gamma = _gamma(Z, rng)
    chosen = rng.permutation(len(Z))[:n_features]
    landmarks = Z[np.sort(chosen)].astype(np.float64)
    square = np.sum(landmarks**2, axis=1)
    gap = square[:, None] + square - 2.0 * landmarks @ landmarks.T
    values, vectors = np.linalg.eigh(np.exp(-gamma * np.maximum(gap, 0.0)))
    # directions below the floor are noise of repeated landmarks: damped, not blown up
    turn = vectors / np.sqrt(np.maximum(values, _FLOOR * values[-1]))
    return FeatureMap("kernel", Z.shape[1], gamma, landmarks.T.copy(), square, turn)


def _gamma(Z: Floats, rng: np.random.Generator) -> float:
    left, right = rng.integers(len(Z), size=(2, _SAMPLE))
    gap = np.sum((Z[left].astype(np.float64) - Z[right]) ** 2, axis=1)
    distinct = gap[gap > 0]
    return float(1.0 / np.median(distinct)) if len(distinct) else 1.0
