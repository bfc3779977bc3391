"""Warnings about stored documents, counted: what was read without one may be kept and read again in silence."""

from __future__ import annotations

import threading
import warnings


class _Count(threading.local):
    number = 0


_told = _Count()


def tell(message: str, category: type[Warning], stacklevel: int) -> None:
    """``warnings.warn``, called by all that parse documents."""
    _told.number += 1
    warnings.warn(message, category, stacklevel + 1)


def told() -> int:
    """How many warnings this thread has been told so far."""
    return _told.number
