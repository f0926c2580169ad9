"""Our values beside those that other people's libraries gave for the same questions.

The answers were computed by pyDVL, OpenDataVal, shapiq and shap in environments of their
own and are stored with the versions; benchmarks/peers/make_fixtures.py makes them again.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaln, comb
from sklearn.linear_model import LogisticRegression

from hcdv import functional
from hcdv.valuation.retraining import RetrainingGame

FIXTURES = Path(__file__).parent / "fixtures" / "peers"
CLOSE = {"rtol": 0, "atol": 1e-8}


def stored(name):
    with np.load(FIXTURES / f"{name}.npz") as arrays:
        return dict(arrays)


NEIGHBOURS, GAMES, TREES = stored("neighbours"), stored("games"), stored("trees")


def answers(arrays, *starts):
    """Name the stored answers that start so: the peer and what it was asked."""
    return sorted(name for name in arrays if name.startswith(starts))


def game_of(table):
    """Return the game in which S is paid table[sum(2**i for i in S)], and its players."""
    n_players = table.size.bit_length() - 1
    places = 1 << np.arange(n_players)
    return lambda masks: table[masks @ places], n_players


def rows():
    return tuple(NEIGHBOURS[name] for name in ("X", "y", "X_val", "y_val"))


def beta_shares(alpha, beta, n_players):
    """Beta(α, β)-Shapley (Kwon and Zou 2022): what all coalitions of one size weigh."""
    size = np.arange(n_players)
    log_p = betaln(size + beta, n_players - 1 - size + alpha) - betaln(alpha, beta)
    return comb(n_players - 1, size) * np.exp(log_p)


@pytest.mark.parametrize("answer", answers(NEIGHBOURS, "pydvl", "shapiq_k", "open"))
def test_nearest_neighbour_values_are_the_peers(answer):
    k = int(answer.partition("_k")[2])
    np.testing.assert_allclose(
        functional.knn_shapley(*rows(), k=k), NEIGHBOURS[answer], **CLOSE
    )


def test_values_of_neighbours_within_a_radius_are_those_of_shapiq():
    ours = functional.threshold_knn_shapley(*rows(), radius=float(NEIGHBOURS["radius"]))
    np.testing.assert_allclose(ours, NEIGHBOURS["shapiq_threshold"], **CLOSE)


@pytest.mark.parametrize("answer", answers(GAMES, "pydvl_sh", "pydvl_orders", "shapiq_sh"))
def test_enumerated_shapley_values_are_the_peers(answer):
    """pyDVL enumerates subsets and, named orders here, permutations; shapiq subsets."""
    game, n_players = game_of(GAMES[f"table_{answer.split('_', 2)[2]}"])
    ours = functional.shapley_exact(game, n_players)
    np.testing.assert_allclose(ours, GAMES[answer], **CLOSE)


@pytest.mark.parametrize("answer", answers(GAMES, "pydvl_banzhaf", "shapiq_banzhaf"))
def test_enumerated_banzhaf_values_are_the_peers(answer):
    game, n_players = game_of(GAMES[f"table_{answer.split('_', 2)[2]}"])
    shares = comb(n_players - 1, np.arange(n_players)) / 2 ** (n_players - 1)
    ours = functional.semivalue_exact(game, n_players, shares)
    np.testing.assert_allclose(ours, GAMES[answer], **CLOSE)


@pytest.mark.parametrize("answer", answers(GAMES, "pydvl_beta"))
def test_enumerated_beta_shapley_values_are_those_of_pydvl(answer):
    alpha, beta, name = answer.removeprefix("pydvl_beta_").split("_", 2)
    game, n_players = game_of(GAMES[f"table_{name}"])
    shares = beta_shares(int(alpha), int(beta), n_players)
    ours = functional.semivalue_exact(game, n_players, shares)
    np.testing.assert_allclose(ours, GAMES[answer], **CLOSE)


@pytest.mark.parametrize("answer", answers(TREES, "shap_"))
def test_values_of_nested_unions_are_those_of_shap(answer):
    """shap's PartitionExplainer knows binary trees, its CoalitionExplainer any."""
    name = answer.split("_", 2)[2]
    parent, (game, _) = TREES[f"parent_{name}"], game_of(TREES[f"table_{name}"])
    is_leaf = ~np.isin(np.arange(parent.size), parent[1:])
    expected = np.zeros(parent.size)
    expected[is_leaf] = TREES[answer]
    for node in range(parent.size - 1, 0, -1):
        expected[parent[node]] += expected[node]
    np.testing.assert_allclose(functional.winter_exact(game, parent), expected, **CLOSE)


def test_a_tree_changes_values_so_that_agreement_on_one_means_something():
    for name in (key.removeprefix("table_") for key in answers(TREES, "table_")):
        game, n_players = game_of(TREES[f"table_{name}"])
        flat = functional.shapley_exact(game, n_players)
        assert np.abs(flat - TREES[f"shap_coalition_{name}"]).max() > 0.01


def test_a_model_retrained_on_unions_of_groups_is_paid_as_by_pydvl():
    """pyDVL pays the empty coalition 0, so we are told to.

    A solver stops at a tolerance: in at most one coalition, one of the 40 validation
    rows may fall on the other side of the boundary on another machine.
    """
    X, y, X_val, y_val = rows()
    model = LogisticRegression(max_iter=1000)
    groups = NEIGHBOURS["groups"]
    game = RetrainingGame(
        model, X, y, X_val, y_val, groups, scorer="accuracy", n_jobs=1, empty=0.0
    )
    masks = (np.arange(64)[:, None] >> np.arange(6)) & 1 == 1
    gap = np.abs(game(masks) - GAMES["table_retrained"])
    assert np.count_nonzero(gap > 1e-12) <= 1
    assert gap.max() <= 1 / 40 + 1e-12


@pytest.mark.parametrize("name", ["neighbours", "games", "trees"])
def test_every_peer_that_answered_is_stored_with_its_version(name):
    arrays = stored(name)
    versions = json.loads(str(arrays["meta"]))["versions"]
    found = answers(arrays, "pydvl_", "opendataval_", "shap_", "shapiq_")
    assert {answer.partition("_")[0] for answer in found} == set(versions)
    for peer, packages in versions.items():
        assert {peer, "python", "numpy"} <= {package.lower() for package in packages}
