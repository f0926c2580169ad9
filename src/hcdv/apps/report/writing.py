"""A report to a file: what a run folder says of itself goes in, and one HTML page comes out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcdv.apps.report.dataset_facts import dataset_report_facts
from hcdv.apps.report.facts import report_facts
from hcdv.apps.report.page import MARK, page
from hcdv.errors import StoreError
from hcdv.store import check_new, read_about, write_file
from hcdv.store.folder import replace_file

if TYPE_CHECKING:
    from hcdv.dataset.run import DatasetRun
    from hcdv.estimator import HCDV

_HEAD = 256  # bytes in which a report says that it is one


def write_report(
    run: HCDV | DatasetRun, path: str | Path, *, is_wrong: Any = None, rows: bool = True,
    folder: Path | None = None,
) -> Path:  # fmt: skip
    """Write the report of a run to one HTML file, all or nothing; an older report gives way.

    folder: where the run lies, for the commands that the report names.
    """
    path = Path(path)
    refuse_unless_ours(path)
    put(path, facts_of_run(run, is_wrong=is_wrong, rows=rows, folder=folder))
    return path


def facts_of_run(
    run: HCDV | DatasetRun, *, is_wrong: Any = None, rows: bool = True,
    folder: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The facts of a run of either kind."""
    from hcdv.dataset.run import DatasetRun

    if isinstance(run, DatasetRun):
        return dataset_report_facts(run, is_wrong=is_wrong, rows=rows)
    about = {} if folder is None else _about(folder)
    return report_facts(run, is_wrong=is_wrong, rows=rows, run=about)


def put(path: Path, report: dict[str, Any]) -> None:
    """Write the page of some facts."""
    content = page(report).encode()
    if path.exists():
        replace_file(path, content)
    else:
        write_file(path, content, "path")


def refuse_unless_ours(path: Path, name: str = "path") -> None:
    """Refuse a place that is taken by anything but an older report, before any work."""
    if path.is_file():
        with path.open("rb") as file:
            if MARK.encode() in file.read(_HEAD):
                return
        raise StoreError(
            f"{name} must be new or an older report, got '{path}', which is another file. "
            "Choose another name, or remove it first."
        )
    check_new(path, name)


def _about(folder: Path) -> dict[str, Any]:
    about = read_about(folder)
    return {
        "folder": str(folder), "source": about.get("source") or {},
        "created": about.get("created"), "sha256": about["sha256"].get("run.json"),
        "versions": about.get("versions"),
    }  # fmt: skip
