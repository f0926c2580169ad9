"""Games whose payoffs are costly: each distinct coalition is played once, and counted.

A game maps masks (m, K) of bools to payoffs (m,). Subclasses say how coalitions are played;
here they are told apart by their packed bits, kept, exported for another process to go on
from, and refused when most of them failed.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat, cast

import numpy as np

from hcdv.engines.local import n_workers
from hcdv.errors import DataError, ParameterError, PayoffError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from numpy.typing import ArrayLike, NDArray

    Progress = Callable[[int, int], object]

CONSTANT_GUESS = (
    "When no model can be trained, return the score of a constant guess."  # the way out
)
_HOPELESS = 50  # when this many fits fail and none succeeds, the rest is not tried


class Outcome(IntEnum):
    """How a payoff came about."""

    FITTED = 0
    ONE_CLASS = 1
    FAILED = 2
    EMPTY = 3


class Played(NamedTuple):
    """One coalition's payoff, and what was met on the way to it."""

    payoff: float
    outcome: Outcome
    error: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class PayoffReport:
    """What a game has done so far; coalitions taken from a loaded cache are included."""

    fits: int = 0  # trainings tried, or calls of the user's function; failures included
    cached: int = 0  # payoffs answered without playing
    one_class: int = 0  # coalitions whose rows all have one label: that label is predicted
    failures: int = 0  # fits or scores that raised; they are paid as the empty coalition
    warned: int = 0  # fits that gave a warning, played here
    first_error: str = ""
    first_warning: str = ""

    def after(self, played: Played) -> PayoffReport:
        """Return this report with one more coalition in it."""
        outcome = played.outcome
        return replace(
            self,
            fits=self.fits + (outcome in {Outcome.FITTED, Outcome.FAILED}),
            one_class=self.one_class + (outcome is Outcome.ONE_CLASS),
            failures=self.failures + (outcome is Outcome.FAILED),
            warned=self.warned + bool(played.warning),
            first_error=self.first_error or played.error,
            first_warning=self.first_warning or played.warning,
        )


class CostEstimate(NamedTuple):
    """How long coalitions not yet played will take."""

    seconds: float
    n_left: int
    n_probes: int  # played for the estimate, and kept


class CachedGame(ABC):
    """The payoff of unions of groups of rows; row i belongs to player `groups[i]`."""

    unit = "fits"  # what `report.fits` counts, in messages

    def __init__(
        self,
        groups: ArrayLike,
        *,
        n_groups: int | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.groups = _codes(groups)  # (n,)
        self.n_rows_of = np.bincount(self.groups, minlength=n_groups or 0)  # (K,)
        self.n_players = len(self.n_rows_of)
        self.n_jobs = n_jobs
        self.progress = progress
        self._played: dict[bytes, Played] = {}
        self._report = PayoffReport()

    @abstractmethod
    def _play(self, masks: NDArray[np.bool_]) -> Generator[list[Played]]:
        """Play distinct coalitions, and yield their payoffs in order, some at a time."""

    @abstractmethod
    def _identity(self) -> bytes:
        """Return what sets this game apart from others whose payoffs it must not take."""

    def __call__(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the payoff of each coalition, given as the indicator of its players."""
        masks = self._checked(masks)
        keys, first, inverse = _distinct(masks)
        new = np.array([k for k, key in enumerate(keys) if key not in self._played], int)
        n_cached = self._report.cached + len(masks) - len(new)
        self._report = replace(self._report, cached=n_cached)
        self._play_new([keys[k] for k in new], masks[first[new]], self.progress)
        self._refuse_if_most_failed()
        payoffs = np.array([self._played[key].payoff for key in keys], np.float64)
        return payoffs[inverse]

    @property
    def report(self) -> PayoffReport:
        """What has been played so far."""
        return self._report

    def estimate_seconds(self, masks: NDArray[np.bool_], n_probes: int = 6) -> CostEstimate:
        """Time a few of the coalitions not yet played, spread over sizes, and extrapolate.

        Each probe stands for the coalitions nearest to it in number of rows; their payoffs
        are kept, so nothing is paid for twice.
        """
        masks = self._checked(masks)
        keys, first, _ = _distinct(masks)
        new = [i for key, i in zip(keys, first, strict=True) if key not in self._played]
        if not new:
            return CostEstimate(0.0, 0, 0)
        by_size = masks[sorted(new, key=lambda i: int(self.n_rows_of[masks[i]].sum()))]
        middle = len(by_size) // 2
        self._time(by_size[middle])  # first-use costs, such as imports, stay out of it
        rest = np.delete(by_size, middle, axis=0)
        strata = [part for part in np.array_split(rest, max(1, n_probes)) if len(part)]
        work = sum(self._time(part[len(part) // 2]) * (len(part) - 1) for part in strata)
        self._refuse_if_most_failed()
        n_left = len(rest) - len(strata)
        workers = max(1, min(self._n_workers(), n_left))
        return CostEstimate(work / workers, n_left, len(strata) + 1)

    def _n_workers(self) -> int:
        """How many coalitions are played at once."""
        return n_workers(self.n_jobs)

    def cache_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything played so far as arrays without objects, fit for `np.savez`."""
        keys, played = list(self._played), list(self._played.values())
        width = -(-self.n_players // 8)
        bits = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, width)
        return {
            "coalitions": bits,  # (c, ⌈K/8⌉) packed bits
            "payoffs": np.array([p.payoff for p in played], np.float64),
            "outcomes": np.array([p.outcome for p in played], np.uint8),
            "first_error": np.array(self.report.first_error),
            "game": np.array(self.fingerprint),
        }

    def load_cache(self, arrays: Mapping[str, NDArray[np.generic]]) -> int:
        """Take payoffs another instance of the same game has exported; return how many."""
        if str(arrays["game"]) != self.fingerprint:
            raise DataError(
                "The saved payoffs belong to another game: data, groups, model, scorer and "
                "seed must be the same. Start without them, or pass what made them."
            )
        coalitions, payoffs, outcomes = (
            arrays[name] for name in ("coalitions", "payoffs", "outcomes")
        )
        if not len(coalitions) == len(payoffs) == len(outcomes):
            raise DataError("The saved payoffs are cut short. Start without them.")
        before, first_error = len(self._played), str(arrays["first_error"])
        for bits, payoff, code in zip(coalitions, payoffs, outcomes, strict=True):
            outcome = Outcome(int(code))
            error = first_error if outcome is Outcome.FAILED else ""
            if bits.tobytes() not in self._played:
                self._keep(bits.tobytes(), Played(float(payoff), outcome, error))
        return len(self._played) - before

    def _checked(self, masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        masks = np.asarray(masks)
        if masks.dtype != np.bool_ or masks.ndim != 2 or masks.shape[1] != self.n_players:
            raise ParameterError(
                "masks",
                f"{masks.dtype} {masks.shape}",
                f"bool of shape (m, {self.n_players}), one column a player",
            )
        return masks

    def _play_new(
        self, keys: list[bytes], masks: NDArray[np.bool_], progress: Progress | None
    ) -> None:
        # Order by hash mixes the sizes: progress then tells the time left, and the first
        # failures tell about all. It does not depend on workers or on the caller's order.
        order = sorted(range(len(keys)), key=lambda k: blake2b(keys[k]).digest())
        done = 0
        with closing(self._play(masks[order])) as batches:
            for batch in batches:
                for played in batch:
                    self._keep(keys[order[done]], played)
                    done += 1
                if progress is not None:
                    progress(done, len(order))
                if self.report.fits == self.report.failures >= _HOPELESS:
                    self._refuse()

    def _keep(self, key: bytes, played: Played) -> None:
        self._played[key] = played
        self._report = self._report.after(played)

    def _time(self, mask: NDArray[np.bool_]) -> float:
        start = time.perf_counter()
        self._play_new([np.packbits(mask).tobytes()], mask[None], progress=None)
        return time.perf_counter() - start

    @cached_property
    def fingerprint(self) -> str:
        """What the payoffs depend on, as a short text: equal for another instance of the game."""
        digest = blake2b(self._identity(), digest_size=16)
        digest.update(np.ascontiguousarray(self.groups).tobytes())
        return digest.hexdigest()

    def _refuse_if_most_failed(self) -> None:
        if 2 * self.report.failures > self.report.fits:
            self._refuse()

    def _refuse(self) -> None:
        report = self.report
        raise PayoffError(
            f"{report.failures} of {report.fits} {self.unit} failed, so their payoffs say "
            f"nothing about the data. The first error: {report.first_error}. Fit the model "
            "once on all rows to see it whole, or choose one that can learn from few rows."
        )


def as_payoff(score: object, bounds: tuple[float, float], name: str, of: str) -> float:
    """Return the score as a float, or say what it was and which coalition it came from."""
    low, high = bounds
    payoff = _number(score)
    slack = 1e-9  # a mean of ones may end an ulp above one
    if np.isfinite(payoff) and low - slack <= payoff <= high + slack:
        return payoff
    rule, got = _rule(low, high), _shown(score)
    raise PayoffError(f"{name} must return {rule}, got {got} for {of}. {CONSTANT_GUESS}")


def _number(score: object) -> float:
    if isinstance(score, str | bytes) or getattr(score, "ndim", 0):
        return np.nan
    try:
        return float(cast("SupportsFloat", score))
    except (TypeError, ValueError):
        return np.nan


def _shown(score: object) -> str:
    if getattr(score, "ndim", 0):
        return f"an array of shape {tuple(cast('Any', score).shape)}"
    number = _number(score)
    is_number = isinstance(score, SupportsFloat) or not np.isnan(number)
    return f"{number:g}" if is_number else repr(score)[:80]


def _rule(low: float, high: float) -> str:
    if np.isfinite(low) and np.isfinite(high):
        return f"a number in [{low:g}, {high:g}]"
    if np.isfinite(high):
        return f"a finite number up to {high:g}"
    return f"a finite number from {low:g}" if np.isfinite(low) else "a finite number"


def _codes(groups: ArrayLike) -> NDArray[np.intp]:
    codes = np.asarray(groups)
    if codes.ndim != 1 or not len(codes) or not np.issubdtype(codes.dtype, np.integer):
        raise ParameterError(
            "groups",
            f"{codes.dtype} {codes.shape}",
            "a row's player number for every row",
            "Use numpy.unique(names, return_inverse=True)[1] to number names.",
        )
    if codes.min() < 0:
        raise ParameterError("groups", int(codes.min()), "numbered from 0")
    return codes.astype(np.intp)


def _distinct(
    masks: NDArray[np.bool_],
) -> tuple[list[bytes], NDArray[np.intp], NDArray[np.intp]]:
    """Return the keys of the distinct rows, where each is first, and which each row is."""
    bits, first, inverse = np.unique(
        np.packbits(masks, axis=1), axis=0, return_index=True, return_inverse=True
    )
    return [row.tobytes() for row in bits], first, inverse.reshape(-1)
