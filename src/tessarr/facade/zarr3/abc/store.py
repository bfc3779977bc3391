"""zarr-python's ``zarr.abc.store``: the contract of stores whose methods are coroutines.

A user-defined class inherits `Store` and implements ``get``, ``get_partial_values``, ``exists``, ``set``, ``delete``, ``list``,
``list_prefix``, ``list_dir`` and the three ``supports_…``. tessarr calls such a store through
`tessarr.core.asynchronous.stores`.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from typing import Any, Self, cast

from tessarr.core.asynchronous.stores import CoroutineStore
from tessarr.errors import ReadOnlyError
from tessarr.facade.zarr3.abc._ranges import Group, grouped
from tessarr.facade.zarr3.abc._values import (
    ByteGetter,
    ByteRequest,
    ByteSetter,
    OffsetByteRequest,
    RangeByteRequest,
    SuffixByteRequest,
    SupportsDeleteSync,
    SupportsGetSync,
    SupportsSetSync,
    SupportsSyncStore,
    SyncByteGetter,
    SyncByteSetter,
    set_or_delete,
)
from tessarr.facade.zarr3.buffer import default_buffer_prototype
from tessarr.stores.base import Store as OurStore
from tessarr.stores.path import StorePath


class Store(ABC):
    """A map from keys to buffers, whose methods are coroutines."""

    _read_only: bool = False
    _is_open: bool = False
    _path_class: Any = StorePath
    """`zarr.storage.StorePath`, if that class is imported."""

    def __init__(self, *, read_only: bool = False) -> None:
        """Set up the store; if `read_only`, writes raise `ReadOnlyError`."""
        self._is_open = False
        self._read_only = read_only

    def __class_getitem__(cls, item: object) -> object:
        return cls

    def __tessarr_place__(self) -> tuple[OurStore, str]:
        """Return the tessarr store that calls these coroutines, the same object for every call, and a path in that store."""
        state: dict[str, OurStore] = vars(self)
        known = state.get("_tessarr")
        if known is None:
            made = CoroutineStore(self)
            made.given = self
            known = state.setdefault("_tessarr", made)
        return known, ""

    def __tessarr_path__(self, path: str) -> Any:
        """Return the `StorePath` that nodes at `path` show."""
        return self._path_class(self, path)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_tessarr"}

    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Self:
        """Make a store and open it."""
        store = cls(*args, **kwargs)
        await store._open()
        return store

    def with_read_only(self, read_only: bool = False) -> Store:
        """Return a store of the same place, read-only or writable. Raises `NotImplementedError` unless a class overrides it."""
        raise NotImplementedError(f"with_read_only is not implemented for the {type(self).__name__} store type.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def _open(self) -> None:
        if self._is_open:
            raise ValueError("store is already open")
        self._is_open = True

    async def _ensure_open(self) -> None:
        if not self._is_open:
            await self._open()

    async def is_empty(self, prefix: str) -> bool:
        """Return whether there is no key under `prefix`."""
        if not self.supports_listing:
            raise NotImplementedError
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        async for _ in self.list_prefix(prefix):
            return False
        return True

    async def clear(self) -> None:
        """Remove every key."""
        if not self.supports_deletes or not self.supports_listing:
            raise NotImplementedError
        self._check_writable()
        await self.delete_dir("")

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._read_only

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError("store was opened in read-only mode and does not support writing", store=str(self))

    @abstractmethod
    def __eq__(self, value: object) -> bool:
        """Return whether both stores are over the same place."""

    def __hash__(self) -> int:
        return id(self)

    @abstractmethod
    async def get(self, key: str, prototype: object, byte_range: ByteRequest | None = None) -> Any:
        """Read the value of `key`, or its bytes in `byte_range`, as a ``prototype.buffer``; ``None`` if the key is missing."""

    @abstractmethod
    async def get_partial_values(
        self, prototype: object, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[object]:
        """Read ranges of several values, in the order of `key_ranges`."""

    @abstractmethod
    async def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""

    @property
    @abstractmethod
    def supports_writes(self) -> bool:
        """Whether `set` works."""

    @abstractmethod
    async def set(self, key: str, value: object) -> None:
        """Replace the value of `key` by the bytes of a buffer."""

    async def set_if_not_exists(self, key: str, value: object) -> None:
        """Set the value of `key` if `key` has none."""
        if not await self.exists(key):
            await self.set(key, value)

    async def _set_many(self, values: Iterable[tuple[str, object]]) -> None:
        for key, value in values:
            await self.set(key, value)

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether `zarr.consolidate_metadata` may write here."""
        return True

    @property
    @abstractmethod
    def supports_deletes(self) -> bool:
        """Whether `delete` works."""

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Remove `key`."""

    @property
    def supports_partial_writes(self) -> bool:
        """Always False: only tessarr's own stores change parts of values."""
        return False

    @property
    @abstractmethod
    def supports_listing(self) -> bool:
        """Whether the ``list…`` methods work."""

    @abstractmethod
    def list(self) -> AsyncIterator[str]:
        """Iterate over all keys."""

    @abstractmethod
    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Iterate over the keys that begin with `prefix`."""

    @abstractmethod
    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Iterate over the names directly below `prefix`, relative to `prefix`."""

    async def delete_dir(self, prefix: str) -> None:
        """Remove every key under `prefix`."""
        if not self.supports_deletes or not self.supports_listing:
            raise NotImplementedError
        self._check_writable()
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        for key in [key async for key in self.list_prefix(prefix)]:
            await self.delete(key)

    def close(self) -> None:
        """Close the store."""
        self._is_open = False

    async def _get_many(
        self, requests: Iterable[tuple[str, object, ByteRequest | None]]
    ) -> AsyncGenerator[tuple[str, object]]:
        for key, prototype, byte_range in requests:
            yield key, await self.get(key, prototype, byte_range)

    async def get_ranges(
        self,
        key: str,
        byte_ranges: Sequence[ByteRequest | None],
        *,
        prototype: object,
        max_concurrency: int = 10,
        max_gap_bytes: int = 1 << 20,
        max_coalesced_bytes: int = 16 << 20,
    ) -> AsyncIterator[Sequence[tuple[int, object]]]:
        """Read ranges of the value of `key`; yield the position and bytes of those that one request answered, as they arrive.

        Ranges at most `max_gap_bytes` apart share a request of at most `max_coalesced_bytes`. Raises an exception group,
        with `FileNotFoundError` if the key is missing.
        """

        async def read(group: Group) -> list[tuple[int, object]]:
            return _parts(key, await self.get(key, prototype, group.request), group)

        groups = grouped(byte_ranges, max_gap_bytes, max_coalesced_bytes)
        for start in range(0, len(groups), max_concurrency):
            tasks = [asyncio.ensure_future(read(group)) for group in groups[start : start + max_concurrency]]
            try:
                for task in asyncio.as_completed(tasks):
                    yield await task
            except Exception as error:
                raise ExceptionGroup(f"could not read ranges of {key!r}", [error]) from None
            finally:
                for task in tasks:
                    task.cancel()

    def get_ranges_sync(
        self,
        key: str,
        byte_ranges: Sequence[ByteRequest | None],
        *,
        prototype: object,
        max_gap_bytes: int = 1 << 20,
        max_coalesced_bytes: int = 16 << 20,
    ) -> Sequence[tuple[int, object]]:
        """Read as `get_ranges` does, by `get_sync`. Raises `TypeError` for a store without `get_sync`."""
        if not isinstance(self, SupportsGetSync):
            raise TypeError(f"{type(self).__name__} does not support synchronous reads")
        found: list[tuple[int, object]] = []
        for group in grouped(byte_ranges, max_gap_bytes, max_coalesced_bytes):
            value = self.get_sync(key, prototype=prototype, byte_range=group.request)
            try:
                found += _parts(key, value, group)
            except FileNotFoundError as error:
                raise ExceptionGroup(f"could not read ranges of {key!r}", [error]) from None
        return found

    async def _get_bytes(self, key: str, *, prototype: object = None, byte_range: ByteRequest | None = None) -> bytes:
        value = await self.get(key, prototype or default_buffer_prototype(), byte_range)
        if value is None:
            raise FileNotFoundError(key)
        return bytes(value.to_bytes())

    async def _get_json(self, key: str, *, prototype: object = None, byte_range: ByteRequest | None = None) -> object:
        return json.loads(await self._get_bytes(key, prototype=prototype, byte_range=byte_range))

    def _get_bytes_sync(
        self, key: str = "", *, prototype: object = None, byte_range: ByteRequest | None = None
    ) -> bytes:
        from tessarr.facade.zarr3.core.sync import sync

        return sync(self._get_bytes(key, prototype=prototype, byte_range=byte_range))

    def _get_json_sync(
        self, key: str = "", *, prototype: object = None, byte_range: ByteRequest | None = None
    ) -> object:
        return json.loads(self._get_bytes_sync(key, prototype=prototype, byte_range=byte_range))

    async def getsize(self, key: str) -> int:
        """Return the size of the value of `key` in bytes. Raises `FileNotFoundError` if the key is missing."""
        value = await self.get(key, default_buffer_prototype())
        if value is None:
            raise FileNotFoundError(key)
        return len(value)

    async def getsize_prefix(self, prefix: str) -> int:
        """Add up the bytes of all values under `prefix`."""
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        return sum([await self.getsize(key) async for key in self.list_prefix(prefix)])


def _parts(key: str, value: object, group: Group) -> list[tuple[int, object]]:
    """Cut a response into the ranges that it answers."""
    if value is None:
        raise FileNotFoundError(key)
    alone = len(group.members) == 1  # the whole value, or a range whose end the value may lie before
    whole = cast("Sequence[object]", value)
    return [(at, value if alone else whole[part]) for at, part in group.members]


__all__ = [
    "ByteGetter",
    "ByteRequest",
    "ByteSetter",
    "OffsetByteRequest",
    "RangeByteRequest",
    "Store",
    "SuffixByteRequest",
    "SupportsDeleteSync",
    "SupportsGetSync",
    "SupportsSetSync",
    "SupportsSyncStore",
    "SyncByteGetter",
    "SyncByteSetter",
    "set_or_delete",
]
