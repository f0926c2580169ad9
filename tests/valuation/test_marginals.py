"""One context's marginals against models taught again from scratch, row by row."""

import numpy as np
import pytest
from scipy.special import beta as beta_function
from scipy.special import comb

from cases import (
    a_case,
    a_probe,
    all_subsets,
    as_players,
    contexts_of,
    numbered,
    retrained,
    uniform_size,
    validated,
)
from hcdv.valuation.coalition_game import semivalue_exact, shapley_exact
from hcdv.valuation.contexts import semivalue_contexts
from hcdv.valuation.marginals import point_marginals
from hcdv.valuation.points import Case
from hcdv.valuation.probe import Coefficients, coefficients
from hcdv.valuation.statistics import Statistics, context_statistics
from hcdv.valuation.utility import LeastSquares


def named(case):
    """The case, its rows keyed by their numbers."""
    views = [numbered(points) for points in case.views]
    return Case(views, case.judges, case.judging_view, case.originals)


def without_and_with(case, probe, inside, k=None):
    """What each row adds to a set of rows, or, a member, to the others: (n,)."""
    value = np.empty(len(inside))
    for i in range(len(inside)):
        before, after = inside.copy(), inside.copy()
        before[i], after[i] = False, True
        value[i] = retrained(case, probe, after, k) - retrained(case, probe, before, k)
    return value


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_folds", [0, 3])
@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_every_marginal_is_that_of_retraining(n_classes, n_folds, weighted):
    case = named(a_case(21, n_classes, n_folds=n_folds, weighted=weighted))
    probe = a_probe(case)
    inside = np.random.default_rng(3).random((4, 21)) < [[0.2], [0.5], [0.8], [1.0]]
    for k in range(len(case.judges)):
        contexts = contexts_of(inside, judge=k, n_judges=len(case.judges))
        probe.memo.clear()
        found = probe.batches(case, contexts, 0, None).value
        expected = [without_and_with(case, probe, members, k) for members in inside]
        assert found == pytest.approx(np.array(expected), abs=1e-8)


@pytest.mark.parametrize("metric", ["balanced_accuracy", "auc"])
def test_marginals_follow_the_loss_that_stands_for_the_metric(metric):
    case = named(a_case(15, 3, seed=2, n_judging=25))
    probe = a_probe(case, metric, LeastSquares(n_features=9))
    inside = np.random.default_rng(1).random((2, 15)) < 0.5
    found = probe.batches(case, contexts_of(inside), 0, None).value
    expected = [without_and_with(case, probe, members) for members in inside]
    assert found == pytest.approx(np.array(expected), abs=1e-8)


def test_a_row_of_no_weight_is_worth_exactly_nothing():
    case = named(a_case(20, 2, weighted=True))
    case.points.weight[[3, 11]] = 0.0
    probe = a_probe(case)
    value = probe.batches(case, semivalue_contexts(4, 10, 0), 0, None).value
    assert np.array_equal(value[:, [3, 11]], np.zeros((4, 2)))


def test_the_judges_own_rows_are_dummies():
    case = a_case(24, 2, n_folds=3)
    batches = a_probe(case).batches(case, semivalue_contexts(6, 8, 0), 0, None)
    own = case.points.fold == batches.stratum[:, None]
    assert np.all(batches.value[own] == 0)
    assert np.all(batches.value[~own] != 0)


@pytest.mark.parametrize("n_folds", [0, 2])
def test_the_mean_over_all_contexts_is_the_exact_shapley_value(n_folds):
    n = 6
    case = named(a_case(n, 2, n_folds=n_folds))
    probe = a_probe(case)
    chance, value = uniform_size(n), np.zeros(n)
    for k in range(len(case.judges)):
        probe.memo.clear()
        contexts = contexts_of(all_subsets(n), judge=k, n_judges=len(case.judges))
        value += chance @ probe.batches(case, contexts, 0, None).value / len(case.judges)
    exact = shapley_exact(as_players(case, probe), n)
    assert value == pytest.approx(exact, abs=1e-12)
    everyone, nobody = np.ones(n, bool), np.zeros(n, bool)
    surplus = retrained(case, probe, everyone) - retrained(case, probe, nobody)
    assert value.sum() == pytest.approx(surplus, abs=1e-12)


@pytest.mark.parametrize("shape", ["banzhaf", "loo", (4.0, 1.0), (1.0, 4.0), (16.0, 1.0)])
def test_other_densities_of_context_sizes_give_other_semivalues(shape):
    """Row i sees S∖i alone, so the chances are those of contexts of all n rows."""
    n = 6
    case = named(a_case(n, 3, seed=1))
    probe = a_probe(case)
    size, others = all_subsets(n).sum(axis=1), np.arange(n)
    if shape == "banzhaf":
        chance, share = np.full(2**n, 0.5**n), comb(n - 1, others) / 2 ** (n - 1)
    elif shape == "loo":
        chance, share = (size == n).astype(float), (others == n - 1).astype(float)
    else:
        a, b = shape
        chance = beta_function(b + size, a + n - size) / beta_function(a, b)
        single = beta_function(b + others, a + n - 1 - others) / beta_function(a, b)
        share = comb(n - 1, others) * single
    value = chance @ probe.batches(case, contexts_of(all_subsets(n)), 0, None).value
    exact = semivalue_exact(as_players(case, probe), n, share)
    assert value == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("n_folds", [0, 3])
def test_hashed_contexts_are_unbiased_for_the_exact_value(n_folds):
    """Orders are independent: 6.5 standard errors of 3,000 are passed once in 1e10."""
    n = 8
    case = a_case(n, 2, seed=4, n_folds=n_folds)
    probe = a_probe(case)
    batches = probe.batches(case, semivalue_contexts(3000, 4, 11), 0, None)
    error = np.sqrt(batches.variance())
    exact = shapley_exact(as_players(case, probe), n)
    assert np.all(np.abs(batches.mean() - exact) < 6.5 * error)
    assert error.mean() < 0.06 * np.abs(exact).mean()


def test_workers_chunks_and_the_order_of_rows_do_not_matter(monkeypatch):
    case = a_case(300, 3, d=5, weighted=True)
    contexts = semivalue_contexts(3, 7, 0)
    one, two, four = (
        a_probe(case).batches(case, contexts, 0, jobs).value for jobs in (1, 2, 4)
    )
    assert np.array_equal(one, two)
    assert np.array_equal(one, four)
    perm = np.random.default_rng(0).permutation(300)
    moved = validated(case.points.take(perm), case.judges[0].points)
    again = a_probe(moved).batches(moved, contexts, 0, None).value
    assert again == pytest.approx(one[:, perm], abs=1e-12)
    monkeypatch.setattr("hcdv.valuation.statistics._CHUNK_ROWS", (13, 13))
    monkeypatch.setattr("hcdv.valuation.blocks._SCRATCH", 64)
    monkeypatch.setattr("hcdv.valuation.blocks._COLUMNS", 40)
    cut = a_probe(case).batches(case, contexts, 0, 2).value
    assert cut == pytest.approx(one, abs=1e-12)


def test_single_precision_rows_agree_with_double(monkeypatch):
    case = a_case(400, 3, d=5)
    contexts = semivalue_contexts(4, 10, 0)
    double = a_probe(case).batches(case, contexts, 0, None).value
    monkeypatch.setattr("hcdv.valuation.statistics._DOUBLE", 0)
    single = a_probe(case).batches(case, contexts, 0, None).value
    assert np.abs(single - double).max() < 2e-5 * np.abs(double).max()
    assert not np.array_equal(single, double)


def one_context(case, share, n_contexts=40):
    """Contexts of one share of the rows, with all that a sketch or a shortcut changes."""
    rng = np.random.default_rng(5)
    inside = rng.random((n_contexts, len(case.points))) < share
    probe, contexts = a_probe(case), contexts_of(inside)
    barred = np.zeros((n_contexts, 1), dtype=bool)
    stats = context_statistics(case.points, probe.features[0], contexts, barred)

    def marginals(change):
        asked = [
            change(Statistics(gram, cross), probe.moments[0], probe.ridge)
            for gram, cross in zip(stats.gram, stats.cross, strict=True)
        ]
        moments = probe.moments * n_contexts
        return point_marginals(
            case.points, probe.features[0], contexts, asked, moments, barred
        )

    return inside, marginals


def exactly(stats, moments, ridge):
    return coefficients(stats, moments, ridge, None, np.random.default_rng(0))


def to_first_order(stats, moments, ridge):
    """The trap: h and xᵀPVPx left out."""
    asked = exactly(stats, moments, ridge)
    return Coefficients(
        asked.model, asked.pull, 0 * asked.leverage, 0 * asked.spread
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_leaving_out_leverage_and_curvature_is_wrong_at_every_size(share):
    """The trap: joining seems worth up to twice what it is, leaving costs nearly nothing."""
    case = named(a_case(240, 2, d=10, noise=1.5, n_judging=300))
    inside, marginals = one_context(case, share)
    right, wrong = marginals(exactly), marginals(to_first_order)
    joining = wrong[~inside].mean() / right[~inside].mean()
    leaving = wrong[inside].mean() / right[inside].mean()
    assert joining > 1.5
    assert leaving < 0.3


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_sketch_of_both_comes_near_the_exact_marginals(share):
    case = named(a_case(240, 2, d=10, noise=1.5, n_judging=300))
    inside, marginals = one_context(case, share)
    rng = np.random.default_rng(0)
    right = marginals(exactly)
    near = marginals(lambda s, m, ridge: coefficients(s, m, ridge, 16, rng))
    for some in (inside, ~inside):
        assert near[some].mean() == pytest.approx(right[some].mean(), rel=0.1)
    assert np.corrcoef(near.mean(axis=0), right.mean(axis=0))[0, 1] > 0.99


def test_whole_random_blocks_as_contexts_count_the_empty_set_too_often():
    """The trap: with B blocks it weighs 1/(B + 1), whatever n, and Σφ is far off."""
    n, B = 24, 3
    case = named(a_case(n, 2, seed=3))
    probe = a_probe(case, config=LeastSquares(features="linear", ridge=0.01))
    block = np.arange(n) % B
    of_blocks = all_subsets(B)[:, block]
    value = uniform_size(B) @ probe.batches(case, contexts_of(of_blocks), 0, None).value
    surplus = retrained(case, probe, np.ones(n, bool))
    assert abs(value.sum() - surplus) > surplus
    probe.memo.clear()
    fair = probe.batches(case, semivalue_contexts(400, 6, 0), 0, None)
    error = np.sqrt(fair.variance(np.sum))
    assert abs(fair.mean().sum() - surplus) < 6.5 * error < 0.4 * surplus
