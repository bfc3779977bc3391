"""Carry out a saved plan as functions in the cloud, by Lithops (AWS Lambda, Google Cloud Run, Azure, IBM, or processes here).

python examples/plans/lithops_executor.py PLAN [SLOTS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import lithops

import tessarr.plan


class LithopsExecutor(Executor):
    """Runs each call as a function; a thread waits for each that runs."""

    def __init__(self, functions: lithops.FunctionExecutor, slots: int) -> None:
        self._functions = functions
        self._waiting = ThreadPoolExecutor(3 * slots)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a call to the cloud."""
        return self._waiting.submit(lambda: self._functions.call_async(lambda _: fn(*args, **kwargs), 0).result())


if __name__ == "__main__":
    slots = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with lithops.FunctionExecutor() as functions:
        print(tessarr.plan.load(sys.argv[1]).run(LithopsExecutor(functions, slots), slots=slots))
