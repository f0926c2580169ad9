"""M(S), the ways a coalition's rows can be worth something to a model.

The `utility=` of an estimator is a name, one of these settings objects, a scikit-learn
estimator, or a function of row indices; `resolve_utility` makes a settings object of it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from hcdv.errors import ParameterError

Kind = Literal["soft", "hard", "threshold"]


@dataclass(frozen=True, kw_only=True)
class LeastSquares:
    """A regularised least-squares probe on z: every coalition exact, nothing retrained.

    features: "kernel" (Nyström, the default), "fourier" or "linear"; ridge: ρ per row of D.
    """

    features: str = "kernel"
    n_features: int = 128
    ridge: float = 0.03

    def __post_init__(self) -> None:
        """Refuse settings no probe has."""
        if self.features not in ("kernel", "fourier", "linear"):
            raise ParameterError(
                "features", self.features, 'one of "kernel", "fourier", "linear"'
            )
        if self.n_features < 1:
            raise ParameterError("n_features", self.n_features, "at least 1")
        if not self.ridge > 0:
            raise ParameterError(
                "ridge", self.ridge, "positive", "It keeps small sets solvable."
            )


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """k nearest neighbours in z, valued in closed form.

    kind: "soft" (share of the neighbours there are), "hard" (share of k) or "threshold"
    (every row within `radius`, cosine distance 1 − cos). Regression targets: the mean.
    """

    kind: Kind = "soft"
    k: int = 10
    radius: float = 0.1

    def __post_init__(self) -> None:
        """Refuse settings no neighbourhood has."""
        if self.kind not in ("soft", "hard", "threshold"):
            raise ParameterError("kind", self.kind, 'one of "soft", "hard", "threshold"')
        if self.k < 1:
            raise ParameterError("k", self.k, "at least 1")
        if not 0 < self.radius <= 2:
            raise ParameterError("radius", self.radius, "a cosine distance in (0, 2]")


@dataclass(frozen=True, kw_only=True)
class Retrained:
    """A scikit-learn estimator trained anew on every coalition, scored by `scorer`.

    scorer: None for the run's metric, a scikit-learn scorer's name, or scorer(model, X, y).
    bounds and empty state the range of the score and its value without data, where unknown.
    checkpoint: a file to keep scores in while models are trained. A fit that was cut short
    goes on from it, with the same data, settings and `random_state`. Other data or settings
    start anew beside them, but functions, such as a scorer, are known by their name alone.
    """

    estimator: Any
    scorer: Any = None
    bounds: tuple[float, float] | None = None
    empty: float | None = None
    checkpoint: str | os.PathLike[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Payoffs:
    """Your own payoff, function(row indices) → number within `bounds`.

    checkpoint: a file to keep payoffs in, as for `Retrained`. The function is known by its
    name and the tree alone: name another file when you change it, or the data it reads.
    """

    function: Callable[[Any], float]
    bounds: tuple[float, float] = (0.0, 1.0)
    empty: float | None = None
    checkpoint: str | os.PathLike[str] | None = None


Utility = LeastSquares | Neighbours | Retrained | Payoffs

NAMED: dict[str, Utility] = {
    "auto": LeastSquares(),
    "kernel": LeastSquares(),
    "fourier": LeastSquares(features="fourier", n_features=256),
    "linear": LeastSquares(features="linear"),
    "knn": Neighbours(kind="hard"),
    "soft-knn": Neighbours(kind="soft"),
    "threshold-knn": Neighbours(kind="threshold"),
}


def resolve_utility(spec: Any) -> Utility:
    """The settings object behind any accepted `utility`."""
    if isinstance(spec, Utility):
        return spec
    if isinstance(spec, str):
        if spec in NAMED:
            return NAMED[spec]
        close = difflib.get_close_matches(spec, NAMED, 1)
        hint = f'Did you mean "{close[0]}"?' if close else ""
        names = ", ".join(f'"{name}"' for name in NAMED)
        raise ParameterError(
            "utility", spec, f"one of {names}, an estimator or a function", hint
        )
    if isinstance(spec, type):
        raise ParameterError(
            "utility", spec.__name__, "an object", f"Make one: {spec.__name__}()."
        )
    if hasattr(spec, "fit") and hasattr(spec, "predict"):
        return Retrained(estimator=spec)
    if callable(spec):
        return Payoffs(function=cast("Callable[[Any], float]", spec))
    raise ParameterError(
        "utility", spec, "a name, a scikit-learn estimator or a function of row indices"
    )
