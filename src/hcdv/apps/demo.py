"""A tour in one command: scikit-learn's digits, a tenth of them mislabelled on purpose."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from hcdv.apps.cli import next_steps
from hcdv.apps.console import Commands
from hcdv.apps.report.writing import write_report
from hcdv.apps.summary import facts, text
from hcdv.errors import StoreError
from hcdv.store import check_new, read_about, save
from hcdv.store.folder import REPORT
from hcdv.store.rows import ROWS

SEED = 0
SHARE = 0.1
FOLDER = Path("demo.hcdv")


def flipped(y: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The labels with exactly a tenth of them wrong, and which those are."""
    rng = np.random.default_rng(seed)
    is_wrong = np.zeros(len(y), dtype=bool)
    is_wrong[rng.permutation(len(y))[: round(SHARE * len(y))]] = True
    shift = rng.integers(1, 10, len(y))
    return np.where(is_wrong, (y + shift) % 10, y), is_wrong


def found_among(order: NDArray[np.intp], is_wrong: NDArray[np.bool_]) -> dict[str, float]:
    """How well an order of suspicion finds the wrong labels: precision and AUROC."""
    from sklearn.metrics import roc_auc_score

    n_wrong = int(is_wrong.sum())
    return {
        "precision": float(is_wrong[order[:n_wrong]].mean()),
        "auroc": float(roc_auc_score(is_wrong[order], -np.arange(len(order)))),
    }


def remove_own(folder: Path) -> None:
    """Make way for a new run where an earlier demo left its own; leave all else alone."""
    try:
        about = read_about(folder)
    except StoreError:
        return
    files = {folder / name for name in (*about["sha256"], ROWS)}
    if about["source"] == source() and set(folder.iterdir()) - {folder / REPORT} == files:
        shutil.rmtree(folder)


def source() -> dict[str, str]:
    """Where the demo's rows are from, as the run records it."""
    return {"table": "scikit-learn's digits", "labels": f"10 % flipped by seed {SEED}"}


@click.group(cls=Commands, invoke_without_command=True)
def main() -> None:
    """Value scikit-learn's digits with a tenth of the labels wrong, into ./demo.hcdv."""
    from sklearn.datasets import load_digits

    from hcdv.estimator import HCDV

    remove_own(FOLDER)
    check_new(FOLDER)
    digits = load_digits()
    y, is_wrong = flipped(digits.target, SEED)
    click.echo(
        f"{len(y):,} handwritten digits; {is_wrong.sum()} labels (10 %) flipped by seed {SEED}.\n"
        "No validation set: parts of the data, wrong labels included, judge each other.\n"
    )
    started = time.perf_counter()
    model = HCDV(random_state=SEED).fit(digits.images, y)
    seconds = time.perf_counter() - started
    save(model, FOLDER, source())
    write_report(model, FOLDER / REPORT, is_wrong=is_wrong, folder=FOLDER)
    found = facts(model)
    click.echo(f"{source()['table']}: {text(found)}\n")
    click.echo(_planted(model, is_wrong, seconds))
    click.echo(next_steps(FOLDER, found))


def _planted(model: object, is_wrong: NDArray[np.bool_], seconds: float) -> str:
    """The suspects held against what was planted."""
    order = model.suspects()["row"].to_numpy()  # type: ignore[attr-defined]
    by_value = np.argsort(model.values_, kind="stable")  # type: ignore[attr-defined]
    n, doubted, lowest = (
        int(is_wrong.sum()),
        *(found_among(o, is_wrong) for o in (order, by_value)),
    )
    return (
        f"planted       of the {n} most suspicious rows {doubted['precision']:.0%} have a flipped "
        f"label (by chance: {SHARE:.0%}); AUROC {doubted['auroc']:.3f}\n"
        f"              of the {n} rows of lowest value {lowest['precision']:.0%} have; AUROC "
        f"{lowest['auroc']:.3f}\n"
        f"              {seconds:.1f} s for {len(is_wrong):,} rows"
    )


if __name__ == "__main__":
    main(prog_name="demo")
