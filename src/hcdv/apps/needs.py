"""`hcdv gaps`: of what to collect more, of what there is enough, and what harms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hcdv.apps.console import as_json
from hcdv.apps.options import COUNT, FILE

if TYPE_CHECKING:
    import pandas as pd

_HEADINGS = {
    "collect": (
        "collect",
        "more rows pay: the model is poorer here, and they help it most",
    ),
    "enough": (
        "enough",
        "of these there are many alike: all could go, and little would be lost",
    ),
    "harmful": (
        "harmful",
        "the model is better off without them: wrong labels, or too many of a kind",
    ),
}
_NONE = {
    "collect": "nowhere is the model poor and helped by more rows like those there are",
    "enough": "no group could go without a loss",
    "harmful": "no group does harm as a whole",
}


@click.command()
@click.argument("run", type=FILE)
@click.option(
    "-k", type=COUNT, default=5, metavar="N", help="How many groups of each kind."
)
@click.option("--csv", "csv_", is_flag=True, help="Print CSV, for other programs.")
@click.option("--json", "json_", is_flag=True, help="Print JSON, for other programs.")
def gaps(run: Path, k: int, *, csv_: bool, json_: bool) -> None:
    """Say what to collect next: where more rows pay, where there are enough, where they harm.

    \b
    hcdv gaps iris.hcdv
    hcdv gaps iris.hcdv -k 20 --csv > groups.csv
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps import datasets
    from hcdv.errors import DataError
    from hcdv.store import load, plain

    if csv_ and json_:
        raise click.UsageError("--csv and --json cannot both be given.")
    if datasets.opened(run) is not None:
        raise DataError(
            f"RUN must be of a table in memory, got '{run}', valued in parts. Value a part of "
            "it by itself, without --memory."
        )
    model = load(run)
    found = model.gaps(k)
    if csv_:
        click.echo(found.to_csv(index=False), nl=False)
    elif json_:
        as_json(plain(found.to_dict("records")))
    else:
        click.echo(text(found, numbers=model.run_.target.n_classes == 0))


def text(found: pd.DataFrame, *, numbers: bool = False) -> str:
    """The groups of each kind, in words."""
    lines: list[str] = []
    for kind, (name, about) in _HEADINGS.items():
        own = found[found["kind"] == kind]
        lines.append(f"{name:<14}{about if len(own) else _NONE[kind]}")
        for one in own.to_dict("records"):
            wrong = (
                f"squared miss {one['error']:.2f}"
                if numbers
                else f"{one['error']:.0%} told wrong"
            )
            if kind == "collect":
                tail = f"one more row {one['gain']:+.1e}"
            else:
                tail = f"all of them gone {-one['if_gone']:+.1e}"
            head = f"  #{one['id']:<5} {one['size']:>6,} rows  {wrong:<16} {tail}"
            said = one["description"]
            lines.append(f"{head}  ({one['label_mix']})")
            lines += [f"         {said}"] if said else []
    return "\n".join(lines)
