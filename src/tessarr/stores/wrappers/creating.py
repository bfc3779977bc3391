"""A wrapper that creates values by conditional requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import TypeVar

from tessarr.common.segments import Piece, Stored
from tessarr.errors import ConflictError
from tessarr.stores.base import ANY, Any_, Store, Version
from tessarr.stores.wrappers.base import ForwardingStore
from tessarr.types import Buffer

S = TypeVar("S")
T = TypeVar("T")

_LOOK_S = 10
"""After so many seconds a writer looks again whether the keys are still its own."""
_CREATES = frozenset({"set", "set_if_not_exists"})


class Tenure:
    """The time for which keys are one writer's own, which others may end when it takes long: its process may be stopped between
    any two requests, and go on much later.

    `look` raises `ConflictError` if they have ended it; `now` returns seconds; the tenure began at `since`.
    """

    def __init__(self, look: Callable[[], None], now: Callable[[], float], since: float) -> None:
        self._look, self._now, self._seen = look, now, since

    def is_due(self) -> bool:
        """Whether to look again."""
        return abs(self._now() - self._seen) >= _LOOK_S

    def look(self) -> None:
        """Raise `ConflictError` if the keys are another writer's now."""
        before = self._now()
        self._look()
        self._seen = before


class CreatingStore(ForwardingStore):
    """A store for values that are not expected to exist yet: each `set` is a compare-and-swap.

    The server then rejects a request that arrives late, after another value was stored. It costs no more requests than a
    plain `set`, unless the key exists. The wrapped store is a `tessarr.stores.protocols.ConditionalSet`.

    With a `tenure` that has ended, a write raises `ConflictError`: within `_LOOK_S` seconds, and at once where it would replace
    a value.

    >>> from tessarr.storage import MemoryStore
    >>> store = CreatingStore(MemoryStore())
    >>> version = store.set("c/0", b"first")
    >>> version = store.set("c/0", b"second")
    >>> bytes(store.get("c/0"))
    b'second'
    """

    def __init__(self, store: Store, tenure: Tenure | None = None) -> None:
        super().__init__(store)
        self._tenure = tenure

    def _around(self, method: str, place: str) -> AbstractContextManager[object]:
        if self._tenure is not None and method in _CREATES and self._tenure.is_due():
            self._tenure.look()
        return nullcontext()

    @asynccontextmanager
    async def _around_async(self, method: str, place: str) -> AsyncIterator[None]:
        if self._tenure is not None and method in _CREATES and self._tenure.is_due():
            from tessarr.stores.remote.loop import in_caller_thread

            await in_caller_thread(self._tenure.look)
        yield

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        if not isinstance(if_match, Any_):
            return super().set(key, value, if_match=if_match)
        try:
            return super().set(key, value, if_match=None)
        except ConflictError:
            super().update(key, self._looking(lambda _: value, always=True))
            return None

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        if not isinstance(if_match, Any_):
            return await super().set_async(key, value, if_match=if_match)
        try:
            return await super().set_async(key, value, if_match=None)
        except ConflictError:
            await super().update_async(key, self._looking(lambda _: value, always=True))
            return None

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        super().update(key, self._looking(change))

    async def update_async(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        await super().update_async(key, self._looking(change))

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        super().splice(key, self._looking(change))

    async def splice_async(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        await super().splice_async(key, self._looking(change))

    def _looking(self, change: Callable[[S], T], *, always: bool = False) -> Callable[[S], T]:
        """Make the change that looks at the tenure after the value was read, and so is not of a later one."""

        def looking(old: S) -> T:
            if self._tenure is not None and (always or self._tenure.is_due()):
                self._tenure.look()
            return change(old)

        return looking
