"""Who judges the models: a validation set as given, or folds of the training rows in turn.

Without a validation set, v̄(S) = mean_k v_k(S ∖ F_k): fold k judges models taught with the
other folds. Groups are never split across folds; with time order, models are taught with
earlier blocks only, and the first block judges nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError
from hcdv.valuation.contexts import hashed_uniform

N_FOLDS = 4  # two of the eight orders of contexts for each
_FOLDS = 1 << 21  # stream of the hash behind them


@dataclass(frozen=True)
class Folds:
    """The fold of every row, and which folds teach the models that a fold judges."""

    fold: NDArray[np.intp]  # (n,)
    judging: NDArray[np.intp]  # (K,)  the fold behind each judge
    eligible: NDArray[np.bool_]  # (K, n_folds)

    @property
    def asking(self) -> NDArray[np.bool_]:
        """Row k: the folds whose models are asked about labels of fold k: those it judges.

        Where it judges nobody, its own, each row left out in turn.
        """
        asking = np.eye(self.eligible.shape[1], dtype=bool)
        asking[self.judging] = self.eligible
        return asking


def random_folds(
    key: NDArray[np.uint64], codes: NDArray[Any] | None, seed: int, n_folds: int = N_FOLDS
) -> Folds:
    """Folds by hash of the row's key, evenly within every class."""
    n_folds = min(n_folds, len(key))
    u = hashed_uniform(key, seed, _FOLDS)
    code = np.zeros(len(key), dtype=np.intp) if codes is None else codes
    by_class = np.lexsort((u, code))
    fold = np.empty(len(key), dtype=np.intp)
    fold[by_class] = np.arange(len(key)) % n_folds
    return _each_against_others(fold, n_folds)


def hashed_folds(
    key: NDArray[np.uint64], seed: int, n_folds: int = N_FOLDS
) -> NDArray[np.intp]:
    """Fold of each row by the hash of its key alone, for rows that are not all at hand."""
    return (hashed_uniform(key, seed, _FOLDS) * n_folds).astype(np.intp)


def each_against_others(n_folds: int = N_FOLDS) -> NDArray[np.bool_]:
    """Which folds teach the models that each fold judges, (K, K): all but itself."""
    return ~np.eye(n_folds, dtype=bool)


def group_folds(groups: NDArray[Any], seed: int, n_folds: int = N_FOLDS) -> Folds:
    """Folds of whole groups, in hashed order, cut where the rows are evenly shared."""
    names, code, size = np.unique(groups, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise DataError(
            f"groups must hold at least 2 groups to hold some out, got one: {names[0].item()!r}. "
            "Pass a validation set, or leave groups out."
        )
    n_folds = min(n_folds, len(names))
    u = hashed_uniform(np.arange(len(names), dtype=np.uint64), seed, _FOLDS)
    order = np.argsort(u)
    before = np.cumsum(size[order]) - size[order] / 2
    place = np.floor(before / size.sum() * n_folds).astype(np.intp)
    place = np.unique(place, return_inverse=True)[1]  # a huge group may leave folds empty
    if place.max() == 0:
        place[-1] = 1
    of_group = np.empty(len(names), dtype=np.intp)
    of_group[order] = place
    return _each_against_others(of_group[code], int(place.max()) + 1)


def time_folds(time: NDArray[Any], n_folds: int = N_FOLDS) -> Folds:
    """Blocks in time order, equal times together; block k judges models of the blocks before."""
    _, rank, size = np.unique(time, return_inverse=True, return_counts=True)
    if len(size) < 2:
        raise DataError(
            "time must hold at least 2 different moments, got one. Pass a validation set, or "
            "leave time out."
        )
    before = np.cumsum(size) - size
    block = np.floor(before / len(time) * (n_folds + 1)).astype(np.intp)
    block = np.unique(block, return_inverse=True)[1]
    if block.max() == 0:
        block[-1] = 1
    fold = block[rank]
    n_blocks = int(fold.max()) + 1
    judging = np.arange(1, n_blocks)
    return Folds(fold, judging, np.arange(n_blocks)[None, :] < judging[:, None])


def _each_against_others(fold: NDArray[np.intp], n_folds: int) -> Folds:
    return Folds(fold, np.arange(n_folds), each_against_others(n_folds))
