"""Base classes of stores in which every read is a `fetch`: of one value, a part, or many values."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import TypeVar

from tessarr.stores.asynchronous import AsyncStore
from tessarr.stores.base import Fetch, Store
from tessarr.stores.remote.loop import run_blocking
from tessarr.types import Buffer, ByteRange

T = TypeVar("T")


class FetchingStore(Store):
    """Implement all reads by `fetch`, which a subclass defines."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return _first(self.fetch([_fetch(key, byte_range)])[0])

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self.fetch([Fetch(key, tuple(ranges))])[0]

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> list[Buffer | None]:
        return [_first(found) for found in self.fetch([_fetch(*wanted) for wanted in key_ranges])]


class AsyncFetchingStore(AsyncStore):
    """Implement all reads by `fetch_async`, which a subclass defines.

    Its coroutines block where no event loop is running: they await only functions of `tessarr.stores.remote.loop`.
    """

    def _run(self, call: Coroutine[object, object, T]) -> T:
        return run_blocking(call)

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return _first((await self.fetch_async([_fetch(key, byte_range)]))[0])

    async def get_ranges_async(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return (await self.fetch_async([Fetch(key, tuple(ranges))]))[0]


def _fetch(key: str, byte_range: ByteRange | None) -> Fetch:
    return Fetch(key, None if byte_range is None else (byte_range,))


def _first(found: Sequence[Buffer] | None) -> Buffer | None:
    return None if found is None else found[0]
