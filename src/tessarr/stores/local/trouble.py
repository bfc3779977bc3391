"""Describe errors of the operating system as `StoreError`, with what to do."""

from __future__ import annotations

import errno

from tessarr.errors import StoreError


def trouble(what: str, url: str, key: str, error: OSError) -> StoreError:
    """Return the error for a failure to `what` (a verb) the value of `key`, or the directory if it ends with a slash."""
    if isinstance(error, StoreError):
        return error.at(store=url, key=key)
    number = error.errno
    described = StoreError(
        f"could not {what} the {'value' if key and key[-1] != '/' else 'directory'}",
        store=url,
        key=key,
        got=f"{errno.errorcode.get(number or 0, number)}: {error.strerror}",
        hint=_HINTS.get(number or 0),
    )
    described.errno = number
    return described


_HINTS = {
    errno.ENOENT: "A directory on the way is a link that leads nowhere, or other processes keep removing it",
    errno.ENOSPC: "The disk is full; the old value is unchanged",
    errno.EDQUOT: "The quota is used up; the old value is unchanged",
    errno.EACCES: "Check the permissions of the file and its directory",
    errno.EROFS: "The file system is mounted read-only",
    errno.ENOTDIR: "A value is where a directory should be: no key may begin with another key and a slash",
    errno.EEXIST: "A value is where a directory should be: no key may begin with another key and a slash",
    errno.EISDIR: "A directory is where the value should be: no key may begin with another key and a slash",
    errno.ENAMETOOLONG: "Use shorter names; most file systems allow 255 bytes",
    errno.ENOLCK: "The file system has no locks; open the store with file_locks=False and write from one process",
    errno.EOPNOTSUPP: "The file system has no locks; open the store with file_locks=False and write from one process",
}
