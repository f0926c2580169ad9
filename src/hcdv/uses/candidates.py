"""Values of rows that are not in the data: what each would add, entering nobody's context.

A candidate x gets the value it would have as one more row of D, by the default method:
    φ(x) = ψ_G's correction per row + s(x) + λ·φ_x(Δ̄) + κ·A_x/n
s(x) is its mean marginal over the contexts drawn for D, by the formula for x ∉ S; G is the
coalition, at the game level, of the leaf whose mean is nearest by cosine; dispersion has a
closed form; A_x asks the consistency probes of D about its label. Where folds judge, a row
is worth nothing to the judge whose fold it falls into: s(x) is what it is worth on average
over the folds it may fall into. Under methods without a correction, and semivalues, which
need none, there is none. Statistics that a run read from disk lacks are gathered again.

A row without a label gets its expected value over the labels that the probes hold for
possible: Σ_c P(c | x)·φ(x, c), and how far apart these values are. Of numbers to predict the
labels are the prediction and the errors of others around it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.dispersion import class_sums, dispersion_of_rows
from hcdv.hierarchy.tree import Tree
from hcdv.valuation import doubts
from hcdv.valuation.calibration import margins
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.consistency import Agreement, agreement
from hcdv.valuation.doubts import moved
from hcdv.valuation.nested import flat_contexts
from hcdv.valuation.points import Points, class_weights
from hcdv.valuation.semivalues import pair_scale
from hcdv.valuation.statistics import context_statistics, row_dtype

if TYPE_CHECKING:
    from hcdv.result import Run

Floats = NDArray[np.float64]

LEAST_CHANCE = 0.02  # labels less likely than this are left out of an expectation
_ERRORS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])  # quantiles that stand for those of a number


@dataclass(frozen=True)
class Parts:
    """The summands of the candidates' values, (m,) each, with what is known of their labels."""

    marginal: Floats
    coalition: Floats
    dispersion: Floats
    consistency: Floats
    variance: Floats  # of the value, from independent orders
    wrong: Floats  # the chance that the label is wrong

    @property
    def values(self) -> Floats:
        """φ."""
        return self.marginal + self.coalition + self.dispersion + self.consistency

    @property
    def utility(self) -> Floats:
        """What they would teach a model."""
        return self.marginal + self.coalition

    def mixed(self, at: NDArray[np.intp], share: Floats, n: int) -> Parts:
        """Means over the labels of n rows: entry j is of row at[j] and counts by share[j]."""
        return Parts(*(
            _sums(at, share * getattr(self, each.name), n)
            for each in fields(self)
        ))  # fmt: skip


def _sums(at: NDArray[np.intp], weights: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(at, weights=weights, minlength=n), dtype=np.float64)


@dataclass(frozen=True)
class Unlabelled:
    """Candidates without labels: expected parts, and how much hangs on what the label is."""

    parts: Parts
    spread: Floats  # (m,)  standard deviation of the value over possible labels
    best: NDArray[Any]  # (m,)  the likeliest label, coded
    chance: Floats  # (m,)  that it is the right one; nan for numbers


def as_points(run: Run, Z: NDArray[np.floating], target: NDArray[Any]) -> Points:
    """Candidates as points of the run; no key or fold of theirs is ever looked at."""
    none = np.zeros(len(Z), dtype=np.intp)
    own = run.case.points
    return Points(
        Z.astype(own.Z.dtype), target, own.n_classes, none.astype(np.uint64), none
    )


def labelled_parts(run: Run, points: Points, said: Agreement) -> Parts:
    """Value candidates under labels. said: by `ask`, of the same points."""
    plan, n = run.plan, run.n_rows
    found = run.valuation.doubts
    margin = margins(said.scores, points)
    wrong = found.curve(margin, points.target)
    excess = found.curve.excess(wrong, points.target)
    doubted = found.curve.excess(found.chance, run.case.points.target).mean() - excess
    scale = plan.consistency_weight / n
    slope = scale * found.curve.slope_of_excess(wrong, points.target)
    marginal, variance = _marginals(run, points)
    coalition, error = _corrections(run, points.Z)
    return Parts(
        marginal, coalition, plan.dispersion_weight * _dispersion(run, points),
        scale * doubted, variance + error**2 + _variance(slope, said.margin), wrong,
    )  # fmt: skip


def unlabelled_parts(run: Run, Z: NDArray[np.floating]) -> Unlabelled:
    """Value candidates over the labels they may turn out to have."""
    if run.target.classes is None:
        return _of_numbers(run, Z)
    n, own = len(Z), run.case.points
    some = as_points(run, Z, np.zeros(n, dtype=np.intp))
    scores = ask(run, some).scores
    share = np.bincount(own.target, minlength=own.n_classes) / len(own)
    chance = run.valuation.doubts.curve.of_labels(scores, share)
    best = chance.argmax(axis=0)
    counted = chance >= LEAST_CHANCE
    counted[best, np.arange(n)] = True
    label, at = np.nonzero(counted)
    weight = chance[label, at] / (chance * counted).sum(axis=0)[at]
    mean, spread = _expected(run, Z, at, label, weight)
    return Unlabelled(mean, spread, best, chance.max(axis=0))


def ask(run: Run, points: Points) -> Agreement:
    """What the models asked about the labels of D say of candidates, under their labels."""
    case, seed, n_jobs = run.case, run.plan.seed, run.plan.n_jobs
    own = case.points
    barred = doubts.asked_folds(case)[2]
    if len(case.views) > 1:
        barred = np.zeros_like(barred)  # the first view has seen no label of a candidate
    contexts = doubts.asked_contexts(len(own), seed, len(barred))
    everyone = np.ones((contexts.n_orders, 1), dtype=bool)
    weight = class_weights(own)
    said: list[Agreement] = []
    for features, ridge in doubts.probes_of(run.valuation.probe.features[0]):
        stats = context_statistics(
            own, features, contexts, barred, weight=weight, n_jobs=n_jobs
        )
        models = doubts.taught(
            stats, contexts, ridge * weight.sum(), len(own), features.width, seed, n_jobs
        )
        said.append(
            agreement(
                points, features, contexts.of_nobody(), models, everyone, ~everyone,
                np.ones(len(points)), dtype=row_dtype(len(own), features.width),
                n_jobs=n_jobs,
            )
        )  # fmt: skip
    return Agreement.mean(said)


def nearest_leaf(tree: Tree, Z: NDArray[Any], others: NDArray[Any]) -> NDArray[np.intp]:
    """Index into `tree.leaves` of the leaf whose mean of Z is nearest to each other row."""
    means = leaf_means(tree, Z)
    blocks = np.array_split(np.asarray(others), max(1, len(others) // 2_000))
    return np.concatenate([(block @ means.T).argmax(axis=1) for block in blocks])


def leaf_means(tree: Tree, Z: NDArray[Any]) -> NDArray[np.float64]:
    """Mean directions of the leaves as unit vectors, (K, d); of an empty leaf zero."""
    sums = class_sums(Z, tree.codes(tree.leaves), len(tree.leaves))[1]
    norm = np.linalg.norm(sums, axis=1, keepdims=True)
    return sums / np.where(norm > 0, norm, 1.0)


def _of_numbers(run: Run, Z: NDArray[np.floating]) -> Unlabelled:
    """The prediction, and around it as many errors as there are quantiles of others'."""
    n, own = len(Z), run.case.points
    predicted = ask(run, as_points(run, Z, np.zeros(n))).scores[0].astype(np.float64)
    off = np.quantile(own.target - run.valuation.doubts.scores[0], _ERRORS)
    at = np.tile(np.arange(n), len(off))
    label = (predicted + off[:, None]).ravel()
    share = np.full(len(at), 1.0 / len(off))
    mean, spread = _expected(run, Z, at, label, share)
    return Unlabelled(mean, spread, predicted, np.full(n, np.nan))


def _expected(
    run: Run, Z: NDArray[Any], at: NDArray[np.intp], label: NDArray[Any], share: Floats
) -> tuple[Parts, Floats]:
    """Mean parts and the spread of values of rows that are given several labels."""
    points = as_points(run, Z[at], label)
    parts = labelled_parts(run, points, ask(run, points))
    mean = parts.mixed(at, share, len(Z))
    off = parts.values - mean.values[at]
    spread = np.sqrt(_sums(at, share * off**2, len(Z)))
    return mean, spread


def _marginals(run: Run, points: Points) -> tuple[Floats, Floats]:
    """Mean marginals over the contexts, and their variance."""
    case, plan = run.case, run.plan
    contexts = flat_contexts(plan, len(case.judges))
    found = run.valuation.probe.outside(case, contexts, points, plan.seed, plan.n_jobs)
    taught = np.array([case.taught(judge).mean() for judge in case.judges])
    batches = replace(found, value=found.value * taught[found.stratum, None])
    return batches.mean(), batches.variance()


def _corrections(run: Run, Z: NDArray[Any]) -> tuple[Floats, Floats]:
    """What the coalition game adds to each row of the coalition nearest to a candidate."""
    tree, found = run.canonical_tree, run.valuation
    upper = Upper.of(tree, rows_each=run.plan.game_rows)
    known = np.nan_to_num(found.correction[upper.players])
    size = np.maximum(upper.n_inside, 1)
    error = np.where(known == 0, 0.0, found.node_stderr[upper.players])
    player = _players(tree, upper, nearest_leaf(tree, run.case.points.Z, Z))
    return (known / size)[player], (error / size)[player]


def _players(tree: Tree, upper: Upper, leaf: NDArray[np.intp]) -> NDArray[np.intp]:
    """Index into the players of the coalition above, or at, each leaf."""
    node = np.asarray(tree.leaves[leaf]).copy()
    while (deep := node >= len(upper.parent)).any():
        node[deep] = tree.parent[node[deep]]
    return np.searchsorted(upper.players, node)


def _dispersion(run: Run, points: Points) -> Floats:
    """½ (n − n_y − z·(s − s_y)) / |P(D)|: as for a row of D; of numbers there is none."""
    own = run.case.points
    if not own.n_classes:
        return np.zeros(len(points))
    counts, sums = class_sums(own.Z, own.target, own.n_classes)
    semivalue = run.plan.semivalue
    scale = 1.0 if semivalue == "shapley" else pair_scale(semivalue)
    return scale * dispersion_of_rows(points.Z, points.target, counts, sums)


def _variance(slope: Floats, margin: NDArray[np.floating]) -> Floats:
    """Variance of the consistency part, from what the orders say one by one."""
    n_orders = len(margin)
    square = sum(step**2 for step in moved(slope, margin))
    return np.asarray(square / max(1, n_orders * (n_orders - 1)))
