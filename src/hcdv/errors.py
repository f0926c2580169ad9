"""What can go wrong, and how it is told: the rule, the value seen, a way out.

HCDVError
├── ParameterError (ValueError)   a setting outside its range
├── DataError (ValueError)        a table, label or row that cannot be valued as it is
├── PayoffError (ValueError)      a utility that returned something that is not a payoff
├── ExecutorError (RuntimeError)  workers elsewhere that died over and over
├── StoreError (OSError)          a run folder that cannot be written or read
└── MissingExtra (ImportError)    an optional part that is not installed
"""

from __future__ import annotations

import importlib
from types import ModuleType


class HCDVError(Exception):
    """Base of every error this library raises on purpose."""


class ParameterError(HCDVError, ValueError):
    """A setting outside its range."""

    def __init__(self, name: str, value: object, rule: str, hint: str = "") -> None:
        super().__init__(f"{name} must be {rule}, got {value!r}. {hint}".rstrip())


class DataError(HCDVError, ValueError):
    """Data that cannot be valued as it is; the message says which part and what to do."""


class PayoffError(HCDVError, ValueError):
    """A utility that did not return a usable payoff."""


class ExecutorError(HCDVError, RuntimeError):
    """Work that was given to other processes or machines and did not come back."""


class StoreError(HCDVError, OSError):
    """A run folder that is missing, damaged, already there or cannot be written."""


class MissingExtra(HCDVError, ImportError):
    """An optional dependency that is not installed; the message holds the install line."""


def need(module: str, *, extra: str, what: str, instead: str = "") -> ModuleType:
    """Import an optional module, or say exactly how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        way_out = f", or {instead}" if instead else ""
        raise MissingExtra(
            f"{what} needs {module.partition('.')[0]}, which is not installed. "
            f"Run pip install 'hcdv[{extra}]'{way_out}."
        ) from error
