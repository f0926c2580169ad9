"""Texts by their words: which words a coalition's texts hold more often than others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import rel_entr

from hcdv.uses.legible import LEAST_EVIDENCE

Ints = NDArray[np.intp]

_SOME = 20_000  # texts that are read
_MOST_WORDS = 2_000
_LEAST_INSIDE = 0.1  # few words are in half of the texts of any group
_LEAST_LIFT = 2.0
_PROSE_WORDS, _PROSE_DISTINCT = 4.0, 0.5
_AT_ONCE = 2**9  # nodes


@dataclass(frozen=True)
class Wordings:
    """Which of the commoner words are in which texts, of some of the rows."""

    column: str
    rows: Ints  # (s,)
    held: csr_array  # (s, V)  0 or 1
    word: NDArray[Any]  # (V,)

    def best(
        self, leaf: Ints, first: Ints, last: Ints, n_leaves: int, most: int
    ) -> Iterator[tuple[int, str, float, float, float]]:
        """For every node, leaves first … last − 1: its words, with shares and gain."""
        n = len(self.rows)
        ones = np.ones(n)
        by_leaf = csr_array((ones, (leaf[self.rows], np.arange(n))), (n_leaves, n))
        counts = csr_array(by_leaf @ self.held)
        read = np.append(0, np.cumsum(np.bincount(leaf[self.rows], minlength=n_leaves)))
        overall = np.asarray(self.held.sum(axis=0)).ravel() / n
        for start in range(0, len(first), _AT_ONCE):
            low, high = first[start : start + _AT_ONCE], last[start : start + _AT_ONCE]
            size = (read[high] - read[low]).astype(np.float64)
            inside = _summed(counts, low, high) / np.maximum(size, 1.0)[:, None]
            gain = rel_entr(inside, overall) + rel_entr(1 - inside, 1 - overall)
            told = (inside >= _LEAST_INSIDE) & (inside >= _LEAST_LIFT * overall)
            gain = np.where(
                told & (gain >= LEAST_EVIDENCE / np.maximum(size, 1)[:, None]),
                gain,
                -np.inf,
            )
            for at, word in enumerate(np.argsort(-gain, axis=1, kind="stable")[:, :most]):
                for w in word[gain[at, word] > 0]:
                    shares = float(inside[at, w]), float(overall[w])
                    yield start + at, str(self.word[w]), *shares, float(gain[at, w])


def is_prose(codes: Ints, names: list[str]) -> bool:
    """Whether the levels of a column are sentences rather than names."""
    known = int((codes >= 0).sum())
    if known == 0 or len(names) < _PROSE_DISTINCT * known:
        return False
    some = names[:: max(1, len(names) // 1000)]
    return float(np.mean([text.count(" ") + 1 for text in some])) >= _PROSE_WORDS


def wordings(name: str, codes: Ints, names: list[str]) -> Wordings | None:
    """A text column read; None where no word comes twice."""
    from sklearn.feature_extraction.text import CountVectorizer

    known = np.flatnonzero(codes >= 0)
    rows = known[:: max(1, -(-len(known) // _SOME))]
    reader = CountVectorizer(
        binary=True, stop_words="english", min_df=2, max_features=_MOST_WORDS
    )
    try:
        held = reader.fit_transform([names[code] for code in codes[rows]])
    except ValueError:  # no word comes twice
        return None
    return Wordings(name, rows, csr_array(held), reader.get_feature_names_out())


def _summed(counts: csr_array, low: Ints, high: Ints) -> NDArray[np.float64]:
    """Sums of the rows low … high − 1, one line a node, dense."""
    n = high - low
    inner = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
    column = np.repeat(low, n) + inner
    row = np.repeat(np.arange(len(n)), n)
    picks = csr_array((np.ones(len(row)), (row, column)), (len(n), counts.shape[0]))
    return np.asarray((picks @ counts).toarray(), dtype=np.float64)
