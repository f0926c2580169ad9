"""The command line: value a table, then show, select, suspects and explain its run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import hcdv
from hcdv.apps import candidates, labels, living
from hcdv.apps.console import Commands, as_json, one_format, step
from hcdv.apps.explorer.command import explore
from hcdv.apps.needs import gaps
from hcdv.apps.options import COUNT, FILE, of_value
from hcdv.apps.paying import payout
from hcdv.apps.report import command as reporting
from hcdv.apps.tables import bench
from hcdv.apps.watching import watch

if TYPE_CHECKING:
    import numpy as np

    from hcdv.apps.reading import Roles, Sheet
    from hcdv.estimator import HCDV

_JSON = click.option(
    "--json", "json_", is_flag=True, help="Print JSON, for other programs."
)
_CSV = click.option("--csv", "csv_", is_flag=True, help="Print CSV, for other programs.")
_RUN = click.argument("run", type=FILE)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(hcdv.__version__, prog_name="hcdv")
def main() -> None:
    """What every row of a training set is worth.

    \b
    hcdv value iris.csv --target species
    hcdv suspects iris.hcdv
    hcdv select iris.hcdv --fraction 0.3 -o kept.csv

    Tables are CSV, TSV, Parquet, Arrow or npz files. Rows are numbered from 0. Errors in
    the use of a command exit with 2, errors in data with 1.
    """  # noqa: D301, click reads the \b itself


@main.command()
@click.argument("table", type=FILE)
@of_value
@_JSON
def value(
    table: Path, validation: Path | None, out: Path | None, *, no_rows: bool,
    report: bool, quiet: bool, json_: bool, **options: Any,
) -> None:  # fmt: skip
    """Value every row of TABLE and write a run folder.

    \b
    hcdv value iris.csv --target species
    hcdv value train.parquet --target y --validation test.parquet --id key --out run
    hcdv value clicks/ --target label --memory 2G

    TABLE may be a folder of Parquet files or a pattern such as 'clicks/*.parquet', of any
    size: it is valued in parts, as is one Parquet file that memory would not hold. The same
    command goes on where an interrupted one was.
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps import datasets
    from hcdv.apps.report.writing import write_report
    from hcdv.apps.summary import facts, text
    from hcdv.store import check_new, save
    from hcdv.store.folder import REPORT

    roles = _roles(options)
    parts = {name: options.pop(name) for name in ("memory", "skip_damaged", "address")}
    in_parts = datasets.is_dataset(table, parts["memory"], options["engine"])
    out = Path(_stem(table) + ".hcdv") if out is None else out
    check_new(out, "--out")
    model = _estimator(options, verbose=not (quiet or json_))
    if in_parts:
        run = datasets.value_in_parts(model, table, out, roles, validation, **parts)
        if report:
            write_report(run, out / REPORT, rows=not no_rows)
        if json_ or not quiet:
            datasets.show_run(run, 3, csv_=False, json_=json_)
        return
    for name in ("skip_damaged", "address"):
        if parts[name]:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} is for data sets of Parquet files.")
    step(f"reading {table}", quiet=quiet)
    _refuse_without_target(table, roles)
    sheet, judged = _sheets(table, validation, roles)
    model.time = sheet.time
    step(f"valuing {len(sheet.X):,} rows", quiet=quiet)
    model.fit(
        sheet.X, sheet.y, judged and judged.X, judged and judged.y,
        ids=sheet.id, groups=sheet.groups, sample_weight=sheet.weight,
    )  # fmt: skip
    model.run_.notes.extend(sheet.notes())
    source = {
        "table": str(table),
        "validation": validation and str(validation),
        **roles.named(),
        **({"drop": list(roles.drop)} if roles.drop else {}),
    }
    save(model, out, source, rows=not no_rows)
    if report:
        step("writing the report", quiet=quiet)
        write_report(model, out / REPORT, rows=not no_rows, folder=out)
    found = {"run": str(out), "source": source, **facts(model)}
    if json_:
        as_json(found)
    elif not quiet:
        click.echo(f"{table}: {text(found)}\n{next_steps(out, found)}")


@main.command()
@_RUN
@click.option(
    "--coalitions",
    type=COUNT,
    default=3,
    metavar="N",
    help="How many of the best and of the worst groups to show.",
)
@_CSV
@_JSON
def show(run: Path, coalitions: int, *, csv_: bool, json_: bool) -> None:
    """Show what a run found; --csv prints a line for every row.

    \b
    hcdv show iris.hcdv
    hcdv show iris.hcdv --csv > values.csv
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps import datasets
    from hcdv.apps.summary import facts, text
    from hcdv.store import load, read_about

    one_format(csv_=csv_, json_=json_)
    if (held := datasets.opened(run)) is not None:
        datasets.show_run(held, coalitions, csv_=csv_, json_=json_)
        return
    model = load(run)
    if csv_:
        click.echo(model.to_frame().to_csv(index=False), nl=False)
        return
    source = read_about(run).get("source") or {}
    found = {"run": str(run), "source": source, **facts(model, coalitions)}
    if json_:
        as_json(found)
    else:
        click.echo(f"{source.get('table', run)}: {text(found)}\n{next_steps(run, found)}")


@main.command()
@_RUN
@click.option(
    "--fraction",
    type=click.FloatRange(0, 1, min_open=True),
    required=True,
    help="Share of the rows to keep.",
)
@click.option(
    "--how",
    type=click.Choice(["quota", "top", "greedy"]),
    default="quota",
    help=(
        "A fair share of every label and group, without probably wrong labels; the highest"
        " values; or those that help together."
    ),
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help=(
        "File to write (csv, tsv, parquet, arrow, or txt: numbers alone); it must be new."
        " Without, row numbers are printed."
    ),
)
@click.option(
    "--table",
    type=FILE,
    metavar="TABLE",
    help="The table that was valued: write its own rows.",
)
@_JSON
def select(
    run: Path,
    fraction: float,
    how: str,
    output: Path | None,
    table: Path | None,
    *,
    json_: bool,
) -> None:
    """Choose the rows worth keeping.

    \b
    hcdv select iris.hcdv --fraction 0.3
    hcdv select iris.hcdv --fraction 0.3 -o kept.csv --table iris.csv
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps import datasets
    from hcdv.apps.writing import refuse_unless_writable, write_rows
    from hcdv.store import load, plain

    if table is not None and output is None:
        raise click.UsageError("--table needs -o FILE, to write its rows to.")
    if output is not None:
        refuse_unless_writable(output)
    if (held := datasets.opened(run)) is not None:
        datasets.select_rows(held, fraction, how, output, table, json_=json_)
        return
    model = load(run)
    rows = model.select(fraction, how)
    if output is not None:
        write_rows(model, rows, output, table)
    if json_:
        as_json(
            plain({"how": how, "fraction": fraction, "rows": rows, "ids": model.ids_[rows]})
        )
    elif output is None:
        click.echo("\n".join(map(str, rows.tolist())))
    else:
        whole = (
            ""
            if table is not None
            else "; --table TABLE would write the table's own columns"
        )
        click.echo(
            f"{output}: {len(rows):,} of {model.run_.n_rows:,} rows{whole}", err=True
        )


@main.command()
@_RUN
@click.argument("row")
@click.option("--by-id", is_flag=True, help="ROW is the id of a row and not its number.")
@_JSON
def explain(run: Path, row: str, *, by_id: bool, json_: bool) -> None:
    """Say why a row has its value: its groups, parts, label and neighbours.

    \b
    hcdv explain iris.hcdv 17
    hcdv explain people.hcdv p-0017 --by-id
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps import datasets
    from hcdv.store import load, plain

    if not by_id and not row.isdecimal():
        raise click.UsageError(
            f"ROW must be a row number from 0, got '{row}' (or add --by-id)."
        )
    if (held := datasets.opened(run)) is not None:
        datasets.explain_row(held, row, by_id=by_id, json_=json_)
        return
    model = load(run)
    explained = model.explain(_row_of_id(model.ids_, row) if by_id else int(row))
    if json_:
        as_json(plain(explained.to_dict()))
    else:
        click.echo(str(explained))


for command in (
    living.update,
    living.forget,
    living.refresh,
    living.drift,
    living.ledger,
    living.check,
    watch,
    payout,
    gaps,
    candidates.augment,
    labels.suspects,
    explore,
    reporting.report,
):
    main.add_command(command)
main.add_command(bench)


def _roles(options: dict[str, Any]) -> Roles:
    """Which columns are what; a column can be one thing only."""
    from hcdv.apps.reading import Roles

    names = ("target", "id", "groups", "time", "weight", "drop")
    roles = Roles(**{name: options.pop(name) for name in names})
    taken = [*roles.named().values(), *roles.drop]
    if twice := sorted({name for name in taken if taken.count(name) > 1}):
        raise click.UsageError(f"column '{twice[0]}' is named by more than one option.")
    if "groups" in str(options["branching"]) and roles.groups is None:
        raise click.UsageError("--branching groups needs --groups COLUMN.")
    return roles


def _refuse_without_target(table: Path, roles: Roles) -> None:
    """A table needs --target; an npz file has an array of the usual name."""
    from hcdv.apps.reading import listed, read_frame, suffix_of

    if roles.target is None and suffix_of(table) != ".npz":
        columns = listed(list(read_frame(table).columns))
        raise click.UsageError(
            f"Missing option '--target'. '{table}' has columns {columns}."
        )


def _estimator(options: dict[str, Any], *, verbose: bool) -> HCDV:
    """The estimator of these options, its settings checked before any file is read."""
    from hcdv.errors import ParameterError
    from hcdv.estimator import HCDV
    from hcdv.settings import checked_plan

    settings = {
        "n_contexts": options.pop("contexts"), "n_permutations": options.pop("permutations"),
        "n_jobs": options.pop("jobs"), "random_state": options.pop("seed"), "verbose": verbose,
    }  # fmt: skip
    model = HCDV(**settings, **options)
    try:
        checked_plan(model)
    except ParameterError as error:
        said = str(error).replace("n_jobs", "jobs").replace("time_budget", "time-budget")
        raise click.UsageError(f"--{said}") from error
    return model


def _sheets(
    table: Path, validation: Path | None, roles: Roles
) -> tuple[Sheet, Sheet | None]:
    from dataclasses import replace

    from hcdv.apps.reading import read_sheet, read_validation

    sheet = read_sheet(table, roles)
    if validation is not None:
        return sheet, read_validation(validation, roles, sheet)
    if sheet.X_val is not None or sheet.y_val is not None:
        return sheet, replace(sheet, X=sheet.X_val, y=sheet.y_val)
    return sheet, None


def _row_of_id(ids: np.ndarray[Any, Any], asked: str) -> int:
    import difflib

    from hcdv.errors import DataError

    names = ids.astype(str).tolist()
    if asked in names:
        return names.index(asked)
    close = difflib.get_close_matches(asked, names, 1)
    meant = f"Did you mean {close[0]!r}?" if close else f"Ids look like {names[0]!r}."
    raise DataError(f"ROW must be the id of a row of the run, got {asked!r}. {meant}")


def _stem(table: Path) -> str:
    from hcdv.apps.reading import PACKED

    if any(sign in table.name for sign in "*?["):
        raise click.UsageError("Missing option '--out': a pattern has no name of its own.")
    inner = table.with_suffix("") if table.suffix.lower() in PACKED else table
    return inner.stem


def next_steps(run: Path, found: dict[str, Any]) -> str:
    """What to do with the run now."""
    import shlex

    name = shlex.quote(str(run))
    row = (
        found["suspects"][0]["row"]
        if found["suspects"]
        else found["values"]["worst_rows"][0]
    )
    table = str((found.get("source") or {}).get("table", ""))
    own = "" if not table or table.endswith(".npz") else f" --table {shlex.quote(table)}"
    from hcdv.store.folder import REPORT

    page = run / REPORT
    told = f"report        {page}\n" if page.is_file() else ""
    return (
        f"run           {run}\n{told}"
        f"next          hcdv suspects {name}\n"
        f"              hcdv select {name} --fraction 0.3{own} -o kept.csv\n"
        f"              hcdv explain {name} {row}"
    )


if __name__ == "__main__":
    main(prog_name="hcdv")
