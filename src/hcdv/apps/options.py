"""The options of `hcdv value`: which column is what, and the settings of a valuation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)
_POSITIVE = click.FloatRange(min=0, min_open=True)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_METRICS = ("auto", "loss", "accuracy", "balanced_accuracy", "auc", "r2")
_UTILITIES = ("kernel", "linear", "fourier", "knn", "soft-knn", "threshold-knn")
_ENGINES = ("local", "ray")
_METHODS = ("nested", "winter", "paper")
_ENCODERS = ("auto", "pca", "identity", "linear", "mlp", "conv")


class Size(click.ParamType[int]):
    """Bytes: 800M, 4G, 4.5GB."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """A number with a unit as bytes."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", str(value).strip().lower())
        if found is None:
            self.fail(f"'{value}' is no size. Write 800M, or 4G.", param, ctx)
        return int(float(found[1]) * _UNITS[found[2]])


class Levels(click.ParamType[Any]):
    """Children of a node by level: 8, or 16,4, or groups,8, or flat."""

    name = "levels"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ARG002, click's
        """Numbers and names as the estimator takes them; it checks them."""
        if not isinstance(value, str):
            return value
        levels = [int(part) if part.isdecimal() else part for part in value.split(",")]
        return levels[0] if len(levels) == 1 else levels


def _one_of(choices: tuple[str, ...]) -> dict[str, Any]:
    """The first is the default."""
    return {"type": click.Choice(choices), "default": choices[0]}


_COLUMN: dict[str, Any] = {"metavar": "COLUMN"}
_TABLE: dict[str, Any] = {"type": FILE, "metavar": "FILE"}
_RUN: dict[str, Any] = {"type": FILE, "metavar": "RUN"}

# name, what it does, how it is read; a default that is no None is told by the reference
_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--target", "Column to predict; of an npz file, the labels (else y or label).", _COLUMN),
    ("--validation", "Rows that judge. Without: parts of TABLE in turn.", _TABLE),
    ("--out", "Folder to write; it must be new. Default: TABLE's name with .hcdv, here.", _RUN),
    ("--id", "Column that names the rows; their order then does not matter.", _COLUMN),
    ("--groups", "Rows of one group never judge each other.", _COLUMN),
    ("--time", "Models are judged on later rows than they learned from.", _COLUMN),
    ("--weight", "How much each row counts.", _COLUMN),
    ("--drop", "Column to leave out; may be repeated.", {**_COLUMN, "multiple": True}),
    ("--encoder", "How rows become vectors; mlp and conv need torch.", _one_of(_ENCODERS)),
    ("--utility", "The model that rows are to teach.", _one_of(_UTILITIES)),
    ("--metric", "What it is judged by. auto: share of the error removed; r2.", _one_of(_METRICS)),
    ("--method", "How groups share their worth among rows.", _one_of(_METHODS)),
    ("--branching", "Groups in a group, by level: 8, or 16,4, or groups,8, or classes,8, or flat.",
     {"type": Levels(), "default": "8"}),
    ("--leaf-size", "Rows up to which a group is not split.", {"type": COUNT, "default": 64}),
    ("--contexts", "Samples behind the values of rows. Default: by size.",
     {"type": click.IntRange(min=8)}),
    ("--permutations", "Samples behind the values of groups. Default: 64.",
     {"type": click.IntRange(min=2)}),
    ("--precision", "Sample until the mean standard error is this small.", {"type": _POSITIVE}),
    ("--time-budget", "Stop sampling after so long.", {"type": _POSITIVE, "metavar": "SECONDS"}),
    ("--spawn-distance", "Rows that arrive further from all groups start one of their own.",
     {"type": _POSITIVE}),
    ("--rebalance-every", "Split and merge groups after so many arrived rows.", {"type": COUNT}),
    ("--max-rows", "Rows to keep: the oldest go when more have arrived.",
     {"type": click.IntRange(min=2)}),
    ("--jobs", "Threads, -1: one a core. Values are the same.", {"type": int, "default": -1}),
    ("--seed", "Seed of every draw.", {"type": click.IntRange(min=0), "default": 0}),
    ("--memory", "Value in parts and within so much (2G). Default in parts: half of what is free.",
     {"type": Size(), "metavar": "SIZE"}),
    ("--engine", "Where to work in parts: here, or on a Ray cluster.", _one_of(_ENGINES)),
    ("--address", "Of the Ray cluster. Default: one on this machine, for the time.",
     {"metavar": "HOST:PORT"}),
    ("--skip-damaged", "Leave unreadable files of a data set out.", {"is_flag": True}),
    ("--no-rows", "Keep values alone: do not copy the rows themselves into the run folder.",
     {"is_flag": True}),
    ("--report/--no-report", "Write report.html into the run folder.", {"default": True}),
    ("--quiet", "Print nothing but errors.", {"is_flag": True}),
)  # fmt: skip


def of_value(command: Command) -> Command:
    """Give a command these options, in this order."""
    for name, about, settings in reversed(_OPTIONS):
        command = click.option(name, help=about, **settings)(command)
    return command
