"""The facts of a data set's run, read from its files part by part: a sample is held at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.apps.datasets import facts_of
from hcdv.apps.report.facts import (
    N_ENDS,
    N_SUSPECTS,
    base,
    known_wrong,
    made_with,
    source_lines,
    why_no_rows,
)
from hcdv.apps.report.forest import nodes_facts
from hcdv.apps.report.looks import cells, said
from hcdv.apps.report.spread import certainty_facts, spread_facts
from hcdv.apps.report.verdict import verdict
from hcdv.errors import DataError
from hcdv.store import plain
from hcdv.uses.curves import discovery

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.dataset.run import DatasetRun

_HELD = 10**6  # rows behind distributions; beyond, every so many-th
_COLUMNS = ["row", "value", "stderr", "label", "doubt", "suggested"]
_CHANGED = (
    "The files that were valued are not there any more as they were: rows go by number."
)
_NO_VECTORS = "The vectors of a data set's rows are not kept with its run"


def dataset_report_facts(
    run: DatasetRun, *, is_wrong: Any = None, rows: bool = True
) -> dict[str, Any]:
    """As `report_facts`, from the files of a run: no map, and no curves of models."""
    wrong = None if is_wrong is None else known_wrong(is_wrong, run.n_rows)
    found = facts_of(run)
    sample, best, worst = _gathered(run)
    suspects = _named(run.suspects(N_SUSPECTS).rename(columns={"given": "label"}))
    suspects = suspects[: found["n_suspects"]].merge(
        _values_of(run, suspects["row"].to_numpy()), on="row"
    )
    shown = {"suspects": suspects, "best": best, "worst": worst}
    looks, why = _looks(run, shown) if rows else ({}, why_no_rows(asked=False))
    folder = {
        "folder": str(run.folder), "source": run.about["source"],
        "created": run.about["created"], "sha256": run.about["sha256"].get("run.json"),
    }  # fmt: skip
    classes = np.unique(sample["given"]).tolist() if found["n_classes"] else None
    report = {
        **base(found, folder),
        "target": {"kind": "classes" if classes else "numbers"},
        "values": found["values"],
        **{name: _records(part, looks) for name, part in shown.items()},
        "why_no_rows": why,
        "tree": nodes_facts(run.coalitions_),
        "plane": {"kind": None, "why_not": f"{_NO_VECTORS}, so there is no map of them."},
        "spread": spread_facts(sample, classes),
        "certainty": certainty_facts(
            sample["value"].to_numpy(), sample["stderr"].to_numpy()
        ),
        "is_judged_by_itself": run.about["source"]["validation"] is None,
        "curves": [],
        "why_no_curves": f"{_NO_VECTORS}, so models of fewer rows are not taught here: value a "
        "sample as a table to see them.",
        "discovery": None if wrong is None else _discovery(run, wrong),
        "settings": [(name, said(str(each), 120)) for name, each in run.about["settings"].items()],
        "provenance": [*source_lines(folder), *made_with(run.about["versions"])],
    }  # fmt: skip
    return plain({**report, "verdict": verdict(plain(report))})


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    names = {"label": "given", "doubt": "probability"}
    return frame.rename(columns=names).assign(id=frame["row"])


def _gathered(run: DatasetRun) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Every so many-th row, the best and the worst, from one reading of the files."""
    import pandas as pd

    step = -(-run.n_rows // _HELD)
    some: list[Any] = []
    best = worst = None
    for table in run.parts(_COLUMNS):
        frame = table.to_pandas()
        some.append(frame[frame["row"] % step == 0])
        best = pd.concat([best, frame]) if best is not None else frame
        worst = pd.concat([worst, frame]) if worst is not None else frame
        best, worst = best.nlargest(N_ENDS, "value"), worst.nsmallest(N_ENDS, "value")
    assert best is not None
    assert worst is not None
    sample = pd.concat(some, ignore_index=True)
    return _named(sample), _named(best), _named(worst)


def _values_of(run: DatasetRun, rows: NDArray[Any]) -> pd.DataFrame:
    """Values of some rows."""
    import pandas as pd

    held = [
        frame[frame["row"].isin(rows)]
        for table in run.parts(["row", "value", "stderr"])
        for frame in (table.to_pandas(),)
    ]
    return pd.concat(held, ignore_index=True)


def _looks(
    run: DatasetRun, shown: dict[str, pd.DataFrame]
) -> tuple[dict[int, Any], str | None]:
    """Rows as the files hold them, if these are as they were when they were valued."""
    from hcdv.dataset.source import open_source

    source = run.about["source"]
    wanted = np.unique(np.concatenate([part["row"].to_numpy() for part in shown.values()]))
    try:
        files = open_source(
            source["table"], (source["target"],), skip_damaged=bool(source["skipped"])
        )
        if files.n_rows != run.n_rows or files.n_bytes != source["bytes"]:
            raise DataError("they have changed")
        names = [name for name in files.names if name != source["target"]]
        tables = [
            part.to_pandas()
            for row in wanted.tolist()
            for _, part in files.blocks(row, row + 1, names)
        ]
    except (DataError, OSError):
        return {}, _CHANGED
    import pandas as pd

    frame = pd.concat(tables, ignore_index=True)
    return dict(zip(wanted.tolist(), cells(frame), strict=True)), None


def _records(frame: pd.DataFrame, looks: dict[int, Any]) -> list[dict[str, Any]]:
    return [
        {**{str(key): cell for key, cell in each.items()}, "look": looks.get(each["row"])}
        for each in frame.to_dict("records")
    ]


def _discovery(run: DatasetRun, wrong: NDArray[np.bool_]) -> dict[str, Any]:
    doubt, value = run.column("doubt"), run.column("value")
    orders = {
        "doubt": np.argsort(-doubt, kind="stable"),
        "value": np.argsort(value, kind="stable"),
    }
    found = {name: vars(discovery(order, wrong)) for name, order in orders.items()}
    return {"n_wrong": int(wrong.sum()), **found}
