"""`hcdv bench`: measure a table of the paper, cell by cell, and show it."""

from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from hcdv.apps.options import COUNT, FILE

TABLES = {  # name on the command line → module of `hcdv.bench` whose BENCH it is
    "main": "main_table",
    "opendataval": "opendataval",
    "augment": "augment",
    "market": "market",
    "stream": "stream",
    "ctr": "ctr_table",
}


@click.command()
@click.argument("table", type=click.Choice(list(TABLES)))
@click.option(
    "--data",
    type=FILE,
    metavar="DIR",
    help="Folder of the data sets. Default: HCDV_DATA; without, OpenML.",
)
@click.option("--seeds", type=COUNT, default=3, help="How often all is drawn anew.")
@click.option(
    "--fast", is_flag=True, help="The smallest run that shows every part at work."
)
@click.option(
    "--out",
    type=FILE,
    default=Path("bench-results"),
    metavar="DIR",
    help="Folder of the results; cells that are there are not measured again.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME=VALUE",
    help="Measure these cells alone, as in method=hcdv; may be repeated.",
)
@click.option("--again", is_flag=True, help="Measure cells anew that are there.")
def bench(
    table: str, data: Path | None, seeds: int, out: Path, only: tuple[str, ...], *,
    fast: bool, again: bool,
) -> None:  # fmt: skip
    """Measure a table of the paper: values acted on, with other methods in the same run.

    Finished cells are kept as they come; interrupted, the same command goes on where it was.

    \b
    hcdv bench opendataval --fast
    hcdv bench main --data DIR --only data=adult --only method=hcdv,random
    """  # noqa: D301, click reads the \b itself
    from hcdv.bench.cells import Ask, run
    from hcdv.bench.datasets import data_folder

    pairs = [part.partition("=") for part in only]
    if wrong := [name for name, equals, value in pairs if not (equals and value)]:
        raise click.UsageError(f"--only must be NAME=VALUE, got '{wrong[0]}'.")
    chosen = {name: value for name, _, value in pairs}
    line = shlex.join(["hcdv", *sys.argv[1:]])
    ask = Ask(out, data_folder(data), seeds, fast, chosen, again, line)
    module = importlib.import_module(f"hcdv.bench.{TABLES[table]}")
    page = run(module.BENCH, ask, _tell)
    click.echo(page.read_text(encoding="utf-8"))
    click.echo(f"written       {page}")


def _tell(what: Any) -> None:
    click.echo(what, err=True)
