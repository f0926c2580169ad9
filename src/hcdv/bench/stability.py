"""How far values move when only the sampling is drawn anew (Eq. cv_def).

CV_i = Std_r(φ_i) / (|Mean_r(φ_i)| + ε) over R valuations, averaged over the rows. The
standard deviation divides by R − 1. With the tree fixed, embedding and tree are those of
one seed and Stage III is run with R seeds; redrawn, all of it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.bench.methods import Problem, fitted, random_values
from hcdv.engines.local import one_thread_each
from hcdv.estimator import HCDV
from hcdv.hierarchy.tree import Tree
from hcdv.valuation.methods import value

Floats = NDArray[np.float64]

EPSILON = 1e-12
N_RUNS = 5  # R
TREES = ("fixed", "redrawn")
METHODS = ("hcdv", "hcdv κ=0", "mcds", "group shapley", "random")
_GROUPS = 32


def coefficient_of_variation(values: Floats, epsilon: float = EPSILON) -> float:
    """Mean over rows of CV_i; values (R, n)."""
    spread = values.std(axis=0, ddof=1)
    return float((spread / (np.abs(values.mean(axis=0)) + epsilon)).mean())


def repeated(method: str, problem: Problem, tree: str, n_runs: int = N_RUNS) -> Floats:
    """Values of R runs that differ in the seed of sampling, and of the tree if redrawn."""
    seeds = [1000 * problem.seed + run for run in range(n_runs)]
    if method == "random":
        return np.stack([random_values(replace(problem, seed=seed)) for seed in seeds])
    settings = _settings(method, len(problem.y))
    share = _alike if method == "group shapley" else _own
    if tree == "redrawn":
        runs = (fitted(replace(problem, seed=seed), **settings)[0] for seed in seeds)
        return np.stack([share(one.tree_, one.values_) for one in runs])
    first = fitted(problem, **settings)[0]
    return np.stack([share(first.tree_, _sampled_anew(first, seed)) for seed in seeds])


def _settings(method: str, n: int) -> dict[str, Any]:
    alone = {"dispersion_weight": 0.0, "consistency_weight": 0.0}
    return {
        "hcdv": {},
        "hcdv κ=0": {"consistency_weight": 0.0},
        "mcds": {"branching": "flat", **alone},
        "group shapley": {
            "branching": (_GROUPS,), "leaf_size": int(np.ceil(1.2 * n / _GROUPS)), **alone
        },
    }[method]  # fmt: skip


def _sampled_anew(model: HCDV, seed: int) -> Floats:
    """Stage III once more, on the same rows, vectors and tree."""
    run = model.run_
    with one_thread_each():
        found = value(run.case, run.canonical_tree, replace(run.plan, seed=seed))
    return run.users(found.values)


def _own(tree: Tree, values: Floats) -> Floats:  # noqa: ARG001, as _alike
    return values


def _alike(tree: Tree, values: Floats) -> Floats:
    """The rows of a leaf share its value alike."""
    leaves = tree.leaves
    share = tree.node_sums(values)[leaves] / np.maximum(tree.size[leaves], 1)
    return np.asarray(share[tree.codes(leaves)], dtype=np.float64)
