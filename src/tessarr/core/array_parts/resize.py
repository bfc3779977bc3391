"""Changing the shape of an array: resize and append.

Growing stores data first and the shape last; shrinking stores the shape first and deletes last. A crash in between leaves
an array that reads as before or as after, never one whose shape promises what was not written.

Source: Zarr v3.1 core, "Resizing" (non-normative); decisions V3-RESIZE-01…06.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tessarr.common.warn import warn
from tessarr.core import metadata_io
from tessarr.core.array_parts.selection_methods import as_elements
from tessarr.core.asynchronous.sans_io import Call, Steps, ask, held
from tessarr.engine.bound import BoundArray, bind
from tessarr.errors import BaseZarrError, ZarrUserWarning
from tessarr.indexing.selection import Outer
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.path import prefix_of
from tessarr.types import Coords, Shape

if TYPE_CHECKING:
    from tessarr.core.array import Array

_FEW = 10_000
"""Up to so many chunk keys are deleted by name; for more the stored keys are listed instead."""


def resizing(array: Array, new_shape: Shape, delete_outside_chunks: bool, clear: bool) -> Steps[None]:
    """Change the shape of `array` in place.

    Growing writes metadata only; the new area reads as fill value. Shrinking deletes the chunks that are now wholly
    outside (`delete_outside_chunks`; otherwise they stay, come back if the array grows again, and a warning says so).
    Chunks that are partly outside keep what they hold beyond the edge, unless `clear` is given: then a shrink fills
    that part with fill value, and a grow clears whatever is stored in the area gained.

    Raises `ValueError` for another number of axes or a negative length, `ReadOnlyError`.
    """
    array._require_writable()
    old_shape = array.shape
    new_shape = tuple(_length(n) for n in new_shape)
    if len(new_shape) != len(old_shape):
        raise BaseZarrError(
            "an array keeps its number of dimensions",
            path=array.name,
            expected=f"{len(old_shape)} lengths",
            got=new_shape,
        )
    state = array._state
    metadata = _with_shape(array._metadata, new_shape)
    old_bound = array._bound
    if clear:
        yield from _fill_edges(array, tuple(map(min, old_shape, new_shape)))
    yield from metadata_io.changing_document(array.store, array.path, metadata, _shape_members(metadata))
    yield from array._becoming(metadata, state)
    if any(new < old for new, old in zip(new_shape, old_shape, strict=True)):
        if delete_outside_chunks:
            yield from _delete_outside(array, old_bound)
        else:
            message = f"chunks of /{array.path} outside the new shape are kept; growing it brings their data back"
            warn(message, ZarrUserWarning)
    if clear and any(new > old for new, old in zip(new_shape, old_shape, strict=True)):
        yield from _clear_gained(array, old_shape)


def _length(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise BaseZarrError("a length must be a non-negative integer", got=repr(value))
    return int(value)


def _with_shape(metadata: ArrayMetadata, shape: Shape) -> ArrayMetadata:
    """`metadata` for another shape; a grid that cannot cover it grows as the grid kind does."""
    grid = metadata.chunk_grid
    grown = getattr(grid, "covering", None)
    return metadata.with_(shape=shape, chunk_grid=grown(shape) if grown else grid)


def _shape_members(metadata: ArrayMetadata) -> dict[str, Any]:
    members: dict[str, Any] = {"shape": list(metadata.shape)}
    if metadata.zarr_format != 3:  # old documents may hold a bare NaN here, which is never written
        fill = metadata.fill_value
        members["fill_value"] = None if fill is None else metadata.data_type.dump_fill(fill, metadata.zarr_format)
    if hasattr(metadata.chunk_grid, "covering"):
        members["chunk_grid"] = metadata.chunk_grid.to_json()
    return members


def _delete_outside(array: Array, old: BoundArray) -> Steps[None]:
    """Delete exactly the chunks that lie wholly outside the new shape."""
    new_grid = tuple(axis.nchunks for axis in array._bound.axes)
    old_grid = tuple(axis.nchunks for axis in old.axes)
    store = old.store
    if not store.supports_deletes:
        return
    if prod(old_grid) - prod(map(min, new_grid, old_grid)) <= _FEW:
        gone = [old.key(coords) for coords in _outside(old_grid, new_grid)]
        yield [ask(store, "delete_many", gone)]
        return
    prefix = prefix_of(array.path)
    encoding = array._metadata.chunk_key_encoding
    (listed,) = yield [ask(store, "list_prefix", prefix)]
    gone = []
    for key in listed:
        coords = encoding.decode(key[len(prefix) :], array.ndim)
        if coords is not None and any(i >= n for i, n in zip(coords, new_grid, strict=True)):
            gone.append(key)
    yield [ask(store, "delete_many", gone)]


def _outside(old_grid: Shape, new_grid: Shape) -> list[Coords]:
    """Chunks of the old grid that the new one lacks, in time proportional to their number."""
    found: list[Coords] = []
    kept: list[range] = []
    for axis, (old, new) in enumerate(zip(old_grid, new_grid, strict=True)):
        gone = range(min(new, old), old)
        rest = [range(n) for n in old_grid[axis + 1 :]]
        found.extend(_product([*kept, gone, *rest]))
        kept.append(range(min(new, old)))
    return found


def _product(ranges: list[range]) -> list[Coords]:
    from itertools import product

    return list(product(*ranges))


def _fill_edges(array: Array, kept: Shape) -> Steps[None]:
    """Fill, in the chunks that straddle the new edge, the part that is about to fall outside."""
    bound = array._bound
    for axis, (length, keep) in enumerate(zip(array.shape, kept, strict=True)):
        if keep == length or keep == 0:
            continue
        chunk = bound.axes[axis].find(keep - 1)
        end = min(length, bound.axes[axis].start(chunk) + bound.axes[axis].size(chunk))
        yield from _fill_slab(array, bound, axis, keep, end)


def _clear_gained(array: Array, old_shape: Shape) -> Steps[None]:
    for axis, (new, old) in enumerate(zip(array.shape, old_shape, strict=True)):
        if new > old:
            yield from _fill_slab(array, array._bound, axis, old, new)


def _fill_slab(array: Array, bound: BoundArray, axis: int, start: int, stop: int) -> Steps[None]:
    if start >= stop or 0 in bound.shape:
        return
    dims = [slice(0, n, 1) for n in bound.shape]
    dims[axis] = slice(start, stop, 1)
    selection = Outer(tuple(dims))
    yield [_writing(array, bound, selection, np.broadcast_to(bound.fill, selection.shape))]


def _writing(array: Array, bound: BoundArray, selection: Outer, values: npt.NDArray[Any]) -> Call:
    engine = array._engine
    return Call(
        lambda: engine.write(bound, selection, values),
        lambda: engine.write_async(bound, selection, values),
        bound.store.is_remote,
    )


def appending(array: Array, data: npt.ArrayLike, axis: int) -> Steps[Shape]:
    """Add `data` after the last element of `axis`; its other lengths must be the array's. Returns the new shape.

    The data is stored before the shape: an append that fails, or is cancelled, leaves the array as it was. Concurrent
    appends wait for each other (a lock of the store; across machines only where the store's locks reach) and all survive.

    Raises `ValueError` when the lengths differ, `ReadOnlyError`.
    """
    array._require_writable()
    lock = array.store.lock(prefix_of(array.path) + "append")
    yield [held(lock, array.store)]
    try:
        return (yield from _appending(array, data, axis))
    finally:
        lock.__exit__(None, None, None)


def _appending(array: Array, data: npt.ArrayLike, axis: int) -> Steps[Shape]:
    yield from array._refreshing()
    values = as_elements(data, array.dtype)
    if not -array.ndim <= axis < array.ndim:
        raise BaseZarrError("no such axis", path=array.name, expected=f"an axis below {array.ndim}", got=axis)
    axis %= array.ndim
    others = [n for i, n in enumerate(array.shape) if i != axis]
    if values.ndim != array.ndim or others != [n for i, n in enumerate(values.shape) if i != axis]:
        raise BaseZarrError(
            "the data does not fit the array on every other axis",
            path=array.name,
            expected=f"shape {array.shape} except along axis {axis}",
            got=values.shape,
        )
    state, start = array._state, array.shape[axis]
    new_shape = tuple(n + values.shape[axis] if i == axis else n for i, n in enumerate(array.shape))
    metadata = _with_shape(array._metadata, new_shape)
    bound = bind(array.store, array.path, metadata, array._options)
    dims = [slice(0, n, 1) for n in new_shape]
    dims[axis] = slice(start, new_shape[axis], 1)
    if values.size:
        yield [_writing(array, bound, Outer(tuple(dims)), values)]
    yield from metadata_io.changing_document(array.store, array.path, metadata, _shape_members(metadata))
    yield from array._becoming(metadata, state)
    return new_shape
