"""The game of every kind of utility against its definition, judge by judge."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from cases import a_case, a_probe
from hcdv.valuation.payoffs import MeanGame, coalition_game
from hcdv.valuation.points import Case, Originals
from hcdv.valuation.utility import LeastSquares, Neighbours, Payoffs, Retrained

CODE = np.arange(30) % 4
MASKS = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)


def game_of_case(case, utility, metric="accuracy", **how):
    return coalition_game(case, utility, a_probe(case, metric), metric, CODE, 4, **how)


def nearest_share(case, judge, rows, k):
    """Soft neighbours: of the k nearest rows there are, the share of the right class."""
    points, right = case.points, []
    for z, label in zip(judge.points.Z, judge.points.target, strict=True):
        near = rows[np.argsort(np.sum((points.Z[rows] - z) ** 2, axis=1))][:k]
        right.append(np.mean(points.target[near] == label) if len(near) else 0.5)
    return np.mean(right)


@pytest.mark.parametrize("n_folds", [0, 3])
def test_neighbours_are_looked_for_among_the_rows_each_judge_may_use(n_folds):
    case = a_case(30, 2, n_folds=n_folds)
    paid = game_of_case(case, Neighbours(k=3))(MASKS)
    for mask, payoff in zip(MASKS, paid, strict=True):
        each = [
            nearest_share(case, judge, np.flatnonzero(mask[CODE] & case.taught(judge)), 3)
            for judge in case.judges
        ]
        assert payoff == pytest.approx(np.mean(each), abs=1e-12)


@pytest.mark.parametrize("n_folds", [0, 3])
def test_models_are_retrained_on_the_rows_each_judge_may_use(n_folds):
    case = a_case(30, 2, n_folds=n_folds, weighted=True)
    game = game_of_case(case, Retrained(estimator=LogisticRegression()))
    paid = game(MASKS)
    for mask, payoff in zip(MASKS, paid, strict=True):
        each = []
        for k, judge in enumerate(case.judges):
            rows = np.flatnonzero(mask[CODE] & case.taught(judge))
            X, y = case.originals.judged[k]
            if not len(rows):
                each.append(0.5)
                continue
            model = LogisticRegression().fit(
                case.points.Z[rows], case.points.target[rows], case.points.weight[rows]
            )
            each.append(model.score(X, y))
        assert payoff == pytest.approx(np.mean(each), abs=1e-12)
    assert game.report()["failures"] == 0
    assert game.report()["fits"] == 3 * len(case.judges)


def test_a_scorer_of_ones_own_is_used_in_place_of_the_metric():
    case = a_case(30, 0)
    utility = Retrained(
        estimator=Ridge(), scorer=lambda model, X, y: 0.25, bounds=(0, 1), empty=0.125
    )
    paid = game_of_case(case, utility, "r2")(MASKS)
    assert paid.tolist() == [0.125, 0.25, 0.25, 0.25]


def test_a_payoff_of_ones_own_is_asked_about_rows_in_ones_own_order():
    case = a_case(30, 2)
    perm = np.random.default_rng(0).permutation(30)
    own = case.originals
    originals = Originals(own.table, own.labels, own.judged, perm)
    case = Case(case.views, case.judges, case.judging_view, originals)
    asked = []

    def function(rows):
        asked.append(sorted(np.asarray(rows).tolist()))
        return len(rows) / 30

    paid = game_of_case(case, Payoffs(function=function))(MASKS)
    expected = [sorted(perm[mask[CODE]].tolist()) for mask in MASKS]
    assert paid == pytest.approx([len(rows) / 30 for rows in expected])
    assert all(rows in expected for rows in asked)


def test_the_probe_is_the_games_own_where_it_is_the_utility():
    case = a_case(30, 2)
    paid = game_of_case(case, LeastSquares(features="linear"), "loss")(MASKS)
    assert paid == pytest.approx(a_probe(case).game(case, CODE, 4, None)(MASKS), abs=0)


def test_reports_of_the_judges_are_added_and_the_first_error_kept():
    class Report:
        fits, cached, one_class, failures = 2, 1, 0, 3

        def __init__(self, error):
            self.first_error = error

    class Game:
        def __init__(self, error):
            self.report = Report(error)

    found = MeanGame([Game(None), Game("late"), Game("later")]).report()
    assert found == {
        "fits": 6, "cached": 3, "one_class": 0, "failures": 9, "first_error": "late"
    }  # fmt: skip
    assert MeanGame([object()]).report() == {}
