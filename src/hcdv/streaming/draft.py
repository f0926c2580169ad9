"""A run while its rows change: case, tree and statistics, kept in step, not valued yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.grafting import folded, grafted, split
from hcdv.hierarchy.tree import Tree
from hcdv.streaming.leaves import join_leaves, leaf_prototypes
from hcdv.streaming.living import Living
from hcdv.targets import Target
from hcdv.uses.forgetting import restricted
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.points import Case, Judge, Originals, Points
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.upkeep import exchanged, judged_anew, regrouped

if TYPE_CHECKING:
    from hcdv.result import Run

Bools = NDArray[np.bool_]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class Arrivals:
    """New rows, read and embedded as those of the fit were."""

    points: Points
    labels: NDArray[Any]
    ids: NDArray[Any]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: slice) -> Arrivals:
        """Some of them."""
        at = np.arange(len(self))[rows]
        return Arrivals(self.points.take(at), self.labels[rows], self.ids[rows])


@dataclass(frozen=True)
class Judges:
    """A validation set, read and embedded as that of the fit was."""

    points: Points
    labels: NDArray[Any]


@dataclass(frozen=True)
class StreamSettings:
    """How leaves take rows in and are kept in shape. Valid once built."""

    spawn_distance: float | None = None  # τ
    rebalance_every: int | None = None  # rows
    max_rows: int | None = None
    window: int | None = None  # updates after which rows go
    branching: tuple[int, ...] = (8,)
    leaf_size: int = 64
    n_jobs: int | None = None


@dataclass(frozen=True)
class Draft:
    """Rows in canonical order; `source` tells each row's place in the run before, or −1."""

    case: Case
    tree: Tree
    probe: Probe
    target: Target
    ids: NDArray[Any]
    living: Living
    source: Ints  # (n,)
    touched: Bools  # (n,)  new, or labelled anew
    game_rows: int  # of the plan: from how many rows on coalitions play

    @classmethod
    def of(cls, run: Run) -> Draft:
        """As the run is, nothing changed yet."""
        assert run.living is not None
        n = run.n_rows
        return cls(
            run.case, run.canonical_tree, run.valuation.probe, run.target,
            run.canonical_ids, run.living, np.arange(n), np.zeros(n, dtype=bool),
            run.plan.game_rows,
        )  # fmt: skip

    def at_next_arrival(self) -> Draft:
        """The same, as rows are about to come."""
        n_arrivals = self.living.n_arrivals + 1
        return replace(self, living=replace(self.living, n_arrivals=n_arrivals))

    def without(self, keep: Bools) -> Draft:
        """Only the rows kept."""
        case, tree = restricted(self.case, keep), self.tree.restrict(keep)
        nobody = np.zeros(len(case.points), dtype=bool)
        return replace(
            self, case=case, tree=tree,
            probe=self._followed(~keep, case, nobody, tree),
            target=replace(self.target, labels=self.target.labels[keep]), ids=self.ids[keep],
            living=replace(
                self.living, stale=self.living.stale[keep], born=self.living.born[keep]
            ),
            source=self.source[keep], touched=self.touched[keep],
        )  # fmt: skip

    def relabelled(self, rows: Bools, labels: NDArray[Any]) -> Draft:
        """Some rows under other labels; their leaves and folds stay."""
        everyone = self.target.labels.astype(np.result_type(self.target.labels, labels))
        everyone[rows] = labels
        target = replace(self.target, labels=everyone)
        case = _with_labels(self.case, target.coded(everyone), everyone)
        return replace(
            self, case=case, target=target, touched=self.touched | rows,
            probe=self._followed(rows, case, rows, self.tree),
        )  # fmt: skip

    def judged(self, by: Judges) -> Draft:
        """The same rows before another validation set; what is kept of them stays."""
        (judge,) = self.case.judges
        case = replace(
            self.case, judges=[replace(judge, points=by.points)],
            originals=replace(self.case.originals, judged=[(None, by.labels)]),
        )  # fmt: skip
        moments = judged_anew(self.probe, self.case, case)
        return replace(self, case=case, probe=replace(self.probe, moments=moments))

    def joined(self, new: Arrivals, spawn_distance: float | None) -> Draft:
        """With new rows, each in the nearest leaf or in one that sprouts for it."""
        living = self.living
        if self.tree.n_nodes == 1:
            spawn_distance = None  # the one leaf is the whole: what sprouted had no parent
        to = join_leaves(new.points.Z, living.prototypes, spawn_distance)
        draft = self
        if len(to.sprouted):
            nobody = np.zeros(0, dtype=np.int64)
            draft = self._restructured(
                *grafted(self.tree, nobody, self._parents_beside(to.beside))
            )
            fresh = np.arange(living.next_key, living.next_key + len(to.sprouted))
            draft = replace(draft, living=replace(
                draft.living, prototype_key=np.append(living.prototype_key, fresh),
                prototypes=np.concatenate([
                    living.prototypes, new.points.Z[to.sprouted].astype(np.float64),
                ]),
            ))  # fmt: skip
        leaves = draft.living.nodes_of(draft.living.prototype_key[to.prototype])
        return draft._with_rows(new, leaves)

    def _parents_beside(self, prototypes: Ints) -> Ints:
        """Where leaves sprout: under the parent of the leaf, old or new, that was nearest."""
        living = self.living
        parents: list[int] = []
        for prototype in prototypes.tolist():
            new = prototype - len(living.prototypes)
            if new >= 0:
                parents.append(parents[new])
                continue
            leaf = living.nodes_of(living.prototype_key[[prototype]])
            parents.append(int(self.tree.parent[leaf[0]]))
        return np.array(parents)

    def rebalanced(self, settings: StreamSettings, seed: int) -> Draft:
        """Leaves that ran low fold up, those of over twice leaf_size split; new prototypes."""
        rng = np.random.default_rng([seed, 7, self.living.n_rebalances])
        Z = self.case.points.Z
        draft = self._restructured(*folded(self.tree, settings.leaf_size // 4))
        most = 2 * settings.leaf_size
        if (draft.tree.size[draft.tree.leaves] > most).any():
            draft = draft._restructured(*split(
                draft.tree, Z, list(settings.branching), most, rng, settings.n_jobs
            ))  # fmt: skip
        tree, living = draft.tree, draft.living
        return replace(draft, living=replace(
            living, prototype_key=living.node_key[tree.leaves],
            prototypes=leaf_prototypes(Z, tree), since_rebalance=0,
            n_rebalances=living.n_rebalances + 1,
        ))  # fmt: skip

    def _restructured(self, tree: Tree, was: Ints) -> Draft:
        """The same rows on another tree."""
        before, after = self._upper(self.tree), self._upper(tree)
        probe = regrouped(
            self.probe, self.case, before.code, after.code, len(before.players),
            len(after.players),
        )  # fmt: skip
        return replace(self, tree=tree, probe=probe, living=self.living.renumbered(was))

    def _followed(self, gone: Bools, case: Case, came: Bools, tree: Tree) -> Probe:
        """The probe of other rows on the same nodes, whose game level may have changed."""
        before, after = self._upper(self.tree), self._upper(tree)
        code = np.asarray(tree.codes(before.players))
        probe = exchanged(self.probe, self.case, gone, case, came, code)
        return regrouped(
            probe, case, code, after.code, len(before.players), len(after.players)
        )

    def _upper(self, tree: Tree) -> Upper:
        return Upper.of(tree, rows_each=self.game_rows)

    def _with_rows(self, new: Arrivals, leaves: Ints) -> Draft:
        none = np.zeros(0, dtype=np.int64)
        tree, _ = grafted(self.tree, leaves, none)
        case = joined_case(self.case, new)
        n_old, n_new = len(self.ids), len(new)
        came = np.append(np.zeros(n_old, dtype=bool), np.ones(n_new, dtype=bool))
        living = replace(
            self.living, stale=np.append(self.living.stale, np.zeros(n_new, dtype=bool)),
            born=np.append(self.living.born, np.full(n_new, self.living.n_arrivals)),
            since_rebalance=self.living.since_rebalance + n_new,
        )  # fmt: skip
        return Draft(
            case, tree,
            self._followed(np.zeros(n_old, dtype=bool), case, came, tree),
            replace(self.target, labels=case.originals.labels),
            np.concatenate([self.ids, new.ids]), living,
            np.append(self.source, np.full(n_new, -1)), np.append(self.touched, came[n_old:]),
            self.game_rows,
        )  # fmt: skip


def joined_arrivals(parts: list[Arrivals]) -> Arrivals:
    """Rows that came in several updates, in their order."""
    if len(parts) == 1:
        return parts[0]
    points = [part.points for part in parts]
    weight = None
    if points[0].weight is not None:
        weight = np.concatenate([one.weight for one in points])  # type: ignore[arg-type]
    whole = Points(
        np.concatenate([one.Z for one in points]), np.concatenate([one.target for one in points]),
        points[0].n_classes, np.concatenate([one.key for one in points]),
        np.concatenate([one.fold for one in points]), weight,
    )  # fmt: skip
    return Arrivals(
        whole, np.concatenate([part.labels for part in parts]),
        np.concatenate([part.ids for part in parts]),
    )  # fmt: skip


def joined_case(case: Case, new: Arrivals) -> Case:
    """The case with more rows; those of a fold judge with the others of it."""
    views = [_both(points, new.points) for points in case.views]
    judges: list[Judge] = []
    judged: list[tuple[Any, NDArray[Any]]] = []
    for judge, (table, labels) in zip(case.judges, case.originals.judged, strict=True):
        own = new.points.fold == np.argmin(judge.eligible)
        if judge.eligible.all() or not own.any():
            judges.append(judge)
            judged.append((table, labels))
            continue
        judges.append(replace(judge, points=_both(judge.points, new.points.take(own))))
        judged.append((None, np.concatenate([labels, new.labels[own]])))
    n = len(case.points)
    originals = Originals(
        None, np.concatenate([case.originals.labels, new.labels]), judged,
        np.append(case.originals.position, np.arange(n, n + len(new))),
    )  # fmt: skip
    return replace(case, views=views, judges=judges, originals=originals)


def _both(points: Points, more: Points) -> Points:
    weight = None
    if points.weight is not None and more.weight is not None:
        weight = np.concatenate([points.weight, more.weight])
    return Points(
        np.concatenate([points.Z, more.Z.astype(points.Z.dtype, copy=False)]),
        np.concatenate([points.target, more.target]), points.n_classes,
        np.concatenate([points.key, more.key]), np.concatenate([points.fold, more.fold]),
        weight,
    )  # fmt: skip


def _with_labels(case: Case, target: NDArray[Any], labels: NDArray[Any]) -> Case:
    judges: list[Judge] = []
    judged: list[tuple[Any, NDArray[Any]]] = []
    for judge, (table, given) in zip(case.judges, case.originals.judged, strict=True):
        if judge.eligible.all():
            judges.append(judge)
            judged.append((table, given))
            continue
        at = _places(case.points.key, judge.points.key)
        judges.append(replace(judge, points=replace(judge.points, target=target[at])))
        judged.append((table, labels[at]))
    return replace(
        case, views=[replace(points, target=target) for points in case.views], judges=judges,
        originals=replace(case.originals, labels=labels, judged=judged),
    )  # fmt: skip


def _places(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> Ints:
    by_key = np.argsort(keys)
    return by_key[np.searchsorted(keys, wanted, sorter=by_key)]
