"""`hcdv watch`: files that land in a folder join a run, each exactly once, in order of name.

A file's name and hash are committed in the same transaction as the update it brings, so a
watch that is killed at any moment goes on where it was.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hcdv.apps.living import arrive, more_rows, said
from hcdv.apps.options import FILE

if TYPE_CHECKING:
    from hcdv.store import Writer

_SETTLED = 2.0  # seconds without a change after which a file counts as whole
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload")

Tell = Callable[[str], None]


@click.command()
@click.argument("run", type=FILE)
@click.argument("folder", type=FILE)
@click.option(
    "--every",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    metavar="SECONDS",
    help="How often to look for new files.",
)
@click.option("--once", is_flag=True, help="Take in the files that are there, and stop.")
def watch(run: Path, folder: Path, every: float, *, once: bool) -> None:
    """Take files into RUN as they land in FOLDER, until stopped.

    A line is printed once a file is committed. Stop it, kill it, start it again: every file
    is applied exactly once. Write files under a name that begins with a dot or ends in .tmp
    and rename them when they are whole, or leave them unchanged for two seconds. A file that
    cannot be taken in is named, noted in the ledger and left.

    \b
    hcdv watch iris.hcdv incoming
    """  # noqa: D301, click reads the \b itself
    from hcdv.errors import DataError

    if not folder.is_dir():
        raise DataError(f"FOLDER must be a folder, got '{folder}'. Make it first.")
    try:
        watched(run, folder, every=every, once=once, tell=_echo)
    except KeyboardInterrupt:
        click.echo("\nhcdv: stopped; every file told of is in the run.", err=True)


def watched(run: Path, folder: Path, *, every: float, once: bool, tell: Tell) -> None:
    """Apply files of a folder to a run, now and as they come."""
    from hcdv.store import updating

    with updating(run) as writer:
        seen: dict[str, tuple[int, int]] = {}
        while True:
            for path in _whole_files(folder, seen, once=once):
                _applied(writer, run, path, tell)
            if once:
                return
            time.sleep(every)


def _whole_files(
    folder: Path, seen: dict[str, tuple[int, int]], *, once: bool
) -> Iterator[Path]:
    """Files not looked at yet that are whole, in order of name."""
    from hcdv.apps.reading import SUFFIXES, suffix_of

    for path in sorted(folder.iterdir()):
        hidden = path.name.startswith(".") or path.suffix in _UNFINISHED
        if hidden or suffix_of(path) not in SUFFIXES or not path.is_file():
            continue
        about = path.stat()
        mark = (about.st_size, about.st_mtime_ns)
        if seen.get(path.name) == mark:
            continue
        if once or time.time() - about.st_mtime >= _SETTLED:
            seen[path.name] = mark
            yield path


def _applied(writer: Writer, run: Path, path: Path, tell: Tell) -> None:
    """Apply a file, unless it was before."""
    from hcdv.errors import DataError

    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    known = writer.known_files().get(path.name)
    if known == sha256:
        return
    if known is not None:
        tell(
            f"{path}: changed after it was taken in; left as it is. Give it another name to "
            "have its rows taken in."
        )
        return
    file = (path.name, sha256)
    try:
        sheet = more_rows(run, writer.model, path)
        arrive(writer.model, sheet)
    except DataError as error:
        writer.refuse(file, str(error))
        tell(f"{path}: refused: {error}")
        return
    writer.commit(writer.model, file)
    tell(said(run, writer.model, f"{len(sheet.X):,} rows of {path}"))


def _echo(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()
