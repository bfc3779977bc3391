"""Retry failed calls of a store that does not retry by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tessarr.common.segments import Piece, Stored
from tessarr.errors import ConflictError, ReadOnlyError, StoreError
from tessarr.stores.base import ANY, Any_, Fetch, Listing, Store, Version
from tessarr.stores.remote.retry import Fault, RequestError, RetryPolicy, RetryState
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import Buffer, ByteRange

_List = list
_T = TypeVar("_T")


class RetryStore(WrapperStore):
    """Retry failed calls of `store` by `policy`.

    Permanent errors are not retried: `ReadOnlyError`, `ConflictError`, and `RequestError`, which a store raises after its own
    retries. A conditional write or an update is sent once, because a failed one may have succeeded on the server.
    """

    def __init__(self, store: Store, policy: RetryPolicy | None = None) -> None:
        super().__init__(store)
        self.policy = policy if policy is not None else RetryPolicy()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def _try(self, call: Callable[[], _T]) -> _T:
        state = RetryState(self.policy, store=self.url, key="", operation="call")
        while True:
            try:
                return call()
            except (ReadOnlyError, ConflictError, RequestError):
                raise
            except StoreError as error:
                time.sleep(_pause_s(state, error))

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return self._try(lambda: self.store.get(key, byte_range))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return self._try(lambda: self.store.get_ranges(key, ranges))

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        wanted = [*key_ranges]
        return self._try(lambda: self.store.get_partial_values(wanted))

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        return self._try(lambda: self.store.fetch(requests))

    def exists(self, key: str) -> bool:
        return self._try(lambda: self.store.exists(key))

    def getsize(self, key: str) -> int | None:
        return self._try(lambda: self.store.getsize(key))

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        if not isinstance(if_match, Any_):
            return super().set(key, value, if_match=if_match)
        self._check_writable(key)
        return self._try(lambda: self.store.set(key, value))

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        self.store.update(key, change)

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        self._check_writable(key)
        self.store.splice(key, change)

    def delete(self, key: str) -> None:
        self._check_writable(key)
        self._try(lambda: self.store.delete(key))

    def delete_many(self, keys: Iterable[str]) -> None:
        self._check_writable("")
        every = [*keys]
        self._try(lambda: self.store.delete_many(every))

    def list(self, prefix: str = "") -> Iterator[str]:
        return iter(self._try(lambda: [*self.store.list_prefix(prefix)]))

    def list_dir(self, prefix: str) -> Listing:
        return self._try(lambda: self.store.list_dir(prefix))


def _pause_s(state: RetryState, error: StoreError) -> float:
    """Return the back-off before the next attempt, in seconds; raise `error` after the last attempt."""
    try:
        return state.pause(Fault("retry", str(error)))
    except RequestError:
        raise error from None
