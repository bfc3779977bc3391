"""Every top-level function as a coroutine that gives `AsyncArray` and `AsyncGroup`, as zarr-python's module does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from tessarr.api import synchronous
from tessarr.core.aio import AsyncArray, AsyncGroup
from tessarr.core.array import Array
from tessarr.core.group import Group


def _wrapped(value: Any) -> Any:
    if isinstance(value, Array):
        return AsyncArray(value)
    return AsyncGroup(value) if isinstance(value, Group) else value


def _coroutine(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        import asyncio

        return _wrapped(await asyncio.to_thread(function, *args, **kwargs))

    call.__doc__ = f"Call `tessarr.{function.__name__}` asynchronously; arrays and groups come as their async forms."
    return call


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in synchronous.__all__:
        raise AttributeError(f"module 'tessarr.api.asynchronous' has no attribute {name!r}")
    value = getattr(synchronous, name)
    return value if isinstance(value, type) else _coroutine(value)


__all__ = ["AsyncArray", "AsyncGroup"]
