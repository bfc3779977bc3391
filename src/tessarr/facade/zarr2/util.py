"""zarr-python 2's ``zarr.util``: the functions that other projects use."""

from __future__ import annotations

from collections.abc import Iterable

from tessarr.core.info import human as human_readable_size
from tessarr.facade.zarr3.core.common import parse_shapelike
from tessarr.grids.guess import guess_chunks_by_halving
from tessarr.stores.path import normalize_path as normalize_storage_path
from tessarr.types import Buffer, Shape

__all__ = ["buffer_size", "guess_chunks", "human_readable_size", "normalize_shape", "normalize_storage_path"]


def normalize_shape(shape: int | Iterable[int] | None) -> Shape:
    """Return `shape` as a tuple of integers.

    >>> normalize_shape(5), normalize_shape([2, 3])
    ((5,), (2, 3))
    """
    if shape is None:
        raise TypeError("shape is None")
    return parse_shapelike(shape)


def guess_chunks(shape: Shape, typesize: int) -> Shape:
    """Choose a chunk shape for elements of `typesize` bytes as zarr-python 2 does.

    >>> guess_chunks((5000, 300, 40), 4)
    (625, 75, 10)
    """
    return guess_chunks_by_halving(shape, typesize)


def buffer_size(v: Buffer) -> int:
    """Return the number of bytes of a buffer.

    >>> buffer_size(b"abc")
    3
    """
    return memoryview(v).nbytes
