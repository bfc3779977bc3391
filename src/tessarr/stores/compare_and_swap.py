"""The compare-and-swap loop: read a value and its version, change it, write it if the version is still the same, else retry.

Threads of one process should take turns (a lock around the call), so that they do not use up each other's attempts.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from tessarr.errors import ConflictError, StoreError
from tessarr.stores.fetch import Version
from tessarr.stores.remote.retry import RetryPolicy
from tessarr.types import Buffer

POLICY = RetryPolicy(attempts=200, backoff_s=0.001, max_backoff_s=0.2)
"""How often an update is tried, and the back-off after each attempt."""
Change: TypeAlias = Callable[[Buffer | None], Buffer | None]
Versioned: TypeAlias = tuple[Buffer | None, Version | None]
"""A value and its version, both ``None`` where the key is missing."""


def compare_and_swap(
    read: Callable[[], Versioned],
    swap: Callable[[Version | None, Buffer | None], object],
    change: Change,
    *,
    store: str,
    key: str,
) -> None:
    """Replace what `read` returns by ``change(value)``.

    `swap` writes the new value (``None``: removes it) over the version that was read, or raises `ConflictError`.
    Raises `ConflictError` when other writers were faster in every attempt, `StoreError` for a value without a version.
    """
    for attempt in _attempts(store, key):
        old, version = read()
        new = change(_with_version(old, version, store, key))
        if old is None and new is None:
            return
        try:
            swap(version, new)
            return
        except ConflictError:
            time.sleep(POLICY.back_off_s(attempt))


async def compare_and_swap_async(
    read: Callable[[], Awaitable[Versioned]],
    swap: Callable[[Version | None, Buffer | None], Awaitable[object]],
    change: Callable[[Buffer | None], Awaitable[Buffer | None]],
    *,
    store: str,
    key: str,
) -> None:
    """Call `compare_and_swap` asynchronously."""
    # Imported here so that programs without such stores do not load asyncio.
    from tessarr.stores.remote.loop import sleep

    for attempt in _attempts(store, key):
        old, version = await read()
        new = await change(_with_version(old, version, store, key))
        if old is None and new is None:
            return
        try:
            await swap(version, new)
            return
        except ConflictError:
            await sleep(POLICY.back_off_s(attempt))


def _attempts(store: str, key: str) -> Iterator[int]:
    """Number the attempts. Raises `ConflictError` after the last one."""
    yield from range(POLICY.attempts)
    got = f"{POLICY.attempts} attempts"
    raise ConflictError("other writers were faster in every attempt", store=store, key=key, got=got)


def _with_version(old: Buffer | None, version: Version | None, store: str, key: str) -> Buffer | None:
    if old is not None and version is None:
        raise StoreError(
            "the store returned no version (ETag) of the value, so that concurrent updates could be lost",
            store=store,
            key=key,
            hint="Write whole values, or use a store with versions",
        )
    return old
