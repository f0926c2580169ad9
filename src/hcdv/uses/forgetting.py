"""Withdrawing rows: statistics are subtracted, what was fixed at fit stays, values follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError
from hcdv.targets import Target
from hcdv.valuation.methods import value
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case, Judge, Originals, Points
from hcdv.valuation.utility import Payoffs

if TYPE_CHECKING:
    from hcdv.result import Run


def forget(run: Run, rows: Any) -> Run:
    """The run of the rows that stay, on the same tree, encoder and probe."""
    gone = _checked(run, rows)
    keep = ~gone[run.position]  # canonical order
    if run.target.classes is not None:
        left = np.unique(run.target.labels[keep])
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
    case = restricted(run.case, keep)
    probe = run.valuation.probe.without(run.case, case, keep)
    tree = run.canonical_tree.restrict(keep)
    plan = _renumbered(run.plan, np.flatnonzero(~gone))
    valuation = value(case, tree, plan, probe=probe)
    target = Target(
        run.target.labels[keep], run.target.classes, run.target.centre, run.target.scale
    )
    note = f"{int(gone.sum())} rows forgotten; tree, encoder and probe as fitted"
    return replace(
        run, case=case, canonical_tree=tree, plan=plan, valuation=valuation, target=target,
        canonical_ids=run.canonical_ids[keep], notes=[*run.notes, note],
    )  # fmt: skip


@dataclass(frozen=True)
class RowsLeft:
    """Your payoff, asked about rows by the numbers they had in the data it was made for."""

    function: Callable[[Any], float]
    rows: NDArray[np.intp]

    def __call__(self, rows: NDArray[np.intp]) -> float:
        """The payoff of rows numbered as they are now."""
        return self.function(self.rows[rows])


def _renumbered(plan: Plan, left: NDArray[np.intp]) -> Plan:
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


def _checked(run: Run, rows: Any) -> NDArray[np.bool_]:
    """A mask over the user's rows."""
    given = np.atleast_1d(np.asarray(rows))
    gone = np.zeros(run.n_rows, dtype=bool)
    if given.dtype == bool and given.shape == (run.n_rows,):
        return given.copy()
    if given.dtype.kind not in "iu" and given.size:
        raise DataError(
            f"rows must be row numbers or a mask of {run.n_rows} entries, got {given.dtype} of "
            f"shape {given.shape}."
        )
    if given.size and (given.min() < 0 or given.max() >= run.n_rows):
        bad = given[(given < 0) | (given >= run.n_rows)][0]
        raise DataError(f"rows must be from 0 to {run.n_rows - 1}, got {bad}.")
    gone[given.astype(np.intp)] = True
    return gone
