"""Draw the three stages on scikit-learn's digits, for `docs/how-it-works.md`.

python docs/_ext/stages.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from hcdv import HCDV

OUT = Path(__file__).resolve().parent.parent / "stages.png"
SHARE_WRONG = 0.1


def flipped(y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels of which a tenth is wrong, and which those are."""
    is_wrong = rng.random(len(y)) < SHARE_WRONG
    return np.where(is_wrong, (y + rng.integers(1, 10, len(y))) % 10, y), is_wrong


def plane(Z: np.ndarray) -> np.ndarray:
    """The two directions in which the rows differ most."""
    centred = Z - Z.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T


def drawn() -> Figure:
    """Vectors, coalitions and values of the same rows, side by side."""
    X, truth = load_digits(return_X_y=True)
    y, is_wrong = flipped(truth, np.random.default_rng(0))
    v = HCDV(random_state=0).fit(X, y)
    at = plane(v.embedding_)
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    one, two, three = figure.subplots(1, 3)
    one.scatter(*at.T, c=y, cmap="tab10", s=7, lw=0)
    one.set_title(
        "I   rows become vectors\n(colour: the label given, a tenth of them wrong)"
    )
    group = v.tree_.codes(v.tree_.cut(1))
    two.scatter(*at.T, c=group, cmap="Set2", s=7, lw=0)
    for node in v.tree_.cut(1):
        rows = v.tree_.rows(int(node))
        worth = v.coalitions_["value"][node]
        two.annotate(
            f"{worth:.3f}", at[rows].mean(axis=0), ha="center", va="center", fontsize=9,
            bbox={"boxstyle": "round", "fc": "white", "ec": "0.6", "alpha": 0.85},
        )  # fmt: skip
    two.set_title(
        f"II   vectors become coalitions\n(first level, {v.coalitions_['value'][0]:.3f} in all)"
    )
    limit = np.quantile(np.abs(v.values_), 0.98)
    order = np.argsort(-v.values_)
    shown = three.scatter(
        *at[order].T, c=v.values_[order], cmap="RdBu", vmin=-limit, vmax=limit, s=9, lw=0
    )
    three.scatter(
        *at[is_wrong].T, s=26, facecolors="none", edgecolors="0.25", lw=0.5,
        label="label is wrong",
    )  # fmt: skip
    three.legend(loc="lower left", fontsize=8, framealpha=0.9)
    figure.colorbar(shown, ax=three, label="value", shrink=0.85)
    three.set_title("III   coalitions share their worth among rows\n(red: below zero)")
    for axis in (one, two, three):
        axis.set_xticks([])
        axis.set_yticks([])
    return figure


if __name__ == "__main__":
    drawn().savefig(OUT, dpi=110)
    print(OUT)
