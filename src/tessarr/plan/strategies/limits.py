"""Hold the process to what a task may use: threads, no cache of decoded chunks, and no memory that the allocator keeps."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

from tessarr.settings import Restore, config

_M_MMAP_THRESHOLD = -3
_PIECE = 1 << 20
"""Larger pieces of memory go back to the system when they are freed, instead of up to 32 MB; most buffers are reused anyway."""
_lock = Lock()
_tasks = 0
_restore: Restore | None = None


@contextmanager
def limited(threads: int, in_flight: int = 0) -> Iterator[None]:
    """Set the threads of this process for as long as any task runs, and the bytes of chunks `in_flight`, if that is not 0."""
    global _tasks, _restore
    with _lock:
        if not _tasks:
            batch = {"async.nbytes": in_flight} if in_flight else {}
            _restore = config.set({"threading.max_workers": threads, "cache.nbytes": 0, **batch})
            _allocate("mallopt", _M_MMAP_THRESHOLD, _PIECE)
        _tasks += 1
    try:
        yield
    finally:
        with _lock:
            _tasks -= 1
            if not _tasks and _restore is not None:
                _restore.__exit__(None, None, None)
                _allocate("malloc_trim", 0)


def _allocate(function: str, *arguments: int) -> None:
    """Call a function of the allocator of glibc, if that is the one."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None)[function](*arguments)
