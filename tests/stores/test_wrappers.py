"""Stores around a store."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tessarr.errors import KeyValidationError, ReadOnlyError
from tessarr.storage import (
    CacheStore,
    CountingStore,
    LatencyStore,
    LoggingStore,
    PrefixStore,
    ReadOnlyStore,
    WrapperStore,
)
from tessarr.stores.base import Fetch, Store
from tessarr.stores.functions import stamp_below
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.protocols import Remote
from tessarr.stores.transformed.normalized import NormalizingStore
from tessarr.stores.wrappers.creating import CreatingStore
from tessarr.stores.wrappers.retry import RetryStore
from tessarr.types import Buffer, ByteRange
from tests.stores.contract import ConditionalContract, SharedContract, StoreContract, plain
from tests.waiting import PATIENCE_S


class TestWrapperStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return WrapperStore(MemoryStore())


class TestWrapperOfALocalStore(StoreContract, ConditionalContract, SharedContract):
    processes, threads, rounds = 2, 2, 5

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return WrapperStore(LocalStore(tmp_path))


class TestPrefixStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        inner = MemoryStore({"beside": b"1", "belowx/y": b"2", "below/herex": b"3"})
        yield PrefixStore(inner, "/below/here/")
        rest = {key: inner.get(key) for key in inner.list() if not key.startswith("below/here/")}
        assert rest == {"beside": b"1", "belowx/y": b"2", "below/herex": b"3"}


class TestLoggingStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return LoggingStore(MemoryStore(), log_handler=logging.NullHandler())


class TestLatencyStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return LatencyStore(MemoryStore(), get_latency=0.0001, set_latency=0.0001)


class TestCountingStoreOfAPrefixStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return CountingStore(PrefixStore(MemoryStore(), "p"))


class Inverted(WrapperStore):
    """Stores every byte inverted; whoever passed updates on as they are would store wrong bytes."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        value = self.store.get(key, byte_range)
        return None if value is None else bytes(255 - b for b in memoryview(value))

    def set(self, key: str, value: Buffer, **kwargs: Any) -> str | None:
        return self.store.set(key, bytes(255 - b for b in memoryview(value)), **kwargs)


@pytest.mark.parametrize("how", ["update", "update_async", "splice", "splice_async"])
def test_a_wrapper_that_changes_values_changes_those_of_updates_too(how: str) -> None:
    inner = MemoryStore()
    store = Inverted(inner)
    store.set("k", b"abc")
    change = (lambda _: [ByteRange(0, 2), b"z"]) if "splice" in how else (lambda old: bytes(old[:2]) + b"z")
    done = getattr(store, how)("k", change)
    if done is not None:
        asyncio.run(done)
    assert store.get("k") == b"abz"
    assert inner.get("k") == bytes(255 - b for b in b"abz")


def test_a_wrapper_is_what_it_wraps(tmp_path: Path) -> None:
    inner = LocalStore(tmp_path)
    store = WrapperStore(inner)
    assert (store.url, store.supports_listing, isinstance(store, Remote)) == (inner.url, True, False)
    assert store == WrapperStore(inner)
    assert store != WrapperStore(LocalStore(tmp_path / "x"))
    with store.lock("a"), pytest.raises(ReadOnlyError):
        store.with_read_only().set("a", b"")


def test_counts_are_by_method_and_asynchronous_calls_count_too() -> None:
    store = CountingStore(MemoryStore())
    store.set("a", b"1")
    store.get("a")
    asyncio.run(store.get_async("a"))
    store.fetch([Fetch("a"), Fetch("b")])
    store.list_dir("")
    assert store.counter == {"set": 1, "get": 2, "fetch": 1, "list_dir": 1}
    twin = store.with_read_only()
    twin.get("a")
    assert store.counter["get"] == 3, "views count together"


def test_calls_are_logged_with_their_place_and_time() -> None:
    records: list[logging.LogRecord] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    store = LoggingStore(MemoryStore(), log_level="INFO", log_handler=Collect())
    store.set("a/b", b"1")
    messages = [record.getMessage() for record in records]
    assert messages[0] == "MemoryStore.set(a/b)"
    assert messages[1].startswith("MemoryStore.set(a/b): 0.")
    assert {record.levelname for record in records} == {"INFO"}
    assert store.counter["set"] == 1
    twin = pickle.loads(pickle.dumps(store))
    assert plain(twin.store.get("a/b")) == b"1"
    assert twin.with_read_only().read_only


def test_latency_is_per_request_and_a_fetch_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    store = LatencyStore(MemoryStore(), get_latency=0.05, set_latency=0.02)
    assert isinstance(store, Remote)
    store.set("a", b"1")
    assert slept == [0.02]
    store.fetch([Fetch("a")] * 10)
    assert slept == [0.02, 0.05]


def test_asynchronous_latencies_pass_together(monkeypatch: pytest.MonkeyPatch) -> None:
    store = LatencyStore(MemoryStore({"a": b"1"}), get_latency=0.1)
    slept: list[float] = []

    async def read() -> None:
        all_wait = asyncio.Event()

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 20:
                all_wait.set()
            await all_wait.wait()

        monkeypatch.setattr("asyncio.sleep", sleep)
        await asyncio.wait_for(asyncio.gather(*(store.get_async("a") for _ in range(20))), PATIENCE_S)

    asyncio.run(read())
    assert slept == [0.1] * 20


def test_a_prefix_store_shows_its_place_and_keeps_to_it() -> None:
    inner = MemoryStore({"a/b/c": b"1", "x": b"2"})
    store = PrefixStore(inner, "a")
    assert store.url == f"{inner.url}/a"
    assert PrefixStore(inner, "").get("x") == b"2"
    assert store == PrefixStore(inner, "/a/")
    assert store != PrefixStore(inner, "b")
    for key in ("../x", "/x", "b/../../x", ""):
        with pytest.raises(KeyValidationError):
            store.get(key)
    store.clear()
    assert [*inner.list()] == ["x"]


def test_a_read_only_store_stays_so() -> None:
    inner = MemoryStore({"a": b"1"})
    store = ReadOnlyStore(inner)
    assert store.get("a") == b"1"
    for call in (
        lambda: store.set("a", b""),
        lambda: store.delete_prefix(""),
        lambda: store.delete_many([]),
        lambda: asyncio.run(store.set_async("a", b"")),
        lambda: asyncio.run(store.replace_prefix_async("", {})),
        lambda: store.lock("a"),
    ):
        with pytest.raises(ReadOnlyError):
            call()
    with pytest.raises(ValueError, match="stays read-only"):
        store.with_read_only(False)
    assert store.with_read_only() is store
    inner.set("a", b"2")
    assert store.get("a") == b"2"


@pytest.mark.parametrize(
    "wrap",
    [CacheStore, CountingStore, LatencyStore, LoggingStore, ReadOnlyStore, RetryStore, CreatingStore,
     NormalizingStore, lambda store: PrefixStore(store, ""), lambda store: CountingStore(CacheStore(store))],
    ids=["cache", "counting", "latency", "logging", "read-only", "retry", "creating", "normalizing", "prefix", "two"],
)  # fmt: skip
def test_a_stamp_is_that_of_the_wrapped_local_store(wrap: Any, tmp_path: Path) -> None:
    inner = LocalStore(tmp_path)
    wrapped, found = wrap(inner), []
    for value in (b"1", b"two"):
        inner.set("a/b", value)
        found.append(stamp_below(wrapped, "a/", lambda key: key == "a/b"))
        assert found[-1] == stamp_below(inner, "a/", lambda key: key == "a/b")
    assert None not in found
    assert found[0] != found[1]


def test_a_stamp_below_a_prefix_has_the_keys_of_the_wrapper(tmp_path: Path) -> None:
    inner = LocalStore(tmp_path)
    inner.set("top/a/b", b"1")
    found = [stamp_below(PrefixStore(inner, "top"), "a/", wanted.__eq__) for wanted in ("a/b", "a/b", "top/a/b")]
    assert found[0] == found[1] != found[2]


def test_a_wrapper_that_may_change_values_has_no_stamp_unless_it_says_so(tmp_path: Path) -> None:
    assert stamp_below(WrapperStore(LocalStore(tmp_path)), "", bool) is None
