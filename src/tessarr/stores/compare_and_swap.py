"""The compare-and-swap loop: read a value and its version, change it, write it if the version is still the same, else retry.

It is a coroutine. Without an event loop it is given functions that block (`blocking`, `sleep_blocking`), which never suspend
it, so that one ``send(None)`` runs it to its end. Threads of one process should take turns (a lock around the call), so that
they do not use up each other's attempts.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import ParamSpec, TypeAlias, TypeVar

from tessarr.errors import ConflictError, StoreError
from tessarr.stores.fetch import Version
from tessarr.stores.remote.retry import RetryPolicy
from tessarr.types import Buffer

P = ParamSpec("P")
R = TypeVar("R")

POLICY = RetryPolicy(attempts=200, backoff_s=0.001, max_backoff_s=0.2)
"""How often an update is tried, and the back-off after each attempt."""
Change: TypeAlias = Callable[[Buffer | None], Buffer | None]
Versioned: TypeAlias = tuple[Buffer | None, Version | None]
"""A value and its version, both ``None`` where the key is missing."""


async def compare_and_swap(
    read: Callable[[], Awaitable[Versioned]],
    swap: Callable[[Version | None, Buffer | None], Awaitable[object]],
    change: Callable[[Buffer | None], Buffer | Awaitable[Buffer | None] | None],
    *,
    sleep: Callable[[float], Awaitable[object]],
    store: str,
    key: str,
) -> None:
    """Replace what `read` returns by ``change(value)``.

    `swap` writes the new value (``None``: removes it) over the version that was read, or raises `ConflictError`; `sleep` waits
    for the seconds of a back-off; `change` may be a coroutine function. Raises `ConflictError` when other writers were faster
    in every attempt, `StoreError` for a value without a version.

    A `swap` that raises `ConflictError` in doubt is repeated as any other, on what is there now: `change` may be applied twice.
    A `ConflictError` of `change` is in doubt then, too.
    """
    in_doubt = False
    for attempt in range(POLICY.attempts):
        old, version = await read()
        if old is not None and version is None:
            raise StoreError(
                "the store returned no version (ETag) of the value, so that concurrent updates could be lost",
                store=store,
                key=key,
                hint="Write whole values, or use a store with versions",
            )
        try:
            new = change(old)
            if isinstance(new, Awaitable):
                new = await new
        except ConflictError as error:
            if in_doubt:
                error.leave_in_doubt()
            raise
        if old is None and new is None:
            return
        try:
            await swap(version, new)
            return
        except ConflictError as error:
            in_doubt |= error.in_doubt
            await sleep(POLICY.back_off_s(attempt))
    got = f"{POLICY.attempts} attempts"
    conflict = ConflictError("other writers were faster in every attempt", store=store, key=key, got=got)
    raise conflict.leave_in_doubt() if in_doubt else conflict


async def sleep_blocking(seconds: float) -> None:
    """Wait for `seconds`, on this thread."""
    time.sleep(seconds)


def blocking(function: Callable[P, R]) -> Callable[P, Coroutine[object, None, R]]:
    """Make the coroutine function that calls a function that blocks."""

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    return call
