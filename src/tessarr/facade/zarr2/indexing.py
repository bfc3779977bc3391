"""zarr-python 2's ``zarr.indexing``: the names that other projects use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tessarr.core.array_parts.views import OIndex, VIndex
from tessarr.errors import BoundsCheckError, NegativeStepError, VindexInvalidSelectionError
from tessarr.facade.zarr3.core import indexing as zarr3
from tessarr.facade.zarr3.core.indexing import ensure_tuple, is_integer, is_slice
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.base import expand
from tessarr.types import Shape

__all__ = [
    "BasicIndexer",
    "BoundsCheckError",
    "ChunkProjection",
    "NegativeStepError",
    "OIndex",
    "OrthogonalIndexer",
    "VIndex",
    "VindexInvalidSelectionError",
    "ensure_tuple",
    "is_integer",
    "is_slice",
    "replace_ellipsis",
]


class ChunkProjection(NamedTuple):
    """The selection within one chunk, and its position in the result."""

    chunk_coords: tuple[int, ...]
    chunk_selection: object
    out_selection: object


class OrthogonalIndexer(zarr3.OrthogonalIndexer):
    """The chunks of an array that an orthogonal selection touches: an iterable of `ChunkProjection`.

    `array` is an array, or an object that has the attributes ``_shape`` and ``_chunks`` of one of zarr-python 2.
    """

    def __init__(self, selection: object, array: object) -> None:
        """Of `array`. Raises `ArrayIndexError` for what is no such selection."""
        shape, chunks = (getattr(array, f"_{name}", None) or getattr(array, name) for name in ("shape", "chunks"))
        super().__init__(selection, shape, RegularGrid(chunks))

    def __iter__(self) -> Iterator[ChunkProjection]:  # type: ignore[override]  # of version 3, with one item more
        return (ChunkProjection(*found[:3]) for found in super().__iter__())


class BasicIndexer(OrthogonalIndexer):
    """The chunks of an array that integers and slices touch: an iterable of `ChunkProjection`."""

    _request = zarr3.BasicIndexer._request


def replace_ellipsis(selection: object, shape: Shape) -> tuple[object, ...]:
    """Return `selection` with an item for each axis, whole slices in place of an Ellipsis.

    >>> replace_ellipsis((..., 0), (2, 3, 4))
    (slice(None, None, None), slice(None, None, None), 0)
    """
    return tuple(expand(ensure_tuple(selection), len(shape)))
