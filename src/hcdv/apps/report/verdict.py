"""The verdict in words: what the data is worth, what is rotten in it, and what to do next."""

from __future__ import annotations

import shlex
from typing import Any

_CLOSE = 0.01  # of what the probe gains: a selection that loses no more is as good as all
_MANY = 0.01  # of the labels wrong, from which that comes first
_KEPT = 0.3
_WORTH = (
    (0.0, "These rows teach next to nothing"),
    (0.01, "These rows are worth having"),
    (0.25, "These rows are worth a lot"),
)

_SHARE = {
    "accuracy": "right on {0:.1%} of the validation rows",
    "balanced_accuracy": "right on {0:.1%} of the validation rows, each class counted alike",
    "auc": "at an area under the ROC curve of {0:.3f}",
    "loss": "rid of {0:.1%} of a blind guess's error",
    "r2": "explaining {0:.1%} of the variance",
}


def verdict(report: dict[str, Any]) -> dict[str, Any]:
    """A headline, sentences on worth and on what is rotten, and steps with their commands."""
    return {
        "headline": _headline(report),
        "worth": _worth(report),
        "rotten": _rotten(report),
        "next": _next(report),
    }


def said(metric: str, figure: float) -> str:
    """A metric's figure as part of a sentence."""
    return _SHARE[metric].format(round(figure, 4) + 0.0)


def signed(text: str) -> str:
    """With a minus sign as long as a plus sign."""
    return text.replace("-", "−")


def _headline(report: dict[str, Any]) -> str:
    share, n = report["share_wrong"], report["n_suspects"]
    worth = report["surplus"]["total"]
    good = "A model taught with these rows is worse than none"
    for least, said_of_it in _WORTH:
        good = said_of_it if worth >= least else good
    if n and share >= _MANY:
        return f"{good}, and about {share:.0%} of their labels look wrong."
    if n:
        rows = "one label looks" if n == 1 else f"{n:,} labels look"
        return f"{good}; {rows} wrong."
    return f"{good}, and no label is more likely wrong than right."


def _judges(report: dict[str, Any]) -> str:
    """A word on the rows that score, where their labels are as doubtful as all others."""
    many_wrong = report["n_suspects"] > 0 and report["share_wrong"] >= _MANY
    if report["is_judged_by_itself"] and many_wrong:
        return ", whose labels are as given, wrong ones among them"
    return ""


def _worth(report: dict[str, Any]) -> list[str]:
    total, n = report["surplus"]["total"], report["n_rows"]
    together = (
        f"Together the {n:,} rows are worth {signed(f'{total:+.3f}')} over having no data"
    )
    found = [f"{together}, {signed(f'{total / n:+.2e}')} a row on average."]
    if report["curves"]:
        curves = report["curves"][-1]  # the one that says most to a person
        metric, whole, empty = (curves[key] for key in ("metric", "whole", "empty"))
        found.append(
            f"The built-in probe taught with all of them is {said(metric, whole)}"
            f"{_judges(report)}; without any it would be {said(metric, empty)}."
        )
        enough = _enough(report["curves"][0])
        if enough is not None:
            figure = curves["selected"][curves["selected_share"].index(enough)]
            found.append(
                f"A selection of {enough:.0%} of them is enough for nearly as much: taught with "
                f"that alone it is {said(metric, figure)}."
            )
    return found


def _enough(curves: dict[str, Any]) -> float | None:
    """The smallest selection that loses next to nothing of what all rows teach."""
    if curves["whole"] <= curves["empty"]:
        return None
    bar = curves["whole"] - _CLOSE * abs(curves["whole"] - curves["empty"])
    pairs = zip(curves["selected_share"], curves["selected"], strict=True)
    return next((share for share, figure in pairs if figure >= bar), None)


def _rotten(report: dict[str, Any]) -> list[str]:
    n, below = report["n_rows"], report["values"]["n_below_zero"]
    found: list[str] = []
    if report["n_suspects"]:
        found.append(
            f"{_count(report['n_suspects'], 'label is', 'labels are')} more likely wrong than "
            f"right. By the sum of all chances, {report['share_wrong']:.1%} of the labels are "
            f"wrong, about {report['share_wrong'] * n:,.0f}."
        )
    else:
        found.append("No label is more likely wrong than right.")
    if below:
        found.append(
            f"{_count(below, 'row has', 'rows have')} a value below zero ({below / n:.1%}): a "
            "model does better without them, as far as the samples tell."
        )
    lost = [each for each in report["worst_coalitions"] if each["value"] < 0]
    if lost:
        worst = lost[0]
        found.append(
            f"The worst group of similar rows is #{worst['id']}, {worst['size']:,} rows "
            f"({worst['label_mix']}), worth {signed(format(worst['value'], '+.4f'))} together."
        )
    return found


def _next(report: dict[str, Any]) -> list[dict[str, str]]:
    """What to do, and the line that does it: of the shell for a run folder, else of Python."""
    run = report["run"]
    name = "" if run is None else shlex.quote(run)
    share = (_enough(report["curves"][0]) if report["curves"] else None) or _KEPT
    steps: list[dict[str, str]] = []
    k = min(max(report["n_suspects"], 1), 100)
    if report["n_suspects"]:
        steps.append({
            "why": "Look at the labels doubted most, and put right those that are wrong",
            "line": f"hcdv suspects {name} -k {k}" if run else f"v.suspects({k})",
        })  # fmt: skip
    worst = report["worst"][0]["row"] if report["worst"] else 0
    steps.append({
        "why": "See why the row of lowest value has it",
        "line": f"hcdv explain {name} {worst}" if run else f"v.explain({worst})",
    })  # fmt: skip
    kept = f"Keep {share:.0%} of the rows to train on"
    steps.append({
        "why": f"{kept}, a fair share of every label and group",
        "line": f"hcdv select {name} --fraction {share:.2g} -o kept.csv"
        if run
        else f"kept = v.select({share:.2g})",
    })  # fmt: skip
    if run is None:
        steps.append({"why": "Keep this run on disk", "line": 'v.save("run.hcdv")'})
    return steps


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
