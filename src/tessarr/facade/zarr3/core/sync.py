"""zarr-python's ``zarr.core.sync``: run coroutines to completion in the background event loop of stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, overload

from tessarr.core.asynchronous.stores import _loop, close_loop
from tessarr.stores.remote.loop import thread_pool

T = TypeVar("T")


class SyncError(Exception):
    """`sync` was called in the event loop that must run the coroutine, which would be a deadlock."""


@overload
def sync(
    coro: Coroutine[object, object, T], loop: asyncio.AbstractEventLoop | None = None, timeout: float | None = None
) -> T: ...
@overload
def sync(coro: T, loop: asyncio.AbstractEventLoop | None = None, timeout: float | None = None) -> T: ...
def sync(coro: object, loop: asyncio.AbstractEventLoop | None = None, timeout: float | None = None) -> Any:
    """Run `coro` in `loop` (``None``: the background loop), and return its result; return any other value unchanged.

    Raises `TimeoutError` after `timeout` seconds, `SyncError` when called in that loop.
    """
    if not asyncio.iscoroutine(coro):
        return coro
    where = loop if loop is not None else _loop()
    try:
        running: object = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is where:
        coro.close()
        raise SyncError("Calling sync() from within a running loop")
    outcome = asyncio.run_coroutine_threadsafe(coro, where)
    try:
        return outcome.result(timeout)
    except TimeoutError:
        outcome.cancel()
        raise


async def _collect_aiterator(data: AsyncIterator[T]) -> tuple[T, ...]:
    return tuple([item async for item in data])


def collect_aiterator(data: AsyncIterator[T]) -> tuple[T, ...]:
    """Collect all items of an asynchronous iterator in a tuple."""
    return sync(_collect_aiterator(data))


def _get_loop() -> asyncio.AbstractEventLoop:
    return _loop()


def _get_executor() -> Executor:
    return thread_pool()


def cleanup_resources() -> None:
    """End the background loop and the threads of stores, which tests of others look for; the next call starts others."""
    close_loop()


class SyncMixin:
    """Add methods that wait for coroutines to a class."""

    def _sync(self, coroutine: Coroutine[object, object, T]) -> T:
        from tessarr.settings import config

        return sync(coroutine, timeout=config.get("async.timeout"))

    def _sync_iter(self, async_iterator: AsyncIterator[T]) -> list[T]:
        return list(sync(_collect_aiterator(async_iterator)))


__all__ = ["SyncError", "SyncMixin", "cleanup_resources", "collect_aiterator", "sync"]
