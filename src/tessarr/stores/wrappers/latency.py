"""A wrapper that adds the latency of a network to each call."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

from tessarr.stores.base import Store
from tessarr.stores.protocols import Remote
from tessarr.stores.wrappers.base import ForwardingStore


class LatencyStore(ForwardingStore):
    """Wait `get_latency` seconds before each read and listing, `set_latency` before each write.

    A `fetch` waits once, as its requests to a remote store are in flight together.
    """

    def __init__(self, store: Store, *, get_latency: float = 0, set_latency: float = 0) -> None:
        super().__init__(store)
        self.get_latency = get_latency
        self.set_latency = set_latency
        if not isinstance(store, Remote):
            self.requests_at_once = 16

    def has_ability(self, ability: type) -> bool:
        """Whether the wrapped store has `ability`; every store with a latency is `Remote`."""
        return ability is Remote or super().has_ability(ability)

    def _latency_s(self, method: str) -> float:
        return (
            self.set_latency
            if method.startswith(("set", "update", "splice", "delete", "replace"))
            else self.get_latency
        )

    def _around(self, method: str, place: str) -> AbstractContextManager[object]:
        time.sleep(self._latency_s(method))
        return nullcontext()

    @asynccontextmanager
    async def _around_async(self, method: str, place: str) -> AsyncIterator[None]:
        import asyncio

        await asyncio.sleep(self._latency_s(method))
        yield
