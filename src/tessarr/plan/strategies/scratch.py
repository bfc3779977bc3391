"""The intermediate arrays of a task on the disk of its worker, in a directory that goes with the task, or with the next one."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tessarr.plan.strategies.strategy import LOCAL
from tessarr.stores.local.store import LocalStore


@contextmanager
def scratch_store(place: str, plan: str) -> Iterator[LocalStore]:
    """Yield a store in a new directory in `place`, which is removed at the end, with those that killed tasks of `plan` left."""
    top = Path(tempfile.gettempdir() if place == LOCAL else place)
    top.mkdir(parents=True, exist_ok=True)
    prefix = f"tessarr-{plan}-"
    for left in top.glob(f"{prefix}*"):
        _remove_unused(left)
    directory, used = _new(top, prefix)
    try:
        yield LocalStore(directory / "arrays")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        if used is not None:
            os.close(used)


def _new(top: Path, prefix: str) -> tuple[Path, int | None]:
    """Make a directory that is locked as long as this process lives."""
    while True:
        directory = Path(tempfile.mkdtemp(prefix=prefix, dir=top))
        with contextlib.suppress(OSError):  # another task took it for one that was left
            used = _lock(directory)
            if directory.exists():
                return directory, used
            if used is not None:
                os.close(used)


def _remove_unused(directory: Path) -> None:
    with contextlib.suppress(OSError):  # a task that lives holds its lock
        used = _lock(directory)
        if used is not None:
            shutil.rmtree(directory, ignore_errors=True)
            os.close(used)


def _lock(directory: Path) -> int | None:
    """Lock a directory; ``None`` where the system cannot. Raises `OSError` where another process has."""
    try:
        import fcntl
    except ImportError:
        return None
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
