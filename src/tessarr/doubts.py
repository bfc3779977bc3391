"""What is doubtful about stored documents, counted: what was read without a doubt may be kept, and read again in silence."""

from __future__ import annotations

import threading

from tessarr.common.warn import warn


class _Count(threading.local):
    number = 0


_noted = _Count()


def tell(message: str, category: type[Warning]) -> None:
    """Warn of a document, called by all that parse documents."""
    note()
    warn(message, category)


def note() -> None:
    """What this thread parses rests on more than the document, such as what another package has registered."""
    _noted.number += 1


def noted() -> int:
    """How many doubts there were in this thread so far."""
    return _noted.number
