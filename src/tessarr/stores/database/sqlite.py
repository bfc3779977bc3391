"""A whole hierarchy in one SQLite file.

Values are rows of the table ``zarr(k TEXT PRIMARY KEY, v BLOB)``, the schema of zarr-python 2, so that each opens the files
of the other. Every write is a transaction: readers, other threads and other processes see old or new values, and updates
exclude one another. SQLite allows one writer at a time; a value has at most 1 GB.

Source: https://www.sqlite.org/lang_transaction.html (BEGIN IMMEDIATE), https://www.sqlite.org/limits.html.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tessarr.errors import ConflictError, StoreError
from tessarr.stores.base import ANY, Any_, ConditionalStore, Version
from tessarr.stores.buffers import as_bytes, digest_version
from tessarr.stores.fetch import Fetch
from tessarr.stores.functions import check_listed, check_versions
from tessarr.stores.locks import fork_safe_lock
from tessarr.stores.path import check_key, check_prefix, path_of_url
from tessarr.types import Buffer, ByteRange

_List = list
_connections_lock = fork_safe_lock()
_CREATE = "CREATE TABLE IF NOT EXISTS zarr(k TEXT PRIMARY KEY, v BLOB)"
_SET = "INSERT OR REPLACE INTO zarr(k, v) VALUES (?, ?)"
_BUSY_S = 60.0
_MAX_NBYTES = 2**30
"""The most bytes of a SQLite value."""


_INHERITED_CONNECTIONS: list[sqlite3.Connection] = []
"""The connections of the parent, which a forked child must not close."""


class _Connection:
    """The connection of one thread, closed when the thread ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.process = os.getpid()
        self.connection = connection
        # Not `__del__`: the connection may be collected before this object, and would warn that it was not closed.
        weakref.finalize(self, _release_connection, connection, self.process)


def _release_connection(connection: sqlite3.Connection, process: int) -> None:
    if process == os.getpid():
        connection.close()
    else:
        _INHERITED_CONNECTIONS.append(connection)


class SQLiteStore(ConditionalStore):
    """A store in the SQLite file at `path`, which is created if it is missing (unless `read_only`).

    `options` are passed to `sqlite3.connect`; ``timeout`` (60 s) limits the wait of a writer for another.
    """

    adapter = "zarr"
    """In URL pipelines: ``place|zarr:path``."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False, **options: Any) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self._options = {"timeout": _BUSY_S, **options}
        self._local = threading.local()
        self._connections: weakref.WeakSet[_Connection] = weakref.WeakSet()
        if read_only:
            if not os.path.exists(self.path):
                raise StoreError("there is no such file", store=self.url)
        else:
            with self._transaction("") as connection:
                connection.execute(_CREATE)

    @property
    def url(self) -> str:
        return f"sqlite://{quote(Path(self.path).as_posix())}"

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "read_only": self.read_only, "_options": self._options}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self._local = threading.local()
        self._connections = weakref.WeakSet()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SQLiteStore) and (other.path, other.read_only) == (self.path, self.read_only)

    def __hash__(self) -> int:
        return hash(self.path)

    def close(self) -> None:
        with _connections_lock:
            every = [*self._connections]
            self._connections.clear()
        for own in every:
            if own.process == os.getpid():
                own.connection.close()
        self._local = threading.local()

    # -- connections -------------------------------------------------------------------------------------------

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection; a forked child opens a new one, because SQLite's locks do not survive a fork."""
        found: _Connection | None = getattr(self._local, "connection", None)
        if found is not None and found.process == os.getpid():
            return found.connection
        mode = "ro" if self.read_only else "rwc"
        uri = f"{Path(self.path).as_uri()}?mode={mode}"
        try:
            # Only one thread uses the connection, but any thread may close the store and so the connection.
            connection: sqlite3.Connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False, **self._options
            )
        except sqlite3.Error as error:
            raise StoreError("SQLite cannot open the file", store=self.url, got=str(error)) from error
        own = self._local.connection = _Connection(connection)
        with _connections_lock:
            self._connections.add(own)
        return connection

    @contextmanager
    def _transaction(self, key: str) -> Iterator[sqlite3.Connection]:
        """Run the block in a write transaction that locks the database at once, so that no writer reads stale values."""
        connection = self._connection()
        try:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StoreError("SQLite failed", store=self.url, key=key or None, got=str(error)) from error

    @contextmanager
    def _moment(self, key: str = "") -> Iterator[sqlite3.Connection]:
        """Let all queries in the block read the values of one moment."""
        connection = self._connection()
        begun = not connection.in_transaction
        try:
            try:
                if begun:
                    connection.execute("BEGIN")
                yield connection
            finally:
                if begun and connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreError("SQLite failed", store=self.url, key=key or None, got=str(error)) from error

    @contextmanager
    def _synced(self, durable: bool | None) -> Iterator[None]:
        """If `durable`, run the block while the connection syncs everything that a power cut could lose."""
        if not durable:
            yield
            return
        before = int(self._rows("PRAGMA synchronous")[0][0])
        self._rows("PRAGMA synchronous = EXTRA")
        try:
            yield
        finally:
            self._rows(f"PRAGMA synchronous = {before}")

    def _rows(self, statement: str, *values: object) -> list[Any]:
        try:
            return self._connection().execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError("SQLite failed", store=self.url, got=str(error)) from error

    # -- the store ---------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        check_key(key)
        if byte_range is None:
            rows = self._rows("SELECT v FROM zarr WHERE k = ?", key)
        elif byte_range.start < 0:
            rows = self._rows(
                "SELECT substr(v, max(1, length(v) + 1 - ?)) FROM zarr WHERE k = ?", -byte_range.start, key
            )
        else:
            size = _MAX_NBYTES if byte_range.stop is None else max(0, byte_range.stop - byte_range.start)
            start = min(byte_range.start, _MAX_NBYTES) + 1
            rows = self._rows("SELECT substr(v, ?, ?) FROM zarr WHERE k = ?", start, min(size, _MAX_NBYTES), key)
        if not rows:
            return None
        return b"" if rows[0][0] is None else _blob(rows[0][0])  # a part of an empty value is NULL

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`: all ranges of one version; SQLite reads only the pages that have them."""
        check_key(key)
        with self._moment(key) as connection:
            row = connection.execute("SELECT rowid, typeof(v) FROM zarr WHERE k = ?", (key,)).fetchone()
            if row is None:
                return None
            if row[1] != "blob":
                value = memoryview(_blob(connection.execute("SELECT v FROM zarr WHERE k = ?", (key,)).fetchone()[0]))
                bounds = (byte_range.bounds(value.nbytes) for byte_range in ranges)
                return [value[start:stop] for start, stop in bounds]
            with connection.blobopen("zarr", "v", row[0], readonly=True) as blob:
                return [_read_range(blob, byte_range) for byte_range in ranges]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """See `Store.fetch`: all values are of one moment."""
        if len(requests) < 2:
            return super().fetch(requests)
        with self._moment():
            return super().fetch(requests)

    def exists(self, key: str) -> bool:
        check_key(key)
        return bool(self._rows("SELECT 1 FROM zarr WHERE k = ?", key))

    def getsize(self, key: str) -> int | None:
        check_key(key)
        rows = self._rows("SELECT length(v) FROM zarr WHERE k = ?", key)
        return int(rows[0][0]) if rows else None

    def getsize_prefix(self, prefix: str) -> int:
        where, values = _prefix_condition(prefix)
        return int(self._rows(f"SELECT coalesce(sum(length(v)), 0) FROM zarr WHERE {where}", *values)[0][0])

    def version(self, key: str) -> Version | None:
        value = self.get(key)
        return None if value is None else digest_version(value)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        check_key(key)
        with self._transaction(key) as connection:
            if if_match is not ANY:
                row = connection.execute("SELECT v FROM zarr WHERE k = ?", (key,)).fetchone()
                found = None if row is None else digest_version(_blob(row[0]))
                if found != if_match:
                    raise ConflictError(
                        "another writer was faster", store=self.url, key=key, expected=if_match, got=found
                    )
            connection.execute(_SET, (key, as_bytes(value)))
        return digest_version(value)

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        """See `tessarr.stores.protocols.Commit`: a transaction, synced as the connection is set, and fully if `durable`."""
        self._check_writable("")
        for key in changes:
            check_key(key)
        with self._synced(durable), self._transaction("") as connection:

            def version(key: str) -> Version | None:
                row = connection.execute("SELECT v FROM zarr WHERE k = ?", (key,)).fetchone()
                return None if row is None else digest_version(_blob(row[0]))

            def list_below(prefix: str) -> Iterator[str]:
                where, values = _prefix_condition(prefix)
                return (row[0] for row in connection.execute(f"SELECT k FROM zarr WHERE {where}", values))

            check_versions(self.url, expected, version)
            check_listed(self.url, listed, list_below, changes, expected)
            for key, value in changes.items():
                if value is None:
                    connection.execute("DELETE FROM zarr WHERE k = ?", (key,))
                else:
                    connection.execute(_SET, (key, as_bytes(value)))

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        check_key(key)
        with self._transaction(key) as connection:
            row = connection.execute("SELECT v FROM zarr WHERE k = ?", (key,)).fetchone()
            new = change(None if row is None else _blob(row[0]))
            if new is None:
                connection.execute("DELETE FROM zarr WHERE k = ?", (key,))
            else:
                connection.execute(_SET, (key, as_bytes(new)))

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._check_writable(prefix)
        where, values = _prefix_condition(prefix)
        with self._transaction(prefix) as connection:
            connection.execute(f"DELETE FROM zarr WHERE {where}", values)
            connection.executemany(_SET, [(key, as_bytes(value)) for key, value in items.items()])

    def delete(self, key: str) -> None:
        self.delete_many([key])

    def delete_many(self, keys: Iterable[str]) -> None:
        every = [(key,) for key in keys]
        for (key,) in every:
            self._check_writable(key)
            check_key(key)
        with self._transaction("") as connection:
            connection.executemany("DELETE FROM zarr WHERE k = ?", every)

    def delete_prefix(self, prefix: str) -> None:
        self._check_writable(prefix)
        where, values = _prefix_condition(prefix)
        with self._transaction(prefix) as connection:
            connection.execute(f"DELETE FROM zarr WHERE {where}", values)

    def list(self, prefix: str = "") -> Iterator[str]:
        where, values = _prefix_condition(prefix)
        return (row[0] for row in self._rows(f"SELECT k FROM zarr WHERE {where}", *values))


def _prefix_condition(prefix: str) -> tuple[str, tuple[str, ...]]:
    """Return a condition on the indexed column, and its values. The successor of ``/`` in ASCII is ``0``."""
    check_prefix(prefix)
    return ("k >= ? AND k < ?", (prefix, prefix[:-1] + "0")) if prefix else ("1", ())


def _read_range(blob: sqlite3.Blob, byte_range: ByteRange) -> bytes:
    start, stop = byte_range.bounds(len(blob))
    blob.seek(start)
    return blob.read(stop - start)


def _blob(value: Any) -> bytes:
    """Convert a column to bytes: zarr-python 2 stored some metadata documents as text."""
    return value.encode() if isinstance(value, str) else bytes(value)


def open_url(url: str, options: Mapping[str, object], read_only: bool) -> SQLiteStore:
    """Open the store at ``sqlite:path``."""
    return SQLiteStore(path_of_url(url), read_only=read_only, **options)
