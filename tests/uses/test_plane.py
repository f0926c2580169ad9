"""The plane holds the two directions of most spread, and grids count every row."""

from __future__ import annotations

import numpy as np
import pytest

from hcdv.uses.plane import density, plane_of

RNG = np.random.default_rng(1)


def test_the_plane_is_that_of_most_variance_whatever_the_turn():
    flat = RNG.normal(size=(500, 4)) * [50.0, 3.0, 0.1, 0.1]
    turn = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    plane = plane_of(flat @ turn)
    assert plane.share > 0.999
    for axis, own in ((0, flat[:, 0]), (1, flat[:, 1])):
        inside = (plane.at[:, axis] > 0.0) & (plane.at[:, axis] < 1.0)
        assert abs(np.corrcoef(plane.at[inside, axis], own[inside])[0, 1]) > 0.99


@pytest.mark.parametrize("Z", [np.ones((5, 3)), RNG.normal(size=(6, 1)), np.eye(2)])
def test_rows_without_two_directions_have_places_all_the_same(Z):
    plane = plane_of(Z)
    assert plane.at.shape == (len(Z), 2)
    assert ((plane.at >= 0) & (plane.at <= 1)).all()


def test_outliers_do_not_set_the_scale():
    Z = RNG.normal(size=(5000, 2))
    Z[0] = 1e4
    plane = plane_of(Z)
    assert np.quantile(plane.at[:, 0], 0.9) - np.quantile(plane.at[:, 0], 0.1) > 0.3
    assert plane.at.max() == 1.0


def test_every_row_is_in_the_cell_where_it_lies():
    at = np.array([[0.0, 1.0], [0.99, 1.0], [0.5, 0.0], [1.0, 0.0]])
    grid = density(at, 4, 2)
    assert grid.count.tolist() == [[1, 0, 0, 1], [0, 0, 1, 1]]
    mean = grid.mean(np.array([1.0, 2.0, 3.0, 5.0]))
    assert mean[0, 3] == 2.0
    assert np.isnan(mean[0, 1])
    most = grid.commonest(np.array([0, 1, 1, 2]))
    assert most.tolist() == [[0, -1, -1, 1], [-1, -1, 1, 2]]
