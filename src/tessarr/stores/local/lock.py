"""The lock file that excludes other processes, and the hidden names that a local store keeps beside its values.

The protocol, for every program that shares a directory with tessarr:

- A value ``dir/name`` is replaced by writing ``dir/.{name}.{random}.tessarr-tmp`` (created exclusively) and renaming it
  over ``dir/name``. Whole trees are staged and discarded under such names too.
- Who reads a value to change it holds the lock file ``dir/.{name}.tessarr-lock`` from before the read until after the
  rename. To take it: open the file (create when missing), take an exclusive ``flock`` (on Windows: ``msvcrt.locking``
  of its first byte), then check that the path still leads to the file that was opened, else close it and begin again.
  To release it: remove the file while the lock is held, then unlock and close. So no lock file stays behind, and one that a
  killed process left is empty, unlocked, and simply used by the next holder.
- A value is replaced or removed, with the lock file or without, while its own file is held by an exclusive ``flock`` and
  was seen to be still the one at that name. Where there is none, the new file comes by a rename or link that fails if
  one came meanwhile. An update checks in that moment that the file it read is still there, and retries if not.
- Names that end so and begin with a period are never keys: they are not listed and cannot be set.
- A name longer than 180 bytes of UTF-8 is replaced in hidden names by the first 32 hexadecimal digits of its SHA-256.

``flock`` works across machines on NFS (Linux ≥ 2.6.12), Lustre (mounted with ``flock``), GPFS and CephFS.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

from tessarr.stores.locks import CANCEL_CHECK, PAUSE_S

LOCK_SUFFIX = ".tessarr-lock"
TEMPORARY_SUFFIX = ".tessarr-tmp"
HIDDEN_SUFFIXES = (LOCK_SUFFIX, TEMPORARY_SUFFIX)
NAME_BYTES = 180
"""255 bytes, which file systems allow, less what hidden names add."""
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def is_hidden(name: str) -> bool:
    """Whether a file of this name is a lock or a temporary, not a value."""
    return name.endswith(HIDDEN_SUFFIXES) and name[0] == "."


def lock_name(name: str) -> str:
    """The name of the lock file of the value called `name`.

    >>> lock_name("zarr.json")
    '.zarr.json.tessarr-lock'
    """
    return f".{_fitting(name)}{LOCK_SUFFIX}"


def temporary_name(name: str) -> str:
    """A new name for the value called `name` while it is written."""
    return f".{_fitting(name)}.{os.urandom(6).hex()}{TEMPORARY_SUFFIX}"


def _fitting(name: str) -> str:
    if len(name) * 3 <= NAME_BYTES or len(os.fsencode(name)) <= NAME_BYTES:
        return name
    import hashlib

    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def acquire(path: str, *, wait: bool = True, flags: int = _OPEN) -> int:
    """Takes the lock file at `path`, whose directory must exist; returns the descriptor that holds it.

    With other `flags` any file: it is opened so.

    Raises `OSError` when the file cannot be made or the file system has no locks; `BlockingIOError` when not to `wait`
    and another has it.
    """
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            _lock(descriptor, wait=wait)
            if _leads_to(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> None:
    raise_if_cancelled = CANCEL_CHECK.raise_if_cancelled
    if wait and raise_if_cancelled is None and _block is not None:
        _block(descriptor)  # a signal interrupts it, and its handler may raise
        return
    pause_s = 0.0005
    while True:
        try:
            _try(descriptor)
            return
        except BlockingIOError:
            if not wait:
                raise
        if raise_if_cancelled is not None:
            raise_if_cancelled()
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S)


def release(path: str, descriptor: int) -> None:
    """Remove the lock file and release the lock."""
    if sys.platform == "win32":
        # An open file cannot be removed there; who has it open meanwhile keeps it, and removes it later.
        let_go(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(path)
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    let_go(descriptor)


def let_go(descriptor: int) -> None:
    """Unlocks and closes a file. Not by closing alone: a process forked meanwhile has the same descriptor."""
    _unlock(descriptor)
    os.close(descriptor)


def _leads_to(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> None:
        """Raises `BlockingIOError` when another has it."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None

    _block = None

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(descriptor: int) -> None:
        """Raises `BlockingIOError` when another has it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _block(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def retry_denied(source: str, target: str | None = None) -> None:
    """``os.replace`` or ``os.unlink``, tried again for up to two seconds where Windows says "access denied".

    There a virus scanner or an indexer that has the file open for a moment refuses both.
    """
    pause_s = 0.002
    while True:
        try:
            if target is None:
                os.unlink(source)
            else:
                os.replace(source, target)
            return
        except PermissionError:
            if sys.platform != "win32" or pause_s > 1:
                raise
            time.sleep(pause_s)
            pause_s *= 2
