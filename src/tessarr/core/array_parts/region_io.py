"""Bind an array for rows of a region; fill rows again that were stored late, or that no shape came to cover; delete chunks.

A process may be stopped between two requests of an append until another writer has filled its region with fill value (void).
It notices when it looks at the reservations again, and what it has stored meanwhile is in the array, although its error says
that it is not. A version of the value that it read before prevents that, but not where the version is a hash, which fill value
that is written over fill value does not change, nor where others wait for a shorter time than passes between two looks.

In a local directory an append notes its region in the lock file of the shape, and a resize the chunks that it will delete. If
its process ends, or it fails, before it has done all, who changes the shape next finds the note, and fills the rows, or deletes
the chunks, that are beyond the shape: an array that then grows shows nothing of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from tessarr.core.array_parts.reservation_io import Document, metadata_of, read_reservations_steps
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call, Steps, run_steps, store_call
from tessarr.core.stored import read_nodes
from tessarr.core.stored.shape_locks import hold_shape_locks_steps, shape_key, shape_note
from tessarr.engine.bound import BoundArray, RuntimeOptions, bind
from tessarr.errors import BaseZarrError, ConflictError
from tessarr.indexing.selection import Outer
from tessarr.metadata import reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.reservations import Region
from tessarr.stores.base import Store
from tessarr.stores.local.trouble import trouble
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import Delete, Remote
from tessarr.stores.wrappers.creating import CreatingStore, Tenure
from tessarr.types import AnyArray, AnyDType, Coords, Shape

if TYPE_CHECKING:
    from tessarr.core.array import Array

T = TypeVar("T")

_FEW = 10_000
"""Up to so many chunk keys are deleted by name; for more the stored keys are listed instead."""


def with_length(shape: Shape, axis: int, length: int) -> Shape:
    """Return `shape` with another length of `axis`."""
    return tuple(length if i == axis else n for i, n in enumerate(shape))


def rows_from(shape: Shape, axis: int, start: int) -> Outer:
    """Select all elements of `shape` from `start` on along `axis`."""
    return Outer(tuple(slice(start if i == axis else 0, n, 1) for i, n in enumerate(shape)))


def with_shape(metadata: ArrayMetadata, shape: Shape) -> ArrayMetadata:
    """Return `metadata` with another shape; a grid that cannot cover the shape is extended (`covering`)."""
    grid = metadata.chunk_grid
    grown = getattr(grid, "covering", None)
    return metadata.with_(shape=shape, chunk_grid=grown(shape) if grown else grid)


def fit_elements(array: Array, data: npt.ArrayLike, axis: int, shape: Shape, dtype: AnyDType) -> tuple[AnyArray, int]:
    """Convert `data` to elements that fit after `shape`. Returns the elements, and `axis` counted from the front.

    Raises `BaseZarrError` when the number of axes or another length than that of `axis` differs.
    """
    values = array._as_elements(data, dtype)
    if not -len(shape) <= axis < len(shape):
        raise BaseZarrError("no such axis", path=array.name, expected=f"an axis below {len(shape)}", got=axis)
    axis %= len(shape)
    if values.ndim != len(shape) or with_length(shape, axis, 0) != with_length(values.shape, axis, 0):
        raise BaseZarrError(
            "the data does not fit the array on every other axis",
            path=array.name,
            expected=f"shape {shape} except along axis {axis}",
            got=values.shape,
        )
    return values, axis


def bind_region(
    array: Array, store: Store, metadata: ArrayMetadata, axis: int, region: Region, options: RuntimeOptions
) -> tuple[BoundArray, Outer]:
    """Bind the array for `region`. Returns it, and the selection of the region.

    The shape ends with the region's last chunk: a chunk shared with the next region must not count as covered, or a write would
    replace the chunk instead of merging into it.
    """
    shape = with_length(metadata.shape, axis, region.stop)
    last = metadata.chunk_grid.axes(shape)[axis]
    index = last.find(region.stop - 1)
    whole = with_length(shape, axis, max(region.stop, last.start(index) + last.size(index)))
    bound = bind(store, array.path, metadata.with_(shape=whole), options)
    return bound, rows_from(shape, axis, region.start)


def write_call(array: Array, bound: BoundArray, selection: Outer, values: AnyArray) -> Call:
    engine = array._engine
    return Call(
        lambda: engine.write(bound, selection, values),
        lambda: engine.write_async(bound, selection, values),
        isinstance(bound.store, Remote),
    )


async def hold_shape_lock_steps(array: Array, steps: Steps[T]) -> T:
    """Run `steps` while the lock of the array's shape is held, after what is left beyond the shape was filled or deleted."""
    try:
        return await hold_shape_locks_steps(array._store, [array.path], _after_fill_steps(array, steps))
    finally:
        steps.close()  # which has not started, if the lock could not be taken


async def _after_fill_steps(array: Array, steps: Steps[T]) -> T:
    await _end_noted_steps(array)
    return await steps


def note_append(array: Array, axis: int, start: int, stop: int) -> None:
    """Note, in the lock file of the shape, which the caller holds, that an append is about to store rows before the shape."""
    _write_note(array, {"append": [axis, start, stop]})


def note_shrink(array: Array, grid: Shape) -> None:
    """Note that a resize is about to store a smaller shape, and then to delete chunks of `grid`, the numbers of chunks."""
    _write_note(array, {"shrink": grid})


def _write_note(array: Array, content: dict[str, Sequence[int]]) -> None:
    note = shape_note(array._store, array.path)
    if note is not None:
        with _noting(array):
            note.write(json.dumps(content).encode())


def note_end(array: Array) -> None:
    """Note that what was noted is done. Raises nothing: it is done, and who finds the note has nothing left to do."""
    note = shape_note(array._store, array.path)
    if note is not None:
        with suppress(OSError):
            note.clear()


@contextmanager
def _noting(array: Array) -> Iterator[None]:
    """Raise `StoreError` for errors of the operating system at the lock file of the shape."""
    try:
        yield
    except OSError as error:
        raise trouble("note what is running beside", array._store.url, shape_key(array.path), error) from error


async def _end_noted_steps(array: Array) -> None:
    """Fill the rows beyond the shape of an append that has not stored the shape; delete the chunks that a resize has not."""
    note = shape_note(array._store, array.path)
    if note is None:
        return
    with _noting(array):
        left = note.read()
    if not left:
        return
    await array._require_current_steps()  # the shape in a newer description may be another one
    kind, numbers = _parsed(left)
    if kind:
        number = array._metadata.zarr_format
        (stored,) = await read_nodes.read_nodes_steps(array._store, [array.path], number, ArrayMetadata)
        if not isinstance(stored, ArrayMetadata):
            return
        if kind == "append" and len(numbers) == 3:
            await fill_beyond_steps(array, stored, *numbers)
        if kind == "shrink" and len(numbers) == len(stored.shape):
            bound = bind(array._store, array.path, stored, array._options, chunks=array._chunk_store())
            await delete_outside_steps(bound, tuple(numbers))
    with _noting(array):
        note.clear()


async def fill_beyond_steps(array: Array, stored: ArrayMetadata, axis: int, start: int, stop: int) -> None:
    """Fill the elements from `start` to `stop` along `axis` that are beyond the shape of `stored`."""
    if axis >= len(stored.shape) or stop <= (start := max(start, stored.shape[axis])):
        return
    metadata = with_shape(stored, with_length(stored.shape, axis, stop))
    options = array._options._replace(write_empty_chunks=False)
    bound = bind(array._store, array.path, metadata, options, chunks=array._chunk_store())
    selection = rows_from(metadata.shape, axis, start)
    await write_call(array, bound, selection, np.broadcast_to(bound.fill, selection.shape))


def _parsed(note: bytes) -> tuple[str, Sequence[int]]:
    """Return what a note says that was begun, and its numbers: two empty values for another content."""
    try:
        ((kind, numbers),) = json.loads(note).items()
        is_valid = all(type(number) is int and number >= 0 for number in numbers)
    except (ValueError, TypeError, AttributeError):
        return "", ()
    return (kind, numbers) if is_valid else ("", ())


async def delete_outside_steps(bound: BoundArray, old_grid: Shape) -> None:
    """Delete the chunks of `old_grid` (numbers of chunks along the axes) that lie wholly outside the array, and no others."""
    new_grid = tuple(axis.nchunks for axis in bound.axes)
    store = bound.store
    if not isinstance(store, Delete):
        return
    if math.prod(old_grid) - math.prod(map(min, new_grid, old_grid)) <= _FEW:
        gone = [bound.key(coords) for coords in _outside(old_grid, new_grid)]
        await store_call(store, "delete_many", gone)
        return
    prefix = prefix_of(bound.path)
    encoding = bound.metadata.chunk_key_encoding
    listed = await store_call(store, "list_prefix", prefix)
    gone = []
    for key in listed:
        coords = encoding.decode(key[len(prefix) :], len(new_grid))
        if coords is not None and any(i >= n for i, n in zip(coords, new_grid, strict=True)):
            gone.append(key)
    await store_call(store, "delete_many", gone)


def _outside(old_grid: Shape, new_grid: Shape) -> list[Coords]:
    """List the chunks of the old grid that the new grid lacks, in time proportional to their number."""
    found: list[Coords] = []
    kept: list[range] = []
    for axis, (old, new) in enumerate(zip(old_grid, new_grid, strict=True)):
        gone = range(min(new, old), old)
        rest = [range(n) for n in old_grid[axis + 1 :]]
        ranges = [*kept, gone, *rest]
        if all(ranges):  # `product` copies each range, also those of a product that is empty
            found.extend(product(*ranges))
        kept.append(range(min(new, old)))
    return found


async def fill_late_steps(array: Array, axis: int, region: Region, values: AnyArray) -> None:
    """Put fill value in the place of each of `values` that is found in `region`, which another writer has filled.

    Elements with other values were written to the void rows since, and stay. Nothing is changed
    once a resize has removed the rows: those that are there then are others.
    """
    document = await read_reservations_steps(array)
    if not _is_void(document, region):
        return
    metadata = metadata_of(array, document)
    options = array._options._replace(write_empty_chunks=True)
    bound, selection = bind_region(array, array._store, metadata, axis, region, options)
    engine, found = array._engine, np.empty_like(values)
    await Call(
        lambda: engine.read(bound, selection, found),
        lambda: engine.read_async(bound, selection, found),
        isinstance(array._store, Remote),
    )
    late = _equal(found, values)
    if not late.any():
        return
    found[late] = filled(metadata, axis, region)[late]

    def look() -> None:
        if not _is_void(run_steps(read_reservations_steps(array)), region):
            raise ConflictError("the rows are not void any more", store=array._store.url, path=array.name)

    store = CreatingStore(array._store, Tenure(look, clock.CLOCK.now, -math.inf))
    bound, selection = bind_region(array, store, metadata, axis, region, options)
    with suppress(ConflictError):
        await write_call(array, bound, selection, found)


def filled(metadata: ArrayMetadata, axis: int, region: Region) -> AnyArray:
    """Return rows of fill value for a region, which share the memory of one element."""
    fill = metadata.data_type.default_fill() if metadata.fill_value is None else metadata.fill_value
    return np.broadcast_to(fill, with_length(metadata.shape, axis, region.stop - region.start))


def _is_void(document: Document, region: Region) -> bool:
    pending = reservations.parse(document)
    return pending is not None and pending.was_voided(region.owner)


def _equal(found: AnyArray, values: AnyArray) -> AnyArray:
    """Compare elements, bit by bit where they have bits."""
    if found.dtype.hasobject or not found.dtype.isbuiltin:
        return np.asarray(found == values)
    bits = [np.ascontiguousarray(one).view("u1").reshape(*one.shape, one.dtype.itemsize) for one in (found, values)]
    return np.asarray((bits[0] == bits[1]).all(axis=-1))
