"""Make tests/fixtures/peers: small questions, and what other people's code answers.

    bash benchmarks/peers/install.sh ENVIRONMENTS pydvl opendataval shap shapiq
    python benchmarks/peers/make_fixtures.py ENVIRONMENTS

A game on K players is a table of 2^K payoffs, coalition S at place sum(2**i for i in S).
A tree is its parent links by breadth-first ids; player i is its i-th leaf by ascending id.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from environments import HERE, run_in, versions_in
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

OUT = HERE.parent.parent / "tests" / "fixtures" / "peers"
NEIGHBOURS = (1, 5, 10)
N_GROUPS = 6
TREES = {
    "pairs_8": [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6],  # binary, all leaves level
    "ladder_7": [-1, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10],  # binary, one leaf a level
    "groups_8": [-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3],  # three unions of 3, 3 and 2
    "mixed_7": [-1, 0, 0, 0, 2, 2, 2, 3, 3, 6, 6],  # leaves on three levels
}


def digits_without_ties(rng):
    """Draw 120 digits and 40 to check with; noise sets equal distances well apart.

    OpenDataVal measures distances in single precision, so a gap it cannot see would let
    it order two rows as it likes.
    """
    X, y = load_digits(return_X_y=True)
    rows = rng.permutation(len(X))[:160]
    X = (X[rows] / 16 + rng.normal(0, 0.02, (160, X.shape[1]))).round(4)
    distance = np.sort(cdist(X[120:], X[:120]), axis=1)
    if np.diff(distance).min() < 1e-6:
        raise SystemExit("Two distances are almost equal. Draw with another seed.")
    # A third of each row's distances lie within the mean of the 40th and 41st nearest.
    radius = distance[:, 39:41].mean()
    return {
        "X": X[:120],
        "y": y[rows][:120],
        "X_val": X[120:],
        "y_val": y[rows][120:],
        "radius": radius,
        "ks": np.array(NEIGHBOURS),
        "groups": rng.permutation(np.arange(120) % N_GROUPS),
    }


def concave_with_dummy(rng):
    """Pay seven players the root of their summed weights; an eighth adds nothing."""
    weight = np.append(rng.uniform(0.2, 1, 7), 0.0)
    weight[1] = weight[0]  # equals
    members = (np.arange(256)[:, None] >> np.arange(8)) & 1
    return 0.1 + np.sqrt(members @ weight)


def games(rng):
    return {
        "table_any_6": rng.uniform(-1, 1, 64),
        "table_any_8": rng.uniform(-1, 1, 256),
        "table_concave_8": concave_with_dummy(rng),
    }


def trees(rng):
    found = {}
    for name, links in TREES.items():
        parent = np.array(links)
        n_players = parent.size - np.unique(parent[1:]).size
        found[f"parent_{name}"] = parent
        found[f"table_{name}"] = rng.uniform(-1, 1, 1 << n_players)
    return found


def answers(environments, folder, peer, script, asked, *words):
    """Ask one peer; returns its answers by name."""
    question, answer = folder / "question.npz", folder / "answer.npz"
    np.savez(question, **asked)
    run_in(environments, peer, script, question, answer, *words)
    with np.load(answer) as stored:
        return dict(stored)


def opendataval_neighbours(environments, folder, asked):
    named = {"X": "X_train", "y": "y_train", "X_val": "X_val", "y_val": "y_val"}
    table = {new: asked[old] for old, new in named.items()}
    script = "run_opendataval.py"
    return {
        f"opendataval_k{k}": answers(
            environments, folder, "opendataval", script, table, "--k", k
        )["values"]
        for k in NEIGHBOURS
    }


def save(name, arrays, environments, *peers):
    meta = {
        "made_by": "python benchmarks/peers/make_fixtures.py ENVIRONMENTS",
        "versions": {peer: versions_in(environments, peer) for peer in peers},
    }
    OUT.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT / f"{name}.npz", meta=json.dumps(meta), **arrays)
    print(f"{name}.npz: {(OUT / f'{name}.npz').stat().st_size / 1024:.0f} KiB")


def main():
    environments = sys.argv[1]
    rng = np.random.default_rng(20)
    rows, played, nested = digits_without_ties(rng), games(rng), trees(rng)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pydvl = answers(environments, folder, "pydvl", "oracle_pydvl.py", rows | played)
        played["table_retrained"] = pydvl.pop("table_retrained")
        shapiq = answers(environments, folder, "shapiq", "oracle_shapiq.py", rows | played)
        shap = answers(environments, folder, "shap", "oracle_shap.py", nested)
        opendataval = opendataval_neighbours(environments, folder, rows)
    found = pydvl | shapiq | opendataval
    near = {key: found.pop(key) for key in list(found) if "_k" in key or "threshold" in key}
    save("neighbours", rows | near, environments, "pydvl", "opendataval", "shapiq")
    save("games", played | found, environments, "pydvl", "shapiq")
    save("trees", nested | shap, environments, "shap")


if __name__ == "__main__":
    main()
