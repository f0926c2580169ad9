"""Which rows to keep: a fair share of every coalition, the best of all, or a greedy set.

The best of all do not make the best training set: values say what a row adds to the others,
and the rows that add most are of few kinds. So `quota`, the default, keeps the same share of
every label and coalition, without the rows whose labels are more likely wrong than right,
and spreads it over the coalition's values instead of skimming them (docs/evidence.md).
departs from paper: its protocol is the global top, `how="top"`.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError, ParameterError
from hcdv.uses.suspects import LIKELY
from hcdv.valuation.forward import forward_selection

if TYPE_CHECKING:
    from hcdv.result import Run

HOW = ("quota", "top", "greedy")


def select(run: Run, fraction: float, how: str = "quota") -> NDArray[np.intp]:
    """Row indices in ascending order, exactly round(fraction · n) of them."""
    n_kept = number_kept(fraction, how, run.n_rows)
    values = run.valuation.values
    if how == "top":
        kept = best(values, n_kept)
    elif how == "quota":
        kept = fair_share(run, n_kept)
    else:
        kept = forward_selection(run.case, run.plan, run.valuation, n_kept)
    return np.sort(run.position[kept])


def number_kept(fraction: float, how: str, n_rows: int) -> int:
    """How many rows a fraction keeps, once it and the way are known to make sense."""
    if not isinstance(fraction, int | float | np.number) or not 0 < fraction <= 1:
        raise ParameterError(
            "fraction", fraction, "above 0 and at most 1", "0.3 keeps 30 % of the rows."
        )
    if how not in HOW:
        close = difflib.get_close_matches(str(how), HOW, 1)
        raise ParameterError(
            "how", how, "one of " + ", ".join(f'"{name}"' for name in HOW),
            f'Did you mean "{close[0]}"?' if close else "",
        )  # fmt: skip
    n_kept = round(float(fraction) * n_rows)
    if n_kept == 0:
        raise DataError(
            f"fraction must keep at least one row, got {fraction} of {n_rows}. Raise it to "
            f"{1 / n_rows:.3g} or more."
        )
    return n_kept


def best(values: NDArray[np.floating], n_kept: int) -> NDArray[np.intp]:
    """The rows of highest value; ties by row."""
    return np.argsort(-values, kind="stable")[:n_kept]


def fair_share(run: Run, n_kept: int) -> NDArray[np.intp]:
    """The same share of every label and leaf: every so many-th row in their order.

    Rows stand by label, then leaf, in the order of the tree, then value, so that labels,
    branches, leaves and stretches of value all get their share to within a row.
    """
    points = run.case.points
    label = points.target if points.n_classes else np.zeros(len(points), dtype=np.intp)
    leaf = run.canonical_tree.leaf_of_row
    return shared_out(
        run.valuation.values, run.valuation.doubts.chance, label, leaf, n_kept
    )


def shared_out(
    values: NDArray[np.floating], chance: NDArray[np.floating], label: NDArray[np.integer],
    leaf: NDArray[np.integer], n_kept: int,
) -> NDArray[np.intp]:  # fmt: skip
    """`fair_share` of rows by their columns."""
    trusted = np.flatnonzero(chance <= LIKELY)
    if n_kept >= len(trusted):
        doubted = np.flatnonzero(chance > LIKELY)
        spare = doubted[np.argsort(chance[doubted], kind="stable")]
        return np.concatenate([trusted, spare[: n_kept - len(trusted)]])
    order = np.lexsort((-values[trusted], leaf[trusted], label[trusted]))
    return trusted[order[evenly(n_kept, len(trusted))]]


def evenly(n_kept: int, n: int) -> NDArray[np.intp]:
    """n_kept of the places 0, …, n − 1, as far from each other as can be."""
    return ((np.arange(n_kept) + 0.5) * n / n_kept).astype(np.intp)
