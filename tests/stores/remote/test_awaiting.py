"""Opening, listing, creating, reading and writing asynchronously: nothing blocks, and what is cancelled ends."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.stores.base import Store
from tessarr.stores.url import open_url
from tests.narrow import array_of
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS
from tests.waiting import PATIENCE_S, until, until_async
from tests.work import quiet

_number = itertools.count()


@pytest.fixture
def place(s3_proxy: Proxy) -> Store:
    """An empty place. Its client has more patience than any test, so that no request is sent twice."""
    options = {**S3_OPTIONS, "client_options": {"timeout": "300s"}}
    return open_url(f"s3+http://{s3_proxy.address}/bucket/await{next(_number)}", storage_options=options)


@pytest.fixture
def store(place: Store) -> Store:
    """A group with an array ``x`` and a group ``g`` with 40 arrays."""
    tessarr.create_array(place, name="x", data=np.arange(64).reshape(8, 8), chunks=(4, 4))
    for number in range(40):
        place.set(f"g/{number}/zarr.json", place.get("x/zarr.json") or b"")
    tessarr.create_group(place, path="g")
    return place


def _x(store: Store, name: str) -> tessarr.Array:
    """An array of its own, so that what is done to it can be done again."""
    return tessarr.create_array(store, name=name, data=np.arange(64).reshape(8, 8), chunks=(4, 4), overwrite=True)


def _around(array: tessarr.Array) -> tessarr.Group:
    """The group that an array is in."""
    return tessarr.open_group(array.store, path=array.path.rpartition("/")[0])


CALLS: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "open": lambda store: tessarr.open_async(store, mode="r"),
    "open_array": lambda store: tessarr.open_array_async(store, path="x", mode="r"),
    "open_group": lambda store: tessarr.open_group_async(store, path="g", mode="r"),
    "members": lambda store: tessarr.open_group(store, path="g", mode="r").members_async(),
    "getitem": lambda store: tessarr.open_group(store, mode="r").getitem_async("x"),
    "contains": lambda store: tessarr.open_group(store, mode="r").contains_async("x"),
    "create_array": lambda store: tessarr.create_array_async(store, name=f"n/y{next(_number)}", shape=(4,), dtype="u1"),
    "create_group": lambda store: tessarr.create_group_async(store, path=f"n/g{next(_number)}"),
    "resize": lambda store: _x(store, "shrunk").resize_async(5, 5),
    "resize clear": lambda store: _x(store, "cleared").resize_async(5, 5, clear=True),
    "append": lambda store: _x(store, "longer").append_async(np.ones((3, 8))),
    "update_attributes": lambda store: _x(store, "told").update_attributes_async({"a": 1}),
    "put attributes": lambda store: _x(store, "put").attrs.put_async({"a": 1}),
    "attributes of a group": lambda store: tessarr.open_group(store, path="g").update_attributes_async({"a": 1}),
    "refresh": lambda store: tessarr.open_array(store, path="x").refresh_async(),
    "replace": lambda store: tessarr.open_group(store).create_array_async("x", shape=(2,), dtype="u1", overwrite=True),
    "setitem": lambda store: tessarr.open_group(store).setitem_async("x", np.arange(9).reshape(3, 3)),
    "delitem": lambda store: _around(_x(store, "h/gone")).delitem_async("gone"),
    "get_array": lambda store: tessarr.open_group(store).get_array_async("x"),
    "non_members": lambda store: tessarr.open_group(store).non_members_async(),
    "consolidate_metadata": lambda store: tessarr.consolidate_metadata_async(store, path="g"),
    "nbytes_stored": lambda store: tessarr.open_array(store, path="x").nbytes_stored_async(),
    "nchunks_initialized": lambda store: tessarr.open_array(store, path="x").nchunks_initialized_async(),
    "stored_chunks": lambda store: tessarr.open_array(store, path="x").stored_chunks_async(),
    "info_complete": lambda store: tessarr.open_array(store, path="x").info_complete_async(),
    "digest": lambda store: tessarr.open_array(store, path="x").digest_async(),
    "astype": lambda store: tessarr.open_array(store, path="x").astype_async("f4"),
    "read": lambda store: tessarr.open_array(store, path="x", mode="r").read_async(...),
    "write": lambda store: tessarr.open_array(store, path="x", mode="r+").write_async(..., np.ones((8, 8))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_waits_does_not_block_the_loop(store: Store, s3_proxy: Proxy, name: str) -> None:
    """Each request is held until another task of the same loop lets it pass: a call that blocks the loop never ends."""

    async def let_pass() -> None:
        while True:
            await asyncio.sleep(0.002)
            s3_proxy.let_pass()

    async def main() -> None:
        passing = asyncio.create_task(let_pass())
        await _prepared(store, name)
        passing.cancel()

    s3_proxy.clear()
    s3_proxy.hold()
    asyncio.run(main())
    assert s3_proxy.seen
    assert s3_proxy.overdue == 0


async def _prepared(store: Store, name: str) -> Any:
    """The call; what is opened before it is opened in a thread."""
    made = await asyncio.to_thread(CALLS[name], store)
    return await made


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_cancelled_ends_and_sends_no_more_requests(store: Store, s3_proxy: Proxy, name: str) -> None:
    async def cancelled() -> None:
        waiting = CALLS[name](store)
        s3_proxy.clear()
        s3_proxy.hold()
        task = asyncio.ensure_future(waiting)
        await until_async(lambda: s3_proxy.holding, "a request is sent")
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert s3_proxy.overdue == 0  # the call ended although nothing was answered
        await quiet()  # those that were sent side by side have come; nothing that follows an answer can have
        sent = len(s3_proxy.seen)
        s3_proxy.release()
        await quiet()  # a thread that goes on has sent another
        assert len(s3_proxy.seen) == sent

    asyncio.run(cancelled())
    until(lambda: not s3_proxy.in_flight, "what was sent is answered")
    assert array_of(tessarr.open(store, path="x", mode="r"))[...].shape in (
        (8, 8),
        (2,),
        (3, 3),
    )  # whole, as before or after


def test_a_hundred_arrays_are_opened_side_by_side(store: Store, s3_proxy: Proxy) -> None:
    """64 requests or more at once. With one thread for each, of a handful, there would be 17."""

    async def every() -> list[Any]:
        opening = asyncio.gather(
            *(tessarr.open_array_async(store, path=f"g/{number % 40}", mode="r") for number in range(100))
        )
        await until_async(lambda: s3_proxy.most_at_once >= 64, "64 requests are in flight")
        s3_proxy.release()
        return await opening

    s3_proxy.clear()
    s3_proxy.hold()
    assert len(asyncio.run(every())) == 100
    assert s3_proxy.overdue == 0


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


async def _is_cancelled(task: asyncio.Future[Any]) -> bool:
    """Cancel a task; whether it was cancelled before it came to its end."""
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_whatever_moment_an_append_is_cancelled_at_its_rows_are_there_whole_or_void(
    place: Store, s3_proxy: Proxy, zarr_format: int
) -> None:
    """At each of its requests, one after another, until it needs no more of them than pass."""
    rows = np.arange(24).reshape(3, 8)
    array = tessarr.create_array(place, name="x", data=rows, chunks=(2, 4), zarr_format=zarr_format)

    async def cancelled_at(moment: int) -> bool:
        s3_proxy.hold(passing=moment)
        task = asyncio.ensure_future(array.append_async(rows))
        await until_async(lambda: task.done() or s3_proxy.holding, "a request is held, or the append has ended")
        found = await _is_cancelled(task)
        s3_proxy.release()
        await until_async(lambda: not s3_proxy.in_flight, "what was sent is answered")
        return found

    moment = 0
    while asyncio.run(cancelled_at(moment)):
        now = tessarr.open_array(place, path="x", mode="r")
        blocks = now[...].reshape(-1, *rows.shape)
        # Rows whose chunks may have been sent are void, as fill values, for no later append gets their place.
        assert all((block == rows).all() or not block.any() for block in blocks), blocks.tolist()
        assert (blocks[0] == rows).all()
        moment += 1
    assert moment >= 3  # reading and writing the document, and chunks
    # The lock that a cancelled append held is free.
    assert asyncio.run(array.append_async(rows))[0] == array.shape[0]
    assert s3_proxy.overdue == 0


@pytest.mark.parametrize("how", ["delete", "replace", "shrink"])
def test_whatever_moment_a_change_of_a_node_is_cancelled_at_it_can_be_repeated_at_once(
    place: Store, s3_proxy: Proxy, how: str
) -> None:
    group = tessarr.create_group(place)
    rows = np.arange(24).reshape(3, 8)

    def change() -> Awaitable[Any]:
        if how == "delete":
            return group.delitem_async("x")
        if how == "replace":
            return group.create_array_async("x", shape=(2,), dtype="u1", overwrite=True)
        return array_of(group["x"]).resize_async(1, 8)

    async def cancelled_at(moment: int) -> bool:
        changing = await asyncio.to_thread(change)
        s3_proxy.hold(passing=moment)
        task = asyncio.ensure_future(changing)
        await until_async(lambda: task.done() or s3_proxy.holding, "a request is held, or the change has ended")
        found = await _is_cancelled(task)
        s3_proxy.release()
        await until_async(
            lambda: all(thread.name != "tessarr-detached" for thread in threading.enumerate()), "what goes on has ended"
        )
        return found

    for moment in itertools.count():
        group.create_array("x", data=rows, chunks=(1, 4), overwrite=True)
        if not asyncio.run(cancelled_at(moment)):
            break
        with suppress(KeyError):  # of a deletion whose last request was carried out
            asyncio.run(_awaited(change))
        strays = [key for key in place.list_prefix("x/") if key.startswith(("x/c/1", "x/c/2"))]
        assert strays == []
    assert moment >= 4
    assert s3_proxy.overdue == 0


async def _awaited(call: Callable[[], Awaitable[Any]]) -> None:
    await (await asyncio.to_thread(call))


def test_appends_side_by_side_in_one_loop_all_survive(place: Store) -> None:
    array = tessarr.create_array(place, name="x", shape=(0,), chunks=(10,), dtype="i4")

    async def every() -> None:
        others = [tessarr.open_array_async(place, path="x", mode="r+") for _ in range(30)]
        await asyncio.gather(*(one.append_async(np.full(2, i)) for i, one in enumerate(await asyncio.gather(*others))))

    asyncio.run(asyncio.wait_for(every(), PATIENCE_S))
    array.refresh()
    assert sorted(array[...].tolist()) == sorted([*range(30)] * 2)


def test_an_append_that_is_cancelled_while_it_waits_for_another_lets_it_go_on(place: Store, s3_proxy: Proxy) -> None:
    array = tessarr.create_array(place, name="x", shape=(0,), chunks=(10,), dtype="i4")
    others = [tessarr.open_array(place, path="x") for _ in range(2)]

    async def two() -> None:
        s3_proxy.hold()
        first = asyncio.ensure_future(array.append_async([1, 2]))
        await until_async(lambda: s3_proxy.holding, "the first append is under way")
        second = asyncio.ensure_future(others[0].append_async([3]))
        await asyncio.sleep(0.03)
        assert await _is_cancelled(second)
        s3_proxy.release()
        await first
        await others[1].append_async([4])

    asyncio.run(asyncio.wait_for(two(), PATIENCE_S))
    array.refresh()
    assert array[...].tolist() == [1, 2, 4]


def test_what_runs_in_a_thread_gives_up_when_it_is_cancelled(place: Store, s3_proxy: Proxy) -> None:
    source = tessarr.group()
    for number in range(50):
        source.create_array(str(number), data=np.arange(4))
    target = tessarr.create_group(place)

    def copied() -> int:
        return sum(one.method == "PUT" and "copy/" in one.target for one in s3_proxy.seen)

    async def cancelled() -> None:
        s3_proxy.clear()
        s3_proxy.hold(passing=60)
        task = asyncio.ensure_future(tessarr.copy_async(source, target, "copy"))
        await until_async(lambda: s3_proxy.holding, "the copy is under way")
        task.cancel()
        await asyncio.sleep(0)  # the task notices before the thread may go on
        s3_proxy.release()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), PATIENCE_S))
    time.sleep(0.5)  # in which a thread that goes on would write all of it
    until(lambda: not s3_proxy.in_flight, "what was sent is answered")
    assert 0 < copied() < 50
    assert 0 < len([*tessarr.open_group(place, path="copy", mode="r")]) < 50


def test_changes_follow_into_consolidated_metadata_when_awaited(store: Store) -> None:
    tessarr.consolidate_metadata(store)
    array = asyncio.run(tessarr.open_array_async(store, path="x", mode="r+"))
    asyncio.run(array.resize_async(3, 3))
    asyncio.run(array.update_attributes_async({"unit": "m"}))
    seen = tessarr.open_consolidated(store, mode="r")["x"]
    assert seen.shape == (3, 3)
    assert seen.attrs.asdict() == {"unit": "m"}
