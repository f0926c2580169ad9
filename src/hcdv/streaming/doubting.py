"""Label doubts of single rows at once: what a model of all other rows says of them.

The batch asks many contexts of every row; here one probe taught with all rows, its classes
weighed alike, scores a row without itself: (Wᵀx − h·y)/(1 − h), h = w·xᵀPx. Its statistics
are kept by class, so that rows come and go by sums and class weights are always current.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hcdv.valuation.calibration import margins
from hcdv.valuation.consistency import context_models
from hcdv.valuation.doubts import KERNEL_RIDGE, LINEAR_RIDGE, Doubts
from hcdv.valuation.features import FeatureMap, linear_features
from hcdv.valuation.points import Case, Points, class_weights
from hcdv.valuation.pointwise import NOTHING, Kept, Probe
from hcdv.valuation.statistics import Statistics
from hcdv.valuation.upkeep import CLASSES, class_code

Floats = NDArray[np.float64]
_LEVERAGE_LIMIT = 0.99


def doubted_at_once(
    found: Doubts, source: NDArray[np.integer], touched: NDArray[np.bool_], case: Case,
    probe: Probe,
) -> Doubts:  # fmt: skip
    """Doubts found before, for the rows of now; touched rows are asked about anew.

    The curve from margins to chances stays that of the last refresh.
    """
    taken = {
        name: _taken(getattr(found, name), source)
        for name in ("variance", "chance", "margins", "scores", "slope")
    }
    now = replace(found, **taken)
    rows = np.flatnonzero(touched)
    if len(rows):
        now.scores[:, rows] = _scores(case, probe, rows)
        margin = margins(now.scores[:, rows], case.points.take(rows))
        now.margins[:, rows] = margin
        label = case.points.target[rows]
        now.chance[rows] = found.curve(margin, label)
        now.slope[rows] = found.curve.slope_of_excess(now.chance[rows], label)
        now.variance[rows] = found.variance.mean()
    excess = found.curve.excess(now.chance, case.points.target)
    return replace(now, agreement=excess.mean() - excess)


def _taken(
    array: NDArray[np.floating], source: NDArray[np.integer]
) -> NDArray[np.floating]:
    """Columns of the rows before; zeros for rows that were not there."""
    out = array[..., np.maximum(source, 0)]
    out[..., source < 0] = 0.0
    return out


def _scores(case: Case, probe: Probe, rows: NDArray[np.integer]) -> Floats:
    """Mean over the linear and the kernel probe, (C, b)."""
    points = case.points
    asked = [(linear_features(points.Z), LINEAR_RIDGE, "linear")]
    if probe.features[0].kind != "linear":
        asked.append((probe.features[0], KERNEL_RIDGE, "own"))
    said = [
        _left_out(case, probe, rows, features, ridge, f"{CLASSES} {name}")
        for features, ridge, name in asked
    ]
    return np.mean(said, axis=0)


def _left_out(
    case: Case, probe: Probe, rows: NDArray[np.integer], features: FeatureMap, ridge: float,
    name: str,
) -> Floats:  # fmt: skip
    points = case.points
    code = class_code(case).astype(np.intp)
    kept = Kept(NOTHING, 0, code, max(1, points.n_classes), features=features)
    by_class = probe.once(name, case, kept, None)
    weight = class_weights(points)
    scale = _class_scales(weight, points, code, kept.n_groups)
    stats = Statistics(
        np.einsum("c,cde->de", scale, by_class.gram)[None],
        np.einsum("c,cde->de", scale, by_class.cross)[None],
    )
    W, root = context_models(
        stats, ridge * float(weight.sum()), None, np.random.default_rng(0)
    )
    x = features(points.Z[rows], np.dtype(float))
    h = weight[rows] * np.square(x @ root[0]).sum(axis=1)
    h = np.minimum(h, _LEVERAGE_LIMIT)
    y = points.targets(rows.astype(np.intp), np.dtype(float))
    return ((x @ W[0] - h[:, None] * y) / (1.0 - h)[:, None]).T


def _class_scales(
    weight: Floats, points: Points, code: NDArray[np.integer], n_groups: int
) -> Floats:
    """What class weights multiply the rows' own weights by."""
    own = np.ones(len(points)) if points.weight is None else points.weight
    mass = np.bincount(code, weights=own, minlength=n_groups)
    weighed = np.bincount(code, weights=weight, minlength=n_groups)
    return weighed / np.where(mass > 0, mass, 1.0)
