"""Every top-level function as a coroutine that returns `AsyncArray` and `AsyncGroup`, as in zarr-python's module."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from tessarr.core.asynchronous.async_array import AsyncArray as AsyncArray
from tessarr.core.asynchronous.async_group import AsyncGroup as AsyncGroup
from tessarr.core.asynchronous.async_node import wrapped
from tessarr.core.creation.shorthands import create_hierarchy_async
from tessarr.facade.zarr3.api import synchronous
from tessarr.stores.url import StoreLike


def _coroutine(function: Callable[..., object]) -> Callable[..., Awaitable[object]]:
    variant = getattr(sys.modules[function.__module__], f"{function.__name__}_async")

    @wraps(function)
    async def call(*args: object, **kwargs: object) -> Any:
        return wrapped(await variant(*args, **kwargs))

    call.__doc__ = f"Call `tessarr.{function.__name__}` asynchronously; returns `AsyncArray` and `AsyncGroup`."
    return call


async def create_hierarchy(
    *, store: StoreLike, nodes: Mapping[str, object], overwrite: bool = False
) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
    """Create nodes as `tessarr.create_hierarchy` does; yields ``(path, AsyncArray | AsyncGroup)``."""
    for path, node in await create_hierarchy_async(store=store, nodes=nodes, overwrite=overwrite):
        yield path, wrapped(node)


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in synchronous.__all__:
        raise AttributeError(f"module 'tessarr.api.asynchronous' has no attribute {name!r}")
    value = getattr(synchronous, name)
    found = globals()[name] = value if isinstance(value, type) else _coroutine(value)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *synchronous.__all__})


__all__ = list(synchronous.__all__)
