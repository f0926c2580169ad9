"""Answer the questions of make_fixtures.py with shap: values of games played on trees.

PartitionExplainer, left to run to the end and with fixed_context=None, meets both orders
of every pair of siblings with weight 1/2 each: the Winter value of a binary tree.
CoalitionExplainer draws the siblings at each level by Shapley's weights: the Winter value
of any tree. Both get the game as a model of 0/1 features on a background of zeros, so
that hiding a feature is leaving the player out.
"""

from __future__ import annotations

import sys

import numpy as np
import shap


class Players(shap.maskers.Masker):
    """Masks of players are themselves the rows of the model."""

    fixed_background = True

    def __init__(self, n_players, clustering):
        self.shape = (1, n_players)
        self.clustering = clustering
        self.feature_names = [f"player {i}" for i in range(n_players)]

    def __call__(self, mask, row):
        return (np.where(mask, row, 0)[None, :],)


def paid_by(table):
    """Return the game as a model: rows (m, K) of zeros and ones to m payoffs."""
    places = 1 << np.arange(table.size.bit_length() - 1)
    return lambda rows: table[np.asarray(rows, dtype=int) @ places]


def leaves_of(parent):
    return np.setdiff1d(np.arange(parent.size), parent[1:])


def linkage(parent):
    """Write a binary tree as SciPy's linkage matrix: players first, then unions upwards."""
    leaves = leaves_of(parent)
    name = {int(node): place for place, node in enumerate(leaves)}
    size = dict.fromkeys(name.values(), 1)
    rows = []
    for node in np.unique(parent[1:])[::-1]:
        left, right = (name[int(child)] for child in 1 + np.flatnonzero(parent[1:] == node))
        name[int(node)] = len(leaves) + len(rows)
        size[name[int(node)]] = size[left] + size[right]
        rows.append([left, right, len(rows) + 1, size[name[int(node)]]])
    return np.array(rows, dtype=float)


def groups(parent, node, names):
    """Write a node's children the way CoalitionExplainer reads them."""
    children = 1 + np.flatnonzero(parent[1:] == node)
    return [
        names[int(child)]
        if int(child) in names
        else {f"node {child}": groups(parent, child, names)}
        for child in children
    ]


def values_of_tree(name, parent, table):
    n_players = table.size.bit_length() - 1
    model, everyone = paid_by(table), np.ones((1, n_players))
    is_binary = bool(np.all(np.bincount(parent[1:])[np.unique(parent[1:])] == 2))
    # CoalitionExplainer reads no clustering, but wants the masker to have one.
    clustering = linkage(parent) if is_binary else linkage(ladder(n_players))
    masker = Players(n_players, clustering)
    names = dict(zip(leaves_of(parent).tolist(), masker.feature_names, strict=True))
    tree = {"root": groups(parent, 0, names)}
    explainers = {"coalition": shap.CoalitionExplainer(model, masker, partition_tree=tree)}
    if is_binary:
        explainers["partition"] = shap.PartitionExplainer(model, masker)
    return {
        f"shap_{kind}_{name}": explainer(everyone, max_evals=100_000, silent=True).values[0]
        for kind, explainer in explainers.items()
    }


def ladder(n_players):
    """Split off one player at a time: parent links of that binary tree, breadth-first."""
    return np.concatenate([[-1], np.repeat(2 * np.arange(n_players - 1), 2)])


def main():
    questions, answers = sys.argv[1:]
    with np.load(questions) as stored:
        asked = dict(stored)
    found = {}
    for key, parent in asked.items():
        if key.startswith("parent_"):
            name = key.removeprefix("parent_")
            found |= values_of_tree(name, parent, asked[f"table_{name}"])
    np.savez(answers, **found)


if __name__ == "__main__":
    main()
