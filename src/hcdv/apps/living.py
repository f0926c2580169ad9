"""`hcdv update`, `forget`, `refresh`, `ledger` and `check`: a run that lives on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hcdv.apps.console import step
from hcdv.apps.options import FILE

if TYPE_CHECKING:
    import numpy as np

    from hcdv.apps.reading import Roles, Sheet
    from hcdv.estimator import HCDV

_RUN = click.argument("run", type=FILE)
_REFRESH = click.option(
    "--refresh", is_flag=True, help="Value all rows anew at once, as hcdv refresh does."
)


@click.command()
@_RUN
@click.argument("table", type=FILE)
@_REFRESH
def update(run: Path, table: Path, *, refresh: bool) -> None:
    """Take the rows of TABLE into RUN.

    Its columns are those of the table that was valued. New rows, the surplus and the
    largest groups are valued at once; other values are corrected so that they add up.

    \b
    hcdv update iris.hcdv monday.csv
    """  # noqa: D301, click reads the \b itself
    from hcdv.store import updating

    with updating(run) as writer:
        step(f"reading {table}", quiet=False)
        sheet = more_rows(run, writer.model, table)
        arrive(writer.model, sheet, lazy=not refresh)
        writer.commit(writer.model)
        click.echo(said(run, writer.model, f"{len(sheet.X):,} rows of {table}"))


@click.command()
@_RUN
@click.option(
    "--rows",
    type=FILE,
    required=True,
    metavar="FILE",
    help="Ids of the rows to withdraw, one a line.",
)
def forget(run: Path, rows: Path) -> None:
    """Withdraw rows from RUN: the values of the others, as if these had never been there.

    \b
    hcdv forget iris.hcdv --rows withdrawn.txt
    """  # noqa: D301, click reads the \b itself
    from hcdv.store import updating

    with updating(run) as writer:
        gone = places(writer.model.ids_, rows)
        writer.commit(writer.model.forget(gone))
        click.echo(said(run, writer.model, f"{len(gone):,} rows withdrawn"))


@click.command()
@_RUN
def refresh(run: Path) -> None:
    """Value all rows of RUN anew, on the tree there is: nothing is stale afterwards.

    \b
    hcdv refresh iris.hcdv
    """  # noqa: D301, click reads the \b itself
    from hcdv.store import updating

    with updating(run) as writer:
        writer.commit(writer.model.refresh())
        click.echo(said(run, writer.model, "all values computed anew"))


@click.command()
@_RUN
@click.argument("sql")
def ledger(run: Path, sql: str) -> None:
    """Ask the ledger of RUN in SQL; the answer is CSV.

    Tables: updates (number, at, kind, n_rows, came, gone, changed, stale, surplus, utility,
    dispersion, consistency), files (name, sha256, at, number, refused) and worth (number,
    id, value, stderr, utility, dispersion, consistency, label, stale): a line for every row
    after every update.

    \b
    hcdv ledger iris.hcdv "SELECT number, value FROM worth WHERE id = 17"
    hcdv ledger iris.hcdv "SELECT at, kind, surplus FROM updates"
    """  # noqa: D301, click reads the \b itself
    from hcdv.store import query

    click.echo(query(run, sql).to_csv(index=False), nl=False)


@click.command()
@_RUN
@click.option(
    "--rebuild",
    is_flag=True,
    help="Write damaged values of the last update again, from its state.",
)
@click.pass_context
def check(ctx: click.Context, run: Path, *, rebuild: bool) -> None:
    """Check that RUN is whole: checksums, sums and the ledger; exits with 1 if it is not.

    \b
    hcdv check iris.hcdv
    """  # noqa: D301, click reads the \b itself
    from hcdv.store import check as checked

    problems = checked(run, rebuild=rebuild)
    for problem in problems:
        click.echo(f"hcdv: {' '.join(problem.split())}", err=True)
    if problems:
        ctx.exit(1)
    click.echo(f"{run}: whole")


def more_rows(run: Path, model: HCDV, table: Path) -> Sheet:
    """A table with the columns of the one that was valued."""
    from hcdv.apps.reading import read_more
    from hcdv.store import read_about

    kept = {**(read_about(run).get("source") or {})}
    target = model.run_.target
    text = (
        []
        if target.classes is None or target.classes.dtype.kind not in "US"
        else ["target"]
    )
    text += ["id"] if model.ids_.dtype.kind in "US" else []
    return read_more(table, roles_of(kept), tuple(text))


def roles_of(source: dict[str, Any]) -> Roles:
    """Which columns of the table that was valued were what."""
    from hcdv.apps.reading import Roles

    names = ("target", "id", "groups", "time", "weight")
    return Roles(
        **{name: source.get(name) for name in names}, drop=tuple(source.get("drop", ()))
    )


def arrive(model: HCDV, sheet: Sheet, *, lazy: bool = True) -> None:
    """Let the rows of a sheet join a model."""
    model.partial_fit(sheet.X, sheet.y, ids=sheet.id, sample_weight=sheet.weight, lazy=lazy)


def said(run: Path, model: HCDV, what: str) -> str:
    """What an update did, in a line."""
    n_stale = int(model.stale_.sum())
    stale = f", {n_stale:,} of them corrected, not refreshed" if n_stale else ""
    return (
        f"{run}: {what}; {model.run_.n_rows:,} rows{stale}; surplus {model.surplus_:+.6g}"
    )


def places(ids: np.ndarray[Any, Any], file: Path, name: str = "--rows") -> list[int]:
    """Positions of the rows whose ids a file lists."""
    import difflib

    from hcdv.errors import DataError

    if not file.is_file():
        raise DataError(f"{name} must be a file, got '{file}'. List ids in it, one a line.")
    asked = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    place = {name: at for at, name in enumerate(ids.astype(str).tolist())}
    found: list[int] = []
    for number, asked_id in enumerate(asked, 1):
        if not asked_id:
            continue
        if asked_id not in place:
            close = difflib.get_close_matches(asked_id, place, 1)
            meant = f"Did you mean {close[0]!r}?" if close else "Nothing was done."
            raise DataError(
                f"{name} must list ids of live rows, got {asked_id!r} in line {number} of "
                f"'{file}'. {meant}"
            )
        found.append(place[asked_id])
    return found
