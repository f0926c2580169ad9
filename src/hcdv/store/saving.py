"""A fitted HCDV to and from a run folder."""

from __future__ import annotations

import io
import json
import math
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import hcdv
from hcdv.errors import DataError, HCDVError, MissingExtra, StoreError
from hcdv.store.folder import (
    FILES,
    damaged_state,
    read_about,
    write_atomically,
)
from hcdv.store.living import put_living, taken_living
from hcdv.store.rows import first_rows, stored
from hcdv.store.shelf import Shelf
from hcdv.store.state import put_run, taken_run, utility_of, utility_settings
from hcdv.valuation.utility import LeastSquares, Neighbours

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.estimator import HCDV

DATASET = "dataset"  # kind of the runs that `hcdv.dataset` writes
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "safetensors", "torch")


class SavedEncoder:
    """What was saved of an encoder that cannot be set up here; kept for saving again."""

    supervised = False

    def __init__(
        self, settings: dict[str, Any], arrays: dict[str, Any], reason: str
    ) -> None:
        self.settings, self.arrays, self.reason = settings, arrays, reason

    def transform(self, X: Any) -> Any:
        """Refuse, with the reason."""
        raise StoreError(
            f"the encoder must be set up to embed {len(X)} rows. {self.reason}"
        )

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """As it was saved."""
        return self.settings, self.arrays


def save(
    model: HCDV, folder: Path, source: dict[str, Any] | None = None, *, rows: bool = True
) -> Path:
    """Write a fitted model to a new folder, all or nothing.

    source: where its rows are from. rows: keep these, too, as they were given.
    """
    run, given = model.run_, model.given_
    parts = (parquet(run.frame()), parquet(run.coalitions()), state_bytes(model))
    return write_atomically(
        folder,
        _about(model, _settings(model), source),
        dict(zip(FILES, parts, strict=True)),
        first_rows(given, model.ids_) if rows and given is not None else {},
    )


def state_bytes(model: HCDV) -> bytes:
    """Everything that `model_of` needs, as one safetensors file."""
    run = model.run_
    shelf = Shelf()
    put_run(run, shelf)
    put_living(run, shelf)
    encoder, arrays = model.encoder_.state()
    shelf.put_all("encoder", arrays)
    table_encoder, arrays = model.table_encoder_.state()
    shelf.put_all("table", arrays)
    names = getattr(model, "feature_names_in_", None)
    shelf.settings |= {
        "model": _settings(model), "encoder": encoder, "table_encoder": table_encoder,
        "n_features_in": model.n_features_in_,
        "feature_names_in": None if names is None else [str(name) for name in names],
    }  # fmt: skip
    return shelf.to_bytes()


def load(folder: Path) -> HCDV:
    """Read a run folder, as its last update left it; nothing in it is executed."""
    from hcdv.store.writer import load_latest

    if read_about(folder).get("kind") == DATASET:
        raise StoreError(
            f"folder must be the run of a table in memory, got '{folder}', the run of a data set. "
            "Open it with hcdv.DatasetRun.open."
        )
    model = load_latest(folder)
    model.given_ = stored(folder)
    return model


def model_of(content: bytes, path: Path) -> HCDV:
    """The model whose `state_bytes` these are; damage is named, by the file's path."""
    from safetensors import SafetensorError

    try:
        return _model(Shelf.from_bytes(content))
    except StoreError:
        raise
    except (
        SafetensorError, HCDVError, ValueError, KeyError, IndexError, TypeError, AttributeError,
        OverflowError, RecursionError,
    ) as error:  # fmt: skip
        raise damaged_state(path, error) from error


def _settings(model: HCDV) -> dict[str, Any]:
    return {name: _setting(value) for name, value in model.get_params(deep=False).items()}


def _model(shelf: Shelf) -> HCDV:
    from hcdv.embedding.tables import TableEncoder
    from hcdv.estimator import HCDV

    own = shelf.settings
    model = HCDV(**{name: _restored(value) for name, value in own["model"].items()})
    run = taken_living(shelf, taken_run(shelf))
    model._set(run)
    model.n_features_in_ = int(own["n_features_in"])
    if own["feature_names_in"] is not None:
        model.feature_names_in_ = np.asarray(own["feature_names_in"], dtype=object)
    if run.target.classes is not None:
        model.classes_ = run.target.classes
    model.given_ = None
    model.encoder_ = cast("Any", _encoder(own["encoder"], shelf.under("encoder")))
    model.table_encoder_ = TableEncoder.from_state(
        own["table_encoder"], shelf.under("table")
    )
    return model


def _encoder(settings: dict[str, Any], arrays: dict[str, Any]) -> Any:
    from hcdv.embedding.encoders import encoder_from_state

    try:
        return encoder_from_state(settings, arrays)
    except (MissingExtra, DataError) as error:  # no torch here, or an encoder of the user's
        return SavedEncoder(settings, arrays, str(error))


def _setting(value: Any) -> Any:
    """A setting as plain data; objects of the user's own by what they print as."""
    if isinstance(value, LeastSquares | Neighbours):
        return {"utility": utility_settings(value)}
    if isinstance(value, np.generic):
        value = value.item()
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        is_array = hasattr(value, "shape")
        shown = (
            f"{type(value).__name__} of shape {value.shape}" if is_array else repr(value)
        )
        return {"not_saved": " ".join(shown.split())[:200]}
    return json.loads(text)


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "utility" in value:
        return utility_of(value["utility"])
    return f"<not saved: {value['not_saved']}>"  # refused by fit, as it should be


def _about(
    model: HCDV, settings: dict[str, Any], source: dict[str, Any] | None
) -> dict[str, Any]:
    """What a person, or another program, wants to know of the run without loading it."""
    run = model.run_
    classes = run.target.classes
    return {
        "hcdv": hcdv.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": source or {},
        "n_rows": run.n_rows,
        "n_classes": None if classes is None else len(classes),
        "surplus": run.surplus,
        "seed": run.plan.seed,
        "settings": settings,
        "checks": plain(run.checks),
        "notes": run.notes,
        "seconds": {name: round(each, 3) for name, each in run.seconds.items()},
        "versions": versions(),
    }


def plain(value: Any) -> Any:
    """As JSON has it: numbers without numpy, null for what is not finite."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def versions() -> dict[str, str]:
    """Of what a run was made with."""
    found = {"python": platform.python_version(), "platform": sys.platform}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def parquet(frame: pd.DataFrame) -> bytes:
    """A frame as a Parquet file."""
    held = io.BytesIO()
    for name in frame.columns:  # numbers that Parquet lacks: byte-swapped, or of 128 bits
        dtype = frame[name].dtype
        if dtype.kind in "iuf" and not dtype.isnative:
            frame[name] = frame[name].astype(dtype.newbyteorder("="))
        elif dtype.kind == "f" and dtype.itemsize > 8:
            frame[name] = frame[name].astype(np.float64)
    frame.to_parquet(held, engine="pyarrow", index=False)
    return held.getvalue()
