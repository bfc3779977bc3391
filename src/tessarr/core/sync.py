"""zarr-python's ``zarr.core.sync``."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def sync(value: Coroutine[Any, Any, T] | T) -> T:
    """The result of a coroutine, run on a loop of its own; a plain value is returned as it is."""
    import asyncio
    import inspect
    from concurrent.futures import ThreadPoolExecutor

    if not inspect.iscoroutine(value):
        return value  # type: ignore[return-value]
    with ThreadPoolExecutor(1) as pool:
        result: T = pool.submit(asyncio.run, value).result()
        return result
