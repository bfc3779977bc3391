"""A store in an LMDB database (a memory-mapped B-tree): many readers, one writer, ACID transactions.

Keys are UTF-8, values are stored unchanged, as by zarr-python 2. LMDB limits a key to 511 bytes and all data to `map_size`
bytes (1 TiB; address space, not disk). Not for network file systems.
lmdb is part of the extra ``tessarr[kv]``.

Source: http://www.lmdb.tech/doc/.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tessarr.errors import ConflictError, DurabilityError, MissingDependencyError, StoreError, UnsupportedOperationError
from tessarr.stores.base import ANY, Any_, ConditionalStore, Version
from tessarr.stores.buffers import as_bytes, cut, digest_version
from tessarr.stores.fetch import Fetch
from tessarr.stores.functions import check_listed, check_versions
from tessarr.stores.locks import fork_safe_lock
from tessarr.stores.path import check_key, check_prefix, path_of_url
from tessarr.types import Buffer, ByteRange

_List = list
_MAP_SIZE = 2**40
_KEY_LIMIT = 511
_open_lock = fork_safe_lock()


class _Shared:
    """An environment that all stores of a path share in this process: LMDB forbids opening one database twice.

    Closing an environment would end the transactions of other threads, and snapshots: it is closed when the last one ends.
    """

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.users = 0
        """Transactions and snapshots that are open."""
        self.closes = False
        """Whether a store was closed since it was last used."""


_OPEN: dict[tuple[int, str, bool], _Shared] = {}
"""By process, path and mode."""


class LMDBStore(ConditionalStore):
    """A store in the LMDB database at `path` (a directory, created if it is missing unless `read_only`).

    `options` are passed to `lmdb.open`.
    """

    adapter = "zarr"
    """In URL pipelines: ``place|zarr:path``."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False, **options: Any) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self._options = options
        if read_only and not os.path.exists(self.path):
            raise StoreError("there is no such database", store=self.url)
        with _open_lock:
            self._open().closes = False

    @property
    def url(self) -> str:
        return f"lmdb://{quote(Path(self.path).as_posix())}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LMDBStore) and (other.path, other.read_only) == (self.path, self.read_only)

    def __hash__(self) -> int:
        return hash(self.path)

    def close(self) -> None:
        with _open_lock:
            for mode in (False, True):
                shared = _OPEN.get((os.getpid(), self.path, mode))
                if shared is not None:
                    shared.closes = True
                    self._close_unused(mode)

    def _close_unused(self, mode: bool) -> None:
        """Close the environment if a store was closed, and nothing uses it any more."""
        shared = _OPEN[os.getpid(), self.path, mode]
        if shared.closes and not shared.users:
            del _OPEN[os.getpid(), self.path, mode]
            shared.environment.close()

    @contextmanager
    def _using(self) -> Iterator[Any]:
        """Hold the environment that this process shares for the path open for the ``with`` block."""
        shared = self._acquired()
        try:
            yield shared.environment
        finally:
            self._release(shared)

    def _acquired(self) -> _Shared:
        with _open_lock:
            shared = self._open()
            shared.users += 1
            shared.closes = False
            return shared

    def _release(self, shared: _Shared) -> None:
        with _open_lock:
            shared.users -= 1
            for mode in (False, True):
                if _OPEN.get((os.getpid(), self.path, mode)) is shared:
                    self._close_unused(mode)

    def _open(self) -> _Shared:
        for mode in (False, True) if self.read_only else (False,):
            found = _OPEN.get((os.getpid(), self.path, mode))
            if found is not None:
                return found
        try:
            import lmdb
        except ImportError as error:
            raise MissingDependencyError("LMDBStore needs lmdb", hint="pip install 'tessarr[kv]'") from error
        if any(path == self.path for process, path, _ in _OPEN if process != os.getpid()):
            raise UnsupportedOperationError(
                "LMDB cannot be used in a process that was forked after the database was opened",
                store=self.url,
                hint="Close the store before the fork, or start processes by `spawn` or `forkserver`",
            )
        if not self.read_only:
            self._end_reading()
        options = {"map_size": _MAP_SIZE, "readahead": False, "max_spare_txns": 16, **self._options}
        try:
            environment = lmdb.open(self.path, readonly=self.read_only, subdir=not os.path.isfile(self.path), **options)
        except lmdb.Error as error:
            raise StoreError("LMDB cannot open the database", store=self.url, got=str(error)) from error
        shared = _OPEN[os.getpid(), self.path, self.read_only] = _Shared(environment)
        return shared

    def _end_reading(self) -> None:
        """Close an environment that is read-only, before one is opened for writing. Raises `StoreError` while it is in use."""
        stale = _OPEN.get((os.getpid(), self.path, True))
        if stale is None:
            return
        if stale.users:
            raise StoreError(
                "the database is being read through a store that was opened read-only",
                store=self.url,
                hint="A process opens a database once: end these reads and snapshots, or open it for writing first",
            )
        del _OPEN[os.getpid(), self.path, True]
        stale.environment.close()

    @contextmanager
    def _transaction(self, key: str = "", *, write: bool = False, views: bool = False) -> Iterator[Any]:
        import lmdb

        if write:
            self._check_writable(key)
        try:
            with self._using() as environment, environment.begin(write=write, buffers=views) as transaction:
                yield transaction
        except lmdb.Error as error:
            raise StoreError("LMDB failed", store=self.url, key=key or None, got=str(error)) from error

    def _name(self, key: str) -> bytes:
        check_key(key)
        name = key.encode()
        if len(name) > _KEY_LIMIT:
            raise StoreError(
                "the key is too long for LMDB", store=self.url, key=key, expected="at most 511 bytes", got=len(name)
            )
        return name

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        name = self._name(key)
        with self._transaction(key) as transaction:
            value = transaction.get(name)
        return None if value is None else cut(value, byte_range)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`: all ranges of one version; no other bytes of the value are copied."""
        return self.fetch([Fetch(key, tuple(ranges))])[0]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """See `Store.fetch`: all values are of one moment, and no other bytes of them are copied."""
        names = [self._name(request.key) for request in requests]
        found: _List[_List[Buffer] | None] = []
        with self._transaction(requests[0].key if len(requests) == 1 else "", views=True) as transaction:
            for name, request in zip(names, requests, strict=True):
                value = transaction.get(name)
                if value is None:
                    found.append(None)
                    continue
                ranges = (ByteRange(0),) if request.ranges is None else request.ranges
                bounds = (byte_range.bounds(len(value)) for byte_range in ranges)
                found.append([bytes(value[start:stop]) for start, stop in bounds])
        return found

    def version(self, key: str) -> Version | None:
        value = self.get(key)
        return None if value is None else digest_version(value)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        name = self._name(key)
        with self._transaction(key, write=True) as transaction:
            if if_match is not ANY:
                old = transaction.get(name)
                found = None if old is None else digest_version(old)
                if found != if_match:
                    raise ConflictError(
                        "another writer was faster", store=self.url, key=key, expected=if_match, got=found
                    )
            transaction.put(name, as_bytes(value))
        return digest_version(value)

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        """See `tessarr.stores.protocols.Commit`: a transaction, synced as the environment is set, and if `durable`."""
        names = {key: self._name(key) for key in changes}
        with self._transaction(write=True) as transaction:

            def version(key: str) -> Version | None:
                old = transaction.get(self._name(key))
                return None if old is None else digest_version(old)

            check_versions(self.url, expected, version)
            check_listed(
                self.url, listed, lambda prefix: map(bytes.decode, _names(transaction, prefix)), changes, expected
            )
            for key, value in changes.items():
                if value is None:
                    transaction.delete(names[key])
                else:
                    transaction.put(names[key], as_bytes(value))
        if durable:
            self._sync()

    def _sync(self) -> None:
        """Sync the database, also where the environment is set not to. Raises `DurabilityError`."""
        import lmdb

        try:
            with self._using() as environment:
                environment.sync(True)
        except lmdb.Error as error:
            raise DurabilityError(
                "the transaction is committed, but the database could not be synced",
                store=self.url,
                got=str(error),
                hint="The changes are visible now; whether they survive a power cut is unknown",
            ) from error

    def snapshot(self) -> LMDBStore:
        """See `tessarr.stores.protocols.Snapshot`: a transaction that reads. The database cannot reuse pages until it ends."""
        return _Snapshot(self)

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        name = self._name(key)
        with self._transaction(key, write=True) as transaction:
            new = change(transaction.get(name))
            if new is None:
                transaction.delete(name)
            else:
                transaction.put(name, as_bytes(new))

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        with self._transaction(prefix, write=True) as transaction:
            for name in [*_names(transaction, prefix)]:
                transaction.delete(name)
            for key, value in items.items():
                transaction.put(self._name(key), as_bytes(value))

    def delete(self, key: str) -> None:
        self.delete_many([key])

    def delete_many(self, keys: Iterable[str]) -> None:
        names = [self._name(key) for key in keys]
        with self._transaction(write=True) as transaction:
            for name in names:
                transaction.delete(name)

    def delete_prefix(self, prefix: str) -> None:
        with self._transaction(prefix, write=True) as transaction:
            for name in [*_names(transaction, prefix)]:
                transaction.delete(name)

    def list(self, prefix: str = "") -> Iterator[str]:
        with self._transaction() as transaction:
            names = [*_names(transaction, prefix)]
        return (name.decode() for name in names)

    def getsize_prefix(self, prefix: str) -> int:
        with self._transaction() as transaction:
            return sum(len(transaction.get(name)) for name in _names(transaction, prefix))


def _names(transaction: Any, prefix: str) -> Iterator[bytes]:
    """Yield the database keys under `prefix`, in order."""
    check_prefix(prefix)
    start = prefix.encode()
    with transaction.cursor() as cursor:
        if not (cursor.set_range(start) if start else cursor.first()):
            return
        for name in cursor.iternext(keys=True, values=False):
            if not name.startswith(start):
                return
            yield bytes(name)


def open_url(url: str, options: Mapping[str, object], read_only: bool) -> LMDBStore:
    """Open the store at ``lmdb:path``."""
    return LMDBStore(path_of_url(url), read_only=read_only, **options)


class _Snapshot(LMDBStore):
    """The values of one moment, read in one transaction of the database by one thread at a time."""

    def __init__(self, store: LMDBStore) -> None:
        self._shared = store._acquired()
        self._process = os.getpid()
        self._turn = fork_safe_lock()
        try:
            self._held = self._shared.environment.begin()
        except BaseException:
            store._release(self._shared)
            raise
        super().__init__(store.path, read_only=True, **store._options)

    def close(self) -> None:
        """End the snapshot; the database stays open."""
        with self._turn:
            held, self._held = self._held, None
        if held is not None and self._process == os.getpid():
            held.abort()
            self._release(self._shared)

    def __reduce__(self) -> tuple[object, ...]:
        raise UnsupportedOperationError("a snapshot cannot be pickled", store=self.url)

    @contextmanager
    def _transaction(self, key: str = "", *, write: bool = False, views: bool = False) -> Iterator[Any]:
        if write:
            self._check_writable(key)
        with self._turn:
            if self._held is None:
                raise ValueError("the snapshot has ended")
            if self._process != os.getpid():
                raise UnsupportedOperationError(
                    "the snapshot is of the process that took it",
                    store=self.url,
                    hint="Start processes by `spawn` or `forkserver`, and take one there",
                )
            yield self._held
