"""`N5Store`: a store of Zarr v3 over an N5 container.

Documents are converted (`tessarr.metadata.n5`); blocks stay unchanged, and are read and written by the codec
``n5_default``. Every directory is a group, with or without ``attributes.json``. Groups that describe resolution levels in one
of the dialects of N5 (`tessarr.metadata.n5_dialects`) have the attributes of an OME-Zarr image besides, which are not stored.

>>> from tessarr.stores.memory.store import MemoryStore
>>> inner = MemoryStore({"attributes.json": b'{"n5": "4.0.0", "title": "cells"}'})
>>> bytes(N5Store(inner).get("zarr.json"))
b'{"zarr_format":3,"node_type":"group","attributes":{"title":"cells"}}'

Java's N5 locks by ``fcntl``, tessarr by ``flock``: on Linux these do not exclude each other, so do not write one dataset with
both concurrently.

Source: N5 4.0; zarr-extensions, "n5_default" ("N5 Default Store", "Implicit Group Store").
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from tessarr.common import strict_json
from tessarr.errors import CodecError, MetadataValidationError, UnsupportedOperationError
from tessarr.metadata import n5, n5_dialects
from tessarr.stores.base import ANY, Any_, Fetch, Listing, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.functions import fetch_one
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import fallback
from tessarr.stores.virtual.container import ContainerStore
from tessarr.types import Buffer, ByteRange, JSONObject

_ZARR_DOCUMENT = "zarr.json"
_LEVEL = re.compile(r"(.*/)?(s[0-9]+)/")
_TIMEPOINT = re.compile(r"(.*/)?timepoint[0-9]+/")
_LEVELS_AT_ONCE = 8
_MOST_LEVELS = 64
_CLAIMS = ".tessarr_"
"""The names of objects by which clients agree begin so; a directory with no others is of a node that is made or removed."""
_FOREIGN_DOCUMENTS = frozenset((".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs"))
"""Documents of other formats, which an N5 container does not have."""


class N5Store(ContainerStore):
    """The N5 container in `store` (a path, a URL, a mapping, a store).

    `axis_order` is ``"C"`` (slowest axis first, as in zarr-python 2) or ``"F"`` (N5's order, as in Java and TensorStore).
    Arrays are created by `tessarr.create_n5`; creating any other array is an error before anything is written.
    """

    adapter = "n5"

    # -- documents -------------------------------------------------------------------------------------------------

    def _attributes(self, prefix: str) -> JSONObject | None:
        return _parse(self.store.get(prefix + n5.DOCUMENT), prefix)

    def _readable(self, prefix: str) -> JSONObject:
        """Return the attributes of a directory that only describe another one; {}: there are none, or they are malformed."""
        try:
            return self._attributes(prefix) or {}
        except MetadataValidationError:
            return {}

    def _described(self, prefix: str, attributes: JSONObject) -> JSONObject:
        """Return the attributes of an image that the group at `prefix` has in the terms of another dialect."""
        inner = "data/" if "painteraData" in attributes else ""
        place = self._readable(prefix + inner) if inner else attributes
        levels = self._levels(prefix + inner)
        within = _TIMEPOINT.fullmatch(prefix)
        above = self._readable(within[1] or "") if within is not None and levels else {}
        named = {inner + name: level for name, level in levels.items()}
        return n5_dialects.described({**place, **attributes}, named, above, self.axis_order)

    def _levels(self, prefix: str) -> dict[str, JSONObject]:
        """Return the attributes of the datasets s0, s1, … below `prefix`, read together."""
        found: dict[str, JSONObject] = {}
        while len(found) < _MOST_LEVELS:
            names = [f"s{number}" for number in range(len(found), len(found) + _LEVELS_AT_ONCE)]
            answers = self.store.fetch([Fetch(f"{prefix}{name}/{n5.DOCUMENT}") for name in names])
            for name, answer in zip(names, answers, strict=True):
                try:
                    attributes = _parse(None if answer is None else answer[0], f"{prefix}{name}/")
                except MetadataValidationError:  # an error of the level, not of the group
                    return found
                if attributes is None or not n5.is_dataset(attributes):
                    return found
                found[name] = attributes
        return found

    def _names(self, prefix: str, attributes: JSONObject) -> list[str] | None:
        """Return the names of the axes of a level that only the group around it names, slowest first."""
        level = _LEVEL.fullmatch(prefix)
        if level is None or "axes" in attributes:
            return None
        group = level[1] or ""
        return n5_dialects.names_of(self._described(group, self._readable(group)), level[2])

    def _converted(self, prefix: str, attributes: JSONObject) -> JSONObject:
        """Make the v3 document of the directory `prefix`."""
        if n5.is_dataset(attributes):
            return n5.to_zarr(attributes, self.axis_order, self._names(prefix, attributes))
        document = n5.to_zarr(attributes, self.axis_order)
        return {**document, "attributes": {**n5.own_attributes(attributes), **self._described(prefix, attributes)}}

    def _document(self, prefix: str) -> bytes | None:
        """Return the v3 document of the directory `prefix`; ``None``: there is no node."""
        attributes = self._attributes(prefix)
        if attributes is None:
            listing = self.store.list_dir(prefix)
            values = [key for key in listing.keys if not key.rpartition("/")[2].startswith(_CLAIMS)]
            if not (values or listing.prefixes) or self._is_within_dataset(prefix):
                return None
            attributes = {}
        try:
            return _dump(self._converted(prefix, attributes))
        except MetadataValidationError as error:
            raise error.at(store=self.url, key=prefix + n5.DOCUMENT) from None

    def _is_within_dataset(self, prefix: str) -> bool:
        """Return whether `prefix` is a directory of blocks."""
        segments = prefix.rstrip("/").split("/")[:-1] if prefix else []
        above = ["", *("/".join(segments[: end + 1]) for end in range(len(segments)))] if prefix else []
        return any(n5.is_dataset(self._attributes(prefix_of(path)) or {}) for path in above)

    def _node_prefix(self, key: str) -> str | None:
        """Return the prefix of the node whose document is at `key`; ``None`` for a key of a block."""
        prefix, name = key[: key.rfind("/") + 1], key.rpartition("/")[2]
        return prefix if name == _ZARR_DOCUMENT else None

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        prefix = self._node_prefix(key)
        if prefix is None:
            hidden = key.rpartition("/")[2] in _FOREIGN_DOCUMENTS or key.endswith(n5.DOCUMENT)
            found = None if hidden else self.store.get(key, byte_range)
            return found if found is None or byte_range is not None else self._block(key, found)
        document = self._document(prefix)
        if document is None or byte_range is None:
            return document
        return document[slice(*byte_range.bounds(len(document)))]

    def fetch(self, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
        """See `Store.fetch`: one `fetch` of the wrapped store requests all blocks."""
        blocks = [number for number, request in enumerate(requests) if not self._is_document(request.key)]
        answers: list[list[Buffer] | None] = [None] * len(requests)
        found = self.store.fetch([requests[number] for number in blocks]) if blocks else []
        for number, answer in zip(blocks, found, strict=True):
            answers[number] = answer
            if answer is not None and requests[number].ranges is None:
                answer[0] = self._block(requests[number].key, answer[0])
        for number, request in enumerate(requests):
            if self._is_document(request.key):
                answers[number] = fetch_one(self, request)
        return answers

    def _block(self, key: str, value: Buffer) -> Buffer:
        """Return a whole block; one of numbers that states how many they are (mode 1) as one in the default mode.

        Raises `CodecError` for another number than the shape of the block has.
        """
        view = byte_view(value)
        if bytes(view[:2]) != b"\0\1" or view.nbytes < 4:
            return value
        ndim = int.from_bytes(view[2:4], "big")
        size = 4 + 4 * ndim
        attributes = self._attributes(prefix_of("/".join(key.split("/")[:-ndim]))) if ndim else None
        if attributes is None or not n5.is_dataset(attributes) or view.nbytes < size + 4:
            return value
        if attributes["dataType"] in ("string", "object"):
            return value
        *sizes, count = struct.unpack_from(f">{ndim + 1}I", view, 4)
        if count != prod(sizes):
            what = "an N5 block of numbers has another number of them than its shape"
            raise CodecError(what, codec="n5_default", store=self.url, key=key, expected=prod(sizes), got=count)
        return b"\0\0" + bytes(view[2:size]) + bytes(view[size + 4 :])

    def _is_document(self, key: str) -> bool:
        name = key.rpartition("/")[2]
        return name in (_ZARR_DOCUMENT, n5.DOCUMENT) or name in _FOREIGN_DOCUMENTS

    def _to_n5(self, prefix: str, value: Buffer, old: Buffer | None) -> bytes:
        old_attributes = _parse(old, prefix) or {}
        document = strict_json.loads(value, key=prefix + _ZARR_DOCUMENT)
        if not isinstance(document, dict):
            raise MetadataValidationError(
                "a document is a JSON object", key=prefix + _ZARR_DOCUMENT, got=type(document).__name__
            )
        if document.get("node_type") != "array" and isinstance(document.get("attributes"), dict):
            added = self._described(prefix, old_attributes)
            kept = {name: value for name, value in document["attributes"].items() if added.get(name) != value}
            document = {**document, "attributes": kept}
        names = self._names(prefix, old_attributes) if n5.is_dataset(old_attributes) else None
        converted = n5.to_n5(document, self.axis_order, old_attributes, names)
        return _dump({"n5": n5.VERSION, **converted} if prefix == "" and "n5" not in converted else converted)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        """See `Store.set`. Raises `MetadataValidationError` for a document that N5 cannot represent."""
        self._check_writable(key)
        prefix = self._node_prefix(key)
        if prefix is None:
            return self.store._set_if_match(key, value, if_match)
        converted = self._to_n5(prefix, value, self.store.get(prefix + n5.DOCUMENT))
        return self.store._set_if_match(prefix + n5.DOCUMENT, converted, if_match)

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        """See `Store.set_if_not_exists`. A directory without attributes has no document, though it is a group: a node whose
        blocks are there already gets one."""
        self._check_writable(key)
        prefix = self._node_prefix(key)
        if prefix is None:
            return self.store.set_if_not_exists(key, value)
        return self.store.set_if_not_exists(prefix + n5.DOCUMENT, self._to_n5(prefix, value, None))

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """See `Store.update`: under the lock of the wrapped store."""
        self._check_writable(key)
        prefix = self._node_prefix(key)
        if prefix is None:
            self.store.update(key, lambda old: change(None if old is None else self._block(key, old)))
            return

        def changed(old: Buffer | None) -> Buffer | None:
            attributes = _parse(old, prefix)
            document = None if attributes is None else _dump(self._converted(prefix, attributes))
            new = change(document if document is not None else self._document(prefix))
            return None if new is None else self._to_n5(prefix, new, old)

        self.store.update(prefix + n5.DOCUMENT, changed)

    def delete(self, key: str) -> None:
        self._check_writable(key)
        prefix = self._node_prefix(key)
        self.store.delete(key if prefix is None else prefix + n5.DOCUMENT)

    def exists(self, key: str) -> bool:
        return self.get(key) is not None if self._is_document(key) else self.store.exists(key)

    def lock(self, key: str) -> Any:
        prefix = self._node_prefix(key)
        return self.store.lock(key if prefix is None else prefix + n5.DOCUMENT)

    # -- listing ---------------------------------------------------------------------------------------------------

    def _zarr_key(self, key: str) -> str:
        return (
            key[: -len(n5.DOCUMENT)] + _ZARR_DOCUMENT if key == n5.DOCUMENT or key.endswith("/" + n5.DOCUMENT) else key
        )

    def list(self, prefix: str = "") -> Iterator[str]:
        return map(self._zarr_key, filter(_is_of_n5, self.store.list_prefix(prefix)))

    def list_dir(self, prefix: str) -> Listing:
        listing = self.store.list_dir(prefix)
        return Listing(sorted(map(self._zarr_key, filter(_is_of_n5, listing.keys))), listing.prefixes)

    # -- abilities that a container does not have ------------------------------------------------------------------

    @fallback
    def version(self, key: str) -> None:
        """Return ``None``: the document of a node depends on other documents, and on the files in its directory."""

    @fallback
    def delete_if(self, key: str, version: Version | None) -> None:
        raise UnsupportedOperationError("an N5 container has no conditional deletion", store=self.url, key=key)

    @fallback
    def rename_prefix(self, source: str, dest: str) -> bool:
        """Return ``False``: the documents of an N5 node are made of others, so that a node is copied."""
        return False


class N5FSStore(N5Store):
    """zarr-python 2's name of `N5Store` for containers that fsspec opens."""


def _is_of_n5(key: str) -> bool:
    """Whether a key is not a document of Zarr, which a bridge has written beside those of N5."""
    return key.rpartition("/")[2] not in (_ZARR_DOCUMENT, *_FOREIGN_DOCUMENTS)


def _parse(data: Buffer | None, prefix: str) -> JSONObject | None:
    """Parse the attributes of the directory `prefix`."""
    if data is None:
        return None
    found = strict_json.loads(data, key=prefix + n5.DOCUMENT, allow_nan=True)
    if not isinstance(found, dict):
        raise MetadataValidationError(f"{prefix}{n5.DOCUMENT} is not a JSON object", key=prefix + n5.DOCUMENT)
    return found


def _dump(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
