"""Bound the work of computed responses: decoded bytes per request and in flight, and the size of a result.

A request whose chunks would exceed the budget is refused before a byte is read. Requests that are in flight share one budget,
and wait for their share.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tessarr.serve.dynamic.refusal import Refusal, too_large

MAX_DECODED_NBYTES = 1 << 30
"""Bytes of the chunks that one request decodes."""
MAX_IN_FLIGHT_NBYTES = 2 << 30
"""Bytes of the chunks that all requests in flight decode."""
MAX_RESULT_NBYTES = 64 << 20
"""Bytes of the elements of one response."""
WAIT_S = 30.0
"""Seconds for which a request waits for its share."""


class Budget:
    """The decoded bytes of requests in flight.

    >>> budget = Budget(10)
    >>> with budget.share(10):
    ...     budget.used
    10
    """

    def __init__(self, nbytes: int = MAX_IN_FLIGHT_NBYTES, *, wait_s: float = WAIT_S) -> None:
        self._nbytes = nbytes
        self._wait_s = wait_s
        self._condition = threading.Condition()
        self.used = 0

    @contextmanager
    def share(self, nbytes: int) -> Iterator[None]:
        """Hold `nbytes` of the budget. Raises `Refusal` (503) when none became free in time."""
        with self._condition:
            if not self._condition.wait_for(lambda: self.used == 0 or self.used + nbytes <= self._nbytes, self._wait_s):
                raise Refusal(503, "busy", "other requests are being computed", "Repeat the request later")
            self.used += nbytes
        try:
            yield
        finally:
            with self._condition:
                self.used -= nbytes
                self._condition.notify_all()


def check_result(nbytes: int) -> None:
    """Raise `Refusal` (413) for a result over the budget."""
    if nbytes > MAX_RESULT_NBYTES:
        raise too_large(
            f"the slice has {nbytes} bytes, more than {MAX_RESULT_NBYTES}",
            "Select less, or every n-th element (start:stop:step), or read the chunks themselves",
        )


def check_decoded(nbytes: int) -> None:
    """Raise `Refusal` (413) for more decoded bytes than one request may cause."""
    if nbytes > MAX_DECODED_NBYTES:
        raise too_large(
            f"the chunks of the slice have {nbytes} bytes, more than {MAX_DECODED_NBYTES}",
            "Select fewer chunks, or add sample=64 to read some of the chunks only",
        )
