"""Everything the report of a run shows, as plain data: what is drawn is read from here alone."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import hcdv
from hcdv.apps.report.forest import tree_facts
from hcdv.apps.report.looks import looks, said
from hcdv.apps.report.scatter import plane_facts
from hcdv.apps.report.spread import certainty_facts, spread_facts, worth_unit
from hcdv.apps.report.verdict import verdict
from hcdv.apps.summary import MEANING, UNITS, facts
from hcdv.engines.local import one_thread_each
from hcdv.errors import DataError
from hcdv.store import plain
from hcdv.store.saving import versions
from hcdv.uses.curves import Curves, discovery, value_curves

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.estimator import HCDV

N_SUSPECTS, N_ENDS = 24, 12
FORMAT = 1


def report_facts(
    model: HCDV,
    *,
    is_wrong: Any = None,
    rows: bool = True,
    run: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Facts of a fitted model, JSON-able.

    is_wrong: which labels are known to be wrong. rows: show rows as they were given. run:
    what its folder says of it: folder, created, source, sha256.
    """
    wrong = None if is_wrong is None else known_wrong(is_wrong, model.run_.n_rows)
    with one_thread_each():
        found = facts(model)
        doubted = model.suspects()
        curves = value_curves(model.run_)
        # what is loaded lazily may turn out to be damaged: before anything is written
        given = model.given_ if rows else None
        frame = _rows_frame(model, doubted)
        shown = {
            "suspects": frame.iloc[_by_doubt(doubted)],
            "best": frame.nlargest(N_ENDS, "value"),
            "worst": frame.nsmallest(N_ENDS, "value"),
        }
        report = {
            **base(found, run or {}),
            "target": _target(model),
            "values": found["values"],
            **{name: _shown(part, given) for name, part in shown.items()},
            "why_no_rows": None if given is not None else why_no_rows(asked=rows),
            "tree": tree_facts(model, given),
            "plane": plane_facts(model, doubted),
            "spread": spread_facts(frame, _class_names(model)),
            "certainty": certainty_facts(
                frame["value"].to_numpy(), frame["stderr"].to_numpy()
            ),
            "curves": [curve_facts(each) for each in curves],
            "why_no_curves": None,
            "is_judged_by_itself": not all(
                j.eligible.all() for j in model.run_.case.judges
            ),
            "discovery": None if wrong is None else discovery_facts(model, doubted, wrong),
            "settings": _settings(model),
            "provenance": _provenance(model, run or {}),
        }
    n_stale = int(model.stale_.sum())
    if n_stale:
        stale = (
            f"{n_stale:,} values are corrected, not computed anew since rows came or went"
        )
        report["notes"] = [*report["notes"], f"{stale}: hcdv refresh does"]
    return plain({**report, "verdict": verdict(plain(report))})


def base(found: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """What the reports of both kinds of runs begin with, from the facts of a summary."""
    parts = [
        {"name": name, "value": part, "meaning": MEANING[name].format(unit=UNITS[found["metric"]])}
        for name, part in found["surplus_parts"].items()
    ]  # fmt: skip
    names = ("n_rows", "n_columns", "n_classes", "method", "metric", "seed", "notes")
    return {
        "format": FORMAT,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "run": run.get("folder"),
        "source": run.get("source") or {},
        **{name: found[name] for name in names},
        "surplus": {"total": found["surplus"], "parts": parts},
        "unit": worth_unit(found["surplus"], found["n_rows"]),
        "n_suspects": found["n_suspects"],
        "share_wrong": found["share_wrong"],
        "best_coalitions": found["best_coalitions"],
        "worst_coalitions": found["worst_coalitions"],
        "checks": check_facts(found["checks"]),
    }


def known_wrong(is_wrong: Any, n_rows: int) -> NDArray[np.bool_]:
    """The mask of wrong labels, checked."""
    mask = np.asarray(is_wrong)
    if (
        mask.shape != (n_rows,)
        or mask.dtype.kind not in "biu"
        or not np.isin(mask, (0, 1)).all()
    ):
        raise DataError(
            f"is_wrong must hold True or False for each of {n_rows:,} rows, got "
            f"{mask.dtype} of shape {mask.shape}. Of row numbers, make one: "
            "np.isin(np.arange(n), rows)."
        )  # fmt: skip
    mask = mask.astype(bool)
    if not mask.any() or mask.all():
        raise DataError(
            f"is_wrong must mark some labels and not all, got {int(mask.sum()):,} of "
            f"{n_rows:,}. Leave it out where the truth is not known."
        )
    return mask


def why_no_rows(*, asked: bool) -> str:
    """Why rows are told by number alone."""
    if not asked:
        return "The rows themselves were left out of this report, as asked."
    return "The rows were not kept with the run, so they are told by number."


def curve_facts(curves: Curves) -> dict[str, Any]:
    """Curves as lists, with the words that say whose metric it is."""
    return {
        "metric": curves.metric, "share": curves.share, "best": curves.best,
        "worst": curves.worst, "random": curves.random, "empty": curves.empty,
        "whole": curves.whole, "selected_share": curves.selected_share,
        "selected": curves.selected,
    }  # fmt: skip


def discovery_facts(
    model: HCDV, doubted: pd.DataFrame, wrong: NDArray[np.bool_]
) -> dict[str, Any]:
    """How soon wrong labels are met, by doubt and by value."""
    orders = {
        "doubt": doubted["row"].to_numpy(),
        "value": np.argsort(model.values_, kind="stable"),
    }
    found = {name: vars(discovery(order, wrong)) for name, order in orders.items()}
    return {"n_wrong": int(wrong.sum()), **found}


def check_facts(checks: dict[str, Any]) -> list[dict[str, Any]]:
    """Sums that must hold and correlations that should, each with its figure."""
    found: list[dict[str, Any]] = []
    sums = "sum_error", "values add up to the surplus"
    tree = "tree_error", "coalitions add up to their parents, down to the rows"
    for key, what in (sums, tree):
        need = "semivalue" not in checks or key != "sum_error"
        found.append({
            "what": what, "figure": f"off by {checks[key]:.1e} of their size",
            "holds": bool(checks[key] <= 1e-9) if need else None,
        })  # fmt: skip
    found.append({
        "what": "the sum of all values, and the surplus", "holds": None,
        "figure": f"{checks['sum_of_values']:+.12f} and {checks['surplus']:+.12f}",
    })  # fmt: skip
    if checks.get("sum_before_correction") is not None:
        error = checks.get("stderr_before_correction") or 0.0
        found.append({
            "what": "the sum of the rows' samples before it was set to the surplus",
            "figure": f"{checks['sum_before_correction']:+.4f} ± {error:.4f}", "holds": None,
        })  # fmt: skip
    for name, figure in checks.items():
        if name.startswith("spearman_surrogate_") and figure is not None:
            metric = name.removeprefix("spearman_surrogate_").replace("_", " ")
            found.append({
                "what": f"what is optimised ranks coalitions as {metric} does",
                "figure": f"rank correlation {figure:.2f}", "holds": bool(figure >= 0.8),
            })  # fmt: skip
    return found


def _rows_frame(model: HCDV, doubted: pd.DataFrame) -> pd.DataFrame:
    """One line a row: what the lists of rows and the distributions need."""
    import pandas as pd

    by_row = doubted.sort_values("row", kind="stable")
    return pd.DataFrame({
        "row": np.arange(model.run_.n_rows), "id": model.ids_, "value": model.values_,
        "stderr": model.stderr_, "given": by_row["given"].to_numpy(),
        "suggested": by_row["suggested"].to_numpy(),
        "probability": by_row["probability"].to_numpy(),
    })  # fmt: skip


def _by_doubt(doubted: pd.DataFrame) -> NDArray[np.intp]:
    flagged = doubted.loc[doubted["is_suspect"], "row"]
    return flagged.to_numpy()[:N_SUSPECTS].astype(np.intp)


def _shown(frame: pd.DataFrame, given: Any) -> list[dict[str, Any]]:
    """Rows with what they look like."""
    found = frame.to_dict("records")
    seen = [None] * len(found) if given is None else looks(given, frame["id"].to_numpy())
    for each, look in zip(found, seen, strict=True):
        each["look"] = look
    return [{str(key): cell for key, cell in each.items()} for each in found]


def _class_names(model: HCDV) -> list[Any] | None:
    classes = model.run_.target.classes
    return None if classes is None else classes.tolist()


def _target(model: HCDV) -> dict[str, Any]:
    target = model.run_.target
    if target.classes is None:
        return {"kind": "numbers", "mean": target.centre, "spread": target.scale}
    return {"kind": "classes", "n": target.n_classes}


def _settings(model: HCDV) -> list[tuple[str, str]]:
    """Settings that are not the default first, the others after."""
    import inspect

    defaults = inspect.signature(type(model).__init__).parameters
    own = model.get_params(deep=False)
    changed = [name for name in own if str(own[name]) != str(defaults[name].default)]
    rest = [name for name in own if name not in changed]
    return [(name, said(str(own[name]), 120)) for name in (*changed, *rest)]


def _provenance(model: HCDV, run: dict[str, Any]) -> list[tuple[str, str]]:
    mark = hashlib.sha256(np.ascontiguousarray(model.values_).tobytes())
    mark.update("\0".join(model.ids_.astype(str)).encode())
    seconds = {name: s for name, s in model.run_.seconds.items() if name != "estimated"}
    spent = ", ".join(f"{name} {each:.1f} s" for name, each in seconds.items())
    lines = [
        *source_lines(run),
        ("values", f"sha256 {mark.hexdigest()[:32]}… of values and ids"),
        ("time spent", spent),
    ]
    history = model.run_.living.history if model.run_.living is not None else []
    if len(history) > 1:
        lines.append(("updates", f"{len(history) - 1:,} since the fit"))
    return [*lines, *made_with(run.get("versions") or versions())]


def source_lines(run: dict[str, Any]) -> list[tuple[str, str]]:
    """Where the rows are from, and which run this is."""
    source = run.get("source") or {}
    lines = [(str(name), said(each, 200)) for name, each in source.items() if each]
    names = {"folder": "run", "created": "valued"}
    lines += [(told, said(run[name], 200)) for name, told in names.items() if run.get(name)]
    if run.get("sha256"):
        lines.append(("record of the run", f"sha256 {run['sha256'][:32]}…"))
    return lines


def made_with(found: dict[str, str]) -> list[tuple[str, str]]:
    """Versions in a line."""
    packages = ", ".join(f"{name} {each}" for name, each in found.items())
    return [("made with", f"hcdv {hcdv.__version__}; {packages}")]
