"""Products of many contexts' coefficients with blocks of rows, sized for a core's cache."""

from __future__ import annotations

from collections.abc import Iterator

from hcdv.engines.arrays import NUMPY, arrays_of
from hcdv.valuation.points import Floats

_SCRATCH = 2**18  # entries of one block of products: it stays within a core's L2
_SCRATCH_ON_DEVICE = 2**28  # few launches matter more there
_COLUMNS = 2**10  # of the coefficients multiplied at once


def row_blocks(n_rows: int, stack: Floats) -> Iterator[slice]:
    """Slices of the rows whose products with a stack (L, columns, D) fit the cache."""
    n_contexts, n_columns, _ = stack.shape
    scratch = _SCRATCH if arrays_of(stack) is NUMPY else _SCRATCH_ON_DEVICE
    step = max(64, scratch // (n_columns * min(_at_once(n_columns), n_contexts)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def products(stack: Floats, xt: Floats) -> Iterator[tuple[slice, Floats]]:
    """Some contexts at a time, and their products (l, columns, b) with rows xt (D, b)."""
    n_contexts, n_columns, width = stack.shape
    step = _at_once(n_columns)
    for first in range(0, n_contexts, step):
        some = slice(first, min(first + step, n_contexts))
        product = stack[some].reshape(-1, width) @ xt
        yield some, product.reshape(-1, n_columns, xt.shape[1])


def _at_once(n_columns: int) -> int:
    return max(1, _COLUMNS // n_columns)


def transposed(x: Floats) -> Floats:
    """Rows as columns, contiguous, so that rows are innermost in every product."""
    return arrays_of(x).contiguous(x.T)
