"""Hold the process to what a task may use: threads, and no cache of decoded chunks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from tessarr.settings import Restore, config

_lock = Lock()
_tasks = 0
_restore: Restore | None = None


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Set the threads of this process for as long as any task runs."""
    global _tasks, _restore
    with _lock:
        if not _tasks:
            _restore = config.set({"threading.max_workers": threads, "cache.nbytes": 0})
        _tasks += 1
    try:
        yield
    finally:
        with _lock:
            _tasks -= 1
            if not _tasks and _restore is not None:
                _restore.__exit__(None, None, None)
