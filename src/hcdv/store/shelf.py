"""Named arrays as numbers alone: text and dates are kept as bytes, with their type in words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

SETTINGS = "settings"
_AS_BYTES = "USMm"  # kinds that safetensors lacks


class Shelf:
    """Arrays by name, and beside them JSON-able settings; both end up as plain numbers."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.settings: dict[str, Any] = {}
        self.kinds: dict[str, str] = {}  # numpy's name of each type kept as bytes

    def put(self, name: str, array: NDArray[Any]) -> None:
        """Keep an array; safetensors takes its memory as it lies, so it is made contiguous."""
        array = np.ascontiguousarray(array)
        if array.dtype.kind in _AS_BYTES:
            array = array.astype(array.dtype.newbyteorder("<"))
            self.kinds[name] = array.dtype.str
            array = array.view(np.uint8)
        elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
            array = array.astype(np.float64)
        self.arrays[name] = array

    def put_all(self, prefix: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep several arrays under one prefix."""
        for name, array in arrays.items():
            self.put(f"{prefix}.{name}", array)

    def get(self, name: str, shape: tuple[int | None, ...], kinds: str) -> NDArray[Any]:
        """The array of that name; ValueError unless its shape and numpy kind are as told."""
        array = self.arrays[name]
        if name in self.kinds:
            dtype = np.dtype(str(self.kinds[name]))
            if dtype.kind not in _AS_BYTES or not dtype.itemsize:
                raise ValueError(f"{name} is kept as {dtype}")
            array = array.view(dtype)
        fits = len(array.shape) == len(shape) and all(
            want in (None, size) for want, size in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype.kind not in kinds:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
        return array

    def index(
        self, name: str, shape: tuple[int | None, ...], below: int
    ) -> NDArray[np.intp]:
        """An array of whole numbers from 0 to below `below`."""
        array = self.get(name, shape, "iu").astype(np.intp)
        if array.size and not (array.min() >= 0 and array.max() < below):
            raise ValueError(f"{name} must lie from 0 to {below - 1}")
        return array

    def under(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The arrays put under one prefix, by the rest of their names."""
        names = [name for name in self.arrays if name.startswith(f"{prefix}.")]
        return {name.removeprefix(f"{prefix}."): self.arrays[name] for name in names}

    def to_bytes(self) -> bytes:
        """Everything as one safetensors file."""
        from safetensors.numpy import save

        own = {"settings": self.settings, "kinds": self.kinds}
        text = json.dumps(own, default=lambda number: number.item())  # numpy's own numbers
        return save({**self.arrays, SETTINGS: np.frombuffer(text.encode(), dtype=np.uint8)})

    @classmethod
    def from_bytes(cls, content: bytes) -> Shelf:
        """What `to_bytes` gave, read without running anything."""
        from safetensors.numpy import load

        shelf = cls()
        shelf.arrays = load(content)
        own = json.loads(shelf.arrays.pop(SETTINGS).tobytes())
        shelf.settings, shelf.kinds = own["settings"], own["kinds"]
        return shelf
