"""The chance that a label is wrong, from margins: a mixture whose wrong part is known.

Models taught without a row score it under every class. Had its label been another, its
margin would have been that class's: so margins under the other labels show what wrong
labels look like, without knowing one. With L the ratio of the densities of wrong to right
labels at a margin m, taken as L = exp(−a − b·m), and ε the share of wrong labels,
    given labels:  (1 − ε)·right + ε·wrong       other labels:  (1 − κ)·wrong + κ·right
    P(wrong | m) = ε·L / (1 − ε + ε·L),          κ: how often another label is the right one
a, b and ε are those under which given and other labels are best told apart (logistic
likelihood of the ratio of the two mixtures). ε shows where no right label's margin lies:
the ratio stops rising. Where it never stops, the data cannot say, and the prior does.

One curve is fitted to all labels, with κ = ε/(C − 1), and then one to each given label, held
near it by a prior: of a rare class a far larger share is wrong than of a common one. How near
is chosen by the evidence (Laplace's approximation): labels that are alike share one curve, so
that few rows do not tell them apart by chance, if the evidence is decisive. There κ follows
from the other classes' ε, in turns.
Regression: the margin is −|y − f|, and other labels are other rows' y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from hcdv.valuation.points import Points

Floats = NDArray[np.float64]

PRIOR_RATE = 0.1  # of ε, within a factor of e^½ or so
_LOOSE = np.array([2.0, 0.0, 0.0])  # 1/σ of the prior of (logit ε, a, log b): of all labels
_NEAR = np.array([1.0, 1.0, 2.0])  # and of one label, around that of all,
_NEARNESS = (1.0, 8.0)  # times the second, if the margins speak for it decisively
_DECISIVE = (
    5.0  # log-evidence; one curve for unlike labels harms more than two for like ones
)
_PLENTY = 2000  # rows of every label from which they speak for themselves
_TURNS = 3
_LOG_SLOPES = (-20.0, 12.0)
_MOST = 60_000  # margins that a and b are fitted to
_SHIFTS = 4  # other rows' y held against a row's, in regression
_STEEPEST = 30.0  # of −log L: e³⁰ is certainty
_NEWTON_STEPS = 8


@dataclass(frozen=True)
class Curve:
    """P(wrong | m) = expit(logit ε − a − b·m), with ε, a and b of each label; one in regression."""

    rates: Floats  # (K,)  ε
    offset: Floats  # (K,)  a
    slope: Floats  # (K,)  b ≥ 0

    @property
    def knows_nothing(self) -> bool:
        """Whether every label has the same chance, which is the prior."""
        return not self.slope.any()

    def __call__(self, margin: NDArray[np.floating], label: NDArray[Any]) -> Floats:
        """The chance that labels of these margins are wrong."""
        return expit(self.log_odds(margin, label))

    def log_odds(self, margin: NDArray[np.floating], label: NDArray[Any]) -> Floats:
        """Of wrong to right: 0 where either is as likely."""
        of = self._index(label)
        return logit(self.rates[of]) - self.offset[of] - self.slope[of] * margin

    def of_labels(
        self, scores: NDArray[np.floating], share: NDArray[np.floating]
    ) -> Floats:
        """The chance of every class to be the right one of rows without a label, (C, m).

        share: of the classes among labels, the odds of each before anything is asked.
        """
        before = logit(np.clip(share, 1e-6, 1 - 1e-6))[:, None]
        odds = before + self.offset[:, None] + self.slope[:, None] * of_every_class(scores)
        chance = expit(np.clip(odds, -_STEEPEST, _STEEPEST))
        return chance / chance.sum(axis=0)

    def excess(self, chance: NDArray[np.floating], label: NDArray[Any]) -> Floats:
        """Doubt above half of what a label is doubted before anything is known of its row."""
        return np.maximum(chance - self.rates[self._index(label)] / 2, 0.0)

    def slope_of_excess(self, chance: NDArray[np.floating], label: NDArray[Any]) -> Floats:
        """How fast excess falls as the margin of a row of this chance rises."""
        of = self._index(label)
        steep = self.slope[of] * chance * (1.0 - chance)
        return np.where(chance > self.rates[of] / 2, steep, 0.0)

    def _index(self, label: NDArray[Any]) -> Any:
        return label if len(self.rates) > 1 else np.zeros(np.shape(label), dtype=np.intp)


@dataclass(frozen=True)
class Sample:
    """Margins under given and other labels; the weights of the others sum to the given's."""

    given: Floats  # (n,)
    other: Floats  # (s,)
    weight: Floats  # (s,)
    leak: float  # κ = leak·ε + known
    known: float = 0.0

    @property
    def is_told_apart(self) -> bool:
        """Whether models prefer given labels to others at all; without a row they may not."""
        return bool(self.given.mean() > self.weight @ self.other / self.weight.sum())


def margins(scores: NDArray[np.floating], points: Points) -> Floats:
    """Margin of each row's own label in the mean scores (C, n)."""
    if not points.n_classes:
        return -np.abs(points.target - scores[0])
    return of_every_class(scores)[points.target, np.arange(scores.shape[1])]


def of_every_class(scores: NDArray[np.floating]) -> Floats:
    """(C, n) the score of each class less the best other's."""
    scores = scores.astype(np.float64)
    second, first = np.partition(scores, -2, axis=0)[-2:]
    is_best = scores == first
    ties = is_best.sum(axis=0) > 1
    return scores - np.where(is_best & ~ties, second, first)


def calibrated(scores: NDArray[np.floating], points: Points) -> Curve:
    """The curves under which given and other labels are best told apart.

    Fitted to the first rows, whose order is that of their hashed keys.
    """
    if not points.n_classes:
        numbers = _of_numbers(scores, points)
        if not numbers.is_told_apart:
            return _knows_nothing(1)
        theta = _pooled(numbers)
        return Curve(*(np.array([x]) for x in _natural(theta)))
    n = min(len(points), max(_MOST // points.n_classes, 1000))
    code, every = points.target[:n], of_every_class(scores[:, :n])
    samples = _of_labels(code, every)
    whole = Sample(
        np.concatenate([one.given for one in samples]),
        np.concatenate([one.other for one in samples]),
        np.concatenate([one.weight for one in samples]), 1 / (points.n_classes - 1),
    )  # fmt: skip
    if not whole.is_told_apart:
        return _knows_nothing(points.n_classes)
    pooled = _pooled(whole)
    are_many = min(len(one.given) for one in samples) >= _PLENTY
    nearness = _NEARNESS[:1] if are_many else _NEARNESS
    found = [_of_each_label(samples, pooled, _NEAR * near) for near in nearness]
    (thetas, apart), (alike, together) = found[0], found[-1]
    if together > apart + _DECISIVE:
        thetas = alike
    rates, offset, slope = _natural(thetas.T)
    return Curve(rates, offset, slope)


def _of_each_label(
    samples: list[Sample], pooled: Floats, held: Floats
) -> tuple[Floats, float]:
    """θ of every label, held near that of all by a prior, and the log-evidence for the prior."""
    size = np.array([len(one.given) for one in samples], dtype=np.float64)
    thetas = np.tile(pooled, (len(samples), 1))
    for _ in range(_TURNS):
        known = _share_right(expit(thetas[:, 0]), size)
        samples = [
            replace(one, known=share) for one, share in zip(samples, known, strict=True)
        ]
        thetas = np.array([
            _fitted(one, theta, pooled, held)
            for one, theta in zip(samples, thetas, strict=True)
        ])  # fmt: skip
    evidence = sum(
        _log_evidence(theta, one, pooled, held)
        for one, theta in zip(samples, thetas, strict=True)
    )
    return thetas, float(evidence)


def _log_evidence(theta: Floats, sample: Sample, centre: Floats, held: Floats) -> float:
    """Laplace's: how likely the margins are under the prior, but for a constant."""
    value, _ = _deviance(theta, sample, centre, held)
    _, log_det = np.linalg.slogdet(_curvature(theta, sample, centre, held))
    return float(np.log(held).sum() - value - log_det / 2)


def _curvature(theta: Floats, sample: Sample, centre: Floats, held: Floats) -> Floats:
    """Second derivatives of the deviance, (3, 3)."""
    step = 1e-5 * np.maximum(1.0, np.abs(theta))
    bent = np.array([
        (_deviance(theta + d, sample, centre, held)[1]
         - _deviance(theta - d, sample, centre, held)[1]) / (2 * h)
        for d, h in zip(np.diag(step), step, strict=True)
    ])  # fmt: skip
    return (bent + bent.T) / 2


def _knows_nothing(n_labels: int) -> Curve:
    return Curve(np.full(n_labels, PRIOR_RATE), np.zeros(n_labels), np.zeros(n_labels))


def _natural(theta: Floats) -> tuple[Any, Any, Any]:
    return expit(theta[0]), theta[1], np.exp(np.clip(theta[2], *_LOG_SLOPES))


def _share_right(rates: Floats, size: Floats) -> Floats:
    """κ of every class c: of the rows given another label, the share that c is right for."""
    wrong = rates * size / (len(size) - 1)
    others = np.maximum(size.sum() - size, 1.0)
    return (wrong.sum() - wrong) / others


def _of_labels(code: NDArray[np.intp], every: Floats) -> list[Sample]:
    """By class: margins of the rows given it, and, under it, of all others."""
    samples: list[Sample] = []
    for label, margin in enumerate(every):
        is_given = code == label
        n_given, n_others = int(is_given.sum()), int((~is_given).sum())
        # labels are as common among the others as among the given ones
        weight = np.full(n_others, n_given / max(n_others, 1))
        samples.append(Sample(margin[is_given], margin[~is_given], weight, 0.0))
    return samples


def _of_numbers(scores: NDArray[np.floating], points: Points) -> Sample:
    n = min(len(points), _MOST // _SHIFTS)
    y, f = points.target[:n], scores[0, :n].astype(np.float64)
    other = [-np.abs(np.roll(y, k) - f) for k in range(1, _SHIFTS + 1)]
    weight = np.full(_SHIFTS * n, 1.0 / _SHIFTS)
    return Sample(-np.abs(y - f), np.concatenate(other), weight, 0.0)


def _pooled(sample: Sample) -> Floats:
    """θ = (logit ε, a, log b) of all labels together."""
    scale = float(sample.given.std()) or 1.0
    centre = np.array([logit(PRIOR_RATE), 0.0, 0.0])
    starts = [np.array([logit(rate), 2.0, -np.log(scale)]) for rate in (0.03, 0.15)]
    tries = [_fitted(sample, start, centre, _LOOSE) for start in starts]
    return min(tries, key=lambda theta: _deviance(theta, sample, centre, _LOOSE)[0])


def _fitted(sample: Sample, start: Floats, centre: Floats, held: Floats) -> Floats:
    """θ of the least deviance, from a start."""
    least = minimize(
        _deviance, start, args=(sample, centre, held), jac=True, method="L-BFGS-B"
    )
    return _polished(least.x, sample, centre, held)


def _polished(theta: Floats, sample: Sample, centre: Floats, held: Floats) -> Floats:
    """Newton's steps to the optimum itself, so that equal data give equal curves."""
    value, slope = _deviance(theta, sample, centre, held)
    for _ in range(_NEWTON_STEPS):
        bent = _curvature(theta, sample, centre, held)
        try:
            moved = theta - np.linalg.solve(bent, slope)
        except np.linalg.LinAlgError:
            return theta
        lower, slope_there = _deviance(moved, sample, centre, held)
        if not np.abs(slope_there).max() < np.abs(slope).max() or lower > value + 1e-9:
            return theta
        theta, value, slope = moved, lower, slope_there
    return theta


def _deviance(
    theta: Floats, sample: Sample, centre: Floats, held: Floats
) -> tuple[float, Floats]:
    """Minus the log-likelihood and log-prior of (logit ε, a, log b), and the gradient."""
    rate = expit(theta[0])
    given, given_slope = _log_ratio(sample.given, theta, rate, sample)
    other, other_slope = _log_ratio(sample.other, theta, rate, sample)
    off = (theta - centre) * held
    value = -log_expit(-given).sum() - sample.weight @ log_expit(other) + off @ off / 2
    slope = expit(given) @ given_slope - (sample.weight * expit(-other)) @ other_slope
    return float(value), slope + off * held


def _log_ratio(
    margin: Floats, theta: Floats, rate: float, sample: Sample
) -> tuple[Floats, Floats]:
    """log of other's density over given's at a margin, and its derivatives by theta."""
    steep = np.exp(np.clip(theta[2], *_LOG_SLOPES))
    z = theta[1] + steep * margin
    L = np.exp(-np.clip(z, -_STEEPEST, _STEEPEST))
    kappa = sample.leak * rate + sample.known
    others = (1 - kappa) * L + kappa
    givens = 1 - rate + rate * L
    by_z = -L * ((1 - kappa) / others - rate / givens)
    by_z[np.abs(z) > _STEEPEST] = 0.0
    by_rate = (sample.leak * (1 - L) / others - (L - 1) / givens) * rate * (1 - rate)
    slope: Any = np.stack([by_rate, by_z, by_z * steep * margin], axis=1)
    return np.log(others) - np.log(givens), slope
