"""Read parts of the file of one stored value, and write the file that replaces it. Functions of files; no store, no keys.

A replacement may keep ranges of the old file (`tessarr.common.segments.Piece`), which the kernel copies where it can.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

from tessarr.common import extension
from tessarr.common.segments import Piece, pieces_nbytes
from tessarr.errors import StoreError
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Fetch
from tessarr.stores.local.sync import sync
from tessarr.types import Buffer, ByteRange

_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Without O_NONBLOCK, opening a named pipe in the directory would wait for a writer.
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON
ABSENT = (FileNotFoundError, NotADirectoryError)
"""Errors by which the operating system reports that no file has that path."""
ROOM = 128 << 10
"""Files of at least this many bytes are preallocated."""
LARGE = 1 << 20
"""Files of at least this many bytes are freed on a background thread."""

if hasattr(os, "pread"):
    pread = os.pread
else:

    def pread(descriptor: int, nbytes: int, start: int, /) -> bytes:
        os.lseek(descriptor, start, os.SEEK_SET)
        return os.read(descriptor, nbytes)


def version_of(status: os.stat_result) -> str:
    """Return the version of a file: ``device:inode:mtime_ns:size``."""
    return f"{status.st_dev:x}:{status.st_ino:x}:{status.st_mtime_ns:x}:{status.st_size:x}"


def version_at(path: str) -> str | None:
    """Return the version of the file at `path`, as `LocalStore.version` does."""
    try:
        status = os.stat(path)
    except ABSENT:
        return None
    return version_of(status) if stat.S_ISREG(status.st_mode) else None


SMALL = 1 << 20
"""Files of at most this many bytes are read many at a time."""


@cache
def reader_of_many() -> Callable[[str, Sequence[Fetch], int], list[list[Buffer] | Literal[False] | None]] | None:
    """Return the Rust module's ``read_values``, which reads a small file in a fifth of the time; ``None``: not built."""
    return getattr(extension.module(), "read_values", None)


def rest(descriptor: int, data: bytes, start: int, nbytes: int) -> bytes:
    """Complete a short read of `nbytes` bytes from `start` on, of which `data` was read; Linux reads at most 2 GiB at once."""
    whole = bytearray(data)
    while len(whole) < nbytes:
        more = pread(descriptor, nbytes - len(whole), start + len(whole))
        if not more:
            raise StoreError(
                "the file became shorter while it was read",
                expected=f"{nbytes} bytes",
                got=f"{len(whole)}",
                hint="Another program changes files in place; tessarr replaces them",
            )
        whole += more
    return bytes(whole)


class FileValue:
    """A stored value as an open file (see `tessarr.common.segments.Stored`), which a replacement of the value leaves intact."""

    def __init__(self, descriptor: int, status: os.stat_result) -> None:
        self.descriptor = descriptor
        self.nbytes = status.st_size
        self.version = version_of(status)

    @classmethod
    def open(cls, path: str) -> FileValue | None:
        """Open the value in the file at `path`; ``None`` where there is no file. Raises `OSError`."""
        try:
            descriptor = os.open(path, READ)
        except ABSENT:
            return None
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return cls(descriptor, status)
        os.close(descriptor)
        return None

    def read(self, byte_range: ByteRange) -> Buffer:
        start, stop = byte_range.bounds(self.nbytes)
        try:
            data = pread(self.descriptor, stop - start, start)
        except OSError as error:
            trouble = StoreError(
                "could not read a part of the value",
                expected=f"bytes {start} to {stop}",
                got=f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}",
            )
            trouble.errno = error.errno
            raise trouble from error
        return data if len(data) == stop - start else rest(self.descriptor, data, start, stop - start)

    def close(self) -> None:
        """Close the file; a large one on a background thread, because the kernel takes as long to free a replaced file as to
        copy it."""
        if self.nbytes >= LARGE:
            try:
                threading.Thread(target=os.close, args=(self.descriptor,), name="tessarr-closing").start()
            except RuntimeError:  # no new threads while the interpreter shuts down
                pass
            else:
                return
        os.close(self.descriptor)


def write(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data` at the file's position."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


_COARSE_NS = 10_000_000
"""A file system all of whose times are multiples of this rounds times (FAT, HFS+, ext3)."""
_KEPT_NS = 10_000
"""Tolerance for the time of a file: no value is replaced twice within this time."""


def has_coarse_times(directory: str) -> bool | None:
    """Whether the times of a directory show that its file system rounds times, so that versions of files may repeat.

    ``None``: there is no such directory.
    """
    try:
        status = os.stat(directory)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    # A user may have set a round mtime, but cannot set the ctime.
    return not (status.st_mtime_ns % _COARSE_NS or status.st_ctime_ns % _COARSE_NS)


def write_value(descriptor: int, pieces: Sequence[Piece], source: FileValue | None = None, *, durable: bool) -> bool:
    """Write bytes and ranges of `source`, in order, to a new file, and close it; `durable` syncs the file.

    Returns ``False`` when the file system did not keep the mtime that was set.
    """
    kept = True
    try:
        preallocate(descriptor, pieces_nbytes(pieces))
        for piece in pieces:
            if isinstance(piece, ByteRange):
                assert source is not None
                _copy_range(descriptor, source, piece)
            else:
                write(descriptor, byte_view(piece))
        if os.name != "nt":
            # The kernel's timestamps may be as coarse as 4 ms, and inodes are reused: two values could have one version.
            os.utime(descriptor, ns=(now := time.time_ns(), now))
            kept = abs(os.fstat(descriptor).st_mtime_ns - now) < _KEPT_NS
        if durable:
            sync(descriptor)
    finally:
        os.close(descriptor)
    return kept


def _copy_range(descriptor: int, source: FileValue, piece: ByteRange) -> None:
    start, stop = piece.bounds(source.nbytes)
    while start < stop:
        copied = _copy(source.descriptor, descriptor, start, stop - start)
        if not copied:  # the file was truncated, which is an error, or the kernel cannot copy between these files
            write(descriptor, rest(source.descriptor, b"", start, stop - start))
            return
        start += copied


def _copy(source: int, target: int, start: int, nbytes: int) -> int:
    """Copy up to `nbytes` bytes from `start` of `source` to the position of `target`. Returns the number of bytes."""
    if hasattr(os, "copy_file_range"):
        try:
            return os.copy_file_range(source, target, nbytes, start)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
                raise
    data = pread(source, min(nbytes, 8 << 20), start)
    write(target, data)
    return len(data)


if sys.platform == "linux":
    import fcntl
    import struct

    _RESERVE = 0x4030582A
    """``FS_IOC_RESVSP64``: allocate blocks for a part of a file, without changing its size."""

    def preallocate(descriptor: int, nbytes: int) -> None:
        """Preallocate a large new file, which makes it faster to write and to replace.

        Raises `OSError` when the disk is full, before anything is written.
        """
        if nbytes < ROOM:
            return
        try:
            fcntl.ioctl(descriptor, _RESERVE, struct.pack("=hhxxxxqqiI16x", 0, os.SEEK_SET, 0, nbytes, 0, 0))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise

else:

    def preallocate(descriptor: int, nbytes: int) -> None:
        """Do nothing: Python offers no preallocation on this system."""
