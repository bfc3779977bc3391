"""Exchange two names of a file system atomically on Linux: ``renameat2`` with ``RENAME_EXCHANGE``.

Since Linux 3.15, on ext4, XFS, Btrfs, tmpfs and others; not on NFS. Python has no function for this system call, which is
therefore made through `ctypes`.

Source: rename(2).
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_HERE = -100
"""``AT_FDCWD``."""
_EXCHANGE = 2
"""``RENAME_EXCHANGE``."""
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV, errno.EPERM, errno.ENOENT)
"""Errors for which the exchange is not supported (by kernel, file system or sandbox), or one name does not exist."""


def exchange(one: str, other: str) -> bool:
    """Exchange the names of two files or directories, which must exist. Returns ``False``, having done nothing, where exchange
    is not supported. Raises `OSError` for other errors.
    """
    call = _renameat2()
    if call is None:
        return False
    number = call(os.fsencode(one), os.fsencode(other))
    if number in _UNABLE:
        return False
    if number:
        raise OSError(number, os.strerror(number), one, None, other)
    return True


@cache
def _renameat2() -> Callable[[bytes, bytes], int] | None:
    """Return a function that exchanges two names and returns ``errno``, or 0; ``None``: the C library lacks the call."""
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return lambda one, other: ctypes.get_errno() if function(_HERE, one, _HERE, other, _EXCHANGE) else 0
