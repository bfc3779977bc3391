"""The last step of a write or delete: replace or remove the file only if it is still the version that was read.

An update holds the lock file of the value from before the read on (`tessarr.stores.local.lock`); a write of the whole
value does not. Both do the last step here, while they hold a ``flock`` of the value's file. Where there is no file yet,
the first one is linked into place, which fails when another one was faster. So of an update and a replacement that run at
the same time either the replacement is the later one, or the update finds another version than it read and is retried.

Windows can neither replace nor remove a file that is open. There, in a store without file locks, and on a file system
that has neither links nor ``flock``, a value that comes between the last look and the rename is lost. In the first two
cases `notices_writes` in `tessarr.stores.functions` says so, and the engines hold the lock of the key while they replace a
chunk whole.

The native engine does the same (``rust/src/replace.rs``).
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

from tessarr.stores.base import ANY, Any_, Version
from tessarr.stores.local import lock as filelock
from tessarr.stores.local.file import ABSENT, READ, version_of

IS_EXACT = sys.platform != "win32"
_TRIES = 100


class _UnableError(Exception):
    """No links, no locks, or no permission to read what is to be replaced."""


def place(temporary: str, path: str, over: Version | None | Any_ = ANY, *, flock: bool = True) -> bool:
    """Renames the file `temporary` to `path`; ``False``: what is there is not version `over`, and nothing was done.

    Raises `OSError`.
    """
    expects_one = isinstance(over, str)
    try:
        for _ in range(_TRIES if flock and IS_EXACT else 0):
            if not expects_one and _link(temporary, path):
                os.unlink(temporary)
                return True
            held = _hold(path)
            if held is None:
                if expects_one:
                    return False
                continue
            try:
                if not _agrees(held, over):
                    return False
                os.replace(temporary, path)
                return True
            finally:
                filelock.let_go(held)
    except _UnableError:
        pass
    if not _agrees(path, over):
        return False
    filelock.retry_denied(temporary, path)
    return True


def remove(path: str, over: Version | None | Any_ = ANY, *, flock: bool = True) -> bool:
    """Removes the file at `path`; ``False``: what is there is not version `over`, and nothing was done.

    Raises `OSError`, also where there is no file, unless `over` is ``None``.
    """
    try:
        held = _hold(path) if flock and IS_EXACT else None
    except _UnableError:
        held = None
    try:
        if not _agrees(path, over):
            return False
        if over is not None:
            # One that was there, and that another removed meanwhile, is removed as well.
            with contextlib.nullcontext() if held is None else contextlib.suppress(FileNotFoundError):
                filelock.retry_denied(path)
        return True
    finally:
        if held is not None:
            filelock.let_go(held)


def _link(temporary: str, path: str) -> bool:
    """Makes the file known as `path` too; ``False``: another is there. Raises `_UnableError`."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise _UnableError from error
    return True


def _hold(path: str) -> int | None:
    """A descriptor of the file at `path`, locked; ``None``: there is none. Raises `_UnableError`."""
    for flags in (READ | os.O_RDWR, READ):  # NFS locks only what is open for writing
        try:
            return filelock.acquire(path, flags=flags)
        except ABSENT:
            return None
        except OSError as error:
            if flags == READ:
                raise _UnableError from error
    return None


def _agrees(where: str | int, over: Version | None | Any_) -> bool:
    """Whether version `over` is at a path, or in an open file."""
    if over is ANY:
        return True
    try:
        status = os.stat(where)
    except ABSENT:
        return over is None
    return over == (version_of(status) if stat.S_ISREG(status.st_mode) else None)
