"""Encoders that see no label: the columns themselves, or their principal directions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import issparse

from hcdv.embedding.column_moments import (
    Floats,
    Scaling,
    column_scaling,
    gram,
    normal_product,
    projected,
    projected_single,
    scaled,
)
from hcdv.errors import DataError

GRAM_COLUMNS = 2048  # wider than this, subspace iteration instead of a (p, p) matrix
N_PASSES = 8
OVERSAMPLE = 10
DENSE_CELLS = 200_000_000
ALIKE = 5.0

State = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def flat(X: Any) -> Any:
    """Images as rows of pixels; a table or sparse matrix as it is."""
    return X if X.ndim == 2 else X.reshape(len(X), -1)


def dense(X: Any) -> NDArray[Any]:
    """Flat rows as an array; refuses to unpack a sparse matrix that would not fit."""
    rows = flat(X)
    if not issparse(rows):
        return np.asarray(rows)
    if rows.shape[0] * rows.shape[1] > DENSE_CELLS:
        raise DataError(
            f"X must have at most {DENSE_CELLS:,} cells to be made dense, got "
            f'{rows.shape[0]:,} × {rows.shape[1]:,}. Use encoder="pca".'
        )
    return np.asarray(rows.toarray())


def shares_scale(X: NDArray[Any]) -> bool:
    """Whether the columns' scale is meant: an embedding or pixels, not mixed units.

    Rows of one length, or columns whose ranges differ at most fivefold between the 10th
    and the 90th percentile of them (docs/encoders.md: embeddings and pixels 1.2 to 3.4,
    tables in mixed units 57 and more; standardising principal components halves accuracy).
    """
    some = np.asarray(X[:: max(1, len(X) // 4096)], dtype=np.float64)
    if some.shape[1] < 2 or len(some) < 2:
        return False
    length = np.linalg.norm(some, axis=1)
    if np.ptp(length) <= 1e-3 * length.max():
        return True
    reach = np.ptp(some, axis=0)
    low, high = np.quantile(reach[reach > 0], [0.1, 0.9]) if reach.any() else (1.0, 1.0)
    return bool(high <= ALIKE * low)


def meant_scale(X: NDArray[Any], standardise: bool | None) -> bool:
    """Whether to standardise: as asked, or unless the columns share a scale."""
    return not shares_scale(X) if standardise is None else standardise


class IdentityEncoder:
    """The columns as they are, or standardised."""

    supervised = False

    def __init__(self, *, standardise: bool = False, n_jobs: int | None = None) -> None:
        self.standardise = standardise
        self.n_jobs = n_jobs
        self.scaling: Scaling | None = None

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Self:  # noqa: ARG002, the protocol's
        """Learn from the rows of X (and y, if supervised)."""
        if self.standardise:
            self.scaling = column_scaling(dense(X), standardise=True, n_jobs=self.n_jobs)
        return self

    def transform(self, X: Any, dtype: Any = None) -> NDArray[Any]:  # noqa: ARG002, as PCA's
        """Vectors of the rows of X, (n, d)."""
        rows = dense(X)
        if self.scaling is None:
            return rows
        return np.asarray((rows - self.scaling.center) * self.scaling.factor)

    def state(self) -> State:
        """JSON-able settings and arrays from which `from_state` makes an equal encoder."""
        return {"kind": "identity", "standardise": self.standardise}, _arrays(self.scaling)

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that `state` described."""
        encoder = cls(standardise=settings["standardise"])
        encoder.scaling = _scaling(arrays)
        return encoder


class PCAEncoder:
    """Leading principal directions; columns are standardised unless they share a scale.

    Up to 2048 columns the (p, p) covariance is summed in blocks and its leading
    eigenvectors taken; wider tables are iterated without it. Sparse matrices are not
    centred, so that they stay sparse: truncated SVD. Signs are fixed by making the
    largest loading of each direction positive.
    """

    supervised = False

    def __init__(
        self,
        n_components: int = 64,
        *,
        standardise: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.standardise = standardise
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Self:  # noqa: ARG002, the protocol's
        """Learn from the rows of X (and y, if supervised)."""
        rows = flat(X)
        n, p = rows.shape
        self.scaling: Scaling | None = None
        if not issparse(rows):
            standardise = meant_scale(rows, self.standardise)
            self.scaling = column_scaling(rows, standardise=standardise, n_jobs=self.n_jobs)
        n_kept = min(self.n_components, p, n)
        if self.scaling is not None and p <= GRAM_COLUMNS:
            moments = gram(rows, self.scaling, n_jobs=self.n_jobs)
            power, directions = eigh(moments, subset_by_index=[p - n_kept, p - 1])
            power, directions = power[::-1], directions[:, ::-1]
        else:
            power, directions = leading_directions(
                rows, self.scaling, n_kept, rng, self.n_jobs
            )
        # Directions without power are rounding: their sign and angle mean nothing.
        has_power = power > 1e-12 * max(float(power[0]), np.finfo(float).tiny)
        has_power[0] = True
        self.directions = with_fixed_sign(directions[:, has_power])
        return self

    def transform(self, X: Any, dtype: Any = np.float64) -> NDArray[np.floating]:
        """Vectors of the rows of X, (n, d). dtype: of products of standardised columns."""
        if dtype == np.float32:
            return projected_single(flat(X), self.scaling, self.directions)
        return projected(flat(X), self.scaling, self.directions, self.n_jobs)

    def state(self) -> State:
        """JSON-able settings and arrays from which `from_state` makes an equal encoder."""
        settings = {
            "kind": "pca",
            "n_components": self.n_components,
            "standardise": self.standardise,
        }
        return settings, {"directions": self.directions, **_arrays(self.scaling)}

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that `state` described."""
        encoder = cls(settings["n_components"], standardise=settings["standardise"])
        encoder.directions = arrays["directions"]
        encoder.scaling = _scaling(arrays)
        return encoder


def _arrays(scaling: Scaling | None) -> dict[str, NDArray[Any]]:
    return {} if scaling is None else scaling._asdict()


def _scaling(arrays: dict[str, NDArray[Any]]) -> Scaling | None:
    return Scaling(arrays["center"], arrays["factor"]) if "center" in arrays else None


def leading_directions(
    X: Any,
    scaling: Scaling | None,
    n_directions: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of XᵀX by subspace iteration (Halko et al. 2011)."""
    n, p = X.shape
    width = min(n_directions + OVERSAMPLE, n, p)
    # Starting from mixed rows keeps to the rows' own space, where p is far above n.
    chosen = np.sort(rng.choice(n, size=min(n, 4 * width), replace=False))
    start = scaled(X[chosen], slice(0, len(chosen)), scaling)
    basis = np.asarray(start.T @ rng.standard_normal((len(chosen), width)))
    for _ in range(N_PASSES):
        basis = np.linalg.qr(basis)[0]
        basis = normal_product(X, scaling, basis, n_jobs)
    basis = np.linalg.qr(basis)[0]
    within = basis.T @ normal_product(X, scaling, basis, n_jobs)
    power, turn = eigh((within + within.T) / 2)
    last = slice(None, -n_directions - 1, -1)
    return power[last], basis @ turn[:, last]


def with_fixed_sign(directions: Floats) -> Floats:
    """Columns turned so that their largest entry is positive."""
    largest = np.argmax(np.abs(directions), axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return directions * np.where(signs == 0, 1.0, signs)
