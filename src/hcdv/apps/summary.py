"""What a run found: facts as plain data, and the same facts as text for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hcdv.store import plain

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.estimator import HCDV

N_COALITIONS = 3
N_SUSPECTS = 5
MEANING = {
    "utility": "what they teach a model: {unit}",
    "dispersion": "how far apart they keep the classes, times its weight λ",
    "consistency": "nothing in sum: labels that look wrong pay the others, times their weight κ",
}
UNITS = {
    "loss": "share of a blind guess's error that goes (1: all)",
    "r2": "share of the variance explained (1: all)",
    "accuracy": "accuracy gained over a blind guess",
    "balanced_accuracy": "balanced accuracy gained over a blind guess",
    "auc": "area under the ROC curve gained over a blind guess",
}


def facts(model: HCDV, n_coalitions: int = N_COALITIONS) -> dict[str, Any]:
    """Everything a summary shows, JSON-able."""
    run = model.run_
    values, target = run.values, run.target
    doubted = model.suspects()
    flagged = doubted[doubted["is_suspect"]]
    ranked = ranked_coalitions(model)
    shown = _with_words(model, ranked[:n_coalitions] + ranked[::-1][:n_coalitions])
    return plain({
        "n_rows": run.n_rows,
        "n_columns": int(model.n_features_in_),
        "n_classes": target.n_classes or None,
        "method": run.plan.method,
        "metric": run.plan.metric,
        "seed": run.plan.seed,
        "surplus": run.surplus,
        "surplus_parts": run.valuation.surplus,
        "values": {
            "mean": values.mean(), "min": values.min(), "max": values.max(),
            "median_stderr": np.median(run.stderr), "n_below_zero": int((values < 0).sum()),
            "best_rows": np.argsort(-values, kind="stable")[:5],
            "worst_rows": np.argsort(values, kind="stable")[:5],
        },
        "n_coalitions": run.canonical_tree.n_nodes - 1,
        "best_coalitions": shown[: len(shown) // 2],
        "worst_coalitions": shown[len(shown) // 2 :],
        "n_suspects": len(flagged),
        "share_wrong": run.valuation.doubts.chance.mean(),
        "suspects": flagged.head(N_SUSPECTS).to_dict("records"),
        "checks": run.checks,
        "notes": run.notes,
        "seconds": {name: round(each, 3) for name, each in run.seconds.items()},
    })  # fmt: skip


def ranked_coalitions(model: HCDV) -> list[dict[str, Any]]:
    """Leaves by what a row of them is worth on average, the best first."""
    return ranked(model.coalitions_)


def ranked(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """As ranked_coalitions, from the table of coalitions."""
    leaves = np.setdiff1d(frame["id"], frame["parent"])
    held = frame[frame["id"].isin(leaves) & (frame["size"] > 0)]
    order = held.sort_values("value_per_row", ascending=False, kind="stable")
    columns = ["id", "level", "size", "value", "stderr", "value_per_row", "label_mix"]
    return order[[*columns, *(["name"] if "name" in order else [])]].to_dict("records")


def _with_words(model: HCDV, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Coalitions, each with what sets it apart."""
    told = model.describe([each["id"] for each in found])["description"]
    return [{**each, "description": said} for each, said in zip(found, told, strict=True)]


def text(found: dict[str, Any]) -> str:
    """The facts in words, for someone who meets them for the first time."""
    blocks = (_surplus, _values, _coalitions, _suspects, _checks, _notes)
    return "\n".join([_data(found), *(line for block in blocks for line in block(found))])


def _data(found: dict[str, Any]) -> str:
    classes = (
        f", {found['n_classes']} classes" if found["n_classes"] else ", a number to predict"
    )
    seconds = sum(found["seconds"].values())
    return (
        f"{found['n_rows']:,} rows, {_count(found['n_columns'], 'column')}{classes}; "
        f"{seconds:.1f} s, seed {found['seed']}"
    )


def _surplus(found: dict[str, Any]) -> list[str]:
    total = (
        f"{found['surplus']:+.4f}  what all rows are worth together, over having no data"
    )
    parts = [
        f"  {name:<12}{part:+.4f}  {MEANING[name].format(unit=UNITS[found['metric']])}"
        for name, part in found["surplus_parts"].items()
    ]
    return [f"surplus       {total}", *parts]


def _values(found: dict[str, Any]) -> list[str]:
    values, n = found["values"], found["n_rows"]
    below = values["n_below_zero"]
    span = f"from {values['min']:+.2e} to {values['max']:+.2e}"
    error = f"give or take {values['median_stderr']:.0e}"
    ends = (
        f"the best: {_rows(values['best_rows'])}; the worst: {_rows(values['worst_rows'])}"
    )
    return [
        f"values        {values['mean']:+.2e} a row on average, {span}, {error}",
        "              above zero the row helps, below zero the model is better off without it",
        f"              {below:,} of {n:,} rows ({below / n:.1%}) are below zero; {ends}",
    ]


def _coalitions(found: dict[str, Any]) -> list[str]:
    if not found["n_coalitions"]:
        return ["coalitions    none: the rows are too few to be split (see --leaf-size)"]
    lines = [
        f"coalitions    {found['n_coalitions']:,} groups of similar rows; worth by row:"
    ]
    best, worst = found["best_coalitions"], found["worst_coalitions"]
    shown = {each["id"] for each in best}
    worst = [each for each in worst if each["id"] not in shown]
    for rank, some in (("best ", best), ("worst", worst)):
        lines += [line for each in some for line in _coalition(rank, each)]
    return lines


def _coalition(rank: str, each: dict[str, Any]) -> list[str]:
    name = f"{each['name']} " if each.get("name") else ""
    worth = f"{each['value_per_row']:+.2e} a row, {each['size']:>5,} rows"
    first = f"  {rank} #{each['id']:<5} {worth}  {name}({each['label_mix']})"
    said = each.get("description")
    return [first, f"               {said}"] if said else [first]


def _suspects(found: dict[str, Any]) -> list[str]:
    n, first = found["n_suspects"], found["suspects"]
    if not n:
        return ["suspects      none: no label is more likely wrong than right"]
    shown = ", ".join(
        f"{each['row']} ({_label(each['given'])}, rather {_label(each['suggested'])})"
        for each in first
    )
    more = f", … {n - len(first):,} more" if n > len(first) else ""
    said = f"{_count(n, 'label')} more likely wrong than right: {shown}{more}"
    share = (
        f"{found['share_wrong']:.1%} of all labels are wrong, by the sum of their chances"
    )
    return [f"suspects      {said}", f"{'':<14}{share}"]


def _checks(found: dict[str, Any]) -> list[str]:
    checks = found["checks"]
    values = (
        f"values add up to the surplus (off by {checks['sum_error']:.0e} of their size)"
    )
    nodes = f"coalitions to their rows (off by {checks['tree_error']:.0e})"
    lines = [f"checks        {values}, {nodes}"]
    if checks["sum_error"] > 1e-9 and "semivalue" in checks:
        lines = [
            f"checks        {checks['semivalue']} values need not add up to the surplus"
        ]
    for name, correlation in checks.items():
        if name.startswith("spearman_surrogate_") and correlation is not None:
            metric = name.removeprefix("spearman_surrogate_")
            lines.append(
                f"              what is optimised ranks coalitions as {metric} does: "
                f"correlation {correlation:.2f}"
            )
    return lines


def _notes(found: dict[str, Any]) -> list[str]:
    return [
        f"{'notes' if i == 0 else '':<14}{note}" for i, note in enumerate(found["notes"])
    ]


def suspects_text(frame: pd.DataFrame, n_more: int) -> str:
    """Suspects as a table, a line each."""
    if frame.empty:
        return "no suspects: no label is more likely wrong than right"
    shown = frame.drop(columns=["is_suspect", "score"], errors="ignore")
    if "id" in shown and (shown["id"].astype(str) == shown["row"].astype(str)).all():
        shown = shown.drop(columns="id")
    lines = [shown.to_string(index=False, float_format="{:.3f}".format)]
    if n_more:
        lines.append(f"… {n_more:,} more; -k N shows N, --csv writes all")
    return "\n".join(lines)


def _label(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _rows(rows: list[int]) -> str:
    return ", ".join(map(str, rows))


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")
