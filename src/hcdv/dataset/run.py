"""A finished run on disk: a record, the coalitions, and the values of all rows as Parquet."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import DataError, ParameterError, StoreError
from hcdv.store.folder import read_about
from hcdv.store.saving import DATASET
from hcdv.uses.selection import best, number_kept, shared_out
from hcdv.uses.suspects import LIKELY

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

COALITIONS = "coalitions.parquet"
VALUES = "values"
_SUSPECT = ["row", "label", "suggested", "doubt"]


@dataclass(frozen=True)
class DatasetRun:
    """The values of a data set larger than memory; they are read from disk as asked for.

    `values/*.parquet` has a line for every row in the order of the data set: row, value,
    stderr, the parts utility, dispersion and consistency, leaf, label, doubt (the chance
    that the label is wrong) and suggested. Any program that reads Parquet can query it.
    """

    folder: Path
    about: dict[str, Any]

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Read the record of a run folder; values stay on disk."""
        folder = Path(folder)
        about = read_about(folder)
        if about.get("kind") != DATASET:
            raise StoreError(
                f"folder must be the run of a data set, got '{folder}', the run of a table in "
                "memory. Open it with hcdv.HCDV.load."
            )
        for name, size in about["bytes"].items():
            path = folder / name
            found = path.stat().st_size if path.is_file() else None
            if found != size:
                what = "it is missing" if found is None else f"it has {found:,} bytes"
                raise StoreError(
                    f"'{path}' must be as it was written, of {size:,} bytes, got a damaged file: "
                    f"{what}. Restore the folder from a copy, or value the data set again."
                )
        return cls(folder, about)

    @property
    def n_rows(self) -> int:
        """n."""
        return int(self.about["n_rows"])

    @property
    def surplus_(self) -> float:
        """v(D) − v(∅), the sum of all values."""
        return float(self.about["surplus"])

    @property
    def coalitions_(self) -> pd.DataFrame:
        """Every node of the tree: id, parent, level, size, value, stderr, parts, label mix."""
        import pandas as pd

        return pd.read_parquet(self.folder / COALITIONS)

    def parts(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The values of some hundred thousand rows at a time, in the order of the rows."""
        from pyarrow import parquet

        for path in self._files():
            yield parquet.read_table(path, columns=columns, page_checksum_verification=True)

    def select(self, fraction: float, how: str = "quota") -> NDArray[np.int64]:
        """Row numbers to train on: exactly round(fraction · n). Holds 24 bytes a row.

        how: "quota" or "top", as of a table in memory; "greedy" needs the vectors there.
        """
        if how == "greedy":
            raise ParameterError(
                "how", how, '"quota" or "top" for the run of a data set',
                "Greedy selection needs all vectors in memory.",
            )  # fmt: skip
        n_kept = number_kept(fraction, how, self.n_rows)
        if how == "top":
            return np.sort(best(self.column("value"), n_kept))
        label = np.zeros(self.n_rows, dtype=np.intp)
        if self.about["n_classes"]:
            label = np.unique(self.column("label"), return_inverse=True)[1]
        kept = shared_out(
            self.column("value"), self.column("doubt"), label, self.column("leaf"), n_kept
        )
        return np.sort(kept)

    def suspects(self, k: int | None = None) -> pd.DataFrame:
        """The k rows whose labels are doubted most; None: those more likely wrong than right."""
        import pandas as pd

        if k is not None and (not isinstance(k, int | np.integer) or k < 1):
            raise ParameterError("k", k, "None or a number of rows from 1")
        held = pd.DataFrame(columns=_SUSPECT)
        for table in self.parts(_SUSPECT):
            frame = table.to_pandas()
            if k is None:
                frame = frame[likely_wrong(frame, classes=bool(self.about["n_classes"]))]
            elif len(frame) > k:
                frame = frame.nlargest(k, "doubt")
            held = frame if held.empty else pd.concat([held, frame])
            held = held.sort_values(["doubt", "row"], ascending=[False, True])[:k]
        names = {"label": "given", "doubt": "probability"}
        return held.rename(columns=names).reset_index(drop=True)

    def explain(self, row: int) -> dict[str, Any]:
        """One row: its value, parts, label, and the coalitions that hold it, root first."""
        from pyarrow import parquet

        if not 0 <= row < self.n_rows:
            raise DataError(
                f"row must lie between 0 and {self.n_rows - 1}, got {row}. Rows are numbered in "
                "the order of the data set's files."
            )
        at = row
        for path in self._files():
            n_held = parquet.read_metadata(path).num_rows
            if at < n_held:
                found = parquet.read_table(path).slice(at, 1).to_pylist()[0]
                return {**found, "path": self._path(found["leaf"])}
            at -= n_held
        raise StoreError(f"'{self.folder}' must hold row {row}, got none.")

    def report(self, path: str | Path, *, is_wrong: Any = None, rows: bool = True) -> Path:
        """Write what was found to one HTML file, from the files of the run.

        Parameters as of `HCDV.report`; there is no map and no curve, which need the vectors.
        """
        from hcdv.apps.report.writing import write_report

        return write_report(self, path, is_wrong=is_wrong, rows=rows)

    def column(self, name: str) -> NDArray[Any]:
        """One column of all rows, in memory."""
        known = ("value", "stderr", "leaf", "label", "doubt", "suggested", "utility",
                 "dispersion", "consistency", "row")  # fmt: skip
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f'Did you mean "{close[0]}"?' if close else ""
            raise ParameterError("name", name, f"one of {', '.join(known)}", hint)
        columns = (part.column(0).to_pandas().to_numpy() for part in self.parts([name]))
        return np.concatenate(list(columns))

    def _files(self) -> list[Path]:
        return [self.folder / n for n in self.about["bytes"] if n.startswith(f"{VALUES}/")]

    def _path(self, leaf: int) -> list[dict[str, Any]]:
        frame = self.coalitions_
        upward: list[dict[str, Any]] = []
        node = leaf
        columns = ["id", "level", "size", "value", "value_per_row", "label_mix"]
        while node >= 0:
            upward.append(frame.loc[node, columns].to_dict())
            node = int(frame.loc[node, "parent"])
        return upward[::-1]


def likely_wrong(frame: pd.DataFrame, *, classes: bool) -> NDArray[np.bool_]:
    """Rows whose label is more likely wrong than right, and for which there is another."""
    likely = frame["doubt"].to_numpy() > LIKELY
    return likely & (frame["label"] != frame["suggested"]).to_numpy() if classes else likely
