"""Label doubts of single rows at once: what a model of all other rows says of them.

The batch asks many contexts of every row; here one probe taught with all rows, its classes
weighed alike, scores a row without itself: (Wᵀx − h·y)/(1 − h), h = w·xᵀPx. Its statistics
are kept by class, so that rows come and go by sums and class weights are always current.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcdv.valuation.calibration import Curve, margins
from hcdv.valuation.consistency import context_models
from hcdv.valuation.doubts import KERNEL_RIDGE, LINEAR_RIDGE, Doubts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.points import Case, Points, class_scales
from hcdv.valuation.pointwise import NOTHING, Kept, Probe
from hcdv.valuation.statistics import Statistics
from hcdv.valuation.upkeep import CLASSES, class_code

Floats = NDArray[np.float64]
_LEVERAGE_LIMIT = 0.99


class RowDoubts(NamedTuple):
    """Doubts of some rows."""

    scores: Floats  # (C, b)
    margin: Floats  # (b,)
    chance: Floats  # (b,)
    slope: Floats  # (b,)


def doubted_at_once(
    found: Doubts, source: NDArray[np.integer], touched: NDArray[np.bool_], case: Case,
    probe: Probe,
) -> Doubts:  # fmt: skip
    """Doubts found before, for the rows of now; touched rows are asked about anew.

    The curve from margins to chances stays that of the last refresh.
    """
    now = replace(found, **{
        name: _taken(getattr(found, name), source)
        for name in ("variance", "chance", "margins", "scores", "slope")
    })  # fmt: skip
    rows = np.flatnonzero(touched)
    if len(rows):
        by_class = class_statistics(case, probe)
        points = case.points.take(rows)
        asked = doubts_of(points, probe, by_class, class_mass(case.points), found.curve)
        now.scores[:, rows], now.margins[:, rows] = asked.scores, asked.margin
        now.chance[rows], now.slope[rows] = asked.chance, asked.slope
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


def class_mass(points: Points) -> Floats:
    """What the rows of every class weigh together, (C,); of all rows in regression."""
    own = np.ones(len(points)) if points.weight is None else points.weight
    code = points.target if points.n_classes else np.zeros(len(points), dtype=np.intp)
    mass = np.bincount(code, weights=own, minlength=max(1, points.n_classes))
    return np.asarray(mass, dtype=np.float64)


def class_statistics(case: Case, probe: Probe) -> dict[str, Statistics]:
    """Statistics of every class for each probe that is asked, by the name they are kept under."""
    code = class_code(case).astype(np.intp)
    n_groups = max(1, case.points.n_classes)
    return {
        name: probe.once(
            name, case, Kept(NOTHING, 0, code, n_groups, features=features), None
        )
        for name, features, _ in _probes(probe)
    }


def doubts_of(
    points: Points,
    probe: Probe,
    by_class: dict[str, Statistics],
    mass: Floats,
    curve: Curve,
) -> RowDoubts:
    """What one probe a kind, taught with all rows, says of some; mean over the kinds."""
    said = [
        _left_out(points, by_class[name], mass, features, ridge)
        for name, features, ridge in _probes(probe)
    ]
    scores = np.mean(said, axis=0)
    margin = margins(scores, points)
    chance = curve(margin, points.target)
    return RowDoubts(scores, margin, chance, curve.slope_of_excess(chance, points.target))


def _probes(probe: Probe) -> list[tuple[str, FeatureMap, float]]:
    """Name, features and ridge of the linear and, where it is another, the run's own probe."""
    own = probe.features[0]
    linear = FeatureMap("linear", own.n_inputs)
    kinds = [("linear", linear, LINEAR_RIDGE)]
    if own.kind != "linear":
        kinds.append(("own", own, KERNEL_RIDGE))
    return [(f"{CLASSES} {name}", features, ridge) for name, features, ridge in kinds]


def _left_out(
    points: Points, by_class: Statistics, mass: Floats, features: FeatureMap, ridge: float
) -> Floats:
    """Scores (C, b) of rows by a model of all rows but each itself."""
    scale = class_scales(mass)
    stats = Statistics(
        np.einsum("c,cde->de", scale, by_class.gram)[None],
        np.einsum("c,cde->de", scale, by_class.cross)[None],
    )
    W, root = context_models(
        stats, ridge * float(mass @ scale), None, np.random.default_rng(0)
    )
    x = features(points.Z, np.dtype(float))
    weight = np.ones(len(points)) if points.weight is None else points.weight
    if points.n_classes:
        weight = weight * scale[points.target]
    h = np.minimum(weight * np.square(x @ root[0]).sum(axis=1), _LEVERAGE_LIMIT)
    y = points.targets(slice(None), np.dtype(float))
    return ((x @ W[0] - h[:, None] * y) / (1.0 - h)[:, None]).T
