"""Write the documents of new nodes, each only where no other writer has created one."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType

from tessarr.core import open_transactions
from tessarr.core.asynchronous.sans_io import run_steps, store_call
from tessarr.core.claims.intents import CLAIM
from tessarr.core.claims.new_nodes import put_back_steps
from tessarr.core.claims.settle import await_end_steps, swap_settled_steps
from tessarr.core.stored.consolidated import follow_change_steps
from tessarr.core.stored.read_nodes import NodeMetadata
from tessarr.core.stored.walk import Entry, read_entries_steps
from tessarr.errors import MetadataValidationError, MixedFormatsError
from tessarr.metadata import consolidated, formats, reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Fetch, Store
from tessarr.stores.functions import publishes
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import PlainFiles
from tessarr.types import JSON, Buffer, JSONObject, ZarrFormat

_NOTHING: Mapping[str, bytes] = MappingProxyType({})
MAKE_NODES = frozenset(name for keys in formats.KEYS.values() for name in keys[:2] if name)
"""The names of the documents that each make a node, of all formats."""


async def write_new_steps(
    store: Store,
    path: str,
    documents: Mapping[str, bytes],
    *,
    replace: bool,
    above: Sequence[str] = (),
    formats_in_the_way: Sequence[int] = (3, 2),
    stored: Mapping[str, bytes] = _NOTHING,
    is_same: Callable[[bytes, Buffer], bool] = lambda own, now: bytes(now) == own,
) -> str | None:
    """Write the documents of a new node at `path`, or of a hierarchy of new nodes; with `replace` over those that are there.

    `documents`: full key → value, in the order of writing. Without `replace` each document is created only where there is none;
    else those that were created are removed again, and the path of the node that is in the way is returned. Where only some
    documents of a node are there, another writer is creating it, or was killed. Where a transaction is creating a node at
    `path`, or where groups were made just now (`above`), this waits for its end. `formats_in_the_way`: the formats whose
    documents at `path` make another node, beside which this one cannot be. `stored`: documents of the new node that are there.
    `is_same`: whether what is there after the last document was created is that document.
    """
    names = dict.fromkeys(name for number in formats_in_the_way for name in formats.KEYS[number][:2] if name)
    others = [prefix_of(path) + name for name in names]
    while True:
        other, claims = await _try_steps(store, path, documents, replace, above, others, stored, is_same)
        if not claims:
            return other
        for claim, data in claims.items():
            place = claim.removesuffix(CLAIM).rstrip("/")
            if not await await_end_steps(store, claim, data):
                return place
            (entry,) = await read_entries_steps(store, [place])
            if place != path and entry.kind == "array":
                return place
        above = ()


def create_document(store: Store, key: str, data: bytes, *, formats_in_the_way: Sequence[int]) -> bool:
    """Write the document at `key` only where there is none. Returns whether it was written.

    Where it makes a node, it is not written beside those of `formats_in_the_way`, and a transaction that is creating a node
    there is waited for. That of an array counts as written if another client has changed attributes or shape since.
    """
    return run_steps(_create_document_steps(store, key, data, formats_in_the_way))


async def _create_document_steps(store: Store, key: str, data: bytes, formats_in_the_way: Sequence[int]) -> bool:
    path, _, name = key.rpartition("/")
    if name not in MAKE_NODES:
        return bool(await store_call(store, "set_if_not_exists", key, data))
    attributes, stored = f"{prefix_of(path)}{formats.KEYS[2].attributes}", {}
    if name in formats.KEYS[2] and (found := await store_call(store, "get", attributes)) is not None:
        stored = {attributes: bytes(found)}
    in_the_way = await write_new_steps(
        store,
        path,
        {key: data},
        replace=False,
        formats_in_the_way=formats_in_the_way,
        stored=stored,
        is_same=is_same_node,
    )
    return in_the_way is None


def refuse_mixing(store: Store, path: str, zarr_format: int, entries: Sequence[Entry], *, newer: bool) -> None:
    """Raise `MixedFormatsError` for a new node at `path`, the last of `entries`, that is not found from any group above.

    Members are looked for in the newest format of the group that is opened. With `newer` the group above may have a newer
    format as well. zarr-python makes such nodes, and so does tessarr with the setting ``zarr_python.both_formats``.
    """
    groups = [entry for entry in reversed(entries[:-1]) if entry.kind == "group"]
    if not groups or zarr_format == 1 or settings.get("zarr_python.both_formats"):
        return
    leading = takewhile(lambda group: zarr_format in group.formats, groups)
    if any(newer or group.formats[0] == zarr_format for group in leading):
        return
    newest = groups[0].formats[0]
    raise MixedFormatsError(
        "a node of another format than the group above is not found there",
        store=store.url,
        path=f"/{path}",
        expected=f"Zarr v{newest}, as '/{groups[0].path}'",
        got=f"Zarr v{zarr_format}",
        hint=f"Give zarr_format={newest}, or migrate the group first. Nothing was changed",
    )


def may_be_beside(there: Entry, zarr_format: ZarrFormat, documents: Mapping[str, bytes]) -> bool:
    """Whether a node that `documents` describe (see `create_documents_steps`) may be made beside one of the other format.

    Only where the setting says so and neither node can change what is read of the other: two groups; two arrays whose chunks
    have different keys; two arrays that are the same, so that one is the other in a newer format.
    """
    if not settings.get("zarr_python.both_formats") or zarr_format not in (2, 3) or there.formats != (5 - zarr_format,):
        return False
    new = Entry(there.path, {key.removeprefix(there.prefix): value for key, value in documents.items()})
    if new.kind != there.kind or new.kind is None or not there.values.keys() <= {"zarr.json", ".zarray", ".zgroup"}:
        return False
    if new.kind == "group":
        return True
    v3, v2 = (new, there) if zarr_format == 3 else (there, new)
    newer = formats.parse_node(3, v3.documents(3)).node
    assert isinstance(newer, ArrayMetadata)
    if newer.chunk_key_encoding.name == "default" and not newer.storage_transformers:
        return True
    from tessarr.model.conversion.upgrade import array_to_v3

    older = formats.parse_node(2, {".zarray": v2.json(".zarray")}).node
    try:
        upgraded = array_to_v3(older).metadata  # type: ignore[arg-type]  # a group has no .zarray
    except MetadataValidationError:
        return False
    return _same_elements(upgraded, newer)


def _same_elements(array: ArrayMetadata, other: ArrayMetadata) -> bool:
    """Whether the same chunks are the same elements of both."""
    fill, other_fill = (metadata.to_dict()["fill_value"] for metadata in (array, other))
    return array.shape == other.shape and fill == other_fill and chunk_layout(array) == chunk_layout(other)


def chunk_layout(metadata: NodeMetadata) -> dict[str, JSON]:
    """Return the members of a document by which chunks are found and decoded, whatever the shape of the array is."""
    other = ("shape", "fill_value", "attributes", "dimension_names")
    return {name: value for name, value in metadata.to_dict().items() if name not in other}


def formats_beside(key: str, keys: Container[str]) -> Sequence[int]:
    """Return the formats whose documents may not be beside a copy of the one at `key`: none where the node is described in two,
    among `keys`."""
    prefix = key.removesuffix(key.rpartition("/")[2])
    return () if sum(prefix + name in keys for name in MAKE_NODES) > 1 else (3, 2)


def attributes_to_look_for(path: str, documents: Mapping[str, bytes]) -> list[str]:
    """Return the name of the document whose attributes a new node at `path`, which has none, would get if they were there."""
    of_v2 = any(prefix_of(path) + str(name) in documents for name in formats.KEYS[2][:2])
    name = str(formats.KEYS[2].attributes)
    return [name] if of_v2 and prefix_of(path) + name not in documents else []


async def remove_old_attributes_steps(store: Store, before: Entry, names: Sequence[str]) -> None:
    """Remove attributes, called one of `names`, that were there `before` a new node was made, without a node.

    In object storage those of a removed node stay, if another writer has set them while its other keys were removed.
    """
    for name in names if before.kind is None else ():
        if old := before.values.get(name):
            await swap_settled_steps(store, before.prefix + name, old, None)


async def _try_steps(
    store: Store,
    path: str,
    documents: Mapping[str, bytes],
    replace: bool,
    above: Sequence[str],
    others: Sequence[str],
    stored: Mapping[str, bytes],
    is_same: Callable[[bytes, Buffer], bool],
) -> tuple[str | None, dict[str, Buffer]]:
    """Write the documents. Returns the path of the node in the way, and the claims of transactions, by key."""
    *before, (own_key, own) = documents.items()
    made: dict[str, bytes] = {}
    for key, data in before:
        below = key.rpartition("/")[0]
        if replace:
            await store_call(store, "set", key, data)
        elif await store_call(store, "set_if_not_exists", key, data):
            made[key] = data
        else:
            return await remove_made_steps(store, made, below), {}
    if replace:
        await store_call(store, "set", own_key, own)
        return None, {}
    if not await store_call(store, "set_if_not_exists", own_key, own):
        return await remove_made_steps(store, made, path), {}
    own_documents = {**stored, **documents}
    # A document of another name makes a node too, of another format or kind, which no condition on this one notices.
    others = [key for key in others if key != own_key]
    if not publishes(store):
        # Only plans have claims there; in a directory their tasks write beside the place. A commit looks for itself.
        looks = not isinstance(store, PlainFiles) and not open_transactions.is_overlay(store)
        claims_there = [prefix_of(path) + CLAIM] if looks else []
        answers = await store_call(store, "fetch", [Fetch(key) for key in (*others, *claims_there)])
        found = any(_are_in_the_way(path, own_documents, others, answers[: len(others)])) or any(answers[len(others) :])
        return (await remove_made_steps(store, {**made, own_key: own}, path) if found else None), {}
    # A transaction that has claimed the node finds the document before it commits, or replaces it afterwards.
    places = [prefix_of(place) + CLAIM for place in (path, *above)]
    now, *answers = await store_call(store, "fetch", [Fetch(key) for key in (own_key, *others, *places)])
    in_the_way = [*_are_in_the_way(path, own_documents, others, answers[: len(others)]), *answers[len(others) :]]
    if not any(in_the_way) and now is not None and is_same(own, now[0]):
        return None, {}
    claims = {key: answer[0] for key, answer in zip(places, answers[len(others) :], strict=True) if answer}
    return await remove_made_steps(store, {**made, own_key: own}, path), claims


def _are_in_the_way(
    path: str, documents: Mapping[str, bytes], keys: Sequence[str], answers: Sequence[Sequence[Buffer] | None]
) -> Iterator[bool]:
    """Say of documents beside those of the new node at `path` whether they make another node.

    One of Zarr v3 may be what a migration has made of the node's own, since these were stored.
    """
    prefix = prefix_of(path)
    for key, answer in zip(keys, answers, strict=True):
        if answer is not None and key == f"{prefix}zarr.json":
            from tessarr.model.conversion.upgrade import is_upgrade

            own = {other.removeprefix(prefix): value for other, value in documents.items() if other.startswith(prefix)}
            yield not is_upgrade(answer[0], own)
        else:
            yield answer is not None


async def remove_made_steps(store: Store, made: Mapping[str, bytes], other: str) -> str:
    """Remove the documents that were created, unless another client has replaced them, and return the path `other`."""
    if made:
        for key, value in made.items():
            await put_back_steps(store, key, value)
        paths = list(dict.fromkeys(key.rpartition("/")[0] for key in made))
        await follow_change_steps(store, other, below=paths)
    return other


def is_same_node(data: bytes, stored: Buffer) -> bool:
    """Whether a document is that of the array that `data` described, which may have been changed since."""
    if bytes(stored) == data:
        return True
    try:  # of a group nothing is left that tells it from another one
        return b'"shape"' in data and layout_of(data) == layout_of(stored)
    except (ValueError, AttributeError):  # not an object of JSON
        return False


def layout_of(document: Buffer, *further: str) -> JSONObject:
    """Return what does not change in the document of an array, or in one of Zarr v3, while it describes the same node, and
    `further` members."""
    changing = {"attributes", "shape", consolidated.FIELD, reservations.MEMBER} - {*further}
    return {name: member for name, member in json.loads(bytes(document)).items() if name not in changing}
