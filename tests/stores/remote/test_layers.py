"""Cache and retry layers."""

from __future__ import annotations

import asyncio
import itertools
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tessarr.errors import ConflictError, StoreError
from tessarr.storage import CountingStore, WrapperStore
from tessarr.stores.base import Fetch, Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.remote.retry import RetryPolicy
from tessarr.stores.url import open_url
from tessarr.stores.wrappers.cache import CacheStore, LRUStoreCache
from tessarr.stores.wrappers.retry import RetryStore
from tessarr.types import Buffer, ByteRange
from tests.stores.contract import ConditionalContract, SharedContract, StoreContract, increment, plain
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS
from tests.waiting import PATIENCE_S

_number = itertools.count()


class TestCacheInMemory(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return CacheStore(MemoryStore())


class TestSmallCacheOnDisk(StoreContract, ConditionalContract, SharedContract):
    processes, threads = 3, 2

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        cache = LocalStore(tmp_path / "cache")
        return CacheStore(LocalStore(tmp_path / "data"), cache_store=cache, max_size=8, max_age_seconds=0)


class TestLRUStoreCache(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return LRUStoreCache(MemoryStore(), 100)


class TestRetryStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return RetryStore(MemoryStore())


def test_what_was_read_or_written_is_not_asked_for_again() -> None:
    below = CountingStore(MemoryStore({"a": b"0123456789", "b": b"xyz"}))
    cache = CacheStore(below)
    for _ in range(3):
        assert plain(cache.get("a")) == b"0123456789"
        assert plain(cache.get("a", ByteRange(2, 4))) == b"23"
        assert plain(cache.get_ranges("b", [ByteRange(0, 1), ByteRange(-1)])) == [b"x", b"z"]
        assert plain(asyncio.run(cache.get_async("a", ByteRange(-1)))) == b"9"
        assert cache.get("missing") is None
    assert below.counter["fetch"] == 5
    cache.set("c", b"new")
    assert plain(cache.get("c")) == b"new"
    assert below.counter["fetch"] == 5
    statistics = cache.cache_stats()
    assert (statistics.hits, statistics.misses) == (11, 5)
    assert statistics.hit_rate == 11 / 16
    assert cache.cache_info().current_size == 10 + 2 + 3
    cache.clear_cache()
    assert cache.cache_info().current_size == 0
    assert plain(cache.get("a")) == b"0123456789"
    assert below.counter["fetch"] == 6


def test_only_what_is_not_cached_is_fetched_in_one_wave() -> None:
    below = CountingStore(MemoryStore({str(number): b"%d" % number for number in range(10)}))
    cache = CacheStore(below)
    cache.get("3")
    below.counter.clear()
    assert [plain(found) for found in cache.fetch([Fetch(str(n)) for n in range(12)])] == [
        *([b"%d" % n] for n in range(10)), None, None,
    ]  # fmt: skip
    assert below.counter == {"fetch": 1}


def test_the_least_recently_used_leave_first_and_large_values_never_enter() -> None:
    below = CountingStore(MemoryStore())
    cache = CacheStore(below, max_size=30)
    for key in "abc":
        cache.set(key, bytes(10))
    cache.get("a")
    cache.set("d", bytes(10))
    cache.set("big", bytes(31))
    assert cache.cache_info().current_size == 30
    assert cache.cache_stats().evictions == 1
    below.counter.clear()
    for key in "acd":
        cache.get(key)
    assert not below.counter
    cache.get("b")
    assert below.counter == {"fetch": 1}
    assert len([*cache.cache_store.list()]) == 3


def test_every_kind_of_write_is_seen() -> None:
    store = MemoryStore({"k": b"1", "p/k": b"1"})
    cache = CacheStore(store)
    writes: list[Any] = [
        (lambda: cache.set("k", b"2"), b"2"),
        (lambda: cache.update("k", increment), b"3"),
        (lambda: cache.set_partial_values([("k", 0, b"4")]), b"4"),
        (lambda: asyncio.run(cache.set_async("k", b"5")), b"5"),
        (lambda: asyncio.run(cache.update_async("k", increment)), b"6"),
        (lambda: cache.delete("k"), None),
        (lambda: cache.set_if_not_exists("k", b"7"), b"7"),
        (lambda: cache.replace_prefix("", {"k": b"8"}), b"8"),
        (lambda: cache.delete_prefix(""), None),
    ]
    for write, expected in writes:
        cache.get("k")
        cache.get("k", ByteRange(0, 1))
        write()
        assert plain(cache.get("k")) == expected
        assert plain(cache.get("k", ByteRange(0, 1))) == expected
        assert plain(store.get("k")) == expected


def test_a_value_that_was_replaced_while_it_was_read_is_not_kept() -> None:
    started, written = threading.Event(), threading.Event()

    class Slow(WrapperStore):
        def fetch(self, requests: Any) -> Any:
            found = super().fetch(requests)
            started.set()
            assert written.wait(PATIENCE_S)
            return found

    store = MemoryStore({"k": b"old"})
    cache = CacheStore(Slow(store), cache_set_data=False)
    thread = threading.Thread(target=cache.get, args=("k",))
    thread.start()
    assert started.wait(PATIENCE_S)
    cache.set("k", b"new")
    written.set()
    thread.join()
    assert plain(cache.get("k")) == b"new"


def test_an_old_entry_is_revalidated_by_its_etag_without_its_body(s3_proxy: Proxy) -> None:
    store = open_url(f"s3+http://{s3_proxy.address}/bucket/l{next(_number)}", storage_options=S3_OPTIONS)
    cache = CacheStore(store, max_age_seconds=0)
    store.set("k", b"0123456789")
    assert plain(cache.get("k")) == b"0123456789"
    s3_proxy.clear()
    assert plain(cache.get("k", ByteRange(2, 4))) == b"23"
    assert s3_proxy.counts() == {"HEAD": 1}
    assert cache.cache_stats().revalidations == 1
    store.set("k", b"abcdefghij")
    s3_proxy.clear()
    assert plain(cache.get("k")) == b"abcdefghij"
    assert s3_proxy.counts() == {"HEAD": 1, "GET": 1}


def test_many_old_entries_are_revalidated_at_once(s3_proxy: Proxy) -> None:
    store = open_url(f"s3+http://{s3_proxy.address}/bucket/l{next(_number)}", storage_options=S3_OPTIONS)
    cache = CacheStore(store, max_age_seconds=0)
    keys = [f"k{number}" for number in range(20)]
    for key in keys:
        store.set(key, key.encode())
    wanted = [Fetch(key) for key in keys]
    cache.fetch(wanted)
    s3_proxy.clear()
    s3_proxy.latency_s = 0.05
    assert plain([parts[0] for parts in cache.fetch(wanted) if parts]) == [key.encode() for key in keys]
    assert s3_proxy.counts() == {"HEAD": 20}
    assert s3_proxy.rounds() == 1
    store.set("k3", b"new")
    s3_proxy.clear()
    assert plain([parts[0] for parts in cache.fetch(wanted) if parts])[3] == b"new"
    assert s3_proxy.counts() == {"HEAD": 20, "GET": 1}
    assert s3_proxy.rounds() == 2
    s3_proxy.clear()
    found = asyncio.run(cache.fetch_async(wanted))
    assert plain([parts[0] for parts in found if parts])[2:4] == [b"k2", b"new"]
    assert s3_proxy.rounds() == 1


def test_a_directory_is_rid_of_what_a_process_left_there_that_is_no_more(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    gone = f"{int(done.stdout):x}-0123456789abcdef-1"
    alive = f"{os.getppid():x}-0123456789abcdef-1"
    place = LocalStore(tmp_path)
    for name in (gone, alive, "something-else"):
        place.set(name, b"1")
    cache = CacheStore(MemoryStore({"k": b"0"}), cache_store=place)
    assert plain(cache.get("k")) == b"0"
    assert not place.exists(gone)
    assert place.exists(alive)
    assert place.exists("something-else")


def test_a_pickled_cache_begins_empty() -> None:
    cache = CacheStore(LocalStore("somewhere"), max_size=5)
    twin = pickle.loads(pickle.dumps(cache))
    assert twin.cache_info() == cache.cache_info()
    assert twin.cache_stats().hits == 0


class _Flaky(WrapperStore):
    """Fails `times` times with `error`, then works."""

    def __init__(self, store: Store, times: int, error: Exception) -> None:
        super().__init__(store)
        self.times, self.error = times, error

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        self.times -= 1
        if self.times >= 0:
            raise self.error
        return self.store.get(key, byte_range)


def test_a_retry_layer_tries_again_and_gives_up() -> None:
    policy = RetryPolicy(attempts=3, backoff_s=0.001)
    store = MemoryStore({"k": b"1"})
    assert plain(RetryStore(_Flaky(store, 2, StoreError("x")), policy).get("k")) == b"1"
    with pytest.raises(StoreError, match="x"):
        RetryStore(_Flaky(store, 3, StoreError("x")), policy).get("k")
    flaky = _Flaky(store, 3, ConflictError("x"))
    with pytest.raises(ConflictError):
        RetryStore(flaky, policy).get("k")
    assert flaky.times == 2


def test_a_cache_and_its_read_only_twin_never_give_out_each_other_s_values() -> None:
    below = MemoryStore()
    for key in "abcdef":
        below.set(key, key.encode() * 3)
    cache = CacheStore(below)
    twin = cache.with_read_only()
    for first, second in itertools.permutations((cache, twin)):
        for one, other in itertools.permutations("abcdef", 2):
            assert plain(first.get(one)) == one.encode() * 3
            assert plain(second.get(other)) == other.encode() * 3
    assert cache.cache_info() == twin.cache_info()
    assert cache.cache_info().current_size == 18


def test_an_unpickled_cache_on_the_same_disk_does_not_write_over_the_first(tmp_path: Path) -> None:
    below = LocalStore(tmp_path / "data")
    for key in "ab":
        below.set(key, key.encode())
    cache = CacheStore(below, cache_store=LocalStore(tmp_path / "cache"))
    again = pickle.loads(pickle.dumps(cache))
    assert plain(cache.get("a")) == b"a"
    assert plain(again.get("b")) == b"b"
    assert plain(cache.get("a")) == b"a"


def test_what_is_read_while_a_value_is_written_is_not_kept() -> None:
    """It may be of the old value or of the new one, and parts of both must not stand side by side."""
    visible, go_on = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        def set(self, key: str, value: Any, **options: Any) -> Any:
            version = super().set(key, value, **options)
            visible.set()
            assert go_on.wait(PATIENCE_S)
            return version

    below = Slow({"k": b"old value"})
    cache = CacheStore(below, max_size=1000)
    writer = threading.Thread(target=lambda: cache.set("k", b"new value"))
    writer.start()
    assert visible.wait(PATIENCE_S)
    assert bytes(cache.get("k", ByteRange(0, 3)) or b"") == b"new"
    assert cache.cache_info().current_size == 0
    go_on.set()
    writer.join()
    assert bytes(cache.get("k", ByteRange(0, 3)) or b"") == b"new"
    assert cache.cache_info().current_size > 0


def test_of_two_writes_at_once_the_one_that_is_stored_is_cached() -> None:
    visible, go_on = threading.Event(), threading.Event()

    class SlowAtFirst(MemoryStore):
        def set(self, key: str, value: Any, **options: Any) -> Any:
            version = super().set(key, value, **options)
            if value == b"first":
                visible.set()
                assert go_on.wait(PATIENCE_S)
            return version

    below = SlowAtFirst()
    cache = CacheStore(below, max_size=1000)
    writer = threading.Thread(target=lambda: cache.set("k", b"first"))
    writer.start()
    assert visible.wait(PATIENCE_S)
    cache.set("k", b"second")
    go_on.set()
    writer.join()
    assert bytes(below.get("k") or b"") == bytes(cache.get("k") or b"") == b"second"


def test_parts_that_are_cached_are_of_one_value() -> None:
    below = MemoryStore({"k": b"old value"})
    cache = CacheStore(below, max_size=1000)
    for part in (ByteRange(0, 3), ByteRange(4, 9)):
        cache.get("k", part)
    looked_up = cache._lookup

    def look_up(key: str, part: Any, now: Any) -> Any:
        found = looked_up(key, part, now)
        if part == ByteRange(0, 3):  # another thread, just now
            cache.set("k", b"NEW VALUE")
            cache.get("k", ByteRange(4, 9))
        return found

    cache._lookup = look_up  # type: ignore[method-assign]
    assert [bytes(part) for part in cache.get_ranges("k", [ByteRange(0, 3), ByteRange(4, 9)]) or ()] == [
        b"NEW",
        b"VALUE",
    ]


def test_a_retry_layer_retries_within_a_running_event_loop_and_ends_at_its_deadline() -> None:
    store = MemoryStore({"k": b"1"})

    async def read() -> object:
        return RetryStore(_Flaky(store, 2, StoreError("x")), RetryPolicy(attempts=3, backoff_s=0.001)).get("k")

    assert plain(asyncio.run(read())) == b"1"
    error = StoreError("x")
    flaky = _Flaky(store, 9, error)
    with pytest.raises(StoreError) as raised:
        RetryStore(flaky, RetryPolicy(attempts=9, backoff_s=0.001, deadline_s=-1)).get("k")
    assert raised.value is error
    assert flaky.times == 8
    with pytest.raises(KeyError):  # no error of a store
        RetryStore(_Flaky(store, 1, KeyError("k"))).get("k")
