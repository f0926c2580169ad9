"""The estimator's settings, checked before any work and resolved for one data set."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from hcdv.errors import ParameterError
from hcdv.hierarchy.growth import flat_tree, grow, tree_from_levels
from hcdv.hierarchy.tree import Tree
from hcdv.intake import Table
from hcdv.streaming.draft import StreamSettings
from hcdv.valuation.methods import METHODS
from hcdv.valuation.moments import CLASSIFICATION_METRICS, REGRESSION_METRICS
from hcdv.valuation.plan import Plan, default_contexts, default_permutations
from hcdv.valuation.points import Case
from hcdv.valuation.utility import LeastSquares, resolve_utility

CONSISTENCY_WEIGHT = 32.0  # κ: docs/evidence.md; a surely wrong label outweighs all M
GIVEN_LEVELS = ("groups", "classes")
BRANCHING = 8  # the default, which serves a table of any length


def checked_plan(settings: Any) -> Callable[[int, str], Plan]:
    """Check every setting of an estimator; the answer makes the plan of n rows and a metric."""
    _one_of("method", settings.method, METHODS)
    metrics = (
        "auto",
        *CLASSIFICATION_METRICS,
        *[m for m in REGRESSION_METRICS if m != "loss"],
    )
    _one_of("metric", settings.metric, metrics)
    _one_of("device", settings.device, ("auto", "cpu", "cuda"))
    _one_of("engine", settings.engine, ("local", "ray"))
    for name in ("dispersion_weight", "smoothness_weight", "consistency_weight"):
        _number(name, getattr(settings, name), 0.0, optional=name.startswith("consist"))
    for name in ("precision", "time_budget"):
        _number(name, getattr(settings, name), 0.0, optional=True, open_below=True)
    _whole("leaf_size", settings.leaf_size, 1)
    _whole("n_contexts", settings.n_contexts, 8, optional=True)
    _whole("n_permutations", settings.n_permutations, 2, optional=True)
    _jobs(settings.n_jobs)
    _levels(settings.branching)
    stream_settings(settings)
    semivalue = _semivalue(settings.semivalue)
    utility = resolve_utility(settings.utility)
    if settings.method != "nested" and semivalue != "shapley":
        raise ParameterError(
            "semivalue", settings.semivalue, f'"shapley" for method="{settings.method}"',
            'Use method="nested" for other semivalues.',
        )  # fmt: skip
    if semivalue != "shapley" and not isinstance(utility, LeastSquares):
        raise ParameterError(
            "semivalue", settings.semivalue, '"shapley" for this utility',
            'Use utility="kernel", "fourier" or "linear" for other semivalues.',
        )  # fmt: skip
    _refuse_rounds(settings, semivalue)
    weight = settings.consistency_weight
    if weight is None:
        weight = 0.0 if settings.method == "paper" else CONSISTENCY_WEIGHT
    seed = _seed(settings.random_state)

    def plan(n: int, metric: str) -> Plan:
        _refuse_too_many_children(settings.branching, n)
        contexts, permutations = settings.n_contexts, settings.n_permutations
        return Plan(
            settings.method, metric, utility, float(settings.dispersion_weight),
            float(weight), default_contexts(n) if contexts is None else int(contexts),
            default_permutations() if permutations is None else int(permutations),
            settings.precision, settings.time_budget, semivalue, seed, settings.n_jobs,
            by_size=contexts is None, engine=settings.engine,
        )  # fmt: skip

    return plan


def stream_settings(settings: Any) -> StreamSettings:
    """How rows that arrive are taken in; checked."""
    _number("spawn_distance", settings.spawn_distance, 0.0, optional=True, open_below=True)
    for name, low in (("rebalance_every", 1), ("max_rows", 2), ("window", 1)):
        _whole(name, getattr(settings, name), low, optional=True)
    numbers = [level for level in _levels(settings.branching) if not isinstance(level, str)]
    return StreamSettings(
        settings.spawn_distance, settings.rebalance_every, settings.max_rows, settings.window,
        tuple(int(level) for level in numbers) or (BRANCHING,), int(settings.leaf_size),
        settings.n_jobs,
    )  # fmt: skip


def _refuse_rounds(settings: Any, semivalue: Any) -> None:
    """Only the default method samples in rounds until it is content."""
    if settings.method == "nested" and semivalue == "shapley":
        return
    for name in ("precision", "time_budget"):
        if getattr(settings, name) is not None:
            raise ParameterError(
                name, getattr(settings, name), 'None unless method="nested" with '
                'semivalue="shapley"', "Use n_contexts and n_permutations to sample more.",
            )  # fmt: skip


def grown_tree(settings: Any, table: Table, case: Case, seed: int) -> Tree:
    """Stage II as asked for: clusters, given partitions first, or flat; canonical rows."""
    rng = np.random.default_rng([seed, 6])
    levels = _levels(settings.branching)
    n = len(table.rows)
    if levels == ["flat"]:
        return flat_tree(n)
    given = [_given(level, table) for level in levels if level in GIVEN_LEVELS]
    branching = [int(level) for level in levels if level not in GIVEN_LEVELS]
    within = tree_from_levels(given) if given else None
    if within is not None and not branching:
        return within
    return grow(
        case.points.Z, branching=branching, leaf_size=int(settings.leaf_size), rng=rng,
        n_jobs=settings.n_jobs, within=within,
    )  # fmt: skip


def _refuse_too_many_children(branching: Any, n_rows: int) -> None:
    """More children than rows would be empty; as many as the default has are let through."""
    numbers = [level for level in _levels(branching) if not isinstance(level, str)]
    most = max(n_rows, BRANCHING)
    if any(level > most for level in numbers):
        raise ParameterError(
            "branching", branching, f"at most {most} for {n_rows} rows",
            "Coalitions hold one row at least.",
        )  # fmt: skip


def _given(level: str, table: Table) -> np.ndarray[Any, Any]:
    if level == "classes":
        return table.target.labels
    if table.groups is None:
        raise ParameterError(
            "branching", level, "made of levels that are given",
            "Pass groups= to fit, or use numbers alone.",
        )  # fmt: skip
    return table.groups


def _levels(branching: Any) -> list[Any]:
    levels = list(branching) if isinstance(branching, list | tuple) else [branching]
    names = (*GIVEN_LEVELS, "flat")
    for level in levels:
        whole = isinstance(level, Integral) and not isinstance(level, bool)
        if not (whole and int(level) >= 2) and level not in names:
            raise ParameterError(
                "branching", branching, 'a number from 2, "groups", "classes", or several in a '
                'sequence; or "flat"',
            )  # fmt: skip
    if not levels or ("flat" in levels and len(levels) > 1):
        raise ParameterError("branching", branching, '"flat" alone, or levels without it')
    first_number = next((i for i, lv in enumerate(levels) if lv not in names), len(levels))
    if any(level in names for level in levels[first_number:]):
        raise ParameterError(
            "branching", branching, "given partitions first, then numbers",
            "Clusters are grown inside the given parts.",
        )  # fmt: skip
    return levels


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if isinstance(value, str) and value in allowed:
        return
    close = difflib.get_close_matches(str(value), allowed, 1)
    hint = f'Did you mean "{close[0]}"?' if close else ""
    raise ParameterError(
        name, value, "one of " + ", ".join(f'"{a}"' for a in allowed), hint
    )


def _number(
    name: str, value: Any, low: float, *, optional: bool = False, open_below: bool = False
) -> None:
    if value is None and optional:
        return
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    number = float(cast("float", value)) if is_real else np.nan
    if not np.isfinite(number) or number < low or (open_below and number == low):
        raise ParameterError(
            name, value, "a positive number" if open_below else "zero or more"
        )


def _whole(name: str, value: Any, low: int, *, optional: bool = False) -> None:
    if value is None and optional:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < low:
        raise ParameterError(name, value, f"a whole number of at least {low}")


def _jobs(n_jobs: Any) -> None:
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or int(n_jobs) == 0):
        raise ParameterError(
            "n_jobs", n_jobs, "None, a number of workers, or -1 for all cores"
        )


def _semivalue(semivalue: Any) -> Any:
    if isinstance(semivalue, str) and semivalue in ("shapley", "banzhaf", "loo"):
        return semivalue
    if (
        isinstance(semivalue, list | tuple)
        and len(semivalue) == 3
        and semivalue[0] == "beta"
    ):
        alpha, beta = semivalue[1:]
        _number("semivalue's α", alpha, 0.0, open_below=True)
        _number("semivalue's β", beta, 0.0, open_below=True)
        return (float(alpha), float(beta))
    close = difflib.get_close_matches(str(semivalue), ("shapley", "banzhaf", "loo"), 1)
    raise ParameterError(
        "semivalue", semivalue, 'one of "shapley", "banzhaf", "loo", or ("beta", α, β)',
        f'Did you mean "{close[0]}"?' if close else "",
    )  # fmt: skip


def _seed(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, Integral):
        if int(random_state) < 0:
            raise ParameterError(
                "random_state", random_state, "None, a number from 0, or a generator"
            )
        return int(random_state)
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31 - 1))
    if hasattr(random_state, "integers"):
        return int(random_state.integers(2**31))
    raise ParameterError(
        "random_state", random_state, "None, a number from 0, or a generator"
    )
