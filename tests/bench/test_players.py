"""Players stand, fall and are found whole."""

from __future__ import annotations

import numpy as np
import pytest

from hcdv.bench.methods import Problem
from hcdv.bench.players import (
    N_PLAYERS,
    flipped_whole,
    players_of,
    rows_by_player,
    sums,
    valued,
)


def test_labels_of_some_players_are_wrong_to_the_last():
    y = np.random.default_rng(0).integers(0, 4, 1000)
    given, wrong = flipped_whole(y, 4, 0.15, np.random.default_rng(1))
    assert np.array_equal(given != y, wrong)
    assert sorted(set(sums(wrong.astype(float)))) == [0, 10]
    assert wrong.sum() == 150
    assert len(set((given[wrong] - y[wrong]) % 4)) == 3  # to any other class


def test_rows_follow_the_sum_of_their_player():
    values = np.random.default_rng(0).normal(size=1000)
    order, player = rows_by_player(values), players_of(1000)
    assert sorted(order) == list(range(1000))
    by_player = player[order].reshape(N_PLAYERS, 10)
    assert np.all(by_player == by_player[:, :1])
    assert np.all(np.diff(sums(values)[by_player[:, 0]]) >= 0)
    assert sums(values)[7] == pytest.approx(values[player == 7].sum())


def test_players_are_the_first_level_of_the_tree_where_the_method_knows_them():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 4)) + y[:, None]
    problem = Problem(X[:200], y[:200], X[200:], y[200:], 2, 0)
    for method, knows in (("hcdv", True), ("group shapley", True), ("hcdv rows", False)):
        scores = valued(problem, method)
        nodes = scores.fitted.coalitions_
        assert (np.sum(nodes["level"] == 1) == N_PLAYERS) == knows
        if knows:
            first = np.sort(nodes.loc[nodes["level"] == 1, "value"])
            np.testing.assert_allclose(first, np.sort(sums(scores.values)), atol=1e-12)
