"""Runs to be looked through in the browser, and the address they are at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from fits import quick

TOKEN, PORT = "a-token-of-the-test", 8765
HERE = f"http://127.0.0.1:{PORT}"
EVIL = "<img src=x onerror=alert(1)>"


def customers(n=90, first=0, seed=0) -> pd.DataFrame:
    """A table with text ids, words, gaps and cells that look like markup."""
    rng = np.random.default_rng(seed)
    back = np.arange(n) % 2
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, n) + 45 * back,
        "income": np.where(np.arange(n) % 10 == 3, np.nan, rng.lognormal(10, 0.5, n).round(2)),
        "city": np.array(["Oslo", "Bergen", EVIL])[rng.integers(0, 3, n)],
        "value": [f"note {i % 7}" for i in range(n)],
        "back": np.where(rng.random(n) < 0.1, 1 - back, back),
        "key": [f"c-{first + i:03}" for i in range(n)],
    })  # fmt: skip
    frame["back"] = np.array(["no", "yes"])[frame["back"]]
    return frame


def table_run(folder: Path, frame: pd.DataFrame, **settings) -> Path:
    X = frame.drop(columns=["back", "key"])
    quick(**settings).fit(X, frame["back"], ids=frame["key"]).save(folder)
    return folder
