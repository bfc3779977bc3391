"""Lock files that exclude other processes, and the names of hidden files beside the values of a local store.

The protocol, for every program that shares a directory with tessarr:

- A value ``dir/name`` is replaced by writing ``dir/.{name}.{random}.tessarr-tmp`` (created exclusively) and renaming it
  over ``dir/name``. Whole trees are staged and discarded under such names too.
- A process that reads a value in order to change it holds the lock file ``dir/.{name}.tessarr-lock`` from before the read
  until after the rename. To acquire the lock: open the file (create it when missing), take an exclusive ``flock`` (on Windows:
  ``msvcrt.locking`` of the first byte), then check that the path still leads to the opened file, else close it and retry.
  To release the lock: remove the file while the lock is held, then unlock and close. So no lock file stays behind, and a file
  that a killed process left is unlocked, and usable by the next holder.
- Where there is no value, the holder of a lock file may write the value into it and rename it to the value's name. Both names
  are looked up in one open directory, so that never the lock file of another directory is renamed.
- A value is replaced or removed, with the lock file or without, while the value's file is locked by an exclusive ``flock`` and
  was checked to be still the file of that name. Where there is no file yet, the new file is renamed or linked into place by a
  call that fails if another file exists. An update checks under the ``flock`` that the file that it read is still in place,
  and retries if not.
- The next holder of a lock file that is not empty completes the transaction that it names first
  (`tessarr.stores.local.transactions`). A `Note` says what a holder was doing that ended before it had finished: who does not
  use it leaves it, and the file. Other content is ignored.
- On a local file system, transactions mark the directories of nodes instead (`NODE_MARK`): the holder of a lock file looks for
  such a mark in the directories above first, and a transaction that has made its marks waits for the holders of lock files.
- Names with these suffixes that begin with a period are never keys: they are not listed and cannot be set.
- A name longer than 180 bytes of UTF-8 is replaced in hidden names by the first 32 hexadecimal digits of its SHA-256.

The native engine does the same (``rust/src/replace.rs``, ``create.rs``): `tests/native/test_local_protocol.py` runs both
against one table.

``flock`` works across machines on NFS (Linux ≥ 2.6.12), Lustre (mounted with ``flock``), GPFS and CephFS.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Generator

from tessarr.stores.locks import CANCEL_CHECK, PAUSE_S, holding
from tessarr.stores.protocols import JOURNAL as JOURNAL

LOCK_SUFFIX = ".tessarr-lock"
TEMPORARY_SUFFIX = ".tessarr-tmp"
SNAPSHOT_SUFFIX = ".tessarr-snapshot"
HIDDEN_SUFFIXES = (LOCK_SUFFIX, TEMPORARY_SUFFIX, SNAPSHOT_SUFFIX, JOURNAL)
NODE_MARK = f".tessarr-values{LOCK_SUFFIX}"
"""The lock file that a transaction marks in the directory of a node while it changes values of the node."""
NAME_BYTES = 180
"""The 255 bytes that file systems allow, less the prefix and suffix of hidden names."""
_block: Callable[[int], None] | None
"""Wait for the lock of a file in the kernel, where the system can."""
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def is_hidden(name: str) -> bool:
    """Whether a file of this name is a lock file or a temporary file, not a value."""
    return name.endswith(HIDDEN_SUFFIXES) and name[0] == "."


def has_hidden_name(key: str) -> bool:
    """Whether a key is that of a lock file or a temporary file, or of a file in such a directory."""
    return ".tessarr-" in key and any(map(is_hidden, key.split("/")))


def lock_name(name: str) -> str:
    """Return the name of the lock file of the value called `name`.

    >>> lock_name("zarr.json")
    '.zarr.json.tessarr-lock'
    """
    return f".{_shortened(name)}{LOCK_SUFFIX}"


def temporary_name(name: str, unique: str | None = None) -> str:
    """Make a name for the temporary file of the value called `name`, with a random word unless `unique` is given."""
    return f".{_shortened(name)}.{unique or os.urandom(6).hex()}{TEMPORARY_SUFFIX}"


def _shortened(name: str) -> str:
    if len(name) * 3 <= NAME_BYTES or len(os.fsencode(name)) <= NAME_BYTES:
        return name
    import hashlib

    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def acquire(path: str, *, wait: bool = True, flags: int = _OPEN) -> int:
    """Acquire the lock file at `path`, whose directory must exist. Returns the descriptor that holds the lock.

    `flags` are those of `os.open`; with other ones than the default, the file at `path` need not be a lock file.

    Raises `OSError` when the file cannot be created or the file system has no locks; `BlockingIOError` when not `wait`
    and another process holds the lock.
    """
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            _lock(descriptor, wait=wait)
            if is_same_file(path, descriptor):
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


def release(path: str, descriptor: int, note: Callable[[], object] = bytes) -> None:
    """Remove the lock file, unless `note` returns something, and release the lock. A file that stays excludes no writer.

    The directory may have been renamed or replaced meanwhile: the lock file of a new directory of that name is not touched.
    """
    if sys.platform == "win32":
        # Windows cannot remove an open file; a process that has opened the file meanwhile removes it later.
        try:
            is_noted = bool(note())
        finally:
            unlock(descriptor)
        with contextlib.suppress(OSError):
            if not is_noted:
                os.unlink(path)
        return
    try:
        if not note() and is_same_file(path, descriptor):
            os.unlink(path)
    except OSError:
        pass
    finally:
        unlock(descriptor)


def unlock(descriptor: int) -> None:
    """Unlock and close a file. Closing alone would not unlock: a process forked meanwhile has the same descriptor.

    Raises nothing: what the lock protected is done, and an error would say the contrary.
    """
    try:
        _unlock(descriptor)
    except OSError:
        pass
    finally:
        _close(descriptor)


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.close(descriptor)


def node_mark(path: str, base: str) -> str | None:
    """Return the path of the mark of a transaction in a directory between `base` and the value at `path`."""
    folder = path
    while len(folder) > len(base):
        folder = os.path.dirname(folder)
        mark = os.path.join(folder, NODE_MARK)
        with contextlib.suppress(OSError):
            if os.stat(mark).st_size:
                return mark
    return None


_NOTE = b"note:"


class Note:
    """What the holder of a lock file writes into it for the next one, in case it ends before the work is done."""

    descriptor: int
    """Of the lock file, which is held."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.is_marked = False
        """Whether a transaction has left its mark in the file, which then stays."""

    def read(self) -> bytes:
        """Return the note of an earlier holder; ``b""``: none, as a rule, or other content."""
        size = os.fstat(self.descriptor).st_size
        if not size:
            return b""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        content = os.read(self.descriptor, size)
        return content.removeprefix(_NOTE) if content.startswith(_NOTE) else b""

    def write(self, text: bytes) -> None:
        """Leave `text`, in the place of what is there. It is not synced: after a power cut it may be missing."""
        self.clear()
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        os.write(self.descriptor, _NOTE + text)

    def clear(self) -> None:
        """Leave nothing: the work is done."""
        os.ftruncate(self.descriptor, 0)

    def release(self) -> None:
        """Release the lock, and remove the lock file unless there is a note in it, or a mark."""
        release(self._path, self.descriptor, lambda: self.is_marked or self.read())


@holding
def held(path: str, take: Callable[[], int]) -> Generator[Note, None, None]:
    """Hold the lock file at `path`, which `take` acquires: a call of `acquire` in Python, not one made by `functools.partial`.

    A signal interrupts calls of C functions at their end: between such a call and `try` a lock would never be released.
    """
    note = Note(path)
    note.descriptor = take()
    try:
        yield note
    finally:
        note.release()


def is_same_file(path: str, descriptor: int) -> bool:
    """Whether the file at `path` is the one that `descriptor` is open on."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> None:
        """Acquire the lock. Raises `BlockingIOError` when another descriptor holds it."""
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
        """Acquire the lock. Raises `BlockingIOError` when another descriptor holds it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _wait(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    _block = _wait

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def retry_denied(source: str, target: str | None = None) -> None:
    """Call ``os.replace`` or ``os.unlink``, and retry for up to two seconds while Windows reports "access denied".

    On Windows a virus scanner or an indexer that briefly opens the file makes both calls fail.
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
