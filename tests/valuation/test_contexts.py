"""Membership by hash, and densities of context sizes against their integrals."""

from math import comb, log, sqrt

import numpy as np
import pytest
from scipy.special import beta as beta_function

from hcdv.valuation.contexts import (
    Contexts,
    hashed_uniform,
    mix,
    semivalue_contexts,
    share_contexts,
)

KEYS = mix(np.arange(2000).astype(np.uint64))


def hoeffding(n, spread):
    """What a mean of n independent draws errs by, once in 1e9."""
    return spread * sqrt(log(2 / 1e-9) / (2 * n))


def members(contexts, order, key=KEYS):
    return contexts.uniforms(order, key) < contexts.p[order][:, None]  # (L, n)


def test_the_mixer_is_that_of_splitmix64():
    """Its first outputs from seed 0, as published with the generator."""
    state = np.array([0, 0x9E3779B97F4A7C15, 2 * 0x9E3779B97F4A7C15 % 2**64], np.uint64)
    assert [hex(x) for x in mix(state)] == [
        "0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f",
    ]  # fmt: skip


def test_membership_depends_on_a_rows_own_key_alone():
    """Not on row order, on the shard that holds it, nor on which others there are."""
    contexts = semivalue_contexts(3, 4, 5)
    perm = np.random.default_rng(0).permutation(2000)
    for order in range(3):
        whole = members(contexts, order)
        assert np.array_equal(members(contexts, order, KEYS[perm]), whole[:, perm])
        shards = [members(contexts, order, part) for part in np.split(KEYS, [3, 700])]
        assert np.array_equal(np.concatenate(shards, axis=1), whole)


def test_contexts_of_one_order_are_nested():
    inside = members(semivalue_contexts(1, 9, 0), 0)
    assert np.all(inside[1:] >= inside[:-1])
    assert inside[-1].sum() > inside[0].sum()


def test_taking_orders_keeps_their_streams():
    contexts = semivalue_contexts(6, 4, 1, first=12)
    some = contexts.take(np.array([4, 1]))
    assert some.stream.tolist() == [16, 13]
    assert np.array_equal(members(some, 0), members(contexts, 4))


def test_hashes_are_uniform_and_streams_and_seeds_unrelated():
    one, stream, seed = (hashed_uniform(KEYS, *of) for of in ((0, 0), (0, 1), (1, 0)))
    for u in (one, stream, seed):
        assert 0 <= u.min() < u.max() < 1
        for p in (0.01, 0.3, 0.9):
            assert abs(np.mean(u < p) - p) < hoeffding(2000, 1)
    for other in (stream, seed):
        assert abs(np.corrcoef(one, other)[0, 1]) < 6.2 / sqrt(2000)


@pytest.mark.parametrize("first", [0, 40])
def test_every_order_is_stratified_and_weighted_by_its_density(first):
    """p = u² with one u in each stratum; weights 2u average to 1, each within its stratum."""
    contexts = semivalue_contexts(5, 8, 3, first)
    u = np.sqrt(contexts.p)
    assert np.array_equal(np.floor(8 * u), np.tile(np.arange(8.0), (5, 1)))
    assert contexts.weight == pytest.approx(2 * u)
    assert np.abs(contexts.weight.mean(axis=1) - 1).max() <= 1 / 8


def test_rounds_draw_new_thresholds():
    first, second = (semivalue_contexts(4, 8, 3, first) for first in (0, 4))
    assert not np.any(first.p == second.p)
    assert not set(first.stream) & set(second.stream)


def test_weighted_sizes_are_uniform_with_both_ends():
    """E[w·1{|S| = s}] = 1/(n + 1) for every s from 0 to n: the trap is to miss an end."""
    n, R = 4, 6000
    contexts = semivalue_contexts(R, 3, 0)
    of_order = np.array([contexts.uniforms(r, KEYS[:n]) for r in range(R)])
    size = np.sum(of_order[:, None] < contexts.p[:, :, None], axis=2)  # (R, L)
    for s in range(n + 1):
        share = np.mean(contexts.weight * (size == s))
        assert abs(share - 1 / (n + 1)) < hoeffding(R, 2)


def test_small_contexts_are_drawn_more_often_than_large_ones():
    p = semivalue_contexts(50, 20, 0).p
    assert np.mean(p < 0.25) == 0.5


@pytest.mark.parametrize(("alpha", "beta"), [(4.0, 1.0), (1.0, 16.0), (2.0, 3.0)])
def test_beta_contexts_have_the_sizes_of_the_beta_semivalue(alpha, beta):
    """Beta(α, β) looks at s others with chance C(n, s)·B(s + β, n − s + α)/B(α, β)."""
    n, R = 4, 6000
    contexts = semivalue_contexts(R, 3, 0, semivalue=(alpha, beta))
    assert np.all(np.diff(contexts.p) > 0)
    of_order = np.array([contexts.uniforms(r, KEYS[:n]) for r in range(R)])
    size = np.sum(of_order[:, None] < contexts.p[:, :, None], axis=2)
    for s in range(n + 1):
        chance = comb(n, s) * beta_function(s + beta, n - s + alpha)
        chance /= beta_function(alpha, beta)
        assert abs(np.mean(contexts.weight * (size == s)) - chance) < hoeffding(R, 1)


def test_banzhaf_contexts_are_independent_halves():
    contexts = semivalue_contexts(4, 5, 0, semivalue="banzhaf")
    assert contexts.n_orders == 20
    assert np.all(contexts.p == 0.5)
    assert len(set(contexts.stream)) == 20


def test_leave_one_out_looks_at_everyone():
    contexts = semivalue_contexts(4, 5, 0, semivalue="loo")
    assert all(members(contexts, r).all() for r in range(contexts.n_orders))


def test_share_contexts_stay_between_their_shares():
    contexts = share_contexts(6, 4, 0, 0.3, 0.9, first=7)
    assert isinstance(contexts, Contexts)
    assert contexts.p.min() >= 0.3
    assert contexts.p.max() <= 0.9
    assert np.array_equal(
        np.floor((contexts.p - 0.3) / 0.15), np.tile(np.arange(4.0), (6, 1))
    )
    assert np.all(contexts.weight == 1)
