"""`N5Store`: an N5 container, as a store of Zarr v3.

Documents are translated on their way (`tessarr.metadata.n5`); blocks pass unchanged, and are read and written by the codec
``n5_default``. Every directory is a group, with ``attributes.json`` or without.

>>> from tessarr.stores.memory.store import MemoryStore
>>> inner = MemoryStore({"attributes.json": b'{"n5": "4.0.0", "title": "cells"}'})
>>> bytes(N5Store(inner).get("zarr.json"))
b'{"zarr_format":3,"node_type":"group","attributes":{"title":"cells"}}'

Java's N5 locks by ``fcntl``, tessarr by ``flock``: on Linux they do not see each other, so do not write one dataset with both
at once. Blocks in N5's modes for elements of varying size and for objects are errors.

Source: N5 4.0; zarr-extensions, "n5_default" ("N5 Default Store", "Implicit Group Store").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tessarr.common import strict_json
from tessarr.errors import MetadataValidationError, UnsupportedOperationError
from tessarr.metadata import n5
from tessarr.metadata.n5 import AxisOrder
from tessarr.stores.base import ANY, Any_, Fetch, Listing, Version
from tessarr.stores.functions import fetch_one
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import fallback
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import Buffer, ByteRange

_OURS = "zarr.json"
_NEVER = frozenset((".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs"))
"""Documents of other formats, which an N5 container does not have."""


class N5Store(WrapperStore):
    """The N5 container in `store` (a path, a URL, a mapping, a store).

    `axis_order` is ``"C"`` (slowest axis first, as zarr-python 2 has it) or ``"F"`` (N5's own, as Java and TensorStore).
    Arrays are created by `tessarr.create_n5`: others are refused before anything is written.
    """

    def __init__(self, store: object, *, axis_order: AxisOrder = "C", read_only: bool = False) -> None:
        from tessarr.stores.url import store_from

        if axis_order not in ("C", "F"):
            raise ValueError(f"axis_order must be 'C' or 'F', got {axis_order!r}")
        opened, path = store_from(store, read_only=read_only)
        if path:
            from tessarr.stores.wrappers.prefix import PrefixStore

            opened = PrefixStore(opened, path)
        super().__init__(opened.with_read_only() if read_only and not opened.read_only else opened)
        self.axis_order = axis_order

    @property
    def supports_consolidated_metadata(self) -> bool:
        """``False``: N5 has none."""
        return False

    @property
    def url(self) -> str:
        """The URL of the container, with the adapter behind it."""
        return f"{self.store.url}|n5:"

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.axis_order == getattr(other, "axis_order", None)

    def __hash__(self) -> int:
        return hash((type(self), self.store, self.axis_order))

    # -- documents -------------------------------------------------------------------------------------------------

    def _attributes(self, prefix: str) -> dict[str, Any] | None:
        data = self.store.get(prefix + n5.DOCUMENT)
        if data is None:
            return None
        found = strict_json.loads(data, key=prefix + n5.DOCUMENT, allow_nan=True)
        if not isinstance(found, dict):
            raise MetadataValidationError(f"{prefix}{n5.DOCUMENT} is no JSON object", key=prefix + n5.DOCUMENT)
        return found

    def _document(self, prefix: str) -> bytes | None:
        """The v3 document of the directory `prefix`; ``None`` when there is no node."""
        attributes = self._attributes(prefix)
        if attributes is None:
            listing = self.store.list_dir(prefix)
            if not (listing.keys or listing.prefixes) or self._is_within_dataset(prefix):
                return None
            attributes = {}
        try:
            return _dump(n5.to_zarr(attributes, self.axis_order))
        except MetadataValidationError as error:
            raise error.at(store=self.url, key=prefix + n5.DOCUMENT) from None

    def _is_within_dataset(self, prefix: str) -> bool:
        """Whether `prefix` is a directory of blocks."""
        segments = prefix.rstrip("/").split("/")[:-1] if prefix else []
        above = ["", *("/".join(segments[: end + 1]) for end in range(len(segments)))] if prefix else []
        return any(n5.is_dataset(self._attributes(prefix_of(path)) or {}) for path in above)

    def _holds(self, key: str) -> str | None:
        """The prefix of the node whose document `key` is; ``None`` for a key of something else."""
        prefix, name = key[: key.rfind("/") + 1], key.rpartition("/")[2]
        return prefix if name == _OURS else None

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        prefix = self._holds(key)
        if prefix is None:
            hidden = key.rpartition("/")[2] in _NEVER or key.endswith(n5.DOCUMENT)
            return None if hidden else self.store.get(key, byte_range)
        document = self._document(prefix)
        if document is None or byte_range is None:
            return document
        return document[slice(*byte_range.bounds(len(document)))]

    def fetch(self, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
        """See `Store.fetch`: blocks are asked for together."""
        blocks = [number for number, request in enumerate(requests) if not self._is_document(request.key)]
        answers: list[list[Buffer] | None] = [None] * len(requests)
        for number, answer in zip(blocks, self.store.fetch([requests[number] for number in blocks]), strict=True):
            answers[number] = answer
        for number, request in enumerate(requests):
            if self._is_document(request.key):
                answers[number] = fetch_one(self, request)
        return answers

    def _is_document(self, key: str) -> bool:
        name = key.rpartition("/")[2]
        return name in (_OURS, n5.DOCUMENT) or name in _NEVER

    def _to_n5(self, prefix: str, value: Buffer, old: Buffer | None) -> bytes:
        before = {} if old is None else strict_json.loads(old, key=prefix + n5.DOCUMENT, allow_nan=True)
        document = strict_json.loads(value, key=prefix + _OURS)
        if not isinstance(document, dict):
            raise MetadataValidationError(
                "a document is a JSON object", key=prefix + _OURS, got=type(document).__name__
            )
        made = n5.to_n5(document, self.axis_order, before)
        return _dump({"n5": n5.VERSION, **made} if prefix == "" and "n5" not in made else made)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        """See `Store.set`. Raises `MetadataValidationError` for a document that N5 has no words for."""
        self._check_writable(key)
        prefix = self._holds(key)
        if prefix is None:
            return self.store._set_if_match(key, value, if_match)
        made = self._to_n5(prefix, value, self.store.get(prefix + n5.DOCUMENT))
        return self.store._set_if_match(prefix + n5.DOCUMENT, made, if_match)

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """See `Store.update`: under the lock of the wrapped store."""
        self._check_writable(key)
        prefix = self._holds(key)
        if prefix is None:
            self.store.update(key, change)
            return

        def changed(old: Buffer | None) -> Buffer | None:
            attributes = {} if old is None else strict_json.loads(old, key=prefix + n5.DOCUMENT, allow_nan=True)
            document = None if old is None else _dump(n5.to_zarr(attributes, self.axis_order))
            new = change(document if document is not None else self._document(prefix))
            return None if new is None else self._to_n5(prefix, new, old)

        self.store.update(prefix + n5.DOCUMENT, changed)

    def delete(self, key: str) -> None:
        self._check_writable(key)
        prefix = self._holds(key)
        self.store.delete(key if prefix is None else prefix + n5.DOCUMENT)

    def exists(self, key: str) -> bool:
        return self.get(key) is not None if self._is_document(key) else self.store.exists(key)

    def lock(self, key: str) -> Any:
        prefix = self._holds(key)
        return self.store.lock(key if prefix is None else prefix + n5.DOCUMENT)

    # -- listing ---------------------------------------------------------------------------------------------------

    def _own(self, key: str) -> str:
        return key[: -len(n5.DOCUMENT)] + _OURS if key == n5.DOCUMENT or key.endswith("/" + n5.DOCUMENT) else key

    def list(self, prefix: str = "") -> Iterator[str]:
        return map(self._own, self.store.list_prefix(prefix))

    def list_dir(self, prefix: str) -> Listing:
        listing = self.store.list_dir(prefix)
        return Listing(sorted(map(self._own, listing.keys)), listing.prefixes)

    # -- what the container has not --------------------------------------------------------------------------------

    @fallback
    def version(self, key: str) -> None:
        """``None``: a document changes with others, and with what lies in its directory."""

    @fallback
    def delete_if(self, key: str, version: Version | None) -> None:
        raise UnsupportedOperationError("an N5 container has no conditional deletion", store=self.url, key=key)


class N5FSStore(N5Store):
    """`N5Store` under zarr-python 2's name for containers that fsspec opens."""


def _dump(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
