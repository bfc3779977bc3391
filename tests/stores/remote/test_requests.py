"""How many requests a store sends, how many at once, and in which parts."""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
from tessarr.settings import config
from tessarr.stores.base import Fetch, Store
from tessarr.stores.remote import retry
from tessarr.stores.remote.base import NetworkStore
from tessarr.stores.remote.coalesce import PART_SIZE, SpanBytes, coalescing, extract, plan_spans, split
from tessarr.stores.remote.limiter import ConcurrencyLimiter, limiter_for
from tessarr.stores.url import open_url
from tessarr.types import ByteRange
from tests.narrow import calls
from tests.stores.contract import plain
from tests.stores.remote.proxy import Fault, Proxy
from tests.stores.remote.servers import S3_OPTIONS
from tests.waiting import PATIENCE_S

_number = itertools.count()


@pytest.fixture
def store(s3_proxy: Proxy) -> NetworkStore:
    return open_url(f"s3+http://{s3_proxy.address}/bucket/q{next(_number)}", storage_options=S3_OPTIONS)  # type: ignore[return-value]


# -- spans -----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(-50, 120), st.one_of(st.none(), st.integers(0, 130)))), st.integers(0, 100))
def test_the_spans_of_any_ranges_give_every_range_back(wanted: list[tuple[int, int | None]], nbytes: int) -> None:
    data = bytes(range(nbytes))
    ranges = [ByteRange(start, None if start < 0 else stop) for start, stop in wanted]
    spans = plan_spans(ranges, max_gap=5, max_request=20, part_size=12)
    for span in spans:
        start, stop = span.start, span.stop
        assert start < 0 or stop is None or 0 < stop - start <= 20
    bounds = [span.bounds(nbytes) for span in spans]
    pieces = [SpanBytes(low, memoryview(data[low:high])) for low, high in sorted(bounds) if low < high]
    for part in ranges:
        low, high = part.bounds(nbytes)
        assert bytes(extract(pieces, part, nbytes)) == data[low:high]


def test_near_parts_share_a_span_and_far_ones_do_not() -> None:
    gap = coalescing().max_gap
    near = [ByteRange(0, 10), ByteRange(10 + gap, 20 + gap)]
    far = [ByteRange(0, 10), ByteRange(11 + gap, 20 + gap)]
    assert [len(plan_spans(parts)) for parts in (near, far)] == [1, 2]


def test_the_settings_say_what_is_coalesced() -> None:
    parts = [ByteRange(0, 10), ByteRange(30, 40), ByteRange(60, 70)]
    with config.set({"array.sharding_coalesce_max_gap_bytes": 20}):
        assert len(plan_spans(parts)) == 1
    with config.set({"array.sharding_coalesce_max_gap_bytes": 19}):
        assert len(plan_spans(parts)) == 3
    with config.set({"array.sharding_coalesce_max_bytes": 40}):
        assert len(plan_spans(parts)) == 2
        assert [part.stop for part in split(0, 41, part_size=30)] == [20, 41]


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(("gap", "requests"), [(512 << 10, 1), (0, 2)])
def test_both_engines_coalesce_as_the_settings_say(
    store: NetworkStore, s3_proxy: Proxy, engine: str, gap: int, requests: int
) -> None:
    values = np.random.default_rng(0).integers(0, 255, 16 << 16, dtype="u1")
    with config.set({"engine": engine, "array.sharding_coalesce_max_gap_bytes": gap}):
        array = tessarr.create_array(store, data=values, chunks=(1 << 16,), shards=(16 << 16,), compressors=None)
        assert array[1 << 16] == values[1 << 16]  # the index of the shard is known from then on
        s3_proxy.clear()
        found = array.oindex[[0, 2 << 16]]
    assert found.tolist() == values[[0, 2 << 16]].tolist()
    assert s3_proxy.counts() == {"GET": requests}


def test_a_span_stops_growing_and_a_large_part_is_cut_evenly() -> None:
    parts = [ByteRange(start, start + 1_000_000) for start in range(0, 40_000_000, 1_000_000)]
    spans = plan_spans(parts)
    assert all((part.stop or 0) - part.start <= coalescing().max_request for part in spans)
    assert len(spans) == 3
    pieces = split(0, 50_000_000)
    assert len(pieces) == 4
    assert max((part.stop or 0) - part.start for part in pieces) <= PART_SIZE


# -- requests --------------------------------------------------------------------------------------------------


def test_a_value_and_a_part_and_a_probe_cost_one_request_each(store: Store, s3_proxy: Proxy) -> None:
    store.set("k", b"0123456789")
    for read in calls(
        lambda: store.get("k"),
        lambda: store.get("missing"),
        lambda: store.get("k", ByteRange(-4)),
        lambda: store.get_ranges("k", [ByteRange(0, 2), ByteRange(5, 6), ByteRange(1, 9)]),
        lambda: asyncio.run(store.get_async("k")),
    ):
        s3_proxy.clear()
        read()
        assert s3_proxy.counts() == {"GET": 1}
    for look in calls(lambda: store.exists("k"), lambda: store.getsize("k"), lambda: store.version("missing")):
        s3_proxy.clear()
        look()
        assert s3_proxy.counts() == {"HEAD": 1}
    s3_proxy.clear()
    store.set("k", b"1")
    store.set("k", b"1", if_match=store.version("k"))
    assert s3_proxy.counts() == {"PUT": 2, "HEAD": 1}
    s3_proxy.clear()
    store.update("k", lambda _: b"2")
    assert s3_proxy.counts() == {"GET": 1, "PUT": 1}


def test_a_directory_and_a_tree_cost_one_listing_and_a_tree_is_deleted_in_bulk(store: Store, s3_proxy: Proxy) -> None:
    for number in range(30):
        store.set(f"a/{number}/x", b"1")
    s3_proxy.clear()
    assert len(store.list_dir("a/").prefixes) == 30
    assert len([*store.list_prefix("a/")]) == 30
    assert s3_proxy.counts() == {"LIST": 2}
    s3_proxy.clear()
    store.delete_prefix("a/")
    assert s3_proxy.counts() == {"LIST": 1, "POST": 1}


def test_a_wave_is_sent_side_by_side_and_waits_one_round_trip(store: Store, s3_proxy: Proxy) -> None:
    for number in range(24):
        store.set(f"k{number}", b"%d" % number)
    wanted = [Fetch(f"k{number}") for number in range(24)]
    s3_proxy.latency_s = 0.1
    for fetch in (store.fetch, lambda requests: asyncio.run(store.fetch_async(requests))):
        s3_proxy.clear()
        assert [plain(found) for found in fetch(wanted)] == [[b"%d" % number] for number in range(24)]
        assert s3_proxy.rounds() == 1
        assert s3_proxy.counts() == {"GET": 24}
        assert s3_proxy.most_at_once == 24


def test_requests_for_one_key_are_put_together(store: Store, s3_proxy: Proxy) -> None:
    store.set("k", bytes(100_000))
    s3_proxy.clear()
    wanted = [Fetch("k", (ByteRange(start, start + 10),)) for start in range(0, 100_000, 1000)]
    assert len(store.fetch(wanted)) == 100
    assert s3_proxy.counts() == {"GET": 1}
    s3_proxy.clear()
    store.fetch([Fetch("k"), Fetch("k", (ByteRange(5, 6),))])
    assert s3_proxy.counts() == {"GET": 1}


def test_a_big_object_is_read_in_pieces_side_by_side(store: Store, s3_proxy: Proxy) -> None:
    value = np.random.default_rng(0).bytes(40_000_000)
    store.set("big", value)
    s3_proxy.clear()
    assert plain(store.get("big", ByteRange(0, 40_000_000))) == value
    assert s3_proxy.counts() == {"GET": 4}
    s3_proxy.clear()
    assert plain(store.get("big")) == value
    assert s3_proxy.counts()["GET"] in (3, 4)  # the first answer brings the first piece and the size


# -- the limiter --------------------------------------------------------------------------------------------------


def test_one_origin_has_one_limiter_for_the_whole_process(s3_proxy: Proxy) -> None:
    place = f"s3+http://{s3_proxy.address}/bucket"
    stores = [open_url(f"{place}/{name}", storage_options=S3_OPTIONS) for name in "ab"]
    assert stores[0]._limiter is stores[1]._limiter  # type: ignore[attr-defined]
    assert limiter_for("s3://a") is not limiter_for("s3://b")


def test_no_more_requests_run_than_the_limiter_allows(store: NetworkStore, s3_proxy: Proxy) -> None:
    store._limiter = ConcurrencyLimiter(start=3, maximum=3)
    s3_proxy.latency_s = 0.02
    wanted = [Fetch(f"k{number}") for number in range(12)]

    async def both() -> None:
        await asyncio.gather(asyncio.to_thread(store.fetch, wanted), store.fetch_async(wanted))

    asyncio.run(both())
    assert s3_proxy.most_at_once == 3
    assert s3_proxy.counts() == {"GET": 24}
    assert store._limiter.statistics().in_flight == 0


def test_the_setting_async_concurrency_limits_the_requests_in_flight(store: NetworkStore, s3_proxy: Proxy) -> None:
    store._limiter = ConcurrencyLimiter(start=16)
    s3_proxy.latency_s = 0.02
    wanted = [Fetch(f"k{number}") for number in range(12)]
    with config.set({"async.concurrency": 3}):
        asyncio.run(store.fetch_async(wanted))
        assert store._limiter.statistics().limit == 3
    assert s3_proxy.most_at_once == 3
    assert store._limiter.statistics().limit == 16


def test_the_setting_async_timeout_ends_the_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: now))
    with config.set({"async.timeout": 30}):
        state = retry.RetryState(retry.RetryPolicy(), store="s3://b", key="k", operation="GET")
        again = retry.Fault("retry", "busy", status=503)
        now = 29.0
        assert state.pause(again) >= 0
        now = 31.0
        with pytest.raises(retry.RequestError, match="2 attempts"):
            state.pause(again)


def test_a_server_that_says_slow_down_gets_fewer_requests(store: NetworkStore, s3_proxy: Proxy) -> None:
    now = [100.0]
    store._limiter = ConcurrencyLimiter(start=16, clock=lambda: now[0])
    store.set("k", b"1")
    before = store._limiter.statistics().limit
    s3_proxy.faults.append(Fault("status", status=503, code="SlowDown", times=3))
    assert plain(store.get("k")) == b"1"
    after = store._limiter.statistics()
    assert after.limit == before // 2  # three signs within half a second are one
    assert after.slow_downs == 3
    now[0] += 0.5
    s3_proxy.faults.append(Fault("status", status=503, code="SlowDown", times=1))
    assert plain(store.get("k")) == b"1"
    assert store._limiter.statistics().limit == before // 4


def test_a_busy_limiter_grows_with_success_and_an_idle_one_does_not() -> None:
    limiter = ConcurrencyLimiter(start=4, maximum=20, clock=lambda: 100.0)

    async def rounds() -> None:
        await limiter.acquire()
        limiter.release("ok")
        assert limiter.statistics().limit == 4
        for _ in range(40):
            limit = limiter.statistics().limit
            for _ in range(limit):
                await limiter.acquire()
            for _ in range(limit):
                limiter.release("ok", nbytes=1000)

    asyncio.run(rounds())
    assert limiter.statistics().limit == 20
    assert limiter.statistics().in_flight == 0


def test_waiting_tasks_of_several_loops_all_get_their_turn() -> None:
    limiter = ConcurrencyLimiter(start=1, maximum=1)
    done: list[int] = []

    async def work(number: int) -> None:
        await limiter.acquire()
        await asyncio.sleep(0)
        done.append(number)
        limiter.release("ok")

    async def tasks(first: int) -> None:
        await asyncio.gather(*map(work, range(first, first + 25)))

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(lambda first: asyncio.run(tasks(first)), range(0, 100, 25))]
    assert sorted(done) == [*range(100)]


def test_a_cancelled_task_leaves_no_place_taken() -> None:
    limiter = ConcurrencyLimiter(start=1, maximum=1)

    async def main() -> None:
        await limiter.acquire()
        waiting = [asyncio.create_task(limiter.acquire()) for _ in range(3)]
        await asyncio.sleep(0)
        limiter.release("ok")  # grants the first, which is cancelled before it can know
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.wait_for(limiter.acquire(), PATIENCE_S)
        limiter.release("ok")

    asyncio.run(main())
    assert limiter.statistics().in_flight == 0
