"""What is awaited of stores that do not wait runs in a thread, which gives up when nobody awaits it any more."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.storage import LatencyStore, LocalStore, MemoryStore, WrapperStore
from tessarr.types import Buffer
from tests.waiting import PATIENCE_S, until_async


class Held(WrapperStore):
    """Lets `passing` writes through and holds the next ones until `release`; it is no remote store."""

    def __init__(self, store: Any, passing: int) -> None:
        super().__init__(store)
        self.passing = passing
        self.begun = 0
        self.held, self.go_on = threading.Event(), threading.Event()

    def set(self, key: str, value: Buffer, **kwargs: Any) -> Any:
        self.begun += 1
        if self.begun > self.passing and not self.go_on.is_set():
            self.held.set()
            assert self.go_on.wait(PATIENCE_S)
        return self.store.set(key, value, **kwargs)


def test_an_append_that_is_cancelled_leaves_the_array_as_it_was_or_will_be() -> None:
    """At each of its writes, one after another, until all of them pass."""
    rows = np.arange(6).reshape(2, 3)

    async def cancelled_at(array: Any, held: Held) -> bool:
        task = asyncio.ensure_future(array.append_async(rows))
        await until_async(lambda: task.done() or held.held.is_set(), "a write is held, or the append has ended")
        task.cancel()
        held.go_on.set()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    moment, was_cancelled = 0, True
    while was_cancelled:
        store = MemoryStore()
        array = tessarr.create_array(store, data=rows, chunks=(2, 2))
        held = Held(store, moment)
        was_cancelled = asyncio.run(cancelled_at(tessarr.open_array(held, mode="r+"), held))
        now = tessarr.open_array(store, mode="r")
        np.testing.assert_array_equal(now[...], np.tile(rows, (now.shape[0] // 2, 1)))
        assert now.shape[0] in (2, 4)
        array.refresh()
        asyncio.run(asyncio.wait_for(array.append_async(rows), PATIENCE_S))  # nobody holds the lock
        assert array.shape[0] == now.shape[0] + 2
        moment += 1
    assert moment >= 3  # two chunks and the document


def test_a_copy_that_is_cancelled_stops_before_its_end(tmp_path: Path) -> None:
    source = tessarr.group()
    for number in range(40):
        source.create_array(str(number), data=np.arange(4))
    held = Held(LocalStore(tmp_path), 10)
    target = tessarr.create_group(held)

    async def cancelled() -> None:
        task = asyncio.ensure_future(tessarr.copy_async(source, target, "copy"))
        await until_async(held.held.is_set, "the copy is under way")
        task.cancel()
        await asyncio.sleep(0)  # the task notices, and the thread may go on
        held.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    time.sleep(0.3)  # in which a thread that goes on would write all of it
    assert 0 < len([*tessarr.open_group(tmp_path, path="copy", mode="r")]) < 40


def test_resizing_and_attributes_work_awaited_in_one_loop_after_another(tmp_path: Path) -> None:
    array = tessarr.create_array(tmp_path / "x", data=np.arange(10), chunks=(3,))
    for length in (8, 5, 12):
        asyncio.run(array.resize_async(length))
        asyncio.run(array.update_attributes_async({"length": length}))
        asyncio.run(array.attrs.put_async({**array.attrs, "again": True}))
    again = tessarr.open_array(tmp_path / "x", mode="r")
    assert (again.shape, again.attrs.asdict()) == ((12,), {"length": 12, "again": True})
    assert again[:6].tolist() == [0, 1, 2, 3, 4, 5]  # what is beyond 5 in the last chunk stays, as decided
    assert asyncio.run(array.nchunks_initialized_async()) == 2
    assert asyncio.run(array.astype_async("f4")).dtype == np.float32
    assert asyncio.run(array.hexdigest_async()) == array.hexdigest()


def test_a_cancelled_append_stops_waiting_for_the_lock_of_the_shape() -> None:
    """The thread that waits for the lock ends while another thread still holds the lock."""
    store = LatencyStore(MemoryStore())
    array = tessarr.create_array(store, data=np.arange(4), chunks=(2,))

    def waiting() -> bool:
        return any(thread.name == "tessarr-lock" for thread in threading.enumerate())

    async def cancel() -> None:
        task = asyncio.ensure_future(array.append_async(np.arange(2)))
        await until_async(waiting, "the append waits for the lock")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_async(lambda: not waiting(), "the waiting thread has ended")

    with store.lock("shape"):
        asyncio.run(cancel())
    assert array.shape == (4,)
    assert array.append([7]) == (5,)
