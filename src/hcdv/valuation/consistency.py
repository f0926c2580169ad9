"""Label consistency A: how far models taught without a row agree with its label.

Every context's probe scores the rows outside it, and, by leave-one-out, those inside:
    x ∈ S:  (Wᵀx − h·y)/(1 − h),  h = w·xᵀPx
The margin of a row, in [−1, 1], is the score of its label minus the best other; it is kept
per order, for errors, and the scores themselves are averaged over all contexts, to be
calibrated. Counting votes instead ties most clean rows: noise AUROC .93-.97 where margins
reach .97-.98.
Rows weigh 1/(C · share of their class): unweighted, a 3 % class scores low throughout.
Regression: the margin is minus the distance of the target from what is predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.arrays import arrays_of
from hcdv.engines.local import ordered_map
from hcdv.valuation.blocks import products, row_blocks, transposed
from hcdv.valuation.contexts import Contexts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.points import Floats, Points
from hcdv.valuation.probe import inverse_root
from hcdv.valuation.statistics import Statistics, chunks, placed, row_dtype

_LEVERAGE_LIMIT = 0.99  # 1 − h stays away from 0 where a sketched h overshoots


@dataclass(frozen=True)
class Agreement:
    """What the contexts of one probe say of every row, by order."""

    margin: NDArray[np.floating]  # (R, n)  mean margin; nan where the order does not judge
    scores: NDArray[np.floating]  # (C, n)  mean scores of models taught without the row

    @classmethod
    def mean(cls, said: list[Agreement]) -> Agreement:
        """What several probes say, on average."""
        names = [each.name for each in fields(cls)]
        parts = ([getattr(one, name) for one in said] for name in names)
        return cls(*(np.mean(part, axis=0) for part in parts))


def context_models(
    stats: Statistics, ridge: float, sketch: int | None, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """W (L, D, C) and the columns (L, D, k) whose squares sum to xᵀPx."""
    root = inverse_root(stats, ridge)
    W = root @ (root.swapaxes(-1, -2) @ stats.cross)
    if sketch is not None:
        shape = (len(root), root.shape[-1], sketch)
        root = root @ arrays_of(root).put(rng.normal(scale=sketch**-0.5, size=shape))
    return W, root


def agreement(
    points: Points,
    features: FeatureMap,
    contexts: Contexts,
    models: list[tuple[Floats, Floats]],  # by order, from `context_models`
    judged: NDArray[np.bool_],  # (R, n_folds)  whose rows an order predicts
    barred: NDArray[np.bool_],  # (R, n_folds)  whose rows its contexts never hold
    weight: NDArray[np.float64],  # (n,)  the weights the models were taught with
    *,
    dtype: np.dtype | None = None,
    n_jobs: int | None = None,
) -> Agreement:
    """Ask every context of every order about every row it may judge.

    dtype: of the products, where the rows are a part of more than are at hand.
    """
    dtype = dtype or row_dtype(len(points), features.width)
    given, points, _ = placed(points, None)
    xp = arrays_of(points.Z)
    weight = xp.put(weight)
    asks, learns = xp.put(judged), ~xp.put(barred)
    stacks = [
        xp.cast(xp.concatenate([xp.put(m).swapaxes(1, 2) for m in pair], 1), dtype)
        for pair in models
    ]

    def some(rows: slice) -> tuple[Floats, Floats]:
        x, own_weight = features(points.Z[rows], dtype), xp.cast(weight[rows], dtype)
        inside = contexts.members(points.key[rows])
        fold = points.fold[rows]
        inside &= learns[:, fold][:, None]
        judges = asks[:, fold]
        margin = xp.full((contexts.n_orders, len(x)), np.nan, dtype=dtype)
        scores = xp.zeros((points.width, len(x)), dtype)
        for block in row_blocks(len(x), stacks[0]):
            xt, y = transposed(x[block]), _labels(points, rows, block, dtype)
            for order, stack in enumerate(stacks):
                lead, score = _ask(xt, y, own_weight[block], inside[order, :, block], stack)
                judge_of = judges[order, block]
                margin[order, block] = xp.where(judge_of, lead, np.nan)
                scores[:, block] += score * judge_of
        times = xp.cast(xp.clip(judges.sum(axis=0), 1, None), dtype)
        scores = scores / times
        return (margin, scores) if given is points else (xp.get(margin), xp.get(scores))

    tasks = chunks(len(points), coarser=xp.coarser)
    parts = list(ordered_map(some, tasks, xp.n_jobs(n_jobs)))
    margin, scores = (
        arrays_of(part[0]).concatenate(part, -1) for part in zip(*parts, strict=True)
    )
    return Agreement(margin, scores)


@dataclass(frozen=True)
class _Labels:
    """Targets of a block of rows, class-major, and where each row's own class stands."""

    y: Floats  # (C, b)
    own: NDArray[np.intp] | None  # (b,)  in the flattened (C, b); None for regression


def _labels(points: Points, rows: slice, block: slice, dtype: np.dtype) -> _Labels:
    part = slice(rows.start + block.start, rows.start + block.stop)
    y = transposed(points.targets(part, dtype))
    if not points.n_classes:
        return _Labels(y, None)
    place = arrays_of(y).arange(y.shape[1])
    return _Labels(y, points.target[part] * y.shape[1] + place)


def _ask(
    xt: Floats, labels: _Labels, weight: Floats, inside: NDArray[np.bool_], stack: Floats
) -> tuple[Floats, Floats]:
    """Mean margin and scores of L contexts for each row of a block xt (D, b)."""
    xp, y = arrays_of(xt), labels.y
    lead, scores = xp.zeros(xt.shape[1], xt.dtype), xp.zeros(y.shape, y.dtype)
    for some, product in products(stack, xt):
        fit, lever = product[:, : len(y)], product[:, len(y) :]
        h = xp.einsum("lkb,lkb->lb", lever, lever) * weight
        h = xp.clip(h, None, _LEVERAGE_LIMIT) * inside[some]
        left = 1.0 / (1.0 - h)
        scores += xp.einsum("lcb,lb->cb", fit, left)
        scores -= y * (h * left).sum(axis=0)
        lead += _gap(product, fit, labels, h, left).sum(axis=0)
    return lead / len(stack), scores / len(stack)


def _gap(product: Floats, fit: Floats, labels: _Labels, h: Floats, left: Floats) -> Floats:
    """The margin of every context's model without the row, (l, b). Overwrites `product`."""
    xp = arrays_of(fit)
    if labels.own is None:
        return -abs(labels.y[0] - fit[:, 0]) * left
    flat = product.reshape(len(product), -1)  # classes come first: labels.own holds in it
    own = flat[:, labels.own]
    flat[:, labels.own] = -np.inf
    # the row's own pull on a margin is h
    return xp.clip((own - xp.amax(fit, 1) - h) * left, -1.0, 1.0)
