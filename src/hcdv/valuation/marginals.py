"""One context values every point: exact flat marginals of all n rows from three products.

For a context S with P = (XᵀX + ρI)⁻¹, W = P·XᵀY, G = VW − b, and a row x of weight w with
residual r = y − Wᵀx, h = w·xᵀPx, u = GᵀPx, q = w²·xᵀPVPx:
    x ∉ S:  loss(S ∪ x) − loss(S) = 2w·rᵀu/(1 + h) + q‖r‖²/(1 + h)²
    x ∈ S:  loss(S) − loss(S ∖ x) = 2w·rᵀu/(1 − h) − q‖r‖²/(1 − h)²
Its marginal is minus this over c. Averaged over contexts of `contexts.py` it is unbiased
for the flat Shapley value (or another semivalue) of the probe.

Cost a row and context: 2·D·(2C + 2k) flops, k = D exact or the width of the sketch.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.arrays import Arrays, arrays_of
from hcdv.engines.local import ordered_map
from hcdv.valuation.blocks import products, row_blocks, transposed
from hcdv.valuation.contexts import Contexts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.moments import Moments
from hcdv.valuation.points import Floats, Points
from hcdv.valuation.probe import Coefficients
from hcdv.valuation.statistics import chunks, placed, row_dtype


def point_marginals(
    points: Points,
    features: FeatureMap,
    contexts: Contexts,
    asked: list[Coefficients],  # by order, each (L, …)
    moments: list[Moments],  # by order: its judge's
    barred: NDArray[np.bool_],  # (R, n_folds)
    *,
    dtype: np.dtype | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.floating]:
    """Mean marginal of every row in every order, (R, n): R independent unbiased estimates.

    dtype: of the products, where the rows are a part of more than are at hand.
    """
    dtype = dtype or row_dtype(len(points), features.width)
    given, points, _ = placed(points, None)
    xp = arrays_of(points.Z)
    outside = xp.put(barred)
    stacks = [_stack(one, xp, dtype) for one in asked]
    edges = [_edges(one) for one in asked]

    def some(rows: slice) -> Floats:
        x = features(points.Z[rows], dtype)
        y = points.targets(rows, dtype).T
        weight = None if points.weight is None else xp.cast(points.weight[rows], dtype)
        inside = contexts.members(points.key[rows])
        out = xp.zeros((contexts.n_orders, len(x)), dtype=dtype)
        for block in row_blocks(len(x), stacks[0]):
            xt, own = transposed(x[block]), None if weight is None else weight[block]
            for order, stack in enumerate(stacks):
                scale = xp.put(-contexts.weight[order] / moments[order].c, dtype)
                for few, product in products(stack, xt):
                    fit, pull, lever, spread = (product[:, part] for part in edges[order])
                    change = _loss_change(
                        y[:, block],
                        fit,
                        pull,
                        lever,
                        spread,
                        inside[order, few, block],
                        own,
                    )
                    out[order, block] += scale[few] @ change
        out /= contexts.p.shape[1]
        out[outside[:, points.fold[rows]]] = 0.0  # the judge's own rows are dummies
        return out if given is points else xp.get(out)

    tasks = chunks(len(points), coarser=xp.coarser)
    parts = list(ordered_map(some, tasks, xp.n_jobs(n_jobs)))
    return arrays_of(parts[0]).concatenate(parts, 1)


def marginals_of_copies(
    points: Points,
    features: FeatureMap,
    asked: Coefficients,  # of one context, (1, …)
    moments: Moments,
    *,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """What one more row like each would add to a context, (n,): x ∉ S, whatever S holds."""
    nobody = Contexts(0, np.zeros(1, np.intp), np.zeros((1, 1)), np.ones((1, 1)))
    barred = np.zeros((1, int(points.fold.max()) + 1), dtype=bool)
    unweighted = replace(points, weight=None)
    found = point_marginals(
        unweighted, features, nobody, [asked], [moments], barred, n_jobs=n_jobs
    )
    return found[0].astype(np.float64)


def _stack(asked: Coefficients, xp: Arrays, dtype: np.dtype) -> Floats:
    """All coefficients as rows of one matrix, (L, 2C + k + k', D)."""
    parts = (asked.model, asked.pull, asked.leverage, asked.spread)
    return xp.cast(xp.concatenate([xp.put(p).swapaxes(1, 2) for p in parts], 1), dtype)


def _edges(asked: Coefficients) -> list[slice]:
    """Which rows of a stack each coefficient takes."""
    parts = (asked.model, asked.pull, asked.leverage, asked.spread)
    ends = np.cumsum([0, *(part.shape[2] for part in parts)])
    return [slice(*pair) for pair in pairwise(ends)]


def _loss_change(
    y: Floats,
    fit: Floats,
    pull: Floats,
    lever: Floats,
    spread: Floats,
    inside: NDArray[np.bool_],
    weight: Floats | None,
) -> Floats:
    """Change of the loss that each row makes to each context, by the module's two formulas."""
    xp = arrays_of(y)
    residual = xp.subtract(y, fit, out=fit)
    slope = xp.einsum("lcb,lcb->lb", residual, pull)
    size = xp.einsum("lcb,lcb->lb", residual, residual)
    h = xp.einsum("lkb,lkb->lb", lever, lever)
    q = xp.einsum("lkb,lkb->lb", spread, spread)
    if weight is not None:
        slope, h, q = slope * weight, h * weight, q * weight**2
    sign = xp.signs(inside, h.dtype)
    damping = 1.0 / (1.0 + sign * h)
    return damping * (2.0 * slope + sign * damping * q * size)
