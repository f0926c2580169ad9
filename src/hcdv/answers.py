"""What a fitted HCDV can be asked: selections, suspects, explanations, coalitions, history.

It holds no arithmetic: each answer is made in a room of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hcdv.arrivals import read_candidates, read_groups
from hcdv.engines.local import one_thread_each
from hcdv.streaming import report
from hcdv.uses import diagnosis, explanation, scoring, selection, suspects
from hcdv.uses.noise import Noise, estimated_noise

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.embedding.encoders import Encoder
    from hcdv.embedding.tables import TableEncoder
    from hcdv.given import Given
    from hcdv.result import Run


class Answers:
    """The questions to a run; what they are asked of is set by `fit` and its updates."""

    run_: Run
    table_encoder_: TableEncoder
    encoder_: Encoder
    given_: Given | None  # the rows as they were given; None where they are not kept

    def select(self, fraction: float, how: str = "quota") -> NDArray[np.intp]:
        """Row indices of a share of the rows to train on: exactly round(fraction · n) of them.

        how: "quota", the same share of every label and coalition without rows that are
        probably mislabelled; "top", the highest values; "greedy", what helps the model most
        step by step.
        """
        check_is_fitted(self, "values_")
        return selection.select(self.run_, fraction, how)

    def suspects(self, k: int | None = None, *, twice: bool = False) -> pd.DataFrame:
        """Rows by how much their label is doubted, the most suspicious first.

        twice: look a second time, with models that are taught less by what the first look
        doubts: a better order, mostly, for a fifth of the time of the fit.
        """
        check_is_fitted(self, "values_")
        with one_thread_each():
            return suspects.suspects(self.run_, k, twice=twice)

    def noise(self, confidence: float = 0.95) -> Noise:
        """The share of labels that are wrong, its interval, and which are taken for which."""
        check_is_fitted(self, "values_")
        return estimated_noise(self.run_, confidence)

    def score_candidates(
        self, X_new: Any, y_new: Any = None, groups: Any = None, keep: int | None = None
    ) -> pd.DataFrame:
        """What rows outside the data would be worth as one more row of it, a line each.

        The data, the run and the candidates of each other stay out of it: a candidate enters
        nobody's context. y_new: labels of the classes there are; None: expected values over
        the labels the models hold for possible, with their spread. groups: one entry a
        candidate, to compare by. keep: choose at most so many, a share of every class, and
        give a rank and a reason for each that is kept or dropped. The page on augmentation
        says what the columns are.
        """
        check_is_fitted(self, "values_")
        scoring.check_keep(keep)
        noted = list(self.table_encoder_.notes)
        try:
            with one_thread_each():
                rows, Z, labels = read_candidates(
                    self.run_, self.table_encoder_, self.encoder_, X_new, y_new
                )
                group = read_groups(groups, rows)
                return scoring.scored(self.run_, Z, labels, group, keep)
        finally:
            self.table_encoder_.notes = noted

    def explain(self, i: int) -> explanation.Explanation:
        """Why row i has its value: its coalitions, parts, label and neighbours."""
        check_is_fitted(self, "values_")
        return explanation.explain(self.run_, i)

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
