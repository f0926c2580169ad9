"""What a run remembers between updates: prototypes, stable numbers, stale rows, history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.tree import Tree
from hcdv.streaming.leaves import leaf_prototypes
from hcdv.valuation.coalitions import Upper

if TYPE_CHECKING:
    from hcdv.result import Run

Ints = NDArray[np.integer]

HISTORY = 500  # lines kept: the fit's and the latest; a run folder's ledger keeps all


@dataclass(frozen=True)
class Record:
    """One update: what happened, and what the data and its coalitions were worth then.

    Coalitions are those down to the game level: at most twice 128, however many rows.
    """

    number: int  # 0 for the fit
    kind: str  # fit, update, forget, relabel or refresh
    came: int
    gone: int
    changed: int
    n_rows: int
    n_stale: int
    surplus: dict[str, float]
    labels: Ints  # (C,) rows of every class; empty for regression
    key: Ints  # (u,) lasting numbers of the coalitions
    size: Ints  # (u,)
    value: NDArray[np.float64]  # (u,)

    def summary(self) -> dict[str, Any]:
        """As one line of a table."""
        return {
            "update": self.number, "kind": self.kind, "rows": self.n_rows,
            "came": self.came, "gone": self.gone, "changed": self.changed, "stale": self.n_stale,
            "surplus": sum(self.surplus.values()), **self.surplus,
        }  # fmt: skip


@dataclass(frozen=True)
class Living:
    """Arrays over nodes follow the canonical tree, those over rows the canonical order."""

    judged_by: str  # rows, groups, time: whose folds; or validation
    node_key: Ints  # (m,) lasting number of every node
    prototype_key: Ints  # (K,) the leaf of each prototype
    prototypes: NDArray[np.float64]  # (K, d)
    stale: NDArray[np.bool_]  # (n,)
    born: Ints  # (n,)  which arrival each row came with, ascending; 0: it was fitted
    next_key: int
    next_id: int
    since_rebalance: int = 0  # rows that came since leaves were last rebalanced
    n_rebalances: int = 0
    n_arrivals: int = 0
    history: tuple[Record, ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls, Z: NDArray[np.floating], tree: Tree, ids: NDArray[Any], judged_by: str
    ) -> Living:
        """As a fit leaves it."""
        next_id = int(ids.max()) + 1 if ids.dtype.kind in "iu" and len(ids) else 0
        return cls(
            judged_by, np.arange(tree.n_nodes), tree.leaves.astype(np.int64),
            leaf_prototypes(Z, tree), np.zeros(len(Z), dtype=bool),
            np.zeros(len(Z), dtype=np.int64), tree.n_nodes, next_id,
        )  # fmt: skip

    def renumbered(self, was: Ints) -> Living:
        """After the tree changed: nodes that are new get numbers never used before."""
        is_new = was < 0
        key = np.where(is_new, self.next_key - 1 - was, self.node_key[np.maximum(was, 0)])
        return replace(self, node_key=key, next_key=self.next_key + int(is_new.sum()))

    @property
    def updates(self) -> int:
        """Number of the last update."""
        return self.history[-1].number if self.history else -1

    def remembering(self, record: Record) -> Living:
        """With a line more in its history; of a long one, the fit's and the latest stay."""
        history = (*self.history, record)
        if len(history) > HISTORY:
            history = (history[0], *history[2:])
        return replace(self, history=history)

    def young_enough(self, max_rows: int | None, window: int | None) -> NDArray[np.bool_]:
        """Which rows stay: the latest so many, of so many updates at most."""
        n = len(self.born)
        keep = np.arange(n) >= n - (max_rows or n)
        if window is not None:
            keep &= self.born > self.n_arrivals - window
        return keep

    def nodes_of(self, keys: Ints) -> Ints:
        """Nodes of these lasting numbers; all must be there."""
        by_key = np.argsort(self.node_key)
        return by_key[np.searchsorted(self.node_key, keys, sorter=by_key)]


def recorded(run: Run, kind: str, came: int = 0, gone: int = 0, changed: int = 0) -> Run:
    """The run with a line more in its history."""
    living, tree, found = run.living, run.canonical_tree, run.valuation
    assert living is not None
    upper = slice(0, len(Upper.of(tree, rows_each=run.plan.game_rows).parent))
    classes = run.target.n_classes
    codes = run.case.points.target
    record = Record(
        living.updates + 1, kind, came, gone, changed, run.n_rows,
        int(living.stale.sum()), dict(found.surplus),
        np.bincount(codes, minlength=classes) if classes else np.zeros(0, dtype=np.int64),
        living.node_key[upper], tree.size[upper], tree.node_sums(found.values)[upper],
    )  # fmt: skip
    return replace(run, living=living.remembering(record))
