"""Adapt any store of tessarr to zarr-python's contract: SQLite, LMDB, reference files, caches, stores with locks.

zarr-python calls the synchronous methods (`get_sync`, `set_sync`, `delete_sync`) without its event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, default_buffer_prototype

from tessarr.stores.base import Store as OurStore
from tessarr.stores.path import prefix_of
from tessarr.types import ByteRange


class TessarrStore(Store):
    """A store of zarr-python over `store`, a store of tessarr; made by `tessarr.zarr_python.as_store`."""

    def __init__(self, store: OurStore) -> None:
        super().__init__(read_only=store.read_only)
        self.tessarr_store = store
        self._is_open = True

    def with_read_only(self, read_only: bool = False) -> Self:
        """Return a store of the same place, read-only or writable."""
        return type(self)(self.tessarr_store.with_read_only(read_only))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.tessarr_store == self.tessarr_store

    def __hash__(self) -> int:
        return hash(self.tessarr_store)

    def __str__(self) -> str:
        return self.tessarr_store.url

    def __repr__(self) -> str:
        return f"TessarrStore({self.tessarr_store!r})"

    @property
    def supports_writes(self) -> bool:
        """Whether `set` works."""
        return self.tessarr_store.supports_writes

    @property
    def supports_deletes(self) -> bool:
        """Whether `delete` works."""
        return self.tessarr_store.supports_deletes

    @property
    def supports_listing(self) -> bool:
        """Whether the ``list…`` methods work."""
        return self.tessarr_store.supports_listing

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether consolidated metadata may be written here."""
        return self.tessarr_store.supports_consolidated_metadata

    def close(self) -> None:
        """Publish pending changes and close the store."""
        self.tessarr_store.close()
        super().close()

    # -- reading -----------------------------------------------------------------------------------------------

    async def get(self, key: str, prototype: Any = None, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Read the value of `key`, or the range `byte_range` of it; ``None`` if the key is missing."""
        return _buffer(await self.tessarr_store.get_async(key, _part(byte_range)), prototype)

    def get_sync(self, key: str, *, prototype: object = None, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Call `get` without an event loop."""
        return _buffer(self.tessarr_store.get(key, _part(byte_range)), prototype)

    async def get_partial_values(
        self, prototype: object, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Read ranges of several values, in the order of the requests; ``None`` for each missing key."""
        wanted = [(key, _part(part)) for key, part in key_ranges]
        return [_buffer(value, prototype) for value in await self.tessarr_store.get_partial_values_async(wanted)]

    async def exists(self, key: str) -> bool:
        """Whether `key` has a value."""
        return await self.tessarr_store.exists_async(key)

    async def getsize(self, key: str) -> int:
        """Return the size of the value of `key` in bytes. Raises `FileNotFoundError` if the key is missing."""
        nbytes = await self.tessarr_store.getsize_async(key)
        if nbytes is None:
            raise FileNotFoundError(key)
        return nbytes

    # -- writing -----------------------------------------------------------------------------------------------

    async def set(self, key: str, value: Buffer) -> None:
        """Replace the value of `key`."""
        self._check_writable()
        await self.tessarr_store.set_async(key, _bytes(value))

    def set_sync(self, key: str, value: Buffer) -> None:
        """Call `set` without an event loop."""
        self._check_writable()
        self.tessarr_store.set(key, _bytes(value))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Set the value of `key` if the key is missing; of several writers one succeeds."""
        self._check_writable()
        await self.tessarr_store.set_if_not_exists_async(key, _bytes(value))

    async def delete(self, key: str) -> None:
        """Remove `key`; no effect if the key is missing."""
        self._check_writable()
        await self.tessarr_store.delete_async(key)

    def delete_sync(self, key: str) -> None:
        """Call `delete` without an event loop."""
        self._check_writable()
        self.tessarr_store.delete(key)

    async def delete_dir(self, prefix: str) -> None:
        """Remove every key under `prefix`."""
        self._check_writable()
        await self.tessarr_store.delete_prefix_async(prefix_of(prefix.strip("/")))

    # -- listing -----------------------------------------------------------------------------------------------

    async def list(self) -> AsyncIterator[str]:
        """Yield every key."""
        for key in await self.tessarr_store.list_prefix_async(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield the keys that begin with `prefix`, which need not end with ``/``."""
        if prefix.startswith("/"):  # no key does
            return
        for key in await self.tessarr_store.list_prefix_async(prefix[: prefix.rfind("/") + 1]):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names directly below `prefix`, without the prefix."""
        folder = prefix_of(prefix.strip("/"))
        listing = await self.tessarr_store.list_dir_async(folder)
        for name in (*listing.keys, *listing.prefixes):
            yield name[len(folder) :].rstrip("/")


def as_store(place: Any, *, mode: str | None = None) -> TessarrStore:
    """Make a store of zarr-python of `place`: a store of tessarr, or a path or URL that `tessarr.open` takes.

    `mode` is that of `tessarr.open`: ``"r"`` makes it read-only. With the patch or the codec pipeline, tessarr reads and
    writes its chunks directly.

    >>> import zarr, tessarr.zarr_python
    >>> from tessarr.stores.memory.store import MemoryStore
    >>> z = zarr.ones(store=tessarr.zarr_python.as_store(MemoryStore()), shape=(3,), dtype="i4")
    >>> z[:]
    array([1, 1, 1], dtype=int32)

    Raises the errors of `tessarr.open` for a place that it cannot open.
    """
    from tessarr.core.locate import locate

    store, path, _ = locate(place, None, mode)
    if path:
        from tessarr.stores.wrappers.prefix import PrefixStore

        store = PrefixStore(store, path)
    return TessarrStore(store)


def _buffer(value: Any, prototype: Any) -> Buffer | None:
    if value is None:
        return None
    made: Buffer = (prototype or default_buffer_prototype()).buffer.from_bytes(value)
    return made


def _bytes(value: object) -> Any:
    if not isinstance(value, Buffer):
        raise TypeError(f"`value` must be a Buffer instance. Got an instance of {type(value)} instead.")
    return value.as_buffer_like()


def _part(request: ByteRequest | None) -> ByteRange | None:
    if isinstance(request, RangeByteRequest):
        return ByteRange(request.start, request.end)
    if isinstance(request, OffsetByteRequest):
        return ByteRange(request.offset)
    if isinstance(request, SuffixByteRequest):
        return ByteRange(-request.suffix) if request.suffix else ByteRange(0, 0)
    if request is None:
        return None
    raise TypeError(f"Unexpected byte_range, got {request}.")
