"""`Array.follow` and `Group.follow`: each row once, in order, complete, from anywhere, until stopped."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
from tessarr.core.streams import watch
from tessarr.core.streams.follow import Follower
from tessarr.errors import ArrayNotFoundError, ConflictError
from tessarr.storage import MappingStore
from tessarr.stores.local import exchange
from tessarr.stores.memory.store import MemoryStore
from tests.simulation.simulator import Bucket, Client
from tests.waiting import PATIENCE_S, until


@pytest.fixture(params=["memory", "local", "no versions", "shared"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return MemoryStore()
    if request.param == "no versions":
        return MappingStore({})
    return str(tmp_path / "a.zarr") if request.param == "local" else Client("a", Bucket())


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> Any:
    with tessarr.config.set({"append.one_process": True}):
        yield


def made(store: Any, length: int = 0, **options: Any) -> tessarr.Array:
    z = tessarr.create_array(store, **{"shape": (0, 2), "chunks": (4, 2), "dtype": "i4", "overwrite": True, **options})
    if length:
        z.append(rows(0, length))
    return z


def rows(start: int, count: int = 1) -> Any:
    return np.repeat(np.arange(start, start + count, dtype="i4"), 2).reshape(count, 2)


def firsts(follower: Follower[Any]) -> list[list[int]]:
    """The blocks that there are, by the first element of each row."""
    return [block[:, 0].tolist() for _, block in follower]


def flat(blocks: list[list[int]]) -> list[int]:
    return [row for block in blocks for row in block]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_each_row_is_handed_out_once_and_in_order(store: Any, zarr_format: int) -> None:
    z = made(store, 3, zarr_format=zarr_format, attributes={"units": "K"})
    follower = z.follow(timeout=0)
    seen = firsts(follower)
    for start in (3, 4, 9):
        tessarr.open_array(store).append(rows(start, {3: 1, 4: 5, 9: 2}[start]))
        seen += firsts(follower)
    assert flat(seen) == list(range(11))
    assert z.shape == (3, 2), "the caller's object changed"
    assert z.attrs["units"] == "K"


def test_what_is_handed_out_says_where_it_is(store: Any) -> None:
    z = made(store, 3)
    for where, block in z.follow(timeout=0):
        np.testing.assert_array_equal(block, z[where])


@pytest.mark.parametrize(
    ("start", "expected"),
    [(None, [0, 1, 2, 3, 4]), (0, [0, 1, 2, 3, 4]), (3, [3, 4]), (-1, []), (-3, [3, 4]), (-100, [0, 1, 2, 3, 4])],
)
def test_the_start_is_a_row_or_counts_from_the_end(start: int | None, expected: list[int]) -> None:
    z = made({}, 5)
    assert flat(firsts(z.follow(start=start, timeout=0))) == expected


def test_the_end_is_the_end_at_the_time_of_the_call() -> None:
    z = made(MemoryStore(), 5)
    follower = z.follow(start=-1, timeout=0)
    z.append(rows(5))
    assert flat(firsts(follower)) == [5]


def test_a_start_that_is_not_there_yet_is_waited_for() -> None:
    z = made(MemoryStore(), 2)
    follower = z.follow(start=4, timeout=0)
    z.append(rows(2))
    assert firsts(follower) == []
    z.append(rows(3, 3))
    assert flat(firsts(follower)) == [4, 5]


@given(st.lists(st.integers(1, 9), max_size=6), st.lists(st.integers(0, 12), max_size=4), st.integers(1, 4))
def test_another_follower_goes_on_from_a_saved_position(counts: list[int], cuts: list[int], min_rows: int) -> None:
    """However the appends and the restarts fall, and whatever the size of blocks: each row once, in order."""
    with tessarr.config.set({"append.one_process": True}):
        z, seen, total = made(MemoryStore()), [], 0
        position: Any = None
        for number, count in enumerate(counts):
            z.append(rows(total, count))
            total += count
            follower = z.follow(start=position, timeout=0, max_rows=min_rows + number % 3, min_rows=min_rows)
            for _, block in follower:
                assert 1 <= len(block) <= min_rows + number % 3
                seen += block[:, 0].tolist()
                if len(seen) in cuts:
                    break
            position = json.loads(json.dumps(follower.position))
            assert position["row"] == len(seen)
        seen += flat(firsts(z.follow(start=position, timeout=0)))
        assert seen == list(range(total))


def test_too_few_rows_are_waited_for_until_the_timeout() -> None:
    z = made(MemoryStore(), 5)
    assert [len(block) for _, block in z.follow(timeout=0, min_rows=3, max_rows=3)] == [3, 2]


def test_blocks_are_whole_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    z = made(MemoryStore(), 11)
    assert [where for where, _ in z.follow(timeout=0)] == [slice(0, 11)]
    monkeypatch.setattr("tessarr.core.streams.follow._BLOCK_NBYTES", 8 * 8)  # a row has 8 bytes, a chunk 4 rows
    assert [where for where, _ in z.follow(timeout=0)] == [slice(0, 8), slice(8, 11)]
    assert [where for where, _ in z.follow(start=3, timeout=0)] == [slice(3, 8), slice(8, 11)]
    monkeypatch.setattr("tessarr.core.streams.follow._BLOCK_NBYTES", 1)
    assert [where for where, _ in z.follow(start=3, timeout=0)] == [slice(3, 4), slice(4, 8), slice(8, 11)]


def test_another_axis_can_be_followed() -> None:
    z = tessarr.create_array(MemoryStore(), data=np.arange(6).reshape(2, 3), chunks=(2, 2))
    follower = z.follow(axis=-1, timeout=0, start=1)
    z.append([[10], [11]], axis=1)
    assert [block.tolist() for _, block in follower] == [[[1, 2], [4, 5]], [[10], [11]]]
    assert follower.position == {"arrays": ["/"], "axis": 1, "row": 4}


# -- what is not an extension ---------------------------------------------------------------------------------------------


def shrink(store: Any) -> None:
    tessarr.open_array(store, mode="r+").resize((2, 2))


def widen(store: Any) -> None:
    tessarr.open_array(store, mode="r+").resize((5, 3))


def retype(store: Any) -> None:
    tessarr.create_array(store, shape=(9, 2), chunks=(4, 2), dtype="f4", overwrite=True)


def rechunk(store: Any) -> None:
    tessarr.create_array(store, data=rows(20, 9), chunks=(3, 2), overwrite=True)


def recode(store: Any) -> None:
    tessarr.create_array(store, data=rows(20, 9), chunks=(4, 2), compressors=None, overwrite=True)


@pytest.mark.parametrize("change", [shrink, widen, retype, rechunk, recode])
def test_another_change_is_an_error_that_names_both(store: Any, change: Callable[[Any], None]) -> None:
    z = made(store, 5)
    follower = z.follow(timeout=0)
    assert flat(firsts(follower)) == list(range(5))
    change(store)
    with pytest.raises(ConflictError, match="changed, not only extended") as raised:
        next(follower)
    assert "(5, 2)" in str(raised.value)
    assert follower.position["row"] == 5


def remove(store: Any) -> None:
    tessarr.open_array(store, mode="r+").store.delete("zarr.json")


@pytest.mark.parametrize(
    ("change", "error"),
    [(shrink, ConflictError), (retype, ConflictError), (rechunk, ConflictError), (remove, ArrayNotFoundError)],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_rows_that_were_there_at_the_last_look_are_not_handed_out_after_another_change(
    store: Any, change: Callable[[Any], None], error: type[Exception], is_async: bool
) -> None:
    follower = made(store, 5).follow(timeout=0, max_rows=2)
    assert next(follower)[1][:, 0].tolist() == [0, 1]
    change(store)
    for _ in range(2):  # it stays an error
        with pytest.raises(error):
            asyncio.run(anext(follower)) if is_async else next(follower)
    assert follower.position["row"] == 2


def test_rows_of_several_arrays_are_not_handed_out_after_one_of_them_was_shortened() -> None:
    group = tessarr.create_group(MemoryStore())
    for name in ("a", "b"):
        group.create_array(name, data=np.arange(1, 7), chunks=(2,))
    follower = group.follow(["a", "b"], timeout=0, max_rows=2)
    next(follower)
    tessarr.open_array(group.store, path="b", mode="r+").resize((3,))
    with pytest.raises(ConflictError):
        next(follower)
    assert follower.position["row"] == 2


def test_an_array_that_is_gone_is_an_error(store: Any) -> None:
    z = made(store, 5)
    follower = z.follow(timeout=0, start=-1)
    z._store.delete("zarr.json")
    with pytest.raises(ArrayNotFoundError, match="gone"):
        next(follower)


def test_a_group_in_its_place_is_an_error(store: Any) -> None:
    follower = made(store, 5).follow(timeout=0, start=-1)
    tessarr.open_group(store, mode="w")
    with pytest.raises(ArrayNotFoundError, match="gone"):
        next(follower)


def test_a_position_beyond_the_end_is_an_error() -> None:
    z = made(MemoryStore(), 5)
    with pytest.raises(ConflictError, match="beyond the end"):
        z.follow(start={"arrays": ["/"], "axis": 0, "row": 6})


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"poll": 0}, ValueError, "poll"),
        ({"poll": float("nan")}, ValueError, "poll"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"min_rows": 0}, ValueError, "min_rows"),
        ({"min_rows": 1.5}, TypeError, "float"),
        ({"max_rows": 2.5}, TypeError, "float"),
        ({"min_rows": 3, "max_rows": 2}, ValueError, "max_rows"),
        ({"settle": "now"}, ValueError, "settle"),
        ({"axis": 2}, IndexError, "2 axes"),
        ({"start": "end"}, ValueError, "saved position"),
        ({"start": {"row": 1}}, ValueError, "saved position"),
        ({"start": {"arrays": ["/b"], "axis": 0, "row": 1}}, ValueError, "/b"),
        ({"start": {"arrays": ["/"], "axis": 1, "row": 1}}, ValueError, "axis 1"),
        ({"start": {"arrays": ["/"], "axis": 0, "row": -1}}, ValueError, "at least 0"),
        ({"rows": 3}, TypeError, "rows"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        made(MemoryStore(), 5).follow(**options)


# -- waiting --------------------------------------------------------------------------------------------------------------


def test_rows_that_come_later_are_handed_out_and_an_event_ends_it(store: Any) -> None:
    z, stop = made(store, 1), threading.Event()
    seen: list[int] = []

    def follow() -> None:
        for _, block in z.follow(stop=stop, poll=0.05, timeout=PATIENCE_S):
            seen.extend(block[:, 0].tolist())

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        writer = tessarr.open_array(store)
        for number in range(1, 8):
            until(lambda number=number: len(seen) == number, "the row is handed out")  # type: ignore[misc]
            writer.append(rows(number))
        until(lambda: len(seen) == 8, "the last row is handed out")
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert seen == list(range(8))


def test_a_follower_that_was_stopped_hands_out_nothing_more() -> None:
    z, stop = made(MemoryStore(), 5), threading.Event()
    follower = z.follow(stop=stop, timeout=0, max_rows=2)
    assert next(follower)[0] == slice(0, 2)
    stop.set()
    assert [*follower] == []
    assert follower.position["row"] == 2


def test_rows_can_be_awaited_while_other_tasks_run(store: Any) -> None:
    async def main() -> list[int]:
        z, seen, stop = made(store, 1), [], asyncio.Event()

        async def follow() -> None:
            async with await z.follow_async(stop=stop, poll=0.05, timeout=PATIENCE_S) as follower:
                async for _, block in follower:
                    seen.extend(block[:, 0].tolist())

        task = asyncio.create_task(follow())
        writer = tessarr.open_array(store)
        for number in range(1, 6):
            while len(seen) < number:
                await asyncio.sleep(0.002)
            await writer.append_async(rows(number))
        while len(seen) < 6:
            await asyncio.sleep(0.002)
        stop.set()
        await task
        return seen

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE_S)) == list(range(6))


def test_a_follower_that_waits_can_be_cancelled() -> None:
    async def main() -> None:
        follower = await made(MemoryStore(), 1).follow_async(start=-1)
        task = asyncio.create_task(anext(follower))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert follower.position["row"] == 1

    asyncio.run(main())


def test_the_async_array_and_group_follow_too() -> None:
    async def main() -> None:
        group = tessarr.open_group(MemoryStore(), mode="w")
        z = group.create_array("z", data=[1, 2])
        assert [block.tolist() async for _, block in await z.async_array.follow(timeout=0)] == [[1, 2]]
        members = await group.async_group.follow(["z"], timeout=0)
        assert [blocks["z"].tolist() async for _, blocks in members] == [[1, 2]]

    asyncio.run(main())


def test_pauses_grow_to_the_longest_and_are_short_again_after_a_change() -> None:
    waiting = watch.Watch([], 1.0, remote=True)
    pauses = [waiting._next(PATIENCE_S, None) for _ in range(9)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.02, 1.0)
    waiting.changed()
    assert waiting._next(PATIENCE_S, None) == 0.02
    assert waiting._next(0.001, None) == 0.001, "longer than the timeout"
    assert watch.Watch([], 0.0001, remote=True)._next(PATIENCE_S, None) == 0.0001


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_the_kernel_ends_a_pause_when_a_document_is_replaced(tmp_path: Path) -> None:
    z = made(str(tmp_path / "a.zarr"), 1)
    follower = z.follow(start=-1, poll=10 * PATIENCE_S)
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(next(follower)), daemon=True)
    thread.start()
    z.append(rows(1))
    thread.join(PATIENCE_S)
    assert [where for where, _ in got] == [slice(1, 2)]
    follower.close()
    follower.close()


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_the_kernel_ends_an_awaited_pause(tmp_path: Path) -> None:
    async def main() -> slice:
        z = made(str(tmp_path / "a.zarr"), 1)
        async with await z.follow_async(start=-1, poll=10 * PATIENCE_S) as follower:
            task = asyncio.create_task(anext(follower))
            await z.append_async(rows(1))
            return (await asyncio.wait_for(task, PATIENCE_S))[0]

    assert asyncio.run(main()) == slice(1, 2)


def _by_swap(place: Path) -> None:
    with tessarr.transaction(place, mode="swap") as tx:
        group: Any = tx.group
        group["t"].append(rows(1))


def _by_exchange(place: Path) -> None:
    shutil.copytree(place / "t", place / "copy")
    tessarr.open_array(place / "copy", mode="r+").append(rows(1))
    assert exchange.exchange(str(place / "t"), str(place / "copy"))


@pytest.mark.skipif(exchange._renameat2() is None, reason="RENAME_EXCHANGE and inotify are Linux's")
@pytest.mark.parametrize("replace", [_by_swap, _by_exchange])
def test_the_kernel_ends_a_pause_after_the_directory_was_replaced(
    tmp_path: Path, replace: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, wait = threading.Event(), watch._Notifier.wait

    def waiting(notifier: watch._Notifier, seconds: float) -> bool:
        waits.set()
        return wait(notifier, seconds)

    monkeypatch.setattr(watch._Notifier, "wait", waiting)
    place = tmp_path / "g.zarr"
    tessarr.create_group(place)
    follower = made(str(place / "t"), 1).follow(start=-1, poll=10 * PATIENCE_S)
    got: list[Any] = []
    for change in (replace, lambda place: tessarr.open_array(place / "t", mode="r+").append(rows(2))):
        waits.clear()
        thread = threading.Thread(target=lambda: got.append(next(follower)[0].stop), daemon=True)
        thread.start()
        assert waits.wait(PATIENCE_S)
        change(place)
        thread.join(PATIENCE_S)
    assert got == [2, 3]
    follower.close()


def test_where_the_kernel_gives_no_descriptor_a_follower_looks_at_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_notifier", lambda _: None)
    z = made(str(tmp_path / "a.zarr"), 1)
    follower = z.follow(start=-1, poll=0.01)
    z.append(rows(1))
    assert next(follower)[0] == slice(1, 2)


# -- writers that change the shape first ------------------------------------------------------------------------------------


def test_rows_whose_chunks_are_not_stored_yet_are_waited_for(store: Any) -> None:
    z = made(store, 4)
    follower = z.follow(timeout=0, settle="chunks")
    assert flat(firsts(follower)) == [0, 1, 2, 3]
    writer = tessarr.open_array(store, config={"write_empty_chunks": True})
    writer.resize((10, 2))
    assert firsts(follower) == []
    writer[8:] = rows(8, 2)  # not in order
    assert firsts(follower) == []
    writer[4:8] = rows(4, 4)
    assert flat(firsts(follower)) == [4, 5, 6, 7, 8, 9]
    assert flat(firsts(z.follow(timeout=0))) == list(range(10))


# -- several arrays ---------------------------------------------------------------------------------------------------------


def test_arrays_of_a_group_are_followed_up_to_their_common_length(store: Any) -> None:
    group = tessarr.open_group(store, mode="w")
    t, u = group.create_array("t", data=np.arange(3.0)), group.create_array("deep/u", data=np.arange(5), chunks=(2,))
    follower = group.follow(["t", "deep/u"], timeout=0)
    assert [(where, sorted(blocks)) for where, blocks in follower] == [(slice(0, 3), ["deep/u", "t"])]
    t.append([3.0])
    u.append([5, 6])
    ((where, blocks),) = follower
    assert (where, blocks["t"].tolist(), blocks["deep/u"].tolist()) == (slice(3, 4), [3.0], [3])
    assert follower.position == {"arrays": ["/t", "/deep/u"], "axis": 0, "row": 4}


@pytest.mark.parametrize(
    ("names", "error"), [("t", ValueError), ([], ValueError), (["g"], ValueError), (["x"], KeyError)]
)
def test_only_arrays_that_are_there_can_be_followed(names: Any, error: type[Exception]) -> None:
    group = tessarr.open_group(MemoryStore(), mode="w")
    group.create_group("g")
    with pytest.raises(error):
        group.follow(names)


def test_an_array_whose_chunks_differ_in_length_is_followed_while_it_grows() -> None:
    array = tessarr.create_array({}, shape=(4, 2), chunks=[[2, 2], [2]], dtype="i4")
    with array.follow(start=4) as follower:
        for rows in (3, 1):
            array.append(np.full((rows, 2), rows, "i4"))
            place, values = next(iter(follower))
            assert (place.stop - place.start, values.tolist()) == (rows, [[rows, rows]] * rows)
