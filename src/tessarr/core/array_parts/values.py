"""Fill an array from an array-like, in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import raise_if_cancelled

_PIECE_NBYTES = 64 << 20
"""Approximate bound on the memory for values while they are copied."""


def write_values(source: Any, target: Array) -> None:
    """Store the values of an array-like of the target's shape in `target`, one bounded box at a time.

    A NumPy array is stored in one call. Anything else that has a shape (an array in a store, an HDF5 dataset) is read in
    boxes made of whole chunks of `target`.
    """
    if isinstance(source, np.ndarray) or not target.shape:
        target[...] = source[...] if isinstance(source, Array) else source
        return
    from tessarr.indexing.boxes import boxes_of_chunks

    axes = target._metadata.chunk_grid.axes(target.shape)
    for box in boxes_of_chunks(axes, target.itemsize, _PIECE_NBYTES):
        raise_if_cancelled()
        target[box] = source[box]
