"""zarr-python's ``zarr.core.indexing``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from types import EllipsisType
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.core.array_parts.views import Blocks as BlockIndex
from tessarr.core.array_parts.views import OIndex, VIndex
from tessarr.core.asynchronous.async_array import AsyncOIndex, AsyncVIndex, Indexer
from tessarr.errors import ArrayIndexError, BoundsCheckError, NegativeStepError, VindexInvalidSelectionError
from tessarr.facade.zarr3.core.chunk_grids import ChunkGrid as GridOfArray
from tessarr.grids.base import Axis, ChunkGrid
from tessarr.indexing.base import Request, expand
from tessarr.indexing.chunk_plan import Part, plan
from tessarr.indexing.request import basic, coordinate, mask, orthogonal
from tessarr.indexing.selection import IndexArray, Outer, Points

IntSequence: TypeAlias = list[int] | npt.NDArray[np.intp]
BasicSelector: TypeAlias = int | slice | EllipsisType
Selector: TypeAlias = BasicSelector | npt.NDArray[np.intp] | npt.NDArray[np.bool_]
SelectorTuple: TypeAlias = tuple[Selector, ...] | npt.NDArray[np.intp] | slice
BasicSelection: TypeAlias = BasicSelector | tuple[int | slice | EllipsisType, ...]
CoordinateSelection: TypeAlias = IntSequence | tuple[IntSequence, ...]
MaskSelection: TypeAlias = npt.NDArray[np.bool_]
OrthogonalSelection: TypeAlias = Selector | tuple[Selector, ...]
Selection: TypeAlias = BasicSelection | CoordinateSelection | MaskSelection | OrthogonalSelection
Fields: TypeAlias = str | list[str] | tuple[str, ...]


def is_integer(x: object) -> bool:
    """Return whether `x` is an integer of Python or NumPy; a boolean is not."""
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def is_bool(x: object) -> bool:
    """Return whether `x` is a boolean, of Python or NumPy."""
    return isinstance(x, bool | np.bool_)


def is_slice(x: object) -> bool:
    """Return whether `x` is a slice."""
    return isinstance(x, slice)


def ensure_tuple(v: object) -> tuple[object, ...]:
    """Return `v`, wrapped in a tuple of one item unless it is a tuple."""
    return v if isinstance(v, tuple) else (v,)


class ChunkProjection(NamedTuple):
    """The selection within one chunk, and its position in the result."""

    chunk_coords: tuple[int, ...]
    chunk_selection: object
    out_selection: object
    is_complete_chunk: bool


class OrthogonalIndexer:
    """The chunks that an orthogonal selection touches, in ascending C order: an iterable of `ChunkProjection`.

    An integer drops its axis of the result. Beside index arrays, the selection within a chunk keeps that axis, with
    length 1; `drop_axes` names it.

    >>> from tessarr.grids.regular import RegularGrid
    >>> indexer = OrthogonalIndexer((slice(1, 4), 0), (6, 5), RegularGrid((3, 5)))
    >>> indexer.shape, [(part.chunk_coords, part.chunk_selection) for part in indexer]
    ((3,), [((0, 0), (slice(1, 3, 1), 0)), ((1, 0), (slice(0, 1, 1), 0))])
    >>> [part.out_selection for part in indexer]
    [(slice(0, 2, 1),), (slice(2, 3, 1),)]
    """

    def __init__(self, selection: object, shape: Sequence[int], chunk_grid: ChunkGrid | GridOfArray) -> None:
        """Of an array of `shape`, cut by `chunk_grid`. Raises `ArrayIndexError` for what is no such selection."""
        lengths = tuple(shape)
        items = expand(ensure_tuple(selection), len(lengths))
        if any(isinstance(item, slice) and (item.step or 1) < 0 for item in items):
            raise NegativeStepError("only slices with step >= 1 are supported")
        chosen = self._request(tuple(items), lengths)
        assert isinstance(chosen.selection, Outer)
        self._integers = [is_integer(item) for item in items]
        self._dims = chosen.selection.dims
        self._axes = chunk_grid.axes(lengths)
        self.shape: tuple[int, ...] = chosen.shape
        self.is_advanced = any(not isinstance(dim, slice) for dim in self._dims)
        self.drop_axes = tuple(np.flatnonzero(self._integers).tolist()) if self.is_advanced else ()

    def _request(self, items: tuple[object, ...], shape: tuple[int, ...]) -> Request:
        return orthogonal(items, shape)

    def __iter__(self) -> Iterator[ChunkProjection]:
        for parts in product(*map(_of_one_axis, self._dims, self._axes)):
            local = tuple(part.local.dims[0] for part in parts)  # type: ignore[union-attr]
            out = Outer(tuple(part.out_sel[0] for part, one in zip(parts, self._integers, strict=True) if not one))
            if self.is_advanced:
                within = Outer(local).index
            else:
                within = tuple(
                    pick.start if one and isinstance(pick, slice) else pick
                    for pick, one in zip(local, self._integers, strict=True)
                )
            coords = tuple(part.coords[0] for part in parts)
            yield ChunkProjection(coords, within, out.index, all(part.covers for part in parts))


class BasicIndexer(OrthogonalIndexer):
    """The chunks that integers and slices touch, in ascending C order: an iterable of `ChunkProjection`."""

    def _request(self, items: tuple[object, ...], shape: tuple[int, ...]) -> Request:
        for item in items:
            if not isinstance(item, slice) and not is_integer(item):
                raise ArrayIndexError(f"basic indexing takes integers and slices; got {type(item)!r}")
        return basic(items, shape)


class CoordinateIndexer:
    """The chunks of the points of a coordinate selection, in ascending C order: an iterable of `ChunkProjection`.

    The result is flat: `shape` is ``(points,)``, `sel_shape` is the shape for the user.
    """

    drop_axes: tuple[int, ...] = ()

    def __init__(self, selection: object, shape: Sequence[int], chunk_grid: ChunkGrid | GridOfArray) -> None:
        """Of an array of `shape`, cut by `chunk_grid`. Raises `ArrayIndexError` for what is no such selection."""
        lengths = tuple(shape)
        chosen = self._request(selection, lengths)
        assert isinstance(chosen.selection, Points)
        self.sel_shape: tuple[int, ...] = chosen.shape or (1,)
        self.selection = chosen.selection.coords
        self.shape: tuple[int, ...] = chosen.selection.shape
        self._parts = plan(chosen.selection, chunk_grid.axes(lengths))

    def _request(self, selection: object, shape: tuple[int, ...]) -> Request:
        return coordinate(selection, shape)

    def __iter__(self) -> Iterator[ChunkProjection]:
        for part in self._parts:
            yield ChunkProjection(part.coords, part.local.index, part.out_sel, is_complete_chunk=False)


class MaskIndexer(CoordinateIndexer):
    """The chunks of the true elements of a mask."""

    def _request(self, selection: object, shape: tuple[int, ...]) -> Request:
        return mask(selection, shape)


def _of_one_axis(dim: slice | IndexArray, axis: Axis) -> list[Part]:
    return list(plan(Outer((dim,)), (axis,)))


__all__ = [
    "AsyncOIndex",
    "AsyncVIndex",
    "BasicIndexer",
    "BasicSelection",
    "BasicSelector",
    "BlockIndex",
    "BoundsCheckError",
    "ChunkProjection",
    "CoordinateIndexer",
    "CoordinateSelection",
    "Fields",
    "Indexer",
    "MaskIndexer",
    "MaskSelection",
    "NegativeStepError",
    "OIndex",
    "OrthogonalIndexer",
    "OrthogonalSelection",
    "Selection",
    "Selector",
    "SelectorTuple",
    "VIndex",
    "VindexInvalidSelectionError",
    "ensure_tuple",
    "is_bool",
    "is_integer",
    "is_slice",
]
