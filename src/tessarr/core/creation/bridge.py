"""Describe an N5 container as Zarr v3 beside its N5 documents, or Zarr v3 as N5: both read the same blocks.

A dataset becomes an array with the codec ``n5_default``, in N5's order of axes, as zarr-extensions describes such arrays. An
array becomes a dataset if its chunks are blocks of N5 under N5's keys. Nothing is copied.

>>> import tessarr
>>> values = {}
>>> tessarr.create_n5(values, path="s0", shape=(6, 4), chunks=(3, 2), dtype="uint16")[...] = 5
>>> bridge(values)
['s0/zarr.json', 'zarr.json']
>>> tessarr.open_group(values, mode="r", zarr_format=3)["s0"].shape
(4, 6)

Each description has attributes of its own from then on: after changing those of one, bridge again with `overwrite`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tessarr.common import strict_json
from tessarr.core.locate import locate
from tessarr.core.open import open_group
from tessarr.core.stored.metadata_io import put_document
from tessarr.errors import BaseZarrError, MetadataValidationError, NodeNotFoundError, Problem
from tessarr.metadata import n5
from tessarr.stores.base import Store
from tessarr.stores.path import StorePath, prefix_of
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.n5 import N5Store
from tessarr.types import JSON, JSONObject

_ZARR = "zarr.json"


def bridge(
    store: StoreLike, *, path: str = "", dry_run: bool = False, overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
) -> list[str]:  # fmt: skip
    """Write the documents of the other format beside those of the group at `path` and of all nodes below it.

    A group with ``zarr.json`` and without ``attributes.json`` is described as N5, any other as Zarr. Returns the keys that are
    written (`dry_run`: would be written), that of the group itself last.

    Raises `MetadataValidationError` listing every array that N5 cannot express, before anything is written; `BaseZarrError`
    for a document of the other format that is there already, unless `overwrite`; `NodeNotFoundError`.
    """
    place, path, _ = locate(store, path, "r" if dry_run else "r+", storage_options)
    place = place.store if isinstance(place, N5Store) else place
    prefix = prefix_of(path)
    is_zarr = place.exists(prefix + _ZARR) and not place.exists(prefix + n5.DOCUMENT)
    documents = _as_n5(place, path) if is_zarr else _as_zarr(place, path)
    taken = [key for key in documents if not overwrite and place.exists(key)]
    keys = sorted(documents, key=lambda key: (-key.count("/"), key))
    for key in () if dry_run or taken else keys:
        data = json.dumps(documents[key], separators=(",", ":"), ensure_ascii=False).encode()
        if not put_document(place, key, data, overwrite=overwrite):
            taken.append(key)
    if taken:
        hint = "Replace it with overwrite=True (--overwrite)"
        raise BaseZarrError("a document of the other format is there", store=place.url, key=taken[0], hint=hint)
    return keys


def _as_zarr(place: Store, path: str) -> dict[str, JSONObject]:
    """Make the documents of Zarr for a container."""
    store = N5Store(StorePath(place, path), axis_order="F", read_only=True)
    found: dict[str, JSONObject] = {}
    for at in ("", *(at for at, _ in open_group(store, mode="r").members(max_depth=None))):
        key = prefix_of(at) + _ZARR
        document = store.get(key)
        if document is None:
            raise NodeNotFoundError("the node was deleted meanwhile", store=place.url, path=f"/{path}")
        parsed: JSONObject = strict_json.loads(document, key=key)
        found[prefix_of(path) + key] = parsed
    return found


def _as_n5(place: Store, path: str) -> dict[str, JSONObject]:
    """Make the documents of N5 for a hierarchy of Zarr v3."""
    root = open_group(place, path=path, mode="r", zarr_format=3)
    top: JSONObject = {"n5": n5.VERSION, **_converted(root._metadata.to_dict())}
    found = {prefix_of(path) + n5.DOCUMENT: top}
    problems: list[Problem] = []
    for at, node in root.members(max_depth=None):
        try:
            found[f"{prefix_of(path)}{at}/{n5.DOCUMENT}"] = _converted(node._metadata.to_dict())
        except MetadataValidationError as error:
            problems += [Problem((at, *one.loc), one.kind, one.message) for one in error.problems]
    if problems:
        hint = "Convert it: tessarr convert SOURCE 'DEST.n5|n5:'"
        raise MetadataValidationError("these arrays are not made of N5's blocks", problems, store=place.url, hint=hint)
    return found


def _converted(document: Mapping[str, JSON]) -> JSONObject:
    """Make the document of N5 for a node, whose axes may be in either order. Raises `MetadataValidationError`."""
    try:
        return n5.to_n5(document, "F", {})
    except MetadataValidationError:
        return n5.to_n5(document, "C", {})
