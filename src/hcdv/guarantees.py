r"""What the theory promises, as functions of numbers, and a check of a finished run.

Notation (paper → code):
  B → bound · T → n_permutations · η → error · K_ℓ → n_coalitions · 1 − δ → confidence
  ε_MC → the deviation of a level · ε_leaf → leaf_error · ε_∞ → max_error

Prop. 1 takes permutations to be independent. Ours come in blocks of Latin squares with
their reversals. Permutations 2k apart, k the most children of any node, share no square
and are independent; the mean over all T is an average of means over such, and exp is
convex: Hoeffding's inequality holds with T / `block` in place of T, block = 2k. In
practice squares do better than independent draws, as their standard errors tell; the
promise is about the worst game, and is loose.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, inf, lgamma, log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from hcdv.errors import ParameterError

ROUNDING = 1e-9  # relative: sums of doubles that ought to be equal


def payoff_bound(
    max_distance: float = 2.0,
    *,
    contrast_weight: float = 1.0,
    consistency_weight: float = 0.0,
) -> float:
    """B = 1 + λ·d_max, Eq. (21), with our κ as |A| ≤ 1: no payoff is larger in size.

    For M in [0, 1]: accuracy, balanced accuracy, AUC. Cosine distance has d_max = 2. For
    an unbounded M, such as 1 − loss/loss(∅), there is no B: use `bernstein_error`.
    """
    settings = (max_distance, contrast_weight, consistency_weight)
    names = ("max_distance", "contrast_weight", "consistency_weight")
    for name, value in zip(names, settings, strict=True):
        if not value >= 0:
            raise ParameterError(name, value, "zero or more")
    return 1 + contrast_weight * max_distance + consistency_weight


def deviation_probability(
    n_permutations: int,
    error: float,
    bound: float,
    *,
    n_coalitions: int = 1,
    block: int = 1,
) -> float:
    """How likely some coalition is η off or more: Eq. (25) and the union bound.

    P ≤ min(1, K · 2 exp(−T η² / 8B²)), a gain lying in [−2B, 2B]
    """
    n = _samples(n_permutations, block)
    return min(1.0, 2 * n_coalitions * exp(-n * error**2 / (8 * bound**2)))


def permutations_for(
    error: float, confidence: float, n_coalitions: int, bound: float, *, block: int = 1
) -> int:
    """The T that puts every coalition within η at this confidence: Eq. (25) turned round.

    T = block · ⌈8B² ln(2K/δ) / η²⌉
    """
    if not error > 0:
        raise ParameterError("error", error, "more than zero")
    return block * ceil(8 * (bound / error) ** 2 * _log_odds(confidence, n_coalitions))


def error_for(
    n_permutations: int,
    confidence: float,
    n_coalitions: int,
    bound: float,
    *,
    block: int = 1,
) -> float:
    """The η within which T permutations put every coalition: Eq. (25) turned round.

    η = B √(8 ln(2K/δ) / T)
    """
    n = _samples(n_permutations, block)
    return bound * sqrt(8 * _log_odds(confidence, n_coalitions) / n) if n else inf


def bernstein_error(
    samples: ArrayLike, confidence: float, *, spread: float | None = None
) -> float:
    """Half-width around the mean of independent samples, from their own spread.

    η = √(2 V ln(3/δ) / n) + 3 R ln(3/δ) / n   (Audibert, Munos & Szepesvári 2009)

    paper silent: losses are not bounded by B. R is `spread`, the width of the range the
    samples are sure to lie in; None takes the observed range, an estimate, no promise.
    """
    x = np.asarray(samples, dtype=np.float64)
    if x.ndim != 1 or x.size < 2:
        raise ParameterError("samples", x.shape, "at least 2 numbers")
    odds = log(3 / _failure(confidence))
    width = float(np.ptp(x)) if spread is None else spread
    return sqrt(2 * float(x.var()) * odds / x.size) + 3 * width * odds / x.size


def efficiency_bound(level_errors: ArrayLike, leaf_error: float = 0.0) -> float:
    """|Σ φ_i − (v(D) − v(∅))| ≤ Σ_ℓ ε_MC + ε_leaf: Thm. 1, Eq. (24).

    Nested permutations telescope, so for them the left side is 0 at every T.
    """
    return float(np.sum(level_errors)) + leaf_error


def leaf_error(exact: ArrayLike, leaf: ArrayLike, leaf_size: int = 0) -> float:
    """ε_leaf: what a uniform split of leaves larger than M misplaces, Eq. (23).

    Σ_{G : |G| > M} ‖φ(G) − mean φ(G)‖₁,  `exact` values of points, `leaf` an index each
    """
    value, member = np.asarray(exact, dtype=np.float64), np.asarray(leaf)
    size = np.bincount(member)
    mean = np.bincount(member, weights=value) / np.maximum(1, size)
    return float(np.sum(np.abs(value - mean[member]), where=size[member] > leaf_size))


def regret_bound(n_selected: int, max_error: float) -> float:
    """2kε_∞: the value a top-k selection can miss, Thm. 2, Eq. (28)."""
    return 2 * n_selected * max_error


def regret(values: ArrayLike, reference: ArrayLike, n_selected: int) -> float:
    """What a top-k selection misses: U_ref(top k by ref) − U_ref(top k by values)."""
    ours, true = np.asarray(values), np.asarray(reference)
    if not 0 <= n_selected <= true.size:
        raise ParameterError("n_selected", n_selected, f"from 0 to {true.size}")
    best, chosen = (np.argsort(-v, kind="stable")[:n_selected] for v in (true, ours))
    return float(true[best].sum() - true[chosen].sum())


def symmetry_bound(error: float) -> float:
    """2η: how far apart like coalitions, or points of a leaf, may be: Prop. 2 and 4."""
    return 2 * error


def dummy_bound(error: float) -> float:
    """η: how far from 0 a coalition or point that never adds may be: Prop. 2 and 4.

    Sampled by `winter_sampled`, a dummy is worth exactly 0.
    """
    return error


def additivity_gap(first: ArrayLike, second: ArrayLike, both: ArrayLike) -> float:
    """Largest |ψ(v₁ + v₂) − ψ(v₁) − ψ(v₂)|, Eq. (53): rounding, if permutations are shared.

    departs from paper: end to end it holds for our default. Algorithm 1's weights and
    rescaling depend on v, so there it holds only with both frozen.
    """
    one, two, sums = (np.asarray(part, dtype=np.float64) for part in (first, second, both))
    return float(np.max(np.abs(sums - one - two), initial=0.0))


def payoff_counts(level_sizes: Sequence[int], n_permutations: int) -> dict[str, float]:
    """Payoffs needed for levels of K_ℓ coalitions, by the way they are valued.

    printed_exact Σ K_ℓ!, Eq. (16) · enumerated Σ 2^K_ℓ, what enumeration does need ·
    printed_sampled 2T Σ K_ℓ, Eq. (17) · telescoped T Σ (K_ℓ − 1) + 2, endpoints shared ·
    nested T (K_L − 1) + 2, all levels from one walk over the finest
    """
    sizes = [int(k) for k in level_sizes]
    return {
        "printed_exact": sum(_factorial(k) for k in sizes),
        "enumerated": sum(2.0**k if k < 1024 else inf for k in sizes),
        "printed_sampled": 2.0 * n_permutations * sum(sizes),
        "telescoped": float(n_permutations * sum(k - 1 for k in sizes) + 2),
        "nested": float(n_permutations * (sizes[-1] - 1) + 2) if sizes else 0.0,
    }


def diagnose(
    *,
    surplus: float,
    total: float,
    level_stderr: Sequence[ArrayLike],
    n_permutations: int,
    bound: float | None = None,
    level_totals: ArrayLike = (),
    leaf_error: float = 0.0,
    n_selected: int = 0,
    max_error: float | None = None,
    confidence: float = 0.95,
    block: int = 1,
) -> dict[str, dict[str, float | bool | None]]:
    """Hold a finished run against each guarantee.

    `level_stderr` has one array per level, coarse to fine; `total` is Σ φ_i, `level_totals`
    the sums of the levels' values, `max_error` an ε_∞ for points. `estimated` is from the
    standard errors: normal quantiles, corrected for the number of coalitions. None stands
    for no promise: an unbounded metric (`bound` None), or fewer permutations than a block.
    """
    sizes = [np.size(level) for level in level_stderr]
    promised = [
        error_for(
            n_permutations, confidence, k, inf if bound is None else bound, block=block
        )
        for k in sizes
    ]
    errors = [_normal_error(level, confidence) for level in level_stderr]
    estimated = max(errors, default=0.0)
    slack = ROUNDING * max(1.0, abs(surplus))
    gap, allowed = float(abs(total - surplus)), efficiency_bound(promised, leaf_error)
    level_gap = float(np.max(np.abs(np.subtract(level_totals, surplus)), initial=gap))
    worst, needed = max(promised, default=0.0), inf
    if bound is not None and estimated > 0:
        needed = permutations_for(estimated, confidence, max(sizes), bound, block=block)
    return {
        "efficiency": {
            "gap": gap,
            "level_gap": level_gap,
            "promised": _finite(allowed),
            "exact": bool(level_gap <= slack),
            "holds": bool(gap <= slack or gap <= allowed < inf),
        },
        "deviation": {
            "promised": _finite(worst),
            "estimated": estimated,
            "permutations_to_promise_the_estimate": _finite(needed),
        },
        "symmetry": {
            "promised": _finite(symmetry_bound(worst)),
            "estimated": symmetry_bound(estimated),
        },
        "dummy": {
            "promised": _finite(dummy_bound(worst)),
            "estimated": dummy_bound(estimated),
        },
        "regret": {
            "n_selected": n_selected,
            "bound": None if max_error is None else regret_bound(n_selected, max_error),
        },
        "cost": {k: _finite(v) for k, v in payoff_counts(sizes, n_permutations).items()},
    }


def _finite(number: float) -> float | None:
    """None for infinity, which JSON has no word for."""
    return None if number == inf else float(number)


def _normal_error(stderr: ArrayLike, confidence: float) -> float:
    """The largest standard error times a two-sided normal quantile at δ/K."""
    errors = np.asarray(stderr, dtype=np.float64)
    quantile = -ndtri(_failure(confidence) / (2 * max(1, errors.size)))
    return float(quantile * errors.max(initial=0.0))


def _samples(n_permutations: int, block: int) -> int:
    """How many independent draws the permutations count for."""
    if block < 1:
        raise ParameterError("block", block, "at least 1")
    return n_permutations // block


def _failure(confidence: float) -> float:
    """δ."""
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "between 0 and 1")
    return 1 - confidence


def _log_odds(confidence: float, n_coalitions: int) -> float:
    """ln(2K/δ)."""
    if n_coalitions < 1:
        raise ParameterError("n_coalitions", n_coalitions, "at least 1")
    return log(2 * n_coalitions / _failure(confidence))


def _factorial(k: int) -> float:
    """k!, or inf beyond the range of a double."""
    return exp(lgamma(k + 1)) if k <= 170 else inf
