"""Rows taken in without looking at those that are there: sums at once, arrays when asked for.

An update adds the statistics of new rows to those of contexts, classes and first-level
coalitions, asks the contexts about the new rows, and plays the game of the first level.
Values of all other rows move by one number a first-level coalition, which is noted; nothing
is done that takes longer the more rows there are, but to find the nearest of more leaves.
`looked_at` brings run and rows together, once, when somebody asks for values.
What changes the tree, or looks at all rows, goes the long way instead (`updates.arrive`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.hierarchy.grafting import grafted
from hcdv.hierarchy.tree import Tree
from hcdv.streaming.doubting import RowDoubts, class_mass, class_statistics, doubts_of
from hcdv.streaming.draft import (
    Arrivals,
    Draft,
    Judges,
    StreamSettings,
    joined_arrivals,
    joined_case,
)
from hcdv.streaming.lazy import completed, first_of, may_be_lazy
from hcdv.streaming.leaves import join_leaves
from hcdv.streaming.living import Living, Record
from hcdv.streaming.tally import Tally
from hcdv.valuation.coalition_game import shapley_exact
from hcdv.valuation.coalitions import Upper, game_level
from hcdv.valuation.doubts import Doubts
from hcdv.valuation.features import known_features
from hcdv.valuation.nested import flat_contexts
from hcdv.valuation.points import Case, Points
from hcdv.valuation.pointwise import NOTHING, Batches, Kept, Probe
from hcdv.valuation.probe import ProbeGame
from hcdv.valuation.statistics import Statistics
from hcdv.valuation.upkeep import GAME, class_code, n_folds

if TYPE_CHECKING:
    from hcdv.result import Run

Floats = NDArray[np.float64]
Ints = NDArray[Any]  # of whole numbers


@dataclass(frozen=True)
class Batch:
    """Rows of one update, where they went, and what was found of them."""

    new: Arrivals
    leaves: Ints  # (b,)
    utility: Floats  # (b,)  less the offset of their coalition when they came
    stderr: Floats  # (b,)
    doubts: RowDoubts


@dataclass(frozen=True)
class Ahead:
    """A run, and updates that it has not caught up with."""

    run: Run
    tally: Tally
    mass: Floats  # (C,)  what the rows of every class weigh
    player: Ints  # (m,)  the coalition that plays, of every node at or below it
    kept: dict[str, Kept]  # statistics of contexts and classes
    first: Statistics  # and of the first level
    living: Living
    worth: Floats  # of the first level
    offset: Floats  # of the utility of its rows, since the run was looked at
    came: tuple[Batch, ...] = ()

    @classmethod
    def of(cls, run: Run) -> Ahead | None:
        """Ready for rows to come; None where all rows would have to be looked at for each."""
        judged_by_others = len(run.case.judges) == 1 and run.case.judges[0].eligible.all()
        if not may_be_lazy(run) or not judged_by_others:
            return None
        case, tree, plan = run.case, run.canonical_tree, run.plan
        probe, living = run.valuation.probe, run.living
        assert living is not None
        upper = Upper.of(tree, rows_each=plan.game_rows)
        of_player, n_first = first_of(tree, upper.players)
        contexts = flat_contexts(plan, 1)
        judge_of = np.zeros(contexts.n_orders, dtype=np.intp)
        probe.kept_contexts(case, 0, contexts, judge_of, plan.n_jobs)
        class_statistics(case, probe)
        probe.game(case, upper.code, len(upper.players), plan.n_jobs, keep_as=GAME)
        by_player = probe.memo[f"{GAME} 0"].stats.by_group(len(upper.players))
        return cls(
            run, Tally.of(upper, of_player, case.points, run.valuation),
            class_mass(case.points), _players_below(tree, upper.players),
            {name: one for name, one in probe.memo.items() if not name.startswith(GAME)},
            by_player.sum(axis=1).merged(of_player), living, np.zeros(n_first),
            np.zeros(n_first),
        )  # fmt: skip

    @property
    def ids(self) -> list[NDArray[Any]]:
        """Ids of all rows, as they lie."""
        return [self.run.canonical_ids, *(batch.new.ids for batch in self.came)]

    def arrived(
        self, new: Arrivals, settings: StreamSettings, judges: Judges | None
    ) -> Ahead | None:
        """With new rows valued; None where leaves, levels or contexts would change by them."""
        run, living, tree = self.run, self.living, self.run.canonical_tree
        assert run.living is not None
        before, now = self.tally.n_rows, self.tally.n_rows + len(new)
        rows_each = run.plan.game_rows
        if (
            living.since_rebalance + len(new) >= (settings.rebalance_every or np.inf)
            or now > (settings.max_rows or np.inf)
            or living.n_arrivals + 1 - (settings.window or np.inf) >= run.living.born[0]
            or run.plan.sized(now) != run.plan
            or game_level(tree, now, rows_each=rows_each)
            != game_level(tree, before, rows_each=rows_each)
        ):
            return None
        spawn_distance = settings.spawn_distance if tree.n_nodes > 1 else None
        to = join_leaves(new.points.Z, living.prototypes, spawn_distance)
        if len(to.sprouted):
            return None
        leaves = living.nodes_of(living.prototype_key[to.prototype])
        ahead = self if judges is None else self._judged(judges)
        dtype = run.case.points.Z.dtype
        points = new.points.seen_in(new.points.Z.astype(dtype, copy=False))
        return ahead._with_rows(replace(new, points=points), leaves)

    def _judged(self, by: Judges) -> Ahead:
        draft = Draft.of(self.run).judged(by)
        found = replace(self.run.valuation, probe=draft.probe)
        return replace(self, run=replace(self.run, case=draft.case, valuation=found))

    def _with_rows(self, new: Arrivals, leaves: Ints) -> Ahead:
        points, found, plan = new.points, self.run.valuation, self.run.plan
        code = self.player[leaves]
        probe = found.probe
        seen, known = known_features(points, probe.features[0])
        quick = replace(probe, features=[known])
        kept = {
            name: _followed(one, quick, points if _is_linear(one) else seen)
            for name, one in self.kept.items()
        }
        first, worth = self._played(quick, seen, self.tally.first[code])
        mass = self.mass + class_mass(points)
        n = self.tally.n_rows + len(new)
        (contexts,) = (one for one in kept.values() if one.contexts is not None)
        one_judge = np.zeros(len(contexts.stats.gram), dtype=np.intp)
        marginals = quick.marginals(seen, contexts, one_judge, n, plan.seed, plan.n_jobs)
        flat = Batches(marginals, one_judge)
        by_class = {name: one.stats for name, one in kept.items()}
        curve = found.doubts.curve
        doubts = doubts_of(points, probe, by_class, mass, curve)
        share = self.tally.share()[code]
        shares = np.bincount(code, weights=share, minlength=len(self.tally.first))
        utility = flat.mean() + share
        tally, each = self.tally.joined(
            code, points, utility, curve.excess(doubts.chance, points.target)
        ).corrected(worth, np.asarray(shares, dtype=np.float64))
        scale = plan.consistency_weight / n
        spread = flat.variance() + scale**2 * found.doubts.variance.mean()
        batch = Batch(
            new, leaves, utility - self.offset[self.tally.first[code]], np.sqrt(spread),
            doubts,
        )  # fmt: skip
        ahead = replace(
            self, tally=tally, mass=mass, kept=kept, first=first, worth=worth,
            offset=self.offset + each, came=(*self.came, batch),
        )  # fmt: skip
        return replace(ahead, living=ahead._remembering(new))

    def _played(self, quick: Probe, seen: Points, first: Ints) -> tuple[Statistics, Floats]:
        """Statistics of the first level with the new rows in it, and what it is worth."""
        probe, (judge,) = self.run.valuation.probe, self.run.case.judges
        one = Kept(NOTHING, judge.view, first, len(self.offset))
        stats = self.first + quick.gathered(one, seen, np.ones(len(seen), dtype=bool))
        game = ProbeGame(
            [judge], probe.features, probe.moments, [stats.on_grid()], probe.ridge,
            probe.metric, self.run.plan.n_jobs,
        )  # fmt: skip
        return stats, shapley_exact(game, len(self.offset))

    def _remembering(self, new: Arrivals) -> Living:
        """What updates go by, with a line for this one."""
        living, tally, plan = self.living, self.tally, self.run.plan
        highest = int(new.ids.max()) if new.ids.dtype.kind in "iu" else -1
        size, value = tally.values(plan)
        classes = self.run.target.n_classes
        labels = np.rint(tally.counts.sum(axis=0)).astype(np.int64)[:classes]
        record = Record(
            living.updates + 1, "update", len(new), 0, 0, tally.n_rows,
            tally.n_rows - len(new), tally.surplus(self.worth, plan), labels,
            living.node_key[: len(size)], size, value,
        )  # fmt: skip
        since = living.since_rebalance + len(new)
        next_id = max(living.next_id, highest + 1)
        living = replace(
            living, since_rebalance=since, next_id=next_id, n_arrivals=living.n_arrivals + 1
        )
        return living.remembering(record)

    def looked_at(self) -> Ahead:
        """The run of now, and nothing it has not caught up with."""
        if not self.came:
            return self
        draft = self._draft()
        upper = Upper.of(draft.tree, rows_each=draft.game_rows)
        first = self.tally.first[upper.code]
        found = self.run.valuation
        own = [found.parts["utility"], *(batch.utility for batch in self.came)]
        stderr = np.concatenate([found.stderr, *(batch.stderr for batch in self.came)])
        valuation = completed(
            self.run, draft, np.concatenate(own) + self.offset[first], stderr, self.worth,
            self.tally.correction, self._doubts(draft.case.points),
        )  # fmt: skip
        run = replace(
            self.run, case=draft.case, canonical_tree=draft.tree, valuation=valuation,
            target=draft.target, canonical_ids=draft.ids, living=draft.living,
        )  # fmt: skip
        kept = {name: draft.probe.memo[name] for name in self.kept}
        return replace(
            self, run=run, kept=kept, living=draft.living,
            offset=np.zeros_like(self.offset), came=(),
        )  # fmt: skip

    def _draft(self) -> Draft:
        """Rows that were there and rows that came, on one tree."""
        before, new = Draft.of(self.run), joined_arrivals([b.new for b in self.came])
        leaves = np.concatenate([batch.leaves for batch in self.came])
        tree, _ = grafted(before.tree, leaves, np.zeros(0, dtype=np.int64))
        case = joined_case(before.case, new)
        first = before.living.n_arrivals + 1
        size = [len(batch.new) for batch in self.came]
        born = np.repeat(first + np.arange(len(size)), size)
        born = np.concatenate([before.living.born, born])
        touched = np.arange(len(case.points)) >= len(case.points) - len(self.came[-1].new)
        return replace(
            before, case=case, tree=tree, probe=self._probe(case, new, leaves),
            target=replace(before.target, labels=case.originals.labels),
            ids=np.concatenate(self.ids), living=replace(self.living, stale=~touched, born=born),
            source=np.append(before.source, np.full(len(new), -1)), touched=touched,
        )  # fmt: skip

    def _probe(self, case: Case, new: Arrivals, leaves: Ints) -> Probe:
        """The probe with statistics of all rows: those of coalitions are brought up here."""
        probe = self.run.valuation.probe
        memo = dict(probe.memo)
        for name, kept in probe.memo.items():
            if name in self.kept:
                code = None if kept.code is None else class_code(case)
                memo[name] = replace(self.kept[name], code=code)
                continue
            code = self.player[leaves] * n_folds(case) + new.points.fold
            everyone = np.ones(len(new), dtype=bool)
            more = probe.gathered(replace(kept, code=code), new.points, everyone)
            assert kept.code is not None
            memo[name] = replace(
                kept, stats=kept.stats + more, code=np.append(kept.code, code)
            )
        return replace(probe, memo=memo)

    def _doubts(self, points: Points) -> Doubts:
        """Doubts of the rows that were there, and of those that came."""
        found = self.run.valuation.doubts
        came = [batch.doubts for batch in self.came]
        n_new = len(points) - len(found.chance)
        margin = np.concatenate([d.margin for d in came])
        now = replace(
            found,
            variance=np.append(found.variance, np.full(n_new, found.variance.mean())),
            chance=np.concatenate([found.chance, *(d.chance for d in came)]),
            slope=np.concatenate([found.slope, *(d.slope for d in came)]),
            margins=_beside(
                found.margins, np.broadcast_to(margin, (len(found.margins), n_new))
            ),
            scores=_beside(found.scores, np.concatenate([d.scores for d in came], axis=1)),
        )
        excess = now.curve.excess(now.chance, points.target)
        return replace(now, agreement=excess.mean() - excess)


def _is_linear(kept: Kept) -> bool:
    return kept.features is not None and kept.features.kind == "linear"


def _followed(kept: Kept, probe: Probe, points: Points) -> Kept:
    """Statistics with those of rows that came; codes follow when the run is looked at."""
    if kept.code is not None:
        classed = points.target if points.n_classes else np.zeros(len(points), np.intp)
        kept = replace(kept, code=classed)
    asked = kept if _is_linear(kept) else replace(kept, features=None)
    more = probe.gathered(asked, points, np.ones(len(points), dtype=bool))
    return replace(kept, stats=kept.stats + more)


def _beside(
    array: NDArray[np.floating], more: NDArray[np.floating]
) -> NDArray[np.floating]:
    return np.concatenate([array, more.astype(array.dtype, copy=False)], axis=1)


def _players_below(tree: Tree, players: Ints) -> Ints:
    """The player that every node is, or lies below; −1 above them."""
    player = np.full(tree.n_nodes, -1)
    player[players] = np.arange(len(players))
    for level in range(1, tree.depth + 1):
        nodes = np.flatnonzero((tree.level == level) & (player < 0))
        player[nodes] = player[tree.parent[nodes]]
    return player
