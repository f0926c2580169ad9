"""One HTML file from the facts of a report: it fetches nothing and runs its own script alone."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from hcdv.apps.report import figures, verdict
from hcdv.apps.report.verdict import signed

MARK = (
    "<!-- a report of hcdv -->"  # by which a file is known to be one, and may be replaced
)
_TEMPLATES = Path(__file__).parent / "templates"
_FOR_SCRIPT = ("tree", "plane", "unit", "surplus", "n_rows")


def page(report: dict[str, Any]) -> str:
    """The report as HTML."""
    style = _text("palette.css") + _text("report.css")
    script = _text("report.js")
    worth = Worth(report["unit"])
    return _template().render(
        r=report, mark=MARK, style=style, script=script, style_hash=_sha256(style),
        script_hash=_sha256(script), data=_for_script(report), worth=worth, said=verdict.said,
        drawn=_drawn(report, worth), title=title(report), signed=signed, chance=chance,
    )  # fmt: skip


class Worth:
    """Values as a person reads them: times an average row, or as they are."""

    def __init__(self, unit: dict[str, Any]) -> None:
        self.size, self.is_average = unit["size"], unit["is_average"]

    def __call__(self, value: float | None) -> str:
        """+1.8×, −62×; +3.1e-05 where an average row is worth next to nothing."""
        if value is None:
            return "–"
        share = value / self.size
        if share == 0:
            return "0"
        if not self.is_average:
            return signed(f"{share:+.2e}")
        size = abs(share)
        digits = 0 if size >= 9.95 else 1 if size >= 2 else 2 if size >= 0.095 else 3
        text = f"{share:+,.{digits}f}"
        return signed(f"{share:+.0e}" if float(text.replace(",", "")) == 0 else text) + "×"

    def tick(self, value: float) -> str:
        """As short as can be."""
        share = value / self.size
        if share == 0:
            return "0"
        text = f"{share:+.2g}" if 1e-3 <= abs(share) < 100 else f"{share:+,.0f}"
        if not self.is_average or abs(share) < 1e-3:
            text = f"{share:+.0e}"
        return signed(text) + ("×" if self.is_average else "")


def chance(probability: float) -> str:
    """A chance; none is told as certain."""
    if probability > 0.999:
        return "> 99.9 %"
    return f"{100 * probability:.1f} %"


def title(report: dict[str, Any]) -> str:
    """The question that the page answers, with the name of the file if there is one."""
    table = str(report["source"].get("table") or "")
    name = Path(table).name or table
    return (
        f"What the rows of {name} are worth"
        if name
        else f"What {report['n_rows']:,} rows are worth"
    )


def _drawn(report: dict[str, Any], worth: Worth) -> dict[str, Any]:
    """Every figure that needs no script."""
    parts = [part["value"] for part in report["surplus"]["parts"]]
    found: dict[str, Any] = {
        "parts": figures.bar(parts), "groups": _groups(report["tree"]),
        "hills": figures.hills(report["spread"], worth.size, worth.tick),
        "heat": figures.heat(report["certainty"], worth.size, worth.tick),
    }  # fmt: skip
    found["curves"] = [_curves(each) for each in report["curves"]]
    if report.get("discovery"):
        both = report["discovery"]
        found["discovery"] = figures.chart([
            ("any", (0.0, 1.0), (0.0, 1.0)),
            ("worst", both["value"]["looked"], both["value"]["found"]),
            ("best", both["doubt"]["looked"], both["doubt"]["found"]),
        ])  # fmt: skip
    return found


def _curves(curves: dict[str, Any]) -> dict[str, Any]:
    """Removal and addition: the same models, read from either end."""
    percent, share = curves["metric"] != "auc", curves["share"]
    without = [1 - each for each in share]
    removal = figures.chart(
        [
            ("any", without, curves["random"]), ("worst", without, curves["best"]),
            ("best", without, curves["worst"]),
        ], percent=percent,
    )  # fmt: skip
    addition = figures.chart(
        [
            ("any", share, curves["random"]), ("worst", share, curves["worst"]),
            ("best", share, curves["best"]),
        ], dots=(curves["selected_share"], curves["selected"]), percent=percent,
    )  # fmt: skip
    return {"removal": removal, "addition": addition}


def _groups(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The coalitions of the first level, whose worth sums to the surplus, and their bar."""
    names = ("id", "size", "value", "stderr")
    rows = [
        {**{name: tree[name][at] for name in names}, "words": in_words(tree, at)}
        for at, level in enumerate(tree["level"])
        if level == 1
    ]
    rows.sort(key=lambda each: -each["value"])
    shapes = figures.bar([each["value"] for each in rows])
    return [{**each, "bar": shape} for each, shape in zip(rows, shapes, strict=True)]


def in_words(tree: dict[str, Any], at: int) -> str:
    """A coalition in the data's own words: its name, its traits, or its labels."""
    if tree.get("name") and tree["name"][at]:
        return str(tree["name"][at])
    traits = (tree.get("traits") or [[]] * (at + 1))[at]
    mix = str(tree["mix"][at])
    said = mix if mix.startswith("mean ") else f"label {mix}"
    return ", ".join(trait[0] for trait in traits) or said


def _for_script(report: dict[str, Any]) -> str:
    """Facts that the script draws, as JSON that no text in it can break out of."""
    text = json.dumps(
        {name: report[name] for name in _FOR_SCRIPT}, ensure_ascii=False,
        allow_nan=False, separators=(",", ":"),
    )  # fmt: skip
    escapes = {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
    }
    return text.translate(str.maketrans(escapes))


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report.html")


def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
