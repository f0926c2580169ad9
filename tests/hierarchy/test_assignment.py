"""Rows that come later find the leaf whose mean is nearest, level by level."""

from __future__ import annotations

import numpy as np

from hcdv.hierarchy.assignment import Prototypes, shape_of
from hcdv.hierarchy.growth import flat_tree, grow


def blobs(n: int = 600, seed: int = 0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(9, 5)) * 4
    return centres[np.arange(n) % 9] + rng.normal(size=(n, 5)) * 0.1


def grown(Z):
    return grow(Z, branching=3, leaf_size=70, rng=np.random.default_rng(1))


def test_each_row_goes_down_to_the_nearest_child_at_every_node():
    Z = blobs()
    found = Prototypes.of(grown(Z), Z)
    tree, new = found.shape, blobs(50, seed=3)
    leaves = tree.leaves[found.leaves(new)]
    for z, leaf in zip(new, leaves, strict=True):
        node = 0
        while tree.n_children[node]:
            children = tree.children(node)
            node = children[np.argmin(((found.mean[children] - z) ** 2).sum(axis=1))]
        assert node == leaf


def test_rows_of_clear_groups_go_where_they_were_grown():
    Z = blobs()
    tree = grown(Z)
    assert np.mean(tree.leaves[Prototypes.of(tree, Z).leaves(Z)] == tree.leaf_of_row) > 0.95


def test_the_shape_keeps_the_nodes_and_has_a_row_a_leaf():
    tree = grown(blobs())
    shape = shape_of(tree)
    assert np.array_equal(shape.parent, tree.parent)
    assert np.array_equal(shape.leaves, tree.leaves)
    assert shape.n_rows == len(tree.leaves)
    size = tree.size[tree.leaves]
    assert np.array_equal(shape.node_sums(size), tree.size)


def test_a_flat_tree_has_one_leaf_for_all():
    Z = blobs(20)
    assert not Prototypes.of(flat_tree(20), Z).leaves(Z).any()
