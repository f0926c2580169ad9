"""Click logs with Criteo's columns: generated at any size, or read from Criteo's own files.

The columns: label (1: clicked), I1 … I13 (counts, some missing), C1 … C26 (categories as
32-bit hashes, 8 hex digits in text, some missing).

Generated: a row is a function of the seed and its number alone, so that any part of a log
can be made by itself, in chunks of any size. Three latent normals of a row (who looks, at
what, where) correlate its columns. Counts are log-normal, the levels of a category follow
Zipf's law, P(level k) ~ 1/k, up to ten million levels. A click is drawn with

    P(click) = 1 / (1 + exp(−(intercept + signal · f))),    f of variance 1,

where f adds effects of counts and of being missing, of levels (a normal number each), of
pairs of levels, of products of counts, and slopes in counts that depend on a level. The
intercept gives the click rate asked for. The true probability comes with every row, and
with it the AUC that no model can surpass (`bayes_auc`). Number of levels, shares of
missing cells and sizes of counts resemble the log Criteo published for its challenge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from hcdv.errors import DataError, ParameterError
from hcdv.valuation.contexts import hashed_uniform, mix

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]

COUNTS = tuple(f"I{j}" for j in range(1, 14))
CATEGORIES = tuple(f"C{j}" for j in range(1, 27))
COLUMNS = ("label", *COUNTS, *CATEGORIES)
N_LEVELS = (
    1460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5683, 8_351_593,
    3194, 27, 14_992, 5_461_306, 10, 5652, 2173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
)  # fmt: skip
COUNT_MEDIAN = (2, 15, 7, 5, 1500, 40, 4, 8, 40, 1, 1, 1, 5)
COUNT_SPREAD = (1.4, 1.9, 1.3, 1.0, 2.2, 1.6, 1.5, 1.2, 1.4, 0.6, 0.8, 0.7, 1.1)
MISSING = (  # columns that are missing together, and how often
    (("I1", "I10"), 0.45),
    (("I3", "I4", "I13"), 0.22),
    (("I6",), 0.22),
    (("I5", "I7", "I9", "I11"), 0.04),
    (("I12",), 0.76),
    (("C3", "C4", "C12", "C16", "C21", "C24"), 0.03),
    (("C19", "C20", "C25", "C26"), 0.44),
    (("C22",), 0.76),
)
LEVEL_PAIRS = ((0, 1), (4, 5), (7, 8), (13, 16), (16, 21), (19, 22), (5, 19), (1, 24))
COUNT_PAIRS = ((0, 1), (2, 5), (4, 6), (7, 8), (10, 12), (3, 9))
SLOPES = ((5, 4), (8, 6), (13, 8), (16, 10), (19, 7), (22, 1))  # (category, count)
SHARED = 0.6  # correlation of a column with its latent normal
CHUNK = 65_536
_REFERENCE = 2**17  # rows that f is standardised and the intercept found on
_LATENT, _ROW, _CLICK, _LEVEL, _PAIR, _SLOPE = (1000 * (k + 1) for k in range(6))
_FEW = 20_000  # categories of more levels weigh half: most of their levels are met once


@dataclass(frozen=True)
class Clicks:
    """Rows of a click log; missing counts are nan, missing categories 0."""

    label: NDArray[np.int8]
    counts: NDArray[np.float32]  # (n, 13)
    codes: NDArray[np.int32]  # (n, 26)  hashes: their hex digits are the text
    probability: Floats  # of a click

    def table(self, *, text: bool = True) -> pa.Table:
        """As Arrow; categories as text, or as int32."""
        import pyarrow as pa

        counts = (pa.array(c, pa.int64(), from_pandas=True) for c in self.counts.T)
        kind = pa.string() if text else pa.int32()
        cells = (_hex(c) if text else c for c in self.codes.T)
        levels = (
            pa.array(cell, mask=code == 0).cast(kind)
            for cell, code in zip(cells, self.codes.T, strict=True)
        )
        return pa.table([pa.array(self.label), *counts, *levels], names=list(COLUMNS))


@dataclass(frozen=True)
class ClickLog:
    """A world of clicks: any rows of it can be had, the same ones for the same settings."""

    seed: int = 0
    click_rate: float = 0.25  # 0.03 … 0.25 in published logs
    signal: float = 1.3  # standard deviation of the log-odds

    def __post_init__(self) -> None:
        if not 0 < self.click_rate < 1:
            raise ParameterError("click_rate", self.click_rate, "between 0 and 1")
        if not self.signal >= 0:
            raise ParameterError("signal", self.signal, "zero or more")

    def rows(self, start: int, stop: int) -> Clicks:
        """Rows start … stop − 1 of the log."""
        key = _keys(start, stop)
        counts, codes = self._features(key)
        center, scale, intercept = self._calibration
        f = (self._effects(counts, codes) - center) / scale
        probability = expit(intercept + self.signal * f)
        label = hashed_uniform(key, self.seed, _CLICK) < probability
        return Clicks(
            label.astype(np.int8), counts, codes.astype(np.uint32).view(np.int32),
            probability,
        )  # fmt: skip

    def chunks(self, n: int, size: int = CHUNK, start: int = 0) -> Iterator[Clicks]:
        """n rows from start on, at most `size` at a time."""
        for at in range(start, start + n, size):
            yield self.rows(at, min(at + size, start + n))

    def bayes_auc(self, n: int = 2**19) -> float:
        """The AUC expected of the true probability, by the first n rows of the log."""
        return best_auc(np.concatenate([part.probability for part in self.chunks(n)]))

    @cached_property
    def _calibration(self) -> tuple[float, float, float]:
        """Mean and deviation of f, and the intercept, on rows that no log holds."""
        counts, codes = self._features(_keys(2**63, 2**63 + _REFERENCE))
        f = self._effects(counts, codes)
        center, scale = float(f.mean()), float(f.std())
        f = self.signal * (f - center) / scale
        low, high = -50.0, 50.0
        for _ in range(60):
            middle = (low + high) / 2
            is_low = expit(middle + f).mean() < self.click_rate
            low, high = (middle, high) if is_low else (low, middle)
        return center, scale, (low + high) / 2

    def _features(self, key: Keys) -> tuple[NDArray[np.float32], Keys]:
        latent = [_normal(key, self.seed, _LATENT + k) for k in range(3)]
        rest = np.sqrt(1 - SHARED**2)

        def normal(column: int) -> Floats:
            own = _normal(key, self.seed, _ROW + column)
            return SHARED * latent[column % len(latent)] + rest * own

        counts = np.empty((len(key), len(COUNTS)), dtype=np.float32)
        for j, (median, spread) in enumerate(zip(COUNT_MEDIAN, COUNT_SPREAD, strict=True)):
            counts[:, j] = np.floor((1 + median) * np.exp(spread * normal(j))) - 1
        np.clip(counts, 0, 2**24, out=counts)
        codes = np.empty((len(key), len(CATEGORIES)), dtype=np.uint64)
        first = 1
        for j, n_levels in enumerate(N_LEVELS):
            level = np.exp(ndtr(normal(len(COUNTS) + j)) * np.log(n_levels + 1)) - 1
            level = np.minimum(level, n_levels - 1).astype(np.uint64)
            codes[:, j] = _scattered(level + np.uint64(first))
            first += n_levels
        for group, (names, share) in enumerate(MISSING):
            is_missing = hashed_uniform(key, self.seed, _ROW + 100 + group) < share
            for name in names:
                part, none = (counts, np.nan) if name in COUNTS else (codes, 0)
                part[is_missing, int(name[1:]) - 1] = none
        return counts, codes

    def _effects(self, counts: NDArray[np.float32], codes: Keys) -> Floats:
        """f before it is standardised. Column by column: sums do not depend on chunks."""
        rng = np.random.default_rng([self.seed, 35])
        slope, gap = rng.standard_normal((2, len(COUNTS)))
        joint = rng.standard_normal(len(COUNT_PAIRS))
        x = [self._standing(counts[:, j], j) for j in range(len(COUNTS))]
        f = np.zeros(len(counts))
        for j, of in enumerate(x):
            f += slope[j] * of + 0.5 * gap[j] * np.isnan(counts[:, j])
        for j, n_levels in enumerate(N_LEVELS):
            weight = 1.0 if n_levels <= _FEW else 0.5
            f += weight * _normal(codes[:, j], self.seed, _LEVEL + j)
        for number, (a, b) in enumerate(LEVEL_PAIRS):
            f += _normal(mix(codes[:, a]) ^ codes[:, b], self.seed, _PAIR + number)
        for number, (a, b) in enumerate(COUNT_PAIRS):
            f += joint[number] * x[a] * x[b]
        for number, (category, count) in enumerate(SLOPES):
            f += _normal(codes[:, category], self.seed, _SLOPE + number) * x[count]
        return f

    @staticmethod
    def _standing(count: NDArray[np.float32], j: int) -> Floats:
        """log(1 + count) standardised; 0 where it is missing."""
        z = np.log1p(count.astype(np.float64)) - np.log1p(COUNT_MEDIAN[j])
        return np.nan_to_num(z / COUNT_SPREAD[j], nan=0.0)


def best_auc(probability: Floats) -> float:
    """The AUC expected when labels are drawn with these probabilities, and scored by them."""
    p = np.sort(probability)
    below = np.cumsum(1 - p) - (1 - p) / 2
    return float((p * below).sum() / (p.sum() * (1 - p).sum()))


def write_clicks(path: Path, log: ClickLog, n: int, start: int = 0) -> None:
    """Write n rows, in little memory: as Parquet (.parquet), or as Criteo's TSV."""
    with _writer(path) as writer:
        for part in log.chunks(n, start=start):
            writer.write_table(part.table())


def read_clicks(path: Path, size: int = CHUNK) -> Iterator[pd.DataFrame]:
    """A click log in frames of about so many rows: Parquet, or Criteo's TSV without header."""
    if not path.exists():
        raise DataError(f"{path} must be a file of clicks, got none. Check its name.")
    reader = _parquet_batches if path.suffix == ".parquet" else _tsv_batches
    for table in reader(path, size):
        frame = table.to_pandas()
        yield frame.astype({"label": np.int8})


def features(frame: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Columns to learn from, counts as log(1 + count), and labels."""
    X = frame.drop(columns="label")
    counts = np.log1p(X[list(COUNTS)].astype(np.float64).clip(lower=0))
    return X.assign(**{name: counts[name] for name in COUNTS}), np.asarray(
        frame["label"], dtype=np.intp
    )


def _keys(start: int, stop: int) -> Keys:
    return mix(np.arange(start, stop, dtype=np.uint64))


def _normal(key: Keys, seed: int, stream: int) -> Floats:
    """A standard normal number for every key."""
    return ndtri(hashed_uniform(key, seed, stream) + 2.0**-54)


def _scattered(number: Keys) -> Keys:
    """A bijection of 32-bit numbers that keeps 0 (MurmurHash3's finaliser)."""
    x = number & np.uint64(0xFFFFFFFF)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        x ^= x >> np.uint64(shift)
        x = (x * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return x


def _hex(codes: NDArray[np.int32]) -> NDArray[np.bytes_]:
    """Eight hex digits a code, (n,) of S8."""
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    big = np.ascontiguousarray(codes).astype(">i4").view(np.uint8).reshape(-1, 4)
    pairs = np.stack([digits[big >> 4], digits[big & 15]], axis=2)
    return np.ascontiguousarray(pairs).reshape(-1, 8).view("S8")[:, 0]


def _schema(label: Any = None) -> pa.Schema:
    import pyarrow as pa

    kinds = [label or pa.int8()] + [pa.int64()] * len(COUNTS)
    kinds += [pa.string()] * len(CATEGORIES)
    return pa.schema(list(zip(COLUMNS, kinds, strict=True)))


def _writer(path: Path) -> Any:
    from pyarrow import csv, parquet

    if path.suffix == ".parquet":
        return parquet.ParquetWriter(path, _schema())
    how = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    return csv.CSVWriter(path, _schema(), write_options=how)


def _parquet_batches(path: Path, size: int) -> Iterator[Any]:
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    if missing := [name for name in COLUMNS if name not in file.schema_arrow.names]:
        raise DataError(
            f"{path} must have the columns label, I1 … I13, C1 … C26, got none named "
            f"{', '.join(missing[:5])}. Rename its columns."
        )
    return file.iter_batches(size, columns=list(COLUMNS))


def _tsv_batches(path: Path, size: int) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    row_bytes = 250  # of Criteo's own files, about
    try:
        yield from csv.open_csv(
            path,
            read_options=csv.ReadOptions(
                column_names=list(COLUMNS), block_size=max(size * row_bytes, 2**16)
            ),
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=dict(zip(COLUMNS, _schema().types, strict=True)),
                null_values=[""], strings_can_be_null=True,
            ),
        )  # fmt: skip
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path} must hold 40 columns between tabs and no header, got {error}. "
            "Name Parquet files .parquet."
        ) from error
