"""Append without a lock: reserve a region in the document, store its data, publish it.

A request without a response may still be carried out. So the rows of an append that failed while requests for its chunks were
in flight are not given to another append: they are filled with fill value (`release_steps`). And chunks that an append covers
are created by conditional requests (`CreatingStore`), so that a late one does not replace what was stored after it.

`tessarr.metadata.reservations` has the rules.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy.typing as npt

from tessarr.common.warn import warn
from tessarr.core.array_parts.region_io import (
    bind_region,
    fill_late_steps,
    filled,
    fit_elements,
    with_length,
    with_shape,
    write_call,
)
from tessarr.core.array_parts.reservation_io import (
    Document,
    change_reservations_steps,
    metadata_of,
    read_reservations_steps,
)
from tessarr.core.array_parts.resize import is_closed, reopen_steps, shape_members
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call, run_steps
from tessarr.engine.bound import RuntimeOptions
from tessarr.errors import (
    ConflictError,
    DurabilityError,
    PendingAppendError,
    StaleConsolidatedError,
    StoreError,
    ZarrRuntimeWarning,
)
from tessarr.metadata import reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.reservations import Region, Reservations
from tessarr.stores.protocols import ConditionalSet, Remote, Update
from tessarr.stores.wrappers.creating import CreatingStore, Tenure
from tessarr.types import AnyArray, Shape

if TYPE_CHECKING:
    from tessarr.core.array import Array

Appended: TypeAlias = tuple[Shape, StoreError | None]
"""The new shape, and the error of a step that comes after the rows are in the array."""
OnHole = Literal["wait", "void", "error"]
"""Policy for a region that another append reserved and does not publish."""
EXPIRE_S = 600.0
"""After so many seconds a reserved region counts as abandoned. No clock proves that its owner is dead."""
_PAUSES_S = (0.005, 1.0)
"""Back-off: the first and the longest pause between two polls for the publication of earlier appends."""


class HolePolicy(NamedTuple):
    """Policy of one append for regions that other appends do not publish."""

    policy: OnHole
    expire_s: float


async def append_reserved_steps(array: Array, data: npt.ArrayLike, axis: int, holes: HolePolicy) -> Appended:
    """Append to a region that is reserved first."""
    await array._require_current_steps()
    values, axis = fit_elements(array, data, axis, array.shape, array.dtype)
    if not values.shape[axis]:
        return array.shape, None
    owner, late = clock.CLOCK.owner(), None
    attempt = clock.Attempt()
    region: Region | None = None
    earlier: set[tuple[int, int]] | None
    try:
        reserved, metadata = await _reserve_steps(array, values, axis, owner, holes, attempt)
        await array._require_current_steps()  # a migration waits for what is reserved before it, and not after
        region = reserved
        await store_region_steps(array, metadata, axis, region, values, attempt)
        earlier = await _publish_steps(array, axis, owner, region, attempt)
    except Exception as error:
        is_published = attempt.begun and (
            await _release_after_error_steps(error, array, axis, owner, region, attempt, values)
        )
        if not is_published or region is None:
            raise
        earlier = None  # published, though the response was lost
        late = error if isinstance(error, DurabilityError | StaleConsolidatedError) else None
    except BaseException:  # cancelled or interrupted: this task can await nothing more
        attempt.cancelled = True
        clock.CLOCK.run_detached(release_steps(array, axis, owner, None, attempt), attempt)
        raise
    try:
        if earlier is None:
            earlier = _earlier_regions(region, _pending(array, await read_reservations_steps(array), axis))
            await array._refresh_steps()
        await _wait_for_earlier_steps(array, axis, region, earlier, holes)
    except StoreError as error:
        if isinstance(error, ConflictError):
            raise
        raise PendingAppendError(
            "the data is stored, but the store failed during the wait for earlier appends",
            store=array._store.url,
            path=array.name,
            got=str(error),
            hint="Do not append the data again; readers see it once the earlier appends have ended",
        ) from error
    return with_length(array.shape, axis, region.stop), late


def _earlier_regions(region: Region, pending: Reservations) -> set[tuple[int, int]]:
    """Return ``(start, stop)`` of the regions that must be published before readers see `region`."""
    return {other[:2] for other in pending.reserved if other.start < region.start}


async def _reserve_steps(
    array: Array,
    values: AnyArray,
    axis: int,
    owner: str,
    holes: HolePolicy,
    attempt: clock.Attempt,
) -> tuple[Region, ArrayMetadata]:
    """Reserve the next region of `axis` for `values`. Returns the region and the metadata of the stored document."""
    length, back_off = values.shape[axis], _BackOff(array, holes)

    def change(document: Document) -> Document | None:
        pending = _pending(array, document, axis)
        if pending.of(owner) is not None:  # stored, though the response was lost
            return None
        _check_fit(array, document, values, axis)
        if pending.closed or pending.axis != axis or _must_void_first(pending, holes):
            return None
        new = pending.reserve(length, owner, clock.CLOCK.now())
        return {**new.with_member(document), **_grown_grid(array, document, axis, new.stop)}

    while True:
        document = await change_reservations_steps(array, change, attempt=attempt)
        pending = _pending(array, document, axis)
        region = pending.of(owner)
        if region is not None:
            return region, metadata_of(array, document)
        if not await back_off.handle_abandoned_steps(pending, None):
            await back_off.pause()


def _must_void_first(pending: Reservations, holes: HolePolicy) -> bool:
    """Whether `holes` asks to handle abandoned regions before another region is reserved, and there are some."""
    return holes.policy != "wait" and bool(pending.abandoned(clock.CLOCK.now(), holes.expire_s))


def _pending(array: Array, document: Document, axis: int) -> Reservations:
    """Parse the reservations in the array's document. Without any, return those of a first append along `axis`."""
    shape = document.get("shape")
    if not isinstance(shape, list):
        raise ConflictError("the array does not exist any more", store=array._store.url, path=array.name)
    pending = reservations.parse(document)
    if pending is None:
        return Reservations(axis=axis, stop=shape[axis])
    if pending.closed and not is_closed(pending):
        pending = replace(pending, closed=None)
    length, published = shape[pending.axis], pending.published()
    if not pending.reserved and not pending.voided and length == published:
        return Reservations(axis=axis, stop=shape[axis], closed=pending.closed)
    # The shape of a v2 array is stored after its reservations, so that the shape is never ahead of the reservations.
    if length > published or (length < published and array._metadata.zarr_format == 3):
        raise _foreign_writer_error(array, f"a length of {pending.published()} on axis {pending.axis}", shape)
    return pending


def _foreign_writer_error(array: Array, expected: str, got: object) -> ConflictError:
    return ConflictError(
        "a writer that ignores pending appends changed the array",
        store=array._store.url,
        path=array.name,
        expected=expected,
        got=got,
        hint="Let one library at a time append to this array; look at the end of the array, then append again",
    )


def _check_fit(array: Array, document: Document, values: AnyArray, axis: int) -> None:
    """Raise `ConflictError` or `BaseZarrError` unless `values` still fit the stored array."""
    metadata = metadata_of(array, document)
    if metadata.dtype != values.dtype or metadata.not_writable:
        raise ConflictError(
            "another array replaced this one",
            store=array._store.url,
            path=array.name,
            expected=f"elements of {values.dtype}",
            got=str(metadata.dtype),
            hint="Open the array again",
        )
    fit_elements(array, values, axis, metadata.shape, metadata.dtype)


def _grown_grid(array: Array, document: Document, axis: int, stop: int) -> dict[str, object]:
    """Return the member `chunk_grid` if the grid must grow to cover the region that ends at `stop`, else nothing.

    The grid grows when the region is reserved, so that the chunks do not depend on which region is published first.
    """
    metadata = metadata_of(array, document)
    grown = with_shape(metadata, with_length(metadata.shape, axis, stop))
    members = shape_members(grown)
    return {name: members[name] for name in ("chunk_grid",) if name in members}


async def store_region_steps(
    array: Array,
    metadata: ArrayMetadata,
    axis: int,
    region: Region,
    values: AnyArray,
    attempt: clock.Attempt | None = None,
    options: RuntimeOptions | None = None,
) -> None:
    """Store `values` in `region`.

    When the append is cancelled, writes in flight run to their end: another append may get the region next, and a late write
    must not overwrite the data of that append.
    """
    store = array._store
    if isinstance(store, ConditionalSet):
        store = CreatingStore(
            store, Tenure(lambda: _require_reserved(array, axis, region), clock.CLOCK.now, region.since)
        )
    bound, selection = bind_region(array, store, metadata, axis, region, options or array._options)
    call = write_call(array, bound, selection, values)
    if attempt is None:
        await call
        return
    attempt.in_doubt = True
    await attempt.shielded(_clear_doubt(call, attempt))


def _require_reserved(array: Array, axis: int, region: Region) -> None:
    """Raise `ConflictError` if another writer has filled the region: what comes after it may be of others."""
    document = run_steps(read_reservations_steps(array))
    if _pending(array, document, axis).of(region.owner) is None:
        raise _voided_error(array, region)


def _clear_doubt(call: Call, attempt: clock.Attempt) -> Call:
    """Make the call that ends the doubt of `attempt` once `call` has returned: every request got its response."""

    def now() -> Any:
        answer = call.now()
        attempt.in_doubt = False
        return answer

    return call._replace(now=now)


async def _publish_steps(
    array: Array, axis: int, owner: str, region: Region, attempt: clock.Attempt | None = None
) -> set[tuple[int, int]]:
    """Publish the region of `owner`, whose data is stored. Returns `_earlier_regions` of the region."""
    await array._require_current_steps()
    state = array._state
    attempts = 0

    def change(document: Document) -> Document | None:
        nonlocal attempts
        attempts += 1
        pending = _pending(array, document, axis)
        if pending.of(owner) is None:
            if pending.was_voided(owner):
                raise _voided_error(array, region)
            if attempts > 1 and pending.stop >= region.stop:  # published, though the response was lost
                return None
            raise _foreign_writer_error(array, f"the reserved region {region[:2]}", document.get("shape"))
        new = pending.publish(owner)
        shape = with_length(tuple(document["shape"]), axis, new.published())
        return new.with_member({**document, "shape": list(shape)})

    document = await change_reservations_steps(array, change, publish=True, attempt=attempt)
    await array._adopt_steps(metadata_of(array, document), state)
    return _earlier_regions(region, _pending(array, document, axis))


def _voided_error(array: Array, region: Region) -> ConflictError:
    return ConflictError(
        "the append took longer than another writer waited; the appended rows are not in the array",
        store=array._store.url,
        path=array.name,
        got=f"rows {region.start} to {region.stop} filled with fill value",
        hint="Append the data again, with a larger expire where appends take long",
    )


# -- failed and abandoned appends --------------------------------------------------------------------------------------


async def _release_after_error_steps(
    error: Exception,
    array: Array,
    axis: int,
    owner: str,
    region: Region | None,
    attempt: clock.Attempt,
    values: AnyArray,
) -> bool:
    """Call `release_steps` after `error`; return whether the region is published. A failure is added as a note to `error`."""
    if not isinstance(error, StoreError) and not isinstance(array._store, Remote):
        attempt.in_doubt = False  # an error of the data, and no request is in flight
    try:
        published = await release_steps(array, axis, owner, region, attempt, values)
        if attempt.in_doubt and region is not None and not published:
            error.add_note(
                f"rows {region.start} to {region.stop} hold fill value: a request of this append may still be carried out"
            )
        return published and not isinstance(error, ConflictError)
    except Exception as second:
        where = "a region" if region is None else f"rows {region.start} to {region.stop}"
        error.add_note(
            f"this append reserved {where} and could not release the reservation, so that other appends may wait for it: "
            f"{second}"
        )
        return False


async def release_steps(
    array: Array,
    axis: int,
    owner: str,
    region: Region | None,
    attempt: clock.Attempt,
    values: AnyArray | None = None,
) -> bool:
    """Release the region of `owner`, whose append failed: retract a region at the end of the array, void any other.

    A region is voided, too, while a request for its chunks may still be carried out (`attempt`). Where another writer
    has voided it, `values` that were stored late become fill value again; else those of `values` that are stored do before the
    region is given back, because an array that grows would show them.

    Returns whether `region` was published nevertheless, because only the response was lost.
    """
    if not isinstance(array._store, Remote) and isinstance(array._store, Update):
        attempt.in_doubt = False  # transactions of this machine: what raised an error has ended
    if region is not None and values is not None and not attempt.in_doubt:
        await _clear_steps(array, axis, region)
    left: list[Region] = []
    published = voided = False

    def change(document: Document) -> Document | None:
        nonlocal published, voided
        left.clear()
        pending = _pending(array, document, axis)
        mine = pending.of(owner)
        if mine is None:
            voided = pending.was_voided(owner)
            published = region is not None and pending.stop >= region.stop and not voided
            return None
        given = None if attempt.in_doubt else pending.retract(owner)
        if given is None:
            left.append(mine)
            return None
        return given.with_member(document)

    await change_reservations_steps(array, change)
    for mine in left:
        await _void_steps(array, axis, mine, is_own=True)
    if voided and region is not None and values is not None:
        await fill_late_steps(array, axis, region, values)
    return published


async def _clear_steps(array: Array, axis: int, region: Region) -> None:
    """Put fill value into a region that its owner is about to give back, unless another writer has voided it."""
    document = await read_reservations_steps(array)
    if _pending(array, document, axis).of(region.owner) is not None:
        with suppress(ConflictError):  # it is voided at this moment
            await _fill_steps(array, document, axis, region)


async def _fill_steps(array: Array, document: Document, axis: int, region: Region, *, stores: bool = False) -> None:
    """Put fill value into `region`. `stores`: chunks that hold nothing else too, so that a late request to create one fails."""
    metadata = metadata_of(array, document)
    options = array._options._replace(write_empty_chunks=stores or array._options.write_empty_chunks)
    await store_region_steps(array, metadata, axis, region, filled(metadata, axis, region), options=options)


async def _void_steps(array: Array, axis: int, region: Region, *, is_own: bool = False) -> None:
    """Fill `region` with fill value and publish the region. Warns, unless the caller reserved the region (`is_own`)."""
    owner = clock.CLOCK.owner()

    def change(document: Document) -> Document | None:
        pending = _pending(array, document, axis)
        if pending.of(owner) is not None or region not in pending.reserved:  # published or voided by another writer
            return None
        return pending.take_over(region, owner, clock.CLOCK.now()).with_member(document)

    document = await change_reservations_steps(array, change)
    mine = _pending(array, document, axis).of(owner)
    if mine is None:
        return
    await _fill_steps(array, document, axis, mine, stores=True)
    await _publish_steps(array, axis, owner, mine)
    if not is_own:
        rows = f"rows {region.start} to {region.stop} of {array.name}"
        message = f"{rows} were reserved and never stored; they read as fill value"
        warn(message, ZarrRuntimeWarning)


async def _wait_for_earlier_steps(
    array: Array, axis: int, region: Region, earlier: set[tuple[int, int]], holes: HolePolicy
) -> None:
    """Wait until the appends at `earlier` are published, so that readers see `region`."""
    back_off = _BackOff(array, holes)
    while earlier:
        await back_off.pause()
        state = array._state
        document = await read_reservations_steps(array)
        pending = _pending(array, document, axis)
        earlier &= _earlier_regions(region, pending)
        if earlier:
            await back_off.handle_abandoned_steps(pending, region)
        else:
            await array._adopt_steps(metadata_of(array, document), state)


def end_abandoned(array: Array, expire_s: float = EXPIRE_S) -> bool:
    """Fill the regions that were reserved `expire_s` seconds ago or earlier, and end a resize as old.

    Returns whether there was any. No process may still work on them: an append that does gets a `ConflictError`, but a resize
    that still deletes chunks could delete new ones.
    """
    return run_steps(_end_abandoned_steps(array, expire_s))


async def _end_abandoned_steps(array: Array, expire_s: float) -> bool:
    document = await read_reservations_steps(array)
    pending = reservations.parse(document)
    if pending is None:
        return bool(document) and tuple(document["shape"]) != array.shape
    now = clock.CLOCK.now()
    holes = pending.abandoned(now, expire_s)
    for region in holes:
        await _void_steps(array, pending.axis, region)
    if not pending.is_left_closed(now, expire_s):
        return bool(holes) or tuple(document["shape"]) != array.shape
    await reopen_steps(array, pending.closed)
    return True


class _BackOff:
    """Wait for other appends with exponential back-off, and apply the policy for those that do not end."""

    def __init__(self, array: Array, holes: HolePolicy) -> None:
        self._array = array
        self._holes = holes
        self._pause_s = _PAUSES_S[0]
        self._warned = False

    def pause(self) -> Call:
        """Make the call that waits for the next pause, which is 1.5 times as long, with jitter."""
        self._pause_s, pause_s = min(self._pause_s * 1.5, _PAUSES_S[1]), self._pause_s
        return clock.CLOCK.pause(random.uniform(0.5, 1.0) * pause_s)

    async def handle_abandoned_steps(self, pending: Reservations, mine: Region | None) -> bool:
        """Apply the policy to abandoned regions (before `mine`). Returns whether a region was voided."""
        expire_s = self._holes.expire_s
        holes = pending.abandoned(clock.CLOCK.now(), expire_s, None if mine is None else mine.start)
        closed = pending.is_left_closed(clock.CLOCK.now(), expire_s)
        if not holes and not closed:
            return False
        if self._holes.policy == "void" and holes:
            await _void_steps(self._array, pending.axis, holes[0])
            return True
        if self._holes.policy == "wait":
            if not self._warned:
                self._warned = True
                warn(f"{self._description(pending, holes)}; waiting for it", ZarrRuntimeWarning)
            return False
        stored = "" if mine is None else f"; rows {mine.start} to {mine.stop} are stored, and visible once it has ended"
        raise (ConflictError if mine is None else PendingAppendError)(
            self._description(pending, holes) + stored,
            store=self._array._store.url,
            path=self._array.name,
            hint="If no process works on it any more, end it with `tessarr repair`"
            + ("" if closed else " or on_hole='void'"),
        )

    def _description(self, pending: Reservations, holes: tuple[Region, ...]) -> str:
        if not holes:
            return f"a resize of {self._array.name} has not ended"
        return f"an append that reserved rows {holes[0].start} to {holes[0].stop} of {self._array.name} has not ended"
