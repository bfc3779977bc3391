"""Select by chunk: integers and slices count chunks along each axis instead of elements."""

from __future__ import annotations

from collections.abc import Sequence

from tessarr.errors import ArrayIndexError, BoundsCheckError
from tessarr.grids.base import Axis
from tessarr.indexing.base import Request, integer, is_integer
from tessarr.indexing.basic import expand_basic, refusal
from tessarr.indexing.selection import Outer
from tessarr.types import Coords


def block(selection: object, axes: Sequence[Axis]) -> Request:
    """Select whole chunks by integers and slices of step 1, per axis; at most one Ellipsis.

    No axis is dropped: an integer selects the elements of one chunk. Negative numbers count from the last chunk. Of
    chunks at the far edge, only elements within the array are selected.

    Raises `BoundsCheckError` when an integer, or the start of a slice, lies outside the grid; `ArrayIndexError` for
    anything else.
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    dims = []
    for i, (item, axis) in enumerate(zip(expand_basic(items, len(axes)), axes, strict=True)):
        count = axis.nchunks
        if is_integer(item):
            start = integer(item, count, i)
            stop = start + 1
        elif isinstance(item, slice):
            if item.step not in (None, 1):
                raise ArrayIndexError("slices of chunks have step 1", got=item)
            if is_integer(item.start) and not -count <= item.start < max(count, 1):
                raise BoundsCheckError(f"chunk {item.start} is out of bounds for axis {i} with {count} chunks")
            start, stop, _ = item.indices(count)
        else:
            raise refusal(item)
        dims.append(_elements(axis, start, stop))
    return _whole(dims)


def chunk(coords: Coords, axes: Sequence[Axis]) -> Request:
    """Select the elements of the one chunk at `coords`; grid indices never wrap around.

    Raises `BoundsCheckError` when there is no such chunk.
    """
    if len(coords) != len(axes):
        raise BoundsCheckError("a grid index has one number per axis", expected=len(axes), got=tuple(coords))
    dims = []
    for i, (at, axis) in enumerate(zip(coords, axes, strict=True)):
        if not is_integer(at) or not 0 <= at < axis.nchunks:
            raise BoundsCheckError(f"chunk {at!r} is out of bounds for axis {i} with {axis.nchunks} chunks")
        dims.append(_elements(axis, int(at), int(at) + 1))
    return _whole(dims)


def _elements(axis: Axis, start: int, stop: int) -> slice:
    """Return the elements of chunks `start` to `stop` that lie within the array."""
    if stop <= start:
        return slice(0, 0, 1)
    return slice(axis.start(start), min(axis.start(stop - 1) + axis.size(stop - 1), axis.length), 1)


def _whole(dims: list[slice]) -> Request:
    """Make a request whose result has the selection's shape."""
    selection = Outer(tuple(dims))
    return Request(selection, selection.shape)
