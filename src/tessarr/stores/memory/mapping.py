"""Any mutable mapping of keys to bytes as a store: what a Zarr v1 or v2 store was.

A mapping has no parts of values, no versions and no atomicity beyond its own; `MemoryStore` is the better choice for a
`dict`, and what `tessarr.stores.url.store_from` takes for one.

>>> store = MappingStore({})
>>> store.set("a/b", b"1")
>>> store.get("a/b"), store.get("c")
(b'1', None)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from tessarr.common.segments import flat
from tessarr.stores.base import ANY, Any_, LockContext, Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import Lock
from tessarr.types import Buffer, ByteRange

_List = list


class MappingStore(Store):
    """A store over `mapping`, which needs only ``[]``, ``[] =``, ``del`` and, to list, iteration.

    Values are given to the mapping as `bytes`; what it gives back may be any buffer. `lock` excludes threads of this
    process. Errors the mapping raises, other than `KeyError`, pass through.
    """

    def __init__(self, mapping: MutableMapping[str, Any], *, read_only: bool = False) -> None:
        self._mapping = mapping
        self.read_only = read_only

    @property
    def mapping(self) -> MutableMapping[str, Any]:
        """The mapping itself."""
        return self._mapping

    @property
    def url(self) -> str:
        """``mapping://…``, which opens the mapping again in this process while the store lives."""
        from tessarr.stores.memory.process_urls import registered

        return registered(self, f"mapping://{type(self._mapping).__name__}-{id(self._mapping):x}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._mapping is self._mapping and other.read_only == self.read_only

    def __hash__(self) -> int:
        return hash(id(self._mapping))

    def close(self) -> None:
        """Close the mapping, if it can be closed."""
        close = getattr(self._mapping, "close", None)
        if close is not None:
            close()

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        if byte_range is not None:
            parts = self.get_ranges(key, (byte_range,))
            return None if parts is None else parts[0]
        check_key(key)
        try:
            value = self._mapping[key]
        except KeyError:
            return None
        return value if type(value) is bytes else byte_view(value).toreadonly()

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`: all of one value, which a writer may replace at any time."""
        value = self.get(key)
        if value is None:
            return None
        view = flat(byte_view(value).toreadonly())
        bounds = (byte_range.bounds(view.nbytes) for byte_range in ranges)
        return [view[start:stop].data for start, stop in bounds]

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        """See `Store.set`; `if_match` is not supported."""
        self._check_writable(key)
        check_key(key)
        if if_match is not ANY:
            return super().set(key, value, if_match=if_match)
        self._mapping[key] = value if type(value) is bytes else bytes(byte_view(value))
        return None

    def has_ability(self, ability: type) -> bool:
        """Whether the mapping has `ability`: `Lock` if no other process can write it, which is unknown of most classes."""
        return ability is not Lock or type(self._mapping) in (dict, OrderedDict)

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: threads of this process."""
        self._check_writable(key)
        check_key(key)
        return KEYED_LOCKS.hold((id(self._mapping), key))

    def delete(self, key: str) -> None:
        self._check_writable(key)
        check_key(key)
        try:
            del self._mapping[key]
        except KeyError:
            return

    def list(self, prefix: str = "") -> Iterator[str]:
        """See `Store.list`. Keys that are not store keys (not strings, say) are left out."""
        check_prefix(prefix)
        found: _List[object] = [*self._mapping]
        return (key for key in found if isinstance(key, str) and key and key.startswith(prefix))


KVStore = MappingStore
"""The name in zarr-python 2."""


class DictStore(MappingStore):
    """`MappingStore` over a new dictionary, as zarr-python named it before version 2."""

    def __init__(self, mapping: MutableMapping[str, Any] | None = None, *, read_only: bool = False) -> None:
        super().__init__({} if mapping is None else mapping, read_only=read_only)
