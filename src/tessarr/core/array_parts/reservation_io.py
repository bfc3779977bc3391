"""Read the stored reservations of an array, and change them by compare-and-swap.

Zarr v3: the reservations are in ``zarr.json`` itself, so that one update changes reservations and shape.

Zarr v2: documents cannot have additional members. The reservations are in a separate object beside ``.zarray``, called
``.tessarr_append``, which other readers ignore. No update changes two objects at once, so the order matters: the region is
removed from the reservations first, then the shape is updated to match, and only then are the reservations emptied. A reader
or writer that finds a shape without rows of the reservations (its writer died in between) updates the shape. The empty object
stays as a counter, so that no earlier version of the object recurs (the ABA problem). It also holds the shape of the document
at the last change of the reservations: a smaller shape after it is that of an array that replaced this one, and stays as it is.

Callers see both alike: one document that has a shape and, while an append or a resize is pending, the member
`tessarr.metadata.reservations.MEMBER`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from operator import not_
from typing import TYPE_CHECKING, Any

from tessarr.core.asynchronous.clock import Attempt
from tessarr.core.asynchronous.sans_io import store_call
from tessarr.core.stored import metadata_io
from tessarr.core.stored.consolidated import follow_change_steps
from tessarr.errors import ConflictError, StaleNodeError, UnsupportedOperationError
from tessarr.metadata import formats, reservations, serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.reservations import MEMBER
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.types import Buffer

if TYPE_CHECKING:
    from tessarr.core.array import Array

BESIDE = ".tessarr_append"
"""Key of the object that holds the reservations of a Zarr v2 array, relative to the node."""
_EPOCH = "epoch"
_SHAPE = "shape"
_DOCUMENT = ".zarray"

Document = dict[str, Any]
Change = Callable[[Document], Document | None]
"""Makes the new document; ``None`` leaves the stored one unchanged. May be called several times."""


class _UnchangedError(Exception):
    """End an update that has nothing to change."""


class _StaleError(Exception):
    """End an update that began from reservations which another writer has replaced."""


async def change_reservations_steps(
    array: Array, change: Change, *, publish: bool = False, attempt: Attempt | None = None
) -> Document:
    """Change the reservations of `array` in one update. Returns the document after the update.

    With `publish` the change may concern the shape, and consolidated metadata above is updated too. The update is a call of
    `attempt`, and so runs to its end when the caller is cancelled.
    """
    attempt = attempt or Attempt()

    def wanted(document: Document) -> Document | None:
        new = change(document)
        if new is not None:
            attempt.begin()
        return new

    if array._metadata.zarr_format == 3:
        return await _change_document_steps(array, wanted, publish, attempt)
    await _catch_up_steps(array)
    document = await _change_beside_steps(array, wanted, attempt)
    return await _catch_up_steps(array) if publish else document


async def read_reservations_steps(array: Array) -> Document:
    """Read the document with the reservations; ``{}`` when there is no document."""
    if array._metadata.zarr_format != 3:
        return await _catch_up_steps(array)
    key = f"{prefix_of(array.path)}zarr.json"
    data = await _get_steps(array._store, key)
    return {} if data is None else _loads("zarr.json", data, key)


def _get(store: Store, key: str) -> Buffer | None:
    """Read a value that other writers change, not from a cache."""
    store._invalidate_cached(key, not_)
    return store.get(key)


async def _get_steps(store: Store, key: str) -> Buffer | None:
    """Read a value as `_get` does."""
    store._invalidate_cached(key, not_)
    data: Buffer | None = await store_call(store, "get", key)
    return data


def refuse_format_1(array: Array, changes: str, otherwise: str) -> None:
    """Raise `UnsupportedOperationError` for Zarr v1, for which tessarr stores no reservations."""
    if array._metadata.zarr_format == 1:
        raise UnsupportedOperationError(
            f"{changes} Zarr v1 arrays are not safe in a store whose locks do not reach other machines",
            store=array._store.url,
            path=array.name,
            hint=f"Rewrite the metadata as Zarr v3 first (tessarr migrate), or {otherwise}",
        )


def metadata_of(array: Array, document: Document) -> ArrayMetadata:
    """Parse the metadata of the array that `document` describes. Raises `ConflictError` when that is a group."""
    if array._metadata.zarr_format == 3:
        node = formats.parse_node(3, {"zarr.json": document}).node
    else:
        rest = {name: value for name, value in document.items() if name != MEMBER}
        node = formats.parse_node(2, {_DOCUMENT: rest}).node
    if not isinstance(node, ArrayMetadata):
        raise ConflictError("a group replaced the array", store=array._store.url, path=array.name)
    if node.zarr_format == 3:
        return node
    if node.dtype != array._metadata.dtype:
        return node
    return array._metadata.with_(shape=node.shape)


# -- Zarr v3 -----------------------------------------------------------------------------------------------------------


async def _change_document_steps(array: Array, change: Change, publish: bool, attempt: Attempt) -> Document:
    found: list[Document] = []

    def rewrite(document: Document) -> Document:
        new = change(document)
        found[:] = [document if new is None else new]
        if new is None:
            raise _UnchangedError
        return new

    place = (array._store, array.path)
    try:
        await metadata_io.rewrite_document_steps(
            *place, array._metadata, rewrite, follow=publish, sent=attempt.shielded
        )
    except _UnchangedError:
        if publish:
            await follow_change_steps(*place)
    return found[0]


# -- Zarr v2 -----------------------------------------------------------------------------------------------------------


def parse_separate_member(data: Buffer, key: str) -> Document:
    """Parse the object `BESIDE` that is stored under `key`: the member that it stands for, empty where nothing is pending."""
    return _member(_record(data, key))


def _loads(name: str, data: Buffer, key: str) -> Document:
    document = formats.loads(name, data, key=key)
    return document if isinstance(document, dict) else {}


def _record(data: Buffer | None, key: str) -> Document:
    return {_EPOCH: 0} if data is None else {_EPOCH: 0, **_loads("zarr.json", data, key)}


def _member(record: Document) -> Document:
    return {name: value for name, value in record.items() if name not in (_EPOCH, _SHAPE)}


def _joined(document: Document, record: Document) -> Document:
    member = _member(record)
    return {**document, MEMBER: member} if member and document else document


async def _read_both_steps(array: Array) -> Document:
    prefix = prefix_of(array.path)
    # The reservations first: the shape that is read after them includes every region published before them.
    beside = await _get_steps(array._store, prefix + BESIDE)
    while True:
        data = await _get_steps(array._store, prefix + _DOCUMENT)
        document = {} if data is None else _loads(_DOCUMENT, data, prefix + _DOCUMENT)
        joined = _joined(document, _record(beside, prefix + BESIDE))
        if not _is_ahead(joined):
            return joined
        before = beside
        beside = await _get_steps(array._store, prefix + BESIDE)
        if _same(before, beside):
            return joined


async def _change_beside_steps(array: Array, change: Change, attempt: Attempt) -> Document:
    """Change the object beside the document. Of a new shape only the length to reach (``stop``) is stored here."""
    store, prefix = array._store, prefix_of(array.path)
    found: list[Document] = []

    def rewrite(old: Buffer | None) -> bytes:
        record = _record(old, prefix + BESIDE)
        data = _get(store, prefix + _DOCUMENT)  # after the reservations, see `_read_both_steps`
        document = _joined({} if data is None else _loads(_DOCUMENT, data, prefix + _DOCUMENT), record)
        if _is_ahead(document) and not _same(old, _get(store, prefix + BESIDE)):
            raise _StaleError
        new = change(document)
        found[:] = [document if new is None else new]
        if new is None:
            raise _UnchangedError
        member = dict(new.get(MEMBER) or {})
        for axis, (before, after) in enumerate(zip(document["shape"], new["shape"], strict=True)):
            if before != after and "stop" not in member:
                member |= {"axis": axis, "stop": after}
        known = {_SHAPE: document["shape"]} if member else {}
        return serialize.dumps({BESIDE: {**member, **known, _EPOCH: record[_EPOCH] + 1}})[BESIDE]

    while True:
        try:
            await attempt.shielded(store_call(store, "update", prefix + BESIDE, rewrite))
        except _StaleError:
            continue
        except _UnchangedError:
            return found[0]
        else:
            return found[0]


def _is_ahead(document: Document) -> bool:
    """Whether the shape is ahead of the reservations: they were read too early, or another library changed the shape."""
    pending = reservations.parse(document)
    return pending is not None and document["shape"][pending.axis] > pending.published()


def _same(a: Buffer | None, b: Buffer | None) -> bool:
    return (a is None) == (b is None) and (a is None or b is None or bytes(a) == bytes(b))


async def _catch_up_steps(array: Array) -> Document:
    """Update the shape to match the reservations, then empty the reservations if none is pending."""
    store, prefix = array._store, prefix_of(array.path)
    document = await _read_both_steps(array)
    pending = reservations.parse(document)
    if pending is None or document["shape"][pending.axis] >= pending.published():
        if pending is None or pending.reserved or "stop" not in document[MEMBER]:
            return document
    else:

        def follow(stored: Document) -> Document:
            record = _record(_get(store, prefix + BESIDE), prefix + BESIDE)
            now = reservations.parse(_joined(stored, record))
            if now is None or stored["shape"][now.axis] >= now.published():
                raise _UnchangedError
            if not _is_same_array(array, stored, record, now.axis):
                latest = _loads(_DOCUMENT, _get(store, prefix + _DOCUMENT) or b"{}", prefix + _DOCUMENT)
                if latest.get("shape") != stored["shape"]:  # it was read before the reservations
                    raise _StaleError
                raise _replaced_error(array, record, stored)
            shape = list(stored["shape"])
            shape[now.axis] = now.published()
            return {**stored, "shape": shape}

        try:
            await metadata_io.rewrite_document_steps(store, array.path, array._metadata, follow)
        except _StaleError:
            return await _catch_up_steps(array)
        except _UnchangedError:
            pass

    def forget(old: Buffer | None) -> bytes:
        record = _record(old, prefix + BESIDE)
        data = _get(store, prefix + _DOCUMENT)
        stored = {} if data is None else _loads(_DOCUMENT, data, prefix + _DOCUMENT)
        now = reservations.parse(_joined(stored, record))
        if now is None or now.reserved or "stop" not in record or stored["shape"][now.axis] < now.stop:
            raise _UnchangedError
        return serialize.dumps({BESIDE: {**(now.to_json(now.stop) or {}), _EPOCH: record[_EPOCH] + 1}})[BESIDE]

    with suppress(_UnchangedError):
        await store_call(store, "update", prefix + BESIDE, forget)
    return await _read_both_steps(array)


def _is_same_array(array: Array, stored: Document, record: Document, axis: int) -> bool:
    """Whether the document is that of the array to which the reservations belong, as far as it shows.

    Data type, chunks and codecs of an array never change. The shape has none but the length of `axis` to catch up with, and was
    never smaller since the reservations were changed.
    """
    shape, before = stored["shape"], record.get(_SHAPE)
    if isinstance(before, list) and len(before) == len(shape):
        pairs = enumerate(zip(shape, before, strict=True))
        if not all(now >= old if number == axis else now == old for number, (now, old) in pairs):
            return False
    node, mine = formats.parse_node(2, {_DOCUMENT: stored}).node, array._metadata
    return isinstance(node, ArrayMetadata) and (node.data_type, node.chunk_grid, node.codecs) == (
        mine.data_type,
        mine.chunk_grid,
        mine.codecs,
    )


def _replaced_error(array: Array, record: Document, stored: Document) -> StaleNodeError:
    return StaleNodeError(
        "another array replaced this one, to which rows were being appended",
        store=array._store.url,
        path=array.name,
        expected=f"the shape {record.get(_SHAPE)} or more rows, and the data type, chunks and codecs of this array",
        got=f"the shape {stored['shape']}",
        hint="The rows are not in the new array: open it, and append again",
    )
