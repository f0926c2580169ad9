"""What a fitted HCDV can be asked: selections, suspects, explanations, coalitions, history.

It holds no arithmetic: each answer is made in a room of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hcdv.arrivals import read_candidates, read_groups
from hcdv.cards import bar, card, pairs
from hcdv.engines.local import one_thread_each
from hcdv.streaming import report
from hcdv.uses import (
    description,
    diagnosis,
    explanation,
    gaps,
    marketplace,
    scoring,
    selection,
    suspects,
)
from hcdv.uses.noise import Noise, estimated_noise

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from hcdv.embedding.encoders import Encoder
    from hcdv.embedding.tables import TableEncoder
    from hcdv.given import Given
    from hcdv.hierarchy.tree import Tree
    from hcdv.result import Run
    from hcdv.streaming.ahead import Ahead


class Answers:
    """The questions to a run; what they are asked of is set by `fit` and its updates."""

    _run: Run
    _ahead: Ahead | None = None  # updates that `_run` has not caught up with
    table_encoder_: TableEncoder
    encoder_: Encoder
    given_: Given | None  # the rows as they were given; None where they are not kept

    def _set(self, run: Run) -> None:
        self._run, self._ahead = run, None

    def _check(self) -> None:
        check_is_fitted(self, "_run")

    @property
    def run_(self) -> Run:
        """What was found, with all rows that have come; they are brought together here."""
        self._check()
        if self._ahead is not None and self._ahead.came:
            self._ahead = self._ahead.looked_at()
            self._run = self._ahead.run
        return self._run

    @property
    def values_(self) -> NDArray[np.float64]:
        """φ of every row, (n,)."""
        return self.run_.values

    @property
    def stderr_(self) -> NDArray[np.float64]:
        """Standard errors of the values, (n,)."""
        return self.run_.stderr

    @property
    def parts_(self) -> dict[str, NDArray[np.float64]]:
        """The values by part of the payoff."""
        return self.run_.parts

    @property
    def surplus_(self) -> float:
        """v(D) − v(∅), what the values add up to."""
        self._check()
        if self._ahead is not None and self._ahead.came:
            return float(sum(self._ahead.living.history[-1].surplus.values()))
        return self._run.surplus

    @property
    def tree_(self) -> Tree:
        """The coalitions."""
        return self.run_.tree

    @property
    def ids_(self) -> NDArray[Any]:
        """Ids of the rows: lasting, whatever comes and goes."""
        return self.run_.ids

    @property
    def notes_(self) -> list[str]:
        """What a reader of the values should know."""
        self._check()
        return self._run.notes

    @property
    def checks_(self) -> dict[str, Any]:
        """Sums that must hold and correlations that should, as measured."""
        return self.run_.checks

    def select(self, fraction: float, how: str = "quota") -> NDArray[np.intp]:
        """Row indices of a share of the rows to train on: exactly round(fraction · n) of them.

        how: "quota", the same share of every label and coalition without rows that are
        probably mislabelled; "top", the highest values; "greedy", what helps the model most
        step by step.
        """
        return selection.select(self.run_, fraction, how)

    def suspects(self, k: int | None = None, *, twice: bool = False) -> pd.DataFrame:
        """Rows by how much their label is doubted, the most suspicious first.

        twice: look a second time, with models that are taught less by what the first look
        doubts: a better order, mostly, for a fifth of the time of the fit.
        """
        with one_thread_each():
            return suspects.suspects(self.run_, k, twice=twice)

    def noise(self, confidence: float = 0.95) -> Noise:
        """The share of labels that are wrong, its interval, and which are taken for which."""
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
        return explanation.explain(self.run_, i, self.given_)

    def describe(self, nodes: Any = None, most: int = 3) -> pd.DataFrame:
        """Coalitions in the data's own words: what sets their rows apart from all rows.

        nodes: ids of coalitions, all by default. most: how many things to say of each.
        Rows that are embeddings or images, or that were not kept, leave `description` empty;
        `label_mix` is always there.
        """
        return description.coalitions_described(self.run_, self.given_, nodes, most)

    def gaps(self, k: int = 5) -> pd.DataFrame:
        """What to collect next: k coalitions each to collect more of, with enough, and harmful.

        gain: what one more row like those there would add; if_gone: what all rows would lose
        without the coalition; error: how often its labels are told wrong without them.
        """
        return gaps.gaps(self.run_, self.given_, k)

    def payouts(
        self, owners: Any, *, revenue: Any, rule: Any = None, currency: str | None = None,
        basis: str | None = None, model: Any = None, replication: bool | None = None,
    ) -> marketplace.Payouts:  # fmt: skip
        """Share a revenue among the owners of the rows by what their rows are worth.

        owners: one name a row, in the order of `ids_`, or a column of the rows given.
        revenue: what there is to share, exact to the smallest unit of `currency`.
        rule: a `hcdv.PayoutRule`, for a minimum, a cap, or equal shares where nothing is of worth.
        basis: "sellers", their Shapley values as players (default); "rows", the sums of their
        rows' values; "model", as sellers with `model`, an estimator taught anew every time.
        replication: measure what sellers would gain by copies; None: where that is cheap.
        """
        return marketplace.payouts(
            self.run_, self.given_, owners, revenue, rule=rule, currency=currency,
            basis=basis, model=model, replication=replication,
        )  # fmt: skip

    def report(self, path: str | Path, *, is_wrong: Any = None, rows: bool = True) -> Path:
        """Write what was found to one HTML file: verdict, groups, map, suspects, curves, checks.

        is_wrong: which labels are known to be wrong, to see how soon they are found. rows:
        show rows as they were given. An older report at that place is replaced.
        """
        from hcdv.apps.report.writing import write_report

        return write_report(self, path, is_wrong=is_wrong, rows=rows)  # type: ignore[arg-type]

    def drift(self, since: int = 0) -> pd.DataFrame:
        """Which coalitions gained or lost since an update of `history_`; 0 is the fit."""
        return report.drift(self.run_, since)

    def guarantees(self, confidence: float = 0.95) -> dict[str, dict[str, Any]]:
        """The paper's guarantees held against this run: what was promised, what is estimated."""
        return diagnosis.diagnosis(self.run_, confidence)

    def to_frame(self) -> pd.DataFrame:
        """One row a training row: id, value, stderr, parts, leaf, label."""
        return self.run_.frame()

    def _card(self) -> str:
        """The result at a glance, as HTML."""
        run = self.run_
        n, below = run.n_rows, int((run.valuation.values < 0).sum())
        n_wrong = int(self.suspects()["is_suspect"].sum())
        groups = f"{run.canonical_tree.n_nodes - 1:,} groups of similar rows"
        more = (
            "select, explain and to_frame ask for parts; report('report.html') writes all"
        )
        facts = [
            (
                "values",
                f"{run.surplus / n:+.2e} a row on average, {below:,} of {n:,} below zero",
            ),
            ("labels", f"{n_wrong:,} more likely wrong than right: suspects()"),
            ("coalitions", f"{groups}: coalitions_"),
            ("more", more),
        ]
        parts = run.valuation.surplus
        said = ", ".join(f"{name} {part:+.4f}" for name, part in parts.items())
        lines = pairs([("surplus", f"{run.surplus:+.4f}: {said}"), *facts])
        return card(f"HCDV: what {n:,} rows are worth", bar(parts), lines)

    @property
    def stale_(self) -> NDArray[np.bool_]:
        """Rows whose values are corrected, but not computed anew since the data changed."""
        return self.run_.stale

    @property
    def history_(self) -> pd.DataFrame:
        """A line for the fit and every update: rows, surplus with its parts, label shares."""
        self._check()
        return report.history(self.run_)

    @property
    def coalition_history_(self) -> pd.DataFrame:
        """A line for every update and coalition: its size and value then; `key` lasts."""
        return report.coalition_history(self.run_)

    @property
    def coalitions_(self) -> pd.DataFrame:
        """Every node of the tree: id, parent, level, size, value, stderr, parts, label mix."""
        return self.run_.coalitions()

    @property
    def embedding_(self) -> NDArray[np.floating]:
        """Unit vectors of the rows, (n, d)."""
        return self.run_.embedding
