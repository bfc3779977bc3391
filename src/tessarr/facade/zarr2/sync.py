"""zarr-python 2's ``zarr.sync``: locks for code that names them (tessarr locks by itself)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class ThreadSynchronizer:
    """A lock per key for the threads of one process.

    tessarr locks partial writes by itself, for threads and processes; this class is for code that names it.
    """

    def __getitem__(self, item: str) -> AbstractContextManager[object]:
        from tessarr.stores.locks import KEYED_LOCKS

        return KEYED_LOCKS.hold((id(self), item))


class ProcessSynchronizer:
    """A lock per key for the processes that share the directory `path`. See `ThreadSynchronizer`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getitem__(self, item: str) -> AbstractContextManager[object]:
        return self._hold(item)

    @contextmanager
    def _hold(self, item: str) -> Iterator[None]:
        from tessarr.stores.local.store import LocalStore

        with LocalStore(self.path).lock(item):
            yield


__all__ = ["ProcessSynchronizer", "ThreadSynchronizer"]
