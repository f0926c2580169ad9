"""Last pass: coalitions play, and every row gets its share; values are written as Parquet.

The formulas are those of `valuation/nested.py`, for rows that come in parts:
φ_i = ψ_G/|G| + (s_i − mean_G s) + λ·φ_i(Δ̄) + κ·A_i/n
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.dataset.gathering import Sums
from hcdv.dataset.model import Model
from hcdv.dataset.run import VALUES
from hcdv.dataset.valuing import Found, found_of
from hcdv.dataset.workspace import Arrays, Workspace
from hcdv.embedding.dispersion import cross_label_dispersion
from hcdv.judging import N_FOLDS
from hcdv.result import coalition_frame, label_mix
from hcdv.valuation.coalitions import CoalitionValues, Upper, coalition_values
from hcdv.valuation.nested import PARTS, node_variance, surrogate_check
from hcdv.valuation.pointwise import Batches
from hcdv.valuation.probe import ProbeGame
from hcdv.valuation.statistics import Statistics

_CHECKED = 4096  # rows of a judge that score the check of the surrogate


@dataclass(frozen=True)
class Shares:
    """What is known of all rows together, by which each row's value follows."""

    model: Model
    upper: Upper  # n_inside counts rows
    n_in_leaf: NDArray[np.int64]  # (K,)
    coalitions: CoalitionValues
    mean: NDArray[np.float64]  # (R, players)  of flat marginals in every order
    excess: float  # mean of all rows
    moved: NDArray[np.float64]  # (R',)  means of all rows
    found: Found
    notes: dict[str, Any]

    @classmethod
    def of(cls, model: Model, sums: Sums, found: Found, n_jobs: int | None) -> Shares:
        """Play the coalitions' game."""
        plan, n = model.task.plan, model.task.n_rows
        n_in_leaf, n_players = sums.n_in_leaf, len(model.upper.players)
        upper = replace(
            model.upper,
            n_inside=np.bincount(model.upper.code, n_in_leaf, minlength=n_players).astype(
                int
            ),
        )
        shape = (n_players, N_FOLDS)
        groups = Statistics(
            *(part.reshape(*shape, *part.shape[1:]) for part in vars(sums.groups).values())
        )
        game = model.probe.game_of(model.sample.judges, {0: groups}, n_jobs)
        coalitions = coalition_values(
            game, upper, plan.n_permutations, np.random.default_rng([plan.seed, 4, 0]),
            cheap=True,
        )  # fmt: skip
        total = np.stack(
            [np.bincount(upper.code, row, n_players) for row in found.marginals]
        )
        flat = Batches(found.marginals.sum(axis=1, keepdims=True), model.judge_of)
        notes = {
            "game_level_coalitions": n_players,
            "coalitions_exact": coalitions.is_exact,
            "n_payoffs": coalitions.n_payoffs,
            "n_contexts": model.contexts.p.size,
            "sum_before_correction": float(flat.mean()[0]),
            "stderr_before_correction": float(np.sqrt(flat.variance()[0])),
            **surrogate_check(_with_few_rows(game), plan, model.sample, upper),
        }
        return cls(
            model, upper, n_in_leaf, coalitions, total / np.maximum(upper.n_inside, 1),
            float(found.excess.sum()) / n, found.moved.sum(axis=1) / n, found, notes,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Rows in all."""
        return self.model.task.n_rows

    def of_rows(self, held: Arrays) -> dict[str, NDArray[np.float64]]:
        """Value, stderr and parts of some rows."""
        player = self.upper.code[held["leaf"]]
        per_row = 1.0 / np.maximum(self.upper.n_inside, 1)
        psi, error = (
            part[self.upper.players] * per_row
            for part in (self.coalitions.value, self.coalitions.stderr)
        )
        own = Batches(held["marginals"] - self.mean[:, player], self.model.judge_of)
        parts = self._parts(
            psi[player] + own.mean(), held["dispersion"], held["excess"], 1.0
        )
        variance = own.variance() + error[player] ** 2
        variance += self._of_doubts(held["moved"] - self.moved[:, None])
        value = np.sum([parts[name] for name in PARTS], axis=0)
        return {"value": value, "stderr": np.sqrt(variance), **parts}

    def of_leaves(self) -> dict[str, NDArray[np.float64]]:
        """Sums of the parts over the rows of every leaf."""
        held, n_inside = self.found, np.maximum(self.upper.n_inside, 1)
        code, size = self.upper.code, self.n_in_leaf
        psi = (self.coalitions.value[self.upper.players] / n_inside)[code] * size
        return self._parts(
            psi + self._centred().mean(), held.dispersion, held.excess, size.astype(float)
        )

    def coalitions_frame(self, sums: Sums) -> Any:
        """One row a node of the tree, the whole set first."""
        tree, upper, psi = self.model.prototypes.shape, self.upper, self.coalitions
        parts = {name: tree.node_sums(part) for name, part in self.of_leaves().items()}
        size = tree.node_sums(self.n_in_leaf)
        variance = node_variance(
            self._centred().variance(tree.node_sums), tree, upper, psi.stderr, size
        )
        steps = self.found.moved - np.outer(self.moved, self.n_in_leaf)
        variance += self._of_doubts(tree.node_sums(steps))
        above = np.arange(len(upper.parent))
        as_player, correction = np.full((2, tree.n_nodes), np.nan)
        additive = parts["dispersion"] + parts["consistency"]
        as_player[above] = psi.as_player + additive[above]
        flat = Batches(self.mean * upper.n_inside, self.model.judge_of).mean()
        correction[upper.players] = psi.value[upper.players] - flat
        target = self.model.rows.target
        by_label = tree.node_sums(np.ascontiguousarray(sums.leaves.T))
        if target.classes is None:
            by_label = by_label[1:] * target.scale + target.centre * size
        mix = label_mix(target, by_label, size)
        return coalition_frame(
            tree, size, parts, np.sqrt(variance), as_player, correction, mix
        )

    def surplus(self, sums: Sums) -> dict[str, float]:
        """v(D) − v(∅) by part."""
        plan = self.model.task.plan
        dispersion = 0.0
        if len(sums.count):
            dispersion = float(cross_label_dispersion(sums.count, sums.total, ratio=True))
        return {
            "utility": float(self.coalitions.value[0]),
            "dispersion": plan.dispersion_weight * dispersion,
            "consistency": 0.0,  # A(D) = 0
        }

    def _parts(
        self, utility: NDArray[np.float64], dispersion: NDArray[np.float64],
        excess: NDArray[np.float64], n_rows: float | NDArray[np.float64],
    ) -> dict[str, NDArray[np.float64]]:  # fmt: skip
        plan = self.model.task.plan
        return {
            "utility": utility,
            "dispersion": plan.dispersion_weight * dispersion,
            "consistency": plan.consistency_weight
            / self.n
            * (self.excess * n_rows - excess),
        }

    def _centred(self) -> Batches:
        """Σ (s − mean_G s) over every leaf, by order."""
        expected = self.mean[:, self.upper.code] * self.n_in_leaf
        return Batches(self.found.marginals - expected, self.model.judge_of)

    def _of_doubts(self, steps: NDArray[np.floating]) -> NDArray[np.float64]:
        """Variance of the consistency part, from how far each order moves it."""
        n_orders = len(steps)
        scale = self.model.task.plan.consistency_weight / self.n
        square = np.square(steps.astype(np.float64)).sum(axis=0)
        return scale**2 * square / (n_orders * (n_orders - 1))


def _with_few_rows(game: ProbeGame) -> ProbeGame:
    """The same game, its metrics scored on so many rows a judge as a correlation needs."""
    judges = [
        replace(each, points=each.points.take(np.arange(min(len(each.points), _CHECKED))))
        for each in game.judges
    ]
    return replace(game, judges=judges)


@dataclass(frozen=True)
class Finishing:
    """The last pass over one segment: a file of values is written."""

    shares: Shares
    folder: Path

    def __call__(self, segment: int) -> None:
        """Write the values of a segment's rows, unless that was done before."""
        import pyarrow as pa
        from pyarrow import parquet

        workspace = Workspace(self.folder)
        path = self.folder / VALUES / part_of(segment)
        if not path.is_file():
            held, task = workspace.get(found_of(segment)), self.shares.model.task
            rows = task.rows(segment)
            found = self.shares.of_rows(held)
            table = pa.table({
                "row": np.arange(rows.start, rows.stop), **found,
                "leaf": self._leaves()[held["leaf"]], "label": self._labels(held["target"]),
                "doubt": held["chance"], "suggested": self._labels(held["suggested"]),
            })  # fmt: skip
            draft = path.with_name(f".{path.name}")
            parquet.write_table(
                table,
                draft,
                compression="zstd",
                use_dictionary=["leaf", "label", "suggested"],
            )
            draft.replace(path)
        workspace.drop(found_of(segment))

    def _leaves(self) -> NDArray[np.int32]:
        return self.shares.model.prototypes.shape.leaves.astype(np.int32)

    def _labels(self, code: NDArray[Any]) -> NDArray[Any]:
        target = self.shares.model.rows.target
        if target.classes is None:
            return code * target.scale + target.centre
        return target.classes[code.astype(np.intp)]


def part_of(segment: int) -> str:
    """File name of a segment's values."""
    return f"part-{segment:05d}.parquet"
