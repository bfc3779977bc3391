"""Find out whether a chunk holds only the fill value, bit for bit.

Bits are compared, not numbers: −0.0 is not 0.0, and a NaN is only equal to a NaN with the same payload. The first element
nearly always decides; the others are compared in blocks, so that the comparison stops soon after a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from tessarr.types import AnyArray

_TEXT = np.dtypes.StringDType()
_BLOCK = 1 << 16
_OBJECTS = 1 << 8
"""Texts and objects that are compared at a time; the first of them before the others, which may be long."""


def is_fill(chunk: AnyArray, fill: AnyArray) -> bool:
    """Return whether every element of `chunk` has the bits of `fill` (0-d, of the same dtype)."""
    if chunk.size == 0:
        return True
    if chunk.dtype.kind in "OT":
        value = fill[()]
        flat = chunk.ravel()  # not `flat`, through which NumPy breaks long texts
        starts = chain((0,), range(1, chunk.size, _OBJECTS))
        blocks: Iterator[AnyArray] = (flat[at : at + _OBJECTS if at else 1] for at in starts)
        if chunk.dtype == _TEXT:  # compared where NumPy has them: as objects, they would be copied
            return all(bool((block == fill).all()) for block in blocks)
        return all(type(item) is type(value) and _equal(item, value) for block in blocks for item in block.tolist())
    origin: Any = (*(0,) * chunk.ndim, ...)
    first = chunk[origin]  # a 0-d array: a scalar of S or U would lose its trailing NULs
    if first.tobytes() != fill.tobytes():
        return False
    if chunk.dtype.itemsize == 0:
        return True
    if chunk.flags.f_contiguous:
        chunk = chunk.T
    if chunk.flags.c_contiguous:
        return _uniform(chunk, fill)
    # Not its elements, of one axis: a scalar of S or U loses its trailing NULs here too.
    length = _BLOCK if chunk.ndim == 1 else 1
    pieces = (chunk[at : at + length] for at in range(0, len(chunk), length))
    return all(_uniform(np.ascontiguousarray(piece), fill) for piece in pieces)


def _equal(item: Any, value: Any) -> bool:
    """Return whether two objects of one type are equal, ragged rows (arrays) included."""
    if isinstance(item, np.ndarray):
        return item.dtype == value.dtype and np.array_equal(item, value)
    return bool(item == value)


def _uniform(piece: AnyArray, fill: AnyArray) -> bool:
    itemsize = piece.dtype.itemsize
    width = next(n for n in (8, 4, 2, 1) if itemsize % n == 0)
    unit = np.dtype(f"u{width}")
    bits = np.frombuffer(fill.tobytes(), unit)
    words = piece.reshape(-1).view(unit).reshape(-1, len(bits))
    return all(bool((words[at : at + _BLOCK] == bits).all()) for at in range(0, len(words), _BLOCK))
