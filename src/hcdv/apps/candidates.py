"""`hcdv augment`: which rows of another table are worth adding to the one that was valued."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hcdv.apps.console import as_json, one_format, step
from hcdv.apps.options import COUNT, FILE

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.estimator import HCDV

_SHOWN = 5
_KINDS = {  # how a reason to drop begins → what it is called in the verdict
    "a copy of": "copies of rows of the data or of earlier candidates",
    "label probably wrong": "labels more likely wrong than right",
    "worth less than": "worth less than nothing",
    "place": "others of their class come first",
}


@dataclass(frozen=True)
class Candidates:
    """A table of candidates taken apart."""

    X: Any
    y: Any  # None: it has no labels
    groups: Any


@click.command()
@click.argument("run", type=FILE)
@click.argument("candidates", type=FILE)
@click.option(
    "--keep", type=COUNT, metavar="N", help="Choose at most so many, each with its reason."
)
@click.option(
    "--group",
    metavar="COLUMN",
    help="Compare the candidates by this column, such as how or by whom they were made.",
)
@click.option(
    "--unlabelled",
    is_flag=True,
    help="Leave labels out of account: which rows would be worth labelling?",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="File to write the kept rows of CANDIDATES to; it must be new. Needs --keep.",
)
@click.option(
    "--csv", "csv_", is_flag=True, help="Print a line for every candidate as CSV."
)
@click.option("--json", "json_", is_flag=True, help="Print JSON, for other programs.")
def augment(
    run: Path, candidates: Path, keep: int | None, group: str | None, output: Path | None,
    *, unlabelled: bool, csv_: bool, json_: bool,
) -> None:  # fmt: skip
    """Value the rows of CANDIDATES, which are not in RUN, by what each would add to it.

    Its columns are those of the table that was valued. Without the column of labels, the
    value is what is expected over the labels the models hold for possible. RUN stays as it
    is: hcdv update takes rows in.

    \b
    hcdv augment iris.hcdv made.csv --keep 1000 --group transformation -o kept.csv
    hcdv augment iris.hcdv unlabelled.csv --keep 50 -o label-these.csv
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps.writing import refuse_unless_writable, write_some
    from hcdv.store import load, plain

    one_format(csv_=csv_, json_=json_)
    if output is not None:
        if keep is None:
            raise click.UsageError("-o needs --keep N, the number of rows to write.")
        refuse_unless_writable(output)
    model = load(run)
    step(f"reading {candidates}", quiet=csv_ or json_)
    held = _read(run, model, candidates, group, unlabelled=unlabelled)
    step(f"valuing {len(held.X):,} candidates", quiet=csv_ or json_)
    frame = model.score_candidates(held.X, held.y, held.groups, keep)
    if output is not None:
        write_some(frame.index[frame["keep"]].to_numpy(), output, candidates, "CANDIDATES")
    if csv_:
        click.echo(frame.to_csv(index=False), nl=False)
    elif json_:
        as_json(plain(_facts(model, frame, candidates)))
    else:
        click.echo(_text(_facts(model, frame, candidates), frame))
        if output is not None:
            click.echo(f"{output}: {int(frame['keep'].sum()):,} rows", err=True)


def _read(
    run: Path, model: HCDV, path: Path, group: str | None, *, unlabelled: bool
) -> Candidates:
    """Features, labels if there are any, and what to compare by."""
    from hcdv.apps.living import more_rows, roles_of
    from hcdv.apps.reading import read_frame, suffix_of
    from hcdv.store import read_about

    roles = roles_of({**(read_about(run).get("source") or {})})
    if suffix_of(path) == ".npz":
        if group is not None:
            raise click.UsageError("--group needs a table with named columns, not .npz.")
        sheet = more_rows(run, model, path)
        return Candidates(sheet.X, None if unlabelled else sheet.y, None)
    classes = model.run_.target.classes
    is_text = classes is not None and classes.dtype.kind in "US"
    text = (roles.target,) if is_text and roles.target is not None else ()
    frame = read_frame(path, "CANDIDATES", text=text)
    groups = None if group is None else _column(frame, group, path)
    known = set(getattr(model, "feature_names_in_", ()))
    others = {*roles.named().values(), *roles.drop, group} - known
    X = frame.drop(columns=[name for name in frame.columns if name in others])
    y = None
    if not unlabelled and roles.target in frame.columns:
        y = frame[roles.target].to_numpy()
    return Candidates(X, y, groups)


def _column(frame: pd.DataFrame, name: str, path: Path) -> Any:
    from hcdv.apps.reading import listed
    from hcdv.errors import DataError

    if name not in frame.columns:
        raise DataError(
            f"--group must name a column of '{path}', got {name!r}. It has "
            f"{listed(list(frame.columns))}."
        )
    return frame[name].to_numpy()


def _facts(model: HCDV, frame: pd.DataFrame, path: Path) -> dict[str, Any]:
    """Everything the verdict shows, JSON-able."""
    from hcdv.uses.scoring import compared

    run = model.run_
    found: dict[str, Any] = {
        "candidates": str(path), "n_candidates": len(frame), "n_rows": run.n_rows,
        "is_labelled": "label" in frame, "mean_value": frame["value"].mean(),
        "mean_value_of_rows": run.surplus / run.n_rows,
        "share_below_zero": (frame["value"] < 0).mean(),
        "n_copies": int(frame["is_duplicate"].sum()), "median_novelty": frame["novelty"].median(),
    }  # fmt: skip
    if "wrong" in frame:
        found["share_wrong"] = frame["wrong"].mean()
    if "group" in frame:
        found["groups"] = compared(frame).to_dict("records")
    if "keep" in frame:
        kept, dropped = frame[frame["keep"]], frame[~frame["keep"]]
        found["kept"] = {
            "n": len(kept), "mean_value": kept["value"].mean() if len(kept) else None,
            "median_novelty": kept["novelty"].median() if len(kept) else None,
            "rows": kept.sort_values("rank")["row"].tolist(),
        }  # fmt: skip
        if run.target.classes is not None:
            names = kept["label" if "label" in frame else "suggested"]
            found["kept"]["n_classes"] = names.nunique()
            found["n_classes"] = run.target.n_classes
        found["dropped"] = {
            what: int(dropped["reason"].str.startswith(begin).sum())
            for begin, what in _KINDS.items()
        }
    return found


def _text(found: dict[str, Any], frame: pd.DataFrame) -> str:
    """The verdict in words."""
    import pandas as pd

    labels = "" if found["is_labelled"] else ", without labels: values are expected ones"
    lines = [
        (
            f"{found['candidates']}: {found['n_candidates']:,} candidates{labels}, held against "
            f"{found['n_rows']:,} rows"
        ),
        (
            f"value         {found['mean_value']:+.2e} a candidate on average, where a row of the "
            f"data has {found['mean_value_of_rows']:+.2e}"
        ),
        (
            f"              {found['share_below_zero']:.1%} are below zero, {found['n_copies']:,} "
            f"are copies; half lie further off than {found['median_novelty']:.0%} of the "
            "data's own rows"
        ),
    ]
    if "share_wrong" in found:
        lines.append(
            f"labels        {found['share_wrong']:.1%} are wrong, by the sum of their chances"
        )
    if "groups" in found:
        table = pd.DataFrame(found["groups"])
        said = table.to_string(index=False, float_format="{:.3g}".format)
        lines += ["groups, the worthiest first:", said]
    if "kept" in found:
        lines += _choice(found)
        columns = ["row", "value", "label" if "label" in frame else "suggested", "reason"]
        shown = frame.sort_values("rank")[columns].head(_SHOWN)
        lines.append(shown.to_string(index=False, float_format="{:.2e}".format))
    else:
        lines.append(
            "next          --keep N chooses, and gives a reason for each; --csv lists all"
        )
    return "\n".join(lines)


def _choice(found: dict[str, Any]) -> list[str]:
    kept = found["kept"]
    covered = (
        f", {kept['n_classes']} of {found['n_classes']} classes"
        if "n_classes" in kept
        else ""
    )
    lines = [f"kept          {kept['n']:,}{covered}"]
    if kept["n"]:
        lines[0] += (
            f", of value {kept['mean_value']:+.2e} on average, half further off than "
            f"{kept['median_novelty']:.0%} of the data"
        )
    dropped = [f"{count:,} {what}" for what, count in found["dropped"].items() if count]
    return [*lines, f"dropped       {'; '.join(dropped) or 'none'}"]
