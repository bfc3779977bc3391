"""Make changes of local files durable: content and names are on the disk before a call returns.

`sync` calls ``fsync`` on Linux and other Unix systems, ``F_FULLFSYNC`` on macOS, whose ``fsync`` leaves data in the cache of
the drive, and ``FlushFileBuffers`` on Windows, where names are left to the journal of NTFS.

A failed sync is never retried: the kernel marks pages that it could not write as clean, so that a second sync would falsely
succeed. (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020.)

The native engine does the same (``rust/src/durable.rs``), except for directories whose names it has synced before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from tessarr.common import extension
from tessarr.errors import DurabilityError

if TYPE_CHECKING:
    from tessarr._native import FileSystem

_NO_FULL_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOTTY)
"""Errors of a file system (of a network, for example) that does not support ``F_FULLFSYNC``, and has synced nothing."""

if sys.platform == "darwin":
    import fcntl

    def sync(descriptor: int) -> None:
        """Sync the content of a file, or the names in a directory."""
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in _NO_FULL_SYNC:
                raise
            os.fsync(descriptor)

else:

    def sync(descriptor: int) -> None:
        """Sync the content of a file, or the names in a directory."""
        os.fsync(descriptor)


_MANY_FILES, _MANY_FOLDERS = 8, 16
"""From so many on, syncing the whole file system is faster, which writes what other processes have written too."""
_SYNCED_WHOLE = frozenset({"ext", "xfs", "btrfs", "f2fs", "tmpfs"})
"""Local file systems whose ``syncfs`` reports errors, from Linux 5.8 on (``overlay`` reports none of the layer below)."""


class BatchSync:
    """Sync many files and directories that one operation changes, on a local file system by a single ``syncfs``.

    Made before the first change, so that an error of a page that the kernel wrote meanwhile is reported.
    """

    def __init__(self, folder: str) -> None:
        self._system = open_file_system(folder)
        self.kind: str | None = None if self._system is None else self._system.kind
        """The kind of the local file system; ``None``: another one, or unknown."""
        self._folder, self._device = folder, os.stat(folder).st_dev

    def sync(self, files: Sequence[str], folders: Collection[str]) -> None:
        """Sync new files, then the names in directories; missing directories are left out. Raises `OSError`."""
        is_many = len(files) >= _MANY_FILES or len(folders) >= _MANY_FOLDERS
        if is_many and self._system is not None and self._is_whole([*files, *folders]):
            self._system.sync()
            return
        sync_files(files)
        for folder in sorted(folders, key=len, reverse=True):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # removed; a value may be where one was
                sync_directory(folder or os.sep)

    def _is_whole(self, paths: Iterable[str]) -> bool:
        """Whether one ``syncfs`` reaches all `paths`, which may be below mounts, and reports errors."""
        if self.kind not in _SYNCED_WHOLE or not _has_reporting_syncfs():
            return False
        if not _may_have_mounts(self._folder):
            return True
        for path in paths:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                if os.stat(path).st_dev != self._device:
                    return False
        return True


def open_file_system(folder: str) -> FileSystem | None:
    """Open the file system of a directory; ``None``: not on Linux, or the Rust module is not built."""
    opener: Callable[[str], FileSystem] | None = getattr(extension.module(), "FileSystem", None)
    return None if opener is None else opener(folder)


_MOUNTS = "/proc/self/mountinfo"
_OCTAL = re.compile(rb"\\([0-7]{3})")
"""Blanks, line ends and backslashes of the names in `_MOUNTS`."""


def _may_have_mounts(folder: str) -> bool:
    """Whether something may be mounted below a directory, out of which no link leads. Quicker than to look at each name."""
    try:
        with open(_MOUNTS, "rb") as file:
            escaped = [line.split(b" ", 5)[4] for line in file]
    except (OSError, IndexError):
        return True
    points = (_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), point) for point in escaped)
    inside = os.path.join(os.fsencode(os.path.realpath(folder)), b"")
    return any(point.startswith(inside) for point in points)


@cache
def _has_reporting_syncfs() -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= (5, 8)


def sync_files(paths: Sequence[str]) -> None:
    """Sync the content of several new files, each of which is closed. Raises `OSError`."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)


def sync_directory(path: str) -> None:
    """Make the names in a directory durable; on Windows do nothing, because the file system does it."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync_names(path: str, root: str, done: str) -> None:
    """Make the creation or removal of the name `path` durable; `done` describes the change in errors.

    Syncs the directory of `path`, or the next one above that still exists, and every directory above, up to `root`: the
    process that created these may not have synced them yet. Raises `DurabilityError`.
    """
    root = root.rstrip(os.sep) or os.sep
    folder = path
    try:
        while folder != root:
            folder = os.path.dirname(folder)
            try:
                sync_directory(folder)
            except FileNotFoundError:
                if folder == root:
                    raise
    except OSError as error:
        trouble = DurabilityError(
            f"{done}, but its directory could not be synced",
            got=f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}",
            hint="The change is visible now; whether it survives a power cut is unknown. "
            "Check the disk before writing again",
        )
        trouble.errno = error.errno
        raise trouble from error


def make_directories(folder: str, root: str, *, durable: bool) -> None:
    """Create a directory and missing directories above it.

    With `durable` the names of `root` and of directories above `root` that are created here are synced; names below `root` are
    synced by `sync_names`, together with the value in them. Raises `OSError`.
    """
    made = []
    above = root.rstrip(os.sep)
    while durable and above and not os.path.isdir(above):
        made.append(above)
        above = os.path.dirname(above)
    os.makedirs(folder, exist_ok=True)
    for directory in made:
        sync_directory(os.path.dirname(directory))
