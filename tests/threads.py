"""Threads for tests: begun at the same moment, and as eager to take turns as the interpreter lets them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")
SWITCH_S = 2e-4
"""After how long a thread gives the interpreter's lock to another: less makes a busy machine do nothing but switch."""


def together(threads: int, work: Callable[[int], Result]) -> list[Result]:
    """``work(0)`` … ``work(threads - 1)``, each on a thread of its own; what they return, or the first error."""
    barrier = threading.Barrier(threads)

    def begin(number: int) -> Result:
        barrier.wait()
        return work(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(begin, range(threads)))
    finally:
        sys.setswitchinterval(interval)
