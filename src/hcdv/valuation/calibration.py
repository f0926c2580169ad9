"""The chance that a label is wrong, from margins: a mixture whose wrong part is known.

Models taught without a row score it under every class. Had its label been another, its
margin would have been that class's: so margins under the other labels show what wrong
labels look like, without knowing one. With L the ratio of the densities of wrong to right
labels at a margin m, taken as L = exp(−a − b·m), and ε the share of wrong labels,
    given labels:  (1 − ε)·right + ε·wrong       other labels:  (1 − κ)·wrong + κ·right
    P(wrong | m) = ε·L / (1 − ε + ε·L),          κ = ε/(C − 1)
a, b and ε are those under which given and other labels are best told apart (logistic
likelihood of the ratio of the two mixtures). ε shows where no right label's margin lies:
the ratio stops rising. Where it never stops, the data cannot say, and the prior does.
Regression: the margin is −|y − f|, and other labels are other rows' y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from hcdv.valuation.points import Points

Floats = NDArray[np.float64]

PRIOR_RATE, _PRIOR_SPREAD = 0.1, 0.5  # of ε, on the scale of its log-odds
_MOST = 60_000  # margins that a and b are fitted to
_SHIFTS = 4  # other rows' y held against a row's, in regression
_STEEPEST = 30.0  # of −log L: e³⁰ is certainty
_NEWTON_STEPS = 8


@dataclass(frozen=True)
class Curve:
    """P(wrong | m) = expit(logit ε − a − b·m)."""

    noise_rate: float  # ε
    offset: float  # a
    slope: float  # b ≥ 0

    def __call__(self, margin: NDArray[np.floating]) -> Floats:
        """The chance that a label of this margin is wrong."""
        return expit(logit(self.noise_rate) - self.offset - self.slope * margin)

    def excess(self, chance: NDArray[np.floating]) -> Floats:
        """Doubt above half of what a label is doubted before anything is known of it."""
        return np.maximum(chance - self.noise_rate / 2, 0.0)

    def slope_of_excess(self, chance: NDArray[np.floating]) -> Floats:
        """How fast excess falls as the margin of a row of this chance rises."""
        return np.where(
            chance > self.noise_rate / 2, self.slope * chance * (1.0 - chance), 0.0
        )


@dataclass(frozen=True)
class Sample:
    """Margins under given and other labels; the weights of the others sum to the given's."""

    given: Floats  # (n,)
    other: Floats  # (s,)
    weight: Floats  # (s,)
    leak: float  # κ/ε: how often another label is the right one of a wrong row


def margins(scores: NDArray[np.floating], points: Points) -> Floats:
    """Margin of each row's own label in the mean scores (C, n)."""
    if not points.n_classes:
        return -np.abs(points.target - scores[0])
    return _of_every_class(scores)[points.target, np.arange(scores.shape[1])]


def _of_every_class(scores: NDArray[np.floating]) -> Floats:
    """(C, n) the score of each class less the best other's."""
    scores = scores.astype(np.float64)
    second, first = np.partition(scores, -2, axis=0)[-2:]
    is_best = scores == first
    ties = is_best.sum(axis=0) > 1
    return scores - np.where(is_best & ~ties, second, first)


def sampled(scores: NDArray[np.floating], points: Points) -> Sample:
    """Margins to fit to: of the first rows, whose order is that of their hashed keys."""
    if not points.n_classes:
        n = min(len(points), _MOST // _SHIFTS)
        y, f = points.target[:n], scores[0, :n].astype(np.float64)
        other = [-np.abs(np.roll(y, k) - f) for k in range(1, _SHIFTS + 1)]
        weight = np.full(_SHIFTS * n, 1.0 / _SHIFTS)
        return Sample(-np.abs(y - f), np.concatenate(other), weight, 0.0)
    classes = points.n_classes
    n = min(len(points), max(_MOST // classes, 1000))
    code, every = points.target[:n], _of_every_class(scores[:, :n])
    is_given = code == np.arange(classes)[:, None]
    count = np.bincount(code, minlength=classes)
    # labels are as common among the others as among the given ones
    share = count / np.maximum(n - count, 1)
    weight = np.broadcast_to(share[:, None], every.shape)[~is_given]
    return Sample(
        every[is_given.T.nonzero()[::-1]], every[~is_given], weight, 1 / (classes - 1)
    )


def calibrated(sample: Sample) -> Curve:
    """The curve under which given and other labels are best told apart."""
    scale = float(sample.given.std()) or 1.0
    unit = Sample(sample.given / scale, sample.other / scale, sample.weight, sample.leak)
    starts = [np.array([logit(rate), 2.0, 1.0]) for rate in (0.03, 0.15)]
    tries = [
        minimize(_deviance, start, args=(unit,), jac=True, method="L-BFGS-B")
        for start in starts
    ]
    theta = _polished(min(tries, key=lambda found: found.fun).x, unit)
    return Curve(float(expit(theta[0])), float(theta[1]), float(np.exp(theta[2]) / scale))


def _polished(theta: Floats, sample: Sample) -> Floats:
    """Newton's steps to the optimum itself, so that equal data give equal curves."""
    value, slope = _deviance(theta, sample)
    for _ in range(_NEWTON_STEPS):
        step = 1e-5 * np.maximum(1.0, np.abs(theta))
        bent = np.array([
            (_deviance(theta + d, sample)[1] - _deviance(theta - d, sample)[1]) / (2 * h)
            for d, h in zip(np.diag(step), step, strict=True)
        ])  # fmt: skip
        try:
            moved = theta - np.linalg.solve((bent + bent.T) / 2, slope)
        except np.linalg.LinAlgError:
            return theta
        lower, slope_there = _deviance(moved, sample)
        if not np.abs(slope_there).max() < np.abs(slope).max() or lower > value + 1e-9:
            return theta
        theta, value, slope = moved, lower, slope_there
    return theta


def _deviance(theta: Floats, sample: Sample) -> tuple[float, Floats]:
    """Minus the log-likelihood and log-prior of (logit ε, a, log b), and the gradient."""
    rate = expit(theta[0])
    given, given_slope = _log_ratio(sample.given, theta, rate, sample.leak)
    other, other_slope = _log_ratio(sample.other, theta, rate, sample.leak)
    off = (theta[0] - logit(PRIOR_RATE)) / _PRIOR_SPREAD
    value = -log_expit(-given).sum() - sample.weight @ log_expit(other) + off**2 / 2
    slope = expit(given) @ given_slope - (sample.weight * expit(-other)) @ other_slope
    slope[0] += off / _PRIOR_SPREAD
    return float(value), slope


def _log_ratio(
    margin: Floats, theta: Floats, rate: float, leak: float
) -> tuple[Floats, Floats]:
    """log of other's density over given's at a margin, and its derivatives by theta."""
    steep = np.exp(np.clip(theta[2], -10.0, 10.0))
    z = theta[1] + steep * margin
    L = np.exp(-np.clip(z, -_STEEPEST, _STEEPEST))
    others = (1 - leak * rate) * L + leak * rate
    givens = 1 - rate + rate * L
    by_z = -L * ((1 - leak * rate) / others - rate / givens)
    by_z[np.abs(z) > _STEEPEST] = 0.0
    by_rate = (leak * (1 - L) / others - (L - 1) / givens) * rate * (1 - rate)
    slope: Any = np.stack([by_rate, by_z, by_z * steep * margin], axis=1)
    return np.log(others) - np.log(givens), slope
