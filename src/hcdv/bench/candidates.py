"""Values of rows that are not in the data: what each would add, entering nobody's context.

A candidate x gets the value it would have as one more row of D, by the default method:
    φ(x) = ψ_G's correction per row + s(x) + λ·φ_x(Δ̄) + κ·A_x/n
s(x) is its mean marginal over the contexts drawn for D, by the formula for x ∉ S; G is the
coalition, at the game level, of the leaf whose mean is nearest by cosine; dispersion has a
closed form; A_x asks the consistency probes of D about its label. Candidates are outside
all contexts because these are passed on with thresholds of zero: nobody is below.

Only for runs with a validation set and the built-in probe: one judge, one view.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.dispersion import class_sums, cross_label_pairs
from hcdv.engines.local import one_thread_each, ordered_map
from hcdv.estimator import HCDV
from hcdv.hierarchy.tree import Tree
from hcdv.intake import unit
from hcdv.result import Run
from hcdv.valuation import doubts
from hcdv.valuation.calibration import margins
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.consistency import Agreement, agreement
from hcdv.valuation.contexts import Contexts
from hcdv.valuation.marginals import point_marginals
from hcdv.valuation.points import Points, class_weights
from hcdv.valuation.probe import Coefficients, coefficients, sketch_columns
from hcdv.valuation.statistics import Statistics, context_statistics

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """The summands of the candidates' values, (m,) each."""

    marginal: Floats
    coalition: Floats
    dispersion: Floats
    consistency: Floats

    @property
    def values(self) -> Floats:
        """φ."""
        return self.marginal + self.coalition + self.dispersion + self.consistency


def candidate_parts(model: HCDV, X: Any, y: NDArray[np.intp]) -> Parts:
    """Value rows outside the data of a fitted model; labels are class codes."""
    with one_thread_each():
        return _parts(model.run_, model.encoder_.transform(X), y)


def _parts(run: Run, encoded: Any, y: NDArray[np.intp]) -> Parts:
    Z = unit(encoded).astype(run.case.points.Z.dtype)
    none = np.zeros(len(y), dtype=np.intp)
    points = Points(Z, y, run.case.points.n_classes, none.astype(np.uint64), none)
    plan, n = run.plan, run.n_rows
    return Parts(
        _marginals(run, points),
        _corrections(run, points.Z),
        plan.dispersion_weight * _dispersion(run, points),
        plan.consistency_weight / n * _agreement(run, points) if plan.consistency_weight
        else np.zeros(len(y)),
    )  # fmt: skip


def _nobody(contexts: Contexts) -> Contexts:
    """The same contexts, for rows that none of them holds."""
    return replace(contexts, p=np.zeros_like(contexts.p))


def _marginals(run: Run, points: Points) -> Floats:
    probe, case = run.valuation.probe, run.case
    kept = next(one for one in probe.memo.values() if one.contexts is not None)
    contexts, features = kept.contexts, probe.features[0]
    assert contexts is not None
    sketch = sketch_columns(len(case.points), contexts.p.size, features.width)

    def ask(order: int) -> Coefficients:
        own = Statistics(kept.stats.gram[order], kept.stats.cross[order])
        rng = np.random.default_rng([run.plan.seed, 2, int(contexts.stream[order])])
        return coefficients(own, probe.moments[0], probe.ridge, sketch, rng)

    asked = list(ordered_map(ask, range(contexts.n_orders), run.plan.n_jobs))
    moments = [probe.moments[0]] * contexts.n_orders
    barred = np.zeros((contexts.n_orders, 1), dtype=bool)
    found = point_marginals(
        points, features, _nobody(contexts), asked, moments, barred, n_jobs=run.plan.n_jobs
    )
    return found.mean(axis=0, dtype=np.float64)


def nearest_leaf(tree: Tree, Z: NDArray[Any], others: NDArray[Any]) -> NDArray[np.intp]:
    """Index into `tree.leaves` of the leaf whose mean of Z is nearest to each other row."""
    code = tree.codes(tree.leaves)
    means = unit(class_sums(Z, code, len(tree.leaves))[1])
    blocks = np.array_split(np.asarray(others), max(1, len(others) // 2_000))
    return np.concatenate([(block @ means.T).argmax(axis=1) for block in blocks])


def _corrections(run: Run, Z: NDArray[Any]) -> Floats:
    """What the coalition game adds to each row of the coalition nearest to a candidate."""
    tree = run.canonical_tree
    upper = Upper.of(tree, rows_each=run.plan.game_rows)
    leaf = tree.leaves[nearest_leaf(tree, run.case.points.Z, Z)]
    player = upper.code[tree.order[tree.start[leaf]]]
    each = run.valuation.correction[upper.players] / np.maximum(upper.n_inside, 1)
    return each[player]


def _dispersion(run: Run, points: Points) -> Floats:
    """½ (n − n_y − z·(s − s_y)) / |P(D)|: as for a row of D."""
    own = run.case.points
    counts, sums = class_sums(own.Z, own.target, own.n_classes)
    others = (sums.sum(axis=0) - sums)[points.target]
    apart = len(own) - counts[points.target] - np.einsum("nd,nd->n", points.Z, others)
    return np.asarray(apart / (2.0 * cross_label_pairs(counts)), dtype=np.float64)


def _agreement(run: Run, points: Points) -> Floats:
    """A_x, by the curve of D, from what the consistency probes of D say of x."""
    found = run.valuation.doubts
    chance = found.curve(margins(_scores(run, points), points), points.target)
    excess = found.curve.excess(chance, points.target)
    return found.curve.excess(found.chance, run.case.points.target).mean() - excess


def _scores(run: Run, points: Points) -> NDArray[np.floating]:
    """What the models asked about the labels of D say of rows outside it."""
    own, seed, n_jobs = run.case.points, run.plan.seed, run.plan.n_jobs
    contexts = doubts.asked_contexts(len(own), seed)
    nobody = np.zeros((contexts.n_orders, 1), dtype=bool)
    weight = class_weights(own)
    said: list[Agreement] = []
    for features, ridge in doubts.probes_of(run.valuation.probe.features[0]):
        stats = context_statistics(
            own, features, contexts, nobody, weight=weight, n_jobs=n_jobs
        )
        models = doubts.taught(
            stats, contexts, ridge * weight.sum(), len(own), features.width, seed, n_jobs
        )
        said.append(
            agreement(
                points, features, _nobody(contexts), models, ~nobody, nobody,
                np.ones(len(points)), n_jobs=n_jobs,
            )
        )  # fmt: skip
    return Agreement.mean(said).scores
