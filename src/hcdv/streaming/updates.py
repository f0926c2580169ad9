"""The four updates of a run, Alg. 2: rows arrive, are forgotten, labelled anew; all refreshed.

Every update keeps tree, encoder and probe, and the statistics exact. Values follow lazily
(`lazy.py`) or are all computed anew, which is the batch result on the same tree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError
from hcdv.streaming.draft import Arrivals, Draft, Judges, StreamSettings
from hcdv.streaming.lazy import lazily_valued, may_be_lazy
from hcdv.streaming.living import recorded
from hcdv.uses.forgetting import refuse_too_few, renumbered, row_mask
from hcdv.valuation.methods import value
from hcdv.valuation.utility import Payoffs, Retrained

if TYPE_CHECKING:
    from hcdv.result import Run


def arrive(
    run: Run, new: Arrivals, settings: StreamSettings, *, lazy: bool,
    judges: Judges | None = None,
) -> Run:  # fmt: skip
    """The run with new rows; leaves are rebalanced at row counts, however rows are batched.

    judges: a validation set in place of the one there is.
    """
    draft, at = Draft.of(run).at_next_arrival(), 0
    if judges is not None:
        draft = draft.judged(judges)
    while at < len(new):
        room, every = len(new) - at, settings.rebalance_every
        if every is not None:
            room = min(room, every - draft.living.since_rebalance)
        draft = draft.joined(new.take(slice(at, at + room)), settings.spawn_distance)
        at += room
        if every is not None and draft.living.since_rebalance >= every:
            draft = draft.rebalanced(settings, run.plan.seed)
    keep = draft.living.young_enough(settings.max_rows, settings.window)
    gone = int((~keep).sum())
    if gone:
        refuse_too_few(draft.target, keep)
        draft = draft.without(keep)
    highest = int(new.ids.max()) if new.ids.dtype.kind in "iu" else -1
    next_id = max(draft.living.next_id, highest + 1)
    draft = replace(draft, living=replace(draft.living, next_id=next_id))
    return recorded(_valued(run, draft, lazy=lazy), "update", came=len(new), gone=gone)


def forget(run: Run, rows: Any, *, lazy: bool = False) -> Run:
    """The run of the rows that stay, on the same tree, encoder and probe."""
    gone = row_mask(rows, run.n_rows)
    keep = ~gone[run.position]  # canonical order
    refuse_too_few(run.target, keep)
    draft = Draft.of(run).without(keep)
    plan = renumbered(run.plan, np.flatnonzero(~gone))
    found = _valued(replace(run, plan=plan), draft, lazy=lazy)
    note = f"{int(gone.sum())} rows forgotten; tree, encoder and probe as fitted"
    found = replace(found, notes=[*run.notes, note])
    return recorded(found, "forget", gone=int(gone.sum()))


def relabel(run: Run, rows: Any, y: NDArray[Any], *, lazy: bool = False) -> Run:
    """The run with other labels for some rows, in the order in which `rows` names them."""
    if run.canonical_tree.name is not None:
        raise DataError(
            "branching must be made of clusters for rows to be labelled anew, got given "
            'partitions, which may follow the labels. Fit again without "classes" or "groups".'
        )
    at, labels = _named_once(run, rows, y)
    changed = np.zeros(run.n_rows, dtype=bool)
    changed[at] = True
    everyone = run.labels.astype(np.result_type(run.labels, labels))
    everyone[at] = labels
    canonical = changed[run.position]
    draft = Draft.of(run).relabelled(canonical, everyone[run.position][canonical])
    refuse_too_few(draft.target, np.ones(run.n_rows, dtype=bool))
    return recorded(_valued(run, draft, lazy=lazy), "relabel", changed=int(changed.sum()))


def refresh(run: Run) -> Run:
    """The run with every value computed anew from the statistics: the batch result."""
    return recorded(_valued(run, Draft.of(run), lazy=False), "refresh")


def refuse_arrivals(run: Run) -> None:
    """Say why a run cannot take rows in, before any is read."""
    living, way_out = run.living, "Fit again on all rows."
    assert living is not None
    if run.canonical_tree.name is not None:
        raise DataError(
            "branching must be made of clusters for rows to arrive, got given partitions, in "
            f"which a new row has no place. {way_out}"
        )
    if len(run.case.views) > 1:
        raise DataError(
            "encoder must not have seen labels for rows to arrive without a validation set, "
            f"got one encoder for each fold. Pass X_val and y_val to fit. {way_out}"
        )
    if living.judged_by in ("groups", "time"):
        raise DataError(
            f"{living.judged_by} must not decide who judges for rows to arrive, as new rows "
            "bring none. Fit without it, or again on all rows."
        )
    if isinstance(run.plan.utility, Payoffs | Retrained):
        raise DataError(
            "utility must be taught by sums or by neighbours for rows to arrive, got "
            f"{type(run.plan.utility).__name__.lower()}. {way_out}"
        )


def _valued(run: Run, draft: Draft, *, lazy: bool) -> Run:
    lazy = lazy and may_be_lazy(run)
    run = replace(run, plan=run.plan.sized(len(draft.ids)))
    if lazy:
        found = lazily_valued(run, draft)
        stale = ~draft.touched
    else:
        found = value(draft.case, draft.tree, run.plan, probe=draft.probe)
        stale = np.zeros(len(draft.ids), dtype=bool)
    return replace(
        run, case=draft.case, canonical_tree=draft.tree, valuation=found,
        target=draft.target, canonical_ids=draft.ids,
        living=replace(draft.living, stale=stale),
    )  # fmt: skip


def _named_once(
    run: Run, rows: Any, y: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    given = np.atleast_1d(np.asarray(rows))
    mask = row_mask(given, run.n_rows)
    at = np.flatnonzero(mask) if given.dtype == bool else given.astype(np.intp)
    if len(at) != int(mask.sum()):
        raise DataError(
            f"rows must name each row once, got {len(at)} numbers of {int(mask.sum())} rows."
        )
    if len(y) != len(at):
        raise DataError(
            f"y must have one label for each of {len(at)} rows, got {len(y)}. Align the two."
        )
    return at, y
