"""Encoders a user brings: a transformer, a torch module, a function, or vectors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from hcdv.embedding.labels import required_labels
from hcdv.embedding.pca import State, flat
from hcdv.errors import DataError, need

TORCH_BATCH = 1024


class WrappedEncoder:
    """What the user's own encoders share: checked output, no state to save."""

    supervised = False
    name = "encoder"

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Self:  # noqa: ARG002, the protocol's
        """Prepare on the training rows."""
        return self

    def state(self) -> State:
        """Only a name: code of yours is not saved; hand it in again after loading."""
        return {"kind": "yours", "name": self.name}, {}


class TransformerEncoder(WrappedEncoder):
    """Any scikit-learn transformer, cloned and then fitted on the training rows.

    It counts as supervised, and is given y, exactly if it (or a step of a pipeline or
    union) says that it requires y, is a classifier or regressor itself, as
    LinearDiscriminantAnalysis is, selects features by anything but their variance, or
    has an attribute supervised = True. All others never see a label, even if they could.
    """

    def __init__(self, transformer: Any) -> None:
        from sklearn.base import clone

        self.transformer = clone(transformer)
        self.name = type(transformer).__name__
        self.supervised = learns_from_labels(transformer)
        self.takes_frame = picks_columns(transformer)

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Self:  # noqa: ARG002, the protocol's
        """Prepare on the training rows."""
        rows = flat(X)
        if self.supervised:
            self.transformer.fit(rows, required_labels(y, X.shape[0], self.name))
        else:
            self.transformer.fit(rows)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Vectors of the rows of X, (n, d)."""
        return vectors(self.transformer.transform(flat(X)), X.shape[0], self.name)


def picks_columns(transformer: Any) -> bool:
    """Whether it, or its first step, chooses columns by name: it is then given the frame."""
    steps = getattr(transformer, "steps", None)
    first = steps[0][1] if steps else transformer
    return type(first).__name__ in ("ColumnTransformer", "TableVectorizer")


def learns_from_labels(transformer: Any) -> bool:
    """Whether fit uses y: by scikit-learn's tags, looking inside pipelines and unions."""
    parts = [part for part in _parts(transformer) if hasattr(part, "fit")]
    return any(_uses_labels(part) for part in [transformer, *parts])


def _uses_labels(part: Any) -> bool:
    from sklearn.base import is_classifier, is_regressor
    from sklearn.feature_selection import SelectorMixin, VarianceThreshold
    from sklearn.utils import get_tags

    # The tags of a selector leave y optional, since its score might do without.
    is_selector = isinstance(part, SelectorMixin) and not isinstance(
        part, VarianceThreshold
    )
    is_model = is_classifier(part) or is_regressor(part)
    is_declared = bool(getattr(part, "supervised", False))
    return is_declared or is_selector or is_model or get_tags(part).target_tags.required


def _parts(transformer: Any) -> Iterator[Any]:
    for attribute in ("steps", "transformer_list", "transformers"):
        for _, part, *_ in getattr(transformer, attribute, []):
            yield part
            yield from _parts(part)


class TorchEncoder(WrappedEncoder):
    """A torch module, used as it is: eval mode, no gradients, float32, in batches.

    It is never trained here, so that it has seen no label through us; one that was
    trained on these very labels should be declared by `supervised = True` on it.
    """

    def __init__(self, module: Any, device: str = "auto") -> None:
        self.module = module
        self.name = type(module).__name__
        self.device = device
        self.supervised = bool(getattr(module, "supervised", False))

    def transform(self, X: Any) -> NDArray[Any]:
        """Vectors of the rows of X, (n, d)."""
        torch = need("torch", extra="torch", what=f"encoder={self.name}")
        first = next(self.module.parameters(), None)
        device = torch.device("cpu") if first is None else first.device
        dtype = torch.float32 if first is None else first.dtype
        was_training = self.module.training
        self.module.eval()
        try:
            with torch.no_grad():
                parts = [
                    self.module(torch.as_tensor(batch, dtype=dtype, device=device))
                    for batch in _batches(X)
                ]
        finally:
            self.module.train(was_training)
        return vectors(torch.cat(parts), X.shape[0], self.name)


def _batches(X: Any) -> Iterator[NDArray[Any]]:
    for at in range(0, X.shape[0], TORCH_BATCH):
        batch = X[at : at + TORCH_BATCH]
        yield np.ascontiguousarray(batch.toarray() if issparse(batch) else batch)


class CallableEncoder(WrappedEncoder):
    """Any function X → Z of one row each; asked anew for every table."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.supervised = bool(getattr(function, "supervised", False))

    def transform(self, X: Any) -> NDArray[Any]:
        """Vectors of the rows of X, (n, d)."""
        return vectors(self.function(X), X.shape[0], self.name)


class PrecomputedEncoder(WrappedEncoder):
    """Vectors computed elsewhere, one for every training row; new rows have none."""

    name = "precomputed"

    def __init__(self, embeddings: Any, n_rows: int | None = None) -> None:
        n = n_rows if n_rows is not None else len(np.asarray(embeddings))
        self.embeddings = vectors(embeddings, n, "precomputed embeddings")

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Self:  # noqa: ARG002, the protocol's
        """Prepare on the training rows."""
        if X.shape[0] != len(self.embeddings):
            raise DataError(
                f"precomputed embeddings must have one vector for each of the "
                f"{X.shape[0]} rows of X, got {len(self.embeddings)}."
            )
        self.mark = _mark(X)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Vectors of the rows of X, (n, d)."""
        if X.shape[0] != len(self.embeddings) or _mark(X) != self.mark:
            raise DataError(
                "precomputed embeddings must be asked for the training rows, got other "
                f"rows ({X.shape[0]}). Pass the vectors themselves as X, old and new rows "
                'alike, with encoder="identity"; or a function that computes them.'
            )
        return self.embeddings


def _mark(X: Any) -> int:
    """A checksum of up to 4,096 rows: tells the training rows from a table as long."""
    some = X[:: max(1, X.shape[0] // 4096)]
    cells = some.data if issparse(some) else some
    return zlib.crc32(np.ascontiguousarray(cells).tobytes())


def vectors(Z: Any, n: int, name: str) -> NDArray[Any]:
    """Z as an (n, d) float array of finite numbers, or an error that says what it was."""
    if issparse(Z):
        Z = Z.toarray()
    if hasattr(Z, "detach"):
        Z = Z.detach().cpu().float()
    array = np.asarray(Z)
    if array.ndim != 2 or array.shape[0] != n or array.shape[1] == 0:
        raise DataError(
            f"{name} must return one vector a row, shape ({n}, d), got {array.shape}. "
            "Flatten or pool its output to two dimensions."
        )
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} must return real numbers, got {array.dtype}.")
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    is_finite = np.isfinite(array).all(axis=1)
    if not is_finite.all():
        raise DataError(
            f"{name} must return finite vectors, got NaN or infinity in "
            f"{int((~is_finite).sum())} rows, first at row {int(np.argmin(is_finite))}. "
            "Check that those rows are what it was made for."
        )
    return array
