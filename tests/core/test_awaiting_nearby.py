"""What is awaited of stores that do not wait runs in a thread, which gives up when nobody awaits it any more."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.storage import LocalStore, MemoryStore, WrapperStore
from tessarr.types import Buffer


class Slow(WrapperStore):
    """Takes its time to write, and is no remote store."""

    def set(self, key: str, value: Buffer, **kwargs: Any) -> Any:
        time.sleep(0.05)
        return self.store.set(key, value, **kwargs)


@pytest.mark.parametrize("moment", [0.01, 0.07, 0.12, 0.2, 0.4])
def test_an_append_that_is_cancelled_leaves_the_array_as_it_was_or_will_be(moment: float) -> None:
    store = MemoryStore()
    rows = np.arange(6).reshape(2, 3)
    array = tessarr.create_array(store, data=rows, chunks=(2, 2))
    slow = tessarr.open_array(Slow(store), mode="r+")

    async def cancelled() -> None:
        task = asyncio.ensure_future(slow.append_async(rows))
        await asyncio.sleep(moment)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        asyncio.run(cancelled())
    except pytest.fail.Exception:  # it was over by then
        assert moment > 0.1
    time.sleep(0.2)
    now = tessarr.open_array(store, mode="r")
    np.testing.assert_array_equal(now[...], np.tile(rows, (now.shape[0] // 2, 1)))
    assert now.shape[0] in (2, 4)
    array.refresh()
    asyncio.run(asyncio.wait_for(array.append_async(rows), 10))  # nobody holds the lock
    assert array.shape[0] == now.shape[0] + 2


def test_a_copy_that_is_cancelled_stops_before_its_end(tmp_path: Path) -> None:
    source = tessarr.group()
    for number in range(40):
        source.create_array(str(number), data=np.arange(4))
    target = tessarr.create_group(Slow(LocalStore(tmp_path)))

    async def cancelled() -> None:
        task = asyncio.ensure_future(tessarr.copy_async(source, target, "copy"))
        while not (tmp_path / "copy" / "1" / "zarr.json").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    time.sleep(0.3)
    made = len([*tessarr.open_group(tmp_path, path="copy", mode="r")])
    time.sleep(0.3)
    assert made == len([*tessarr.open_group(tmp_path, path="copy", mode="r")]) < 40


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
