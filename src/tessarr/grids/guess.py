"""Choose chunk and shard shapes by size in bytes, and make a grid of every spelling of ``chunks=``.

>>> guess_chunks((10_000, 10_000), 8)
(358, 358)
>>> guess_shards((10_000, 10_000), (358, 358), 8)
(3580, 3580)
>>> normalize_chunks((100, -1), (1000, 50), 8), normalize_chunks("100MB", (2**20, 2**10), 8).chunk_shape
(RegularGrid((100, 50)), (12193, 1024))

Shapes are computed from the axes; the time does not depend on the number of chunks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessarr.grids.base import ChunkGrid
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.types import AnyArray, Shape

CHUNK_NBYTES = 1 << 20
"""Target for a chunk, decoded: large enough that codecs and requests amortise, small enough for a core's cache."""
SHARD_NBYTES = 128 << 20
"""Target for a shard, decoded."""
SHARD_NBYTES_MAX = 1 << 30
"""Limit up to which shards grow to keep an array within `SHARDS_MAX` objects."""
SHARDS_MAX = 10_000
"""Objects that an array may have before shards are made larger than `SHARD_NBYTES`."""

Chunks: TypeAlias = (
    "int | np.integer | str | bool | Sequence[int | np.integer | None | Sequence[int | Sequence[int]]] | AnyArray"
)
"""What `normalize_chunks` accepts."""
ChunksLike: TypeAlias = "Chunks | ChunkGrid | None"
"""What users give as ``chunks``."""
ShardsLike: TypeAlias = "ChunksLike | Mapping[str, object]"
"""What users give as ``shards``: a shape, or a dictionary of ``shape`` and options."""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_NBYTES = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]I?)?B\s*", re.ASCII | re.IGNORECASE)


def guess_chunks(shape: Shape, itemsize: int, *, target_nbytes: int = CHUNK_NBYTES) -> Shape:
    """Choose a chunk shape of at most `target_nbytes` bytes (one element at least) for elements of `itemsize` bytes.

    Chunks are as near to a cube as the array allows, and divide each axis as evenly as possible. An axis of length 0 is
    expected to grow.
    """
    return _even(shape, _fill([length or None for length in shape], max(1, target_nbytes // max(1, itemsize))))


def guess_chunks_by_halving(shape: Shape, itemsize: int, *, max_nbytes: int = 64 << 20) -> Shape:
    """Choose a chunk shape as h5py and zarr-python do: halve one axis after the other down to the target size.

    The target grows with the logarithm of the size of the array, from 128 KiB to `max_nbytes`; 256 KiB for an array of 1 MiB.

    >>> guess_chunks_by_halving((1000, 1000), 1)
    (500, 500)
    """
    if itemsize == 0 or not shape:
        return tuple(shape)
    chunk = [max(1, length) for length in shape]
    target = float((256 << 10) * 2 ** math.log10(prod(chunk) * itemsize / (1 << 20)))
    target = min(max(target, 128 << 10), max_nbytes)
    axis = 0
    while prod(chunk) > 1:
        nbytes = prod(chunk) * itemsize
        if nbytes < max_nbytes and nbytes < 1.5 * target:
            break
        chunk[axis] = -(-chunk[axis] // 2)
        axis = (axis + 1) % len(chunk)
    return tuple(chunk)


def guess_shards_by_count(
    shape: Shape, chunk_shape: Shape, itemsize: int, *, target_nbytes: int | None = None
) -> Shape:
    """Choose a shard shape as zarr-python does: two chunks along each axis of more than eight, or as many as fit a target.

    >>> guess_shards_by_count((100, 100), (10, 20), 1)
    (20, 20)
    """
    if target_nbytes is None:
        counts = [2 if length // chunk > 8 else 1 for length, chunk in zip(shape, chunk_shape, strict=True)]
        return tuple(chunk * count for chunk, count in zip(chunk_shape, counts, strict=True))
    nbytes, count = prod(chunk_shape) * itemsize, 1
    while (
        chunk_shape
        and 0 < nbytes * (count + 1) ** len(chunk_shape) <= target_nbytes
        and all(chunk * (count + 1) <= length for chunk, length in zip(chunk_shape, shape, strict=True))
    ):
        count += 1
    return tuple(chunk * count for chunk in chunk_shape)


def guess_shards(shape: Shape, chunk_shape: Shape, itemsize: int, *, target_nbytes: int = SHARD_NBYTES) -> Shape:
    """Choose a shard shape, a multiple of `chunk_shape`, of about `target_nbytes` bytes and at most the whole array.

    The target is raised, up to `SHARD_NBYTES_MAX`, for arrays of more than `SHARDS_MAX` shards.
    """
    itemsize = max(1, itemsize)
    most = prod(shape) * itemsize // SHARDS_MAX
    target = max(target_nbytes, min(most, SHARD_NBYTES_MAX))
    counts = tuple(-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True))
    budget = max(1, target // (prod(chunk_shape) * itemsize))
    multiples = _even(counts, _fill([count or None for count in counts], budget))
    return tuple(multiple * chunk for multiple, chunk in zip(multiples, chunk_shape, strict=True))


def _fill(lengths: Sequence[int | None], budget: int) -> list[int]:
    """Find the sides of a box of at most `budget` cells, as equal as `lengths` allow (``None``: no limit)."""
    sides = [1] * len(lengths)
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i] is None, lengths[i] or 0))
    for done, i in enumerate(order):
        side = _root(budget, len(order) - done)
        limit = lengths[i]
        sides[i] = side if limit is None else min(side, limit)
        budget //= sides[i]
    return sides


def _root(value: int, degree: int) -> int:
    """Return the largest integer whose power of `degree` is at most `value` (at least 1)."""
    low, high = 1, 1 << (value.bit_length() // degree + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= value else (low, middle)
    return low


def _even(lengths: Sequence[int], sides: Sequence[int]) -> Shape:
    """Shorten `sides` so that the same number of pieces divides each of `lengths` evenly."""
    return tuple(
        -(-length // -(-length // side)) if length else side for length, side in zip(lengths, sides, strict=True)
    )


def parse_nbytes(text: str, what: str = "chunks") -> int:
    """Parse a size such as ``"100MB"``, ``"1.5 GiB"`` or ``"512 B"`` (KB = 1000 bytes, KiB = 1024).

    Raises `ValueError`, which says `what` has the size, for anything else, and for less than one byte.
    """
    match = _NBYTES.fullmatch(text)
    nbytes = int(float(match[1]) * _UNITS[(match[2] or "").upper()]) if match else 0
    if nbytes < 1:
        otherwise = ', or "auto"' if what == "chunks" else ""
        raise ValueError(f'expected a size of {what} such as "100MB" or "1MiB"{otherwise}; got {text!r}')
    return nbytes


def normalize_chunks(
    chunks: Chunks | None,
    shape: Shape,
    itemsize: int,
    *,
    target_nbytes: int = CHUNK_NBYTES,
    units: Shape | None = None,
) -> ChunkGrid:
    """Make the grid that a user's ``chunks=`` means for an array of `shape` with elements of `itemsize` bytes.

    ======================  ==========================================================================
    ``"auto"``              chosen by `guess_chunks`
    ``"100MB"``             chosen, of at most that many bytes
    ``False``, ``-1``       one chunk that holds the whole array
    ``64``                  64 along every axis
    ``(64, -1, None)``      one entry per axis; -1 and ``None`` are the whole axis
    ``[[10, 20], 5]``       a list for an axis gives its chunk lengths: a `RectilinearGrid`
    ======================  ==========================================================================

    NumPy integers and 1-d integer arrays are accepted like Python's. A whole axis of length 0 gets chunks of 1. With `units`,
    the inner chunk shape of shards, a whole axis is rounded up to a multiple of its unit.

    Raises `ValueError` for ``True``, ``None``, too few or too many entries, and lengths that are not positive integers.
    """
    whole = tuple(max(1, length) for length in shape)
    if units is not None and len(units) == len(whole):
        whole = tuple(-(-length // unit) * unit for length, unit in zip(whole, units, strict=True))
    if isinstance(chunks, str):
        target = target_nbytes if chunks == "auto" else parse_nbytes(chunks)
        return RegularGrid(guess_chunks(shape, itemsize, target_nbytes=target))
    if chunks is False:
        return RegularGrid(whole)
    if chunks is None or isinstance(chunks, bool | np.bool_):
        raise ValueError(f'chunks={chunks!r} has no clear meaning; pass "auto", lengths per axis, or -1 for one chunk')
    if isinstance(chunks, np.ndarray | np.generic):
        chunks = chunks.tolist()
    if isinstance(chunks, int):
        return RegularGrid(tuple(_length(chunks, size, length) for size, length in zip(whole, shape, strict=True)))
    if not isinstance(chunks, Sequence):
        raise ValueError(f'expected "auto", a size, a length or lengths per axis for chunks; got {chunks!r}')
    if len(chunks) != len(shape):
        raise ValueError(f"expected one chunk length per axis of an array of shape {tuple(shape)}; got {chunks!r}")
    entries = [_length(entry, size, length) for entry, size, length in zip(chunks, whole, shape, strict=True)]
    if not any(isinstance(entry, list) for entry in entries):
        return RegularGrid(entries)
    grid = RectilinearGrid(entries)
    grid.axes(shape)
    return grid


def check_shards(grid: ChunkGrid, inner: Shape) -> ChunkGrid:
    """Return the grid of shards. Raises `ValueError` where the length of a shard is not a multiple of `inner`."""
    if isinstance(grid, RectilinearGrid) and not grid.is_divisible(inner):
        raise ValueError(f"shard lengths must be divisible by those of inner chunks, {inner}; got {grid}")
    return grid


def _length(entry: object, whole: int, length: int) -> Any:
    """Normalize one axis of ``chunks``: -1, ``None`` and the 0 of an axis without elements to the `whole` axis."""
    if entry is None or (isinstance(entry, int | np.integer) and not isinstance(entry, bool) and entry == -1):
        return whole
    if length == 0 and isinstance(entry, int | np.integer) and not isinstance(entry, bool) and entry == 0:
        return whole
    return list(entry) if isinstance(entry, list | tuple | np.ndarray) else entry
