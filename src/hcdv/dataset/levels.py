"""Text columns of Arrow → levels and their hashes, without a Python object a level.

A block's column is a dictionary and indices into it: only the levels are hashed, eight bytes
at a time, all levels at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.embedding.target_statistics import Levels
from hcdv.valuation.contexts import mix

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_MISSING = np.uint64(0x6D697373696E67)  # what a missing cell hashes to
_WORD = 8  # bytes


def levels_of(rows: pa.Table | pd.DataFrame, name: str) -> Levels:
    """Codes of a column's cells, and the hash of every level; code −1, the last: missing."""
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        column = rows.column(name).combine_chunks()
    else:
        column = pa.array(rows[name], from_pandas=True)
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = np.asarray(column.indices.fill_null(-1)).astype(np.intp)
    texts = column.dictionary
    if len(texts) > len(codes):  # of a larger row group: hash what occurs
        used, codes = np.unique(codes, return_inverse=True)
        known = used >= 0
        texts = texts.take(pa.array(used[known]))
        codes -= int(not known.all())
    hashed = np.append(hashed_texts(texts), _MISSING)
    if texts.null_count:
        hashed[:-1][np.asarray(texts.is_null())] = _MISSING
    return codes, hashed


def hashed_texts(texts: pa.Array) -> NDArray[np.uint64]:
    """A fixed 64-bit hash of every text: splitmix64 over its length and its words."""
    start, length, content = _bytes_of(texts)
    hashed = mix(length.astype(np.uint64))
    # one word for every byte it can begin at: unaligned, which numpy gathers from
    words = np.ndarray((len(content) - _WORD + 1,), np.dtype("<u8"), content, strides=(1,))
    rows: Any = slice(None)
    for at in range(0, int(length.max(initial=0)), _WORD):
        rows = np.flatnonzero(length > at)
        kept = np.minimum(length[rows] - at, _WORD).astype(np.uint64)
        mask = ~np.uint64(0) >> (np.uint64(8) * (np.uint64(_WORD) - kept))
        hashed[rows] = mix(hashed[rows] ^ (words[start[rows] + at] & mask))
    return hashed


def _bytes_of(
    texts: pa.Array,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text starts, how long it is, and the bytes of all, a word to spare."""
    import pyarrow as pa

    if not pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    edges = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = (int(edges[0]), int(edges[-1])) if len(edges) else (0, 0)
    held = np.frombuffer(data, np.uint8)[first:last] if data else np.zeros(0, np.uint8)
    content = np.concatenate([held, np.zeros(_WORD, np.uint8)])
    return edges[:-1] - first, np.diff(edges), content
