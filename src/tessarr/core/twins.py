"""Asynchronous twins of synchronous functions.

For calls whose work is short or on local storage, the twin runs the synchronous function in a thread: it does not block
the event loop, belongs to no loop, and means the same by construction. Reading and writing data have twins of their own
(`tessarr.engine.base.Engine.read_async`), which await remote stores.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def twin(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """The ``_async`` form of `function`: the same arguments, result and errors."""

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio

        return await asyncio.to_thread(function, *args, **kwargs)

    call.__name__ = f"{function.__name__}_async"
    call.__qualname__ = f"{function.__qualname__}_async"
    call.__doc__ = f"Call `{function.__name__}` asynchronously."
    return call
