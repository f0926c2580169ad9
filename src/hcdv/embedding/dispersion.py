"""Contrastive dispersion from class sums, and everyone's exact share of it.

Notation (paper → code), for unit rows z_i and d(z_i, z_j) = 1 − z_i·z_j:
  P(S) → pairs, the unordered pairs in S whose labels differ · n_c → counts · s_c → sums

No pair is ever formed:  Σ_{P(S)} (1 − z_i·z_j) = |P(S)| − ½(‖Σ_c s_c‖² − Σ_c ‖s_c‖²).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from hcdv.errors import DataError, ParameterError

BLOCK = 1 << 15  # rows in a block: temporaries stay in cache


def class_sums(
    Z: NDArray[np.floating], codes: ArrayLike, n_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count and add up the rows of each class: (C,) and (C, d), in double precision.

    For G groups at once, pass `group * C + code` as codes and G·C as n_classes, and
    reshape the answers to (G, C) and (G, C, d).
    """
    label = _checked(Z, codes, n_classes)
    sums = np.zeros((n_classes, Z.shape[1]))
    for start in range(0, len(Z), BLOCK):
        part = label[start : start + BLOCK]
        member = csr_array(
            (np.ones(part.size), part, np.arange(part.size + 1)),
            shape=(part.size, n_classes),
        )
        sums += member.T @ np.asarray(Z[start : start + BLOCK], dtype=np.float64)
    return np.bincount(label, minlength=n_classes).astype(np.float64), sums


def cross_label_pairs(counts: ArrayLike) -> NDArray[np.float64]:
    """|P(S)| from class counts (..., C): (...)."""
    n = np.asarray(counts, dtype=np.float64)
    return (n.sum(axis=-1) ** 2 - np.square(n).sum(axis=-1)) / 2


def cross_label_dispersion(
    counts: ArrayLike, sums: ArrayLike, *, ratio: bool = True
) -> NDArray[np.float64]:
    """Dispersion of coalitions (...) from class counts (..., C) and sums (..., C, d).

    ratio=True divides by max(1, |P(S)|), Eq. (18). ratio=False is the sum itself; divided
    by the constant |P(D)| it keeps the paper's bound d_max and becomes a pair game.
    """
    s = np.asarray(sums, dtype=np.float64)
    pairs = cross_label_pairs(counts)
    whole = np.square(s.sum(axis=-2)).sum(axis=-1)
    total = pairs - (whole - np.square(s).sum(axis=(-2, -1))) / 2
    return total / np.maximum(1.0, pairs) if ratio else total


def dispersion_shapley(
    Z: NDArray[np.floating], codes: ArrayLike, n_classes: int | None = None
) -> NDArray[np.float64]:
    """Exact value of every row in Δ(S) = Σ_{P(S)} (1 − z_i·z_j) / |P(D)|, in O(n d).

    φ_i = ½ (n − n_{y_i} − z_i·(s − s_{y_i})) / |P(D)|

    departs from paper: the normaliser is |P(D)|, the same for all S. Under Eq. (18) the
    first coalition to enter takes half of the total, whoever it is. A pair's dividend is
    halved by the Shapley, Owen and Winter values alike, so this is all three.
    """
    label = np.asarray(codes)
    n_classes = int(label.max(initial=-1)) + 1 if n_classes is None else n_classes
    label = _checked(Z, label, n_classes)
    return dispersion_of_rows(Z, label, *class_sums(Z, label, n_classes))


def dispersion_of_rows(
    Z: NDArray[np.floating],
    label: NDArray[np.integer],
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Values φ_i of some rows of a set whose class counts (C,) and sums (C, d) are known."""
    pairs = float(cross_label_pairs(counts))
    value = np.zeros(len(Z))
    if pairs == 0:
        return value
    others = sums.sum(axis=0) - sums  # (C, d)
    for start in range(0, len(Z), BLOCK):
        rows = slice(start, start + BLOCK)
        value[rows] = np.einsum("nd,nd->n", Z[rows], others[label[rows]])
    return (counts.sum() - counts[label] - value) / (2 * pairs)


def _checked(
    Z: NDArray[np.floating], codes: ArrayLike, n_classes: int
) -> NDArray[np.int64]:
    """Class codes as integers, one per row of Z and inside the range."""
    label = np.asarray(codes)
    if n_classes < 1 and len(label):
        raise ParameterError("n_classes", n_classes, "at least 1")
    if Z.ndim != 2 or label.shape != Z.shape[:1]:
        raise DataError(
            f"codes must hold one class per row of Z, got shape {label.shape} for Z of "
            f"shape {Z.shape}."
        )
    if label.dtype.kind not in "iu" or (
        label.size and not 0 <= label.min() <= label.max() < n_classes
    ):
        raise DataError(
            f"codes must be integers from 0 to {n_classes - 1}. "
            "Number the classes with numpy.unique(y, return_inverse=True)."
        )
    return label.astype(np.int64, copy=False)
