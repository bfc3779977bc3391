"""Bind an array for rows of a region, and fill rows again that were stored late.

A process may be stopped between two requests of an append until another writer has filled its region with fill value (void).
It notices when it looks at the reservations again, and what it has stored meanwhile is in the array, although its error says
that it is not. A version of the value that it read before prevents that, but not where the version is a hash, which fill value
that is written over fill value does not change, nor where others wait for a shorter time than passes between two looks.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from tessarr.core.array_parts.reservation_io import Document, metadata_of, read_reservations_steps
from tessarr.core.array_parts.resize import write_call
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call, run_steps
from tessarr.engine.bound import BoundArray, RuntimeOptions, bind
from tessarr.errors import ConflictError
from tessarr.indexing.selection import Outer
from tessarr.metadata import reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.reservations import Region
from tessarr.stores.base import Store
from tessarr.stores.protocols import Remote
from tessarr.stores.wrappers.creating import CreatingStore, Tenure
from tessarr.types import AnyArray, Shape

if TYPE_CHECKING:
    from tessarr.core.array import Array


def with_length(shape: Shape, axis: int, length: int) -> Shape:
    """Return `shape` with another length of `axis`."""
    return tuple(length if i == axis else n for i, n in enumerate(shape))


def rows_from(shape: Shape, axis: int, start: int) -> Outer:
    """Select all elements of `shape` from `start` on along `axis`."""
    return Outer(tuple(slice(start if i == axis else 0, n, 1) for i, n in enumerate(shape)))


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
    found[late] = metadata.data_type.default_fill() if metadata.fill_value is None else metadata.fill_value

    def look() -> None:
        if not _is_void(run_steps(read_reservations_steps(array)), region):
            raise ConflictError("the rows are not void any more", store=array._store.url, path=array.name)

    store = CreatingStore(array._store, Tenure(look, clock.CLOCK.now, -math.inf))
    bound, selection = bind_region(array, store, metadata, axis, region, options)
    with suppress(ConflictError):
        await write_call(array, bound, selection, found)


def _is_void(document: Document, region: Region) -> bool:
    pending = reservations.parse(document)
    return pending is not None and pending.was_voided(region.owner)


def _equal(found: AnyArray, values: AnyArray) -> AnyArray:
    """Compare elements, bit by bit where they have bits."""
    if found.dtype.hasobject or not found.dtype.isbuiltin:
        return np.asarray(found == values)
    bits = [np.ascontiguousarray(one).view("u1").reshape(*one.shape, one.dtype.itemsize) for one in (found, values)]
    return np.asarray((bits[0] == bits[1]).all(axis=-1))
