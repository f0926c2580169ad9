"""Grown trees keep their promise on leaves, whoever computes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcdv.errors import DataError, ParameterError
from hcdv.hierarchy.capacity import window
from hcdv.hierarchy.growth import flat_tree, grow, tree_from_levels
from hcdv.hierarchy.tree import Tree


def points(n_rows: int, seed: int = 0, n_columns: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(7, n_columns))
    return rng.normal(size=(n_rows, n_columns)) + centres[rng.integers(0, 7, size=n_rows)]


def children_are_inside_their_window(tree: Tree, tolerance: float) -> bool:
    ends = [
        (tree.size[tree.children(i)], window(tree.size[i], tree.n_children[i], tolerance))
        for i in np.flatnonzero(~tree.is_leaf)
    ]
    return all(low <= size.min() and size.max() <= high for size, (low, high) in ends)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 300),
    st.integers(1, 70),
    st.integers(2, 9),
    st.sampled_from([0.0, 0.1, 0.6]),
    st.sampled_from(["plain", "identical", "few"]),
    st.integers(0, 99),
)
def test_no_leaf_is_larger_than_asked_and_no_node_outside_its_window(
    n_rows: int, leaf_size: int, branching: int, tolerance: float, kind: str, seed: int
) -> None:
    Z = points(n_rows, seed)
    if kind != "plain":
        Z = Z[np.arange(n_rows) % (1 if kind == "identical" else 3)]
    rng = np.random.default_rng(seed)
    tree = grow(Z, branching=branching, leaf_size=leaf_size, rng=rng, tolerance=tolerance)
    assert tree.size[tree.is_leaf].max() <= leaf_size
    assert tree.size[~tree.is_leaf].min(initial=n_rows) > min(leaf_size, n_rows - 1)
    assert tree.n_children.max() <= branching
    assert tree.size.min() >= 1
    assert children_are_inside_their_window(tree, tolerance)


@pytest.mark.parametrize("n_rows", [900, 12_000])
def test_any_number_of_workers_grows_the_same_tree(n_rows: int) -> None:
    Z = points(n_rows).astype(np.float32)
    alone = grow(Z, leaf_size=20, rng=np.random.default_rng(5))
    assert grow(Z, leaf_size=20, rng=np.random.default_rng(5)) == alone
    for n_jobs in (2, 3):
        assert grow(Z, leaf_size=20, rng=np.random.default_rng(5), n_jobs=n_jobs) == alone
    assert grow(Z, leaf_size=20, rng=np.random.default_rng(6)) != alone


def test_a_large_set_grows_within_its_windows() -> None:
    """Large enough for sampled nodes, lone ones, and batches padded to the longest."""
    tree = grow(points(30_000), leaf_size=50, rng=np.random.default_rng(0), n_jobs=2)
    assert tree.size[tree.is_leaf].max() <= 50
    assert children_are_inside_their_window(tree, 0.1)
    assert len(tree.leaves) < 2 * 30_000 / 50


def test_leaves_hold_neighbours() -> None:
    Z = points(2000)
    tree = grow(Z, leaf_size=50, rng=np.random.default_rng(0))
    counts = tree.node_sums(np.ones(2000))
    inner = (tree.node_sums(Z.T)[:, tree.leaves] ** 2 / counts[tree.leaves]).sum()
    about_mean = (Z**2).sum() - 2000 * (Z.mean(axis=0) ** 2).sum()
    assert (Z**2).sum() - inner < 0.1 * about_mean


def test_branching_may_differ_by_level() -> None:
    tree = grow(
        points(1000), branching=(2, 5, 3), leaf_size=4, rng=np.random.default_rng(0)
    )
    assert tree.n_children[0] == 2
    assert set(tree.n_children[tree.level == 1]) == {5}
    assert tree.n_children[tree.level >= 2].max() == 3


def test_a_set_no_larger_than_a_leaf_is_one_leaf() -> None:
    tree = grow(points(64), rng=np.random.default_rng(0))
    assert tree == flat_tree(64)
    assert tree.leaves.tolist() == [0]
    assert tree.depth == 0


def test_no_more_children_than_needed() -> None:
    """Two children of 118 rows may hold ⌈1.1·59⌉ = 65, so it takes three."""
    for n_rows, fewest in [(100, 2), (118, 3), (600, 8)]:
        tree = grow(points(n_rows), leaf_size=64, rng=np.random.default_rng(0))
        assert tree.n_children[0] == fewest


def test_every_task_draws_its_own_random_numbers() -> None:
    """Two groups of the same points, each large enough to be a task of its own."""
    Z = np.tile(points(5000, n_columns=2), (2, 1))
    groups = tree_from_levels([np.repeat([0, 1], 5000)])
    tree = grow(Z, leaf_size=1000, rng=np.random.default_rng(0), within=groups)
    first, second = np.split(tree.codes(tree.cut(2)), 2)
    assert not np.array_equal(first, second - second.min())


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_given_labels_make_nested_levels(n_rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    coarse = rng.choice(["b", "a", "long name"], size=n_rows)
    fine = rng.integers(0, 4, size=n_rows)
    tree = tree_from_levels([coarse, fine])
    assert tree.name is not None
    names = np.array(tree.name)
    assert np.array_equal(names[tree.cut(1)[tree.codes(tree.cut(1))]], coarse)
    assert np.array_equal(names[tree.leaf_of_row], fine.astype(str))
    assert len(tree.leaves) == len(set(zip(coarse.tolist(), fine.tolist(), strict=True)))
    assert names[tree.cut(1)].tolist() == sorted(set(coarse.tolist()))


def test_clusters_grow_below_given_groups() -> None:
    Z = points(600)
    groups = np.array(["north", "south", "west"])[np.repeat([0, 1, 2], [400, 190, 10])]
    given_tree = tree_from_levels([groups])
    tree = grow(Z, leaf_size=32, rng=np.random.default_rng(0), within=given_tree)
    assert tree.name is not None
    assert tree.name[:4] == ("", "north", "south", "west")
    assert set(tree.name[4:]) == {""}
    for i in range(4):
        assert set(tree.rows(i).tolist()) == set(given_tree.rows(i).tolist())
    assert tree.is_leaf[3]
    assert tree.size[tree.is_leaf].max() <= 32


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=12)
def test_growing_keeps_every_node_of_an_uneven_tree(seed: int) -> None:
    """Leaves of any level are refined, also empty ones and only children."""
    rng = np.random.default_rng(seed)
    Z = points(200, seed)
    start = grow(Z, branching=3, leaf_size=int(rng.integers(20, 90)), rng=rng)
    first = rng.integers(0, 2, size=200)
    start = tree_from_levels([first, np.where(first == 0, 0, start.leaf_of_row)])
    start = start.restrict(rng.random(200) < 0.7)
    n_rows = start.n_rows
    tree = grow(Z[:n_rows], branching=4, leaf_size=9, rng=rng, within=start)
    kept = {frozenset(tree.rows(i).tolist()) for i in range(tree.n_nodes)}
    assert all(frozenset(start.rows(i).tolist()) in kept for i in range(start.n_nodes))
    assert tree.size[tree.is_leaf].max() <= 9
    again = grow(Z[:n_rows], branching=4, leaf_size=9, rng=rng, within=tree)
    assert again == tree


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"leaf_size": 0}, "leaf_size must be at least 1, got 0"),
        ({"branching": 1}, "branching must be at least 2, got 1"),
        ({"branching": (4, 1)}, "branching must be at least 2, got 1"),
        ({"branching": ()}, "branching must be at least 2"),
        ({"tolerance": 1.0}, "tolerance must be at least 0 and below 1"),
        ({"tolerance": float("nan")}, "tolerance must be"),
        ({"n_jobs": 0}, "n_jobs must be a number of workers"),
        ({"within": flat_tree(9)}, "within must be a tree of the same 10 rows"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        grow(points(10), rng=np.random.default_rng(0), **settings)


def test_rows_that_cannot_be_placed_are_refused() -> None:
    Z = points(10)
    Z[3, 1] = np.inf
    with pytest.raises(DataError, match="rows are not, the first is row 3"):
        grow(Z, rng=np.random.default_rng(0))
    with pytest.raises(DataError, match="Row 1 has no label"):
        tree_from_levels([np.array(["a", None, "b"], dtype=object)])
    with pytest.raises(DataError, match="Row 0 has no label"):
        tree_from_levels([np.array([np.nan, 1.0])])
    with pytest.raises(DataError, match="of one kind"):
        tree_from_levels([np.array(["a", 1], dtype=object)])
    with pytest.raises(DataError, match="at least one row"):
        tree_from_levels([np.array([])])
    with pytest.raises(ParameterError, match="levels must be"):
        tree_from_levels([np.ones(3), np.ones(4)])
    with pytest.raises(ParameterError, match="n_rows must be at least 1"):
        flat_tree(0)
