"""The payoff of any model: retrained on each coalition's rows, or a user's own function."""

from __future__ import annotations

import pickle
import re
import warnings
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from threadpoolctl import threadpool_limits

from hcdv.engines.local import n_workers, ordered_map
from hcdv.errors import DataError, ExecutorError, ParameterError, PayoffError
from hcdv.valuation.cached_game import (
    CONSTANT_GUESS,
    CachedGame,
    Outcome,
    Played,
    as_payoff,
)
from hcdv.valuation.scoring import UNIT, scoring_of
from hcdv.valuation.training import (
    Batches,
    Training,
    as_rows,
    told,
    train_and_score,
    train_and_score_all,
    weight_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import ArrayLike, NDArray

    from hcdv.valuation.cached_game import Progress
    from hcdv.valuation.scoring import Bounds, Scorer

_MOST_AT_ONCE = 32  # coalitions a worker takes: what an interruption can lose
_RETRIES = 3  # of coalitions whose worker died: a model that kills its worker ends the run


class RetrainingGame(CachedGame):
    """A scikit-learn estimator trained on unions of groups of rows, and scored.

    Parameters
    ----------
    estimator
        Anything with fit and predict; it is cloned, never fitted itself.
    X, y, X_val, y_val
        Rows as an array, a sparse matrix or a DataFrame, and their labels.
    groups, n_groups
        The player each row of X belongs to, numbered from 0, and how many players there are,
        where the last of them hold no row.
    scorer
        "accuracy", "balanced_accuracy", "auc", "r2", "loss" (1 − loss/loss(∅)), another
        scikit-learn scorer's name, or scorer(model, X, y).
    sample_weight
        Weights of the rows of X, passed to fit.
    n_jobs
        Number of processes, as in joblib. Payoffs do not depend on it.
    seed
        Every random_state in the estimator is set from it and the coalition.
    progress
        Called with (done, total) as coalitions are played.
    bounds
        Range a score must be in; known for the five metrics above.
    empty
        The payoff of no rows, where the scorer's own should not be used.
    engine
        "local", or "ray": coalitions are tasks of the cluster this process has joined, or of
        one on this machine, for the time.

    Coalitions of one class predict it without a fit. Fits and scores that raise are paid
    as the empty coalition and counted; when more than half do, PayoffError is raised.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        X_val: Any,
        y_val: ArrayLike,
        groups: ArrayLike,
        *,
        scorer: Scorer,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        bounds: Bounds | None = None,
        empty: float | None = None,
        n_groups: int | None = None,
        engine: str = "local",
    ) -> None:
        super().__init__(groups, n_groups=n_groups, n_jobs=n_jobs, progress=progress)
        self.engine = engine
        train, validation = (as_rows(X), np.asarray(y)), (as_rows(X_val), np.asarray(y_val))
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        for name, part, n in (
            ("y", train[1], train[0].shape[0]),
            ("groups", self.groups, train[0].shape[0]),
            ("sample_weight", weight, train[0].shape[0]),
            ("y_val", validation[1], validation[0].shape[0]),
        ):
            if part is not None and len(part) != n:
                raise DataError(f"{name} must have one entry a row, {n}, got {len(part)}.")
        if weight is not None:
            weight_name(estimator)
        given = {"bounds": bounds, "empty": empty}
        scoring = scoring_of(scorer, estimator, train, validation, **given)
        self.training = Training(estimator, *train, self.groups, weight, scoring, seed)

    @property
    def empty_payoff(self) -> float:
        """v(∅)."""
        return self.training.scoring.empty

    def _play(self, masks: NDArray[np.bool_]) -> Generator[list[Played]]:
        if self.engine == "ray" and len(masks):
            yield from self._play_on_ray(masks)
            return
        workers = min(n_workers(self.n_jobs), len(masks))
        if workers <= 1:
            with threadpool_limits(1):
                for mask in masks:
                    yield [train_and_score(self.training, mask)]
            return
        self._check_can_travel(workers)
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(backend="loky", inner_max_num_threads=1):
            pool = cast("Any", Parallel)(
                n_jobs=workers, batch_size=1, return_as="generator"
            )
        size = _batch_size(len(masks), workers)
        parts = (masks[start : start + size] for start in range(0, len(masks), size))
        batches = pool(delayed(train_and_score_all)(self.training, part) for part in parts)
        try:
            for batch in batches:  # noqa: UP028  yield from would close it unquieted
                yield batch
        except BrokenProcessPool as error:
            raise PayoffError(
                f"A worker process ended while training: {error}. Payoffs so far are kept. "
                "Where memory is short use fewer n_jobs; n_jobs=1 trains in this process."
            ) from error
        finally:
            with warnings.catch_warnings():  # joblib warns of work cut short on purpose
                warnings.simplefilter("ignore")
                batches.close()

    def _play_on_ray(self, masks: NDArray[np.bool_]) -> Generator[list[Played]]:
        from hcdv.engines.cluster import n_cores, ray_engine

        with ray_engine(retries=_RETRIES) as engine:
            work = Batches(self.training, masks, _batch_size(len(masks), n_cores()))
            with closing(cast("Any", engine(work, range(work.n_batches)))) as batches:
                try:
                    yield from batches
                except ExecutorError as error:
                    raise PayoffError(
                        f"Worker processes ended while training: {error} Payoffs so far are "
                        "kept."
                    ) from error
                except (TypeError, pickle.PicklingError) as error:
                    raise ParameterError(
                        "engine", "ray", '"local" for a model or scorer that cannot be pickled',
                        f"It cannot be sent to another process ({told(error)}).",
                    ) from error  # fmt: skip

    def _n_workers(self) -> int:
        if self.engine != "ray":
            return super()._n_workers()
        from hcdv.engines.cluster import n_cores, ray_engine

        with ray_engine():
            return n_cores()

    def _check_can_travel(self, workers: int) -> None:
        from joblib import wrap_non_picklable_objects

        model = (self.training.estimator, self.training.scoring.scorer)
        try:
            pickle.dumps(
                cast("Any", wrap_non_picklable_objects)(model)
            )  # as workers get it
        except Exception as error:
            raise ParameterError(
                "n_jobs",
                workers,
                "1 for a model or scorer that cannot be pickled",
                f"It cannot be sent to another process ({error}): use n_jobs=1.",
            ) from error

    def _identity(self) -> bytes:
        t, s = self.training, self.training.scoring
        settings = (t.estimator, s.name, s.scorer, s.bounds, s.empty, t.seed)
        parts = (t.X, t.y, s.X_val, s.y_val, t.sample_weight)
        return _text_of(settings).encode() + b"".join(_content(part) for part in parts)


def _batch_size(n_masks: int, workers: int) -> int:
    return int(np.clip(n_masks // (8 * workers), 1, _MOST_AT_ONCE))


class CallableGame(CachedGame):
    """A user's own payoff: function(sorted row indices of a coalition) → number.

    `function` is called in this process and need not be picklable; with n_jobs above 1 it
    is called from that many threads, and must then be safe to. It must give the same number
    for the same rows. An error in it ends the run. Without `empty`, it is also asked for
    the payoff of no rows. When a cache is loaded, functions are told apart by name alone.
    """

    unit = "calls"

    def __init__(
        self,
        function: Callable[[NDArray[np.intp]], float],
        n_rows: int,
        groups: ArrayLike,
        *,
        bounds: Bounds = UNIT,
        empty: float | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
        n_groups: int | None = None,
    ) -> None:
        super().__init__(groups, n_groups=n_groups, n_jobs=n_jobs, progress=progress)
        if len(self.groups) != n_rows:
            raise DataError(
                f"groups must have one entry a row, {n_rows}, got {len(self.groups)}."
            )
        if empty is not None:
            empty = as_payoff(empty, bounds, "empty", "no points")
        self.function = function
        self.bounds = bounds
        self.empty = empty

    def _play(self, masks: NDArray[np.bool_]) -> Generator[list[Played]]:
        for played in ordered_map(self._ask, masks, self.n_jobs):
            yield [played]

    def _ask(self, mask: NDArray[np.bool_]) -> Played:
        rows = np.flatnonzero(mask[self.groups])
        if not len(rows) and self.empty is not None:
            return Played(self.empty, Outcome.EMPTY)
        of = f"{len(rows)} of {len(self.groups)} points"
        try:
            score = self.function(rows)
        except MemoryError:
            raise
        except Exception as error:
            raise PayoffError(
                f"utility raised {told(error)} for {of}. {CONSTANT_GUESS}"
                + ("" if len(rows) else " Or pass empty=, the payoff of no rows.")
            ) from error
        payoff = as_payoff(score, self.bounds, "utility", of)
        return Played(payoff, Outcome.FITTED if len(rows) else Outcome.EMPTY)

    def _identity(self) -> bytes:
        name = getattr(self.function, "__qualname__", self.function)
        return _text_of((name, self.bounds, self.empty)).encode()


def _text_of(settings: object) -> str:
    from sklearn import config_context

    # Scikit-learn's repr shows settings; addresses differ from process to process.
    with config_context(print_changed_only=False):
        return re.sub(r" at 0x[0-9a-f]+", "", repr(settings))


def _content(part: Any) -> bytes:
    """Return a digest of an array or table that another process finds equal."""
    from joblib import hash as content_hash

    if hasattr(part, "iloc"):
        part = [(name, np.asarray(part[name])) for name in part.columns]
    elif isinstance(part, np.ndarray) and part.dtype.kind != "O":
        part = np.ascontiguousarray(part)
    return str(content_hash(part)).encode()
