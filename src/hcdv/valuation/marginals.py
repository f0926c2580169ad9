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

import numpy as np
from numpy.typing import NDArray

from hcdv.engines.local import ordered_map
from hcdv.valuation.blocks import products, row_blocks, transposed
from hcdv.valuation.contexts import Contexts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.moments import Moments
from hcdv.valuation.points import Floats, Points
from hcdv.valuation.probe import Coefficients
from hcdv.valuation.statistics import chunks, row_dtype


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
    stacks = [_stack(one, dtype) for one in asked]
    edges = [_edges(one) for one in asked]

    def some(rows: slice) -> Floats:
        x = features(points.Z[rows], dtype)
        y = points.targets(rows, dtype).T
        weight = None if points.weight is None else points.weight[rows].astype(dtype)
        inside = contexts.members(points.key[rows])
        out = np.zeros((contexts.n_orders, len(x)), dtype=dtype)
        for block in row_blocks(len(x), stacks[0]):
            xt, own = transposed(x[block]), None if weight is None else weight[block]
            for order, stack in enumerate(stacks):
                scale = (-contexts.weight[order] / moments[order].c).astype(dtype)
                for few, product in products(stack, xt):
                    fit, pull, lever, spread = np.split(product, edges[order], axis=1)
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
        out[barred[:, points.fold[rows]]] = 0.0  # the judge's own rows are dummies
        return out

    return np.concatenate(list(ordered_map(some, chunks(len(points)), n_jobs)), axis=1)


def marginals_of_copies(
    points: Points,
    features: FeatureMap,
    asked: Coefficients,  # of one context, (1, …)
    moments: Moments,
    *,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """What one more row like each would add to a context, (n,): x ∉ S, whatever S holds."""
    dtype = row_dtype(len(points), features.width)
    stack, edges = _stack(asked, dtype), _edges(asked)

    def some(rows: slice) -> Floats:
        x = features(points.Z[rows], dtype)
        y = points.targets(rows, dtype).T
        inside = np.zeros((1, len(x)), dtype=bool)
        out = np.zeros(len(x))
        for block in row_blocks(len(x), stack):
            for few, product in products(stack, transposed(x[block])):
                fit, pull, lever, spread = np.split(product, edges, axis=1)
                out[block] += _loss_change(
                    y[:, block], fit, pull, lever, spread, inside[few, block], None
                )[0]
        return -out / moments.c

    return np.concatenate(list(ordered_map(some, chunks(len(points)), n_jobs)))


def _stack(asked: Coefficients, dtype: np.dtype) -> Floats:
    """All coefficients as rows of one matrix, (L, 2C + k + k', D)."""
    parts = (asked.model, asked.pull, asked.leverage, asked.spread)
    return np.concatenate([np.swapaxes(part, 1, 2) for part in parts], axis=1).astype(dtype)


def _edges(asked: Coefficients) -> NDArray[np.intp]:
    """Where in the rows of a stack one coefficient ends and the next begins."""
    return np.cumsum([asked.model.shape[2], asked.pull.shape[2], asked.leverage.shape[2]])


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
    residual = np.subtract(y, fit, out=fit)
    slope = np.einsum("lcb,lcb->lb", residual, pull)
    size = np.einsum("lcb,lcb->lb", residual, residual)
    h = np.einsum("lkb,lkb->lb", lever, lever)
    q = np.einsum("lkb,lkb->lb", spread, spread)
    if weight is not None:
        slope, h, q = slope * weight, h * weight, q * weight**2
    sign = np.where(inside, h.dtype.type(-1), h.dtype.type(1))
    damping = 1.0 / (1.0 + sign * h)
    return damping * (2.0 * slope + sign * damping * q * size)
