"""`Store.get_ranges` and `get_ranges_sync` of zarr-python 3.4: several ranges of a value by few requests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tessarr.facade.zarr3.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    SuffixByteRequest,
)
from tessarr.facade.zarr3.buffer import default_buffer_prototype
from tessarr.facade.zarr3.storage import LocalStore, MemoryStore, WrapperStore

VALUE = bytes(range(200))
RANGES: list[ByteRequest | None] = [
    RangeByteRequest(100, 110), None, RangeByteRequest(0, 4), SuffixByteRequest(3), RangeByteRequest(4, 8),
    OffsetByteRequest(190), RangeByteRequest(2, 6), RangeByteRequest(190, 300),
]  # fmt: skip
WANTED = [
    VALUE[100:110], VALUE, VALUE[:4], VALUE[-3:], VALUE[4:8], VALUE[190:], VALUE[2:6], VALUE[190:],
]  # fmt: skip


class Counting(MemoryStore):
    """Count the requests."""

    requests = 0

    async def get(self, key: str, prototype: object = None, byte_range: ByteRequest | None = None) -> Any:
        self.requests += 1
        return await super().get(key, prototype, byte_range)


def awaited(store: Any, key: str = "k", **options: int) -> dict[int, bytes]:
    async def read() -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        async for group in store.get_ranges(key, RANGES, prototype=default_buffer_prototype(), **options):
            found |= {at: value.to_bytes() for at, value in group}
        return found

    return asyncio.run(read())


def filled(store: Any) -> Any:
    store.set_sync("k", VALUE)
    return store


@pytest.mark.parametrize("gap", [0, 50, 1000])
@pytest.mark.parametrize("most", [5, 1000])
def test_every_range_comes_under_its_position(tmp_path: Path, gap: int, most: int) -> None:
    for store in (MemoryStore(), LocalStore(tmp_path), WrapperStore(MemoryStore())):
        filled(store)
        assert awaited(store, max_gap_bytes=gap, max_coalesced_bytes=most) == dict(enumerate(WANTED))
        prototype = default_buffer_prototype()
        found = store.get_ranges_sync("k", RANGES, prototype=prototype, max_gap_bytes=gap, max_coalesced_bytes=most)
        assert {at: value.to_bytes() for at, value in found} == dict(enumerate(WANTED))  # type: ignore[attr-defined]


def test_near_ranges_share_a_request() -> None:
    store = filled(Counting())
    awaited(store, max_gap_bytes=0)
    assert store.requests == 3 + 3  # alone: None, suffix, offset; together: 0-8, 100-110, 190-300
    store.requests = 0
    awaited(store, max_gap_bytes=1000)
    assert store.requests == 3 + 1


def test_a_missing_key_is_an_error_in_a_group() -> None:
    store = MemoryStore()
    with pytest.raises(ExceptionGroup) as raised:
        awaited(store, "absent")
    assert isinstance(raised.value.exceptions[0], FileNotFoundError)
    with pytest.raises(ExceptionGroup) as raised:
        store.get_ranges_sync("absent", RANGES, prototype=default_buffer_prototype())
    assert isinstance(raised.value.exceptions[0], FileNotFoundError)
