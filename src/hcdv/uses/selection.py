"""Which rows to keep: the best of all, the best of every leaf, or those that help together."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError, ParameterError
from hcdv.valuation.forward import forward_selection

if TYPE_CHECKING:
    from hcdv.result import Run

HOW = ("top", "quota", "greedy")


def select(run: Run, fraction: float, how: str = "top") -> NDArray[np.intp]:
    """Row indices in ascending order, exactly round(fraction · n) of them."""
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
    n_kept = round(float(fraction) * run.n_rows)
    if n_kept == 0:
        raise DataError(
            f"fraction must keep at least one row, got {fraction} of {run.n_rows}. Raise it to "
            f"{1 / run.n_rows:.3g} or more."
        )
    values = run.valuation.values
    if how == "top":
        kept = best(values, n_kept)
    elif how == "quota":
        kept = best_of_each(values, run.canonical_tree.leaf_of_row, n_kept)
    else:
        kept = forward_selection(run.case, run.plan, run.valuation, n_kept)
    return np.sort(run.position[kept])


def best(values: NDArray[np.floating], n_kept: int) -> NDArray[np.intp]:
    """The rows of highest value; ties by row."""
    return np.argsort(-values, kind="stable")[:n_kept]


def best_of_each(
    values: NDArray[np.floating], group: NDArray[np.integer], n_kept: int
) -> NDArray[np.intp]:
    """The same share of every group, best first; remainders go to the largest fractions."""
    order = np.lexsort((-values, group))
    _, first, size = np.unique(group[order], return_index=True, return_counts=True)
    share = size * (n_kept / len(values))
    quota = np.floor(share).astype(np.intp)
    spare = n_kept - quota.sum()
    quota[np.argsort(-(share - quota), kind="stable")[:spare]] += 1
    rank = np.arange(len(values)) - np.repeat(first, size)
    return order[rank < np.repeat(quota, size)]
