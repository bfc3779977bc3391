"""Updates of stores of one's own, and of wrappers that change values, lose nothing to writers in other processes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from obstore.store import MemoryStore as ObstoreMemory

import tessarr
import tessarr.stores.compare_and_swap as swapping
from tessarr.errors import ConflictError, StoreError
from tessarr.storage import ConditionalStore, ObjectStore, WrapperStore
from tessarr.stores.base import ANY, Any_, Version
from tessarr.stores.buffers import byte_view
from tessarr.types import Buffer, ByteRange
from tests.stores.contract import ConditionalContract, StoreContract, increment, plain


class Place:
    """What several stores, as in several processes, write to."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[bytes, int]] = {}
        self.writes = 0
        self.guard = threading.Lock()


class MyStore(ConditionalStore):
    """A store with conditional writes, whose `get` takes its time. Each has a name, and so locks, of its own."""

    def __init__(self, place: Place, remote: bool = False) -> None:
        super().__init__()
        self.place = place
        if remote:
            self.requests_at_once = 16

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        from tessarr.stores.path import check_key

        check_key(key)
        found = self.place.values.get(key)
        time.sleep(0.0005)
        if found is None:
            return None
        return found[0] if byte_range is None else found[0][slice(*byte_range.bounds(len(found[0])))]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        whole = self.get(key)
        return None if whole is None else [bytes(whole)[slice(*part.bounds(len(bytes(whole))))] for part in ranges]

    def version(self, key: str) -> Version | None:
        found = self.place.values.get(key)
        return None if found is None else str(found[1])

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        from tessarr.stores.path import check_key

        self._check_writable(key)
        check_key(key)
        time.sleep(0.0005)
        with self.place.guard:
            if not isinstance(if_match, Any_) and self.version(key) != if_match:
                raise ConflictError("changed", key=key)
            self.place.writes += 1
            self.place.values[key] = (bytes(byte_view(value)), self.place.writes)
            return str(self.place.writes)

    def delete(self, key: str) -> None:
        from tessarr.stores.path import check_key

        self._check_writable(key)
        check_key(key)
        self.place.values.pop(key, None)

    def list(self, prefix: str = "") -> Any:
        return iter([key for key in self.place.values if key.startswith(prefix)])


class Reversing(WrapperStore):
    """Stores values backwards."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        value = self.store.get(key)
        if value is None:
            return None
        whole = bytes(byte_view(value))[::-1]
        return whole if byte_range is None else whole[slice(*byte_range.bounds(len(whole)))]

    def set(self, key: str, value: Buffer, **kwargs: Any) -> Version | None:
        return self.store.set(key, bytes(byte_view(value))[::-1], **kwargs)


class TestConditionalStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> MyStore:
        return MyStore(Place())


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("wrap", [lambda store: store, Reversing], ids=["plain", "wrapped"])
def test_writers_that_share_no_lock_lose_nothing(remote: bool, wrap: Any) -> None:
    place = Place()
    array = tessarr.create_array(wrap(MyStore(place, remote)), shape=(64,), chunks=(8,), shards=(64,), dtype="i4")

    def write(number: int) -> None:
        mine = tessarr.open_array(wrap(MyStore(place, remote)), mode="r+")
        for index in range(number, 64, 8):
            mine[index] = index + 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (array[...] == np.arange(1, 65)).all()


def test_a_store_that_tells_no_version_is_not_updated() -> None:
    class Forgetful(MyStore):
        def version(self, key: str) -> Version | None:
            return None

    store = Forgetful(Place())
    store.update("new", increment)
    with pytest.raises(StoreError, match="no version"):
        store.update("new", increment)
    assert plain(store.get("new")) == b"1"


def test_who_is_always_slower_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(MyStore):
        def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
            raise ConflictError("changed", key=key)

    monkeypatch.setattr(swapping, "POLICY", swapping.POLICY._replace(attempts=3))
    with pytest.raises(ConflictError, match=r"faster in every attempt .* got 3 attempts"):
        Busy(Place()).update("k", increment)


def test_a_conflict_that_a_change_raises_ends_the_update() -> None:
    """It says something else than a conflict of the write: retried, it would come again."""
    calls = 0

    def change(_: Buffer | None) -> Buffer | None:
        nonlocal calls
        calls += 1
        raise ConflictError("a group replaced the array")

    for store in (MyStore(Place()), ObjectStore(ObstoreMemory())):
        with pytest.raises(ConflictError, match="a group replaced"):
            store.update("k", change)
    assert calls == 2


class Value:
    """A value whose first writes fail because another writer is faster. Notes the writes and the waits."""

    def __init__(self, value: bytes | None, faster: int = 0) -> None:
        self.value, self.faster = value, faster
        self.swaps: list[tuple[Version | None, Buffer | None]] = []
        self.waits: list[float] = []

    async def read(self) -> swapping.Versioned:
        return self.value, None if self.value is None else f"version {len(self.swaps)}"

    async def swap(self, version: Version | None, new: Buffer | None) -> None:
        self.swaps.append((version, new))
        if self.faster:
            self.faster -= 1
            self.value = b"theirs"
            raise ConflictError("changed", key="k")
        self.value = None if new is None else bytes(byte_view(new))

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def update(self, change: Any) -> None:
        asyncio.run(swapping.compare_and_swap(self.read, self.swap, change, sleep=self.sleep, store="memory", key="k"))


def test_who_was_slower_waits_and_changes_the_newer_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(swapping.POLICY), "back_off_s", lambda _, attempt: 10.0 + attempt)
    value = Value(b"mine", faster=2)
    value.update(lambda old: old + b"+")
    assert value.swaps == [("version 0", b"mine+"), ("version 1", b"theirs+"), ("version 2", b"theirs+")]
    assert value.waits == [10.0, 11.0]
    assert value.value == b"theirs+"


class Doubtful(Value):
    """A value whose first writes fail, some of them in doubt."""

    def __init__(self, doubts: Sequence[bool]) -> None:
        super().__init__(b"old")
        self.doubts = [*doubts]

    async def swap(self, version: Version | None, new: Buffer | None) -> None:
        if self.doubts:
            error = ConflictError("changed", key="k")
            raise error.leave_in_doubt() if self.doubts.pop(0) else error
        await super().swap(version, new)


@pytest.mark.parametrize(
    ("doubts", "in_doubt"),
    [([], False), ([False], False), ([True], True), ([True, False], True), ([False, True], True)],
)
def test_a_conflict_after_a_write_in_doubt_is_in_doubt(
    doubts: list[bool], in_doubt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the change raises, and the one after the last attempt."""
    value = Doubtful(doubts)

    def change(old: Buffer | None) -> Buffer | None:
        if value.doubts:
            return b"mine"
        raise ConflictError("another array is there")

    with pytest.raises(ConflictError, match="another array") as caught:
        value.update(change)
    assert caught.value.in_doubt is in_doubt
    monkeypatch.setattr(swapping, "POLICY", swapping.POLICY._replace(attempts=len(doubts)))
    with pytest.raises(ConflictError, match="faster in every attempt") as caught:
        Doubtful(doubts).update(lambda _: b"mine")
    assert caught.value.in_doubt is in_doubt


def test_nothing_is_written_where_nothing_is_and_nothing_is_to_be() -> None:
    value = Value(None)
    value.update(lambda old: old)
    assert value.swaps == []
    value = Value(b"old")
    value.update(lambda _: None)
    assert value.swaps == [("version 0", None)]
    value.update(lambda _: b"new")
    assert (value.swaps[1:], value.value) == ([(None, b"new")], b"new")


def test_functions_that_block_run_without_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    for call, result in (
        (swapping.sleep_blocking(0.25), None),
        (swapping.blocking(divmod)(7, 2), (3, 1)),
        (swapping.blocking(sorted)([1, 2], reverse=True), [2, 1]),
    ):
        with pytest.raises(StopIteration) as ended:
            call.send(None)
        assert ended.value.value == result
    assert waits == [0.25]
