"""The tree of coalitions as lists to draw: what each is worth, how sure, and what is in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.apps.report.looks import looks
from hcdv.uses.description import description

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.estimator import HCDV
    from hcdv.given import Given

MOST_NODES = 5000  # whole levels are drawn as long as they are no more
_DIGITS = 5
_EXAMPLES = 4  # rows shown of a coalition
_ROOM = 350_000  # letters that examples may take
_SIDE = 32  # pixels of an example
_REACH = 0.95


def tree_facts(model: HCDV, given: Given | None) -> dict[str, Any]:
    """Coalitions of a table in memory, with examples of their rows where these are kept."""
    found = nodes_facts(model.coalitions_)
    if given is not None:
        found["examples"] = _examples(model, given, len(found["id"]))
        found["traits"] = [
            [
                [str(each), round(100 * each.inside), round(100 * each.overall)]
                for each in traits
            ]
            for traits in description(given, model.ids_, model.tree_, found["id"])
        ]
    return found


def nodes_facts(frame: pd.DataFrame) -> dict[str, Any]:
    """Lists over the coalitions of the upper levels, from the table of all of them."""
    level = frame["level"].to_numpy()
    widths = np.cumsum(np.bincount(level))
    n_levels = max(1, int(np.searchsorted(widths, MOST_NODES, side="right")))
    held = frame[level < n_levels]
    inner = np.isin(held["id"], frame["parent"])
    text = {"label_mix": "mix", "name": "name"}
    return {
        "n_all": len(frame) - 1, "n_levels": n_levels, "n_levels_all": int(level.max()) + 1,
        "reach": _reach(held),
        **{
            name: held[name].tolist() for name in ("id", "parent", "level", "size")
        },
        **{
            name: [_short(each) for each in held[name]]
            for name in ("value", "stderr", "as_player", "utility", "dispersion", "consistency")
        },
        "is_inner": [int(each) for each in inner],
        **{short: held[name].tolist() for name, short in text.items() if name in held},
    }  # fmt: skip


def _reach(held: pd.DataFrame) -> float:
    """Value per row at which the colours end: of the deepest coalitions drawn, by rows."""
    last = held[~held["id"].isin(held["parent"]) & (held["size"] > 0)]
    size = np.abs(last["value_per_row"].to_numpy())
    order = np.argsort(size)
    rows = np.cumsum(last["size"].to_numpy()[order])
    if not len(rows) or size.max() == 0:
        return 1.0
    return float(size[order[np.searchsorted(rows, _REACH * rows[-1])]]) or 1.0


def _examples(model: HCDV, given: Given, n_nodes: int) -> dict[str, Any]:
    """For as many coalitions as there is room for, the largest first: typical rows."""
    if given.kind == "table":
        return {}
    Z, tree = model.embedding_, model.tree_
    ids, found = model.ids_, dict[str, Any]()
    room = _ROOM
    for node in range(n_nodes):
        rows = _typical(Z, tree.rows(node))
        if not len(rows):
            continue
        seen = [
            {"row": int(row), **look}
            for row, look in zip(rows, looks(given, ids[rows], _SIDE), strict=True)
        ]
        room -= len(json.dumps(seen))
        if room < 0:
            break
        found[str(node)] = seen
    return found


def _typical(Z: NDArray[np.floating], rows: NDArray[np.integer]) -> NDArray[np.integer]:
    """Rows at even steps from the most to the least typical of those nearest the mean."""
    if len(rows) <= _EXAMPLES:
        return rows
    some = rows[:: max(1, len(rows) // 4096)]
    near = np.argsort(-(Z[some] @ Z[some].mean(axis=0)), kind="stable")
    at = (np.arange(_EXAMPLES) * (len(some) // 2) / _EXAMPLES).astype(np.intp)
    return some[near[at]]


def _short(number: float) -> float | None:
    return float(f"{number:.{_DIGITS}g}") if np.isfinite(number) else None
