"""Arrays behind a network: the native engine gives the reference engine's results, with no more requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.engine.native.engine import NativeEngine
from tessarr.engine.reference.engine import ReferenceEngine
from tessarr.errors import ChunkNotFoundError, CodecError, ShardIndexError, StoreError
from tessarr.types import ByteRange
from tests.waiting import PATIENCE_S, until_async

from .far import FarStore
from .test_equality import layouts, make, random_values, selections, v1_documents, v3_documents

REFERENCE = ReferenceEngine()


@pytest.fixture(autouse=True)
def cold() -> None:
    tessarr.clear_chunk_cache()


def documented(store: FarStore, documents: dict[str, Any]) -> Any:
    import json

    for key, document in documents.items():
        store.set(key, json.dumps(document).encode())
    return tessarr.open_array(store, mode="r+")


def run(engine: Any, data: st.DataObject, name: str, *arguments: Any) -> None:
    """`engine.read` or `engine.write`, or their twin."""
    if data.draw(st.booleans()):
        asyncio.run(getattr(engine, f"{name}_async")(*arguments))
    else:
        getattr(engine, name)(*arguments)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_both_engines_read_and_write_the_same(data: st.DataObject) -> None:
    versions = data.draw(st.booleans())
    stores = [FarStore(versions=versions, delay_s=data.draw(st.sampled_from([0, 0.002]))) for _ in range(2)]
    if not versions:
        for store in stores:
            store.conditional = False
    if data.draw(st.booleans()):
        layout = data.draw(layouts())
        config = {"write_empty_chunks": data.draw(st.booleans())}
        ours, theirs = (make(store, layout, config=config) for store in stores)
    else:
        documents = data.draw(v3_documents() | v1_documents())
        ours, theirs = (documented(store, documents) for store in stores)
    native = NativeEngine()
    assert native.supports(ours._bound) is None
    expected = np.full(ours.shape, ours._bound.fill, ours._bound.dtype)
    for step in range(data.draw(st.integers(1, 3))):
        where = data.draw(selections(ours.shape))
        value = random_values(ours._bound.dtype, where.shape, step)
        if data.draw(st.integers(0, 4)) == 0:
            value = np.broadcast_to(ours._bound.fill, where.shape)
        run(native, data, "write", ours._bound, where, value)
        run(REFERENCE, data, "write", theirs._bound, where, value)
        expected[where.index] = value
        assert sorted(stores[0].held) == sorted(stores[1].held)
        for _ in range(2):
            where = data.draw(selections(ours.shape))
            for array in (ours, theirs):
                for engine in (native, REFERENCE):
                    out = np.empty(where.shape, array._bound.dtype)
                    run(engine, data, "read", array._bound, where, out)
                    wanted = np.array(expected[where.index], out.dtype)
                    assert out.tobytes() == wanted.tobytes(), engine.name


def sharded(store: FarStore, **options: Any) -> Any:
    """Four shards of 2 MiB, each of 64 inner chunks of 32 KiB."""
    values = np.random.default_rng(3).integers(0, 99, (2048, 2048)).astype("u2")
    options = {"chunks": (128, 128), "shards": (1024, 1024), "compressors": None} | options
    array = tessarr.create_array(store, data=values, **options)
    assert array.engine.name == "native"
    return array


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_both_engines_ask_the_same(engine: str) -> None:
    store = FarStore()
    sharded(store)
    tessarr.clear_chunk_cache()
    with tessarr.config.set({"engine": engine}):
        array = tessarr.open_array(store, mode="r")
    assert store.cost(lambda: array[1000:1048, 1000:1048])[1] == 4 + 4
    assert store.cost(lambda: array[...])[1] == 4
    nbytes = 3 * (128 * 128 * 2) + 64 * 16 + 4  # inner chunks that lie side by side are one range
    array[0, 0]
    assert store.cost(lambda: array[130, 10:300])[2] < nbytes


def test_a_chunk_that_was_read_in_part_is_not_transferred_again() -> None:
    store = FarStore()
    array = tessarr.create_array(store, data=np.arange(10000).reshape(100, 100), chunks=(50, 50))
    assert array.engine.name == "native"
    row, requests, nbytes = store.cost(lambda: array[3])
    assert requests == 2
    assert nbytes > 1000
    before = tessarr.chunk_cache_info()
    again, requests, nbytes = store.cost(lambda: array[4])
    assert (requests, nbytes) == (2, 0)  # whether it is still the same is asked
    assert (again == row + 100).all()
    assert tessarr.chunk_cache_info().hits == before.hits + 2
    array[4, :50] = 7
    assert (array[4, :50] == 7).all()
    assert (array[4, 50:] == row[50:] + 100).all()


def test_inner_chunks_that_were_read_in_part_are_not_transferred_again() -> None:
    store = FarStore()
    array = sharded(store, compressors="zstd")
    array[0:2, 0:300]
    fresh, requests, nbytes = store.cost(lambda: array[4:6, 0:300])
    assert (requests, nbytes) == (1, 0)
    assert (fresh == array[...][4:6, 0:300]).all()


@pytest.mark.parametrize("sharding", [False, True])
def test_a_value_that_another_writer_changed_is_read_anew(sharding: bool) -> None:
    store = FarStore()
    array = sharded(store) if sharding else tessarr.create_array(store, data=np.ones((64, 64), "u2"), chunks=(64, 64))
    array[3, :10]
    with tessarr.config.set({"engine": "reference"}):
        other = tessarr.open_array(store, mode="r+")
    for step in range(5):
        other[3, :10] = step
        assert (array[3, :10] == step).all()


def test_without_versions_nothing_is_kept() -> None:
    store = FarStore(versions=False)
    store.conditional = False
    array = sharded(store)
    array[0, :10]
    entries = tessarr.chunk_cache_info().entries
    array[3, :10]
    assert tessarr.chunk_cache_info().entries == entries == 0


def test_a_cache_of_no_size_keeps_nothing() -> None:
    store = FarStore()
    with tessarr.config.set({"cache.nbytes": 0}):
        array = sharded(store)
        array[0, :10]
        assert tessarr.chunk_cache_info()[:3] == (0, 0, 0)
        assert store.cost(lambda: array[3, :10])[2] > 0
    tessarr.chunk_cache_info()


def test_arrays_of_one_store_are_read_in_one_conversation_whatever_serves_them() -> None:
    store = FarStore(delay_s=0.01)
    group = tessarr.create_group(store)
    numbers = group.create_array("numbers", data=np.arange(1000), chunks=100)
    words = group.create_array("words", shape=300, dtype="string", chunks=50)
    words[...] = ["a", "bcd", ""] * 100
    assert (numbers.engine.name, words.engine.name) == ("native", "reference")
    a, b, c = tessarr.read_many([(numbers, slice(50, 950)), (words, slice(3, 203)), (numbers, 5)])
    assert (a == np.arange(50, 950)).all()
    assert list(b) == (["a", "bcd", ""] * 100)[3:203]
    assert c == 5


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("codec", [None, "zstd"])
def test_a_reader_beside_a_writer_never_mixes_two_shards(location: str, codec: Any) -> None:
    store = FarStore(delay_s=0.001)
    array = tessarr.create_array(
        store, shape=(64, 4096), dtype="u1", chunks=(1, 4096), compressors=codec,
        shards={"shape": (64, 4096), "index_location": location},
    )  # fmt: skip
    array[...] = 1
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            array[...] = number % 200 + 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(60):
            try:
                found = np.unique(array[number % 60 : number % 60 + 3, 5:4000])
            except StoreError:  # it never stayed the same for long enough
                continue
            assert len(found) == 1
    finally:
        stop.set()
        writer.join()


def harmless(*_: object) -> None:
    """A client that works."""


def removed(_: bytes) -> None:
    """What is left of a deleted value."""


def replaced(store: FarStore, key: str, value: Callable[[bytes], bytes | None]) -> None:
    new = value(store.held[key])
    if new is None:
        store.delete(key)
    else:
        store.held[key] = new


def test_errors_name_the_chunk() -> None:
    store = FarStore()
    array = sharded(store, compressors="zstd")
    replaced(store, "c/1/0", lambda old: old[:-1])
    with pytest.raises(ShardIndexError) as caught:
        array[1500, 3]
    assert (caught.value.chunk, caught.value.key) == ((1, 0), "c/1/0")
    replaced(store, "c/0/1", lambda old: b"\x00" * 1000 + old[1000:])
    with pytest.raises(CodecError) as caught_codec:
        array[0, 1024:1030]
    assert caught_codec.value.key == "c/0/1"
    array = array.with_config({"read_missing_chunks": False})
    replaced(store, "c/0/0", removed)
    with pytest.raises(ChunkNotFoundError):
        array[0, 0]


def test_a_store_that_fails_leaves_the_array_usable() -> None:
    store = FarStore()
    array = tessarr.create_array(store, data=np.arange(400).reshape(20, 20), chunks=(2, 2))

    def fail(key: str, span: ByteRange | None) -> None:
        if key == "c/5/5":
            raise ValueError("the client broke")

    store.before = fail
    for _ in range(2):
        with pytest.raises(ValueError, match="the client broke"):
            array[...]
        with pytest.raises(ValueError, match="the client broke"):
            asyncio.run(array.read_async(...))
    store.before = harmless
    assert (array[...] == np.arange(400).reshape(20, 20)).all()


def test_a_cast_that_only_numpy_defines_is_read_by_the_reference_engine_from_the_beginning() -> None:
    store = FarStore(delay_s=0.002)
    filters = [{"id": "astype", "encode_dtype": "<f8", "decode_dtype": "<i4"}]
    layout: dict[str, Any] = {
        "shape": (64, 64),
        "dtype": "<i4",
        "chunks": (8, 8),
        "zarr_format": 2,
        "compressors": None,
    }
    array = tessarr.create_array(store, filters=filters, **layout)
    values = np.arange(64 * 64).reshape(64, 64)
    array[...] = values
    assert array.engine.name == "reference"
    assert "astype" in array.engine.reason
    store.held["7.7"] = np.full((8, 8), 1e300).tobytes()
    with np.errstate(invalid="ignore"):
        expected = values.copy()
        expected[56:, 56:] = np.full((8, 8), 1e300).astype("<i4")
        assert (array[...] == expected).all()
        assert (asyncio.run(array.read_async(...)) == expected).all()


def test_cancelling_an_awaited_read_ends_its_requests() -> None:
    store = FarStore()
    array = tessarr.create_array(store, data=np.arange(400).reshape(20, 20), chunks=(2, 2))
    held, go_on = threading.Event(), threading.Event()

    def hold(*_: object) -> None:
        held.set()
        go_on.wait(PATIENCE_S)

    async def main() -> None:
        store.before = hold
        task = asyncio.create_task(array.read_async(...))
        await until_async(held.is_set, "requests are in flight")
        store.before = lambda *_: None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not go_on.is_set()  # it ended although nothing was answered
        go_on.set()
        assert ((await array.read_async(np.s_[:4])) == np.arange(80).reshape(4, 20)).all()

    asyncio.run(main())
