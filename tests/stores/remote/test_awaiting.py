"""Opening, listing, creating, reading and writing asynchronously: nothing blocks, and what is cancelled ends."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.stores.base import Store
from tessarr.stores.remote import open_url
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS

_number = itertools.count()
WAIT_S = 0.2


@pytest.fixture
def store(s3_proxy: Proxy) -> Store:
    """A group with an array ``x`` and a group ``g`` with 40 arrays."""
    made = open_url(f"s3+http://{s3_proxy.address}/bucket/await{next(_number)}", storage_options=S3_OPTIONS)
    tessarr.create_array(made, name="x", data=np.arange(64).reshape(8, 8), chunks=(4, 4))
    for number in range(40):
        made.set(f"g/{number}/zarr.json", made.get("x/zarr.json") or b"")
    tessarr.create_group(made, path="g")
    return made


async def _longest_pause(waiting: Awaitable[Any]) -> float:
    """Seconds for which the loop did nothing else while it waited."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            longest = max(longest, time.perf_counter() - began)

    ticking = asyncio.create_task(tick())
    await waiting
    ticking.cancel()
    return longest


CALLS: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "open": lambda store: tessarr.open_async(store, mode="r"),
    "open_array": lambda store: tessarr.open_array_async(store, path="x", mode="r"),
    "open_group": lambda store: tessarr.open_group_async(store, path="g", mode="r"),
    "members": lambda store: tessarr.open_group(store, path="g", mode="r").members_async(),
    "getitem": lambda store: tessarr.open_group(store, mode="r").getitem_async("x"),
    "contains": lambda store: tessarr.open_group(store, mode="r").contains_async("x"),
    "create_array": lambda store: tessarr.create_array_async(store, name=f"n/y{next(_number)}", shape=(4,), dtype="u1"),
    "create_group": lambda store: tessarr.create_group_async(store, path=f"n/g{next(_number)}"),
    "read": lambda store: tessarr.open_array(store, path="x", mode="r").read_async(...),
    "write": lambda store: tessarr.open_array(store, path="x", mode="r+").write_async(..., np.ones((8, 8))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_waits_does_not_block_the_loop(store: Store, s3_proxy: Proxy, name: str) -> None:
    asyncio.run(_prepared(store, name))  # imports and connections are not what is measured
    s3_proxy.latency_s = WAIT_S
    assert asyncio.run(_longest_pause(_prepared(store, name))) < WAIT_S / 2


async def _prepared(store: Store, name: str) -> Any:
    """The call; what is opened before it is opened in a thread."""
    made = await asyncio.to_thread(CALLS[name], store)
    return await made


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_cancelled_ends_and_sends_no_more_requests(store: Store, s3_proxy: Proxy, name: str) -> None:
    async def cancelled() -> int:
        waiting = CALLS[name](store)
        s3_proxy.clear()
        s3_proxy.latency_s = 0.5
        task = asyncio.ensure_future(waiting)
        while not s3_proxy.seen:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        began = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - began < 0.3
        return len(s3_proxy.seen)

    sent = asyncio.run(cancelled())
    time.sleep(0.8)
    assert len(s3_proxy.seen) == sent
    s3_proxy.latency_s = 0
    np.testing.assert_array_equal(tessarr.open_array(store, path="x", mode="r")[...].shape, (8, 8))


def test_a_hundred_arrays_open_in_the_time_of_a_few(store: Store, s3_proxy: Proxy) -> None:
    s3_proxy.latency_s = WAIT_S

    async def every() -> list[Any]:
        return await asyncio.gather(
            *(tessarr.open_array_async(store, path=f"g/{number % 40}", mode="r") for number in range(100))
        )

    began = time.perf_counter()
    assert len(asyncio.run(every())) == 100
    # 300 requests, 64 or more at once: five rounds of them. With one thread for each, of a handful, there would be 17.
    assert time.perf_counter() - began < 12 * WAIT_S


def test_several_loops_one_after_another_and_side_by_side_use_one_store(store: Store) -> None:
    array = asyncio.run(tessarr.open_array_async(store, path="x", mode="r+"))
    for number in range(3):
        asyncio.run(array.write_async(..., np.full((8, 8), number)))
        assert (asyncio.run(array.read_async(...)) == number).all()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(array.read_async(...)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [values.sum() for values in found] == [128] * 4


def test_the_synchronous_calls_work_inside_a_running_loop(store: Store) -> None:
    async def inside() -> Any:
        return tessarr.open_array(store, path="x", mode="r")[0, 1]

    assert asyncio.run(inside()) == 1


def test_asynchronous_errors_are_those_of_the_synchronous_call(store: Store) -> None:
    with pytest.raises(tessarr.errors.ArrayNotFoundError, match="a group"):
        asyncio.run(tessarr.open_array_async(store, path="g", mode="r"))
    with pytest.raises(tessarr.errors.ContainsArrayError):
        asyncio.run(tessarr.create_group_async(store, path="x"))
    with pytest.raises(KeyError):
        asyncio.run(tessarr.open_group(store, mode="r").getitem_async("nobody"))
    assert asyncio.run(tessarr.open_group(store, path="g").nmembers_async()) == 40
    made = asyncio.run(tessarr.open_array_async(store, path="new/one", mode="a", shape=(2,), dtype="i4"))
    assert made.shape == (2,)
