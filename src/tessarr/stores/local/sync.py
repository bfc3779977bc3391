"""Durable changes of local files: content and names that are on the disk before a call returns.

What `sync` asks of the disk: ``fsync`` on Linux and other Unix systems, ``F_FULLFSYNC`` on macOS, whose ``fsync`` leaves
data in the memory of the drive, ``FlushFileBuffers`` on Windows, where names are left to the journal of NTFS.

A sync that failed is never tried again: the kernel takes the pages it could not write for clean, so that a second one
would say that all is well. (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020.)

The native engine does the same (``rust/src/durable.rs``), but for directories whose names it has synced before.
"""

from __future__ import annotations

import errno
import os
import sys

from tessarr.errors import DurabilityError

_NO_FULL_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOTTY)
"""The file system, one of a network for instance, does not know ``F_FULLFSYNC``. Nothing was tried then."""

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


def sync_directory(path: str) -> None:
    """Make the names in a directory durable; on Windows that is left to the file system."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync_names(path: str, root: str, done: str) -> None:
    """Make the name `path` durable, or that it is gone, after what `done` says.

    Syncs its directory, or the next above that is still there, and every directory above, up to `root`: the process
    that made those may not have synced them yet. Raises `DurabilityError`.
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
    """Make a directory and those above it, unless they are there.

    With `durable` the names of `root` and of what is above it, where they are made here, are synced; those below are
    by `sync_names`, with the value that they are made for. Raises `OSError`.
    """
    made = []
    above = root.rstrip(os.sep)
    while durable and above and not os.path.isdir(above):
        made.append(above)
        above = os.path.dirname(above)
    os.makedirs(folder, exist_ok=True)
    for directory in made:
        sync_directory(os.path.dirname(directory))
