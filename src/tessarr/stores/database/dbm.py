"""A store in a DBM file: gdbm, ndbm, SQLite (Python 3.13) or the portable ``dbm.dumb``, whichever `dbm` opens.

Keys are UTF-8, values are stored unchanged, as by zarr-python 2. Only one process may have the file open for writing;
a lock serializes its threads. A write that a crash interrupts can damage a DBM file; SQLite files are safe against that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tessarr.errors import ConflictError, StoreError
from tessarr.stores.base import ANY, Any_, ConditionalStore, LockContext, Version
from tessarr.stores.buffers import as_bytes, cut, digest_version
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_key, check_prefix, path_of_url
from tessarr.types import Buffer, ByteRange

_List = list


class DBMStore(ConditionalStore):
    """A store in the DBM file at `path`; `flag` and `mode` are those of `dbm.open`.

    `open` is called in place of `dbm.open` (for example `dbm.gnu.open`).
    """

    adapter = "zarr"
    """In URL pipelines: ``place|zarr:path``."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        flag: str = "c",
        mode: int = 0o666,
        open: Callable[[str, str, int], object] | None = None,  # noqa: A002 - zarr-python 2 calls it so
        read_only: bool = False,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only or flag.startswith("r")
        self._flag = "r" if self.read_only else flag
        self._mode = mode
        self._opener = open
        self._file_lock = threading.RLock()
        self._file: tuple[int, Any] | None = None
        with self._opened(""):
            pass

    @property
    def url(self) -> str:
        return f"dbm://{quote(Path(self.path).as_posix())}"

    def __getstate__(self) -> dict[str, object]:
        if not self.read_only:
            self.close()  # flushes before another process opens the file
        state = {**self.__dict__, "_file": None, "_flag": "r" if self.read_only else "c"}
        del state["_file_lock"]
        return state

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self._file_lock = threading.RLock()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DBMStore) and (other.path, other.read_only) == (self.path, self.read_only)

    def __hash__(self) -> int:
        return hash(self.path)

    def with_read_only(self, read_only: bool = True) -> DBMStore:
        """Return a store of the same file; flush and close a file that is open for writing first."""
        self.close()
        return DBMStore(self.path, flag="r" if read_only else "c", mode=self._mode, open=self._opener)

    def close(self) -> None:
        with self._file_lock:
            if self._file is not None and self._file[0] == os.getpid():
                self._file[1].close()
            self._file = None

    @contextmanager
    def _opened(self, key: str) -> Iterator[Any]:
        """Lock the file for this thread, and return it open."""
        import dbm

        with self._file_lock:
            try:
                if self._file is None or self._file[0] != os.getpid():
                    opener: Any = self._opener or dbm.open
                    self._file = (os.getpid(), opener(self.path, self._flag, self._mode))
                    if self._flag == "n":  # only the first time
                        self._flag = "c"
                yield self._file[1]
            except (*dbm.error, OSError) as error:
                if isinstance(error, StoreError):
                    raise
                raise StoreError("DBM failed", store=self.url, key=key or None, got=str(error)) from error

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        check_key(key)
        with self._opened(key) as file:
            try:
                value: bytes = file[key.encode()]
            except KeyError:
                return None
        return cut(value, byte_range)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`: all ranges of one version, although a writer may replace the value at any time."""
        value = self.get(key)
        return None if value is None else [cut(as_bytes(value), byte_range) for byte_range in ranges]

    def version(self, key: str) -> Version | None:
        value = self.get(key)
        return None if value is None else digest_version(value)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        check_key(key)
        with self._opened(key) as file:
            if if_match is not ANY:
                found = self.version(key)
                if found != if_match:
                    raise ConflictError(
                        "another writer was faster", store=self.url, key=key, expected=if_match, got=found
                    )
            file[key.encode()] = as_bytes(value)
            _flush(file)
        return digest_version(value)

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: excludes threads of this process; no other process has the file open for writing."""
        return KEYED_LOCKS.hold((self.path, key))

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        with self._opened(key):
            new = change(self.get(key))
            if new is None:
                self.delete(key)
            else:
                self.set(key, new)

    def delete(self, key: str) -> None:
        self._check_writable(key)
        check_key(key)
        with self._opened(key) as file:
            try:
                del file[key.encode()]
            except KeyError:
                return
            _flush(file)

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        with self._opened("") as file:
            names = [*file.keys()]
        return (key for key in map(bytes.decode, names) if key.startswith(prefix))


def _flush(file: object) -> None:
    sync = getattr(file, "sync", None)
    if sync is not None:
        sync()


def open_url(url: str, options: dict[str, Any], read_only: bool) -> DBMStore:
    """Open the store at ``dbm:path``."""
    return DBMStore(path_of_url(url), read_only=read_only, **options)
