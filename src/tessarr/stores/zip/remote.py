"""Read values of a zip archive in another store by byte ranges, without downloading the archive.

Opening sends two requests concurrently (the size, and the last 64 KiB with the directory), and a third one for a larger
directory. A whole value costs one request: header and data, up to the next entry. Ranges of a stored entry cost one round
trip too: the local header, which has the offset of the data, is requested along with the ranges, each of which is extended
by 64 bytes so that it contains the needed bytes whatever the size of the header.

Read-only. The archive must not change while it is open. Source: PKWARE APPNOTE 6.3.10, sections 4.3.7 and 4.3.12.
"""

from __future__ import annotations

import asyncio
import io
import struct
import threading
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self, cast
from urllib.parse import quote

from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.base import Fetch, Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import WRITING, Remote
from tessarr.stores.remote.fetch_methods import AsyncFetchingStore
from tessarr.stores.remote.loop import gather_or_cancel, invoke, run
from tessarr.stores.zip.format import expand, parse
from tessarr.types import Buffer, ByteRange

_List = list
_TAIL = 64 * 1024
_SLACK = 64
"""Bytes. Info-ZIP writes 28 bytes of extra fields into the header of an entry, Python at most 20, most writers 0."""
_LOCAL = struct.Struct("<4s5H3L2H")


class _Entry(NamedTuple):
    info: zipfile.ZipInfo
    stop: int
    """Offset of the next entry, or of the directory."""


class _Plan(NamedTuple):
    """The ranges of the archive for one request, and how to read the response."""

    key: str
    entry: _Entry | None
    ranges: tuple[ByteRange, ...] | None
    spans: tuple[ByteRange, ...]


class RemoteZipStore(AsyncFetchingStore):
    """The archive that is the value of `key` in `store`."""

    read_only = True

    def __init__(self, store: Store, key: str) -> None:
        self.store = store
        self.key = key
        if isinstance(store, Remote):
            self.requests_at_once = store.requests_at_once
        self._loaded: tuple[dict[str, _Entry], _List[str]] | None = None
        self._lock = threading.Lock()

    def has_ability(self, ability: type) -> bool:
        """Whether a remote archive has `ability`: all for reading."""
        return ability not in WRITING and super().has_ability(ability)

    @property
    def url(self) -> str:
        return f"{self.store.url.rstrip('/')}/{quote(self.key)}|zip:"

    def with_read_only(self, read_only: bool = True) -> Self:
        if not read_only:
            raise UnsupportedOperationError("an archive in another store is read-only", store=self.url)
        return self

    def __getstate__(self) -> dict[str, object]:
        return {"store": self.store, "key": self.key}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteZipStore) and (other.store, other.key) == (self.store, self.key)

    def __hash__(self) -> int:
        return hash((self.store, self.key))

    def close(self) -> None:
        self.store.close()

    # -- the directory -----------------------------------------------------------------------------------------

    def _directory(self) -> tuple[dict[str, _Entry], _List[str]]:
        """Return the entries, and their sorted names."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    async def _directory_async(self) -> tuple[dict[str, _Entry], _List[str]]:
        if self._loaded is not None:
            return self._loaded
        # In a thread of this loop: threads that wait for the lock must not be those that the archive's store needs.
        return await invoke(self._directory, partial(asyncio.to_thread, self._directory))

    def _load(self) -> tuple[dict[str, _Entry], _List[str]]:
        store, key = self.store, self.key
        calls: _List[Any] = [store.getsize_async(key), store.get_async(key, ByteRange(-_TAIL))]
        size, tail = cast("tuple[int | None, Buffer | None]", run(gather_or_cancel(calls)))
        if size is None or tail is None:
            raise StoreError("the archive does not exist", store=self.store.url, key=self.key)
        file = io.BufferedReader(_Tail(self.store, self.key, size, bytes(byte_view(tail))), _TAIL)
        try:
            infos, start_dir, _ = parse(cast("Any", file))
        except zipfile.BadZipFile as error:
            raise StoreError(
                "the value is not a zip archive", store=self.store.url, key=self.key, got=str(error)
            ) from error
        starts = sorted({*(info.header_offset for info in infos.values()), start_dir})
        entries = {
            name: _Entry(info, starts[bisect_left(starts, info.header_offset) + 1])
            for name, info in infos.items()
            if info.header_offset < start_dir
        }
        return entries, sorted(entries)

    # -- reading -----------------------------------------------------------------------------------------------

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """See `Store.fetch`: all requests are one `get_ranges` of the archive."""
        for request in requests:
            check_key(request.key)
        entries, _ = await self._directory_async()
        plans = [_plan(request, entries.get(request.key)) for request in requests]
        bodies = await self._ranges([span for plan in plans for span in plan.spans])
        at = iter([byte_view(body) for body in bodies])
        found: _List[_List[Buffer] | None] = []
        for plan in plans:
            parts = [next(at) for _ in plan.spans]
            try:
                found.append(None if plan.entry is None else await self._values(plan, plan.entry, parts))
            except (StoreError, UnsupportedOperationError) as error:
                raise error.at(store=self.url, key=plan.key) from error.__cause__
        return found

    async def _ranges(self, spans: _List[ByteRange]) -> _List[Buffer]:
        bodies = await invoke(self.store.get_ranges, self.store.get_ranges_async, self.key, spans) if spans else []
        if bodies is None:
            raise StoreError("the archive is gone", store=self.store.url, key=self.key)
        return bodies

    async def _values(self, plan: _Plan, entry: _Entry, parts: _List[memoryview]) -> _List[Buffer]:
        info = entry.info
        if not plan.spans:
            return [b"" for _ in plan.ranges or ()]
        offset = _data_offset(parts[0], info)
        if len(plan.spans) == 1:
            raw = parts[0][offset : offset + info.compress_size]
            if raw.nbytes != info.compress_size:
                raise StoreError("a zip entry reaches into the next one", expected=f"{info.compress_size} bytes")
            value = expand(bytes(raw), info)
            return [value] if plan.ranges is None else [value[slice(*part.bounds(len(value)))] for part in plan.ranges]
        extra = offset - _header_nbytes(info)
        if extra > _SLACK:
            start = info.header_offset + offset
            wanted = [part.bounds(info.file_size) for part in plan.ranges or ()]
            return await self._ranges([ByteRange(start + low, start + high) for low, high in wanted])
        return [
            part[extra : extra + high - low]
            for part, (low, high) in zip(
                parts[1:], (part.bounds(info.file_size) for part in plan.ranges or ()), strict=True
            )
        ]

    async def exists_async(self, key: str) -> bool:
        check_key(key)
        return key in (await self._directory_async())[0]

    async def getsize_async(self, key: str) -> int | None:
        check_key(key)
        entry = (await self._directory_async())[0].get(key)
        return None if entry is None else entry.info.file_size

    async def version_async(self, key: str) -> Version | None:
        entry = (await self._directory_async())[0].get(key)
        return None if entry is None else f"{entry.info.CRC:08x}:{entry.info.file_size}"

    def stamp(self, prefix: str, counts: Callable[[str], bool]) -> str:
        """See `tessarr.stores.protocols.Stamp`: sizes and CRC-32 of the directory, which is read again."""
        from tessarr.common.stamps import StampSum

        check_prefix(prefix)
        total = StampSum()
        for key, entry in self._load()[0].items():
            if key.startswith(prefix) and counts(key):
                total.add(key, (entry.info.file_size, entry.info.CRC))
        return total.hexdigest()

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        check_prefix(prefix)
        _, names = await self._directory_async()
        stop = bisect_left(names, prefix[:-1] + "0") if prefix else len(names)
        return names[bisect_left(names, prefix) : stop]


class _Tail(io.RawIOBase):
    """The archive as a file; its tail is in memory, and the bytes before it are requested when they are read."""

    def __init__(self, store: Store, key: str, size: int, tail: bytes) -> None:
        self._store, self._key, self._size, self._tail = store, key, size, tail
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        here = self._size - len(self._tail)
        if self._at < here:
            # All missing bytes in one request: the directory is read from its start.
            missing = self._store.get(self._key, ByteRange(self._at, here))
            if missing is None:
                raise StoreError("the archive is gone", store=self._store.url, key=self._key)
            self._tail = bytes(byte_view(missing)) + self._tail
            here = self._at
        data = self._tail[self._at - here : self._at - here + view.nbytes]
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def _plan(request: Fetch, entry: _Entry | None) -> _Plan:
    key, ranges = request
    if entry is None:
        return _Plan(key, None, ranges, ())
    info = entry.info
    start = info.header_offset
    wanted = None if ranges is None else [part.bounds(info.file_size) for part in ranges]
    if wanted is not None and not any(low < high for low, high in wanted):
        return _Plan(key, entry, ranges, ())
    if wanted is None or info.compress_type != zipfile.ZIP_STORED:
        return _Plan(key, entry, ranges, (ByteRange(start, entry.stop),))
    data = start + _header_nbytes(info)
    spans = [ByteRange(data + low, min(data + high + _SLACK, entry.stop)) for low, high in wanted]
    return _Plan(key, entry, ranges, (ByteRange(start, data), *spans))


def _header_nbytes(info: zipfile.ZipInfo) -> int:
    """Return the size of an entry's header without its extra fields, in bytes."""
    name = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")
    return _LOCAL.size + len(name)


def _data_offset(header: memoryview, info: zipfile.ZipInfo) -> int:
    """Return the offset of the data in `header`, the bytes of the entry from its start."""
    if header.nbytes < _LOCAL.size or bytes(header[:4]) != b"PK\x03\x04":
        raise StoreError("a zip entry is not where the directory says", got=f"offset {info.header_offset}")
    if info.flag_bits & 1:
        raise UnsupportedOperationError("the zip entry is encrypted")
    name_nbytes, extra_nbytes = _LOCAL.unpack_from(header)[9:]
    return int(_LOCAL.size + name_nbytes + extra_nbytes)
