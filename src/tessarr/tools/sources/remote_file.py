"""Read files in stores as file objects: `RemoteFile`, by ranges in blocks that are kept, and `downloaded`, as a local copy.

Libraries seek to and fro in the header of a file, and read some bytes at a time; a request for each would take as long as the
file itself. So blocks are fetched whole, twice as many at once where they are read one after another, and the last ones kept.
"""

from __future__ import annotations

import io
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TypeAlias

from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.base import Fetch, Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Fetched
from tessarr.stores.functions import is_in_memory
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import List
from tessarr.stores.url import check_place, is_url
from tessarr.types import Buffer, ByteRange

BLOCK = 256 << 10
"""Bytes: at 100 MB/s the transfer takes less than the wait for the answer."""
_MOST_AT_ONCE = 16
"""Blocks of one request."""
_KEPT = 64
"""Blocks that are kept."""


def is_file_url(place: object) -> bool:
    """Whether a place may be a file in a store: a URL of one thing, neither a local path nor a pipeline.

    >>> is_file_url("s3://bucket/a.nc"), is_file_url("a.nc"), is_file_url("reference:a.json"), is_file_url("s3://b/a.zip|zip:")
    (True, False, False, False)
    """
    return isinstance(place, str) and is_url(place) and "://" in place and "|" not in place and _scheme(place) != "file"


def _scheme(url: str) -> str:
    return url.partition(":")[0].lower()


class RemoteFile(io.RawIOBase):
    """A file in a store, opened for reading. Not safe to use from several threads at once, as other files are not."""

    def __init__(self, url: str, storage_options: Mapping[str, object] | None = None) -> None:
        """Open the file at `url` by one request, for its first block.

        Raises `StoreError` where there is none and for a URL with a query,
        `UnsupportedOperationError` for a server that sends no ranges.
        """
        from tessarr.stores.remote.base import NetworkStore  # here, since local files need neither
        from tessarr.stores.virtual.reference import ReferenceStore

        check_place(url)
        super().__init__()
        self.name = url
        self._files = ReferenceStore({}, storage_options=storage_options)
        self._store, self._key = self._files.file_at(url)
        self._blocks: OrderedDict[int, memoryview] = OrderedDict()
        self._lock = threading.Lock()
        self._at, self._next, self._ahead = 0, 1, 1
        first = self._fetch(0, BLOCK)
        self.state = _state_of(self._store, self._key, first)
        """The size, and the version where the store has one."""
        if isinstance(self._store, NetworkStore) and not self._store.ranges_work and self.size > BLOCK:
            raise UnsupportedOperationError(
                "the server sends whole files, and no ranges of them",
                store=url,
                hint="Download it, and convert the copy",
            )
        self._blocks[0] = byte_view(first[0])

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.state[0]

    def start(self, nbytes: int) -> bytes:
        """Return the first bytes."""
        return bytes(self._blocks[0][:nbytes]) if 0 in self._blocks else self._bytes(0, nbytes)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence])
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # `Buffer` of Python 3.12
        view = memoryview(buffer).cast("B")
        stop = min(self._at + view.nbytes, self.size)
        count = max(0, stop - self._at)
        done = 0
        with self._lock:
            while done < count:
                number, offset = divmod(self._at + done, BLOCK)
                block = self._block(number, stop)[offset : offset + count - done]
                view[done : done + block.nbytes] = block
                done += block.nbytes
            self._at += count
        return count

    def _bytes(self, start: int, stop: int) -> bytes:
        found = self._store.get(self._key, ByteRange(start, stop))
        return b"" if found is None else bytes(byte_view(found))

    def _block(self, number: int, stop: int) -> memoryview:
        """Return a block; `stop`: the end of what is read now."""
        block = self._blocks.get(number)
        if block is not None:
            self._blocks.move_to_end(number)
            return block
        self._ahead = min(2 * self._ahead, _MOST_AT_ONCE) if number == self._next else 1
        count = min(max(self._ahead, -(-stop // BLOCK) - number), _MOST_AT_ONCE)
        found = self._fetch(number * BLOCK, min((number + count) * BLOCK, self.size))
        if isinstance(found, Fetched) and found.version is not None and found.version != self.state[1]:
            raise StoreError("the file changed while it was read", store=self.name, hint="Scan it again")
        data = byte_view(found[0])
        for at in range(0, data.nbytes, BLOCK):
            self._blocks[number + at // BLOCK] = data[at : at + BLOCK]
        while len(self._blocks) > _KEPT:
            self._blocks.popitem(last=False)
        self._next = number + count
        if number not in self._blocks or self._blocks[number].nbytes < min(BLOCK, self.size - number * BLOCK):
            raise StoreError(
                "the file ended early while it was read", store=self.name, hint="It was truncated or changed"
            )
        return self._blocks[number]

    def _fetch(self, start: int, stop: int) -> list[Buffer]:
        found = self._store.fetch([Fetch(self._key, (ByteRange(start, stop),))])[0]
        if found is None:
            raise StoreError("no such file", store=self.name)
        return found

    def close(self) -> None:
        if not self.closed:
            self._blocks.clear()
            self._files.close()
        super().close()


State: TypeAlias = tuple[int, str]
"""Of a file: its size, and what changes with its content: a version, or the time of the last change in nanoseconds."""


def remote_state(store: Store, key: str) -> State | None:
    """Return the state of a file in a store by one request; ``None``: it is not there."""
    found = store.fetch([Fetch(key, (ByteRange(0, 1),))])[0]
    return None if found is None else _state_of(store, key, found)


def _state_of(store: Store, key: str, found: list[Buffer]) -> State:
    """Return size and version: those that a response states, else those that the store looks up."""
    size, version = (found.size, found.version) if isinstance(found, Fetched) else (None, None)
    if version is None and not is_in_memory(store):  # whose versions last as long as a store over them is open
        version = store.version(key)
    return (store.getsize(key) or 0) if size is None else size, version or ""


@contextmanager
def downloaded(file: RemoteFile) -> Iterator[str]:
    """Copy a file to a temporary directory, for a library that needs a path. Leaving the block removes the copy."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tessarr-download-") as folder:
        path = os.path.join(folder, os.path.basename(file.name.rstrip("/")) or "file")
        file.seek(0)
        with open(path, "wb") as copy:
            while part := file.read(_MOST_AT_ONCE * BLOCK):
                copy.write(part)
        yield path


def is_pattern(url: str) -> bool:
    """Whether a URL names many files. What may be a query, and hold a signature, is none: URLs with queries are refused later.

    >>> is_pattern("s3://bucket/run-?/*.nc"), is_pattern("http://[::1]:80/a.nc?x"), is_pattern("s3://bucket/a.nc?key=x")
    (True, False, False)
    """
    _, _, place = url.partition("://")
    key = place.partition("/")[2]
    has_query = _scheme(url).startswith("http") or "=" in key.partition("?")[2]
    return any(sign in key for sign in ("*[" if has_query else "*[?"))


def listed(pattern: str, storage_options: Mapping[str, object] | None = None) -> list[str]:
    """Return the URLs of the files that a pattern names, sorted: ``*``, ``?`` and ``[]`` within a name, ``**`` any path.

    Raises `UnsupportedOperationError` for a place that cannot list, `StoreError` where no file matches.
    """
    from tessarr.stores.virtual.reference import ReferenceStore

    files = ReferenceStore({}, storage_options=storage_options)
    try:
        root, _ = files.split(pattern)
        store, name = files.file_at(pattern)
        if not isinstance(store, List):
            raise UnsupportedOperationError(
                "this place cannot list its files",
                store=pattern,
                hint="Name the files one by one, instead of a pattern",
            )
        found = sorted({f"{root.rstrip('/')}/{key}" for key in _matching(store, "", name.split("/"))})
    finally:
        files.close()
    if not found:
        raise StoreError("no file matches the pattern", store=pattern)
    return found


def _matching(store: Store, prefix: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the keys below a prefix whose segments match the parts of a pattern; only prefixes that match are listed."""
    first, *rest = parts
    if rest and not any(sign in first for sign in "*[?"):
        yield from _matching(store, f"{prefix}{first}/", rest)
    elif first == "**":
        depth = len(rest)
        for key in store.list_prefix(prefix):
            names = key[len(prefix) :].split("/")
            if len(names) >= depth and all(map(fnmatchcase, names[len(names) - depth :], rest)):
                yield key
    else:
        found = store.list_dir(prefix)
        if rest:
            for below in found.prefixes:
                if fnmatchcase(below[len(prefix) :].rstrip("/"), first):
                    yield from _matching(store, prefix_of(below.rstrip("/")), rest)
        else:
            yield from (key for key in found.keys if fnmatchcase(key[len(prefix) :], first))
