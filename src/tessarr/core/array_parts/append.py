"""Appending to an array, from one process or from many machines.

Where the store's lock excludes all other writers (`Store.lock_reaches_all`), an append holds the lock of the array's shape:
it stores the data, then the shape.

Where it does not, but updates compare and swap (`Store.update_reaches_all`), an append reserves its region in the array's
document first, stores the data there, and publishes it (`tessarr.metadata.reservations` has the rules). So appends from
many machines go on side by side, none writes where another does, and readers see complete data only.

Elsewhere (a file system behind fsspec) one process at a time may append; another one is noticed only if it changed the
shape meanwhile.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tessarr.common.warn import warn
from tessarr.core import metadata_io
from tessarr.core.array_parts.resize import changing_shape, holding_shape, reserves, shape_members, with_shape, writing
from tessarr.core.array_parts.selection_methods import as_elements
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call, Steps, ask
from tessarr.engine.bound import bind
from tessarr.errors import (
    BaseZarrError,
    ConflictError,
    UnsupportedOperationError,
    ZarrRuntimeWarning,
)
from tessarr.indexing.selection import Outer
from tessarr.metadata import formats, reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.reservations import Region, Reservations
from tessarr.stores.path import prefix_of
from tessarr.types import Shape

if TYPE_CHECKING:
    from tessarr.core.array import Array

OnHole = Literal["wait", "void", "error"]
"""What to do about a region that another append reserved and does not publish."""
EXPIRE_S = 600.0
"""After so many seconds a reserved region counts as abandoned. No clock proves that its owner is dead."""
_PAUSES_S = (0.005, 1.0)
"""The first and the longest pause between two looks at whether earlier appends are published."""


class Holes(NamedTuple):
    """What an append does about regions that others do not publish."""

    policy: OnHole
    expire_s: float


def appending(
    array: Array, data: npt.ArrayLike, axis: int, on_hole: OnHole = "wait", expire_s: float = EXPIRE_S
) -> Steps[Shape]:
    """Add `data` after the last element of `axis`; its other lengths must be the array's. Returns the new shape.

    The data is stored before the shape: an append that fails, or is cancelled, leaves the array as it was. Concurrent
    appends all survive, in any thread, process or machine, where the store's locks reach or its updates compare and swap.
    There the shape that is returned ends with `data`; other appends may have added more behind it.

    `on_hole` says what to do when an earlier append on another machine does not end: ``"wait"`` for it (after `expire_s`
    seconds with a warning); ``"void"``: after `expire_s` seconds fill its region with fill value and go on;
    ``"error"``: raise `ConflictError` then.

    Raises `ValueError` when the lengths differ, `ReadOnlyError`, `ConflictError` when a writer that takes no part in this
    changed the array meanwhile, `UnsupportedOperationError` where appends cannot be made safe.
    """
    array._require_writable()
    if on_hole not in ("wait", "void", "error"):
        raise ValueError(f"on_hole must be 'wait', 'void' or 'error', not {on_hole!r}")
    holes = Holes(on_hole, expire_s)
    if reserves(array):
        return (yield from _sharing(array, data, axis, holes))
    return (yield from holding_shape(array, _alone(array, data, axis, holes)))


def _alone(array: Array, data: npt.ArrayLike, axis: int, holes: Holes) -> Steps[Shape]:
    """Append while the lock of the shape is held."""
    yield from array._refreshing()
    if array._metadata.pending is not None:  # it came here from a place where appends are reserved
        return (yield from _sharing(array, data, axis, holes))
    values, axis = _fitting(array, data, axis, array.shape, array.dtype)
    state, old_shape, start = array._state, array.shape, array.shape[axis]
    new_shape = _longer(old_shape, axis, start + values.shape[axis])
    metadata = with_shape(array._metadata, new_shape)
    if values.size:
        bound = bind(array.store, array.path, metadata, array._options)
        yield [writing(array, bound, _rows(new_shape, axis, start), values)]
    yield from changing_shape(array, metadata, old_shape)
    yield from array._becoming(metadata, state)
    return new_shape


def _fitting(
    array: Array, data: npt.ArrayLike, axis: int, shape: Shape, dtype: np.dtype[Any]
) -> tuple[npt.NDArray[Any], int]:
    """`data` as elements that fit behind `shape`, and `axis` counted from the front."""
    values = as_elements(data, dtype)
    if not -len(shape) <= axis < len(shape):
        raise BaseZarrError("no such axis", path=array.name, expected=f"an axis below {len(shape)}", got=axis)
    axis %= len(shape)
    if values.ndim != len(shape) or _longer(shape, axis, 0) != _longer(values.shape, axis, 0):
        raise BaseZarrError(
            "the data does not fit the array on every other axis",
            path=array.name,
            expected=f"shape {shape} except along axis {axis}",
            got=values.shape,
        )
    return values, axis


def _longer(shape: Shape, axis: int, length: int) -> Shape:
    return tuple(length if i == axis else n for i, n in enumerate(shape))


def _rows(shape: Shape, axis: int, start: int) -> Outer:
    """All of `shape` from `start` on."""
    return Outer(tuple(slice(start if i == axis else 0, n, 1) for i, n in enumerate(shape)))


# -- side by side with other machines --------------------------------------------------------------------------------


class _UnchangedError(Exception):
    """Ends an update that has nothing to change."""


def _sharing(array: Array, data: npt.ArrayLike, axis: int, holes: Holes) -> Steps[Shape]:
    """Append by reservation."""
    if array._metadata.zarr_format != 3:
        _refuse(array)
    values, axis = _fitting(array, data, axis, array.shape, array.dtype)
    if not values.shape[axis]:
        return array.shape
    owner = clock.CLOCK.owner()
    begun: list[str] = []
    try:
        region, metadata = yield from _reserving(array, values, axis, owner, holes, begun)
        yield from _storing(array, metadata, axis, region, values)
        shape = yield from _publishing(array, axis, owner, region)
    except Exception as error:
        if begun:
            yield from _giving_back_after(error, array, owner)
        raise
    except BaseException:  # cancelled or interrupted: nothing can be awaited any more
        if begun:
            clock.CLOCK.outlive(_giving_back(array, owner))
        raise
    if shape[axis] < region.stop:
        shape = yield from _waiting_for(array, axis, region, holes)
    return _longer(shape, axis, region.stop)


def _refuse(array: Array) -> None:
    """Refuse to append where the document cannot hold reservations."""
    number = array._metadata.zarr_format
    raise UnsupportedOperationError(
        f"appends to Zarr v{number} arrays are not safe in a store whose locks do not reach other machines",
        store=array.store.url,
        path=array.name,
        hint="Rewrite the metadata as Zarr v3 first (tessarr migrate), or resize and write the new rows from one process",
    )


def _reserving(
    array: Array, values: npt.NDArray[Any], axis: int, owner: str, holes: Holes, begun: list[str]
) -> Steps[tuple[Region, ArrayMetadata]]:
    """Reserve the next region of `axis` for `values`; the metadata is that of the stored document.

    `begun` gets an item as soon as a reservation may be stored.
    """
    length, waiting = values.shape[axis], _Patience(array, holes)
    found: list[dict[str, Any]] = []

    def change(document: dict[str, Any]) -> dict[str, Any]:
        found[:] = [document]
        pending = _pending(array, document, axis)
        if pending.of(owner) is not None:  # stored, though the answer was lost
            raise _UnchangedError
        _check_fit(array, document, values, axis)
        if pending.closed or pending.axis != axis or _in_the_way(pending, holes):
            raise _UnchangedError
        new = pending.reserve(length, owner, clock.CLOCK.now())
        found[:] = [{**new.put_in(document), **_grown_grid(array, document, axis, new.stop)}]
        begun.append(owner)
        return found[0]

    while True:
        yield from _rewriting(array, change)
        metadata = _metadata_of(array, found[0])
        pending = _pending(array, found[0], axis)
        region = pending.of(owner)
        if region is not None:
            return region, metadata
        if not (yield from waiting.dealing_with(pending, None)):
            yield [waiting.pause()]


def _in_the_way(pending: Reservations, holes: Holes) -> bool:
    """Whether abandoned regions are dealt with before another is reserved."""
    return holes.policy != "wait" and bool(pending.abandoned(clock.CLOCK.now(), holes.expire_s))


def _pending(array: Array, document: dict[str, Any], axis: int) -> Reservations:
    """The reservations in the array's document; none: those that a first append along `axis` starts from."""
    shape = document.get("shape")
    if not isinstance(shape, list):
        raise ConflictError("the array is not there any more", store=array.store.url, path=array.name)
    pending = reservations.parse(document)
    if pending is None or (not pending.reserved and not pending.voided):
        closed = None if pending is None else pending.closed
        return Reservations(axis=axis, stop=shape[axis], closed=closed)
    if pending.reserved and shape[pending.axis] != pending.published():
        raise _foreign(array, f"a length of {pending.published()} on axis {pending.axis}", shape)
    return pending


def _foreign(array: Array, expected: str, got: object) -> ConflictError:
    return ConflictError(
        "a writer that knows nothing of pending appends changed the array",
        store=array.store.url,
        path=array.name,
        expected=expected,
        got=got,
        hint="Let one library at a time append to this array; look at the end of the array, then append again",
    )


def _check_fit(array: Array, document: dict[str, Any], values: npt.NDArray[Any], axis: int) -> None:
    """The stored array must still be one that `values` fit."""
    metadata = _metadata_of(array, document)
    if metadata.dtype != values.dtype or metadata.not_writable:
        raise ConflictError(
            "the array was replaced by another one",
            store=array.store.url,
            path=array.name,
            expected=f"elements of {values.dtype}",
            got=str(metadata.dtype),
            hint="Open it anew",
        )
    _fitting(array, values, axis, metadata.shape, metadata.dtype)


def _metadata_of(array: Array, document: dict[str, Any]) -> ArrayMetadata:
    node = formats.parse_node(3, {"zarr.json": document}).node
    if not isinstance(node, ArrayMetadata):
        raise ConflictError("the array was replaced by a group", store=array.store.url, path=array.name)
    return node


def _grown_grid(array: Array, document: dict[str, Any], axis: int, stop: int) -> dict[str, Any]:
    """The member `chunk_grid` where the grid must grow to cover the region that ends at `stop`.

    It grows when the region is reserved, so that the chunks are the same whatever is published first.
    """
    metadata = _metadata_of(array, document)
    grown = with_shape(metadata, _longer(metadata.shape, axis, stop))
    members = shape_members(grown)
    return {name: members[name] for name in ("chunk_grid",) if name in members}


def _storing(array: Array, metadata: ArrayMetadata, axis: int, region: Region, values: npt.NDArray[Any]) -> Steps[None]:
    """Store `values` in `region`.

    The array is bound as one that reaches to the end of the region's last chunk: no chunk that is shared with the next
    region may count as covered, or it would be replaced instead of merged.
    """
    shape = _longer(metadata.shape, axis, region.stop)
    last = metadata.chunk_grid.axes(shape)[axis]
    index = last.find(region.stop - 1)
    whole = _longer(shape, axis, max(region.stop, last.start(index) + last.size(index)))
    bound = bind(array.store, array.path, metadata.with_(shape=whole), array._options)
    yield [writing(array, bound, _rows(shape, axis, region.start), values)]


def _publishing(array: Array, axis: int, owner: str, region: Region) -> Steps[Shape]:
    """Publish the region of `owner`, whose data is stored; returns the shape that is stored now."""
    state = array._state
    found: list[dict[str, Any]] = []
    attempts = 0

    def change(document: dict[str, Any]) -> dict[str, Any]:
        nonlocal attempts
        attempts += 1
        found[:] = [document]
        pending = _pending(array, document, axis)
        if pending.of(owner) is None:
            if pending.was_voided(owner):
                raise _voided(array, region)
            if attempts > 1 and pending.stop >= region.stop:  # published, though the answer was lost
                raise _UnchangedError
            raise _foreign(array, f"the region {region[:2]} that was reserved here", document.get("shape"))
        new = pending.publish(owner)
        shape = _longer(tuple(document["shape"]), axis, new.published())
        found[:] = [{**new.put_in(document), "shape": list(shape)}]
        return found[0]

    yield from _rewriting(array, change, follow=True)
    metadata = _metadata_of(array, found[0])
    yield from array._becoming(metadata, state)
    return metadata.shape


def _voided(array: Array, region: Region) -> ConflictError:
    return ConflictError(
        "the append took so long that another writer gave it up; its rows are not in the array",
        store=array.store.url,
        path=array.name,
        got=f"the region {region.start} to {region.stop} was filled with fill value",
        hint="Append the data again, with a larger expire where appends take long",
    )


def _rewriting(array: Array, change: Any, *, follow: bool = False) -> Steps[None]:
    try:
        yield from metadata_io.rewriting_document(array.store, array.path, array._metadata, change, follow=follow)
    except _UnchangedError:
        if follow:
            yield from metadata_io.following_change(array.store, array.path)


# -- what goes wrong -------------------------------------------------------------------------------------------------


def _giving_back_after(error: Exception, array: Array, owner: str) -> Steps[None]:
    """`_giving_back` after `error`, which is told what could not be given back."""
    try:
        yield from _giving_back(array, owner)
    except Exception as second:
        error.add_note(
            f"the region that this append reserved could not be given back, and others wait for it: {second}"
        )


def _giving_back(array: Array, owner: str) -> Steps[None]:
    """Give the region of `owner` back, whose append failed: at the end of the array as if nothing had been, else as void."""
    left: list[tuple[Region, int]] = []

    def change(document: dict[str, Any]) -> dict[str, Any]:
        left.clear()
        pending = reservations.parse(document) if document else None
        region = None if pending is None else pending.of(owner)
        if pending is None or region is None:
            raise _UnchangedError
        given = pending.retract(owner)
        if given is None:
            left.append((region, pending.axis))
            raise _UnchangedError
        return given.put_in(document)

    yield from _rewriting(array, change)
    for region, axis in left:
        yield from _voiding(array, axis, region)


def _voiding(array: Array, axis: int, region: Region) -> Steps[None]:
    """Fill `region` in the place of its owner, and publish it."""
    owner = clock.CLOCK.owner()
    found: list[dict[str, Any]] = []

    def change(document: dict[str, Any]) -> dict[str, Any]:
        pending = _pending(array, document, axis)
        if pending.of(owner) is None:
            if region not in pending.reserved:  # its owner, or another, was faster
                found.clear()
                raise _UnchangedError
            pending = pending.take_over(region, owner, clock.CLOCK.now())
        found[:] = [pending.put_in(document)]
        return found[0]

    yield from _rewriting(array, change)
    if not found:
        return
    message = (
        f"rows {region.start} to {region.stop} of {array.name} were reserved and never stored; they read as fill value"
    )
    warn(message, ZarrRuntimeWarning)
    metadata = _metadata_of(array, found[0])
    shape = _longer(metadata.shape, axis, region.stop - region.start)
    fill = metadata.data_type.default_fill() if metadata.fill_value is None else metadata.fill_value
    yield from _storing(array, metadata, axis, region, np.broadcast_to(fill, shape))
    yield from _publishing(array, axis, owner, region)


def _waiting_for(array: Array, axis: int, region: Region, holes: Holes) -> Steps[Shape]:
    """Wait until the appends before `region` are published, so that it is seen."""
    waiting = _Patience(array, holes)
    while True:
        yield [waiting.pause()]
        (data,) = yield [ask(array.store, "get", prefix_of(array.path) + "zarr.json")]
        document = {} if data is None else formats.loads("zarr.json", data, key=prefix_of(array.path) + "zarr.json")
        pending = _pending(array, document, axis)
        if document["shape"][axis] >= region.stop:
            state = array._state
            metadata = _metadata_of(array, document)
            yield from array._becoming(metadata, state)
            return metadata.shape
        yield from waiting.dealing_with(pending, region)


class _Patience:
    """Waits for other appends, longer each time, and deals with those that do not come to an end."""

    def __init__(self, array: Array, holes: Holes) -> None:
        self._array = array
        self._holes = holes
        self._pause_s = _PAUSES_S[0]
        self._warned = False

    def pause(self) -> Call:
        """The next pause."""
        self._pause_s, pause_s = min(self._pause_s * 1.5, _PAUSES_S[1]), self._pause_s
        return clock.CLOCK.pause(random.uniform(0.5, 1.0) * pause_s)

    def dealing_with(self, pending: Reservations, mine: Region | None) -> Steps[bool]:
        """Do with abandoned regions (those before `mine`) as was chosen; tells whether one was voided."""
        expire_s = self._holes.expire_s
        holes = pending.abandoned(clock.CLOCK.now(), expire_s, None if mine is None else mine.start)
        closed = pending.closed is not None and clock.CLOCK.now() - pending.closed[1] >= expire_s
        if not holes and not closed:
            return False
        if self._holes.policy == "void" and holes:
            yield from _voiding(self._array, pending.axis, holes[0])
            return True
        if self._holes.policy == "wait":
            if not self._warned:
                self._warned = True
                warn(f"{self._told(pending, holes)}; waiting for it", ZarrRuntimeWarning)
            return False
        stored = "" if mine is None else f"; rows {mine.start} to {mine.stop} are stored, and seen once it has ended"
        raise ConflictError(
            self._told(pending, holes) + stored,
            store=self._array.store.url,
            path=self._array.name,
            hint="If no process works on it any more, `tessarr repair` ends it"
            + ("" if closed else "; so does on_hole='void'"),
        )

    def _told(self, pending: Reservations, holes: tuple[Region, ...]) -> str:
        if not holes:
            return f"a resize of {self._array.name} has not ended"
        return f"an append that reserved rows {holes[0].start} to {holes[0].stop} of {self._array.name} has not ended"
