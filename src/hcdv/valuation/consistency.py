"""Label consistency A: how far models taught without a row agree with its label.

Every context's probe scores the rows outside it, and, by leave-one-out, those inside:
    x ∈ S:  (Wᵀx − h·y)/(1 − h),  h = w·xᵀPx
A_i in [−1, 1] is the mean margin: the score of y_i minus the best other. No data: 0. Counting
votes instead ties most clean rows: noise AUROC .93-.97 where margins reach .97-.98.
A(S) = (1/n)·Σ_{i∈S} A_i is additive, so its Shapley value is its own summand A_i/n and
every axiom holds.
Rows weigh 1/(C · share of their class): unweighted, a 3 % class scores low throughout.
Regression: A_i = 1 − r²/var(y), clipped to [−1, 1]; no data: 0 for a typical row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.local import ordered_map
from hcdv.valuation.contexts import Contexts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.points import Floats, Points
from hcdv.valuation.statistics import Statistics, chunks, row_dtype

_SCRATCH = 2**18  # entries of one block of scores
_COLUMNS = 2**10  # of the coefficients multiplied at once
_LEVERAGE_LIMIT = 0.99  # 1 − h stays away from 0 where a sketched h overshoots


@dataclass(frozen=True)
class Agreement:
    """What the contexts of one probe say of every row, by order."""

    margin: NDArray[np.floating]  # (R, n)  mean margin; nan where the order does not judge
    votes: NDArray[np.floating]  # (n,)  share of contexts whose best class is the row's
    scores: NDArray[np.floating]  # (C, n)  mean scores of models taught without the row


def context_models(
    stats: Statistics, ridge: float, sketch: int | None, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """W (L, D, C) and the columns (L, D, k) whose squares sum to xᵀPx."""
    eye = np.eye(stats.gram.shape[-1])
    root = np.swapaxes(np.linalg.inv(np.linalg.cholesky(stats.gram + ridge * eye)), -1, -2)
    W = root @ (np.swapaxes(root, -1, -2) @ stats.cross)
    if sketch is not None:
        shape = (len(root), root.shape[-1], sketch)
        root = root @ rng.normal(scale=sketch**-0.5, size=shape)
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
    n_jobs: int | None = None,
) -> Agreement:
    """Ask every context of every order about every row it may judge."""
    dtype = row_dtype(len(points), features.width)
    stacks = [
        np.concatenate([np.swapaxes(m, 1, 2) for m in pair], axis=1) for pair in models
    ]
    stacks = [stack.astype(dtype) for stack in stacks]

    def some(rows: slice) -> tuple[Floats, Floats, Floats]:
        x, y = features(points.Z[rows], dtype), points.targets(rows, dtype).T
        margin = np.full((contexts.n_orders, len(x)), np.nan, dtype=dtype)
        votes, scores = np.zeros(len(x), dtype), np.zeros((points.width, len(x)), dtype)
        asked = np.zeros(len(x), dtype=dtype)
        for order, stack in enumerate(stacks):
            inside = contexts.uniforms(order, points.key[rows]) < contexts.p[order][:, None]
            inside &= ~barred[order, points.fold[rows]]
            judge_of = judged[order, points.fold[rows]]
            vote, lead, score = _ask(
                x, y, weight[rows].astype(dtype), inside, stack, points
            )
            margin[order] = np.where(judge_of, lead, np.nan)
            votes += vote * judge_of
            scores += score * judge_of
            asked += judge_of
        times = np.maximum(asked, 1)
        return margin, votes / times, scores / times

    parts = list(ordered_map(some, chunks(len(points)), n_jobs))
    margin, votes, scores = (np.concatenate(p, axis=-1) for p in zip(*parts, strict=True))
    return Agreement(margin, votes, scores)


def _ask(
    x: Floats,
    y: Floats,
    weight: Floats,
    inside: NDArray[np.bool_],
    stack: Floats,
    points: Points,
) -> tuple[Floats, Floats, Floats]:
    """Mean vote, margin and scores of L contexts for each row of x."""
    n_contexts, n_columns, width = stack.shape
    vote, lead = np.zeros(len(x), dtype=x.dtype), np.zeros(len(x), dtype=x.dtype)
    scores = np.zeros((points.width, len(x)), dtype=x.dtype)
    at_once = max(1, _COLUMNS // n_columns)
    step = max(64, _SCRATCH // (n_columns * min(at_once, n_contexts)))
    for start in range(0, len(x), step):
        rows = slice(start, min(start + step, len(x)))
        xt, yt = np.ascontiguousarray(x[rows].T), y[:, rows]
        others_only = np.where(yt == yt.max(axis=0), -np.inf, 0).astype(x.dtype)
        for first in range(0, n_contexts, at_once):
            some = slice(first, min(first + at_once, n_contexts))
            product = (stack[some].reshape(-1, width) @ xt).reshape(
                -1, n_columns, xt.shape[1]
            )
            fit, lever = product[:, : points.width], product[:, points.width :]
            is_in = inside[some, rows]
            h = np.einsum("lkb,lkb->lb", lever, lever) * weight[rows]
            h = np.minimum(h, _LEVERAGE_LIMIT) * is_in
            left = 1.0 / (1.0 - h)
            scores[:, rows] += np.einsum("lcb,lb->cb", fit, left)
            scores[:, rows] -= yt * (h * left).sum(axis=0)
            if points.n_classes:
                own = np.einsum("cb,lcb->lb", yt, fit) + fit.mean(axis=1)
                fit += others_only
                # the row's own pull on a margin is h
                gap = (own - fit.max(axis=1) - h) * left
            else:
                gap = 1.0 - ((yt[0] - fit[:, 0]) * left) ** 2
            gap = np.clip(gap, -1.0, 1.0)
            vote[rows] += np.count_nonzero(gap > 0, axis=0)
            lead[rows] += gap.sum(axis=0)
    return vote / n_contexts, lead / n_contexts, scores / n_contexts
