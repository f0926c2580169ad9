"""Banzhaf, Beta and leave-one-out values against enumeration and retraining."""

import numpy as np
import pytest
from scipy.special import beta as beta_function
from scipy.special import comb

from cases import a_case, a_plan, a_probe, a_tree, as_players, retrained
from hcdv.errors import ParameterError
from hcdv.valuation.coalition_game import semivalue_exact
from hcdv.valuation.methods import value
from hcdv.valuation.utility import LeastSquares, Neighbours


def shares(semivalue, n):
    """Chance of each number of others."""
    others = np.arange(n)
    if semivalue == "banzhaf":
        return comb(n - 1, others) / 2 ** (n - 1)
    if semivalue == "loo":
        return (others == n - 1).astype(float)
    alpha, beta = semivalue
    single = beta_function(others + beta, n - 1 - others + alpha)
    return comb(n - 1, others) * single / beta_function(alpha, beta)


@pytest.mark.parametrize("n_folds", [0, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_exactly_what_a_row_takes_away(n_folds, weighted):
    """Asked of every judge, though all of them look at one context only."""
    case = a_case(18, 2, n_folds=n_folds, weighted=weighted)
    found = value(case, a_tree(18, 0), a_plan(semivalue="loo", consistency_weight=0.0))
    probe, everyone = a_probe(case), np.ones(18, bool)
    whole = retrained(case, probe, everyone)
    without = [retrained(case, probe, np.arange(18) != row) for row in range(18)]
    assert found.parts["utility"] == pytest.approx(whole - np.array(without), abs=1e-9)
    assert np.array_equal(found.stderr, np.zeros(18))


@pytest.mark.parametrize("semivalue", ["banzhaf", (4.0, 1.0), (1.0, 4.0)])
@pytest.mark.parametrize("n_folds", [0, 2])
def test_other_semivalues_are_unbiased_for_the_enumerated(semivalue, n_folds, monkeypatch):
    """Orders are independent: 6.5 standard errors of 2,000 are passed once in 1e10."""
    monkeypatch.setattr("hcdv.valuation.nested.N_ORDERS", 2000)
    n, steady = 8, LeastSquares(features="linear", ridge=0.3)
    case = a_case(n, 3, seed=2, n_folds=n_folds)
    plan = a_plan(
        semivalue=semivalue, n_contexts=6000, consistency_weight=0.0, utility=steady
    )
    found = value(case, a_tree(n, 0), plan)
    players = as_players(case, a_probe(case, config=steady))
    exact = semivalue_exact(players, n, shares(semivalue, n))
    assert np.all(np.abs(found.parts["utility"] - exact) < 6.5 * found.stderr)
    assert found.stderr.mean() < 0.03 * np.abs(exact).mean()


@pytest.mark.parametrize("semivalue", ["banzhaf", "loo", (4.0, 1.0), (1.0, 16.0)])
def test_dispersion_is_paid_by_the_same_semivalue(semivalue):
    n = 9
    case = a_case(n, 3)
    plan = a_plan(semivalue=semivalue, dispersion_weight=1.0)
    found = value(case, a_tree(n, 0), plan).parts["dispersion"]
    Z, y = case.points.Z, case.points.target
    worth = (1 - Z @ Z.T) * (y[:, None] != y)
    pairs = np.sum(y[:, None] != y) / 2

    def dispersion(masks):
        return np.einsum("mi,ij,mj->m", masks, worth, masks) / 2 / pairs

    exact = semivalue_exact(dispersion, n, shares(semivalue, n))
    assert found == pytest.approx(exact, abs=1e-12)


def test_coalitions_are_worth_their_points_and_the_surplus_is_still_told():
    case = a_case(30, 2)
    found = value(case, a_tree(30, 0), a_plan(semivalue="banzhaf"))
    whole = retrained(case, a_probe(case), np.ones(30, bool))
    assert found.surplus["utility"] == pytest.approx(whole, abs=1e-9)
    assert abs(found.parts["utility"].sum() - whole) > 0.01
    assert np.isnan(found.as_player).all()
    assert found.notes["semivalue"] == "banzhaf"


def test_only_the_probe_has_other_semivalues():
    with pytest.raises(ParameterError, match="semivalue must be"):
        value(
            a_case(20, 2), a_tree(20, 0), a_plan(semivalue="loo", utility=Neighbours())
        )  # fmt: skip
