"""From a data set on disk to a run folder on disk: checks, passes, record."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import hcdv
from hcdv.dataset.finishing import Shares
from hcdv.dataset.gathering import Sums
from hcdv.dataset.model import Model
from hcdv.dataset.passes import Engine, Passes, local
from hcdv.dataset.run import COALITIONS, VALUES, DatasetRun, likely_wrong
from hcdv.dataset.sampling import Sample, labels_of, read_labels, without_dictionaries
from hcdv.dataset.source import BLOCK, Source, open_source
from hcdv.dataset.task import Layout, Task, as_frame, layout_within
from hcdv.dataset.workspace import Workspace
from hcdv.engines.arrays import NUMPY, Arrays, arrays_on, used
from hcdv.errors import DataError, ParameterError
from hcdv.settings import checked_plan
from hcdv.store import check_new, plain
from hcdv.store.folder import publish, sealed
from hcdv.store.saving import DATASET, versions
from hcdv.targets import Target, resolve_metric
from hcdv.valuation.utility import LeastSquares

FEWEST_ROWS = 256
_ENCODERS = ("auto", "pca", "identity")
_MOST_READ = 10**6  # rows behind the median standard error that is told


@dataclass(frozen=True)
class Request:
    """What a user asks for."""

    dataset: str
    target: str
    out: Path
    validation: str | None = None
    drop: tuple[str, ...] = ()
    memory: int | None = None  # bytes
    skip_damaged: bool = False
    address: str | None = None  # of a Ray cluster
    layout: Layout | None = None  # None: by memory


def value_dataset(settings: Any, request: Request) -> DatasetRun:
    """Value every row of a data set; `settings` are those of an estimator."""
    began = time.perf_counter()
    _refuse_settings(settings)
    plan_for, arrays = checked_plan(settings), _arrays(settings)
    check_new(request.out, "out")
    needed = (request.target, *request.drop)
    source = open_source(request.dataset, needed, skip_damaged=request.skip_damaged)
    target, count = read_labels(source, request.target, settings.metric)
    task = Task(
        source, request.target, _features(source, request), settings.encoder,
        settings.branching, int(settings.leaf_size),
        plan_for(source.n_rows, resolve_metric(settings.metric, target)),
        _layout(source, request),
    )  # fmt: skip
    workspace = Workspace.beside(request.out)
    workspace.begin({**task.about(), "validation": request.validation})
    validation = _validation(request, task, target)
    with _engine(settings, request) as engine, used(arrays):
        passes = Passes(
            task, workspace, target, count, validation, settings.verbose, engine
        )
        passes.seconds["labels"] = time.perf_counter() - began
        model, sums, shares = passes.run()
    record = _record(settings, request, passes, model, sums, shares)
    publish(workspace.folder, request.out, record)
    Workspace(request.out).remove_scratch()
    return DatasetRun.open(request.out)


def _arrays(settings: Any) -> Arrays:
    """Where kernels of this process work; those of a cluster's workers are in memory."""
    if settings.engine == "local":
        return arrays_on(settings.device)
    if settings.device == "cuda":
        raise ParameterError(
            "device", "cuda", '"auto" or "cpu" with engine="ray"',
            "Each task of a cluster works on one core.",
        )  # fmt: skip
    return NUMPY


def _engine(settings: Any, request: Request) -> AbstractContextManager[Engine]:
    if settings.engine == "ray":
        from hcdv.engines.cluster import ray_engine

        return ray_engine(request.address)
    if request.address is not None:
        raise ParameterError(
            "address",
            request.address,
            'None unless engine="ray"',
            "It is that of a cluster.",
        )
    return nullcontext(local)


def _refuse_settings(settings: Any) -> None:
    """Only the default method comes in parts; what it lacks is refused by name."""
    fixed = {
        "method": "nested", "semivalue": "shapley", "precision": None, "time_budget": None,
        "groups": None, "time": None,
    }  # fmt: skip
    for name, only in fixed.items():
        if getattr(settings, name) != only:
            raise ParameterError(
                name, getattr(settings, name), f"{only!r} for a data set on disk",
                "Value a sample of it as a table for the others.",
            )  # fmt: skip
    if not isinstance(settings.encoder, str) or settings.encoder not in _ENCODERS:
        raise ParameterError(
            "encoder", settings.encoder, f"one of {', '.join(_ENCODERS)} for a data set on disk",
            "Write the embeddings of others as columns, and take encoder='identity'.",
        )  # fmt: skip
    from hcdv.valuation.utility import resolve_utility

    if not isinstance(resolve_utility(settings.utility), LeastSquares):
        raise ParameterError(
            "utility",
            settings.utility,
            '"kernel", "fourier" or "linear" for a data set on disk',
        )
    levels = settings.branching
    for level in levels if isinstance(levels, list | tuple) else [levels]:
        if level in ("groups", "classes"):
            raise ParameterError(
                "branching", levels, 'numbers, or "flat", for a data set on disk'
            )


def _features(source: Source, request: Request) -> tuple[str, ...]:
    taken = {request.target, *request.drop}
    features = tuple(name for name in source.names if name not in taken)
    if not features:
        raise DataError(
            f"DATASET must have at least one column beside {request.target!r}, got none. There "
            "is nothing to predict from."
        )
    if source.n_rows < FEWEST_ROWS:
        raise DataError(
            f"DATASET must hold at least {FEWEST_ROWS} rows to be valued in parts, got "
            f"{source.n_rows}. Value so few as a table, with HCDV().fit."
        )
    return features


def _layout(source: Source, request: Request) -> Layout:
    if request.layout is not None:
        return request.layout
    memory = free_memory() // 2 if request.memory is None else request.memory
    text = [name for name, kind in source.columns if kind == "text"]
    return layout_within(memory, len(source.columns), len(text), _letters(source, text))


def _letters(source: Source, text: list[str]) -> float:
    """Bytes of a cell of text, on average over the first block."""
    if not text:
        return 0.0
    _, block = next(source.blocks(0, min(BLOCK, source.n_rows), text))
    return without_dictionaries(block).nbytes / (len(text) * block.num_rows)


def free_memory() -> int:
    """Bytes that can be had without swapping."""
    path = Path("/proc/meminfo")
    if path.is_file():
        for line in path.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _validation(request: Request, task: Task, target: Target) -> Sample | None:
    """The rows that judge, which must fit memory."""
    if request.validation is None:
        return None
    import pyarrow as pa

    source = open_source(request.validation, tuple(task.columns), skip_damaged=False)
    tables = [table for _, table in source.blocks(0, source.n_rows, task.columns)]
    whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    labels = labels_of(whole, source, task.target, 0)
    if target.classes is not None and len(np.unique(labels)) < 2:
        raise DataError(
            f"validation must have at least 2 classes, got one: {labels[0].item()!r}. A "
            "validation set of one class cannot tell models apart."
        )
    frame = as_frame(whole.select(list(task.features)))
    return Sample(frame, labels, np.arange(len(labels)))


def _record(
    settings: Any,
    request: Request,
    passes: Passes,
    model: Model,
    sums: Sums,
    shares: Shares,
) -> bytes:
    """Write the coalitions beside the values, and say what a reader wants to know of the run."""
    folder, task = passes.workspace.folder, passes.task
    frame = shares.coalitions_frame(sums)
    frame.to_parquet(folder / COALITIONS, engine="pyarrow", index=False)
    names = [
        COALITIONS,
        *(f"{VALUES}/{p.name}" for p in sorted((folder / VALUES).glob("p*"))),
    ]
    surplus = shares.surplus(sums)
    classes = model.rows.target.classes
    told = _told(folder, names[1:], classes=classes is not None)
    total = told.pop("sum_of_values")
    size = told.pop("sum_of_sizes") or 1.0
    checks = {
        "sum_of_values": total, "surplus": sum(surplus.values()),
        "sum_error": abs(total - sum(surplus.values())) / size,
        "tree_error": abs(total - float(frame["value"][0])) / size, **shares.notes,
    }  # fmt: skip
    about = {
        "kind": DATASET, "hcdv": hcdv.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": {
            "table": request.dataset, "validation": request.validation,
            "target": request.target, "files": len(task.source.shards),
            "bytes": task.source.n_bytes, "skipped": list(task.source.skipped),
        },
        "n_rows": task.n_rows, "n_columns": len(task.features),
        "n_classes": None if classes is None else len(classes),
        "method": task.plan.method, "metric": task.plan.metric, "seed": task.plan.seed,
        "surplus": sum(surplus.values()), "surplus_parts": surplus, **told,
        "checks": checks, "notes": _notes(passes, model),
        "layout": vars(task.layout), "settings": _settings(settings),
        "seconds": {name: round(each, 3) for name, each in passes.seconds.items()},
        "cpu_seconds": {name: round(each, 3) for name, each in passes.cpu_seconds.items()},
        "versions": versions(),
        "bytes": {name: (folder / name).stat().st_size for name in names},
    }  # fmt: skip
    return sealed(plain(about), {name: _sha256(folder / name) for name in names})


def _settings(settings: Any) -> dict[str, Any]:
    return {name: plain(each) for name, each in settings.get_params(deep=False).items()}


def _notes(passes: Passes, model: Model) -> list[str]:
    task = passes.task
    notes = list(model.rows.notes)
    m = len(model.sample.points)
    if m < task.n_rows:
        notes.append(
            f"encoder, tree and judges are made of {m:,} of the rows, drawn by hash; the others "
            f"go to the nearest of {model.prototypes.n_leaves:,} leaves"
        )
    if passes.validation is None:
        notes.append(
            "no validation set: folds of the rows judge models taught with the others"
        )
    if skipped := task.source.skipped:
        notes.append(f"{len(skipped)} damaged files left out: {', '.join(skipped[:3])}")
    if task.layout.n_sampled < Layout().n_sampled:
        notes.append("memory was small: a smaller sample was drawn, see layout in run.json")
    return notes


def _told(folder: Path, names: list[str], *, classes: bool) -> dict[str, Any]:
    """What a summary shows of the values, from one look at the files written."""
    from pyarrow import parquet

    total = size = doubt = 0.0
    below = n_wrong = 0
    ends = np.zeros((0, 2))  # rows of the smallest and largest values, with these
    errors: list[Any] = []
    n_rows = sum(parquet.read_metadata(folder / name).num_rows for name in names)
    step = -(-n_rows // _MOST_READ)
    for name in names:
        columns = ["row", "value", "stderr", "doubt", "label", "suggested"]
        frame = parquet.read_table(folder / name, columns=columns).to_pandas()
        value = frame["value"].to_numpy()
        total, size = total + float(value.sum()), size + float(np.abs(value).sum())
        doubt += float(frame["doubt"].sum())
        below += int((value < 0).sum())
        n_wrong += int(likely_wrong(frame, classes=classes).sum())
        order = np.argsort(value, kind="stable")
        own = np.r_[order[:5], order[max(5, len(order) - 5) :]]
        ends = np.concatenate([ends, np.c_[frame["row"].to_numpy()[own], value[own]]])
        errors.append(frame["stderr"].to_numpy()[::step])
    ends = ends[np.argsort(ends[:, 1], kind="stable")]
    return {
        "sum_of_values": total, "sum_of_sizes": size,
        "n_suspects": n_wrong, "share_wrong": doubt / n_rows,
        "values": {
            "mean": total / n_rows, "min": ends[0, 1], "max": ends[-1, 1],
            "median_stderr": float(np.median(np.concatenate(errors))), "n_below_zero": below,
            "best_rows": ends[::-1][:5, 0].astype(int).tolist(),
            "worst_rows": ends[:5, 0].astype(int).tolist(),
        },
    }  # fmt: skip


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
