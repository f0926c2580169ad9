import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import RADIUS, shapley_by_subsets, slow_knn_game, small_knn_data
from hcdv.errors import DataError, ParameterError
from hcdv.valuation.coalition_game import winter_exact
from hcdv.valuation.knn import soft_knn_shapley
from hcdv.valuation.knn_game import KNNGame
from hcdv.valuation.orders import flat

KINDS = ("hard", "soft", "threshold", "regression")


@pytest.mark.parametrize("kind", KINDS)
@given(n=st.integers(1, 12), k=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_payoffs_are_those_of_the_members_rows(kind, n, k, seed):
    rng = np.random.default_rng(seed)
    data, group = small_knn_data(n, seed, kind == "regression"), rng.integers(0, 4, n)
    masks = rng.random((6, 4)) < 0.5
    masks[0], masks[1] = False, True
    weights = rng.dirichlet(np.ones(3))
    how = {"k": k, "kind": kind, "radius": RADIUS, "sample_weight_val": weights}
    game = KNNGame(*data, group, 4, **how)
    expected = slow_knn_game(kind, *data, k, weights)(masks[:, group])
    assert game(masks) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_small_coalitions_are_followed_to_the_end_of_the_lists(kind):
    """One group in forty: its members are far down every list, beyond the first looks."""
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(800, 3)), rng.normal(size=(5, 3))
    y, y_val = rng.integers(0, 2, 800), rng.integers(0, 2, 5)
    group = rng.permutation(np.arange(800) % 40)
    game = KNNGame(X, y, X_val, y_val, group, 40, k=7, kind=kind, radius=RADIUS)
    masks = np.concatenate([np.eye(40, dtype=bool), rng.random((20, 40)) < 0.3])
    slow = slow_knn_game(kind, X, y, X_val, y_val, 7)
    assert game(masks) == pytest.approx(slow(masks[:, group]), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_workers_do_not_change_the_payoffs(kind, monkeypatch):
    rng = np.random.default_rng(1)
    data = (
        rng.normal(size=(90, 2)),
        rng.integers(0, 3, 90),
        rng.normal(size=(9, 2)),
        rng.integers(0, 3, 9),
    )
    group, masks = rng.integers(0, 6, 90), rng.random((11, 6)) < 0.5
    whole = KNNGame(*data, group, 6, kind=kind, radius=RADIUS)(masks)
    monkeypatch.setattr("hcdv.valuation.neighbours.BLOCK_BYTES", 8 * 90 * 2)
    monkeypatch.setattr("hcdv.valuation.knn_game.ROWS", 2)
    monkeypatch.setattr("hcdv.valuation.knn_game.COALITIONS", 3)
    one, two = (
        KNNGame(*data, group, 6, kind=kind, radius=RADIUS, n_jobs=n)(masks) for n in (1, 2)
    )
    assert np.array_equal(one, two)
    assert one == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_coalition_is_paid_the_same_bits_in_any_company(kind):
    rng = np.random.default_rng(1)
    X, X_val = rng.normal(size=(90, 2)), rng.normal(size=(70, 2))
    data = X, rng.integers(0, 3, 90), X_val, rng.integers(0, 3, 70)
    masks = rng.random((50, 6)) < 0.5
    weights = rng.dirichlet(np.ones(70))
    how = {"kind": kind, "radius": 0.4, "sample_weight_val": weights}
    game = KNNGame(*data, rng.integers(0, 6, 90), 6, **how)
    alone = np.concatenate([game(mask[None]) for mask in masks])
    assert np.array_equal(game(masks), alone)


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_a_group_too_far_away_to_be_asked_is_worth_exactly_nothing(kind):
    """Beside group 0, which is always there and has K rows nearer to everyone."""
    rng = np.random.default_rng(1)
    X = np.append(rng.normal(size=(60, 2)), rng.normal(size=(9, 2)) + 1e3, axis=0)
    data = X, rng.integers(0, 3, 69), rng.normal(size=(70, 2)), rng.integers(0, 3, 70)
    game = KNNGame(*data, np.append(np.arange(60) % 4, np.full(9, 4)), 5, k=3, kind=kind)
    assert winter_exact(game, flat(5))[5] != 0.0  # alone it has a vote
    value = winter_exact(lambda masks: game(masks | (np.arange(5) == 0)), flat(5))
    assert value[5] == 0.0
    assert np.all(value[2:5] != 0.0)


def test_groups_of_one_row_are_the_points():
    X, y, X_val, y_val = small_knn_data(6, 3)
    game = KNNGame(X, y, X_val, y_val, np.arange(6), 6, k=2)
    value = soft_knn_shapley(X, y, X_val, y_val, 2)
    assert shapley_by_subsets(game, 6) == pytest.approx(value, abs=1e-12)


def test_a_group_without_rows_changes_nothing():
    X, y, X_val, y_val = small_knn_data(6, 3)
    for kind in KINDS:
        game = KNNGame(X, y, X_val, y_val, [0, 0, 2, 2, 2, 0], 4, kind=kind, radius=RADIUS)
        with_, without = game(np.array([[1, 1, 0, 1], [1, 0, 0, 0]], dtype=bool))
        assert with_ == without


def test_settings_and_masks_that_cannot_be_played_are_refused():
    data = small_knn_data(6, 3)
    with pytest.raises(ParameterError, match="kind must be one of hard, soft"):
        KNNGame(*data, np.arange(6), 6, kind="soften")
    with pytest.raises(ParameterError, match="radius must be more than zero, got None"):
        KNNGame(*data, np.arange(6), 6, kind="threshold")
    for groups in (np.arange(5), np.arange(6) - 1, np.arange(6) + 1, np.arange(6.0)):
        with pytest.raises(DataError, match="for each of 6 rows, an integer from 0 to 5"):
            KNNGame(*data, groups, 6)
    with pytest.raises(DataError, match=r"masks must have 6 columns, got shape \(2, 5\)"):
        KNNGame(*data, np.arange(6), 6)(np.zeros((2, 5), dtype=bool))
