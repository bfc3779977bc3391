"""A layer that tries again, and what it has in common with the caches (`tessarr.stores.wrappers.cache`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from tessarr.common.segments import Piece, Stored
from tessarr.errors import ConflictError, ReadOnlyError, StoreError
from tessarr.stores.base import ANY, Any_, Fetch, Listing, Store, Version
from tessarr.stores.remote.retry import RequestError, RetryPolicy
from tessarr.stores.wrappers.plain import WrapperStore
from tessarr.types import Buffer, ByteRange

_List: TypeAlias = list


class ThreadedLayer(WrapperStore):
    """A wrapper that works on whole calls: its asynchronous methods run its own synchronous ones in threads."""

    getsize = WrapperStore.getsize
    getsize_async = WrapperStore.getsize_async
    getsize_prefix = WrapperStore.getsize_prefix
    getsize_prefix_async = WrapperStore.getsize_prefix_async
    get_async = Store.get_async
    get_ranges_async = Store.get_ranges_async
    get_partial_values_async = Store.get_partial_values_async
    fetch_async = Store.fetch_async
    set_async = Store.set_async
    set_if_not_exists_async = Store.set_if_not_exists_async
    set_partial_values_async = Store.set_partial_values_async
    update_async = Store.update_async
    splice_async = Store.splice_async
    delete_async = Store.delete_async
    delete_many_async = Store.delete_many_async
    delete_prefix_async = Store.delete_prefix_async
    replace_prefix_async = Store.replace_prefix_async
    clear_async = Store.clear_async

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"


class RetryStore(ThreadedLayer):
    """Tries again what a store below fails at, as `policy` says.

    For stores that do not retry by themselves. What is certain is not tried again: `ReadOnlyError`, `ConflictError`,
    and a `RequestError` with a status. A conditional write is sent once.
    """

    def __init__(self, store: Store, policy: RetryPolicy | None = None) -> None:
        super().__init__(store)
        self.policy = policy if policy is not None else RetryPolicy()

    def _try(self, call: Callable[[], Any]) -> Any:
        pause = self.policy.backoff_s
        for _ in range(self.policy.attempts - 1):
            try:
                return call()
            except (ReadOnlyError, ConflictError):
                raise
            except StoreError as error:
                if isinstance(error, RequestError):
                    raise
            time.sleep(pause)
            pause = min(pause * self.policy.base, self.policy.most_s)
        return call()

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return self._try(lambda: self.store.get(key, byte_range))  # type: ignore[no-any-return]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return self._try(lambda: self.store.get_ranges(key, ranges))  # type: ignore[no-any-return]

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        wanted = [*key_ranges]
        return self._try(lambda: self.store.get_partial_values(wanted))  # type: ignore[no-any-return]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        return self._try(lambda: self.store.fetch(requests))  # type: ignore[no-any-return]

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        if if_match is not ANY:
            return self.store.set(key, value, if_match=if_match)
        return self._try(lambda: self.store.set(key, value))  # type: ignore[no-any-return]

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self.store.update(key, change)  # not tried again: it might have happened

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        self.store.splice(key, change)

    def delete(self, key: str) -> None:
        self._try(lambda: self.store.delete(key))

    def delete_many(self, keys: Iterable[str]) -> None:
        every = [*keys]
        self._try(lambda: self.store.delete_many(every))

    def list_dir(self, prefix: str) -> Listing:
        return self._try(lambda: self.store.list_dir(prefix))  # type: ignore[no-any-return]

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return iter(self._try(lambda: [*self.store.list_prefix(prefix)]))
