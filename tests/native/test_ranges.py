"""Parts of shards from stores that Python serves: what the native engine asks for, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.engine import bound as binding
from tessarr.engine.native.engine import NativeEngine
from tessarr.engine.reference.engine import ReferenceEngine
from tessarr.errors import ChunkNotFoundError, ShardIndexError
from tessarr.indexing.selection import Outer
from tessarr.storage import ForwardingStore
from tessarr.stores.base import Fetch
from tessarr.stores.database.sqlite import SQLiteStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.zip.store import ZipStore
from tessarr.types import Buffer, ByteRange

from .test_equality import put, random_values, selections, v3_documents

REFERENCE = ReferenceEngine()


class Asked(ForwardingStore):
    """Notes what it is asked for, call by call, and how many bytes went out."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.calls: list[list[Fetch]] = []
        self.nbytes = 0
        self.meanwhile: list[Any] = []

    def fetch(self, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
        """See `Store.fetch`; afterwards, somebody else may do something."""
        self.calls.append(list(requests))
        found = super().fetch(requests)
        self.nbytes += sum(memoryview(part).nbytes for parts in found for part in parts or ())
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return found


def make(store: Any, **options: Any) -> Any:
    """An array of two shards of 64 inner chunks of 2000 bytes each."""
    array = tessarr.create_array(
        store, **{"shape": (128, 2000), "dtype": "u1", "chunks": (1, 2000), "shards": (64, 2000)} | options
    )
    array[...] = np.arange(array.shape[0], dtype="u1")[:, None] + 1
    return array


def test_an_inner_chunk_is_asked_for_with_the_index_and_then_with_its_range() -> None:
    store = Asked(MemoryStore())
    array = make(store, compressors=None)
    store.calls.clear()
    store.nbytes = 0
    assert array.engine.name == "native"
    assert array[70, 3] == 71
    first, second = store.calls
    assert [request.key for request in first] == ["c/1/0"] == [request.key for request in second]
    assert first[0].ranges is not None
    assert len(first[0].ranges) == 1
    assert second[0].ranges is not None
    assert second[0].ranges[0] == (12000, 14000)
    assert store.nbytes < 5000


def test_one_call_is_for_all_shards_of_a_selection() -> None:
    store = Asked(MemoryStore())
    array = make(store)
    store.calls.clear()
    assert array[[3, 5, 70], 3].tolist() == [4, 6, 71]
    assert [[request.key for request in call] for call in store.calls] == [["c/0/0", "c/1/0"]] * 2


def test_most_of_a_shard_is_asked_for_whole() -> None:
    store = Asked(MemoryStore())
    array = make(store)
    store.calls.clear()
    assert array[:60, 0].tolist() == list(range(1, 61))
    assert store.calls == [[Fetch("c/0/0")]]


def test_small_shards_are_asked_for_whole() -> None:
    store = Asked(MemoryStore())
    array = make(store, shape=(8, 2000), shards=(4, 2000))
    store.calls.clear()
    assert array[0, 0] == 1
    assert store.calls == [[Fetch("c/0/0")]]


def test_memory_is_asked_for_an_inner_chunk_once() -> None:
    class Watched(MemoryStore):
        nbytes = 0

        def fetch(self, requests: Any) -> Any:
            found = super().fetch(requests)
            self.nbytes += sum(len(part) for parts in found for part in parts or ())
            return found

    tessarr.clear_chunk_cache()
    store = Watched()
    array = make(store, compressors="zstd", shards=(64, 2000))
    array[...] = np.random.default_rng(0).integers(0, 256, array.shape, dtype="u1")
    store.nbytes = 0
    first = array[70, 3]
    assert store.nbytes > 1000
    store.nbytes = 0
    assert array[70, 3] == first
    assert store.nbytes == 1, "a byte, whose response has the version"


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_shard_that_is_replaced_between_two_waves_is_read_anew(location: str) -> None:
    inner = MemoryStore()
    store = Asked(inner)
    array = make(store, compressors="zstd", shards={"shape": (64, 2000), "index_location": location})
    other = make(MemoryStore(), compressors="gzip", shards={"shape": (64, 2000), "index_location": location})
    other = tessarr.open_array(inner, mode="r+")

    def replace() -> None:
        other[...] = np.random.default_rng(0).integers(0, 256, (128, 2000), dtype="u1")

    store.meanwhile.append(replace)
    assert array[70].tolist() == other[70].tolist()
    assert len(store.calls) >= 3


def test_a_shard_that_is_removed_between_two_waves_reads_as_missing() -> None:
    inner = MemoryStore()
    store = Asked(inner)
    array = make(store, fill_value=9)
    store.meanwhile.append(lambda: inner.delete("c/1/0"))
    assert array[70, :3].tolist() == [9, 9, 9]


def test_a_missing_shard_is_fill_or_an_error() -> None:
    inner = MemoryStore()
    array = make(Asked(inner), fill_value=9)
    inner.delete("c/1/0")
    assert array[70, :3].tolist() == [9, 9, 9]
    strict = tessarr.open_array(Asked(inner), mode="r", config={"read_missing_chunks": False})
    with pytest.raises(ChunkNotFoundError):
        strict[70, 3]


@pytest.mark.parametrize("damage", ["cut", "index", "short"])
def test_damaged_shards_are_the_same_errors_as_of_the_reference_engine(damage: str) -> None:
    inner = MemoryStore()
    store = Asked(inner)
    array = make(store, compressors=None)
    value = bytearray(bytes(inner.get("c/1/0") or b""))
    if damage == "cut":
        del value[4000:6000]
    elif damage == "index":
        value[-30] ^= 1
    else:
        del value[100:]
    inner.set("c/1/0", bytes(value))
    last = Outer((slice(127, 128, 1), slice(0, 1, 1)))
    errors = []
    for engine in (NativeEngine(), REFERENCE):
        with pytest.raises(ShardIndexError) as raised:
            engine.read(array._bound, last, np.empty((1, 1), "u1"))
        errors.append(raised.value)
    assert (errors[0].chunk, errors[0].codec) == (errors[1].chunk, errors[1].codec) == ((1, 0), "sharding_indexed")


@pytest.mark.parametrize("kind", ["sqlite", "zip", "lmdb"])
def test_database_and_archive_stores_give_the_same_values(kind: str, tmp_path: Any) -> None:
    if kind == "lmdb":
        pytest.importorskip("lmdb", reason="the extra kv is not installed")
        from tessarr.stores.database.lmdb import LMDBStore

        store: Any = LMDBStore(tmp_path / "a.lmdb")
    else:
        store = SQLiteStore(tmp_path / "a.sqlite") if kind == "sqlite" else ZipStore(tmp_path / "a.zip", mode="w")
    with store:
        array = make(store)
        assert array.engine.name == "native"
        assert NativeEngine().supports(array._bound) is None
        assert array[5:120:7, 9].tolist() == list(range(6, 121, 7))
        ranges = [ByteRange(2, 5), ByteRange(-3), ByteRange(4), ByteRange(9, 99)]
        store.set("a/b", b"0123456")
        assert [bytes(part) for part in store.get_ranges("a/b", ranges)] == [b"234", b"456", b"456", b""]
        assert store.get_ranges("a/c", ranges) is None


def test_ranges_of_a_sqlite_value_can_be_had_during_its_update_and_of_text(tmp_path: Any) -> None:
    with SQLiteStore(tmp_path / "a.sqlite") as store:
        store.set("a", b"old")
        store.update("a", lambda _: b"".join(map(bytes, store.get_ranges("a", [ByteRange(1)]) or ())))
        assert store.get("a") == b"ld"
        with store._transaction("a") as connection:
            connection.execute("UPDATE zarr SET v = 'text'")
        assert [bytes(part) for part in store.get_ranges("a", [ByteRange(-2)]) or ()] == [b"xt"]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_ranges_of_nested_shards_of_any_layout_give_what_the_reference_engine_gives(data: st.DataObject) -> None:
    before, binding._SMALL_SHARD = binding._SMALL_SHARD, 0
    try:
        inner = MemoryStore()
        array = put(inner, data.draw(v3_documents()))
        for step in range(data.draw(st.integers(0, 2))):
            where = data.draw(selections(array.shape))
            array._bound  # noqa: B018 - the engine is told directly
            NativeEngine().write(array._bound, where, random_values(array.dtype, where.shape, step))
        bound = tessarr.open_array(Asked(inner), mode="r")._bound
        for _ in range(3):
            where = data.draw(selections(array.shape))
            found, expected = np.empty(where.shape, array.dtype), np.empty(where.shape, array.dtype)
            NativeEngine().read(bound, where, found)
            REFERENCE.read(bound, where, expected)
            assert found.tobytes() == expected.tobytes()
    finally:
        binding._SMALL_SHARD = before
