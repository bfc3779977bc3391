"""Adapt an open zip store of zarr-python to a tessarr store.

zarr-python's object reads and writes the archive, under its lock: two writers would corrupt the archive, and the central
directory of new values is written only on close.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tessarr.stores.base import ANY, Any_, LockContext, Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.functions import no_conditional_writes
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.virtual.zarr_python import byte_request
from tessarr.types import Buffer, ByteRange


class OpenZip(Store):
    """A store over the archive of `store`, a ``zarr.storage.ZipStore``, which is opened if it is not open."""

    def __init__(self, store: Any) -> None:
        self._zip = store
        self.read_only = bool(store.read_only)
        if not store._is_open:
            store._sync_open()

    @property
    def url(self) -> str:
        """zarr-python's URL of the archive: ``zip://`` and the path."""
        return str(self._zip)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        from zarr.core.buffer import default_buffer_prototype

        check_key(key)
        if byte_range is not None and byte_range.stop is not None and byte_range.stop <= byte_range.start:
            return b"" if self.getsize(key) is not None else None
        with self._zip._lock:
            found = self._zip._get(key, default_buffer_prototype(), byte_request(byte_range))
        return None if found is None else byte_view(found.to_bytes())

    def getsize(self, key: str) -> int | None:
        check_key(key)
        with self._zip._lock:
            try:
                return int(self._zip._zf.getinfo(key).file_size)
            except KeyError:
                return None

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        """See `Store.set`. As in zarr-python, the old value stays in the archive, hidden by the new one."""
        from zarr.core.buffer import default_buffer_prototype

        self._check_writable(key)
        check_key(key)
        if not isinstance(if_match, Any_):
            raise no_conditional_writes(self, key)
        buffer = default_buffer_prototype().buffer.from_bytes(bytes(byte_view(value)))
        with self._zip._lock:
            self._zip._set(key, buffer)
        return None

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: excludes threads of this process."""
        self._check_writable(key)
        return KEYED_LOCKS.hold((id(self._zip), key))

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        with self._zip._lock:
            return iter([key for key in dict.fromkeys(self._zip._zf.namelist()) if key.startswith(prefix)])
