"""Two runs side by side: the rows both have, how far their values agree, and which moved."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hcdv.apps.explorer.database import Database
from hcdv.errors import DataError

if TYPE_CHECKING:
    from hcdv.apps.explorer.opened import Opened

_GRID = 80
_JOIN = "first a JOIN second b ON a.id = b.id"


class Comparison:
    """Questions about two runs together; their answers are kept."""

    def __init__(self, first: Opened, second: Opened, scratch: Path) -> None:
        self.first, self.second = first, second
        self.database = Database([first.folder, second.folder], scratch)
        runs = {"first": first, "second": second}
        for name, run in runs.items():
            own = '*, "row" AS id' if run.is_dataset else "*"
            self.database.view(f"{name} points", run.points, own)
        kinds = {self.database.columns(f"{name} points")["id"] for name in runs}
        cast = "id" if len(kinds) == 1 else "CAST(id AS VARCHAR) AS id"
        for name in runs:
            self.database.all(
                f"CREATE VIEW {name} AS SELECT {cast}, row, value, utility, dispersion, "  # noqa: S608
                f'consistency, leaf, CAST(label AS VARCHAR) AS label FROM "{name} points"'
            )

    def refuse_unless_common(self) -> None:
        """DataError if no row is in both."""
        if self.database.all(f"SELECT 1 FROM {_JOIN} LIMIT 1"):  # noqa: S608
            return
        ids = [
            str(self.database.one(f"SELECT id FROM {name} LIMIT 1")[0])  # noqa: S608
            for name in ("first", "second")
        ]
        raise DataError(
            f"OTHER must have rows of RUN by id, got '{self.second.folder}' with none of them "
            f"(ids look like {ids[0]!r} and {ids[1]!r}). Value both with the same --id COLUMN."
        )

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Counts, correlations and sums."""
        found = self.database.records(
            "SELECT count(*) AS n_common, corr(a.value, b.value) AS correlation, "  # noqa: S608
            "sum(a.value) AS first_sum, sum(b.value) AS second_sum, "
            "count(*) FILTER (a.label != b.label) AS n_relabelled, "
            f"stddev_pop(b.value - a.value) AS spread FROM {_JOIN}"
        )[0]
        ranked = self.database.one(
            "SELECT corr(r, s) FROM (SELECT rank() OVER (ORDER BY a.value) AS r, "  # noqa: S608
            f"rank() OVER (ORDER BY b.value) AS s FROM {_JOIN})"
        )
        found["rank_correlation"] = ranked[0]
        for name, run in (("first", self.first), ("second", self.second)):
            (surplus, *parts) = self.database.one(
                "SELECT sum(value), sum(utility), sum(dispersion), sum(consistency) "  # noqa: S608
                f"FROM {name}"
            )
            found[name] = {
                "run": str(run.folder), "n_rows": run.n_rows, "surplus": surplus,
                "utility": parts[0], "dispersion": parts[1], "consistency": parts[2],
            }  # fmt: skip
        return found

    @cached_property
    def spots(self) -> dict[str, Any]:
        """Values of common rows in both runs, as counts on a grid."""
        ends = self.database.one(
            "SELECT approx_quantile(a.value, 0.002), approx_quantile(a.value, 0.998), "  # noqa: S608
            f"approx_quantile(b.value, 0.002), approx_quantile(b.value, 0.998) FROM {_JOIN}"
        )
        step_x, step_y = (
            ((ends[1] - ends[0]) or 1.0) / _GRID,
            ((ends[3] - ends[2]) or 1.0) / _GRID,
        )
        cells = self.database.all(
            "SELECT least(greatest(floor((a.value - ?) / ?), 0), ?)::INT AS i, "  # noqa: S608
            "least(greatest(floor((b.value - ?) / ?), 0), ?)::INT AS j, count(*) AS n "
            f"FROM {_JOIN} GROUP BY i, j",
            [ends[0], step_x, _GRID - 1, ends[2], step_y, _GRID - 1],
        )
        i, j, n = (list(column) for column in zip(*cells, strict=True))
        return {"ends": list(ends), "grid": _GRID, "cells": {"i": i, "j": j, "n": n}}

    def movers(self, limit: int) -> list[dict[str, Any]]:
        """Rows whose values differ most."""
        return self.database.records(
            "SELECT a.id, a.label, b.label AS other_label, a.value, b.value AS other_value, "  # noqa: S608
            f"b.value - a.value AS change FROM {_JOIN} "
            "ORDER BY abs(b.value - a.value) DESC, a.row LIMIT ?",
            [limit],
        )

    @cached_property
    def coalitions(self) -> list[dict[str, Any]]:
        """What the common rows of each coalition of the first run are worth in both."""
        frame = self.first.coalitions
        sums = np.zeros((3, len(frame)))
        for leaf, *found in self.database.all(
            f"SELECT a.leaf, count(*), sum(a.value), sum(b.value) FROM {_JOIN} GROUP BY a.leaf"  # noqa: S608
        ):
            sums[:, leaf] = found
        parent = frame["parent"].to_numpy()
        for node in range(len(frame) - 1, 0, -1):
            sums[:, parent[node]] += sums[:, node]
        frame = frame[["id", "parent", "level", "size", "label_mix"]].copy()
        frame["n_common"], frame["value"], frame["other_value"] = (
            sums[0].astype(int), sums[1], sums[2],
        )  # fmt: skip
        frame["change"] = frame["other_value"] - frame["value"]
        shown = frame[(frame["n_common"] > 0) & (frame["id"] > 0)]
        order = shown["change"].abs().sort_values(ascending=False, kind="stable").index
        return shown.loc[order[:100]].to_dict("records")
