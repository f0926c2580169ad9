"""`hcdv report`: one HTML file that says what a run found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hcdv.apps.console import as_json
from hcdv.apps.options import FILE


@click.command()
@click.argument("run", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="File to write, new or an older report. Default: report.html in the run folder.",
)
@click.option(
    "--wrong",
    type=FILE,
    metavar="FILE",
    help="Ids of rows whose labels are known to be wrong, one a line: how soon are they found?",
)
@click.option("--no-rows", is_flag=True, help="Show no row as it was given, only numbers.")
@click.option(
    "--json",
    "json_",
    is_flag=True,
    help="Print what the report would show as JSON instead.",
)
def report(
    run: Path, output: Path | None, wrong: Path | None, *, no_rows: bool, json_: bool
) -> None:
    """Write a report of RUN: one HTML file to read, print or send, which fetches nothing.

    \b
    hcdv report iris.hcdv
    hcdv report iris.hcdv -o iris.html
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps import datasets
    from hcdv.apps.report.writing import facts_of_run, put, refuse_unless_ours
    from hcdv.store import load
    from hcdv.store.folder import REPORT

    if json_ and output is not None:
        raise click.UsageError("--json prints to the screen: leave -o out.")
    held: Any = datasets.opened(run)
    held = load(run) if held is None else held
    path = run / REPORT if output is None else output
    if not json_:
        refuse_unless_ours(path, "-o")
    found = facts_of_run(
        held,
        rows=not no_rows,
        folder=run,
        is_wrong=None if wrong is None else _mask(held, wrong),
    )
    if json_:
        as_json(found)
        return
    put(path, found)
    click.echo(f"report        {path}")


def _mask(run: Any, wrong: Path) -> Any:
    """Which rows a file of ids names."""
    import numpy as np

    from hcdv.apps.living import places
    from hcdv.dataset.run import DatasetRun

    ids = np.arange(run.n_rows) if isinstance(run, DatasetRun) else run.ids_
    mask = np.zeros(len(ids), dtype=bool)
    mask[places(ids, wrong, "--wrong")] = True
    return mask
