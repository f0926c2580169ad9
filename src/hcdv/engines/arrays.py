"""Where a kernel's arrays lie: numpy's in memory, or torch's on a device.

A kernel is written once, with the functions of `arrays_of` one of its arrays; what numpy and
torch spell alike (+, @, slices) needs none. On a device blocks are larger, and products of
float32 rows are summed in float64 piece by piece, as on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from hcdv.errors import ParameterError, need

_PIECE = 16_384  # rows whose products are summed in float32
_COARSER = 32  # times as many rows are worked on at once on a CUDA device
_ALIKE = (
    "amax", "argmax", "clip", "concatenate", "cos", "cumsum", "einsum", "exp", "matmul",
    "searchsorted", "sqrt", "subtract", "where",
)  # fmt: skip


class NumpyArrays:
    """Arrays in memory: numpy itself."""

    coarser = 1

    def __init__(self) -> None:
        for name in (
            *_ALIKE, "arange", "argsort", "empty", "flatnonzero", "full", "less", "sort",
            "zeros",
        ):  # fmt: skip
            setattr(self, name, getattr(np, name))
        self.cholesky, self.inv = np.linalg.cholesky, np.linalg.inv
        self.contiguous, self.word = np.ascontiguousarray, np.uint64
        self.take_along = np.take_along_axis

    def put(self, array: Any, dtype: Any = None) -> Any:
        """An array of numpy here, of this type."""
        return array if dtype is None else np.asarray(array).astype(dtype, copy=False)

    cast = put

    def get(self, array: Any) -> Any:
        """One of these arrays as numpy's."""
        return array

    def n_jobs(self, asked: int | None) -> int | None:
        """Workers that share blocks."""
        return asked

    def gram(self, x: Any, y: Any) -> Any:
        """xᵀy."""
        return x.T @ y

    def shifted(self, state: Any, bits: int) -> Any:
        """64-bit words, shifted to the right."""
        return state >> np.uint64(bits)

    def signs(self, negative: Any, dtype: Any) -> Any:
        """−1 and 1."""
        return np.where(negative, dtype.type(-1), dtype.type(1))

    def smallest(self, x: Any, count: int) -> Any:
        """Columns of the smallest entries of each row, in any order."""
        return np.argpartition(x, count - 1, axis=1)[:, :count]


class TorchArrays:
    """Tensors on one device; 64-bit words are held as signed ones of the same bits."""

    def __init__(self, device: str) -> None:
        torch: Any = need("torch", extra="torch", what=f'device="{device}"')
        self.torch, self.device = torch, torch.device(device)
        self.coarser = _COARSER if self.device.type == "cuda" else 1
        for name in _ALIKE:
            setattr(self, name, getattr(torch, name))
        self.cholesky, self.inv = torch.linalg.cholesky, torch.linalg.inv
        self.contiguous = torch.Tensor.contiguous
        self.take_along = torch.take_along_dim

    def put(self, array: Any, dtype: Any = None) -> Any:
        """An array of numpy, or a tensor, here."""
        if isinstance(array, np.ndarray):
            if array.dtype == np.uint64:
                array = array.view(np.int64)
            array = self.torch.from_numpy(np.require(array, requirements=["C", "W"]))
        return array.to(self.device, self._type(dtype))

    cast = put

    def get(self, array: Any) -> Any:
        """A tensor as numpy's."""
        return array.cpu().numpy()

    def n_jobs(self, asked: int | None) -> int | None:  # noqa: ARG002, as numpy's
        """The device is the one worker."""
        return 1

    def empty(self, shape: Any, dtype: Any = np.float64) -> Any:
        """As numpy's."""
        return self.torch.empty(shape, dtype=self._type(dtype), device=self.device)

    def zeros(self, shape: Any, dtype: Any = np.float64) -> Any:
        """As numpy's."""
        return self.torch.zeros(shape, dtype=self._type(dtype), device=self.device)

    def full(self, shape: Any, value: Any, dtype: Any = np.float64) -> Any:
        """As numpy's."""
        size = shape if isinstance(shape, tuple) else (shape,)
        kind = self._type(dtype)
        return self.torch.full(size, value, dtype=kind, device=self.device)

    def arange(self, n: int) -> Any:
        """As numpy's."""
        return self.torch.arange(n, device=self.device)

    def argsort(self, x: Any, axis: int = -1, kind: str = "stable") -> Any:  # noqa: ARG002
        """As numpy's, always stable."""
        return self.torch.argsort(x, dim=axis, stable=True)

    def sort(self, x: Any, axis: int = -1) -> Any:
        """As numpy's."""
        return self.torch.sort(x, dim=axis).values

    def flatnonzero(self, x: Any) -> Any:
        """As numpy's."""
        return self.torch.nonzero(x).reshape(-1)

    def less(self, a: Any, b: Any, out: Any) -> Any:
        """As numpy's."""
        return self.torch.lt(a, b, out=out)

    def gram(self, x: Any, y: Any) -> Any:
        """xᵀy, in float64; pieces of so many rows are multiplied as they are."""
        n, whole = len(x), len(x) // _PIECE
        if n <= _PIECE or x.dtype == self.torch.float64:
            return (x.T @ y).double()
        cut = whole * _PIECE
        pieces = x[:cut].reshape(whole, _PIECE, -1).transpose(1, 2)
        total = (pieces @ y[:cut].reshape(whole, _PIECE, -1)).sum(
            0, dtype=self._type(float)
        )
        return total + x[cut:].T @ y[cut:]

    def word(self, word: int) -> int:
        """A 64-bit word as the signed number of the same bits."""
        return word - 2**64 if word >= 2**63 else word

    def shifted(self, state: Any, bits: int) -> Any:
        """64-bit words, shifted to the right with zeros."""
        return (state >> bits) & ((1 << (64 - bits)) - 1)

    def signs(self, negative: Any, dtype: Any) -> Any:
        """−1 and 1."""
        return self.torch.where(negative, -1.0, 1.0).to(dtype)

    def smallest(self, x: Any, count: int) -> Any:
        """Columns of the smallest entries of each row, in any order."""
        return self.torch.topk(x, count, dim=1, largest=False, sorted=False).indices

    def _type(self, dtype: Any) -> Any:
        if dtype is None or isinstance(dtype, self.torch.dtype):
            return dtype
        return getattr(self.torch, np.dtype(dtype).name)


Arrays = Any
"""NumpyArrays or TorchArrays: alike to a kernel."""

NUMPY = NumpyArrays()
_USED: ContextVar[Arrays] = ContextVar("arrays", default=NUMPY)


@cache
def torch_arrays(device: str) -> TorchArrays:
    """Tensors on a device, by torch's name for it."""
    return TorchArrays(device)


def arrays_of(array: Any) -> Arrays:
    """The functions for an array."""
    if isinstance(array, np.ndarray | np.generic):
        return NUMPY
    return torch_arrays(str(array.device))


def arrays_in_use() -> Arrays:
    """Where kernels put numpy's arrays to work on them."""
    return _USED.get()


@contextmanager
def used(arrays: Arrays) -> Iterator[None]:
    """Let kernels work with these within a with block."""
    token = _USED.set(arrays)
    try:
        yield
    finally:
        _USED.reset(token)


def arrays_on(device: str) -> Arrays:
    """Those of "cuda" where it is asked for; else numpy's: nothing here has met a GPU yet."""
    if device != "cuda":
        return NUMPY
    torch: Any = need("torch", extra="torch", what='device="cuda"')
    if torch.cuda.is_available():
        return torch_arrays("cuda")
    raise ParameterError(
        "device", device, '"auto" or "cpu" where PyTorch finds no CUDA device',
        "Check the driver with nvidia-smi, and that PyTorch was built for CUDA.",
    )  # fmt: skip
