"""`hcdv payout`: revenue shared among the owners of the rows, with a statement for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hcdv.apps.console import as_json
from hcdv.apps.options import FILE

if TYPE_CHECKING:
    from hcdv.estimator import HCDV

_MODELS = ("logistic", "forest")


@click.command()
@click.argument("run", type=FILE)
@click.option(
    "--owner",
    required=True,
    metavar="COLUMN",
    help="Who owns each row, also if --drop left it out.",
)
@click.option(
    "--revenue",
    required=True,
    metavar="AMOUNT",
    help="What there is to share, as in 12345.67.",
)
@click.option("--currency", metavar="CODE", help="As in EUR; it sets the smallest unit.")
@click.option(
    "--table",
    type=FILE,
    metavar="TABLE",
    help="The table with that column. Default: the rows kept in RUN, or the table it was made of.",
)
@click.option(
    "--basis",
    type=click.Choice(["sellers", "rows", "model"]),
    help=(
        "What a seller is worth: as a player among the others (up to 1,000), by the sum of its "
        "rows' values, or as sellers, with --model taught anew on every coalition."
    ),
)
@click.option(
    "--model", type=click.Choice(_MODELS), help="A model to value sellers by as well."
)
@click.option(
    "--minimum", metavar="AMOUNT", default="0", help="What everyone gets at least."
)
@click.option("--cap", metavar="AMOUNT", help="What nobody gets more than.")
@click.option(
    "--worthless",
    type=click.Choice(["refuse", "equal"]),
    default="refuse",
    help="Where the sellers together are not clearly worth anything: stop, or share alike.",
)
@click.option(
    "--replication",
    is_flag=True,
    default=None,
    help="Measure what copies would gain. Default: where that is cheap.",
)
@click.option(
    "--out",
    type=FILE,
    metavar="DIR",
    help="Folder for statements (CSV, HTML); it must be new.",
)
@click.option("--csv", "csv_", is_flag=True, help="Print CSV, for other programs.")
@click.option("--json", "json_", is_flag=True, help="Print JSON, for other programs.")
def payout(
    run: Path, owner: str, revenue: str, currency: str | None, table: Path | None,
    model: str | None, out: Path | None, *, csv_: bool, json_: bool, **options: Any,
) -> None:  # fmt: skip
    """Share a revenue among the owners of RUN's rows, to the last cent.

    Copies of rows agree with each other: label consistency is not paid for. Fit with the
    metric that buyers count, as in --metric balanced_accuracy.

    \b
    hcdv value rows.csv --target y --drop seller --metric accuracy --out run
    hcdv payout run --owner seller --revenue 12345.67 --currency EUR --out october
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps import datasets
    from hcdv.errors import DataError, ParameterError
    from hcdv.store import check_new, load

    if csv_ and json_:
        raise click.UsageError("--csv and --json cannot both be given.")
    if out is not None:
        check_new(out, "--out")
    if datasets.opened(run) is not None:
        raise DataError(
            f"RUN must be of a table in memory, got '{run}', valued in parts. Its values.parquet "
            "holds the row values: sum them by owner."
        )
    try:
        settings = _settings(revenue, currency, model, options)
        fitted = load(run)
        found = fitted.payouts(_owners(fitted, run, owner, table), **settings)
    except ParameterError as error:
        raise click.UsageError(f"--{error}") from error
    if out is not None:
        found.save(out)
    if json_:
        from hcdv.store import plain

        as_json(plain(found.to_dict()))
    elif csv_:
        click.echo(found.table.to_csv(index=False), nl=False)
    else:
        click.echo(
            f"{run}: {found}" + (f"\nwritten       {out}" if out is not None else "")
        )


def _settings(
    revenue: str, currency: str | None, model: str | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Arguments of `payouts`, amounts checked before anything is read."""
    from hcdv.uses.money import PayoutRule, checked_currency, digits_of, units_of

    digits = digits_of(checked_currency(currency))
    units_of(revenue, digits, "revenue")
    rule = PayoutRule(
        minimum=options["minimum"], cap=options["cap"], worthless=options["worthless"]
    )
    units_of(rule.minimum, digits, "minimum")
    if rule.cap is not None:
        units_of(rule.cap, digits, "cap")
    if options["basis"] == "model" and model is None:
        raise click.UsageError("--basis model needs --model.")
    return {
        "revenue": revenue, "currency": currency, "rule": rule, "basis": options["basis"],
        "model": _model(model), "replication": options["replication"],
    }  # fmt: skip


def _model(name: str | None) -> Any:
    if name is None:
        return None
    if name == "logistic":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=100.0, max_iter=1000)  # rows are unit vectors
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, min_samples_leaf=2)


def _owners(model: HCDV, run: Path, owner: str, table: Path | None) -> Any:
    """The owner of every row: as asked, from the rows kept, or from the table valued."""
    from hcdv.store import read_about

    given = model.given_
    if table is None and given is not None and given.kind == "table":
        kept: Any = given.rows(model.ids_).table
        if owner in kept.columns:
            return kept[owner].to_numpy()
    source = read_about(run).get("source") or {}
    place = Path(str(source.get("table", ""))) if table is None else table
    return owners_in(model, place, owner, source, asked=table is not None)


def owners_in(
    model: HCDV, place: Path, owner: str, source: dict[str, Any], *, asked: bool
) -> Any:
    """A column of a table, in the order of the model's rows."""
    import numpy as np

    from hcdv.apps.reading import read_frame, suffix_of
    from hcdv.apps.reading import refuse_unless_column as refuse
    from hcdv.errors import DataError

    if not asked and (not place.is_file() or suffix_of(place) == ".npz"):
        raise DataError(
            f"--owner must be a column of the rows kept in the run, got {owner!r}, and the table "
            f"it was made of, '{place}', cannot be read. Name it with --table."
        )
    key = source.get("id")
    is_text = key is not None and model.ids_.dtype.kind in "US"
    text = [owner, str(key)] if is_text else [owner]
    frame = read_frame(place, "--table", text=tuple(text))
    refuse(owner, "--owner", list(frame.columns), place)
    names = frame[owner]
    if key is not None:
        refuse(key, "--table", list(frame.columns), place)
        names = names.set_axis(frame[key].astype(str) if is_text else frame[key])
        if names.index.has_duplicates:
            raise DataError(
                f"--table must have each id once in column {key!r} of '{place}'."
            )
    asked_for = np.asarray(model.ids_)
    missing = ~np.isin(asked_for, names.index)
    if missing.any():
        raise DataError(
            f"--table must hold every row of the run, got none for {int(missing.sum()):,} of "
            f"{len(asked_for):,}, first id {asked_for[missing][0].item()!r}. Name a table with "
            "all of them, those that came later too; with --id it may have them in any order."
        )
    return names.loc[asked_for].to_numpy()
