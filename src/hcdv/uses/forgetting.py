"""What is left when rows are withdrawn: their case, and who still judges whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError
from hcdv.targets import Target
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case, Judge, Originals, Points
from hcdv.valuation.utility import Payoffs


def refuse_too_few(target: Target, keep: NDArray[np.bool_]) -> None:
    """Two classes must stay, or two numbers."""
    if target.classes is not None:
        left = np.unique(target.labels[keep])
        if len(left) < 2:
            raise DataError(
                f"rows must leave at least 2 classes, got all but {len(left)} withdrawn. "
                "A set of one class has no value to share."
            )
    elif keep.sum() < 2:
        raise DataError(
            f"rows must leave at least 2 rows, got all but {int(keep.sum())} withdrawn. "
            "A set of one row has nobody to share with."
        )


@dataclass(frozen=True)
class RowsLeft:
    """Your payoff, asked about rows by the numbers they had in the data it was made for."""

    function: Callable[[Any], float]
    rows: NDArray[np.intp]

    def __call__(self, rows: NDArray[np.intp]) -> float:
        """The payoff of rows numbered as they are now."""
        return self.function(self.rows[rows])


def renumbered(plan: Plan, left: NDArray[np.intp]) -> Plan:
    """The plan once only some rows are left; a payoff of yours still gets the first numbers."""
    if not isinstance(plan.utility, Payoffs):
        return plan
    utility = replace(plan.utility, function=RowsLeft(plan.utility.function, left))
    return replace(plan, utility=utility)


def restricted(case: Case, keep: NDArray[np.bool_]) -> Case:
    """The case of some of its rows; without a validation set, judges lose theirs too."""
    views = [points.take(keep) for points in case.views]
    judges: list[Judge] = []
    judged: list[tuple[Any, NDArray[Any]]] = []
    cross_fitted = not all(judge.eligible.all() for judge in case.judges)
    for judge, (table, labels) in zip(case.judges, case.originals.judged, strict=True):
        if not cross_fitted:
            judges.append(judge)
            judged.append((table, labels))
            continue
        own = np.isin(judge.points.key, views[0].key)
        if not own.any():
            raise DataError(
                "rows must leave some of every fold to judge by, got a fold withdrawn whole. "
                "Fit again on the rows that stay."
            )
        judges.append(Judge(_kept(judge.points, own), judge.view, judge.eligible))
        judged.append((_rows(table, own), labels[own]))
    before = np.cumsum(_in_users_order(case, keep)) - 1
    position = before[case.originals.position[keep]]
    originals = Originals(
        _rows(case.originals.table, keep), case.originals.labels[keep], judged, position
    )
    return Case(views, judges, case.judging_view, originals, case.doubters)


def _in_users_order(case: Case, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    users = np.empty_like(keep)
    users[case.originals.position] = keep
    return users


def _kept(points: Points, own: NDArray[np.bool_]) -> Points:
    return points if own.all() else points.take(own)


def _rows(table: Any, keep: NDArray[np.bool_]) -> Any:
    if table is None:
        return None
    return table.iloc[np.flatnonzero(keep)] if hasattr(table, "iloc") else table[keep]


def row_mask(rows: Any, n_rows: int) -> NDArray[np.bool_]:
    """A mask over the user's rows."""
    given = np.atleast_1d(np.asarray(rows))
    gone = np.zeros(n_rows, dtype=bool)
    if given.dtype == bool and given.shape == (n_rows,):
        return given.copy()
    if given.dtype.kind not in "iu" and given.size:
        raise DataError(
            f"rows must be row numbers or a mask of {n_rows} entries, got {given.dtype} of "
            f"shape {given.shape}."
        )
    if given.size and (given.min() < 0 or given.max() >= n_rows):
        bad = given[(given < 0) | (given >= n_rows)][0]
        raise DataError(f"rows must be from 0 to {n_rows - 1}, got {bad}.")
    gone[given.astype(np.intp)] = True
    return gone
