"""What a run found, in the user's row order: the facts that every view of it is made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.tree import Tree
from hcdv.intake import Intake, Table
from hcdv.streaming.living import Living, recorded
from hcdv.targets import Target
from hcdv.valuation.nested import PARTS, Valuation
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case
from hcdv.valuation.utility import LeastSquares, Retrained

_OVER = 1.5  # times the budget, beyond which it is said to be passed
_RANKS_ALIKE = 0.8  # rank correlation below which the surrogate is doubted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """A finished valuation. Arrays over rows are in the user's order unless named otherwise."""

    case: Case  # canonical order: rows by id
    canonical_tree: Tree
    plan: Plan
    valuation: Valuation  # canonical order
    target: Target  # canonical order
    canonical_ids: NDArray[Any]
    seconds: dict[str, float]
    notes: list[str]
    living: Living | None = None  # what updates go by; canonical order

    def __repr__(self) -> str:
        nodes = self.canonical_tree.n_nodes
        return f"Run({self.n_rows} rows, {nodes} coalitions, surplus {self.surplus:+.4g})"

    @property
    def position(self) -> NDArray[np.intp]:
        """Place in the user's order of each canonical row."""
        return self.case.originals.position

    def users(self, canonical: NDArray[Any]) -> NDArray[Any]:
        """An array over canonical rows (…, n) in the user's order."""
        out = np.empty_like(canonical)
        out[..., self.position] = canonical
        return out

    @property
    def n_rows(self) -> int:
        """n."""
        return len(self.position)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """φ, (n,)."""
        return self.users(self.valuation.values)

    @cached_property
    def stderr(self) -> NDArray[np.float64]:
        """Standard errors of the values, (n,)."""
        return self.users(self.valuation.stderr)

    @cached_property
    def parts(self) -> dict[str, NDArray[np.float64]]:
        """The values by part of the payoff."""
        return {name: self.users(self.valuation.parts[name]) for name in PARTS}

    @property
    def stale(self) -> NDArray[np.bool_]:
        """Rows whose values have not been computed anew since the data changed, (n,)."""
        if self.living is None:
            return np.zeros(self.n_rows, dtype=bool)
        return self.users(self.living.stale)

    @property
    def surplus(self) -> float:
        """v(D) − v(∅)."""
        return float(sum(self.valuation.surplus.values()))

    @property
    def labels(self) -> NDArray[Any]:
        """Labels as given."""
        return self.users(self.target.labels)

    @cached_property
    def ids(self) -> NDArray[Any]:
        """Row ids."""
        return self.users(self.canonical_ids)

    @property
    def embedding(self) -> NDArray[np.floating]:
        """Unit vectors, (n, d)."""
        Z = self.case.points.Z
        out = np.empty_like(Z)
        out[self.position] = Z
        return out

    @cached_property
    def tree(self) -> Tree:
        """The tree over the user's rows."""
        tree = self.canonical_tree
        return Tree(
            self.position[tree.order], tree.parent, tree.start, tree.stop, tree.name
        )

    @cached_property
    def checks(self) -> dict[str, Any]:
        """Sums that must hold and correlations that should, as measured in this run."""
        values, tree = self.valuation.values, self.canonical_tree
        total = float(values.sum())
        size = float(np.abs(values).sum()) or 1.0
        nodes = tree.node_sums(values)
        below = np.zeros(tree.n_nodes)
        np.add.at(below, tree.parent[1:], nodes[1:])
        inner = ~tree.is_leaf
        gap = float(np.abs(nodes - below)[inner].max()) if inner.any() else 0.0
        return {
            "sum_of_values": total,
            "surplus": self.surplus,
            "sum_error": abs(total - self.surplus) / size,
            "tree_error": gap / size,
            **self.valuation.notes,
        }

    def frame(self) -> pd.DataFrame:
        """One row a training row."""
        import pandas as pd

        tree = self.tree
        return pd.DataFrame(
            {
                "row": np.arange(self.n_rows), "id": self.ids, "value": self.values,
                "stderr": self.stderr, **self.parts, "leaf": tree.leaf_of_row,
                "label": self.labels,
            }
        )  # fmt: skip

    def coalitions(self) -> pd.DataFrame:
        """One row a node of the tree, the whole set first."""
        tree, found = self.canonical_tree, self.valuation
        parts = {name: tree.node_sums(found.parts[name]) for name in PARTS}
        return coalition_frame(
            tree, tree.size, parts, found.node_stderr, found.as_player, found.correction,
            self.label_mix(),
        )  # fmt: skip

    def label_mix(self, most: int = 3) -> list[str]:
        """The commonest labels of every node, as text; of numbers, their mean."""
        tree, target = self.canonical_tree, self.target
        if target.classes is None:
            sums = tree.node_sums(target.labels.astype(np.float64))[None]
            return label_mix(target, sums, tree.size)
        code = target.coded(target.labels)
        count = [
            tree.node_sums((code == c).astype(np.float64)) for c in range(target.n_classes)
        ]
        return label_mix(target, np.stack(count), tree.size, most)


def coalition_frame(
    tree: Tree,
    size: NDArray[np.integer],
    parts: dict[str, NDArray[np.float64]],
    stderr: NDArray[np.float64],
    as_player: NDArray[np.float64],
    correction: NDArray[np.float64],
    mix: list[str],
) -> pd.DataFrame:
    """One row a node of a tree whose nodes hold so many rows and are worth these parts."""
    import pandas as pd

    value = np.sum([parts[name] for name in PARTS], axis=0)
    frame = pd.DataFrame(
        {
            "id": np.arange(tree.n_nodes), "parent": tree.parent, "level": tree.level,
            "size": size, "value": value, "stderr": stderr,
            "value_per_row": value / np.maximum(size, 1),
            "as_player": as_player, "correction": correction, **parts, "label_mix": mix,
        }
    )  # fmt: skip
    if tree.name is not None:
        frame.insert(1, "name", list(tree.name))
    return frame


def label_mix(
    target: Target, sums: NDArray[np.float64], size: NDArray[np.integer], most: int = 3
) -> list[str]:
    """The commonest labels of every node from their counts (C, m); of numbers (1, m), the mean."""
    share = sums / np.maximum(size, 1)
    if target.classes is None:
        return [f"mean {value:.4g}" for value in share[0]]
    top = np.argsort(-share, axis=0, kind="stable")[:most]
    names = [str(name) for name in target.classes.tolist()]
    return [
        ", ".join(f"{names[c]} {share[c, node]:.0%}" for c in column if share[c, node] > 0)
        for node, column in enumerate(top.T)
    ]


def run_of(
    table: Table, intake: Intake, tree: Tree, plan: Plan, valuation: Valuation,
    seconds: dict[str, float],
) -> Run:  # fmt: skip
    """Bring the pieces of a fit together."""
    notes = [*intake.notes, *_notes(table, plan, valuation), *_budget_notes(plan, seconds)]
    run = Run(intake.case, tree, plan, valuation, table.target, table.ids, seconds, notes)
    return begun(run, _judged_by(table, run))


def begun(run: Run, judged_by: str) -> Run:
    """The run with what updates go by, and the first line of its history."""
    Z, tree = run.case.points.Z, run.canonical_tree
    living = Living.of(Z, tree, run.canonical_ids, judged_by)
    return recorded(replace(run, living=living), "fit", came=run.n_rows)


def _judged_by(table: Table, run: Run) -> str:
    if table.time is not None:
        return "time"
    if table.groups is not None:
        return "groups"
    validated = all(judge.eligible.all() for judge in run.case.judges)
    return "validation" if validated else "rows"


def _budget_notes(plan: Plan, seconds: dict[str, float]) -> list[str]:
    """A round is never cut: a budget below that of one is told to be so."""
    took, budget = seconds["value"], plan.time_budget
    if budget is None or took <= _OVER * budget:
        return []
    took_so_long = f"as one round of sampling took {took:.2g} s"
    way_out = "set n_contexts and n_permutations lower"
    return [f"time_budget of {budget:g} s was passed, {took_so_long}: {way_out}"]


def _notes(table: Table, plan: Plan, valuation: Valuation) -> list[str]:
    """What a reader of the values should know about how they came to be."""
    found, notes = valuation.notes, list[str]()
    if plan.semivalue != "shapley":
        notes.append("values of this semivalue need not add up to the surplus")
    if table.weight is not None and not isinstance(plan.utility, LeastSquares | Retrained):
        notes.append(
            "sample_weight plays no part in this utility, only in label consistency"
        )
    rank = found.get(f"spearman_surrogate_{plan.metric}", 1.0)
    if rank < _RANKS_ALIKE:
        notes.append(
            f"what ranks the rows agrees poorly with {plan.metric} (rank correlation "
            f"{rank:.2f} over random coalitions): trust coalitions more than single rows"
        )
    if valuation.doubts.curve.knows_nothing:
        notes.append(
            "labels are predicted no better than by chance: none can be doubted, and the "
            "chances of wrong labels are what is assumed before anything is known"
        )
    if found.get("failures"):
        notes.append(
            f"{found['failures']} of {found['fits']} fits failed and were paid as no data, "
            f"the first with {found.get('first_error')}"
        )
    if plan.precision is not None and valuation.stderr.mean() > plan.precision:
        notes.append(
            f"precision {plan.precision:g} was not reached: the mean standard error is "
            f"{valuation.stderr.mean():.2g}"
        )
    return notes
