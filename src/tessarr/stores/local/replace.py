"""The last step of a write or delete: replace or remove the file only if it is still the version that was read.

An update holds the lock file of the value from before the read on (`tessarr.stores.local.lock`); a write of the whole
value does not. Both do the last step here, while they hold a ``flock`` of the value's file. Where there is no file yet,
the new file is linked into place, which fails if another writer was faster. So of a concurrent update and replacement
either the replacement comes last, or the update finds another version than it read and is retried.

Windows can neither replace nor remove a file that is open. On Windows, in a store without file locks, and on a file system
that has neither links nor ``flock``, a value that is written between the last check and the rename is lost. In the first two
cases `notices_writes` in `tessarr.stores.functions` is false, and the engines hold the lock of the key while they replace a
whole chunk.

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


class _UnableError(Exception):
    """The file system has no links or no locks, or the file to replace must not be read."""


def place(
    temporary: str, path: str, over: Version | None | Any_ = ANY, *, flock: bool = True, keep: bool = False
) -> bool:
    """Rename the file `temporary` to `path`, if the file there has version `over`.

    `keep`: a file that is linked into place may keep its first name. Returns ``False``, having done nothing, for another
    version. Raises `OSError`.
    """
    expects_one = isinstance(over, str)
    try:
        while flock and IS_EXACT:  # each further round means that another writer was faster
            if not expects_one and _link(temporary, path):
                if not keep:
                    os.unlink(temporary)
                return True
            held = _hold(path)
            if held is None:
                if expects_one:
                    return False
                if os.path.islink(path):  # it leads nowhere: nothing can be locked there, and the name is in use
                    break
                continue
            try:
                if not _agrees(held, over):
                    return False
                os.replace(temporary, path)
                return True
            finally:
                filelock.unlock(held)
    except _UnableError:
        pass
    if not _agrees(path, over):
        return False
    filelock.retry_denied(temporary, path)
    return True


def remove(path: str, over: Version | None | Any_ = ANY, *, flock: bool = True) -> bool:
    """Remove the file at `path`, if it has version `over`. Returns ``False``, having done nothing, for another version.

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
            # A file that another process removed meanwhile counts as removed.
            with contextlib.nullcontext() if held is None else contextlib.suppress(FileNotFoundError):
                filelock.retry_denied(path)
        return True
    finally:
        if held is not None:
            filelock.unlock(held)


def move(path: str, target: str) -> None:
    """Rename the file at `path` to `target`, a name that no writer knows. An update of `path` in flight is retried."""
    try:
        held = _hold(path) if IS_EXACT else None
    except _UnableError:
        held = None
    try:
        os.rename(path, target)
    finally:
        if held is not None:
            filelock.unlock(held)


def _link(temporary: str, path: str) -> bool:
    """Link the file to `path`; ``False``: another file has that name. Raises `_UnableError`."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise _UnableError from error
    return True


def _hold(path: str) -> int | None:
    """Open and lock the file at `path`. Returns the descriptor, or ``None`` if there is no file. Raises `_UnableError`."""
    for flags in (READ | os.O_RDWR, READ):  # NFS locks only files that are open for writing
        try:
            return filelock.acquire(path, flags=flags)
        except ABSENT:
            return None
        except OSError as error:
            if flags == READ:
                raise _UnableError from error
    return None


def _agrees(where: str | int, over: Version | None | Any_) -> bool:
    """Whether the file at a path, or an open file, has version `over`."""
    if over is ANY:
        return True
    try:
        status = os.stat(where)
    except ABSENT:
        return over is None
    return over == (version_of(status) if stat.S_ISREG(status.st_mode) else None)
