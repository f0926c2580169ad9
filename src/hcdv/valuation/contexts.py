"""Random contexts whose membership is a hash: the same for any shard, worker or row order.

Row i is in context (r, l) iff u(seed, r, key_i) < p_{r,l}. The thresholds of one order r
share its hash, so their contexts are nested prefixes and cost one Gram pass together.

With p of density f, the chance of S∖i = A is ∫ p^|A| (1−p)^{n−1−|A|} f(p) dp, whether or
not i itself was drawn: f = 1 gives Shapley's weights, a point mass at ½ Banzhaf's, at 1
leave-one-out, and Beta(β, α) the Beta(α, β) semivalue. Both ends, |S| = 0 and n, included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta as beta_distribution

from hcdv.engines.arrays import arrays_of

Floats = NDArray[np.float64]

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB


def mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 finaliser: a bijection on 64 bits that passes BigCrush as a generator."""
    xp = arrays_of(state)
    with np.errstate(over="ignore"):
        state = state + xp.word(_GOLDEN)
        state = (state ^ xp.shifted(state, 30)) * xp.word(_MIX_1)
        state = (state ^ xp.shifted(state, 27)) * xp.word(_MIX_2)
    return state ^ xp.shifted(state, 31)


def hashed_uniform(key: NDArray[np.uint64], seed: int, stream: int) -> NDArray[np.float64]:
    """u(seed, stream, key) in [0, 1), one number a row."""
    xp = arrays_of(key)
    salt = mix(mix(np.array([seed % 2**64], dtype=np.uint64)) + np.uint64(stream))
    bits = xp.shifted(mix(key ^ xp.word(int(salt[0]))), 11)
    return xp.cast(bits, np.float64) * 2.0**-53


@dataclass(frozen=True)
class Contexts:
    """R orders of L nested contexts: p[r] ascends; weight[r] corrects for how p was drawn."""

    seed: int
    stream: NDArray[np.intp]  # (R,)  number of each order: later rounds draw new ones
    p: NDArray[np.float64]  # (R, L)
    weight: NDArray[np.float64]  # (R, L)

    @property
    def n_orders(self) -> int:
        """R."""
        return len(self.p)

    def uniforms(self, order: int, key: NDArray[np.uint64]) -> NDArray[np.float64]:
        """u(seed, r, key) of some rows."""
        return hashed_uniform(key, self.seed, int(self.stream[order]))

    def of_nobody(self) -> Contexts:
        """The same contexts, for rows that none of them holds: nobody is below 0."""
        return replace(self, p=np.zeros_like(self.p))

    def members(self, key: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which rows every context holds, (R, L, b)."""
        xp = arrays_of(key)
        inside = xp.empty((*self.p.shape, len(key)), dtype=bool)
        for order, p in enumerate(xp.put(self.p)):
            xp.less(self.uniforms(order, key), p[:, None], out=inside[order])
        return inside

    def take(self, orders: NDArray[np.intp]) -> Contexts:
        """Some of the orders."""
        return Contexts(self.seed, self.stream[orders], self.p[orders], self.weight[orders])


def _stratified(n_orders: int, n_thresholds: int, rng: np.random.Generator) -> Floats:
    """One uniform draw in each of L equal strata, ascending, for every order."""
    return (np.arange(n_thresholds) + rng.random((n_orders, n_thresholds))) / n_thresholds


def semivalue_contexts(
    n_orders: int,
    n_thresholds: int,
    seed: int,
    first: int = 0,
    semivalue: str | tuple[float, float] = "shapley",
) -> Contexts:
    """Contexts for a semivalue, stratified over size within every order.

    Small contexts carry most of the variance of Shapley's marginals, so p is drawn as u²
    (density 1/(2√p)) and weighted by 2√p = 2u: half of the contexts hold under a quarter
    of the rows.
    """
    rng = np.random.default_rng([seed % 2**63, first])
    if semivalue == "loo":
        everyone = np.ones((n_orders, 1))
        return Contexts(seed, first + np.arange(n_orders), everyone, everyone)
    if semivalue == "banzhaf":
        half = np.full((n_orders * n_thresholds, 1), 0.5)
        return Contexts(seed, first + np.arange(len(half)), half, np.ones_like(half))
    u = _stratified(n_orders, n_thresholds, rng)
    stream = first + np.arange(n_orders)
    if semivalue == "shapley":
        return Contexts(seed, stream, u**2, 2.0 * u)
    alpha, beta = semivalue
    return Contexts(seed, stream, beta_distribution.ppf(u, beta, alpha), np.ones_like(u))


def share_contexts(
    n_orders: int, n_thresholds: int, seed: int, low: float, high: float, first: int = 0
) -> Contexts:
    """Contexts that hold between two shares of the rows, stratified, unweighted."""
    rng = np.random.default_rng([seed % 2**63, first])
    p = low + (high - low) * _stratified(n_orders, n_thresholds, rng)
    return Contexts(seed, first + np.arange(n_orders), p, np.ones_like(p))
