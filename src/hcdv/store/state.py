"""A Run as named arrays and plain settings, and back; everything read is checked."""

from __future__ import annotations

from dataclasses import asdict, astuple, fields
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import StoreError
from hcdv.hierarchy.tree import Tree
from hcdv.result import Run
from hcdv.store.shelf import Shelf
from hcdv.targets import Target
from hcdv.valuation.calibration import Curve
from hcdv.valuation.doubts import Doubts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.moments import Moments
from hcdv.valuation.nested import PARTS, Valuation
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case, Judge, Originals, Points
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.utility import LeastSquares, Neighbours, Payoffs, Utility

_LABELS = "biufUSMm"
_OF_ROWS = ("target", "key", "fold", "weight")
_OF_NODES = ("node_stderr", "as_player", "correction")
_OF_DOUBTS = ("agreement", "variance", "chance", "margins", "scores", "slope")
_OF_MOMENTS = ("V", "b", "root")
_OF_FEATURES = ("basis", "offset", "turn")


class NotSaved(Payoffs):
    """Stands in for a utility of the user's own: code is not saved, values are."""

    def __init__(self, what: str) -> None:
        object.__setattr__(self, "what", what)

    def __repr__(self) -> str:
        return f"<not saved: {self.what}>"  # type: ignore[attr-defined]

    @property
    def function(self) -> NoReturn:  # type: ignore[override]
        """What a game would call."""
        raise StoreError(
            f"utility must be passed again to value rows anew, got a loaded run of {self!r}: "
            "code of yours is not saved. Fit again with it; values, selections, suspects and "
            "explanations of this run need no utility."
        )


def put_run(run: Run, shelf: Shelf) -> None:
    """Lay out everything a run is made of."""
    case, found = run.case, run.valuation
    shelf.settings["run"] = {
        "plan": _plan_settings(run.plan),
        "centre": run.target.centre, "scale": run.target.scale,
        "has_classes": run.target.classes is not None,
        "surplus": found.surplus, "valuation_notes": found.notes,
        "seconds": run.seconds, "notes": run.notes, "n_views": len(case.views),
    }  # fmt: skip
    shelf.put("labels", run.target.labels)
    shelf.put("ids", run.canonical_ids)
    if run.target.classes is not None:
        shelf.put("classes", run.target.classes)
    shelf.put_all("tree", run.canonical_tree.arrays())
    _put_case(case, shelf)
    shelf.put_all("part", found.parts)
    shelf.put("stderr", found.stderr)
    shelf.put_all("node", {name: getattr(found, name) for name in _OF_NODES})
    shelf.put_all("doubts", {name: getattr(found.doubts, name) for name in _OF_DOUBTS})
    shelf.put("doubts.curve", np.stack(astuple(found.doubts.curve)))
    _put_probe(found.probe, shelf)


def taken_run(shelf: Shelf) -> Run:
    """The run laid out by `put_run`; KeyError, TypeError or ValueError where it is not one."""
    own = shelf.settings["run"]
    ids = shelf.get("ids", (None,), "iuU")
    n = len(ids)
    target = Target(
        shelf.get("labels", (n,), _LABELS),
        shelf.get("classes", (None,), _LABELS) if own["has_classes"] else None,
        float(own["centre"]), float(own["scale"]),
    )  # fmt: skip
    tree = Tree.from_arrays(shelf.under("tree"))
    if tree.n_rows != n:
        raise ValueError(f"the tree has {tree.n_rows} rows, the run {n}")
    case = _taken_case(shelf, own, n, target)
    return Run(
        case, tree, _plan(own["plan"]), _taken_valuation(shelf, own, n, tree.n_nodes, target, case),
        target, ids, {str(k): float(s) for k, s in own["seconds"].items()},
        [str(note) for note in own["notes"]],
    )  # fmt: skip


def _put_case(case: Case, shelf: Shelf) -> None:
    for k, view in enumerate(case.views):
        shelf.put(f"view {k}.Z", view.Z)
    _put_rows("rows", case.points, shelf)
    shelf.put("position", case.originals.position)
    shelf.put("judging_view", case.judging_view)
    if case.doubters is not None:
        shelf.put("doubters", case.doubters)
    judges: list[dict[str, Any]] = []
    for k, judge in enumerate(case.judges):
        shelf.put(f"judge {k}.eligible", judge.eligible)
        rows = _own_rows(case, judge)
        judges.append({"view": judge.view, "is_of_rows": rows is not None})
        if rows is not None:
            shelf.put(f"judge {k}.rows", rows)
        else:
            shelf.put(f"judge {k}.Z", judge.points.Z)
            _put_rows(f"judge {k}", judge.points, shelf)
    shelf.settings["judges"] = judges


def _own_rows(case: Case, judge: Judge) -> NDArray[np.intp] | None:
    """Which training rows the judge is made of; None if it is a validation set."""
    rows = np.flatnonzero(np.isin(case.points.key, judge.points.key))
    same = len(rows) == len(judge.points) and np.array_equal(
        case.views[judge.view].Z[rows], judge.points.Z
    )
    return rows if same else None


def _put_rows(prefix: str, points: Points, shelf: Shelf) -> None:
    for name in _OF_ROWS:
        if getattr(points, name) is not None:
            shelf.put(f"{prefix}.{name}", getattr(points, name))


def _taken_case(shelf: Shelf, own: dict[str, Any], n: int, target: Target) -> Case:
    judging_view = shelf.index("judging_view", (None,), own["n_views"])
    n_folds = len(judging_view)
    views = [
        _taken_rows("rows", f"view {k}", shelf, n, n_folds, target)
        for k in range(own["n_views"])
    ]
    judges: list[Judge] = []
    judged: list[tuple[None, NDArray[Any]]] = []
    for k, about in enumerate(shelf.settings["judges"]):
        view = range(len(views))[about["view"]]
        if about["is_of_rows"]:
            points = views[view].take(shelf.index(f"judge {k}.rows", (None,), n))
        else:
            n_judge = len(shelf.arrays[f"judge {k}.Z"])
            points = _taken_rows(f"judge {k}", f"judge {k}", shelf, n_judge, 1, target)
            if points.Z.shape[1] != views[view].Z.shape[1]:
                raise ValueError(f"judge {k} and its view differ in width")
        judges.append(
            Judge(points, view, shelf.get(f"judge {k}.eligible", (n_folds,), "b"))
        )
        judged.append((None, _decoded(points, target)))
    position = shelf.index("position", (n,), n)
    if np.bincount(position, minlength=n).max(initial=0) > 1:
        raise ValueError("position must name every row once")
    doubters = (
        shelf.get("doubters", (n_folds, n_folds), "b")
        if "doubters" in shelf.arrays
        else None
    )
    originals = Originals(None, target.labels, judged, position)
    return Case(views, judges, judging_view, originals, doubters)


def _taken_rows(
    prefix: str, of_Z: str, shelf: Shelf, n: int, n_folds: int, target: Target
) -> Points:
    classes = target.n_classes
    of = f"{prefix}.target"
    return Points(
        shelf.get(f"{of_Z}.Z", (n, None), "f"),
        shelf.index(of, (n,), classes) if classes else shelf.get(of, (n,), "f"),
        classes,
        shelf.get(f"{prefix}.key", (n,), "u"),
        shelf.index(f"{prefix}.fold", (n,), n_folds),
        shelf.get(f"{prefix}.weight", (n,), "f")
        if f"{prefix}.weight" in shelf.arrays
        else None,
    )


def _decoded(points: Points, target: Target) -> NDArray[Any]:
    if target.classes is None:
        return points.target * target.scale + target.centre
    return target.classes[points.target]


def _taken_valuation(
    shelf: Shelf, own: dict[str, Any], n: int, m: int, target: Target, case: Case
) -> Valuation:
    n_columns = target.n_classes or 1
    shapes = {"margins": (None, n), "scores": (n_columns, n)}
    doubts = {
        name: shelf.get(f"doubts.{name}", shapes.get(name, (n,)), "f")
        for name in _OF_DOUBTS
    }
    parts = {name: shelf.get(f"part.{name}", (n,), "f") for name in PARTS}
    if not all(np.isfinite(part).all() for part in parts.values()):
        raise ValueError("values must be finite")
    curve = shelf.get("doubts.curve", (3, n_columns), "f")
    return Valuation(
        parts=parts,
        stderr=shelf.get("stderr", (n,), "f"),
        **{name: shelf.get(f"node.{name}", (m,), "f") for name in _OF_NODES},
        surplus={name: float(own["surplus"][name]) for name in PARTS},
        doubts=Doubts(curve=Curve(curve[0], curve[1], curve[2]), **doubts),
        probe=_taken_probe(shelf, n_columns, case),
        notes=dict(own["valuation_notes"]),
    )


def _put_probe(probe: Probe, shelf: Shelf) -> None:
    """The kept statistics stay out: they are large, and gathered again when rows go."""
    for k, features in enumerate(probe.features):
        for name in _OF_FEATURES:
            if getattr(features, name) is not None:
                shelf.put(f"features {k}.{name}", getattr(features, name))
    for k, moments in enumerate(probe.moments):
        shelf.put_all(
            f"moments {k}", {name: getattr(moments, name) for name in _OF_MOMENTS}
        )
    shelf.settings["probe"] = {
        "ridge": float(probe.ridge), "metric": probe.metric,
        "features": [[f.kind, f.n_inputs, f.gamma] for f in probe.features],
        "c": [float(moments.c) for moments in probe.moments],
    }  # fmt: skip


def _taken_probe(shelf: Shelf, n_columns: int, case: Case) -> Probe:
    own = shelf.settings["probe"]
    features: list[FeatureMap] = []
    for k, (kind, n_inputs, gamma) in enumerate(own["features"]):
        held = _taken_features(shelf, k, int(n_inputs))
        features.append(
            FeatureMap(str(kind), int(n_inputs), float(gamma), *map(held.get, _OF_FEATURES))
        )
        if case.views[k].Z.shape[1] != n_inputs:
            raise ValueError(f"features {k} and their view differ in width")
    moments: list[Moments] = []
    for k, c in enumerate(own["c"]):
        width = features[case.judges[k].view].width
        shapes = {"V": (width, width), "b": (width, n_columns), "root": (width, None)}
        V, b, root = (shelf.get(f"moments {k}.{x}", shapes[x], "f") for x in _OF_MOMENTS)
        moments.append(Moments(V, b, float(c), root))
    if len(features) != len(case.views) or len(moments) != len(case.judges):
        raise ValueError("the probe is not that of these views and judges")
    return Probe(features, moments, float(own["ridge"]), str(own["metric"]))


def _taken_features(shelf: Shelf, k: int, n_inputs: int) -> dict[str, NDArray[Any]]:
    names = [name for name in _OF_FEATURES if f"features {k}.{name}" in shelf.arrays]
    if (names and "offset" not in names) or names == ["offset"]:
        raise ValueError(f"features {k} lack their basis or offset")
    width = shelf.arrays[f"features {k}.basis"].shape[-1] if names else 0
    shapes = {"basis": (n_inputs, width), "offset": (width,), "turn": (width, width)}
    return {name: shelf.get(f"features {k}.{name}", shapes[name], "f") for name in names}


def _plan_settings(plan: Plan) -> dict[str, Any]:
    settings = {each.name: getattr(plan, each.name) for each in fields(plan)}
    return settings | {"utility": utility_settings(plan.utility)}


def _plan(settings: dict[str, Any]) -> Plan:
    semivalue = settings["semivalue"]
    return Plan(**{
        **settings,
        "utility": utility_of(settings["utility"]),
        "semivalue": tuple(semivalue) if isinstance(semivalue, list) else semivalue,
    })  # fmt: skip


def utility_settings(utility: Utility) -> dict[str, Any]:
    """A utility as plain settings; of the user's own, only its name."""
    if isinstance(utility, LeastSquares | Neighbours):
        name = "least squares" if isinstance(utility, LeastSquares) else "neighbours"
        return {"type": name, **asdict(utility)}
    if isinstance(utility, NotSaved):
        return {"type": "yours", "what": utility.what}  # type: ignore[attr-defined]
    own = utility.function if isinstance(utility, Payoffs) else utility.estimator
    return {"type": "yours", "what": repr(own)[:200]}


def utility_of(settings: dict[str, Any]) -> Utility:
    """The utility that `utility_settings` described."""
    rest = {name: setting for name, setting in settings.items() if name != "type"}
    if settings["type"] == "yours":
        return NotSaved(str(rest["what"]))
    return {"least squares": LeastSquares, "neighbours": Neighbours}[settings["type"]](
        **rest
    )
