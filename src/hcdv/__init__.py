"""Hierarchical contrastive data valuation: what every row of a training set is worth.

The contents page. Names are loaded when first used, so that `import hcdv` is quick and
brings in neither torch, scikit-learn, pandas nor pyarrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hcdv import functional, guarantees, plot
    from hcdv.dataset.run import DatasetRun
    from hcdv.errors import (
        DataError,
        ExecutorError,
        HCDVError,
        MissingExtra,
        ParameterError,
        PayoffError,
        StoreError,
    )
    from hcdv.estimator import HCDV
    from hcdv.uses.money import PayoutRule

__version__ = "0.1.0"

__all__ = [
    "HCDV",
    "DataError",
    "DatasetRun",
    "ExecutorError",
    "HCDVError",
    "MissingExtra",
    "ParameterError",
    "PayoffError",
    "PayoutRule",
    "StoreError",
    "__version__",
    "functional",
    "guarantees",
    "plot",
]

_HOME = {
    "HCDV": "hcdv.estimator",
    "DataError": "hcdv.errors",
    "DatasetRun": "hcdv.dataset.run",
    "ExecutorError": "hcdv.errors",
    "HCDVError": "hcdv.errors",
    "MissingExtra": "hcdv.errors",
    "ParameterError": "hcdv.errors",
    "PayoffError": "hcdv.errors",
    "PayoutRule": "hcdv.uses.money",
    "StoreError": "hcdv.errors",
    "functional": "hcdv",
    "guarantees": "hcdv",
    "plot": "hcdv",
}


def __getattr__(name: str) -> object:
    """Load a public name from the module it lives in, the first time it is asked for."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if home == __name__:
        value: object = importlib.import_module(f"{__name__}.{name}")
    else:
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
