"""What updates go by as named arrays and plain settings, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.result import Run, begun
from hcdv.store.shelf import Shelf
from hcdv.streaming.living import Living, Record

_NUMBERS = ("next_key", "next_id", "since_rebalance", "n_rebalances", "n_arrivals")
_COUNTS = ("number", "came", "gone", "changed", "n_rows", "n_stale")
_BY_COALITION = ("key", "size", "value")


def put_living(run: Run, shelf: Shelf) -> None:
    """Lay out prototypes, lasting numbers, stale rows and history."""
    living = run.living
    if living is None:
        return
    for name in ("node_key", "prototype_key", "prototypes", "stale", "born"):
        shelf.put(f"living.{name}", getattr(living, name))
    history = living.history
    shelf.settings["living"] = {
        "judged_by": living.judged_by,
        **{name: int(getattr(living, name)) for name in _NUMBERS},
        "history": [
            {
                "kind": record.kind, "surplus": record.surplus,
                **{name: int(getattr(record, name)) for name in _COUNTS},
            }
            for record in history
        ],
    }  # fmt: skip
    shelf.put("history.labels", np.array([record.labels for record in history]))
    shelf.put("history.n_coalitions", np.array([len(record.key) for record in history]))
    for name in _BY_COALITION:
        joined = np.concatenate([getattr(record, name) for record in history])
        shelf.put(f"history.{name}", joined)


def taken_living(shelf: Shelf, run: Run) -> Run:
    """The run with what `put_living` laid out; as after a fit where nothing was."""
    own = shelf.settings.get("living")
    if own is None:
        return begun(run, "validation" if _is_validated(run) else "rows")
    n, m = run.n_rows, run.canonical_tree.n_nodes
    prototypes = shelf.get("living.prototypes", (None, run.case.points.Z.shape[1]), "f")
    living = Living(
        str(own["judged_by"]),
        shelf.get("living.node_key", (m,), "i"),
        shelf.get("living.prototype_key", (len(prototypes),), "i"),
        prototypes,
        shelf.get("living.stale", (n,), "b"),
        _born(shelf, n),
        **{name: int(own.get(name, 0)) for name in _NUMBERS},
        history=_history(shelf, own["history"]),
    )
    if not np.isin(living.prototype_key, living.node_key).all():
        raise ValueError("a prototype is of no leaf of the tree")
    return Run(**{**vars(run), "living": living})


def _born(shelf: Shelf, n: int) -> NDArray[Any]:
    """Which arrival every row came with; states did not tell at first."""
    if "living.born" not in shelf.arrays:
        return np.zeros(n, dtype=np.int64)
    return shelf.get("living.born", (n,), "i")


def _history(shelf: Shelf, lines: list[dict[str, Any]]) -> tuple[Record, ...]:
    n_coalitions = shelf.get("history.n_coalitions", (len(lines),), "i")
    labels = shelf.get("history.labels", (len(lines), None), "if")
    edges = np.cumsum(n_coalitions)[:-1]
    parts = {
        name: np.split(
            shelf.get(f"history.{name}", (int(n_coalitions.sum()),), "if"), edges
        )
        for name in _BY_COALITION
    }
    return tuple(_record(line, labels[at], parts, at) for at, line in enumerate(lines))


def _record(
    line: dict[str, Any],
    labels: NDArray[Any],
    parts: dict[str, list[NDArray[Any]]],
    at: int,
) -> Record:
    counts: dict[str, Any] = {name: int(line[name]) for name in _COUNTS}
    surplus = {name: float(part) for name, part in line["surplus"].items()}
    key, size, value = (parts[name][at] for name in _BY_COALITION)
    return Record(
        kind=str(line["kind"]), surplus=surplus, labels=labels.astype(np.int64), key=key,
        size=size, value=value, **counts,
    )  # fmt: skip


def _is_validated(run: Run) -> bool:
    return all(judge.eligible.all() for judge in run.case.judges)
