"""How well values tell wrong labels from right ones, as OpenDataVal scores it and by rank.

OpenDataVal's `noisy_detection` splits the values into two clusters, the exact 2-means of
numbers on a line, calls the lower one wrong, and takes the F1 of that call. It asks for a
gap where the noise is, so it depends on the shape of the values as well as on their order.
The AUROC depends on the order alone; within classes, on the order among rows that were
given one label, so that finding the class with the most noise counts for nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, roc_auc_score

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def lower_cluster(values: Floats) -> Flags:
    """The lower of the two clusters that are least spread in themselves.

    The split of the sorted values that maximises s₁²/n₁ + s₂²/n₂, s the sums of the values
    less their mean; the first of equals. Neither cluster is empty.
    """
    order = np.argsort(values, kind="stable")
    size = np.arange(1, len(values))
    below = np.cumsum(values[order] - np.mean(values))[:-1]  # those above sum to −below
    split = int(np.argmax(below**2 * (1 / size + 1 / size[::-1]))) + 1
    low = np.zeros(len(values), dtype=bool)
    low[order[:split]] = True
    return low


def cluster_f1(values: Floats, wrong: Flags) -> float:
    """F1 of the lower cluster as a finding of the wrong labels."""
    return float(f1_score(wrong, lower_cluster(values), zero_division=0.0))


def auroc(values: Floats, wrong: Flags) -> float:
    """Chance that a wrong label has the lower value of a wrong and a right one."""
    return float(roc_auc_score(wrong, -values))


def auroc_within(values: Floats, wrong: Flags, given: NDArray[np.intp]) -> float:
    """Mean AUROC among the rows of each given label that holds right and wrong ones."""
    of_class = [given == c for c in np.unique(given)]
    both = [rows for rows in of_class if 0 < wrong[rows].sum() < rows.sum()]
    return float(np.mean([auroc(values[rows], wrong[rows]) for rows in both]))


def found_by_share(values: Floats, wrong: Flags, shares: Floats) -> Floats:
    """Share of the wrong labels among each share of the rows, the lowest values first."""
    caught = np.r_[0, np.cumsum(wrong[np.argsort(values, kind="stable")])]
    return caught[np.round(shares * len(values)).astype(int)] / wrong.sum()
