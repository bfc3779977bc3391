"""``zarr.experimental.cache_store.CacheStore``: what is cached, for how long, and what a change does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

import tessarr
from tessarr.facade.zarr3.abc.store import RangeByteRequest
from tessarr.facade.zarr3.buffer import default_buffer_prototype
from tessarr.facade.zarr3.buffer.cpu import Buffer
from tessarr.facade.zarr3.experimental.cache_store import CacheStore
from tessarr.facade.zarr3.storage import MemoryStore, ZipStore

PROTOTYPE = default_buffer_prototype()


def run(awaited: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(awaited)


def read(store: Any, key: str, part: RangeByteRequest | None = None) -> bytes | None:
    found = run(store.get(key, PROTOTYPE, part))
    return None if found is None else found.to_bytes()


def write(store: Any, key: str, data: bytes) -> None:
    run(store.set(key, Buffer.from_bytes(data)))


def test_a_value_is_read_once_from_the_source() -> None:
    source, cache = MemoryStore(), MemoryStore()
    write(source, "a", b"1234")
    store = CacheStore(source, cache_store=cache)
    assert [read(store, "a"), read(store, "a")] == [b"1234", b"1234"]
    assert read(store, "a", RangeByteRequest(1, 3)) == read(store, "a", RangeByteRequest(1, 3)) == b"23"
    assert read(cache, "a") == b"1234"
    assert store.cache_stats() == {"hits": 2, "misses": 2, "evictions": 0, "total_requests": 4, "hit_rate": 0.5}
    assert store.cache_info()["current_size"] == 6


def test_a_change_through_the_store_removes_the_value_and_its_ranges() -> None:
    store = CacheStore(MemoryStore(), cache_store=MemoryStore())
    write(store, "a", b"1234")
    assert read(store, "a", RangeByteRequest(0, 2)) == b"12"
    write(store, "a", b"5678")
    assert read(store, "a", RangeByteRequest(0, 2)) == b"56"
    run(store.delete("a"))
    assert read(store, "a") is None
    assert read(store._cache, "a") is None
    write(store, "b/c", b"1")
    run(store.delete_dir("b"))
    assert read(store, "b/c") is None


def test_a_value_that_changed_while_it_was_read_is_not_kept() -> None:
    class Slow(MemoryStore):
        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            found = await super().get(key, prototype, byte_range)
            if not changed:
                changed.append(key)
                await store.set(key, Buffer.from_bytes(b"new"))
            return found

    changed: list[str] = []
    source = Slow()
    store = CacheStore(source, cache_store=MemoryStore(), cache_set_data=False)
    source.set_sync("a", Buffer.from_bytes(b"old"))
    assert read(store, "a") == b"old"
    assert read(store, "a") == b"new"


def test_the_least_recently_used_values_leave_and_large_ones_are_not_kept() -> None:
    cache = MemoryStore()
    store = CacheStore(MemoryStore(), cache_store=cache, max_size=4)
    for key, data in (("a", b"11"), ("b", b"22"), ("c", b"33"), ("d", b"55555")):
        write(store, key, data)
    assert sorted(cache._store_dict) == ["b", "c"]
    assert store.cache_stats()["evictions"] == 1
    assert read(store, "d") == b"55555"
    run(store.clear_cache())
    assert store.cache_info()["tracked_keys"] == store.cache_info()["current_size"] == 0


def test_an_old_value_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = MemoryStore()
    write(source, "a", b"1")
    store = CacheStore(source, cache_store=MemoryStore(), max_age_seconds=10)
    assert read(store, "a") == b"1"
    write(source, "a", b"2")
    assert read(store, "a") == b"1"
    entries = store._state.entries
    entries["a", None] = entries["a", None]._replace(since=entries["a", None].since - 11)
    assert read(store, "a") == b"2"


def test_a_cache_must_be_able_to_delete_and_its_age_must_be_one(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="does not support deletes"):
        CacheStore(MemoryStore(), cache_store=ZipStore(tmp_path / "a.zip", mode="w"))
    with pytest.raises(ValueError, match="must be 'infinity'"):
        CacheStore(MemoryStore(), cache_store=MemoryStore(), max_age_seconds="long")


def test_arrays_work_over_a_cache() -> None:
    store = CacheStore(MemoryStore(), cache_store=MemoryStore())
    array = tessarr.create_array(store, shape=4, chunks=2, dtype="u1")
    array[:] = [1, 2, 3, 4]
    assert tessarr.open_array(store, mode="r")[:].tolist() == [1, 2, 3, 4]
    assert tessarr.open_array(store.with_read_only(True), mode="r")[1] == 2
    assert store.cache_stats()["hits"] > 0
