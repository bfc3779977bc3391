"""Chunks that are the concatenation of several values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.storage import CountingStore, DictStore, LMDBStore, LocalStore, MemoryStore, SQLiteStore, Store
from tessarr.stores.fetch import Fetch
from tessarr.stores.protocols import Delete, Set
from tessarr.stores.transformed.parts import Part, PartsStore
from tessarr.types import ByteRange
from tests.stores.contract import ENGINES, ConditionalContract, SharedContract, StoreContract, plain

TWO = [Part(""), Part(".sum")]
THREE = [Part(".head", 0), Part(""), Part(".tail", 0)]


class TestPartsStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return PartsStore(MemoryStore(), THREE)


class TestPartsStoreInADirectory(StoreContract, ConditionalContract, SharedContract):
    processes, threads, rounds = 2, 2, 5

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return PartsStore(LocalStore(tmp_path), THREE)


class TestPartsStoreInADatabase(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return PartsStore(SQLiteStore(tmp_path / "a.sqlite"), THREE)


@given(value=st.binary(min_size=5, max_size=30), ranges=st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 40))))
def test_ranges_are_those_of_the_whole_value(value: bytes, ranges: list[tuple[int, int]]) -> None:
    store = PartsStore(inner := MemoryStore(), [Part(".a", 2), Part(""), Part(".b", 3)])
    store.set("x", value)
    assert [plain(inner.get(key)) for key in ("x.a", "x", "x.b")] == [value[:2], value[2:-3], value[-3:]]
    assert plain(store.get("x")) == value
    assert store.getsize("x") == len(value)
    parts = [ByteRange(start) if start < 0 else ByteRange(start, start + length) for start, length in ranges]
    expected = [value[slice(*part.bounds(len(value)))] for part in parts]
    assert plain(store.get_ranges("x", parts)) == expected
    assert [plain(store.get("x", part)) for part in parts] == expected
    assert [*store.list()] == ["x"]
    store.delete("x")
    assert [*inner.list()] == []


@pytest.mark.spec("REG-22")
def test_a_range_in_the_last_part_asks_for_that_part_only() -> None:
    counting = CountingStore(MemoryStore({"x": b"body", "x.index": b"0123"}))
    store = PartsStore(counting, [Part(""), Part(".index", 4)])
    assert plain(store.get("x", ByteRange(-4))) == b"0123"
    assert (counting.counter["fetch"], counting.counter["getsize"]) == (1, 0)


@pytest.mark.spec("REG-22")
@pytest.mark.parametrize("missing", ["x", "x.sum"])
def test_a_value_without_one_of_its_parts_is_torn(missing: str) -> None:
    values = {"x": b"12", "x.sum": b"34"}
    del values[missing]
    store = PartsStore(MemoryStore(values), TWO)
    for byte_range in (None, ByteRange(0, 4), ByteRange(-3)):
        with pytest.raises(StoreError, match="part of the value is missing"):
            store.get("x", byte_range)
    assert store.get("y") is None
    assert store.get("y", ByteRange(0, 2)) is None


@pytest.mark.spec("REG-22")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("place", [LocalStore, lambda _: MemoryStore()], ids=["local", "memory"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_part_of_another_size_is_an_error(
    tmp_path: Path, place: Callable[[Path], Any], read_only: bool, engine: str
) -> None:
    transformer: dict[str, Any] = {
        "name": "concat-parts",
        "configuration": {"parts": [{"key_suffix": ".h", "size": 4}, {"key_suffix": ""}]},
    }
    store = place(tmp_path)
    z = tessarr.create_array(store, shape=8, dtype="u1", compressors=None, storage_transformers=[transformer])
    z[...] = np.arange(8)
    assert plain(store.get("c/0.h")) == bytes([0, 1, 2, 3])
    for wrong in (b"123", b"12345"):
        store.set("c/0.h", wrong)
        with tessarr.config.set({"engine": engine}), pytest.raises(StoreError, match="another size"):
            tessarr.open_array(store.with_read_only(read_only), mode="r")[...]
    store.delete("c/0.h")
    with tessarr.config.set({"engine": engine}), pytest.raises(StoreError, match="missing"):
        tessarr.open_array(store.with_read_only(read_only), mode="r")[...]


def test_a_value_that_cannot_be_divided_is_refused() -> None:
    store = PartsStore(inner := MemoryStore(), [Part(".a", 2), Part(".b", 3)])
    for value in (b"1234", b"123456", b""):
        with pytest.raises(StoreError, match="cannot be divided"):
            store.set("x", value)
    store.set("x", b"12345")
    assert sorted(inner.list()) == ["x.a", "x.b"]
    ambiguous = PartsStore(MemoryStore({"x": b"1", "x.sum": b"2"}), TWO)
    assert plain(ambiguous.get("x")) == b"12"
    assert not isinstance(ambiguous, Set)
    with pytest.raises(StoreError, match="cannot be divided"):
        ambiguous.set("x", b"123")


def test_a_store_that_cannot_write_several_values_at_once_is_read_only() -> None:
    store = PartsStore(inner := DictStore(), THREE)
    assert not isinstance(store, Set)
    assert not isinstance(store, Delete)
    with pytest.raises(UnsupportedOperationError, match="in one step"):
        store.set("x", b"1")
    with pytest.raises(UnsupportedOperationError, match="in one step"):
        store.delete("x")
    assert [*inner.list()] == []


class _Between(list[Fetch]):
    """Requests between which another client writes."""

    def __init__(self, requests: Sequence[Fetch], write: Callable[[], object]) -> None:
        super().__init__(requests)
        self._write = write

    def __iter__(self) -> Iterator[Fetch]:
        for request in super().__iter__():
            yield request
            self._write()


@pytest.mark.parametrize("kind", [partial(SQLiteStore, timeout=0), LMDBStore], ids=["sqlite", "lmdb"])
@pytest.mark.parametrize("ranges", [None, (ByteRange(0, 1),)], ids=["whole", "range"])
def test_a_fetch_from_a_database_is_of_one_moment(
    kind: Callable[[Path], SQLiteStore | LMDBStore], ranges: tuple[ByteRange, ...] | None, tmp_path: Path
) -> None:
    store, other = kind(tmp_path / "place"), kind(tmp_path / "place")
    store.commit({"a": b"1", "b": b"1"}, {})

    def write() -> None:
        with suppress(StoreError):  # SQLite lets no writer commit meanwhile
            other.commit({"a": b"2", "b": b"2"}, {})

    a, b = store.fetch(_Between([Fetch("a", ranges), Fetch("b", ranges)], write))
    assert a is not None
    assert b is not None
    assert (plain(a[0]), plain(b[0])) in ((b"1", b"1"), (b"2", b"2"))
    store.close()
    other.close()


class _Growing(MemoryStore):
    """A store whose value ``x`` another client replaces by a longer one after its size was read for the first time."""

    grown = False

    def getsize(self, key: str) -> int | None:
        size = super().getsize(key)
        if key == "x" and not self.grown:
            self.grown = True
            self.commit({"x": b"0123456789", "x.head": b"h"}, {})
        return size


def test_bytes_at_the_end_are_those_of_the_value_whose_size_was_read() -> None:
    store = PartsStore(_Growing({"x": b"abc", "x.head": b"H"}), [Part(".head", 1), Part("")])
    assert plain(store.get_ranges("x", [ByteRange(0, 1), ByteRange(-2)])) == [b"h", b"89"]


def test_a_value_that_grew_is_noticed_where_versions_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartsStore, "version", lambda *_: "the digest of a value that came back")
    store = PartsStore(_Growing({"x": b"abc", "x.head": b"H"}), [Part(".head", 1), Part("")])
    assert plain(store.get_ranges("x", [ByteRange(0, 1), ByteRange(-2)])) == [b"h", b"89"]
