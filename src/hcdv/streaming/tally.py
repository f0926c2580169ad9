"""What coalitions are worth by sums alone: rows join them without any other row being looked at.

Of every coalition that plays: rows by class, sums of directions by class, of utility and of
excess doubt. Values of all levels, the surplus and the next correction follow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.dispersion import class_sums, cross_label_dispersion, cross_label_pairs
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.nested import Valuation
from hcdv.valuation.orders import nesting
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Points

Floats = NDArray[np.float64]
Ints = NDArray[Any]  # of whole numbers


@dataclass(frozen=True)
class Tally:
    """Sums over the K coalitions that play; C is 1 where there are no classes."""

    parent: Ints  # of the nodes down to these
    first: Ints  # (K,)  the first-level coalition of each
    counts: Floats  # (K, C)
    directions: Floats  # (K, C, d)  zero width where there are no classes
    utility: Floats  # (K,)
    correction: Floats  # (K,)  of the utility, what is not flat marginals
    excess: Floats  # (K,)

    @classmethod
    def of(cls, upper: Upper, first: Ints, points: Points, found: Valuation) -> Tally:
        """Of all rows of a run."""
        n_players = len(upper.players)
        empty = cls(
            upper.parent, first, np.zeros((n_players, max(1, points.n_classes))),
            np.zeros((n_players, max(1, points.n_classes), _width(points))),
            np.zeros(n_players), found.correction[upper.players], np.zeros(n_players),
        )  # fmt: skip
        excess = found.doubts.curve.excess(found.doubts.chance, points.target)
        return empty.joined(upper.code, points, found.parts["utility"], excess)

    @property
    def size(self) -> Floats:
        """Rows of each, (K,)."""
        return self.counts.sum(axis=1)

    @property
    def n_rows(self) -> int:
        """n."""
        return int(self.counts.sum())

    def joined(self, code: Ints, points: Points, utility: Floats, excess: Floats) -> Tally:
        """With more rows of known utility, each in the coalition that `code` names."""
        n_players, n_classes = self.counts.shape
        label = points.target if points.n_classes else np.zeros(len(points), dtype=np.intp)
        counts, sums = class_sums(
            points.Z[:, : _width(points)], code * n_classes + label, n_players * n_classes
        )
        return replace(
            self, counts=self.counts + counts.reshape(self.counts.shape),
            directions=self.directions + sums.reshape(self.directions.shape),
            utility=self.utility + np.bincount(code, weights=utility, minlength=n_players),
            excess=self.excess + np.bincount(code, weights=excess, minlength=n_players),
        )  # fmt: skip

    def corrected(self, worth: Floats, shares: Floats) -> tuple[Tally, Floats]:
        """Made to add up to what the first level is worth, and what every row of it got.

        shares: what the rows that joined got of their coalitions' corrections, (K,).
        """
        size = self.size
        rows = np.bincount(self.first, weights=size, minlength=len(worth))
        there = np.bincount(self.first, weights=self.utility, minlength=len(worth))
        each = (worth - there) / np.maximum(rows, 1)
        moved = each[self.first] * size
        tally = replace(
            self, utility=self.utility + moved, correction=self.correction + shares + moved
        )
        return tally, each

    def share(self) -> Floats:
        """A row's share of its coalition's correction, (K,)."""
        return self.correction / np.maximum(self.size, 1)

    def surplus(self, worth: Floats, plan: Plan) -> dict[str, float]:
        """v(D) − v(∅) by part."""
        counts, sums = self.counts.sum(axis=0), self.directions.sum(axis=0)
        dispersion = float(cross_label_dispersion(counts, sums, ratio=True))
        return {
            "utility": float(worth.sum()),
            "dispersion": plan.dispersion_weight * dispersion,
            "consistency": 0.0,
        }

    def values(self, plan: Plan) -> tuple[Ints, Floats]:
        """Rows and value of every node down to these, (m,)."""
        counts, sums = self.counts.sum(axis=0), self.directions.sum(axis=0)
        pairs = float(cross_label_pairs(counts))
        crossed = self.counts @ (counts.sum() - counts)
        crossed -= np.einsum("kcd,cd->k", self.directions, sums.sum(axis=0) - sums)
        dispersion = plan.dispersion_weight * crossed / (2 * pairs or 1.0)
        consistency = self.size * self.excess.sum() / self.n_rows - self.excess
        consistency *= plan.consistency_weight / self.n_rows
        nest = nesting(self.parent)
        both = nest.node_sums(np.stack([
            self.size, self.utility + dispersion + consistency,
        ]))  # fmt: skip
        return np.rint(both[0]).astype(np.int64), both[1]


def _width(points: Points) -> int:
    return points.Z.shape[1] if points.n_classes else 0
