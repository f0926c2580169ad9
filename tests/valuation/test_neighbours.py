import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcdv.valuation.neighbours import map_distances, nearest


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_nearest_are_those_of_a_stable_sort(n, count, n_places, seed):
    """Few distinct distances: ties everywhere, also across the cut."""
    distance = np.random.default_rng(seed).integers(0, n_places, (7, n)).astype(float)
    expected = np.argsort(distance, axis=1, kind="stable")[:, :count]
    assert np.array_equal(nearest(distance, count), expected)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_distances_come_block_by_block_in_order(n_jobs, monkeypatch):
    monkeypatch.setattr("hcdv.valuation.neighbours.BLOCK_BYTES", 8 * 20 * 3)
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(20, 4)), rng.normal(size=(8, 4))
    seen = list(map_distances(lambda distance, rows: (distance, rows), X, X_val, n_jobs))
    assert [rows for _, rows in seen] == [slice(0, 3), slice(3, 6), slice(6, 8)]
    whole = np.concatenate([distance for distance, _ in seen])
    assert whole == pytest.approx(np.sum((X_val[:, None] - X) ** 2, axis=2), abs=1e-12)
