"""Whether a run folder is whole: checksums, sums, numbering; and what can be made again."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from hcdv.errors import HCDVError
from hcdv.store.folder import read_about, read_files, replace_file
from hcdv.store.ledger import Update, all_updates, is_living, reading, wholes, writing
from hcdv.store.saving import model_of
from hcdv.store.writer import checked, load_fit, state_of, updating, worth_bytes

_ROUNDING = 1e-9


def check(folder: Path, *, rebuild: bool = False) -> list[str]:
    """What is wrong, one line each; none if all is well.

    rebuild: write the values of the last update again from its state, if they are damaged.
    """
    found: list[str] = []
    found += _of(lambda: read_files(folder, read_about(folder)))
    found += _of(lambda: load_fit(folder))
    if found or not is_living(folder):
        return found
    with reading(folder) as ledger:
        said = [row[0] for row in ledger.execute("PRAGMA integrity_check")]
        if said != ["ok"]:
            return [f"ledger: {line}" for line in said]
        updates, worth_as_one = all_updates(ledger), wholes(ledger)
    if rebuild and _of(
        lambda: checked(folder / updates[-1].worth, updates[-1].worth_sha256)
    ):
        _rebuilt(folder)
        return check(folder)
    found += _numbering(updates)
    for update in updates:
        found += _worth_problems(folder, update)
        whole = worth_as_one.get(update.number, update.surplus)
        if abs(whole - update.surplus) > _ROUNDING * max(1.0, abs(update.surplus)):
            found.append(
                f"coalitions of update {update.number} are worth {whole}, its surplus is "
                f"{update.surplus}"
            )
    return found + _state_problems(folder, updates[-1])


def _of(read: object) -> list[str]:
    """The error of reading something, as a list."""
    assert callable(read)
    try:
        read()
    except (HCDVError, OSError) as error:
        return [str(error)]
    return []


def _numbering(updates: list[Update]) -> Iterator[str]:
    for place, update in enumerate(updates):
        if update.number != place:
            yield f"update {place} is missing from the ledger"
            return
    for before, update in pairwise(updates):
        if update.n_rows != before.n_rows + update.came - update.gone:
            yield (
                f"update {update.number} has {update.n_rows} rows, but {before.n_rows} + "
                f"{update.came} − {update.gone} there should be"
            )


def _worth_problems(folder: Path, update: Update) -> list[str]:
    import pandas as pd

    problems = _of(lambda: checked(folder / update.worth, update.worth_sha256))
    if problems:
        return problems
    frame = pd.read_parquet(folder / update.worth, columns=["id", "value"])
    if len(frame) != update.n_rows or frame["id"].duplicated().any():
        problems.append(f"update {update.number} does not have each of its rows once")
    gap = abs(frame["value"].sum() - update.surplus)
    if gap > _ROUNDING * max(1.0, frame["value"].abs().sum()):
        problems.append(
            f"values of update {update.number} sum to {frame['value'].sum()}, its surplus is "
            f"{update.surplus}"
        )
    return problems


def _state_problems(folder: Path, update: Update) -> list[str]:
    import pandas as pd

    problems = _of(lambda: model_of(state_of(folder, update), folder / update.state))
    if problems:
        return problems
    model = model_of(state_of(folder, update), folder / update.state)
    if max(model.checks_["sum_error"], model.checks_["tree_error"]) > _ROUNDING:
        problems.append(f"values in '{update.state}' do not add up")
    worth = folder / update.worth
    if worth.is_file() and not _of(lambda: checked(worth, update.worth_sha256)):
        frame = pd.read_parquet(io.BytesIO(worth.read_bytes()), columns=["id", "value"])
        same = np.array_equal(frame["value"].to_numpy(), model.values_)
        if not (same and frame["id"].tolist() == model.ids_.tolist()):
            problems.append(f"'{update.worth}' is not what '{update.state}' says")
    return problems


def _rebuilt(folder: Path) -> None:
    """Values are what the state says they are: write them, and their new checksum."""
    with updating(folder) as writer:
        content = worth_bytes(writer.model, writer.number)
        with reading(folder) as ledger:
            update = all_updates(ledger)[-1]
        replace_file(folder / update.worth, content)
        with writing(folder) as ledger:
            ledger.execute(
                "UPDATE updates SET worth_sha256 = ? WHERE number = ?",
                (hashlib.sha256(content).hexdigest(), update.number),
            )
