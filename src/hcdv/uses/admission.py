"""Which candidates to take in: a share for every class, spread over what is there, with reasons.

Set aside are copies, labels more likely wrong than right, and rows surely worth less than
nothing. The others compete within their class, whose quota is its share of the originals:
they stand by leaf, are cut into as many stretches as there are places, and the best of each
stretch is kept. So the best of a class is always in, and the others do not crowd where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.uses.suspects import LIKELY

if TYPE_CHECKING:
    import pandas as pd

Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

SURELY = 2.0  # standard errors below zero


@dataclass(frozen=True)
class Admission:
    """Who is kept, (m,), in which order all stand, and why, in words."""

    keep: Bools
    rank: Ints  # 1 is the first; the kept, those with no place left, those set aside
    reason: NDArray[Any]


def admitted(
    frame: pd.DataFrame, code: Ints, share: NDArray[np.floating], k: int
) -> Admission:
    """Keep at most k of scored candidates.

    frame: of `scoring.py`. code: the class of each. share: of every class in the originals.
    """
    value = frame["value"].to_numpy()
    aside = set_aside(frame)
    free = aside == ""
    keep = np.zeros(len(frame), dtype=bool)
    quota = quotas(np.bincount(code[free], minlength=len(share)), share, k)
    for each, n_kept in enumerate(quota.tolist()):
        rows = np.flatnonzero(free & (code == each))
        keep[_spread(rows, value, frame["leaf"].to_numpy(), n_kept)] = True
    group = np.where(keep, 0, np.where(free, 1, 2))
    order = np.lexsort((-value, group))
    rank = np.empty(len(frame), dtype=np.intp)
    rank[order] = np.arange(1, len(frame) + 1)
    return Admission(keep, rank, _reasons(frame, code, keep, aside))


def set_aside(frame: pd.DataFrame) -> NDArray[Any]:
    """Why a candidate is not to be taken at all; "" where nothing speaks against it."""
    why = np.full(len(frame), "", dtype=object)
    value, error = frame["value"].to_numpy(), frame["stderr"].to_numpy()
    below = value + SURELY * error < 0
    why[below] = [f"worth less than nothing: {each:+.2g}" for each in value[below]]
    if "wrong" in frame:
        doubted = (frame["wrong"] > LIKELY).to_numpy(copy=True)
        doubted &= (frame["suggested"] != frame["label"]).to_numpy()
        why[doubted] = [
            f"label probably wrong: {chance:.2f}, rather {other}"
            for chance, other in zip(
                frame["wrong"][doubted], frame["suggested"][doubted], strict=True
            )
        ]
    copied = frame["is_duplicate"].to_numpy()
    why[copied] = [f"a copy of {other}" for other in frame["copy_of"][copied]]
    return why


def quotas(there: Ints, share: NDArray[np.floating], k: int) -> Ints:
    """How many of every class to keep: by share, what one lacks going to the others.

    A class that is there gets one at least, as long as k allows.
    """
    quota = np.zeros(len(there), dtype=np.intp)
    left = min(k, int(there.sum()))
    common = np.argsort(-share, kind="stable")
    first = [each for each in common if there[each]][:left]
    quota[first] = 1
    while (short := left - int(quota.sum())) > 0:
        room = there - quota
        weight = np.where(room > 0, np.maximum(share, 1e-9), 0.0)
        wanted = left * weight / weight.sum() - quota
        if short < len(there) or not (wanted >= 1).any():
            quota[np.argmax(np.where(room > 0, wanted, -np.inf))] += 1
            continue
        more = np.clip(np.floor(wanted).astype(np.intp), 0, room)
        quota += np.floor(more * min(1.0, short / more.sum())).astype(np.intp)
    return quota


def _spread(
    rows: Ints, value: NDArray[np.floating], leaf: NDArray[np.integer], n_kept: int
) -> Ints:
    """The best of n_kept stretches of the rows, as they stand by leaf and value."""
    if not n_kept:
        return rows[:0]
    order = rows[np.lexsort((-value[rows], leaf[rows]))]
    return np.array([some[value[some].argmax()] for some in np.array_split(order, n_kept)])


def _reasons(
    frame: pd.DataFrame, code: Ints, keep: Bools, aside: NDArray[Any]
) -> NDArray[Any]:
    """A few words for each."""
    reason = aside.copy()
    value, novel = frame["value"].to_numpy(), frame["novelty"].to_numpy()
    name = frame["label" if "label" in frame else "suggested"].to_numpy()
    is_class = name.dtype.kind != "f"
    for each in np.unique(code):
        rows = np.flatnonzero((code == each) & (aside == ""))
        rows = rows[np.argsort(-value[rows], kind="stable")]
        of = f" of class {name[rows[0]]}" if is_class and len(rows) else ""
        n_kept = int(keep[rows].sum())
        for place, row in enumerate(rows.tolist(), 1):
            stands = f"place {place:,} by value among {len(rows):,}{of}"
            reason[row] = (
                f"{stands}, further off than {novel[row]:.0%} of the originals"
                if keep[row]
                else f"{stands}, of which {n_kept:,} are kept"
            )
    return reason
