"""Change the shape of an array: resize, and the functions that append shares with resize.

Growing stores data first and the shape last; shrinking stores the shape first and deletes last. A crash in between leaves
an array that reads as before or as after, never one whose shape covers data that was not written. In a local directory the next
change of the shape deletes what a shrink has left (`region_io`).

Resize and append hold one lock of the array's shape (`hold_shape_lock_steps`), and compare the stored shape with the shape
that they read at first in the same update that replaces the shape.

Source: Zarr v3.1 core, "Resizing" (non-normative); decisions V3-RESIZE-01…06.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tessarr.common.warn import warn
from tessarr.core.array_parts.region_io import (
    delete_outside_steps,
    hold_shape_lock_steps,
    note_end,
    note_shrink,
    with_shape,
    write_call,
)
from tessarr.core.array_parts.reservation_io import (
    BESIDE,
    Document,
    change_reservations_steps,
    read_reservations_steps,
    refuse_format_1,
)
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Steps, run_steps, store_call
from tessarr.core.stored import metadata_io, read_nodes
from tessarr.core.stored.shape_locks import shape_note
from tessarr.core.stored.walk import read_entries_steps
from tessarr.engine.bound import BoundArray, bind
from tessarr.engine.pool import for_each
from tessarr.errors import (
    BaseZarrError,
    ConflictError,
    NodeNotFoundError,
    StaleConsolidatedError,
    StaleNodeError,
    StoreError,
    ZarrUserWarning,
)
from tessarr.indexing.selection import Outer
from tessarr.metadata import reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.reservations import Reservations
from tessarr.stores.functions import notices_writes
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import Lock
from tessarr.types import Shape

if TYPE_CHECKING:
    from tessarr.core.array import Array

_LEFT = "Chunks outside the new shape may be left, and would be there again when the array grows: `tessarr repair` removes them"
_WAIT_S = 600.0
"""An append or a resize that has not ended after so many seconds is taken for one whose process died."""


async def resize_steps(array: Array, new_shape: Shape, delete_outside_chunks: bool, clear: bool) -> None:
    """Change the shape of `array` in place.

    Growing writes metadata only; the new area reads as fill value. Shrinking deletes the chunks that are now wholly
    outside (`delete_outside_chunks`; otherwise they stay, come back if the array grows again, and a warning says so).
    Chunks that are partly outside keep their values beyond the edge, unless `clear` is given: then a shrink fills
    that part with fill value, and a grow fills the area gained.

    Raises `ConflictError`, having changed nothing, when the stored shape is not the one that `array` last read: another
    writer appended or resized since then. Raises `ValueError` for another number of axes or a negative length,
    `ReadOnlyError`.
    """
    array._require_writable()
    await hold_shape_lock_steps(array, _resize_locked_steps(array, new_shape, delete_outside_chunks, clear))


async def _resize_locked_steps(array: Array, new_shape: Shape, delete_outside_chunks: bool, clear: bool) -> None:
    old_shape = array.shape
    new_shape = tuple(_length(n) for n in new_shape)
    if len(new_shape) != len(old_shape):
        raise BaseZarrError(
            "the new shape must have the same number of dimensions",
            path=array.name,
            expected=f"{len(old_shape)} lengths",
            got=new_shape,
        )
    await array._require_current_steps()
    state = array._state
    metadata = with_shape(array._metadata, new_shape)
    old_grid = tuple(axis.nchunks for axis in array._bound.axes)
    shrinks = any(new < old for new, old in zip(new_shape, old_shape, strict=True))
    deletes = shrinks and delete_outside_chunks
    reserves = must_reserve(array)
    if deletes and reserves:
        refuse_format_1(
            array, "deletions of chunks outside the new shape of", "keep them (delete_outside_chunks=False)"
        )
    notes = deletes and shape_note(array._store, array.path) is not None
    if clear or notes:  # the next one acts on a note, which must not be of a resize that is refused
        await _compare_stored_steps(array, old_shape)
    if clear:
        await _fill_edges_steps(array, tuple(map(min, old_shape, new_shape)))
    closing = None
    if reserves and (deletes or (array._metadata.zarr_format == 2 and new_shape)):
        closing = (clock.CLOCK.owner(), clock.CLOCK.now())
    if notes:
        note_shrink(array, old_grid)

    def delete() -> Steps[None]:
        new = bind(array._store, array.path, metadata, array._options, chunks=array._chunk_store())
        return delete_outside_steps(new, old_grid)

    stale = await _change_and_close_steps(array, metadata, old_shape, closing, delete if deletes else None)
    await array._adopt_steps(metadata, state)
    if shrinks:
        if delete_outside_chunks:
            bound = array._bound
            await _delete_and_reopen_steps(array, lambda: delete_outside_steps(bound, old_grid), closing)
            note_end(array)
        else:
            message = (
                f"chunks of /{array.path} outside the new shape are kept; their data reappears if the array grows again"
            )
            warn(message, ZarrUserWarning)
    if not deletes:
        await reopen_steps(array, closing)
    if clear and any(new > old for new, old in zip(new_shape, old_shape, strict=True)):
        await _clear_gained_steps(array, old_shape)
    if stale is not None:
        raise stale


async def _change_and_close_steps(
    array: Array,
    metadata: ArrayMetadata,
    old_shape: Shape,
    closing: tuple[str, int] | None,
    delete: Callable[[], Steps[None]] | None = None,
) -> StaleConsolidatedError | None:
    """Call `change_shape_steps`; after an error or an interruption, reopen the array that `closing` closed.

    Where an interrupted change is stored, the steps of `delete`, which are its next ones, are run before.
    Returns the error that is to be raised when the change is complete: the array is closed, and its shape is stored.
    """
    attempt = clock.Attempt()
    try:
        await change_shape_steps(array, metadata, old_shape, closing, attempt)
    except StaleConsolidatedError as error:
        return error
    except BaseException as error:
        attempt.cancelled = True
        if not isinstance(error, Exception):  # cancelled or interrupted: this task can await nothing more
            clock.CLOCK.run_detached(_end_interrupted_steps(array, metadata, closing, delete), attempt)
        elif (was_closed := await _reopen_after_steps(array, closing)) is not False and metadata.shape != old_shape:
            what = "The shape was changed" if was_closed else "Whether the shape was changed is unknown"
            error.add_note(f"{what}. {_LEFT}")
        raise
    return None


async def _end_interrupted_steps(
    array: Array,
    metadata: ArrayMetadata,
    closing: tuple[str, int] | None,
    delete: Callable[[], Steps[None]] | None,
) -> None:
    """Complete an interrupted change of the shape, if it is stored, and reopen the array."""
    if closing is not None and delete is not None:
        document = await read_reservations_steps(array)
        pending = reservations.parse(document)
        if pending is not None and pending.closed == closing and tuple(document["shape"]) == metadata.shape:
            with suppress(StoreError):
                await delete()
    await reopen_steps(array, closing)


async def delete_stray_steps(array: Array, keys: Sequence[str]) -> list[str]:
    """Delete those of the chunks `keys` that lie outside the stored shape, and return them.

    Appends wait meanwhile: what they have stored is outside the shape too, until they publish it. Raises `ConflictError` where
    one is pending that other writers cannot wait for. Where writers share no locks, none is deleted of an array with two
    descriptions: an append may be entered in the one, while the other is closed to appends.
    """
    return await hold_shape_lock_steps(array, _delete_stray_locked_steps(array, keys))


async def _delete_stray_locked_steps(array: Array, keys: Sequence[str]) -> list[str]:
    await array._refresh_steps()
    closing = stale = None
    if must_reserve(array) and array._metadata.zarr_format != 1:
        (entry,) = await read_entries_steps(array._store, [array.path])
        if len(entry.formats) > 1:
            return []
        closing = (clock.CLOCK.owner(), clock.CLOCK.now())
        stale = await _change_and_close_steps(array, array._metadata, array.shape, closing)
    grid = tuple(axis.nchunks for axis in array._bound.axes)
    encoding, prefix = array._metadata.chunk_key_encoding, prefix_of(array.path)
    stray = []
    for key in keys:
        coords = encoding.decode(key.removeprefix(prefix), array.ndim)
        if coords is not None and any(i >= n for i, n in zip(coords, grid, strict=True)):
            stray.append(key)

    async def delete() -> None:
        await store_call(array._bound.store, "delete_many", stray)

    await _delete_and_reopen_steps(array, delete, closing)
    if stale is not None:
        raise stale
    return stray


def _length(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise BaseZarrError("a length must be a non-negative integer", got=repr(value))
    return int(value)


def must_reserve(array: Array) -> bool:
    """Whether writers of the array's shape share no lock, so that they enter each change in the array's document first.

    What is stored for an array that keeps versions is seen by its writer alone until it is committed.
    """
    return notices_writes(array._store) and not isinstance(array._store, Lock) and not array._keeps_versions


async def change_shape_steps(
    array: Array,
    metadata: ArrayMetadata,
    old_shape: Shape,
    closing: tuple[str, int] | None = None,
    attempt: clock.Attempt | None = None,
) -> None:
    """Replace the stored shape `old_shape` by that of `metadata`. Raises `ConflictError` when another shape is stored.

    With `closing` (owner, time in seconds since 1970) the array is closed: no append reserves a region until `reopen_steps`.
    """
    members = shape_members(metadata)
    attempts = 0

    def change(document: Document) -> Document:
        nonlocal attempts
        attempts += 1
        # Where no lock excludes other writers, the shape may be stored already, and the response lost.
        if attempts == 1 or isinstance(array._store, Lock) or document.get("shape") != members["shape"]:
            _compare(array, document.get("shape"), old_shape)
        if metadata.zarr_format != 3 and "fill_value" in document:
            document = {**document, "fill_value": _strict(document["fill_value"])}
        return {**document, **members}

    def closed(document: Document) -> Document:
        new = change(document)
        pending = reservations.parse(document)
        if pending is None and closing is None:
            return new
        _refuse_pending(array, pending, closing)
        if pending is not None and pending.closed != closing and metadata.zarr_format == 2:
            # An append publishes its rows here first, and then in the document of the shape.
            published = list(document["shape"])
            published[pending.axis] = max(published[pending.axis], pending.published())
            _compare(array, published, old_shape)
        if attempt is not None:
            attempt.begin()
        kept = Reservations(axis=0, stop=0) if pending is None else pending
        length = metadata.shape[kept.axis]
        voided = tuple(region for region in kept.voided if region.stop <= length)
        return replace(kept, stop=length, voided=voided, closed=closing).with_member(new)

    if closing is None or metadata.zarr_format == 3:
        sent = attempt.shielded if attempt and closing else None
        try:
            await metadata_io.rewrite_document_steps(array._store, array.path, metadata, closed, sent=sent)
        except StaleConsolidatedError:
            await _follow_migration_steps(array, metadata.shape, old_shape)
            raise
        await _follow_migration_steps(array, metadata.shape, old_shape)
        return
    # v2 keeps the reservations in another object, which is closed first.
    await change_reservations_steps(
        array, lambda document: {**closed(document), "shape": document["shape"]}, attempt=attempt
    )
    if metadata.shape == old_shape:  # the array is only closed
        return
    attempts = 0
    await array._require_current_steps()  # a migration waits for what was closed before it, and not after
    await metadata_io.rewrite_document_steps(array._store, array.path, metadata, change)


@contextmanager
def closed_to_appends(arrays: Iterable[Array]) -> Iterator[bool]:
    """Close arrays whose writers share no locks to appends and resizes, once those have ended that are pending.

    Yields whether there are such arrays. Raises `ConflictError` where what is pending does not end. At the end they must be
    arrays of another format, or an error be raised: the objects of reservations that were made here are removed then.
    """
    marks: list[tuple[Array, tuple[str, int] | None]] = []
    open_ones = [array for array in arrays if array.shape and must_reserve(array)]
    keys = [(array._store, prefix_of(array.path) + BESIDE) for array in open_ones]
    made = [(store, key) for store, key in keys if not store.exists(key)]
    try:
        for_each(lambda array: marks.append((array, run_steps(_close_steps(array)))), open_ones)
        yield bool(open_ones)
    finally:
        for_each(lambda mark: run_steps(reopen_steps(*mark)), marks)
    for store, key in made:  # who enters an append there later finds the other format, and gives it back
        store.delete(key)


async def _close_steps(array: Array) -> tuple[str, int] | None:
    """Close one array. Returns the mark for `reopen_steps`; ``None`` where the array is gone.

    Raises `ConflictError` where an append or a resize does not end within `_WAIT_S` seconds.
    """
    began, pause_s = clock.CLOCK.now(), 0.01
    while True:
        closing = (clock.CLOCK.owner(), clock.CLOCK.now())
        try:
            await array._refresh_steps()
            stale = await _change_and_close_steps(array, array._metadata, array.shape, closing)
        except (NodeNotFoundError, StaleNodeError):
            return None
        except ConflictError:
            if clock.CLOCK.now() - began >= _WAIT_S:
                raise
        else:
            if stale is not None:
                await _reopen_after_steps(array, closing)
                raise stale
            return closing
        await clock.CLOCK.pause(pause_s)
        pause_s = min(1.0, 1.5 * pause_s)


async def _follow_migration_steps(array: Array, shape: Shape, old_shape: Shape) -> None:
    """Store `shape` for `old_shape` in the description of a newer format too, if a migration has finished since this object was
    checked.

    Where a lock of the shape excludes other writers, which must be held, the migration may have read the array several changes
    ago.
    """
    newer = await array._migrated_to_steps()
    if newer is None:
        return

    def change(document: Document) -> Document:
        stored = tuple(document.get("shape") or ())
        if stored != shape and not isinstance(array._store, Lock):
            _compare(array, stored, old_shape)
        return {**document, "shape": list(shape)}

    await metadata_io.rewrite_document_steps(array._store, array.path, array._metadata.with_(zarr_format=newer), change)


def _refuse_pending(array: Array, pending: Reservations | None, closing: tuple[str, int] | None) -> None:
    if pending and (pending.reserved or (pending.closed != closing and is_closed(pending))):
        raise ConflictError(
            "another writer is changing the shape of the array",
            store=array._store.url,
            path=array.name,
            got="pending appends" if pending.reserved else "a resize",
            hint="Wait until it has ended. If no process works on it any more, end it with `tessarr repair`",
        )


async def _delete_and_reopen_steps(
    array: Array, delete: Callable[[], Steps[None]], closing: tuple[str, int] | None
) -> None:
    """Delete chunks outside the shape by the steps of `delete`, then reopen the array that `closing` closed to appends.

    New rows may lie in the same chunks, so that no append may start while a deletion is in flight.
    """
    try:
        await delete()
    except Exception as error:
        error.add_note(_LEFT)
        await _reopen_after_steps(array, closing)
        raise
    except BaseException:  # cancelled or interrupted: this task can await nothing more
        attempt = clock.Attempt()
        attempt.begin()
        clock.CLOCK.run_detached(_delete_and_reopen_steps(array, delete, closing), attempt)
        raise
    await reopen_steps(array, closing)


def is_closed(pending: Reservations) -> bool:
    """Whether the array is closed to appends, but by an operation of this process that has ended by an error."""
    return pending.closed is not None and pending.closed[0] not in clock.CLOCK.ended


async def reopen_steps(array: Array, closing: tuple[str, int] | None) -> bool:
    """Remove the mark `closing`, by which `change_shape_steps` closed the array to appends. Returns whether it was there."""
    found = False

    def change(document: Document) -> Document | None:
        nonlocal found
        pending = reservations.parse(document)
        if pending is None or pending.closed != closing:
            return None
        found = True
        return replace(pending, closed=None).with_member(document)

    if closing is not None:
        try:
            await change_reservations_steps(array, change, publish=True)
        except BaseException:
            clock.CLOCK.ended.add(closing[0])
            raise
    return found


async def _reopen_after_steps(array: Array, closing: tuple[str, int] | None) -> bool | None:
    """Call `reopen_steps` after an error, which is the one to be raised. Returns whether the array was closed, if known."""
    with suppress(StoreError):
        return await reopen_steps(array, closing)
    return None


async def _compare_stored_steps(array: Array, shape: Shape) -> None:
    (stored,) = await read_nodes.read_nodes_steps(
        array._store, [array.path], array._metadata.zarr_format, ArrayMetadata
    )
    _compare(array, None if stored is None else getattr(stored, "shape", None), shape)


def _compare(array: Array, stored: Any, shape: Shape) -> None:
    if stored is None or tuple(stored) != shape:
        raise ConflictError(
            "another writer changed the shape of the array",
            store=array._store.url,
            path=array.name,
            expected=f"the shape {shape}, as this object last read it",
            got="no array" if stored is None else tuple(stored),
            hint="Call refresh(), look at the new shape, and resize again if that is still right",
        )


def shape_members(metadata: ArrayMetadata) -> dict[str, object]:
    """Serialise the members of a document that change with the shape."""
    members: dict[str, object] = {"shape": list(metadata.shape)}
    if hasattr(metadata.chunk_grid, "covering"):
        members["chunk_grid"] = metadata.chunk_grid.to_json()
    return members


def _strict(fill: object) -> object:
    """Return a stored fill value with strings in the place of bare NaN and infinity, which are not JSON."""
    if isinstance(fill, list):
        return [_strict(one) for one in fill]
    if isinstance(fill, float) and not math.isfinite(fill):
        return "NaN" if math.isnan(fill) else "Infinity" if fill > 0 else "-Infinity"
    return fill


async def _fill_edges_steps(array: Array, kept: Shape) -> None:
    """Fill, in the chunks that straddle the new edge, the part that will be outside the shape."""
    bound = array._bound
    for axis, (length, keep) in enumerate(zip(array.shape, kept, strict=True)):
        if keep == length or keep == 0:
            continue
        chunk = bound.axes[axis].find(keep - 1)
        end = min(length, bound.axes[axis].start(chunk) + bound.axes[axis].size(chunk))
        await _fill_slab_steps(array, bound, axis, keep, end)


async def _clear_gained_steps(array: Array, old_shape: Shape) -> None:
    for axis, (new, old) in enumerate(zip(array.shape, old_shape, strict=True)):
        if new > old:
            await _fill_slab_steps(array, array._bound, axis, old, new)


async def _fill_slab_steps(array: Array, bound: BoundArray, axis: int, start: int, stop: int) -> None:
    if start >= stop or 0 in bound.shape:
        return
    dims = [slice(0, n, 1) for n in bound.shape]
    dims[axis] = slice(start, stop, 1)
    selection = Outer(tuple(dims))
    await write_call(array, bound, selection, np.broadcast_to(bound.fill, selection.shape))
