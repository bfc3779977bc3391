"""zarr-python's ``zarr.core.sync``."""

from __future__ import annotations

from collections.abc import AsyncIterable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def sync(coro: Coroutine[Any, Any, T] | T, loop: Any = None, timeout: float | None = None) -> T:
    """Run a coroutine in a new event loop, and return its result; return any other value unchanged. `loop` has no effect.

    Raises `TimeoutError` after `timeout` seconds.
    """
    import asyncio
    import inspect

    if not inspect.iscoroutine(coro):
        return coro  # type: ignore[return-value]

    async def limited() -> T:
        return await asyncio.wait_for(coro, timeout)

    outcome = coro if timeout is None else limited()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        outcome_now: T = asyncio.run(outcome)
        return outcome_now
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        result: T = pool.submit(asyncio.run, outcome).result()
        return result


async def _collected(items: AsyncIterable[T]) -> tuple[T, ...]:
    return tuple([item async for item in items])


def collect_aiterator(data: AsyncIterable[T]) -> tuple[T, ...]:
    """Collect all items of an asynchronous iterator in a tuple."""
    return sync(_collected(data))


__all__ = ["collect_aiterator", "sync"]
