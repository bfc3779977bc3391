"""Append to an array, from one process or from many machines.

Where the store's lock excludes all other writers (`Lock`), an append holds the lock of the array's shape: the append stores
the data, then the shape. (In a session of Icechunk, which refuses chunks beyond the shape, and of which others see nothing
before it is committed, the shape is first.)

Where the store has no such lock, but updates by compare-and-swap (`ConditionalSet`, `Update`), an append reserves its
region in the array's document first, stores the data there, and publishes the region (`tessarr.metadata.reservations` has
the rules). So appends from many machines run concurrently, no append writes into the region of another one, and readers see
complete data only.

In other stores (a file system behind fsspec) nothing excludes another process, which would write into the same rows. An append
is refused there, unless the setting ``append.one_process`` says that no other process appends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tessarr.core import open_transactions
from tessarr.core.array_parts.append_reserved import (
    EXPIRE_S,
    Appended,
    HolePolicy,
    OnHole,
    append_reserved_steps,
)
from tessarr.core.array_parts.region_io import (
    delete_outside_steps,
    fill_beyond_steps,
    fit_elements,
    hold_shape_lock_steps,
    note_append,
    note_end,
    rows_from,
    with_length,
    with_shape,
    write_call,
)
from tessarr.core.array_parts.reservation_io import refuse_format_1
from tessarr.core.array_parts.resize import change_shape_steps, must_reserve
from tessarr.core.asynchronous import clock
from tessarr.core.stored import read_nodes
from tessarr.engine.bound import BoundArray, bind
from tessarr.errors import ConflictError, StaleConsolidatedError, StoreError, UnsupportedOperationError
from tessarr.metadata import reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.settings import config
from tessarr.stores.functions import notices_writes
from tessarr.stores.protocols import Lock
from tessarr.types import AnyArray, Shape

if TYPE_CHECKING:
    from tessarr.core.array import Array


async def append_steps(
    array: Array, data: npt.ArrayLike, axis: int, on_hole: OnHole = "wait", expire_s: float = EXPIRE_S
) -> Shape:
    """Add `data` after the last element of `axis`. Returns the new shape.

    `data`: on all other axes of the array's lengths. The data is stored before the shape: an append that fails, or is
    cancelled, leaves the array as it was. Concurrent appends all survive, in any thread, process or machine, where the
    store's locks reach all writers or its updates use compare-and-swap. In such a store the returned shape ends with
    `data`; other appends may have added rows after `data`.

    A `DurabilityError` with a note, and a `StaleConsolidatedError`, mean that `data` is in the array.

    `on_hole` is the policy for an earlier append on another machine that does not end: ``"wait"`` for that append (after
    `expire_s` seconds with a warning); ``"void"``: after `expire_s` seconds fill its region with fill value and continue;
    ``"error"``: raise `ConflictError` then, or `PendingAppendError` when `data` is stored already.

    Raises `ValueError` when the lengths differ, `ReadOnlyError`, `ConflictError` when a writer that ignores reservations
    changed the array meanwhile, `UnsupportedOperationError` where appends cannot be made safe (Zarr v1 in
    object storage, stores without locks and conditional writes).
    """
    shape, late = await publish_steps(array, data, axis, check_append(array, on_hole, expire_s))
    if late is not None:
        raise late
    return shape


async def publish_steps(array: Array, data: npt.ArrayLike, axis: int, holes: HolePolicy) -> Appended:
    """Append as `append_steps` does, and return the error of a step that comes after `data` is in the array."""
    if must_reserve(array):
        return await append_reserved_steps(array, data, axis, holes)
    return await hold_shape_lock_steps(array, _append_locked_steps(array, data, axis, holes))


def check_append(array: Array, on_hole: OnHole, expire_s: float) -> HolePolicy:
    """Raise the errors of `append_steps` that need no data; return the policy for earlier appends."""
    array._require_writable()
    if on_hole not in ("wait", "void", "error"):
        raise ValueError(f"on_hole must be 'wait', 'void' or 'error', not {on_hole!r}")
    given: object = expire_s
    if not isinstance(given, int | float | np.number) or not given >= 0:  # a NaN is never reached
        raise ValueError(f"expire must be a number of seconds, at least 0, not {expire_s!r}")
    _require_exclusion(array)
    if must_reserve(array):
        refuse_format_1(array, "appends to", "resize and write the new rows from one process")
    return HolePolicy(on_hole, expire_s)


def _require_exclusion(array: Array) -> None:
    """Raise `UnsupportedOperationError` where another process could append to the same rows, and nothing shows it."""
    excluded = must_reserve(array) or isinstance(array._store, Lock) or config.get("append.one_process")
    if excluded or (array._keeps_versions and notices_writes(array._store)):  # the commit detects another append
        return
    raise UnsupportedOperationError(
        "appends to this store are not safe: it has neither locks that reach all writers nor conditional writes",
        store=array._store.url,
        path=array.name,
        hint="Where one process at a time appends, say so: tessarr.config.set({'append.one_process': True}). "
        "A store of your own: define lock(key), or version(key) and set_if(key, value, version)",
    )


def _refuse_in_transaction(array: Array) -> None:
    """Raise `ConflictError` where an append of another process is pending, which a transaction would not see the end of."""
    pending = reservations.parse_member(array._metadata.pending, array.shape)
    if open_transactions.is_overlay(array._store) and (pending.reserved or pending.closed):
        raise ConflictError(
            "an append or a resize of the array has not ended",
            store=array._store.url,
            path=array.name,
            hint="Run the transaction again when it has ended",
        )


async def _append_locked_steps(array: Array, data: npt.ArrayLike, axis: int, holes: HolePolicy) -> Appended:
    """Append while the lock of the shape is held."""
    await array._require_current_steps()
    await array._refresh_steps()
    if array._metadata.pending is not None:  # of a store where appends reserve regions, or copied from one
        _refuse_in_transaction(array)
        return await append_reserved_steps(array, data, axis, holes)
    values, axis = fit_elements(array, data, axis, array.shape, array.dtype)
    state, old_shape, start = array._state, array.shape, array.shape[axis]
    new_shape = with_length(old_shape, axis, start + values.shape[axis])
    metadata = with_shape(array._metadata, new_shape)
    if values.size and array._store.refuses_chunks_beyond_shape:
        await _store_after_shape_steps(array, metadata, axis, values)
        return new_shape, None
    if values.size:
        bound = bind(array._store, array.path, metadata, array._options, chunks=array._chunk_store())
        note_append(array, axis, start, new_shape[axis])
        await write_call(array, bound, rows_from(new_shape, axis, start), values)
        await array._require_current_steps()  # a migration that has ended meanwhile does not see the new shape
    late: StoreError | None = None
    try:
        await change_shape_steps(array, metadata, old_shape)
    except ConflictError:
        raise
    except StoreError as error:
        if not await _is_published_steps(array, new_shape, error):
            raise
        late = error
    note_end(array)
    await array._adopt_steps(metadata, state)
    return new_shape, late


async def _store_after_shape_steps(array: Array, metadata: ArrayMetadata, axis: int, values: AnyArray) -> None:
    """Store the shape of `metadata`, then the new rows. After an error both are undone, or a note says so."""
    old, state = array._metadata, array._state
    await change_shape_steps(array, metadata, old.shape)
    bound = bind(array._store, array.path, metadata, array._options, chunks=array._chunk_store())
    try:
        await write_call(array, bound, rows_from(metadata.shape, axis, old.shape[axis]), values)
    except Exception as error:
        try:
            await _undo_steps(array, old, bound, axis)
        except StoreError as second:
            error.add_note(
                f"the array has the shape {metadata.shape} now, since it could not be changed back: {second}"
            )
        raise
    except BaseException:  # cancelled or interrupted: this task can await nothing more
        attempt = clock.Attempt()
        attempt.begin()
        clock.CLOCK.run_detached(_undo_steps(array, old, bound, axis), attempt)
        raise
    await array._adopt_steps(metadata, state)


async def _undo_steps(array: Array, old: ArrayMetadata, grown: BoundArray, axis: int) -> None:
    """Remove the rows that `grown` has beyond the shape of `old`, and store that shape again."""
    shape = grown.metadata.shape
    await fill_beyond_steps(array, old, axis, old.shape[axis], shape[axis])
    await change_shape_steps(array, old, shape)
    bound = bind(array._store, array.path, old, array._options, chunks=array._chunk_store())
    await delete_outside_steps(bound, tuple(along.nchunks for along in grown.axes))


async def _is_published_steps(array: Array, new_shape: Shape, error: StoreError) -> bool:
    """Return whether `new_shape` was stored before `error`, in which a note says so."""
    if open_transactions.is_overlay(array._store):
        return False  # the transaction stores nothing
    if isinstance(error, StaleConsolidatedError):
        return True
    try:
        number = array._metadata.zarr_format
        (stored,) = await read_nodes.read_nodes_steps(array._store, [array.path], number, ArrayMetadata)
    except StoreError as second:
        error.add_note(f"whether the rows are in the array is unknown, because its shape could not be read: {second}")
        return False
    published = array.shape != new_shape and isinstance(stored, ArrayMetadata) and stored.shape == new_shape
    if published:
        error.add_note("the rows are in the array: do not append them again")
    return published
