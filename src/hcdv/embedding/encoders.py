"""Which encoder turns rows into vectors: the names, the user's own, and `auto`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from hcdv.embedding.linear import LinearContrastive
from hcdv.embedding.neural import NeuralEncoder
from hcdv.embedding.pca import IdentityEncoder, PCAEncoder, State, shares_scale
from hcdv.embedding.rows import Rows
from hcdv.embedding.wrapped import (
    CallableEncoder,
    PrecomputedEncoder,
    TorchEncoder,
    TransformerEncoder,
)
from hcdv.errors import DataError, ParameterError

NAMES = ("auto", "pca", "identity", "linear", "mlp", "conv")
NARROW = 64  # columns up to which `auto` keeps them all


class Encoder(Protocol):
    """Stage I, x → z. The caller scales the vectors to unit length."""

    supervised: bool

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Self:
        """Learn from the rows of X (and y, if supervised)."""
        ...

    def transform(self, X: Any) -> NDArray[Any]:
        """Vectors of the rows of X, (n, d)."""
        ...

    def state(self) -> State:
        """JSON-able settings and arrays from which `from_state` makes an equal encoder."""
        ...


Plain = PCAEncoder | IdentityEncoder


class AutoEncoder:
    """Identity for narrow tables, PCA for wide, sparse and image input; `reason` says why.

    It never takes a supervised encoder: docs/encoders.md holds the measurements.
    """

    supervised = False

    def __init__(
        self, n_components: int = 64, *, is_frame: bool = False, n_jobs: int | None = None
    ) -> None:
        self.n_components = n_components
        self.is_frame = is_frame
        self.n_jobs = n_jobs
        self.reason = ""

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Self:
        """Learn from the rows of X (and y, if supervised)."""
        chosen, self.reason = self._choice(X)
        self.chosen: Plain = chosen.fit(X, y, rng)
        return self

    def transform(self, X: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """Vectors of the rows of X, (n, d). dtype: of products of standardised columns."""
        return self.chosen.transform(X, dtype)

    def state(self) -> State:
        """JSON-able settings and arrays from which `from_state` makes an equal encoder."""
        inner, arrays = self.chosen.state()
        return {"kind": "auto", "reason": self.reason, "chosen": inner}, arrays

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that `state` described."""
        encoder = cls()
        encoder.reason = settings["reason"]
        encoder.chosen = cast("Plain", encoder_from_state(settings["chosen"], arrays))
        return encoder

    def _choice(self, X: Any) -> tuple[Plain, str]:
        n_columns = int(np.prod(X.shape[1:]))
        if issparse(X):
            why = f"sparse matrix of {n_columns} columns: truncated SVD keeps it sparse"
            return self._pca(standardise=False), why
        if X.ndim > 2:
            why = f"images of {n_columns} numbers: PCA of the pixels"
            return self._pca(standardise=False), why
        standardise = not self.is_frame and not shares_scale(X)
        how = "standardised" if standardise else "at the scale they have"
        if n_columns > NARROW:
            why = f"{n_columns} columns, more than {NARROW}: PCA of them {how}"
            return self._pca(standardise=standardise), why
        why = f"{n_columns} columns, no more than {NARROW}: all kept, {how}"
        return IdentityEncoder(standardise=standardise, n_jobs=self.n_jobs), why

    def _pca(self, *, standardise: bool) -> PCAEncoder:
        return PCAEncoder(self.n_components, standardise=standardise, n_jobs=self.n_jobs)


def make_encoder(
    spec: Any,
    rows: Rows,
    *,
    n_components: int = 64,
    dispersion_weight: float = 0.1,
    smoothness_weight: float = 0.01,
    device: str = "auto",
    n_jobs: int | None = None,
) -> Encoder:
    """The encoder meant by spec: a name, a transformer, module, function, or vectors."""
    if n_components < 1:
        raise ParameterError("n_components", n_components, "at least 1")
    for name, weight in (
        ("dispersion_weight", dispersion_weight),
        ("smoothness_weight", smoothness_weight),
    ):
        if not weight >= 0:
            raise ParameterError(name, weight, "zero or more")
    if not isinstance(spec, str) or spec == "precomputed":
        return _wrapped(spec, rows, device)
    # A frame's columns come standardised, pixels share a scale; arrays are looked at.
    standardise = None if rows.kind == "array" else False
    if spec in ("mlp", "conv"):
        return NeuralEncoder(
            spec,
            n_components,
            dispersion_weight=dispersion_weight,
            smoothness_weight=smoothness_weight,
            standardise=standardise,
            device=device,
        )
    makers: dict[str, Callable[[], Encoder]] = {
        "auto": lambda: AutoEncoder(
            n_components, is_frame=rows.frame is not None, n_jobs=n_jobs
        ),
        "identity": IdentityEncoder,
        "pca": lambda: PCAEncoder(n_components, standardise=standardise, n_jobs=n_jobs),
        "linear": lambda: LinearContrastive(
            n_components, standardise=standardise, n_jobs=n_jobs
        ),
    }
    if spec not in makers:
        raise _unknown(spec)
    return makers[spec]()


def _wrapped(spec: Any, rows: Rows, device: str) -> Encoder:
    libraries = {base.__module__.partition(".")[0] for base in type(spec).__mro__}
    if isinstance(spec, str):  # "precomputed": X is the embedding
        return IdentityEncoder()
    if isinstance(spec, type):
        raise ParameterError(
            "encoder", spec.__name__, "an object", f"Make one: {spec.__name__}()."
        )
    if hasattr(spec, "fit") and hasattr(spec, "transform"):
        is_ours = hasattr(spec, "supervised") and not hasattr(spec, "get_params")
        return cast("Encoder", spec) if is_ours else TransformerEncoder(spec)
    if "torch" in libraries and hasattr(spec, "parameters"):
        return TorchEncoder(spec, device)
    if hasattr(spec, "__array__") or isinstance(spec, Sequence):
        return PrecomputedEncoder(spec, len(rows))
    if callable(spec):
        return CallableEncoder(spec)
    raise _unknown(spec)


def _unknown(spec: Any) -> ParameterError:
    close = difflib.get_close_matches(str(spec).lower(), NAMES, n=1)
    meant = f"Did you mean {close[0]!r}? " if close else ""
    return ParameterError(
        "encoder",
        spec,
        f"one of {', '.join(NAMES)}, a transformer, a torch module, a function or vectors",
        meant.strip(),
    )


def encoder_from_state(
    settings: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> Encoder:
    """The encoder that `state` described; one of the user's own must be handed in again."""
    kinds: dict[str, Any] = {
        "auto": AutoEncoder,
        "identity": IdentityEncoder,
        "pca": PCAEncoder,
        "linear": LinearContrastive,
        "neural": NeuralEncoder,
    }
    kind = settings["kind"]
    if kind not in kinds:
        raise DataError(
            f"the encoder must be one of {', '.join(kinds)} to be loaded, got your own "
            f"{settings.get('name', kind)}. Pass it again as encoder=."
        )
    return cast("Encoder", kinds[kind].from_state(settings, arrays))
