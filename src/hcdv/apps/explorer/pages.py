"""What every page says, as plain data: each function answers one route of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.apps.explorer import conditions
from hcdv.apps.explorer.conditions import Where
from hcdv.apps.explorer.session import Current, Session, counted
from hcdv.errors import DataError
from hcdv.uses.explanation import N_NEIGHBOURS
from hcdv.uses.suspects import LIKELY
from hcdv.valuation.nested import PARTS

if TYPE_CHECKING:
    import pandas as pd

Asked = dict[str, Any]
Said = dict[str, Any]

_CHILDREN = 64  # of a node that are told one by one
_DRAWN = 600  # nodes below one that are drawn
_BEST = 5
_BLOCK = 1 << 16  # vectors compared at a time


class NotFoundError(DataError):
    """Something asked for by name that is not there."""


def overview(session: Session, asked: Asked) -> Said:  # noqa: ARG001, every page has one
    """The run at a glance."""
    now = session.now
    state, queries = now.opened, now.queries
    about = state.about
    totals, spread = queries.totals(Where()), queries.spread()
    suspected = Where()
    conditions.add_suspects(suspected, LIKELY, classes=state.has_classes)
    frame = state.coalitions
    leaves = frame[~frame["id"].isin(frame["parent"]) & (frame["size"] > 0)]
    ranked = leaves.sort_values("value_per_row", ascending=False, kind="stable")
    is_changed = state.number > 0
    settings = about.get("settings", {})
    return {
        "run": {
            "folder": str(state.folder), "kind": "data set" if state.is_dataset else "table",
            "source": about.get("source") or {}, "created": about.get("created"),
            "number": state.number, "n_rows": totals["n_rows"],
            "n_classes": about.get("n_classes"), "n_coalitions": len(frame) - 1,
            "depth": int(frame["level"].max()), "seed": about.get("seed"),
            "metric": settings.get("metric"), "method": settings.get("method"),
        },
        "surplus": totals["value"] if is_changed else about.get("surplus"),
        "parts": {name: totals[name] for name in PARTS},
        "spread": spread,
        "n_suspects": queries.totals(suspected)["n_rows"],
        "n_decisions": len(session.decisions.latest()),
        "labels": queries.labels() if state.has_classes else [],
        "best": nodes_said(ranked.head(_BEST)),
        "worst": nodes_said(ranked.tail(_BEST).iloc[::-1]),
        "notes": about.get("notes", []),
        "checks": about.get("checks", {}),
        "has_map": state.run is not None,
        "compares": session.other is not None,
    }  # fmt: skip


def coalitions(session: Session, asked: Asked) -> Said:
    """One coalition: where it lies, what is below it, and what it is worth."""
    now, node = session.now, asked["node"]
    frame = now.opened.coalitions
    _refuse_unless_node(frame, node)
    parent, path = frame["parent"].to_numpy(), [node]
    while path[-1] > 0:
        path.append(int(parent[path[-1]]))
    ranges = now.opened.leaf_ranges.below(node)
    shown, n_left = [], _DRAWN
    for low, high in ranges[1:]:
        if high - low + 1 > n_left:
            break
        shown.append(frame.iloc[low : high + 1])
        n_left -= high - low + 1
    below = [each for part in shown for each in nodes_said(part)]
    children = frame[frame["parent"] == node].head(_CHILDREN)
    whole = frame.iloc[0]
    return {
        "node": nodes_said(frame.iloc[[node]])[0],
        "path": nodes_said(frame.iloc[path[::-1]]),
        "below": below or nodes_said(children),
        "n_below": sum(high - low + 1 for low, high in ranges[1:]),
        "mean": float(whole["value"]) / max(1, int(whole["size"])),
        "past": _past_of(now, node),
    }


def description(session: Session, asked: Asked) -> Said:
    """What sets a coalition apart, in the data's own words."""
    now, node = session.now, asked["node"]
    _refuse_unless_node(now.opened.coalitions, node)
    return {"words": now.words_of(node) if node else ""}


def map_page(session: Session, asked: Asked) -> Said:
    """Where the map lies, and what it can be coloured by."""
    now = session.now
    _refuse_without_map(now)
    return {
        "extent": now.queries.extent(),
        "share": now.opened.share,
        "has_classes": now.opened.has_classes,
        "labels": [each["label"] for each in now.queries.labels()],
        "n_rows": now.queries.totals(_where(session, now, asked))["n_rows"],
        "mean": now.queries.spread()["mean"],
        "low": now.queries.spread()["low"],
        "high": now.queries.spread()["high"],
    }


def spots(session: Session, asked: Asked) -> Said:
    """A piece of the map."""
    now = session.now
    _refuse_without_map(now)
    whole = now.queries.extent()
    box = [
        whole[k] if asked[name] is None else float(asked[name])
        for k, name in enumerate(("x0", "y0", "x1", "y1"))
    ]
    if not (box[0] <= box[2] and box[1] <= box[3]):
        raise DataError(
            "x0 and y0 must lie below x1 and y1: a piece of the map has an inside."
        )
    colour = asked["colour"]
    if colour == "label" and not now.opened.has_classes:
        raise DataError("colour must be value, doubt or density where labels are numbers.")
    return now.queries.spots(_where(session, now, asked), box, colour)


def rows(session: Session, asked: Asked) -> Said:
    """A page of rows."""
    now = session.now
    where = _where(session, now, asked)
    return _page(session, now, where, asked)


def suspects(session: Session, asked: Asked) -> Said:
    """Rows whose label is doubted, the most doubted first."""
    now = session.now
    where = _where(session, now, {**asked, "suspects": True})
    if asked["sort"] == "row" and not asked["down"]:
        asked = {**asked, "sort": "doubt", "down": True}
    return _page(session, now, where, asked)


def worth(session: Session, asked: Asked) -> Said:
    """What a selection is worth as one coalition, beside the sum of its rows' values."""
    now = session.now
    where = _where(session, now, asked)
    said: Said = {
        "n_all": now.opened.n_rows, "alone": None, "to_others": None, "of_all": None,
        "note": None,
    }  # fmt: skip
    if now.opened.run is None:
        totals = dict(now.queries.totals(where))
        said["n_rows"] = totals.pop("n_rows")
        said["summed"] = totals
        said["note"] = (
            "This run keeps no vectors, so that only the sum of its rows' values is known."
        )
    else:
        rows = now.queries.numbers(where)
        said["n_rows"] = len(rows)
        if len(rows):
            said |= _weighed(now, rows)
    if not said["n_rows"]:
        raise DataError(
            "the selection must hold rows, got none. Draw it where there are some."
        )
    return said


def _weighed(now: Current, rows: NDArray[np.int64]) -> Said:
    """The worth of rows as one coalition, by part and in sum."""
    found, said = now.worth.of(rows), Said()
    for name in ("summed", "alone", "to_others", "of_all"):
        parts = getattr(found, name)
        said[name] = {"value": sum(parts.values()), **parts}
    if found.is_surrogate:
        said["note"] = (
            "Your own model is not kept with a run: the built-in probe stands in for it here."
        )
    return said


def row(session: Session, asked: Asked) -> Said:
    """One row: why it has its value, what it looks like, what was around it and before it."""
    now = session.now
    found = now.queries.row(asked["id"])
    if found is None:
        raise NotFoundError(
            f"id must be that of a row of the run, got {asked['id'][:80]!r}. It may have been "
            "forgotten since."
        )
    frame = now.opened.coalitions
    parent, path = frame["parent"].to_numpy(), [int(found["leaf"])]
    while path[-1] > 0:
        path.append(int(parent[path[-1]]))
    near = _neighbours(now, found["row"]) if now.opened.run is not None else ([], [])
    files = [(each.number, session.folder / each.worth) for each in session.updates()]
    return {
        "row": found,
        "rank": now.queries.rank(found["value"]),
        "n_rows": now.opened.n_rows,
        "mean": float(frame["value"].iloc[0]) / max(1, now.opened.n_rows),
        "path": nodes_said(frame.iloc[path[::-1]]),
        "cells": _cells(now, found),
        "has_image": now.queries.has_images,
        "has_classes": now.opened.has_classes,
        "same": near[0],
        "others": near[1],
        "past": now.queries.past(found["id"], files),
        "decision": session.decisions.latest().get(str(found["id"])),
    }


def decisions(session: Session, asked: Asked) -> Said:  # noqa: ARG001, every page has one
    """What was decided, the latest first, with the rows as they are now."""
    now = session.now
    latest = session.decisions.latest()
    there = now.queries.decided(list(latest))
    found = [{**each, "row": there.get(each["id"])} for each in latest.values()]
    return {"decisions": found[::-1], "has_classes": now.opened.has_classes}


def compare(session: Session, asked: Asked) -> Said:
    """Both runs, beside each other."""
    comparison = session.comparison
    return {
        "facts": comparison.facts,
        "spots": comparison.spots,
        "movers": comparison.movers(asked["limit"]),
        "coalitions": comparison.coalitions,
    }


def history(session: Session, asked: Asked) -> Said:
    """The updates of the run, and which of them is shown."""
    updates = [each for each in session.updates() if each.number > asked["since"]]
    now = session.now
    return {
        "shown": now.opened.number,
        "latest": max((each.number for each in session.updates()), default=0),
        "failure": session.failure,
        "updates": counted(updates[-1000:]),
    }


def nodes_said(frame: pd.DataFrame) -> list[Said]:
    """Coalitions as plain data."""
    return frame.to_dict("records")


def _where(session: Session, now: Current, asked: Asked) -> Where:
    """The rows that a selection means."""
    where, columns, state = Where(), now.queries.columns, now.opened
    for text in asked["filter"]:
        conditions.add_filter(where, columns, text)
    if asked["coalition"] is not None:
        _refuse_unless_node(state.coalitions, asked["coalition"])
        conditions.add_leaves(where, state.leaf_ranges.below(asked["coalition"]))
    if asked["suspects"]:
        conditions.add_suspects(where, LIKELY, classes=state.has_classes)
    if asked["decision"] is not None:
        latest, kind = session.decisions.latest(), asked["decision"]
        ids = [
            each
            for each, said in latest.items()
            if kind in ("any", "none", said["decision"])
        ]
        conditions.add_ids(where, ids, inside=kind != "none")
    if asked["polygon"] is not None:
        _refuse_without_map(now)
        conditions.add_polygon(where, asked["polygon"])
    if asked["q"]:
        conditions.add_search(where, columns, asked["q"])
    return where


def _page(session: Session, now: Current, where: Where, asked: Asked) -> Said:
    found = now.queries.rows(
        where, asked["sort"], asked["limit"], asked["offset"], down=asked["down"]
    )
    latest = session.decisions.latest()
    for each in found:
        each["decision"] = latest.get(str(each["id"]))
    return {
        "rows": found, "totals": now.queries.totals(where), "sort": asked["sort"],
        "down": asked["down"], "limit": asked["limit"], "offset": asked["offset"],
        "columns": list(now.queries.columns.given), "has_images": now.queries.has_images,
        "has_classes": now.opened.has_classes, "is_living": now.opened.number > 0,
        "points": list(now.queries.columns.points),
        "mean": float(now.opened.coalitions["value"].iloc[0]) / max(1, now.opened.n_rows),
    }  # fmt: skip


def _refuse_unless_node(frame: pd.DataFrame, node: int) -> None:
    if node >= len(frame):
        raise NotFoundError(
            f"coalition must be a number from 0 to {len(frame) - 1}, got {node}. The tree may "
            "have changed since."
        )


def _refuse_without_map(now: Current) -> None:
    if now.opened.run is None:
        raise DataError(
            "a map needs the vectors of the rows, and the run of a data set larger than memory "
            "keeps none. Its coalitions can be walked through instead."
        )


def _past_of(now: Current, node: int) -> list[Said]:
    """Size and value of a coalition after each update that knows it by its lasting number."""
    if now.opened.number == 0:
        return []
    living = now.run.living
    if living is None:
        return []
    found: list[Said] = []
    for record in living.history:
        at = np.flatnonzero(record.key == living.node_key[node])
        if len(at):
            found.append({
                "number": record.number, "kind": record.kind, "size": int(record.size[at[0]]),
                "value": float(record.value[at[0]]),
            })  # fmt: skip
    return found


def _cells(now: Current, found: dict[str, Any]) -> Said | None:
    """The row as it was given; of a data set, as its files have it while they are there."""
    if not now.opened.is_dataset:
        return now.queries.cells([found["id"]]).get(found["id"])
    from hcdv.dataset.source import open_source

    source = now.opened.about.get("source") or {}
    try:
        held = open_source(
            str(source["table"]), (), skip_damaged=bool(source.get("skipped"))
        )
        columns = [name for name, _ in held.columns if name != source.get("target")]
        _, block = next(held.blocks(found["row"], found["row"] + 1, columns[:256]))
        return block.to_pylist()[0]
    except (DataError, OSError, KeyError, StopIteration):
        return None


def _neighbours(now: Current, number: int) -> tuple[list[Said], list[Said]]:
    """Nearest rows by cosine, of its label and of others; of numbers, near it and far."""
    run = now.run
    Z, target, position = run.case.points.Z, run.case.points.target, run.position
    own = int(np.flatnonzero(position == number)[0])
    alike = target == target[own]
    if run.target.classes is None:  # centred and scaled: half a standard deviation
        alike = np.abs(target - target[own]) <= 0.5
    cosine = np.concatenate([Z[i : i + _BLOCK] @ Z[own] for i in range(0, len(Z), _BLOCK)])
    cosine[own] = -np.inf
    found: list[list[tuple[int, float]]] = []
    for group in (alike, ~alike):
        near = np.where(group, cosine, -np.inf)
        some = np.argpartition(-near, min(N_NEIGHBOURS, len(near) - 1))[:N_NEIGHBOURS]
        some = some[np.argsort(-near[some], kind="stable")]
        found.append([
            (int(position[c]), float(near[c])) for c in some if np.isfinite(near[c])
        ])  # fmt: skip
    told = now.queries.by_number([each for group in found for each, _ in group])
    same, others = ([{**told[n], "cosine": c} for n, c in group] for group in found)
    return same, others
