"""Payouts on paper: as text, as CSV, and as one page with a statement for every seller."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcdv.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.uses.marketplace import Payouts

FILES = ("payouts.csv", "statements.csv", "statements.html", "replication.csv")
_COALITIONS = 5
_SHOWN = 20  # sellers of a terminal
_BASES = {
    "sellers": "the Shapley value of each seller, as one player among the others",
    "rows": "the sum of what each seller's rows are worth",
    "model": "the Shapley value of each seller, with your model taught anew on every coalition",
}
_ANEW = {True: "Other samples", False: "Other rows to judge by"}
_REFERENCES = {
    "sum_of_rows": "sums of row values", "game": "the game among sellers",
    "leave_one_out": "leaving one seller out", "model_game": "the game with your model",
    "model_leave_one_out": "leaving one out, with your model",
}  # fmt: skip
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1d2733;background:#fff;max-width:62rem;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.4rem}
h3{font-size:1rem;margin-bottom:.3rem}p{margin:.4rem 0}.quiet{color:#5b6876}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
th{text-align:left;border-bottom:2px solid #1d2733;font-weight:600}
td,th{padding:.3rem 0 .3rem .8rem;vertical-align:top}
td:first-child,th:first-child{padding-left:0}td{border-bottom:1px solid #d9dfe6}
.n{text-align:right;white-space:nowrap}tfoot td{font-weight:600;border-bottom:0}
.bar{display:block;height:.7rem;background:#3b75af;border-radius:2px;min-width:1px}
.barcell{width:24%;padding:.6rem 0 0 .8rem}
section{border-top:1px solid #b9c3cf;margin-top:2rem;break-inside:avoid}
.warn{border-left:4px solid #c77700;padding-left:.8rem;margin:.6rem 0}
@media print{body{margin:0;max-width:none}}
"""


def write(payouts: Payouts, folder: Any) -> Path:
    """The files of a payout in a new folder, all or nothing."""
    import shutil
    import tempfile

    place = Path(folder)
    if place.exists():
        raise DataError(f"folder must be new, got '{place}', which exists. Name another.")
    if not place.parent.is_dir():
        raise DataError(
            f"folder must lie in one that exists, got '{place}'. Make that first."
        )
    made = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        for name, content in files_of(payouts).items():
            (made / name).write_text(content, encoding="utf-8")
        made.chmod(0o755)
        made.rename(place)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return place


def files_of(payouts: Payouts) -> dict[str, str]:
    """Names and contents of the files."""
    table = payouts.table.copy()
    table["amount"] = table["amount"].map(str)
    table.insert(6, "currency", payouts.facts["currency"] or "")
    found = {
        "payouts.csv": table.to_csv(index=False),
        "statements.csv": payouts.statements.to_csv(index=False),
        "statements.html": page(payouts),
    }
    if len(payouts.replication):
        found["replication.csv"] = payouts.replication.to_csv(index=False)
    return found


def text(payouts: Payouts) -> str:
    """The payouts for a terminal."""
    facts, table = payouts.facts, payouts.table
    ranked = table.sort_values("amount", ascending=False, kind="stable")
    lines = [
        f"{_money(facts['revenue'], facts)} to {len(table):,} sellers, {facts['rule']}",
        f"paid by       {_BASES[facts['basis']]} ({facts['metric']})",
        "",
    ]
    width = max(6, *(len(str(name)) for name in ranked["seller"].head(_SHOWN)))
    lines.append(
        f"{'seller':<{width}}  {'rows':>7}  {'value':>10}  {'give or take':>12}  "
        f"{'share':>6}  {'amount':>14}  give or take"
    )
    lines += [
        f"{one['seller']!s:<{width}}  {one['rows']:>7,}  {one['value']:>+10.4g}  "
        f"{_unless_unknown(one['stderr'], '.1g'):>12}  {one['share']:>6.1%}  {one['amount']:>14,}  "
        f"{_error(one['amount_stderr'], facts)}"
        for one in ranked.head(_SHOWN).to_dict("records")
    ]
    if len(ranked) > _SHOWN:
        lines.append(f"… {len(ranked) - _SHOWN:,} more")
    lines += ["", f"Gini          {facts['gini']:.3f} (0: all alike)"]
    lines += [
        f"{'beside' if i == 0 else '':<14}{_REFERENCES[one['reference']]}: "
        f"Pearson {_known(one['pearson'])}, Spearman {_known(one['spearman'])}"
        for i, one in enumerate(payouts.agreement.to_dict("records"))
    ]
    lines += [
        f"{'notes' if i == 0 else '':<14}{note}" for i, note in enumerate(payouts.notes)
    ]
    return "\n".join(lines)


def page(payouts: Payouts) -> str:
    """One self-contained page: the table, how it was made, and a statement a seller."""
    facts = payouts.facts
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width,initial-scale=1'>",
        f"<title>Payouts</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(_money(facts['revenue'], facts))} to {len(payouts.table):,} sellers</h1>",
        _how(facts),
        *(f"<p class='warn'>{escape(note)}</p>" for note in payouts.notes),
        _summary(payouts),
        _references(payouts),
        _replication(payouts),
        "<h2>Statements</h2>",
        *_statements(payouts),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _how(facts: dict[str, Any]) -> str:
    return (
        f"<p class='quiet'>Shared {escape(facts['rule'])}. A seller's value is "
        f"{escape(_BASES[facts['basis']])}, judged by {escape(facts['metric'])}.</p>"
    )


def _summary(payouts: Payouts) -> str:
    facts = payouts.facts
    top = max(float(payouts.table["share"].max()), 1e-12)
    rows = [
        f"<tr><td>{escape(str(one['seller']))}</td><td class='n'>{one['rows']:,}</td>"
        f"<td class='n'>{_value(one)}</td>"
        f"<td class='n'>{one['share']:.1%}</td>"
        f"<td class='n'>{one['amount']:,} ± {_error(one['amount_stderr'], facts)}</td>"
        f"<td class='barcell'><span class='bar' style='width:{100 * one['share'] / top:.1f}%'>"
        "</span></td></tr>"
        for one in payouts.table.to_dict("records")
    ]
    return (
        "<table><thead><tr><th>Seller</th><th class='n'>Rows</th><th class='n'>Value</th>"
        f"<th class='n'>Share</th><th class='n'>Amount{_unit(facts)}</th><th></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody><tfoot><tr><td>All</td>"
        f"<td class='n'>{int(payouts.table['rows'].sum()):,}</td>"
        f"<td class='n'>{payouts.table['value'].sum():+.4g}</td><td class='n'></td>"
        f"<td class='n'>{_grouped(facts['revenue'])}</td><td></td></tr></tfoot></table>"
        "<p class='quiet'>± is one standard error: "
        + (
            "from the contexts that were sampled."
            if facts["basis"] == "rows"
            else "from which rows happened to judge, where the metric allows it, and from what "
            "was sampled."
        )
        + f" Gini coefficient of the amounts: {facts['gini']:.3f} (0: all alike).</p>"
    )


def _references(payouts: Payouts) -> str:
    if payouts.agreement.empty:
        return ""
    rows = [
        f"<tr><td>{escape(_REFERENCES[one['reference']])}</td>"
        f"<td class='n'>{_known(one['pearson'])}</td>"
        f"<td class='n'>{_known(one['spearman'])}</td></tr>"
        for one in payouts.agreement.to_dict("records")
    ]
    return (
        "<h2>Beside other ways to value a seller</h2><table><thead><tr><th>Reference</th>"
        "<th class='n'>Pearson</th><th class='n'>Spearman</th></tr></thead><tbody>"
        f"{''.join(rows)}</tbody></table>"
    )


def _replication(payouts: Payouts) -> str:
    if payouts.replication.empty:
        return ""
    digits = payouts.facts["digits"]
    rows = [
        f"<tr><td>{escape(str(one['seller']))}</td><td>{escape(one['move'])}</td>"
        f"<td class='n'>{one['value_before']:+.4g}</td>"
        f"<td class='n'>{one['value_after']:+.4g}</td>"
        f"<td class='n'>{one['amount_gain']:+,.{digits}f}</td></tr>"
        for one in payouts.replication.to_dict("records")
    ]
    return (
        "<h2>What copying would pay</h2><p class='quiet'>Measured by valuing everything again."
        "</p><table><thead><tr><th>Seller</th><th>if it</th><th class='n'>Value</th>"
        "<th class='n'>then</th><th class='n'>It would get more by</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _statements(payouts: Payouts) -> Iterator[str]:
    of = dict(list(payouts.statements.groupby("seller", sort=False)))
    for one in payouts.table.to_dict("records"):
        yield _statement(payouts.facts, one, of[one["seller"]])


def _statement(facts: dict[str, Any], one: dict[str, Any], own: pd.DataFrame) -> str:
    low = max(0.0, float(one["amount"]) - 1.96 * one["amount_stderr"])
    high = float(one["amount"]) + 1.96 * one["amount_stderr"]
    digits = facts["digits"]
    sure = (
        f" {_ANEW[facts['basis'] == 'rows']} would pay between {low:,.{digits}f} and "
        f"{high:,.{digits}f}, nineteen times in twenty."
        if one["amount_stderr"] > 0
        else ""
    )
    copied = (
        f" {one['also_elsewhere']:,} of them another seller offers too."
        if one["also_elsewhere"]
        else ""
    )
    shown = own.head(_COALITIONS)
    if len(own) > _COALITIONS and own["value"].iloc[-1] < 0:
        shown = own.iloc[[*range(_COALITIONS - 1), -1]]
    rows = [
        f"<tr><td>{escape(str(each['description']))}</td><td class='n'>{each['rows']:,}</td>"
        f"<td class='n'>{each['value']:+.3g}</td>"
        f"<td class='n'>{each['share_of_value']:.1%}</td></tr>"
        for each in shown.to_dict("records")
    ]
    return (
        f"<section><h3>{escape(str(one['seller']))}: "
        f"{escape(_money(str(one['amount']), facts))}</h3>"
        f"<p>{one['rows']:,} rows, worth {_value(one)}; "
        f"{one['share']:.1%} of the revenue.{sure}{copied}</p>"
        "<table><thead><tr><th>For rows of</th><th class='n'>Rows</th><th class='n'>Value</th>"
        f"<th class='n'>Of its value</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
        "</section>"
    )


def _money(amount: str, facts: dict[str, Any]) -> str:
    shown = _grouped(amount)
    return f"{facts['currency']} {shown}" if facts["currency"] else shown


def _grouped(amount: str) -> str:
    whole, point, rest = amount.partition(".")
    return f"{int(whole):,}{point}{rest}"


def _unit(facts: dict[str, Any]) -> str:
    return f", {escape(facts['currency'])}" if facts["currency"] else ""


def _error(amount: float, facts: dict[str, Any]) -> str:
    return _unless_unknown(amount, f",.{facts['digits']}f")


def _value(one: dict[str, Any]) -> str:
    return f"{one['value']:+.4g} ± {_unless_unknown(one['stderr'], '.1g')}"


def _unless_unknown(number: float, form: str) -> str:
    return "unknown" if math.isnan(number) else f"{number:{form}}"


def _known(number: float | None) -> str:
    return "–" if number is None or math.isnan(number) else f"{number:.2f}"
