"""HCDV, the estimator: fit, then values, coalitions, selections, suspects and explanations.

It wires the three stages and holds no arithmetic.
"""

from __future__ import annotations

import logging
import os
import time as clock
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from hcdv.answers import Answers
from hcdv.arrivals import known_labels, read_arrivals, read_judges
from hcdv.embedding.rows import read_rows
from hcdv.engines.arrays import arrays_on, used
from hcdv.engines.local import one_thread_each, watched
from hcdv.errors import ParameterError
from hcdv.given import Given, part_of
from hcdv.intake import EncoderSettings, Intake, build_case, read_table
from hcdv.result import run_of
from hcdv.settings import checked_plan, grown_tree, stream_settings
from hcdv.streaming import updates
from hcdv.streaming.ahead import Ahead
from hcdv.streaming.draft import Arrivals, Judges, StreamSettings
from hcdv.uses.forgetting import row_mask
from hcdv.valuation.cost import estimated_seconds
from hcdv.valuation.duration import in_words
from hcdv.valuation.methods import value
from hcdv.valuation.payoffs import how_to_go_on
from hcdv.valuation.plan import Plan
from hcdv.valuation.utility import Payoffs, Retrained, resolve_utility

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcdv.dataset.run import DatasetRun

log = logging.getLogger("hcdv")


def _joined(engine: str) -> AbstractContextManager[Any]:
    """A cluster for the time of a fit, so that its games need not each start one."""
    if engine == "local":
        return nullcontext()
    from hcdv.engines.cluster import ray_engine

    return ray_engine(os.environ.get("RAY_ADDRESS"))


class HCDV(Answers, BaseEstimator):
    """Value every training row, and every coalition of rows from the whole set down to leaves.

    Parameters
    ----------
    method : {"nested", "winter", "paper"}
        How coalition budgets reach the points: nested orders to the game level and flat
        marginals below (default), nested orders all the way, or the paper's Algorithm 1.
    encoder
        "auto", "pca", "identity", "linear", "mlp", "conv", a transformer, a torch module, a
        function, or the embeddings themselves.
    utility
        "auto" (= "kernel"), "linear", "fourier", "knn", "soft-knn", "threshold-knn", settings
        from `hcdv.valuation.utility`, a scikit-learn estimator, or a function of row indices.
        The settings can name a checkpoint, from which a fit that was cut short goes on.
    metric : {"auto", "loss", "accuracy", "balanced_accuracy", "auc", "r2"}
        What a model is judged by. "auto": the share of squared loss explained.
    dispersion_weight, consistency_weight : float
        λ and κ of v(S) = M(S) + λ·Δ̄(S) + κ·A(S). κ = None: 32, and 0 for method="paper".
    smoothness_weight : float
        α of the neural encoders' objective.
    branching : int, or sequence of int and of "groups", "classes"; or "flat"
        Children of a node, level by level, the last repeated; names put given partitions first.
    leaf_size : int
        M: a coalition of at most so many rows is not split.
    n_contexts, n_permutations : int or None
        Contexts behind the points' values, and orders behind the coalitions'. None: by size.
    precision : float or None
        Sample until the mean standard error of the values is at most this.
    time_budget : float or None
        Seconds of Stage III to spend on sampling, at least one round.
    semivalue : {"shapley", "banzhaf", "loo"} or ("beta", α, β)
        The weighting of coalition sizes behind the points' values.
    groups, time : column name, array or None
        Without a validation set: rows of one group are never split across folds; models are
        judged on later rows than they were taught with.
    device : {"auto", "cpu", "cuda"}
        Where neural encoders and the kernels of Stage III run. "auto": encoders on a CUDA device
        where PyTorch finds one, kernels on the CPU. Values of "cuda" differ from the CPU's by
        about 1e-5 of the largest.
    engine : {"local", "ray"}
        Where the kernels of `fit_dataset` run, and where `fit` trains an estimator given as
        `utility`. "ray": a cluster; for `fit` the one joined by ``ray.init`` or named by the
        environment's RAY_ADDRESS, or else this machine's cores.
    n_jobs : int or None
        Threads; the values do not depend on it.
    spawn_distance : float or None
        τ: an arriving row further than this (1 − cosine) from all leaves gets one of its own.
        None: never.
    rebalance_every : int or None
        After so many arrived rows, overfull leaves are split and thin ones merged.
    max_rows : int or None
        Rows to keep: when more have arrived, the oldest are forgotten.
    window : int or None
        Updates that a row stays for: with so many more after its own, it is forgotten.
    random_state : int, RandomState or None
        Seed of every draw.
    verbose : bool
        Show progress on standard error.
    """

    def __init__(
        self,
        method: str = "nested",
        encoder: Any = "auto",
        utility: Any = "auto",
        metric: str = "auto",
        dispersion_weight: float = 0.1,
        consistency_weight: float | None = None,
        smoothness_weight: float = 0.01,
        branching: Any = 8,
        leaf_size: int = 64,
        n_contexts: int | None = None,
        n_permutations: int | None = None,
        precision: float | None = None,
        time_budget: float | None = None,
        semivalue: Any = "shapley",
        groups: Any = None,
        time: Any = None,
        device: str = "auto",
        engine: str = "local",
        n_jobs: int | None = -1,
        spawn_distance: float | None = None,
        rebalance_every: int | None = None,
        max_rows: int | None = None,
        window: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.utility = utility
        self.metric = metric
        self.dispersion_weight = dispersion_weight
        self.consistency_weight = consistency_weight
        self.smoothness_weight = smoothness_weight
        self.branching = branching
        self.leaf_size = leaf_size
        self.n_contexts = n_contexts
        self.n_permutations = n_permutations
        self.precision = precision
        self.time_budget = time_budget
        self.semivalue = semivalue
        self.groups = groups
        self.time = time
        self.device = device
        self.engine = engine
        self.n_jobs = n_jobs
        self.spawn_distance = spawn_distance
        self.rebalance_every = rebalance_every
        self.max_rows = max_rows
        self.window = window
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        ids: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Value the rows of X, judged on (X_val, y_val) or, without, by cross-fitting."""
        started = clock.perf_counter()
        plan_for, arrays = checked_plan(self), arrays_on(self.device)
        if self.engine != "local" and not isinstance(
            resolve_utility(self.utility), Retrained
        ):
            raise ParameterError(
                "engine", self.engine, '"local" for a table in memory, unless utility= is an '
                "estimator to train anew", "fit_dataset values Parquet files on a cluster.",
            )  # fmt: skip
        table = read_table(
            X, y, metric=self.metric, ids=ids, sample_weight=sample_weight,
            groups=self.groups if groups is None else groups, time=self.time,
        )  # fmt: skip
        plan = plan_for(len(table.rows), table.metric)
        settings = EncoderSettings(
            self.encoder, self.dispersion_weight, self.smoothness_weight, self.device
        )
        with one_thread_each(), used(arrays):
            intake = build_case(table, settings, X_val, y_val, plan.seed, self.n_jobs)
            embedded = clock.perf_counter()
            tree = grown_tree(self, table, intake.case, plan.seed)
            grown = clock.perf_counter()
            estimated = estimated_seconds(intake.case, tree, plan)
            log.info("about %s of work: %s", in_words(estimated), plan.in_words())
            try:
                with (
                    _joined(self.engine),
                    self._clock(plan, estimated) as tick,
                    watched(tick),
                ):
                    valuation = value(intake.case, tree, plan, self._progress())
            except KeyboardInterrupt as stopped:
                stopped.add_note(how_to_go_on(plan.utility, plan.seed))
                raise
        done = clock.perf_counter()
        seconds = {
            "embed": embedded - started, "tree": grown - embedded, "value": done - grown,
            "estimated": estimated + valuation.notes.get("estimated_seconds", 0.0),
        }  # fmt: skip
        self._set(run_of(table, intake, tree, plan, valuation, seconds))
        self._remember_columns(table, intake)
        return self

    def fit_dataset(
        self,
        dataset: str | Path,
        target: str,
        out: str | Path,
        *,
        validation: str | Path | None = None,
        drop: Sequence[str] = (),
        memory: int | None = None,
        skip_damaged: bool = False,
        address: str | None = None,
    ) -> DatasetRun:
        """Value a Parquet file, a folder of them or a pattern, of any size, in little memory.

        Values go to the new folder `out`, a line a row in the order of the files' names.
        Interrupted, the same call goes on where it was. memory: bytes to stay within, by
        default half of what is free. skip_damaged: leave unreadable files out, and say so.
        address: of a Ray cluster, for engine="ray"; None: one of its own on this machine.
        """
        from hcdv.dataset.valuation import Request, value_dataset

        request = Request(
            str(dataset), target, Path(out), None if validation is None else str(validation),
            tuple(drop), memory, skip_damaged, address,
        )  # fmt: skip
        return value_dataset(self, request)

    def partial_fit(
        self, X: Any, y: Any = None, X_val: Any = None, y_val: Any = None, *,
        ids: Any = None, sample_weight: Any = None, lazy: bool = True,
    ) -> Self:  # fmt: skip
        """Take in new rows; the first call is a fit.

        Each joins the nearest leaf; tree, encoder and probe stay, and statistics are added.
        lazy: new rows, the surplus and the first level of coalitions are valued at once, and
        all other values are corrected so that they add up, and marked in `stale_` until
        `refresh`. Otherwise all values are computed anew.
        X_val, y_val: a validation set in place of the one there is.
        """
        if not hasattr(self, "_run"):
            return self.fit(X, y, X_val, y_val, ids=ids, sample_weight=sample_weight)
        updates.refuse_arrivals(self._run)
        settings, rows = stream_settings(self), read_rows(X)
        with one_thread_each():
            if lazy and self._ahead is None:
                self._ahead = Ahead.of(self._run)
            arrivals, notes = read_arrivals(
                self._run,
                self.table_encoder_,
                self.encoder_,
                rows,
                y,
                ids,
                sample_weight,
                self._ahead,
            )
            judges = read_judges(
                self._run, self.table_encoder_, self.encoder_, X_val, y_val
            )
            went = self._arrived(arrivals, judges, settings, lazy=lazy)
        self._run.notes.extend(note for note in notes if note not in self._run.notes)
        if self.given_ is not None:
            self.given_ = self.given_.joined(part_of(rows, arrivals.ids)).without(went)
        return self

    def _arrived(
        self, new: Arrivals, judges: Judges | None, settings: StreamSettings, *, lazy: bool
    ) -> NDArray[Any]:
        """Take rows in, without looking at the others where that will do; ids that went."""
        if lazy and self._ahead is not None:
            ahead = self._ahead.arrived(new, settings, judges)
            if ahead is not None:
                self._ahead = ahead
                return new.ids[:0]
        before = self.run_
        self._set(updates.arrive(before, new, settings, lazy=lazy, judges=judges))
        n_gone = before.n_rows + len(new) - self._run.n_rows
        return np.concatenate([before.canonical_ids, new.ids])[:n_gone]

    def forget(self, rows: Any, *, lazy: bool = False) -> Self:
        """Withdraw rows: the values of the others, as if these had never been there.

        Tree, encoder and probe stay; statistics are subtracted, and nothing is retrained.
        Rows are positions in the current data; `ids_` keeps the identity of those that stay.
        lazy: as in `partial_fit`.
        """
        self._check()
        run = self.run_
        with one_thread_each():
            self._set(updates.forget(run, rows, lazy=lazy))
        if self.given_ is not None:
            self.given_ = self.given_.without(run.ids[row_mask(rows, run.n_rows)])
        return self

    def relabel(self, rows: Any, y: Any, *, lazy: bool = False) -> Self:
        """Give rows other labels of the classes there are: a row goes, and comes again.

        Rows are positions in the current data, and y has a label for each. lazy: as in
        `partial_fit`.
        """
        self._check()
        labels = known_labels(self.run_.target, y, len(np.atleast_1d(y)))
        with one_thread_each():
            self._set(updates.relabel(self.run_, rows, labels, lazy=lazy))
        return self

    def refresh(self) -> Self:
        """Bring every value to what valuing all rows on the same tree gives."""
        self._check()
        with one_thread_each():
            self._set(updates.refresh(self.run_))
        return self

    def save(self, folder: str | Path, *, rows: bool = True) -> Path:
        """Write the run to a new folder, all or nothing. No pickle.

        rows: keep the rows as they were given, too, so that reports can show them.
        """
        from hcdv.store import save

        self._check()
        return save(self, Path(folder), rows=rows)

    @classmethod
    def load(cls, folder: str | Path) -> HCDV:
        """Read a run folder; nothing in it is executed."""
        from hcdv.store import load

        return load(Path(folder))

    def _remember_columns(self, table: Any, intake: Intake) -> None:
        rows = table.rows
        self.n_features_in_ = int(np.prod(rows.table.shape[1:]))
        if rows.frame is not None:
            self.feature_names_in_ = np.asarray(rows.frame.columns, dtype=object)
        part = part_of(rows, table.ids)
        self.given_ = None if part is None else Given.of(part)
        self.encoder_ = intake.encoder
        self.table_encoder_ = intake.table_encoder
        if table.target.classes is not None:
            self.classes_ = table.target.classes
        for note in self.notes_:
            log.info(note)

    def _progress(self) -> Any:
        if not self.verbose:
            return None
        from hcdv.progress import bar

        return bar("coalitions")

    def _clock(self, plan: Plan, estimated: float) -> AbstractContextManager[Any]:
        """A bar along the time expected, except for models trained anew: these are counted."""
        from hcdv.progress import timed_bar

        counted = isinstance(plan.utility, Payoffs | Retrained)
        expected = max(estimated, plan.time_budget or 0.0)
        return timed_bar("valuing", expected if self.verbose and not counted else 0.0)

    def _repr_html_(self) -> str:
        """What a notebook shows: scikit-learn's diagram, and once fitted what was found."""
        return super()._repr_html_() if not hasattr(self, "values_") else self._card()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        if not hasattr(self, "values_"):
            return super()._repr_mimebundle_(**kwargs)
        return {"text/plain": repr(self), "text/html": self._card()}

    def __sklearn_tags__(self) -> Any:
        """A target is required; sparse rows are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags
