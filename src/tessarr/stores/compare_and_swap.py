"""The compare-and-swap loop: read a value and its version, change it, write it if the version is still the same, else retry.

Threads of one process should take turns (a lock around the call), so that they do not use up each other's attempts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from tessarr.errors import ConflictError, StoreError
from tessarr.stores.fetch import Version
from tessarr.types import Buffer

ROUNDS = 200
"""Attempts in all."""
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
    for back_off_s in _attempts(store, key):
        old, version = read()
        new = change(_with_version(old, version, store, key))
        if old is None and new is None:
            return
        try:
            swap(version, new)
            return
        except ConflictError:
            time.sleep(back_off_s)


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

    for back_off_s in _attempts(store, key):
        old, version = await read()
        new = await change(_with_version(old, version, store, key))
        if old is None and new is None:
            return
        try:
            await swap(version, new)
            return
        except ConflictError:
            await sleep(back_off_s)


def _attempts(store: str, key: str) -> Iterator[float]:
    """The back-off after each attempt, in seconds. Raises `ConflictError` after the last one."""
    for number in range(ROUNDS):
        yield random.uniform(0, min(0.001 * 2 ** min(number, 8), 0.2))
    raise ConflictError("other writers were faster in every attempt", store=store, key=key, got=f"{ROUNDS} attempts")


def _with_version(old: Buffer | None, version: Version | None, store: str, key: str) -> Buffer | None:
    if old is not None and version is None:
        raise StoreError(
            "the store returned no version (ETag) of the value, so that concurrent updates could be lost",
            store=store,
            key=key,
            hint="Write whole values, or use a store with versions",
        )
    return old
