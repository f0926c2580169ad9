"""The tree keeps its invariants, and its questions are answered as a plain loop would."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcdv.errors import DataError, HCDVError, ParameterError
from hcdv.hierarchy.tree import Tree


@st.composite
def trees(draw: st.DrawFn, max_rows: int = 40) -> Tree:
    """Any tree: uneven, of any depth, with empty nodes and only children."""
    n_rows = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parent, start, stop, level = [-1], [0], [n_rows], [0]
    for node in range(draw(st.integers(0, 12))):
        if node >= len(parent):
            break
        n_children = int(rng.integers(0, 4))
        edges = np.sort(
            rng.integers(start[node], stop[node] + 1, size=max(n_children - 1, 0))
        )
        edges = [start[node], *edges.tolist(), stop[node]]
        for low, high in pairwise(edges):
            if n_children:
                parent.append(node)
                start.append(low)
                stop.append(high)
                level.append(level[node] + 1)
    return Tree(rng.permutation(n_rows), parent, start, stop)


def three_levels() -> Tree:
    """Root → 1 {3, 1, 0}, 2 (empty), 3 {2, 4, 5}; 1 → 4, 5; 3 → 6, 7."""
    return Tree(
        np.array([3, 1, 0, 2, 4, 5]),
        np.array([-1, 0, 0, 0, 1, 1, 3, 3]),
        np.array([0, 0, 3, 3, 0, 1, 3, 4]),
        np.array([6, 3, 3, 6, 1, 3, 4, 6]),
    )


@given(trees())
def test_links_agree_with_parents(tree: Tree) -> None:
    for node in range(tree.n_nodes):
        children = tree.children(node)
        assert np.array_equal(children, np.flatnonzero(tree.parent == node))
        assert tree.is_leaf[node] == (len(children) == 0)
        assert np.all(tree.level[children] == tree.level[node] + 1)
        if len(children):
            together = np.concatenate([tree.rows(int(child)) for child in children])
            assert np.array_equal(together, tree.rows(node))


@given(trees())
def test_every_cut_holds_every_row_once_in_slice_order(tree: Tree) -> None:
    for level in range(tree.depth + 1):
        cut = tree.cut(level)
        assert np.array_equal(np.concatenate([tree.rows(int(i)) for i in cut]), tree.order)
        codes = tree.codes(cut)
        assert all(row in tree.rows(int(cut[code])) for row, code in enumerate(codes))
    assert np.array_equal(tree.cut(tree.depth), tree.leaves)


@given(trees())
def test_leaves_of_one_node_are_neighbours(tree: Tree) -> None:
    """Also where slices are empty, so that orders over leaves keep coalitions together."""
    above = [{*_ancestors(tree, int(leaf))} for leaf in tree.leaves]
    for node in range(tree.n_nodes):
        places = [place for place, path in enumerate(above) if node in path]
        assert places == list(range(places[0], places[0] + len(places)))


def _ancestors(tree: Tree, node: int) -> list[int]:
    path = [node]
    while path[-1]:
        path.append(int(tree.parent[path[-1]]))
    return path


@given(trees())
def test_a_path_leads_from_the_root_to_the_leaf_of_a_row(tree: Tree) -> None:
    for row in range(tree.n_rows):
        path = tree.path(row)
        assert path[0] == 0
        assert path[-1] == tree.leaf_of_row[row]
        assert np.array_equal(tree.parent[path[1:]], path[:-1])
        assert all(row in tree.rows(int(node)) for node in path)


@given(trees(), st.integers(0, 2**32 - 1))
def test_node_sums_are_sums_over_rows_and_children_sum_to_parents(
    tree: Tree, seed: int
) -> None:
    values = np.random.default_rng(seed).normal(size=(2, tree.n_rows))
    sums = tree.node_sums(values)
    plain = [values[:, tree.rows(node)].sum(axis=1) for node in range(tree.n_nodes)]
    assert sums.shape == (2, tree.n_nodes)
    np.testing.assert_allclose(sums, np.stack(plain, axis=1), rtol=1e-12, atol=1e-13)
    for node in np.flatnonzero(~tree.is_leaf):
        below = sums[:, tree.children(int(node))].sum(axis=1)
        np.testing.assert_allclose(below, sums[:, node], rtol=1e-12, atol=1e-15)


def test_node_sums_of_counts_stay_whole_numbers() -> None:
    sums = three_levels().node_sums(np.array([True, False, True, True, False, True]))
    assert sums.dtype == np.int64
    assert sums.tolist() == [4, 2, 0, 2, 1, 1, 1, 1]


@given(trees(), st.integers(1, 40))
def test_the_game_level_is_the_deepest_small_enough_cut(tree: Tree, most: int) -> None:
    level = tree.game_level(most)
    assert len(tree.cut(level)) <= most
    assert level == tree.depth or len(tree.cut(level + 1)) > most


@given(trees(), st.integers(0, 2**32 - 1))
def test_restricting_keeps_ids_and_renumbers_rows(tree: Tree, seed: int) -> None:
    keep = np.random.default_rng(seed).random(tree.n_rows) < 0.5
    kept = np.flatnonzero(keep)
    small = tree.restrict(keep)
    assert np.array_equal(small.parent, tree.parent)
    for node in range(tree.n_nodes):
        before = [row for row in tree.rows(node) if keep[row]]
        assert kept[small.rows(node)].tolist() == before


@given(trees(), st.integers(0, 2**32 - 1))
def test_permuting_rows_moves_them_and_nothing_else(tree: Tree, seed: int) -> None:
    perm = np.random.default_rng(seed).permutation(tree.n_rows)
    moved = tree.permuted(perm)
    assert np.array_equal(moved.leaf_of_row, tree.leaf_of_row[perm])
    assert np.array_equal(perm[moved.order], tree.order)


@given(trees())
def test_a_saved_tree_comes_back(tree: Tree) -> None:
    assert Tree.from_arrays(tree.arrays()) == tree
    named = Tree(tree.order, tree.parent, tree.start, tree.stop, ("é",) * tree.n_nodes)
    assert all(array.dtype.kind in "iu" for array in named.arrays().values())
    assert Tree.from_arrays(named.arrays()) == named
    assert named != tree


def test_a_tree_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        three_levels().order[0] = 1


def test_an_empty_node_is_still_in_its_cut() -> None:
    tree = three_levels()
    assert tree.cut(1).tolist() == [1, 2, 3]
    assert tree.leaves.tolist() == [4, 5, 2, 6, 7]
    assert tree.leaf_of_row.tolist() == [5, 5, 6, 4, 7, 7]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"order": [0, 0, 1, 2, 3, 4]}, "permutation"),
        ({"order": [0, 1, 2, 3, 4, 6]}, "permutation"),
        ({"parent": [0, 0, 0, 0, 1, 1, 3, 3]}, "begin with -1"),
        ({"parent": [-1, 0, 0, 0, 3, 3, 1, 1]}, "breadth first"),
        ({"parent": [-1, 0, 0, 3, 3, 3, 4, 4]}, "breadth first"),
        ({"start": [1, 0, 3, 3, 0, 1, 3, 4]}, "root"),
        ({"stop": [6, 3, 2, 6, 1, 3, 4, 6]}, "Node 2 stops before it starts"),
        ({"stop": [6, 3, 3, 6, 1, 3, 4, 5]}, "Children of node 3 must tile"),
        ({"start": [0, 0, 3, 3, 0, 2, 3, 4]}, "Children of node 1 must tile"),
        ({"stop": [6, 3, 3, 6]}, "stop must have 8 entries, got 4"),
    ],
)
def test_what_is_not_a_tree_is_refused(broken: dict[str, list[int]], says: str) -> None:
    with pytest.raises(DataError, match=says):
        Tree.from_arrays(
            three_levels().arrays() | {k: np.array(v) for k, v in broken.items()}
        )


@pytest.mark.parametrize(
    "ask",
    [
        lambda tree: tree.cut(3),
        lambda tree: tree.cut(-1),
        lambda tree: tree.game_level(0),
        lambda tree: tree.codes([1, 2]),
        lambda tree: tree.codes([0, 1]),
        lambda tree: tree.node_sums(np.ones(5)),
        lambda tree: tree.restrict(np.ones(6)),
        lambda tree: tree.permuted(np.zeros(6, dtype=int)),
        lambda tree: Tree.from_arrays({"order": tree.order}),
    ],
)
def test_a_question_that_has_no_answer_is_refused(ask) -> None:
    with pytest.raises(HCDVError):
        ask(three_levels())


def test_shallow_leaves_count_as_coalitions_of_deeper_levels() -> None:
    assert [three_levels().game_level(most) for most in (1, 2, 3, 4, 5)] == [0, 0, 1, 1, 2]


def test_codes_take_a_cut_in_any_order() -> None:
    assert three_levels().codes([3, 1]).tolist() == [1, 1, 0, 1, 0, 0]
    with pytest.raises(ParameterError, match="a cut, holding every row exactly once"):
        three_levels().codes([1, 1, 3])
