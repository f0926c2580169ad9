"""Texts as vectors of their words: hashed, weighed by how rare they are, and summed by sign.

Words fall into 2¹⁴ rooms by a fixed hash. A text's vector is Σ over its words of
(1 + log count)·log((1 + n)/(1 + n_with))·(±1 in one of `N_WORDS` columns), scaled to length
WEIGHT: the usual tf-idf, turned by a random sparse map that keeps its angles, on average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

if TYPE_CHECKING:
    import pandas as pd

N_ROOMS = 2**14
N_WORDS = 256
WEIGHT = 3.0  # paper silent: a text weighs as much as nine standardised numbers
LEAST_WORDS = 3  # on average: names and codes have fewer
MOSTLY_DISTINCT = 0.5  # of the cells: categories repeat


def are_texts(levels: list[str], n_known: int) -> bool:
    """Whether the distinct cells of a column read like sentences and not like categories."""
    if len(levels) < MOSTLY_DISTINCT * n_known:
        return False
    some = levels[:: max(1, len(levels) // 1000)]
    return float(np.mean([len(text.split()) for text in some])) >= LEAST_WORDS


def word_counts(column: pd.Series) -> csr_array:
    """How often words of each room stand in each text, (n, N_ROOMS); none in a missing cell."""
    from sklearn.feature_extraction.text import HashingVectorizer

    texts = column.where(column.notna(), "").astype(str)
    counter = HashingVectorizer(n_features=N_ROOMS, alternate_sign=False, norm=None)
    return csr_array(counter.transform(texts))


def word_vectors(
    counts: csr_array, rooms: NDArray[np.intp], n_with: NDArray[np.float64], n_texts: int,
    width: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Vectors (n, width) of texts with such counts; words never seen in training weigh most."""
    rarity = np.full(N_ROOMS, np.log(1.0 + n_texts))
    rarity[rooms] = np.log((1.0 + n_texts) / (1.0 + n_with))
    weighed = counts.astype(np.float64)
    weighed.data = 1.0 + np.log(weighed.data)
    found = np.asarray((weighed @ _signed(rarity, width)).toarray())
    length = np.sqrt(np.einsum("nd,nd->n", found, found))
    return found * (WEIGHT / np.where(length > 0, length, 1.0))[:, None]


def _signed(rarity: NDArray[np.float64], width: int) -> csr_array:
    """Each room's column and sign, times its rarity, (N_ROOMS, width)."""
    rng = np.random.default_rng(0)  # a fixed map: the same for every table
    column, sign = rng.integers(width, size=N_ROOMS), rng.choice([-1.0, 1.0], N_ROOMS)
    at = np.arange(N_ROOMS)
    return csr_array((rarity * sign, (at, column)), shape=(N_ROOMS, width))
