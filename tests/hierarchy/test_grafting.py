"""Trees that change: rows join, leaves sprout, split and fold, and who was who is told."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hcdv.hierarchy.grafting import folded, grafted, split
from hcdv.hierarchy.growth import flat_tree, grow

seeds = st.integers(0, 2**32 - 1)


def a_tree(seed, n=60):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    return Z, grow(Z, branching=3, leaf_size=6, rng=rng), rng


@given(seeds, st.integers(0, 9), st.integers(0, 4))
def test_rows_are_in_the_leaves_they_joined_and_all_others_stay(seed, n_new, n_sprouts):
    _, tree, rng = a_tree(seed)
    beside = rng.choice(tree.leaves, n_sprouts)
    places = np.append(tree.leaves, tree.n_nodes + np.arange(n_sprouts))
    joined = rng.choice(places, n_new)
    found, was = grafted(tree, joined, tree.parent[beside])
    assert sorted(was) == sorted([*range(tree.n_nodes), *(-1 - np.arange(n_sprouts))])
    of_row = was[found.leaf_of_row]
    assert of_row[:60].tolist() == tree.leaf_of_row.tolist()
    assert np.where(of_row < 0, tree.n_nodes - 1 - of_row, of_row)[60:].tolist() == (
        joined.tolist()
    )
    old = was >= 0
    assert np.array_equal(was[found.parent[old][1:]], tree.parent[was[old]][1:])
    assert np.array_equal(was[found.parent[~old]], tree.parent[beside][-1 - was[~old]])


@given(seeds, st.integers(0, 30))
def test_thin_parents_of_leaves_fold_up_and_no_row_is_lost(seed, fewest):
    _, tree, rng = a_tree(seed)
    tree = tree.restrict(rng.random(60) < 0.4)
    found, was = folded(tree, fewest)
    assert found.n_rows == tree.n_rows
    assert np.array_equal(found.size, tree.size[was])
    assert np.array_equal(was[found.parent[1:]], tree.parent[was[1:]])
    thin = ~tree.is_leaf & (tree.size < fewest)
    above_leaves = [bool(tree.is_leaf[tree.children(i)].all()) for i in range(tree.n_nodes)]
    gone = np.flatnonzero(thin & above_leaves)
    gone = gone[gone > 0]
    assert all(found.is_leaf[was == node].all() for node in gone)


def test_only_leaves_that_are_too_large_are_split():
    Z, tree, rng = a_tree(0)
    full = int(tree.leaves[2])
    tree, _ = grafted(tree, np.full(10, full), np.zeros(0, dtype=int))
    Z = np.concatenate([Z, rng.normal(size=(10, 3))])
    found, was = split(tree, Z, [3], 12, rng, None)
    assert found.size[found.leaves].max() <= 12
    kept = was >= 0
    assert np.array_equal(found.size[kept], tree.size[was[kept]])
    assert (~kept).sum() >= 2
    assert set(was[found.parent[~kept]]) == {full}
    assert sorted(-1 - was[~kept]) == list(range((~kept).sum()))


def test_the_only_leaf_there_is_takes_all():
    found, was = grafted(flat_tree(3), np.zeros(2, dtype=int), np.zeros(0, dtype=int))
    assert found.n_rows == 5
    assert was.tolist() == [0]
    assert folded(found, 100)[0].n_nodes == 1
