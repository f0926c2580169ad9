"""What a fitted HCDV can be asked: selections, suspects, explanations, coalitions, history.

It holds no arithmetic: each answer is made in a room of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hcdv.streaming import report
from hcdv.uses import description, diagnosis, explanation, selection, suspects

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from hcdv.given import Given
    from hcdv.result import Run


class Answers:
    """The questions to a run; what they are asked of is set by `fit` and its updates."""

    run_: Run
    given_: Given | None  # the rows as they were given; None where they are not kept

    def select(self, fraction: float, how: str = "quota") -> NDArray[np.intp]:
        """Row indices of a share of the rows to train on: exactly round(fraction · n) of them.

        how: "quota", the same share of every label and coalition without rows that are
        probably mislabelled; "top", the highest values; "greedy", what helps the model most
        step by step.
        """
        check_is_fitted(self, "values_")
        return selection.select(self.run_, fraction, how)

    def suspects(self, k: int | None = None) -> pd.DataFrame:
        """Rows by how much their label is doubted, the most suspicious first."""
        check_is_fitted(self, "values_")
        return suspects.suspects(self.run_, k)

    def explain(self, i: int) -> explanation.Explanation:
        """Why row i has its value: its coalitions, parts, label and neighbours."""
        check_is_fitted(self, "values_")
        return explanation.explain(self.run_, i, self.given_)

    def describe(self, nodes: Any = None, most: int = 3) -> pd.DataFrame:
        """Coalitions in the data's own words: what sets their rows apart from all rows.

        nodes: ids of coalitions, all by default. most: how many things to say of each.
        Rows that are embeddings or images, or that were not kept, leave `description` empty;
        `label_mix` is always there.
        """
        check_is_fitted(self, "values_")
        return description.coalitions_described(self.run_, self.given_, nodes, most)

    def report(self, path: str | Path, *, is_wrong: Any = None, rows: bool = True) -> Path:
        """Write what was found to one HTML file: verdict, groups, map, suspects, curves, checks.

        is_wrong: which labels are known to be wrong, to see how soon they are found. rows:
        show rows as they were given. An older report at that place is replaced.
        """
        from hcdv.apps.report.writing import write_report

        check_is_fitted(self, "values_")
        return write_report(self, path, is_wrong=is_wrong, rows=rows)  # type: ignore[arg-type]

    def drift(self, since: int = 0) -> pd.DataFrame:
        """Which coalitions gained or lost since an update of `history_`; 0 is the fit."""
        check_is_fitted(self, "values_")
        return report.drift(self.run_, since)

    def guarantees(self, confidence: float = 0.95) -> dict[str, dict[str, Any]]:
        """The paper's guarantees held against this run: what was promised, what is estimated."""
        check_is_fitted(self, "values_")
        return diagnosis.diagnosis(self.run_, confidence)

    def to_frame(self) -> pd.DataFrame:
        """One row a training row: id, value, stderr, parts, leaf, label."""
        check_is_fitted(self, "values_")
        return self.run_.frame()

    @property
    def stale_(self) -> NDArray[np.bool_]:
        """Rows whose values are corrected, but not computed anew since the data changed."""
        check_is_fitted(self, "values_")
        return self.run_.stale

    @property
    def history_(self) -> pd.DataFrame:
        """A line for the fit and every update: rows, surplus with its parts, label shares."""
        check_is_fitted(self, "values_")
        return report.history(self.run_)

    @property
    def coalitions_(self) -> pd.DataFrame:
        """Every node of the tree: id, parent, level, size, value, stderr, parts, label mix."""
        check_is_fitted(self, "values_")
        return self.run_.coalitions()

    @property
    def embedding_(self) -> NDArray[np.floating]:
        """Unit vectors of the rows, (n, d)."""
        check_is_fitted(self, "values_")
        return self.run_.embedding
