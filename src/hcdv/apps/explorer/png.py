"""Pixels as PNG, as browsers want them: no filter, one zlib stream."""

from __future__ import annotations

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = {1: 0, 3: 2, 4: 6}  # channels → gray, colour, colour with transparency


def png(pixels: bytes, shape: tuple[int, ...]) -> bytes:
    """An image of bytes, (height, width[, channels]), as a PNG file."""
    height, width, channels = (*shape, 1)[:3]
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    step = width * channels
    lines = b"".join(b"\0" + pixels[at : at + step] for at in range(0, height * step, step))
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 6)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, body) for name, body in parts)


def _chunk(name: bytes, body: bytes) -> bytes:
    return (
        struct.pack(">I", len(body))
        + name
        + body
        + struct.pack(">I", zlib.crc32(name + body))
    )
