"""A wrapper that creates values by conditional requests."""

from __future__ import annotations

from tessarr.errors import ConflictError
from tessarr.stores.base import ANY, Any_, Version
from tessarr.stores.wrappers.base import ForwardingStore
from tessarr.types import Buffer


class CreatingStore(ForwardingStore):
    """A store for values that are not expected to exist yet: each `set` is a compare-and-swap.

    The server then rejects a request that arrives late, after another value was stored. It costs no more requests than a
    plain `set`, unless the key exists. The wrapped store is a `tessarr.stores.protocols.ConditionalSet`.

    >>> from tessarr.storage import MemoryStore
    >>> store = CreatingStore(MemoryStore())
    >>> version = store.set("c/0", b"first")
    >>> version = store.set("c/0", b"second")
    >>> bytes(store.get("c/0"))
    b'second'
    """

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        if not isinstance(if_match, Any_):
            return super().set(key, value, if_match=if_match)
        try:
            return super().set(key, value, if_match=None)
        except ConflictError:
            self.update(key, lambda _: value)
            return None

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        if not isinstance(if_match, Any_):
            return await super().set_async(key, value, if_match=if_match)
        try:
            return await super().set_async(key, value, if_match=None)
        except ConflictError:
            await self.update_async(key, lambda _: value)
            return None
