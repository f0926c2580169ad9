"""PNG files of small pictures: an encoder of its own, so that no imaging library is needed."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_COLOUR = {1: 0, 2: 4, 3: 2, 4: 6}  # channels → PNG's colour type


def png(picture: NDArray[np.uint8]) -> bytes:
    """A picture (height, width[, channels]) of 1 to 4 channels as a PNG file."""
    if picture.ndim == 2:
        picture = picture[:, :, None]
    height, width, channels = picture.shape
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # 0: no filter
    lines[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR[channels], 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def data_uri(picture: NDArray[np.uint8]) -> str:
    """A picture as the address of an image inside a page."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode("ascii")


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
