"""Retry failed calls of a store that does not retry by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, cast

from tessarr.common.segments import Piece, Stored
from tessarr.errors import ConflictError, ReadOnlyError, StoreError
from tessarr.stores.base import ANY, Any_, Fetch, Listing, Store, Version
from tessarr.stores.compare_and_swap import blocking
from tessarr.stores.remote.base import with_retries
from tessarr.stores.remote.loop import run_blocking
from tessarr.stores.remote.retry import Fault, RequestError, RetryPolicy, RetryState
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import Buffer, ByteRange

_List = list
_T = TypeVar("_T")


class RetryStore(WrapperStore):
    """Retry failed calls of `store` by `policy`, with the loop of remote stores.

    Permanent errors are not retried: `ReadOnlyError`, `ConflictError`, and `RequestError`, which a store raises after its own
    retries. A conditional write or an update is sent once, because a failed one may have succeeded on the server.
    """

    def __init__(self, store: Store, policy: RetryPolicy | None = None) -> None:
        super().__init__(store)
        self.policy = policy if policy is not None else RetryPolicy()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def _try(self, call: Callable[[], _T]) -> _T:
        def begin(began: float) -> RetryState:
            return RetryState(self.policy, store=self.url, operation="call", began=began)

        return cast("_T", run_blocking(with_retries(blocking(call), _fault_of, begin)))

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

    def _stamp_below(self, prefix: str, counts: Callable[[str], bool]) -> str | None:
        return self._try(lambda: self._stamp_of_wrapped(prefix, counts))

    def list_dir(self, prefix: str) -> Listing:
        return self._try(lambda: self.store.list_dir(prefix))


def _fault_of(error: Exception) -> Fault | None:
    """Classify an error of the wrapped store; ``None``: it is permanent."""
    if isinstance(error, ReadOnlyError | ConflictError | RequestError) or not isinstance(error, StoreError):
        return None
    return Fault("retry", str(error), error=error)
