"""How much a valuation samples, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hcdv.valuation.utility import LeastSquares, Neighbours, Utility

N_ORDERS = 8  # R: independent batches behind every standard error
THRESHOLDS = (
    8  # contexts an order: 200 as 8 x 25 err twice as much as 24 x 8, for the same time
)
GAME_COALITIONS = 128  # the game level is the deepest with at most this many coalitions
GAME_ROWS = 64  # of so many rows on average, or the first level: smaller ones err too much
ENUMERATED = 14  # a game of so few players costs 2^14 payoffs at most: no sampling
ENUMERATED_DEEP = 12  # 2^12 payoffs of a game with levels
_CONTEXTS = ((10_000, 200), (200_000, 64), (None, 32))  # points up to → T
_PERMUTATIONS = 64


@dataclass(frozen=True)
class Plan:
    """Settings of Stage III, resolved for one data set. Valid once built."""

    method: str = "nested"
    metric: str = "loss"
    utility: Utility = field(default_factory=LeastSquares)
    dispersion_weight: float = (
        0.1  # λ; paper silent: no value is given, small by evidence 6
    )
    consistency_weight: float = 32.0  # κ
    n_contexts: int = 200  # T of the points, a round
    n_permutations: int = _PERMUTATIONS  # T of the coalition games, a round
    precision: float | None = None
    time_budget: float | None = None
    semivalue: str | tuple[float, float] = "shapley"
    seed: int = 0
    n_jobs: int | None = None
    by_size: bool = False  # whether n_contexts is the default for the number of rows
    engine: str = "local"  # where models are trained anew

    def sized(self, n_points: int) -> Plan:
        """The plan once there are more rows, or fewer."""
        if not self.by_size:
            return self
        return replace(self, n_contexts=default_contexts(n_points))

    def in_words(self) -> str:
        """How much is sampled, and when it stops."""
        sampled = f"{self.n_contexts:,} contexts and {self.n_permutations:,} orders"
        if self.precision is None and self.time_budget is None:
            return sampled
        until = [f"a mean standard error of {self.precision:g}"] if self.precision else []
        until += [f"{self.time_budget:g} s have passed"] if self.time_budget else []
        return f"{sampled} a round, until {' or '.join(until)}"

    @property
    def game_rows(self) -> int:
        """Rows of a coalition, on average, from which it plays: points tell the rest.

        Points of a retrained model are valued by its surrogate: coalitions of any size play.
        """
        return GAME_ROWS if isinstance(self.utility, LeastSquares | Neighbours) else 1

    @property
    def surrogate(self) -> LeastSquares:
        """The probe whose marginals split coalitions into points."""
        return self.utility if isinstance(self.utility, LeastSquares) else LeastSquares()


def default_contexts(n_points: int) -> int:
    """T: 200 up to 10,000 points, fewer where each point's noise is averaged by many."""
    return next(t for most, t in _CONTEXTS if most is None or n_points <= most)


def default_permutations() -> int:
    """T of the coalition games: four or more Latin blocks at eight children a node."""
    return _PERMUTATIONS


class Deadline:
    """Decides whether another round of sampling is worth its time."""

    def __init__(self, plan: Plan) -> None:
        self.precision, self.budget = plan.precision, plan.time_budget
        self.started = self.round_began = time.monotonic()
        self.rounds = 0

    def another(self, mean_stderr: Callable[[], float]) -> bool:
        """Whether to sample again; asks for the points' mean standard error if it matters."""
        now = time.monotonic()
        last, self.round_began, self.rounds = now - self.round_began, now, self.rounds + 1
        if self.precision is None and self.budget is None:
            return False
        if self.precision is not None and mean_stderr() <= self.precision:
            return False
        if self.budget is not None:
            return now - self.started + last <= self.budget
        return self.rounds < MAX_ROUNDS


MAX_ROUNDS = 1000  # errors fall as 1/√rounds: past this no precision is near
