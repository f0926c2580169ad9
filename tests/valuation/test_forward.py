"""Forward selection against the gains of retraining and of the pairs' definition."""

import numpy as np
import pytest

from cases import a_case, a_plan, a_probe, a_tree, retrained
from hcdv.valuation.forward import (
    N_STEPS,
    _batch_ends,
    dispersion_gain,
    forward_selection,
    utility_gain,
)
from hcdv.valuation.methods import value


def chosen_some(n, seed=0):
    return np.random.default_rng(seed).random(n) < 0.4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_folds", [0, 3])
def test_the_gain_of_a_row_is_that_of_teaching_it_too(n_folds, weighted):
    case = a_case(24, 3, n_folds=n_folds, weighted=weighted)
    plan = a_plan()
    chosen, probe = chosen_some(24), a_probe(case)
    found = utility_gain(case, plan, value(case, a_tree(24, 0), plan), chosen)
    now = retrained(case, probe, chosen)
    for row in np.flatnonzero(~chosen):
        joined = chosen | (np.arange(24) == row)
        assert found[row] == pytest.approx(retrained(case, probe, joined) - now, abs=1e-9)


def test_the_dispersion_gain_is_the_distance_to_chosen_rows_of_other_labels():
    case, chosen = a_case(24, 3), chosen_some(24)
    Z, y = case.points.Z, case.points.target
    pairs = np.sum(y[:, None] != y) / 2
    others = (y[:, None] != y) & chosen
    expected = np.sum((1 - Z @ Z.T) * others, axis=1) / pairs
    assert dispersion_gain(case, chosen) == pytest.approx(expected, abs=1e-12)
    assert not dispersion_gain(a_case(24, 0), chosen).any()


@pytest.mark.parametrize("n_kept", [0, 1, 2, 5, 23, 24, 25, 100, 4001])
def test_batches_grow_and_end_at_the_number_asked_for(n_kept):
    ends = _batch_ends(n_kept)
    assert len(ends) <= N_STEPS
    sizes = np.diff(ends, prepend=0)
    assert np.all(sizes > 0)
    assert sizes.sum() == n_kept
    if n_kept > 4000:
        assert sizes[-1] > 10 * sizes[0]


@pytest.mark.parametrize("n_kept", [1, 7, 30])
def test_exactly_so_many_rows_are_chosen_each_once(n_kept):
    case, plan = a_case(30, 2), a_plan()
    rows = forward_selection(case, plan, value(case, a_tree(30, 0), plan), n_kept)
    assert len(rows) == len(set(rows)) == n_kept


def test_the_first_row_is_the_best_alone_and_the_second_the_best_beside_it():
    """One row a batch while so few are asked for."""
    case = a_case(20, 2)
    plan = a_plan(consistency_weight=0.0, dispersion_weight=0.0)
    valuation, probe = value(case, a_tree(20, 0), plan), a_probe(case)

    def best_beside(*chosen):
        worth = [
            -np.inf
            if i in chosen
            else retrained(case, probe, np.isin(np.arange(20), [i, *chosen]))
            for i in range(20)
        ]
        return int(np.argmax(worth))

    first = best_beside()
    assert forward_selection(case, plan, valuation, 1).tolist() == [first]
    second = best_beside(first)
    two = forward_selection(case, plan, valuation, 2).tolist()
    assert two == sorted([first, second])


def test_repeats_of_the_best_row_are_not_all_taken():
    """Top-k takes copies of one good row; forward selection sees what it has."""
    case = a_case(60, 2, seed=3)
    case.points.Z[:20] = case.points.Z[0]
    case.points.target[:20] = case.points.target[0]
    plan = a_plan(consistency_weight=0.0)
    valuation = value(case, a_tree(60, 0), plan)
    rows = forward_selection(case, plan, valuation, 15)
    probe = a_probe(case)
    top = np.argsort(-valuation.values)[:15]
    chosen, best = (np.isin(np.arange(60), some) for some in (rows, top))
    assert retrained(case, probe, chosen) > retrained(case, probe, best)
