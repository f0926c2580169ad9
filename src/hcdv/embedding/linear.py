r"""The closed-form contrastive encoder: directions that part the labels.

departs from paper: a squared-Euclidean stand-in for the objective of Eq. (10), solved
exactly by one generalised eigenproblem instead of by training:

    S_× w = μ (S_w + α t I) w,   S_× = 1/|P| · Σ_{(i,j) in P} (x_i − x_j)(x_i − x_j)ᵀ

Notation (paper → code):  P(D), pairs whose labels differ → n_pairs · S_× → across
S_w, scatter within classes → within · α → smoothness_weight · t = tr(S_w)/p
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import issparse

from hcdv.embedding.column_moments import (
    Floats,
    Scaling,
    class_sums,
    column_scaling,
    gram,
    projected,
)
from hcdv.embedding.labels import label_classes, required_labels
from hcdv.embedding.pca import PCAEncoder, State, flat, meant_scale, with_fixed_sign

WIDEST = 1024  # columns of the eigenproblem; wider tables pass through PCA first


class Scatter(NamedTuple):
    """The two sides of the eigenproblem."""

    across: Floats  # (p, p)  mean over cross-label pairs of (x_i − x_j)(x_i − x_j)ᵀ
    within: Floats  # (p, p)  pooled covariance inside the classes


def label_scatter(
    X: Any, codes: NDArray[np.intp], scaling: Scaling, n_jobs: int | None = None
) -> Scatter:
    """Both scatters from two Gram matrices and class sums, O(n p²), without any pair.

    With Q, Q_c, s, s_c the second moments and sums of all rows and of a class,
    |P|·S_× = nQ − ssᵀ − Σ_c (n_c Q_c − s_c s_cᵀ), and Σ_c n_c Q_c is one weighted Gram.
    """
    n = X.shape[0]
    counts = np.bincount(codes).astype(np.float64)
    sums = class_sums(X, scaling, codes, n_jobs)  # (C, p)
    total = sums.sum(axis=0)
    weight = n - counts[codes]  # n − n_c of each row's class: nQ − Σ_c n_c Q_c at once
    others = gram(X, scaling, weight, n_jobs)
    n_pairs = (n**2 - float(counts @ counts)) / 2
    across = (others - np.outer(total, total) + sums.T @ sums) / max(1.0, n_pairs)
    moments = gram(X, scaling, None, n_jobs)
    within = moments - (sums / counts[:, None]).T @ sums
    return Scatter(across, within / max(1.0, n - len(counts)))


class LinearContrastive:
    """Leading directions of S_× w = μ (S_w + αtI) w; columns are scaled as for PCA.

    The within-class covariance on the right bounds the problem; α > 0 keeps it definite
    where columns are collinear or more than rows. Numeric targets are cut into ten
    quantile classes.
    """

    supervised = True

    def __init__(
        self,
        n_components: int = 64,
        *,
        smoothness_weight: float = 1.0,
        standardise: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.smoothness_weight = smoothness_weight
        self.standardise = standardise
        self.n_jobs = n_jobs
        self.notes: list[str] = []

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Self:
        """Learn from the rows of X (and y, if supervised)."""
        self.first: PCAEncoder | None = None
        self.notes = []
        rows, target = flat(X), required_labels(y, X.shape[0], "linear")
        classes = label_classes(target)
        self.notes += classes.notes()
        if issparse(rows) or rows.shape[1] > WIDEST:
            self.first = PCAEncoder(
                min(WIDEST, rows.shape[0]), standardise=self.standardise, n_jobs=self.n_jobs
            )
            rows = self.first.fit(rows, None, rng).transform(rows)
            self.notes.append(f"reduced to {rows.shape[1]} principal directions first")
        standardise = self.first is None and meant_scale(rows, self.standardise)
        self.scaling = column_scaling(rows, standardise=standardise, n_jobs=self.n_jobs)
        scatter = label_scatter(rows, classes.codes(target), self.scaling, self.n_jobs)
        self.directions = contrastive_directions(
            scatter, self.n_components, self.smoothness_weight
        )
        return self

    def transform(self, X: Any) -> Floats:
        """Vectors of the rows of X, (n, d)."""
        rows = flat(X) if self.first is None else self.first.transform(X)
        return projected(rows, self.scaling, self.directions, self.n_jobs)

    def state(self) -> State:
        """JSON-able settings and arrays from which `from_state` makes an equal encoder."""
        settings: dict[str, Any] = {
            "kind": "linear",
            "n_components": self.n_components,
            "smoothness_weight": self.smoothness_weight,
            "first": None,
        }
        arrays: dict[str, NDArray[Any]] = {
            "directions": self.directions,
            "center": self.scaling.center,
            "factor": self.scaling.factor,
        }
        if self.first is not None:
            settings["first"], inner = self.first.state()
            arrays |= {f"first.{name}": array for name, array in inner.items()}
        return settings, arrays

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that `state` described."""
        weight = settings["smoothness_weight"]
        encoder = cls(settings["n_components"], smoothness_weight=weight)
        encoder.directions = arrays["directions"]
        encoder.scaling = Scaling(arrays["center"], arrays["factor"])
        inner = {
            k.removeprefix("first."): a for k, a in arrays.items() if k[:6] == "first."
        }
        first = settings["first"]
        encoder.first = None if first is None else PCAEncoder.from_state(first, inner)
        return encoder


def contrastive_directions(
    scatter: Scatter, n_directions: int, smoothness_weight: float
) -> Floats:
    """(p, d) solutions w of largest μ, each √μ long in units of S_w + αtI.

    A plain generalised eigenvector has unit length there, which would count directions
    that part nothing as much as those that part the labels.
    """
    p = len(scatter.within)
    trace = float(np.trace(scatter.within))
    # All rows of a class equal: nothing bounds the problem but a unit of its own.
    scale = trace / p if trace > 0 else float(np.trace(scatter.across)) / p or 1.0
    bound = scatter.within + max(smoothness_weight, 1e-8) * scale * np.eye(p)
    n_kept = min(n_directions, p)
    mu, found = eigh(scatter.across, bound, subset_by_index=[p - n_kept, p - 1])
    directions = found * np.sqrt(np.maximum(mu, 0.0))
    return with_fixed_sign(np.asarray(directions)[:, ::-1])
