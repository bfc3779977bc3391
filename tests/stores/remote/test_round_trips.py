"""What arrays and groups cost on a remote store: requests, and round trips that follow one another."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr._native import clear_cache
from tessarr.core.array import Array
from tessarr.stores.base import Store
from tessarr.stores.remote import limiter
from tessarr.stores.url import open_url
from tessarr.stores.wrappers.cache import CacheStore
from tests.narrow import group_of
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS
from tests.waiting import until_async

_number = itertools.count()
DATA = np.random.default_rng(5).integers(0, 60000, (64, 64)).astype("u2")


@pytest.fixture
def store(s3_proxy: Proxy) -> Store:
    return open_url(f"s3+http://{s3_proxy.address}/bucket/a{next(_number)}", storage_options=S3_OPTIONS)


@pytest.fixture
def cost(s3_proxy: Proxy) -> Callable[[Callable[[], Any]], tuple[dict[str, int], int]]:
    """Runs a call; its requests by method and its round trips."""

    def measure(call: Callable[[], Any]) -> tuple[dict[str, int], int]:
        # What a busy machine did to earlier requests (a timeout, a reset) has reduced the concurrency limit.
        for used in limiter._LIMITERS.values():
            used._limit = limiter.START
            used._slow_start = True
            used.statistics()  # computes the slots
        s3_proxy.clear()
        s3_proxy.latency_s = 0.05
        try:
            call()
            return s3_proxy.counts(), s3_proxy.rounds()
        finally:
            s3_proxy.latency_s = 0

    return measure


def plain_array(store: Store, name: str = "plain") -> Any:
    array = tessarr.create_array(store, name=name, shape=DATA.shape, chunks=(8, 8), dtype="u2")
    array[...] = DATA
    return tessarr.open_array(store, path=name, mode="r+")


def afresh(store: Store, path: str) -> Any:
    """The array, with nothing known of its shards."""
    clear_cache()
    return tessarr.open_array(store, path=path, mode="r")


def sharded_array(store: Store) -> Any:
    """Four shards of 2 MiB, each of 64 inner chunks, so that parts of one are far from each other."""
    array = tessarr.create_array(
        store, name="sharded", shape=(2048, 2048), shards=(1024, 1024), chunks=(128, 128), dtype="u2", compressors=None
    )
    array[...] = 7
    return tessarr.open_array(store, path="sharded", mode="r+")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_opening_a_known_path_lists_nothing_and_takes_one_round_trip(store: Store, cost: Any, zarr_format: int) -> None:
    tessarr.create_array(store, name="x", shape=(4,), dtype="u1", zarr_format=zarr_format)
    requests, rounds = cost(lambda: tessarr.open_array(store, path="x", mode="r"))
    assert set(requests) == {"GET"}
    assert requests["GET"] <= 6
    assert rounds == 1
    requests, rounds = cost(lambda: tessarr.open_array(store, path="x", mode="r", zarr_format=zarr_format))
    assert requests["GET"] <= {2: 4, 3: 2}[zarr_format]  # a claim, too: a transaction may be creating it
    assert rounds == 1


@pytest.mark.parametrize("kind", ["array", "group"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_opening_asks_for_the_documents_of_that_kind_of_node_only(
    store: Store, s3_proxy: Proxy, kind: str, zarr_format: int
) -> None:
    if kind == "array":
        tessarr.create_array(store, shape=(4,), dtype="u1", zarr_format=zarr_format, attributes={"a": 1})
    else:
        tessarr.create_group(store, zarr_format=zarr_format, attributes={"a": 1})
    opens = tessarr.open_array if kind == "array" else tessarr.open_group
    s3_proxy.clear()
    node = opens(store, mode="r")
    assert dict(node.attrs) == {"a": 1}
    asked = sorted(request.key.rpartition("/")[2] for request in s3_proxy.seen)
    wanted = {
        "array": [".tessarr_claim", ".zarray", ".zattrs", "meta", "zarr.json"],
        "group": [".tessarr_claim", ".zattrs", ".zgroup", ".zmetadata", "zarr.json"],
    }
    assert asked == wanted[kind]
    other = tessarr.open_group if kind == "array" else tessarr.open_array
    with pytest.raises(tessarr.errors.NodeNotFoundError, match=f"got: an? {kind}|an? {kind}"):
        other(store, mode="r")


@pytest.mark.parametrize("opens", [tessarr.open_array, tessarr.open_group, tessarr.open])
def test_a_node_of_a_named_format_that_is_missing_takes_one_round_trip(store: Store, cost: Any, opens: Any) -> None:
    def missing() -> None:
        with pytest.raises(tessarr.errors.NodeNotFoundError, match="leave out zarr_format=3"):
            opens(store, path="labels", mode="r", zarr_format=3)

    requests, rounds = cost(missing)
    assert rounds == 1
    assert requests["GET"] <= 2


@pytest.mark.filterwarnings("ignore:Zarr v1")
def test_a_v1_array_opens_with_its_attributes(store: Store) -> None:
    tessarr.create_array(store, shape=(4,), dtype="u1", zarr_format=1, attributes={"units": "K"})
    assert tessarr.open_array(store, mode="r").attrs["units"] == "K"
    assert tessarr.open_array(store, mode="r", zarr_format=1).attrs["units"] == "K"
    assert tessarr.open(store, mode="r").attrs["units"] == "K"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_opening_a_group_takes_one_round_trip_whatever_the_mode(store: Store, cost: Any, zarr_format: int) -> None:
    tessarr.create_group(store, path="g", zarr_format=zarr_format)
    tessarr.create_array(store, name="g/x", shape=(4,), dtype="u1", zarr_format=zarr_format)
    tessarr.consolidate_metadata(store, path="g", zarr_format=zarr_format)
    for mode in ("r", "r+", "a"):
        for opens in (tessarr.open_group, tessarr.open):
            assert cost(lambda o=opens, m=mode: o(store, path="g", mode=m))[1] == 1
        assert cost(lambda m=mode: tessarr.open_array(store, path="g/x", mode=m))[1] == 1
    consolidated = group_of(tessarr.open(store, path="g", mode="r")).metadata.consolidated_metadata
    assert consolidated is not None
    assert list(consolidated.children("")) == ["x"]


def test_creating_looks_then_writes_then_looks_for_consolidated_metadata(store: Store, cost: Any) -> None:
    requests, rounds = cost(lambda: tessarr.create_array(store, name="a/b/x", shape=(4,), dtype="u1"))
    assert requests["PUT"] == 4  # the root, a, a/b and x
    # What is there, the groups, the array; then, because another client may have created a node of another format, or
    # consolidated, meanwhile, the node's documents and the groups again.
    assert rounds == 5
    assert cost(lambda: tessarr.create_array(store, name="a/b/y", shape=(4,), dtype="u1"))[1] == 4
    assert cost(lambda: tessarr.create_group(store, path="a/c"))[1] == 4
    assert {name for name, _ in tessarr.open_group(store, mode="r").members(None)} == {
        "a",
        "a/b",
        "a/b/x",
        "a/b/y",
        "a/c",
    }


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_changing_attributes_takes_three_round_trips_and_two_more_in_v2(
    store: Store, cost: Any, zarr_format: int
) -> None:
    array = tessarr.create_array(store, name="a/x", shape=(4,), dtype="u1", zarr_format=zarr_format)
    requests, rounds = cost(lambda: array.attrs.update({"units": "K"}))
    # The document is read, and written; only then is it safe to look for consolidated metadata. In v2 other documents tell
    # whether the node was deleted or migrated: they are requested before the change and after it.
    assert rounds == {2: 5, 3: 3}[zarr_format]
    moved = {2: 3 + 2, 3: 0}[zarr_format]
    assert sum(requests.values()) <= 2 + 2 * 3 + moved  # its own document, and where consolidated metadata may be
    tessarr.consolidate_metadata(store, zarr_format=zarr_format)
    array.attrs["units"] = "m"
    assert tessarr.open_group(store, mode="r")["a/x"].attrs["units"] == "m"


def test_reading_chunks_takes_one_request_each_and_one_round_trip(store: Store, cost: Any) -> None:
    array = plain_array(store)
    assert cost(lambda: array[...]) == ({"GET": 64}, 1)
    assert cost(lambda: array[8:16, 8:16]) == ({"GET": 1}, 1)
    assert cost(lambda: asyncio.run(array.read_async(...))) == ({"GET": 64}, 1)
    np.testing.assert_array_equal(array[...], DATA)


def test_reading_parts_of_shards_takes_two_waves_and_whole_shards_one(store: Store, cost: Any) -> None:
    array = sharded_array(store)
    assert cost(lambda: array[...]) == ({"GET": 4}, 1)
    array = afresh(store, "sharded")
    assert cost(lambda: array[1000:1048, 1000:1048]) == ({"GET": 8}, 2)  # 4 indexes, then 4 parts
    array = afresh(store, "sharded")
    requests, rounds = cost(lambda: array[0])  # a row of inner chunks in each of two shards
    assert rounds == 2
    assert requests["GET"] <= 2 + 2 * 8
    array = afresh(store, "sharded")
    assert cost(lambda: asyncio.run(array.read_async(np.s_[1000:1048, 1000:1048])))[1] == 2


def test_writing_full_chunks_and_shards_reads_nothing(store: Store, cost: Any) -> None:
    array = plain_array(store)
    assert cost(lambda: array.__setitem__(..., DATA))[0] == {"PUT": 64}
    array = sharded_array(store)
    assert cost(lambda: array.__setitem__(..., 9))[0] == {"PUT": 4}


def test_writing_part_of_a_chunk_or_shard_reads_it_once_and_swaps_it(store: Store, cost: Any) -> None:
    array = plain_array(store)
    assert cost(lambda: array.__setitem__((0, 0), 1)) == ({"GET": 1, "PUT": 1}, 2)
    array = sharded_array(store)
    assert cost(lambda: array.__setitem__((0, 0), 1)) == ({"GET": 1, "PUT": 1}, 2)


def test_a_tree_costs_two_waves_per_level_whatever_its_breadth(store: Store, cost: Any) -> None:
    paths = ["a/x", "a/y", "b/c/x", "b/c/y", "d/x"]
    for path in paths:
        tessarr.create_array(store, name=path, shape=(4,), dtype="u1")
    group = tessarr.open_group(store, mode="r")
    found: list[Any] = []
    _, rounds = cost(lambda: found.extend(name for name, _ in group.members(None)))
    assert found == ["a", "b", "d", "a/x", "a/y", "b/c", "b/c/x", "b/c/y", "d/x"]
    assert rounds == 2 * 3
    assert [name for name, _ in group.members(1)] == ["a", "b", "d", "a/x", "a/y", "b/c", "d/x"]
    assert group.nmembers(None) == len(found)


def test_small_shards_are_read_in_one_wave(store: Store, cost: Any) -> None:
    array = tessarr.create_array(
        store, name="few", shape=(1024, 512), shards=(128, 512), chunks=(32, 512), dtype="u2", compressors=None
    )
    values = np.arange(1024 * 512, dtype="u2").reshape(1024, 512)
    array[...] = values
    array = afresh(store, "few")
    assert cost(lambda: array[5]) == ({"GET": 1}, 1)  # a shard of 128 KiB
    assert cost(lambda: asyncio.run(array.read_async(np.s_[120:140]))) == ({"GET": 2}, 1)
    np.testing.assert_array_equal(array[120:140, 3], values[120:140, 3])
    tiny = tessarr.create_array(store, name="many", shape=(256, 256), shards=(16, 256), chunks=(2, 256), dtype="f8")
    tiny[...] = 1.0
    tiny = afresh(store, "many")
    assert cost(lambda: tiny.oindex[::16])[1] == 1  # 16 shards of 32 KiB


def test_members_cost_one_listing_and_one_wave(store: Store, cost: Any) -> None:
    tessarr.create_group(store, path="g")
    for number in range(12):
        tessarr.create_array(store, name=f"g/a{number}", shape=(4,), dtype="u1")
    group = tessarr.open_group(store, path="g", mode="r")
    requests, rounds = cost(lambda: [*group.members()])
    assert requests["LIST"] == 1
    assert requests["GET"] <= 12 * 4
    assert rounds == 2


def test_consolidated_members_cost_nothing_more_than_opening(store: Store, cost: Any) -> None:
    tessarr.create_group(store, path="g")
    for number in range(4):
        tessarr.create_array(store, name=f"g/a{number}", shape=(4,), dtype="u1")
    tessarr.consolidate_metadata(store, path="g")
    group = tessarr.open_group(store, path="g", mode="r")
    assert cost(lambda: [*group.members()]) == ({}, 0)


def test_a_cached_array_is_read_again_without_requests(store: Store, cost: Any) -> None:
    sharded_array(store)
    array = tessarr.open_array(CacheStore(store), path="sharded", mode="r")
    first = cost(lambda: array[1000:1048, 1000:1048])
    assert first == ({"GET": 8}, 2)
    assert cost(lambda: array[1000:1048, 1000:1048]) == ({}, 0)
    assert cost(lambda: array[0:100, 0:100]) == ({"GET": 1}, 1)  # the index is known


@pytest.mark.parametrize("times", range(2))
def test_no_write_to_one_shard_by_many_threads_is_lost(store: Store, times: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    array = tessarr.create_array(store, name="s", shape=(64,), shards=(64,), chunks=(4,), dtype="i4", overwrite=True)
    with ThreadPoolExecutor(8) as pool:
        [*pool.map(lambda number: array.__setitem__(number, number + 1), range(64))]
    np.testing.assert_array_equal(array[...], np.arange(64) + 1)


_CHILD = """
import sys
import tessarr
from tessarr.stores.url import open_url
from tests.stores.remote.servers import S3_OPTIONS
from tests.waiting import until_async
array = tessarr.open_array(open_url(sys.argv[1], storage_options=S3_OPTIONS), path="s", mode="r+")
for number in range(int(sys.argv[2]), array.shape[0], 8):
    array[number] = number + 1
"""


def test_eight_processes_that_write_to_one_shard_lose_nothing(store: Store) -> None:
    import subprocess
    import sys

    from tests.stores.contract import child_environment

    array = tessarr.create_array(store, name="s", shape=(64,), shards=(64,), chunks=(4,), dtype="i4")
    children = [
        subprocess.Popen([sys.executable, "-c", _CHILD, store.url, str(number)], env=child_environment())
        for number in range(8)
    ]
    assert [child.wait(120) for child in children] == [0] * 8
    np.testing.assert_array_equal(array[...], np.arange(64) + 1)


def test_chunks_are_written_side_by_side(store: Store, cost: Any) -> None:
    array = plain_array(store)
    requests, rounds = cost(lambda: array.__setitem__(..., DATA))
    assert requests == {"PUT": 64}
    assert rounds == 1


def test_a_new_chunk_that_the_end_of_the_array_cuts_is_written_by_one_request(store: Store, cost: Any) -> None:
    array = tessarr.create_array(store, name="cut", shape=(6,), chunks=(4,), dtype="i4", fill_value=0)
    assert cost(lambda: array.__setitem__(..., 1)) == ({"PUT": 2}, 1)
    array[...] = 2
    assert array[...].tolist() == [2] * 6


def test_rounds_do_not_depend_on_congestion_before(store: Store, cost: Any) -> None:
    """A timeout on a busy machine halves the concurrency limit, so that 64 requests would be two rounds."""
    array = plain_array(store)
    used: limiter.ConcurrencyLimiter = store._limiter  # type: ignore[attr-defined]
    asyncio.run(used.acquire())
    used.release("slow_down")
    assert cost(lambda: array.__setitem__(..., DATA)) == ({"PUT": 64}, 1)


def test_a_shard_index_is_fetched_once_for_an_open_array(store: Store, cost: Any) -> None:
    array = sharded_array(store)
    assert cost(lambda: array[0:100, 0:100])[0] == {"GET": 2}
    assert cost(lambda: array[0:100, 200:300])[0] == {"GET": 1}
    array[0:2, 0:2] = 3  # a new version of the shard
    assert cost(lambda: array[0:100, 0:100])[0] == {"GET": 2}


def test_an_index_of_an_older_shard_is_never_used_with_newer_data(store: Store, cost: Any) -> None:
    mine = sharded_array(store)
    other = tessarr.open_array(store, path="sharded", mode="r+")
    assert mine[0, 0] == 7
    other[0:1024, 0:1024] = np.arange(1024 * 1024, dtype="u2").reshape(1024, 1024)[::-1]
    np.testing.assert_array_equal(mine[0:4, 0:4], other[0:4, 0:4])
    other[0:1024, 0:1024] = 0  # nothing but fill: the shard is deleted
    assert mine[0, 0] == 0


def test_an_inner_chunk_that_another_writer_adds_is_seen(store: Store) -> None:
    mine = tessarr.create_array(
        store, name="s", shape=(4096,), shards=(4096,), chunks=(64,), dtype="u1", compressors=None
    )
    other = tessarr.open_array(store, path="s", mode="r+")
    other[0] = 1
    assert mine[0] == 1
    other[4000] = 2
    assert mine[4000] == 2
    assert mine[0] == 1


@pytest.mark.parametrize("sharded", [False, True])
def test_asynchronous_writes_go_side_by_side(store: Store, cost: Any, sharded: bool) -> None:
    array = sharded_array(store) if sharded else plain_array(store)
    values = np.arange(array.size, dtype="u2").reshape(array.shape) + 1
    values[values == 0] = 1
    count = 4 if sharded else 64
    assert cost(lambda: asyncio.run(array.write_async(..., values))) == ({"PUT": count}, 1)
    np.testing.assert_array_equal(array[...], values)
    asyncio.run(array.write_async(np.s_[1:20, 1:20], 5))
    values[1:20, 1:20] = 5
    np.testing.assert_array_equal(array[...], values)


def test_a_chunk_emptied_in_part_is_stored_where_no_deletion_is_conditional(store: Store, cost: Any) -> None:
    array = tessarr.create_array(store, name="x", shape=(8,), chunks=(4,), dtype="u1")
    array[...] = 1

    def empty() -> None:
        array[0:2] = 0
        array[2:4] = 0

    assert cost(empty)[0] == {"GET": 2, "PUT": 2}
    assert array.nchunks_initialized == 2
    array[4:8] = 0  # a whole chunk is not read, so that nothing of others is lost by deleting it
    assert array.nchunks_initialized == 1
    assert not array[...].any()


def test_writes_that_are_cancelled_end(store: Store, s3_proxy: Proxy) -> None:
    array = plain_array(store)

    async def main() -> None:
        s3_proxy.hold()
        task = asyncio.ensure_future(array.write_async(..., DATA))
        await until_async(lambda: s3_proxy.holding, "a write is under way")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        s3_proxy.release()

    asyncio.run(main())
    assert s3_proxy.overdue == 0  # it ended although nothing was answered


def test_reads_of_many_arrays_share_their_waves(store: Store, cost: Any) -> None:
    plain, sharded = plain_array(store), sharded_array(store)
    again = afresh(store, "sharded")
    wanted: list[tuple[Array, Any]] = [
        (plain, np.s_[0:8, 0:16]),
        (sharded, np.s_[1000:1048, 1000:1048]),
        (plain, np.s_[0:8, 0:8]),
        (again, 0),
    ]
    requests, rounds = cost(lambda: tessarr.read_many(wanted))
    assert rounds == 2
    assert requests["GET"] <= 2 + 4 + 4 + 16
    other = afresh(store, "sharded")
    assert cost(lambda: asyncio.run(tessarr.read_many_async([(plain, 0), (other, np.s_[0:9, 0:9])])))[1] == 2
