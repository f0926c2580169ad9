"""The commands for data sets larger than memory: the same words, read from disk in parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hcdv.apps.console import as_json
from hcdv.errors import DataError, StoreError
from hcdv.store.folder import REPORT

if TYPE_CHECKING:
    import numpy as np

    from hcdv.apps.reading import Roles
    from hcdv.dataset.run import DatasetRun
    from hcdv.estimator import HCDV

_UNPACKED = (
    8  # bytes in memory a byte of uncompressed Parquet takes as a frame with its copies
)
_WRITTEN = (".parquet", ".csv", ".txt")


def is_dataset(table: Path, memory: int | None, engine: str) -> bool:
    """Whether to value in parts: a folder, a pattern, --memory, or a file that would not fit."""
    if memory is not None or table.is_dir() or engine != "local":
        return True
    if not table.exists():
        return any(sign in str(table) for sign in "*?[")
    if table.suffix.lower() not in (".parquet", ".pq"):
        return False
    from hcdv.dataset.source import unpacked_bytes
    from hcdv.dataset.valuation import free_memory

    return _UNPACKED * unpacked_bytes(table) > free_memory()


def value_in_parts(
    model: HCDV, dataset: Path, out: Path, roles: Roles, validation: Path | None, *,
    memory: int | None, skip_damaged: bool, address: str | None,
) -> DatasetRun:  # fmt: skip
    """Value a data set that need not fit memory."""
    for role in ("id", "groups", "time", "weight"):
        if getattr(roles, role) is not None:
            raise click.UsageError(
                f"--{role} is not known for a data set valued in parts; its rows go by number."
            )
    if roles.target is None:
        raise click.UsageError("Missing option '--target'.")
    try:
        return model.fit_dataset(
            str(dataset), roles.target, out, validation=validation, drop=roles.drop,
            memory=memory, skip_damaged=skip_damaged, address=address,
        )  # fmt: skip
    except KeyboardInterrupt:
        click.echo(
            f"\nhcdv: stopped; what is done lies in '{out}.unfinished', and the same command "
            "goes on from there.", err=True,
        )  # fmt: skip
        raise click.exceptions.Exit(130) from None


def opened(run: Path) -> DatasetRun | None:
    """The run of a data set; None where the folder is something else."""
    from hcdv.dataset.run import DatasetRun
    from hcdv.store import read_about
    from hcdv.store.saving import DATASET

    try:
        about = read_about(run)
    except StoreError:
        return None  # told by whoever reads it
    return DatasetRun.open(run) if about.get("kind") == DATASET else None


def facts_of(run: DatasetRun, n_coalitions: int = 3) -> dict[str, Any]:
    """As `summary.facts`, from the record."""
    from hcdv.apps.summary import ranked
    from hcdv.store import plain

    about = run.about
    names = (
        "n_rows", "n_columns", "n_classes", "method", "metric", "seed", "surplus",
        "surplus_parts", "values", "n_suspects", "share_wrong", "checks", "notes", "seconds",
    )  # fmt: skip
    frame = run.coalitions_
    leaves = ranked(frame)
    return plain({
        **{name: about[name] for name in names},
        "n_coalitions": len(frame) - 1,
        "best_coalitions": leaves[:n_coalitions],
        "worst_coalitions": leaves[::-1][:n_coalitions],
        "suspects": run.suspects(5).to_dict("records") if about["n_suspects"] else [],
    })  # fmt: skip


def text_of(run: DatasetRun, found: dict[str, Any]) -> str:
    """The facts in words, and what to do next."""
    import shlex

    from hcdv.apps.summary import text

    source, name = run.about["source"], shlex.quote(str(run.folder))
    page = run.folder / REPORT
    told = f"report        {page}\n" if page.is_file() else ""
    files = f"{source['files']} file" + ("" if source["files"] == 1 else "s")
    return (
        f"{source['table']} ({files}): {text(found)}\n"
        f"run           {run.folder}; values of all rows in {run.folder}/values/*.parquet\n{told}"
        f"next          hcdv suspects {name}\n"
        f"              hcdv select {name} --fraction 0.3 -o kept.parquet\n"
        f"              hcdv explain {name} {found['values']['worst_rows'][0]}"
    )


def show_run(run: DatasetRun, coalitions: int, *, csv_: bool, json_: bool) -> None:
    """`hcdv show`."""
    if csv_:
        for number, table in enumerate(run.parts()):
            _print_csv(table, header=number == 0)
        return
    found = {
        "run": str(run.folder), "source": run.about["source"], **facts_of(run, coalitions),
    }  # fmt: skip
    if json_:
        as_json(found)
    else:
        click.echo(text_of(run, found))


def select_rows(
    run: DatasetRun, fraction: float, how: str, output: Path | None, table: Path | None, *,
    json_: bool,
) -> None:  # fmt: skip
    """`hcdv select`."""
    from hcdv.store import plain

    if table is not None:
        raise click.UsageError(
            "--table is not known for the run of a data set: join its files with -o FILE on "
            "the row number instead."
        )
    if output is not None and output.suffix.lower() not in _WRITTEN:
        raise DataError(
            f"-o must end in {', '.join(_WRITTEN)} for the run of a data set, got '{output}'."
        )
    rows = run.select(fraction, how)
    if output is not None:
        _write_rows(run, rows, output)
        click.echo(f"{output}: {len(rows):,} of {run.n_rows:,} rows", err=True)
    if json_:
        as_json(plain({"how": how, "fraction": fraction, "rows": rows}))
    elif output is None:
        click.echo("\n".join(map(str, rows.tolist())))


def explain_row(run: DatasetRun, row: str, *, by_id: bool, json_: bool) -> None:
    """`hcdv explain`."""
    from hcdv.store import plain

    if by_id:
        raise click.UsageError(
            "--by-id is not known for the run of a data set; its rows go by number."
        )
    found = run.explain(int(row))
    if json_:
        as_json(plain(found))
        return
    names = ("utility", "dispersion", "consistency")
    worth = f"value {found['value']:+.3g} ± {found['stderr']:.1g}"
    doubt = f"wrong with a chance of {found['doubt']:.1%}"
    lines = [
        f"row {found['row']}  label {found['label']}  {worth}",
        "  " + "  ".join(f"{name} {found[name]:+.3g}" for name in names),
        f"  the label: {doubt}; models taught without the row say {found['suggested']}",
        "coalitions, from all rows to its leaf:",
    ]
    lines += [
        f"  #{step['id']:<6} {step['size']:>12,} rows  {step['value']:+.3g}, "
        f"{step['value_per_row']:+.2g} a row ({step['label_mix']})"
        for step in found["path"]
    ]
    click.echo("\n".join(lines))


def _write_rows(run: DatasetRun, rows: np.ndarray[Any, Any], output: Path) -> None:
    """Write row numbers, or the selected lines of the values, part by part, all or nothing."""
    import os

    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    from hcdv.store import check_new

    check_new(output, "-o")
    draft = output.with_name(f".{output.name}.tmp-{os.getpid()}")
    suffix, writer, at = output.suffix.lower(), None, 0
    try:
        if suffix == ".txt":
            draft.write_text("".join(f"{row}\n" for row in rows.tolist()))
        else:
            for table in run.parts():
                own = rows[
                    np.searchsorted(rows, at) : np.searchsorted(rows, at + len(table))
                ]
                kept = table.take(pa.array(own - at))
                if writer is None:
                    make = parquet.ParquetWriter if suffix == ".parquet" else csv.CSVWriter
                    writer = make(draft, kept.schema)
                writer.write_table(kept)
                at += len(table)
            if writer is not None:
                writer.close()
        draft.rename(output)
    finally:
        draft.unlink(missing_ok=True)


def _print_csv(table: Any, *, header: bool) -> None:
    click.echo(table.to_pandas().to_csv(index=False, header=header), nl=False)
