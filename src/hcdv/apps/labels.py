"""`hcdv suspects`: doubted labels, listed, reviewed, and the table written without the errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hcdv.apps.console import as_json, one_format
from hcdv.apps.options import COUNT, FILE

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.estimator import HCDV


@click.command()
@click.argument("run", type=FILE)
@click.option(
    "-k",
    type=COUNT,
    metavar="N",
    help=(
        "The N most suspicious rows, doubted or not. Default: those doubted, of which a "
        "terminal is shown 20."
    ),
)
@click.option(
    "--twice",
    is_flag=True,
    help="Look again, with models that doubted labels teach less: a better order.",
)
@click.option(
    "--noise", is_flag=True, help="Tell how many labels are wrong, and which for which."
)
@click.option(
    "--review",
    is_flag=True,
    help="Step through them and decide; decisions are kept in RUN, and it can be gone on with.",
)
@click.option(
    "--apply",
    is_flag=True,
    help="Write the table as decided, relabelled and without drops.",
)
@click.option(
    "-o", "--output", type=FILE, metavar="FILE", help="File --apply writes; it must be new."
)
@click.option(
    "--table",
    type=FILE,
    metavar="TABLE",
    help="The table that was valued, for --apply. Default: where it was, or as kept in RUN.",
)
@click.option("--csv", "csv_", is_flag=True, help="Print CSV, for other programs.")
@click.option("--json", "json_", is_flag=True, help="Print JSON, for other programs.")
def suspects(
    run: Path, k: int | None, output: Path | None, table: Path | None, *, noise: bool,
    twice: bool, review: bool, apply: bool, csv_: bool, json_: bool,
) -> None:  # fmt: skip
    """List rows whose label models taught without them contradict, the most suspicious first.

    \b
    hcdv suspects iris.hcdv
    hcdv suspects iris.hcdv -k 100 --csv > look-at.csv
    hcdv suspects iris.hcdv --review
    hcdv suspects iris.hcdv --apply -o cleaned.csv
    """  # noqa: D301, click reads the \b itself
    from hcdv.apps import datasets
    from hcdv.store import load, plain

    one_format(csv_=csv_, json_=json_)
    _one_task(review=review, apply=apply, noise=noise, output=output, table=table)
    if (held := datasets.opened(run)) is not None:
        if review or apply or noise:
            raise click.UsageError(
                "--review, --apply and --noise need the run of one table."
            )
        print_suspects(held.suspects(k), k, csv_=csv_, json_=json_)
        return
    if apply:
        _apply(run, output, table)
        return
    model = load(run)
    if noise:
        told = model.noise()
        if csv_:
            click.echo(told.pairs().to_csv(index=False), nl=False)
        elif json_:
            as_json(plain(told.to_dict()))
        else:
            click.echo(str(told))
        return
    frame = model.suspects(k, twice=twice)
    frame.insert(1, "id", model.ids_[frame["row"]])
    if k is None:
        frame = frame[frame["is_suspect"]]
    if review:
        from hcdv.apps.review import review as stepped

        stepped(run, model, frame)
        return
    print_suspects(frame, k, csv_=csv_, json_=json_)


def print_suspects(frame: Any, k: int | None, *, csv_: bool, json_: bool) -> None:
    """Suspects of a run of either kind; of unnumbered ones a terminal is shown twenty."""
    from hcdv.apps.summary import suspects_text
    from hcdv.store import plain

    if csv_:
        click.echo(frame.to_csv(index=False), nl=False)
    elif json_:
        as_json(plain(frame.to_dict("records")))
    else:
        n_shown = 20 if k is None else len(frame)
        click.echo(suspects_text(frame.head(n_shown), max(0, len(frame) - n_shown)))


def _one_task(
    *, review: bool, apply: bool, noise: bool, output: Path | None, table: Path | None
) -> None:
    from hcdv.apps.writing import refuse_unless_writable

    if review + apply + noise > 1:
        raise click.UsageError("--review, --apply and --noise are asked one at a time.")
    if apply and output is None:
        raise click.UsageError("--apply needs -o FILE, to write the cleaned table to.")
    if not apply and (output is not None or table is not None):
        raise click.UsageError("-o and --table are for --apply.")
    if output is not None:
        refuse_unless_writable(output)


def _apply(run: Path, output: Path | None, table: Path | None) -> None:
    """Write the table that was valued as decided."""
    from hcdv.apps.writing import write_frame
    from hcdv.errors import DataError
    from hcdv.store import load
    from hcdv.store.decisions import decisions

    assert output is not None
    made = decisions(run)
    changed = {
        name: each for name, each in made.items() if each.decision in ("relabel", "drop")
    }
    if not made:
        raise DataError(
            f"--apply must have decisions to go by, got none in '{run}'. Make them with "
            f"hcdv suspects {run} --review."
        )
    model = load(run)
    frame, target = _valued_table(run, model, table, output)
    place = {name: at for at, name in enumerate(model.ids_.tolist())}
    column = frame.columns.get_loc(target)
    labels = (
        frame[target].astype(object) if frame[target].dtype == object else frame[target]
    )
    labels = labels.copy()
    drop: list[int] = []
    n_gone = n_relabelled = 0
    for name, each in changed.items():
        if name not in place:
            n_gone += 1
        elif each.decision == "drop":
            drop.append(place[name])
        else:
            n_relabelled += 1
            is_text = labels.dtype == object or str(labels.dtype) in ("str", "string")
            labels.iloc[place[name]] = str(each.label) if is_text else each.label
    frame = frame.drop(columns=target)
    frame.insert(column, target, labels)
    keep = [at for at in range(len(frame)) if at not in set(drop)]
    write_frame(frame.iloc[keep], output)
    gone = f"; {n_gone:,} decisions about rows that are gone" if n_gone else ""
    click.echo(
        f"{output}: {len(keep):,} of {len(frame):,} rows, {n_relabelled:,} relabelled, "
        f"{len(drop):,} dropped{gone}",
        err=True,
    )


def _valued_table(
    run: Path, model: HCDV, table: Path | None, output: Path
) -> tuple[pd.DataFrame, str]:
    """The table to clean and its column of labels: as named, as it was, or as kept."""
    import numpy as np

    from hcdv.apps.reading import suffix_of
    from hcdv.apps.writing import table_of
    from hcdv.errors import DataError
    from hcdv.store import read_about

    source = read_about(run).get("source") or {}
    named = Path(source["table"]) if "table" in source else None
    path = table
    if path is None and named is not None and named.is_file():
        path = named if suffix_of(named) != ".npz" else None
    if path is not None:
        frame = table_of(model, output, path)
        target = str(source.get("target", "label"))
        if target not in frame.columns:
            raise DataError(
                f"--table must have the column of labels, {target!r}, got "
                f"{', '.join(map(repr, list(frame.columns)[:12]))}."
            )
        _refuse_other_labels(model, frame[target], path)
        return frame, target
    kept = None if model.given_ is None else model.given_.rows(model.ids_).table
    if kept is None or isinstance(kept, np.ndarray):
        raise DataError(
            f"--table must name the table that was valued, got none: '{run}' does not hold its "
            "rows, or holds images."
        )
    target = str(source.get("target", "label"))
    return kept.assign(**{target: model.run_.labels}), target


def _refuse_other_labels(model: HCDV, column: pd.Series, path: Path) -> None:
    """A table in another order, or another table, would be given labels of other rows."""
    from hcdv.errors import DataError

    labels = model.run_.labels
    if model.run_.target.classes is None:
        import pandas as pd

        same = pd.to_numeric(column, errors="coerce").to_numpy() == labels
    else:
        same = _as_words(column.to_numpy()) == _as_words(labels)
    if not same.all():
        row = int((~same).argmax())
        raise DataError(
            f"--table must be the table that was valued, got another label in row {row} of "
            f"'{path}': {column.iloc[row]!r}, not {labels[row].item()!r}. Name that table, or "
            "its copy."
        )


def _as_words(labels: Any) -> Any:
    """Labels as text in which 1, 1.0, '1' and True, 'True' are the same."""
    import numpy as np

    words = np.asarray(labels).astype(str)
    return np.array([word.removesuffix(".0") for word in words.tolist()])
