"""Trained encoders (torch): a perceptron for vectors, a small ConvNet for images.

Both maximise the objective of Eq. (10) by mini-batches. They have seen the labels they
were trained on: judge row i only in the space of an encoder that has not seen y_i
(`fold_encoders`). Numeric targets are cut into quantile classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hcdv.embedding.column_moments import Scaling, column_scaling
from hcdv.embedding.labels import LabelClasses, label_classes, required_labels
from hcdv.embedding.networks import conv_network, image_batch, mlp_network
from hcdv.embedding.objective import (
    Objective,
    Weights,
    batch_dispersion,
    head_utility,
    objective,
    one_hot_centred,
    unit,
)
from hcdv.embedding.pca import State, dense, flat, shares_scale
from hcdv.errors import DataError, ParameterError, need

if TYPE_CHECKING:
    from torch import Tensor

ROWS_PER_EPOCH = 100_000
HEAD_ROWS = 2048  # rows the validation head is fitted on, and scored on at most
TRANSFORM_ROWS = 4096
LEAST_BATCH = 8


class NeuralEncoder:
    """Encoder `mlp` or `conv`: Adam on J, the best weights on held-out rows kept.

    history_ holds one entry an epoch: the mean of J and its parts over the batches, and
    the same objective without Ω_FD on held-out rows, by which training stops.
    """

    supervised = True

    def __init__(
        self,
        network: str = "mlp",
        n_components: int = 64,
        *,
        dispersion_weight: float = 0.1,
        smoothness_weight: float = 0.01,
        standardise: bool | None = None,
        device: str = "auto",
        n_epochs: int = 50,
        patience: int = 5,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        n_hidden: int = 256,
        weights: Weights | None = None,
    ) -> None:
        if network not in ("mlp", "conv"):
            raise ParameterError("network", network, "'mlp' or 'conv'")
        base = weights or Weights()
        self.network = network
        self.n_components = n_components
        self.standardise = standardise
        self.device = device
        self.n_epochs = n_epochs
        self.patience = patience
        self.batch_size = max(batch_size, 2 * LEAST_BATCH)
        self.learning_rate = learning_rate
        self.n_hidden = n_hidden
        self.weights = base._replace(
            dispersion=dispersion_weight, smoothness=smoothness_weight
        )
        self.notes: list[str] = []
        self.history_: list[dict[str, float]] = []

    def fit(
        self, X: Any, y: Any, rng: np.random.Generator, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Train until held-out rows (or X_val, y_val if given) no longer gain."""
        torch = self._torch()
        target = required_labels(y, X.shape[0], self.network)
        classes = label_classes(target)
        self.notes = classes.notes()
        rows, codes = self._shaped(X), classes.codes(target)
        held = self._held_out(rows, codes, classes, X_val, y_val, rng)
        rows, codes, rows_val, codes_val = held
        self._fit_scaling(rows)
        seed = int(rng.integers(2**62))
        self.module = self._new_module(tuple(rows.shape[1:]), seed).to(self._device())
        generator = torch.Generator().manual_seed(seed)
        # One thread: the same bits for any number of cores. Small batches gain little
        # from more, and lose much where the cores are busy.
        with threadpool_limits(limits=1):
            self._train(rows, codes, rows_val, codes_val, len(classes.levels), generator)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Vectors of the rows of X, (n, d)."""
        torch = self._torch()
        rows = self._shaped(X)
        out = np.empty((len(rows), self.n_components), dtype=np.float32)
        with torch.no_grad(), threadpool_limits(limits=1):
            for at in range(0, len(rows), TRANSFORM_ROWS):
                part = slice(at, at + TRANSFORM_ROWS)
                out[part] = self.module(self._tensor(rows[part])).cpu().numpy()
        return out

    def state(self) -> State:
        """JSON-able settings and arrays from which `from_state` makes an equal encoder."""
        settings = {
            "kind": "neural",
            "network": self.network,
            "n_components": self.n_components,
            "n_hidden": self.n_hidden,
            "shape": list(self.shape),
            "bounds": self.bounds,
        }
        arrays = {
            f"weights.{k}": v.cpu().numpy() for k, v in self.module.state_dict().items()
        }
        return settings, arrays | self.scaling._asdict()

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that `state` described."""
        encoder = cls(
            settings["network"], settings["n_components"], n_hidden=settings["n_hidden"]
        )
        torch = encoder._torch()
        encoder.scaling = Scaling(arrays["center"], arrays["factor"])
        encoder.bounds = None if settings["bounds"] is None else tuple(settings["bounds"])
        encoder.module = encoder._new_module(tuple(settings["shape"]), seed=0)
        held = {k: v for k, v in arrays.items() if k.startswith("weights.")}
        tensors = {k.removeprefix("weights."): torch.tensor(v) for k, v in held.items()}
        encoder.module.load_state_dict(tensors)
        encoder.module.to(encoder._device()).eval()
        return encoder

    def _train(
        self,
        rows: NDArray[Any],
        codes: NDArray[np.intp],
        rows_val: NDArray[Any],
        codes_val: NDArray[np.intp],
        n_classes: int,
        generator: Any,
    ) -> None:
        torch = self._torch()
        adam = torch.optim.Adam(self.module.parameters(), lr=self.learning_rate)
        labels = torch.as_tensor(codes)
        best, best_epoch, best_weights = -math.inf, 0, self._copied_weights()
        self.history_ = []
        for epoch in range(self.n_epochs):
            self.module.train()
            parts: list[list[float]] = []
            for batch in self._batches(len(rows), generator):
                x, label = self._tensor(rows[batch.numpy()]), labels[batch]
                found = self._objective(x, label.to(x.device), n_classes, generator)
                adam.zero_grad()
                (-found.total).backward()
                adam.step()
                parts.append([float(part.detach()) for part in found])
            held_out = self._held_out_score(rows, codes, rows_val, codes_val, n_classes)
            means = np.mean(parts, axis=0).tolist()
            names = ("objective", "utility", "dispersion", "smoothness")
            self.history_.append(dict(zip(names, means, strict=True), held_out=held_out))
            if held_out > best:
                best, best_epoch, best_weights = held_out, epoch, self._copied_weights()
            elif epoch - best_epoch >= self.patience:
                break
        self.module.load_state_dict(best_weights)
        self.module.eval()
        self.best_epoch_ = best_epoch

    def _objective(
        self, x: Tensor, labels: Tensor, n_classes: int, generator: Any
    ) -> Objective:
        return objective(
            self.module, x, labels, n_classes, self.weights, generator, self.bounds
        )

    def _batches(self, n: int, generator: Any) -> Iterator[Tensor]:
        torch = self._torch()
        order = torch.randperm(n, generator=generator)[:ROWS_PER_EPOCH]
        batches = list(order.split(self.batch_size))
        # A last batch of a few rows says little and pulls as hard as a whole one.
        if len(batches) > 1 and len(batches[-1]) < self.batch_size // 2:
            batches.pop()
        return iter(batches)

    def _held_out_score(
        self,
        rows: NDArray[Any],
        codes: NDArray[np.intp],
        rows_val: NDArray[Any],
        codes_val: NDArray[np.intp],
        n_classes: int,
    ) -> float:
        """M + λ·Δ̄_c on held-out rows, the head fitted on training rows."""
        torch = self._torch()
        self.module.eval()
        some = slice(None, None, max(1, -(-len(rows) // HEAD_ROWS)))
        some_val = slice(None, None, max(1, -(-len(rows_val) // HEAD_ROWS)))
        with torch.no_grad():
            z = unit(self.module(self._tensor(rows[some])))
            z_val = unit(self.module(self._tensor(rows_val[some_val])))
            label = torch.as_tensor(codes[some]).to(z.device)
            label_val = torch.as_tensor(codes_val[some_val]).to(z.device)
            target = one_hot_centred(label, n_classes, z)
            target_val = one_hot_centred(label_val, n_classes, z)
            score = head_utility(z, target, z_val, target_val, self.weights.ridge)
            apart = batch_dispersion(z_val, label_val, n_classes)
            return float(score + self.weights.dispersion * apart)

    def _held_out(
        self,
        rows: NDArray[Any],
        codes: NDArray[np.intp],
        classes: LabelClasses,
        X_val: Any,
        y_val: Any,
        rng: np.random.Generator,
    ) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[Any], NDArray[np.intp]]:
        """Training rows and those that stop it: the validation set, or a tenth."""
        if X_val is not None:
            codes_val = classes.codes(required_labels(y_val, X_val.shape[0], self.network))
            known = codes_val >= 0
            if known.any():
                return rows, codes, self._shaped(X_val)[known], codes_val[known]
            self.notes.append(
                "no validation label is known from training: a tenth held out"
            )
        if len(rows) < 2 * LEAST_BATCH:
            raise DataError(
                f'encoder="{self.network}" must have at least {2 * LEAST_BATCH} rows to '
                f'train on, got {len(rows)}. Use encoder="pca".'
            )
        order = rng.permutation(len(rows))
        n_held = max(2, len(rows) // 10)
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        return rows[kept], codes[kept], rows[held], codes[held]

    def _fit_scaling(self, rows: NDArray[Any]) -> None:
        """Columns to unit variance, or all by one factor where they share a scale."""
        wide = flat(rows)
        is_image = rows.ndim > 2
        standardise = self.standardise
        if standardise is None:
            standardise = not (is_image or shares_scale(wide))
        self.scaling = column_scaling(wide, standardise=standardise)
        self.bounds: Any = None
        if is_image:
            # Pixels have a valid range, Ω_FD clamps to it; table columns have none.
            center, spread = float(wide.mean()), float(wide.std()) or 1.0
            self.scaling = Scaling(np.array([center]), np.array([1 / spread]))
            low, high = float(wide.min()), float(wide.max())
            self.bounds = ((low - center) / spread, (high - center) / spread)
        elif not standardise:
            spread = float(column_spread(wide, self.scaling)) or 1.0
            self.scaling = self.scaling._replace(factor=self.scaling.factor / spread)

    def _shaped(self, X: Any) -> NDArray[Any]:
        if self.network == "mlp":
            return dense(X)
        if X.ndim < 3:
            raise DataError(
                'encoder="conv" must be given images (n, height, width[, channels]), '
                f'got a table of shape {X.shape}. Reshape X, or use encoder="mlp".'
            )
        return image_batch(np.asarray(X))

    def _tensor(self, rows: NDArray[Any]) -> Tensor:
        moved = (rows - self.scaling.center) * self.scaling.factor
        torch = self._torch()
        return torch.as_tensor(moved.astype(np.float32), device=self._device())

    def _new_module(self, shape: tuple[int, ...], seed: int) -> Any:
        """Weights drawn under a seed of their own; torch's global state is put back."""
        torch = self._torch()
        self.shape = shape
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            if self.network == "mlp":
                return mlp_network(shape[0], self.n_hidden, self.n_components)
            return conv_network(shape[0], self.n_components)

    def _copied_weights(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.module.state_dict().items()}

    def _device(self) -> Any:
        torch = self._torch()
        if self.device != "auto":
            return torch.device(self.device)
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def _torch(self) -> Any:
        what = f'encoder="{self.network}"'
        return need("torch", extra="torch", what=what, instead='use encoder="linear"')


def column_spread(rows: NDArray[Any], scaling: Scaling) -> float:
    """Root mean square of the centred cells, over at most 4,096 rows."""
    some = rows[:: max(1, len(rows) // 4096)] - scaling.center
    return float(np.sqrt(np.mean(np.square(some, dtype=np.float64))))
