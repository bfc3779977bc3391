"""Adapt tessarr's stores to zarr-python's interface: coroutines over buffers that call a synchronous store."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

from tessarr.facade.zarr3.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from tessarr.facade.zarr3.buffer import default_buffer_prototype
from tessarr.stores.base import Store as OurStore
from tessarr.stores.path import prefix_of

_IO_METHODS = (
    "get", "get_partial_values", "exists", "set", "set_if_not_exists", "delete", "list", "list_prefix", "list_dir",
    "delete_dir", "getsize", "getsize_prefix", "supports_consolidated_metadata", "supports_deletes", "supports_listing",
    "supports_writes",
)  # fmt: skip
"""The methods that do the I/O, and what says which of them work. Where a subclass overrides one, nodes ask the override."""
_List = list


class InnerStore(Store):
    """A store with zarr-python's interface that calls a store of tessarr."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("tessarr."):
            _KINDS[cls.__name__] = cls

    def __init__(self, inner: OurStore) -> None:
        """Wrap `inner`, which does the I/O. `Array.store` of nodes in `inner` is this object."""
        super().__init__(read_only=inner.read_only)
        self._set_inner(inner)

    def _set_inner(self, inner: OurStore) -> None:
        self._inner_store = inner
        inner.given = self
        self._is_open = False  # as zarr-python: `open` opens, and so does the first use

    @property
    def _inner(self) -> OurStore:
        """The store that does the I/O."""
        return self._inner_store

    def __tessarr_place__(self) -> tuple[OurStore, str]:
        """Return the store that does the I/O; if a coroutine is overridden, a store that calls the coroutines."""
        if any(getattr(type(self), name) is not original for name, original in _ORIGINALS.items()):
            return super().__tessarr_place__()
        return self._inner, ""

    def _copy_around(self, inner: OurStore) -> Self:
        result = copy.copy(self)
        vars(result).pop("_tessarr", None)
        result._read_only = inner.read_only
        result._set_inner(inner)
        return result

    def with_read_only(self, read_only: bool = False) -> Store:
        """Return a store over the same place, read-only or writable."""
        return self._copy_around(self._inner.with_read_only(read_only))

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._read_only

    def __eq__(self, value: object) -> bool:
        return isinstance(value, type(self)) and self.read_only == value.read_only and self._inner == value._inner

    __hash__ = Store.__hash__

    def __str__(self) -> str:
        return self._inner.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @property
    def supports_writes(self) -> bool:
        """Whether `set` works."""
        return self._inner.supports_writes

    @property
    def supports_deletes(self) -> bool:
        """Whether `delete` works."""
        return self._inner.supports_deletes

    @property
    def supports_listing(self) -> bool:
        """Whether the ``list…`` methods work."""
        return self._inner.supports_listing

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether `zarr.consolidate_metadata` may write here."""
        return self._inner.supports_consolidated_metadata

    def close(self) -> None:
        """Close the store."""
        self._inner.close()
        super().close()

    # -- reading -----------------------------------------------------------------------------------------------

    async def get(self, key: str, prototype: object = None, byte_range: ByteRequest | None = None) -> Any:
        """Read the value of `key`, or its bytes in `byte_range`, as a buffer; ``None`` if the key is missing."""
        _check_range(byte_range)
        return _buffer(await self._inner.get_async(key, byte_range), prototype)

    def get_sync(self, key: str, *, prototype: object = None, byte_range: ByteRequest | None = None) -> object:
        """Call `get` without an event loop."""
        _check_range(byte_range)
        return _buffer(self._inner.get(key, byte_range), prototype)

    async def get_partial_values(
        self, prototype: object, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> _List[object]:
        """Read ranges of several values, in the order of `key_ranges`; ``None`` for each missing value."""
        return [_buffer(value, prototype) for value in await self._inner.get_partial_values_async([*key_ranges])]

    async def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""
        return await self._inner.exists_async(key)

    async def getsize(self, key: str) -> int:
        """Return the size of the value of `key` in bytes. Raises `FileNotFoundError` if the key is missing."""
        size = await self._inner.getsize_async(key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    async def getsize_prefix(self, prefix: str) -> int:
        """Add up the bytes of all values under `prefix`."""
        return await self._inner.getsize_prefix_async(prefix_of(prefix.strip("/")))

    # -- writing -----------------------------------------------------------------------------------------------

    async def set(self, key: str, value: Any, byte_range: tuple[int, int] | None = None) -> None:
        """Replace the value of `key`. Raises `NotImplementedError` for a range of it."""
        if byte_range is not None:
            raise NotImplementedError("a part of a value cannot be set")
        self._check_writable()
        await self._inner.set_async(key, _bytes(value))

    def set_sync(self, key: str, value: object) -> None:
        """Call `set` without an event loop."""
        self._check_writable()
        self._inner.set(key, _bytes(value))

    async def set_if_not_exists(self, key: str, value: object) -> None:
        """Set the value of `key` if the key is missing; of several concurrent writers one succeeds."""
        self._check_writable()
        await self._inner.set_if_not_exists_async(key, _bytes(value))

    async def delete(self, key: str) -> None:
        """Remove `key`; no effect if the key is missing."""
        self._check_writable()
        await self._inner.delete_async(key)

    def delete_sync(self, key: str) -> None:
        """Call `delete` without an event loop."""
        self._check_writable()
        self._inner.delete(key)

    async def delete_dir(self, prefix: str) -> None:
        """Remove every key under `prefix`."""
        self._check_writable()
        await self._inner.delete_prefix_async(prefix_of(prefix.strip("/")))

    async def clear(self) -> None:
        """Remove every key."""
        await self.delete_dir("")

    # -- listing -----------------------------------------------------------------------------------------------

    async def list(self) -> AsyncIterator[str]:
        """Iterate over all keys."""
        for key in await self._inner.list_prefix_async(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Iterate over the keys that begin with `prefix`, whether or not `prefix` ends with ``/``."""
        folder = prefix[: prefix.rfind("/") + 1]
        if prefix.startswith("/"):  # no key does
            return
        for key in await self._inner.list_prefix_async(folder):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Iterate over the names directly below `prefix`, relative to `prefix`."""
        folder = prefix_of(prefix.strip("/"))
        listing = await self._inner.list_dir_async(folder)
        for name in (*listing.keys, *listing.prefixes):
            yield name[len(folder) :].rstrip("/")


_KINDS: dict[str, type[InnerStore]] = {}
"""The classes of `zarr.storage`, by the name of the class of tessarr's stores that they wrap."""
_ORIGINALS = {name: getattr(InnerStore, name) for name in _IO_METHODS}


def adapt_store(store: OurStore) -> Store:
    """Wrap `store` in the class of `zarr.storage` of the same name, if that class was imported, else in `InnerStore`."""
    kind = _KINDS.get(type(store).__name__, InnerStore)
    result = kind.__new__(kind)
    result._read_only = store.read_only
    result._set_inner(store)
    return result


def _buffer(value: Any, prototype: Any) -> object:
    return None if value is None else (prototype or default_buffer_prototype()).buffer.from_bytes(value)


def _check_range(byte_range: object) -> None:
    if byte_range is not None and not isinstance(byte_range, RangeByteRequest | OffsetByteRequest | SuffixByteRequest):
        raise TypeError(f"Unexpected byte_range, got {byte_range!r}.")


def _bytes(value: object) -> Any:
    as_buffer_like = getattr(value, "as_buffer_like", None)
    if as_buffer_like is not None:
        return as_buffer_like()
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"`value` must be a Buffer instance. Got an instance of {type(value)} instead.")
    return value
