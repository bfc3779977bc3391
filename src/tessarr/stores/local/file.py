"""The file of one stored value: reading parts of it, and making the file that replaces it. No store, no keys.

A replacement may keep ranges of the file before it (`tessarr.common.segments.Piece`); those are copied in the kernel where
it can.
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
from tessarr.stores.local.sync import sync
from tessarr.types import Buffer, ByteRange

_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Without O_NONBLOCK the open of a named pipe in the directory would wait for a writer.
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON
ABSENT = (FileNotFoundError, NotADirectoryError)
"""What the system says when there is no file of that path."""
ROOM = 128 << 10
"""Files from this many bytes on get their room on the disk before they are written."""
LARGE = 1 << 20
"""Files from this many bytes on are freed on a background thread."""

if hasattr(os, "pread"):
    pread = os.pread
else:

    def pread(descriptor: int, nbytes: int, start: int, /) -> bytes:
        os.lseek(descriptor, start, os.SEEK_SET)
        return os.read(descriptor, nbytes)


def version_of(status: os.stat_result) -> str:
    """``device:inode:mtime_ns:size``."""
    return f"{status.st_dev:x}:{status.st_ino:x}:{status.st_mtime_ns:x}:{status.st_size:x}"


SMALL = 1 << 20
"""Files up to this many bytes are read many at a time."""


@cache
def reader_of_many() -> Callable[[Sequence[str], int], list[bytes | Literal[False] | None]] | None:
    """The Rust module's ``read_files``, which looks at a file in a fifth of the time; ``None`` where there is none."""
    return getattr(extension.module(), "read_files", None)


def rest(descriptor: int, data: bytes, start: int, nbytes: int) -> bytes:
    """`data` and what a short read of `nbytes` bytes from `start` on left; one read gives at most 2 GiB on Linux."""
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
    """A stored value as an open file (see `tessarr.common.segments.Stored`). What replaces it leaves it as it is."""

    def __init__(self, descriptor: int, status: os.stat_result) -> None:
        self.descriptor = descriptor
        self.nbytes = status.st_size
        self.version = version_of(status)

    @classmethod
    def open(cls, path: str) -> FileValue | None:
        """The value in the file at `path`; ``None`` where there is no file. Raises `OSError`."""
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
        data = pread(self.descriptor, stop - start, start)
        return data if len(data) == stop - start else rest(self.descriptor, data, start, stop - start)

    def close(self) -> None:
        """Close the file. Freeing a replaced file takes the kernel as long as copying it: large ones are closed on a
        background thread."""
        if self.nbytes >= LARGE:
            try:
                threading.Thread(target=os.close, args=(self.descriptor,), name="tessarr-closing").start()
            except RuntimeError:  # no new threads: the interpreter is about to end
                pass
            else:
                return
        os.close(self.descriptor)


def write(descriptor: int, data: bytes | memoryview) -> None:
    """Writes all of `data` at the file's position."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


_COARSE_NS = 10_000_000
"""Times that are all multiples of this come from a file system that rounds them (FAT, HFS+, ext3)."""
_KEPT_NS = 10_000
"""No value is replaced twice within this time."""


def has_coarse_times(directory: str) -> bool:
    """Whether a directory says that its file system rounds times, so that versions of files may repeat."""
    try:
        status = os.stat(directory)
    except OSError:
        return False
    # Users may set any time of modification, but not the time of the last change.
    return not (status.st_mtime_ns % _COARSE_NS or status.st_ctime_ns % _COARSE_NS)


def write_value(descriptor: int, pieces: Sequence[Piece], source: FileValue | None = None, *, durable: bool) -> bool:
    """Writes bytes and ranges of `source`, one after another, to a new file, and closes it; `durable` syncs it.

    ``False``: the file did not keep the time that it was given.
    """
    kept = True
    try:
        preallocate(descriptor, pieces_nbytes(pieces))
        for piece in pieces:
            if isinstance(piece, ByteRange):
                assert source is not None
                _keep(descriptor, source, piece)
            else:
                write(descriptor, byte_view(piece))
        if os.name != "nt":
            # The kernel's own stamp is as coarse as 4 ms, and inodes are used again: two values could have one version.
            os.utime(descriptor, ns=(now := time.time_ns(), now))
            kept = abs(os.fstat(descriptor).st_mtime_ns - now) < _KEPT_NS
        if durable:
            sync(descriptor)
    finally:
        os.close(descriptor)
    return kept


def _keep(descriptor: int, source: FileValue, piece: ByteRange) -> None:
    start, stop = piece.bounds(source.nbytes)
    while start < stop:
        copied = _copy(source.descriptor, descriptor, start, stop - start)
        if not copied:  # the file has become shorter, which is an error, or the kernel would not copy it
            write(descriptor, rest(source.descriptor, b"", start, stop - start))
            return
        start += copied


def _copy(source: int, target: int, start: int, nbytes: int) -> int:
    """Copies up to `nbytes` bytes from `start` of `source` to the position of `target`; tells how many."""
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
    """``FS_IOC_RESVSP64``: room for a part of a file, whose size does not change."""

    def preallocate(descriptor: int, nbytes: int) -> None:
        """Asks for the room of a large new file at once, which makes it faster to write and to replace.

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
        """No known way to ask for room here."""
