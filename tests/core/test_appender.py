"""`tessarr.appender`: batches, flushes, and what an exception in the block leaves."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.array_parts.append import publish_steps
from tessarr.core.streams import appender
from tessarr.errors import (
    BaseZarrError,
    DurabilityError,
    ReadOnlyError,
    StaleConsolidatedError,
    StoreError,
    UnsupportedOperationError,
)
from tessarr.storage import LocalStore, MappingStore
from tessarr.stores.memory.store import MemoryStore
from tests.simulation.simulator import Bucket, Client
from tests.waiting import PATIENCE_S


@pytest.fixture(params=["memory", "shared"])
def store(request: pytest.FixtureRequest) -> Any:
    return MemoryStore() if request.param == "memory" else Client("a", Bucket())


def made(store: Any, **options: Any) -> Any:
    return tessarr.create_array(store, **{"shape": (0, 2), "chunks": (4, 2), "dtype": "i4", **options})


def rows(start: int, count: int = 1) -> Any:
    return np.repeat(np.arange(start, start + count), 2).reshape(count, 2)


def stored(store: Any) -> list[int]:
    values: list[int] = tessarr.open_array(store, mode="r")[:, 0].tolist()
    return values


def test_rows_are_published_in_batches_and_the_rest_at_the_end(store: Any) -> None:
    z = made(store)
    seen = []
    with tessarr.appender(z, batch=4) as out:
        for i in range(10):
            out.append(rows(i))
            seen.append((len(stored(store)), out.pending))
    assert seen == [(0, 1), (0, 2), (0, 3), (4, 0), (4, 1), (4, 2), (4, 3), (8, 0), (8, 1), (8, 2)]
    assert stored(store) == list(range(10))


def test_flush_publishes_and_tells_the_shape(store: Any) -> None:
    out = tessarr.appender(made(store), batch=100)
    assert out.flush() == (0, 2)
    out.append(rows(0, 3))
    assert out.flush() == (3, 2)
    assert out.pending == 0
    assert stored(store) == [0, 1, 2]


def test_after_an_exception_nothing_that_was_not_flushed_is_published(store: Any) -> None:
    z = made(store)

    def interrupted() -> None:
        with tessarr.appender(z, batch=4) as out:
            for i in range(6):
                out.append(rows(i))
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert stored(store) == [0, 1, 2, 3]


def test_what_is_appended_may_be_changed_afterwards(store: Any) -> None:
    buffer = rows(7)
    with tessarr.appender(made(store)) as out:
        out.append(buffer)
        buffer[...] = 8
    assert stored(store) == [7]


def test_rows_that_do_not_fit_are_refused_when_they_come(store: Any) -> None:
    with tessarr.appender(made(store)) as out:
        out.append(rows(1))
        with pytest.raises(BaseZarrError, match="does not fit"):
            out.append(np.zeros((1, 3), "i4"))
    assert stored(store) == [1]


def test_another_axis(store: Any) -> None:
    z = made(store, shape=(2, 0), chunks=(2, 4))
    with tessarr.appender(z, axis=-1, batch=3) as out:
        for i in range(7):
            out.append(rows(i).T)
    assert tessarr.open_array(store, mode="r")[0].tolist() == list(range(7))


def test_it_is_awaited(store: Any) -> None:
    async def work() -> None:
        async with tessarr.appender(made(store), batch=4) as out:
            for i in range(6):
                await out.append_async(rows(i))
            assert await out.flush_async() == (6, 2)
            await out.append_async(rows(6))

    asyncio.run(work())
    assert stored(store) == list(range(7))


def test_a_flush_that_fails_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    out = tessarr.appender(made(store), batch=100)
    out.append(rows(0, 6))
    with monkeypatch.context() as patched:
        patched.setattr(MemoryStore, "update", lambda *_: (_ for _ in ()).throw(StoreError("the disk is full")))
        with pytest.raises(StoreError):
            out.flush()
    assert stored(store) == []
    assert out.flush() == (6, 2)
    assert stored(store) == [0, 1, 2, 3, 4, 5]


def test_arguments_that_make_no_sense_are_refused(store: Any) -> None:
    z = made(store)
    for batch in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="batch"):
            tessarr.appender(z, batch=batch)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        tessarr.appender(z, axis=2)
    with pytest.raises(ValueError, match="on_hole"):
        z.append(rows(1), on_hole="never")
    with pytest.raises(ReadOnlyError):
        tessarr.appender(tessarr.open_array(store, mode="r"))


class _Mapping(dict[str, Any]):
    """A mapping that may be a place which other processes write, too."""


def test_appends_are_refused_where_nothing_excludes_another_process() -> None:
    z = made(MappingStore(_Mapping()))
    before = dict(z.store.mapping)
    for append in (lambda: z.append(rows(0)), lambda: tessarr.appender(z)):
        with pytest.raises(UnsupportedOperationError, match=r"append\.one_process"):
            append()
    with pytest.raises(UnsupportedOperationError, match="define lock"):
        asyncio.run(z.append_async(rows(0)))
    assert dict(z.store.mapping) == before
    with tessarr.config.set({"append.one_process": True}):
        assert z.append(rows(0)) == (1, 2)


def test_appends_to_a_dictionary_hold_a_lock_of_the_process() -> None:
    assert made(MappingStore({})).append(rows(0)) == (1, 2)


def published_late(z: Any) -> tuple[Any, Any]:
    """An appender whose rows are published before an error, and the error."""
    out = tessarr.appender(z, batch=100)
    out.append([1, 2, 3])
    with pytest.raises(StoreError) as raised:
        out.flush()
    return out, raised.value


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_rows_that_could_not_be_synced_are_not_appended_twice(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tessarr.config.set({"engine": engine}):
        tessarr.create_array(tmp_path, shape=(0,), chunks=(4,), dtype="i4")
        z = tessarr.open_array(LocalStore(tmp_path, durable=True), mode="r+")
        replace = LocalStore.update

        def update(self: LocalStore, key: str, change: Any) -> None:
            replace(self, key, change)
            if key == "zarr.json":
                raise DurabilityError("the value is in place, but its directory could not be synced")

        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "update", update)
            out, error = published_late(z)
    assert isinstance(error, DurabilityError)
    assert "do not append them again" in error.__notes__[0]
    assert out.pending == 0
    assert out.flush() == (3,)
    assert tessarr.open_array(tmp_path, mode="r")[:].tolist() == [1, 2, 3]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_rows_of_which_consolidated_metadata_were_not_updated_are_not_appended_twice(
    store: Any, zarr_format: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tessarr.create_group(store, zarr_format=zarr_format)
    group.create_array("a", shape=(0,), chunks=(4,), dtype="i4")
    tessarr.consolidate_metadata(store)
    z = tessarr.open_array(store, path="a", mode="r+")
    update = type(store).update

    def fail(self: Any, key: str, change: Any) -> None:
        if key in ("zarr.json", ".zmetadata"):
            raise StoreError("the disk is full", key=key)
        update(self, key, change)

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "update", fail)
        out, error = published_late(z)
    assert isinstance(error, StaleConsolidatedError)
    assert "tessarr repair" in str(error)
    assert out.pending == 0
    assert out.flush() == (3,)
    assert tessarr.open_array(store, path="a", mode="r")[:].tolist() == [1, 2, 3]


def test_after_the_block_nothing_is_collected(store: Any) -> None:
    with tessarr.appender(made(store), batch=100) as out:
        out.append(rows(0))
    with pytest.raises(RuntimeError, match="has ended"):
        out.append(rows(1))
    assert out.pending == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_publishes_nothing(tmp_path: Path) -> None:
    z = made(str(tmp_path))
    with tessarr.appender(z, batch=100) as out:
        out.append(rows(7))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                out.__exit__(None, None, None)
                out.append(rows(8))
            except RuntimeError as error:
                code = 0 if "another process" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
    assert stored(str(tmp_path)) == [7]


def test_two_threads_do_not_use_one_appender_at_once(store: Any) -> None:
    z = made(store)
    out = tessarr.appender(z, batch=1)
    began, go_on = threading.Event(), threading.Event()
    as_elements = type(z)._as_elements

    def slow(self: Any, *arguments: Any) -> Any:
        began.set()
        assert go_on.wait(PATIENCE_S)
        return as_elements(self, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(z), "_as_elements", slow)
        thread = threading.Thread(target=out.append, args=(rows(0),))
        thread.start()
        assert began.wait(PATIENCE_S)
        with pytest.raises(RuntimeError, match="another thread or task"):
            out.append(rows(1))
        go_on.set()
        thread.join()
    assert stored(store) == [0]


def test_options_are_checked_before_rows_are_collected(store: Any) -> None:
    z = made(store)
    assert tessarr.appender(z, batch=np.int64(5)).batch == 5  # type: ignore[arg-type]
    for options in ({"on_hole": "x"}, {"expire": "a"}, {"expire": float("nan")}, {"expire": -1}):
        with pytest.raises(ValueError, match=r"on_hole|expire"):
            tessarr.appender(z, **options)
        with pytest.raises(ValueError, match=r"on_hole|expire"):
            z.append(rows(0), **options)
    shared = Client("a", Bucket())
    v1 = {"zarr_format": 1, "shape": [0], "chunks": [2], "dtype": "<i4", "fill_value": 0, "order": "C"}
    shared.set("meta", json.dumps({**v1, "compression": None, "compression_opts": None}).encode())
    shared.set("attrs", b"{}")
    with pytest.raises(UnsupportedOperationError, match="Zarr v1"):
        tessarr.appender(tessarr.open_array(shared, mode="r+"))


def test_an_exception_leaves_the_block_while_a_thread_ends_an_append_that_was_cancelled(store: Any) -> None:
    z = made(store)
    out = tessarr.appender(z, batch=100)
    out.append(rows(0))
    assert out._in_use.acquire(blocking=False)  # as by the thread
    with pytest.raises(asyncio.CancelledError), out:
        raise asyncio.CancelledError
    out._in_use.release()
    with pytest.raises(RuntimeError, match="has ended"):
        out.append(rows(1))
    assert stored(store) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError])
def test_rows_that_were_being_published_when_it_was_interrupted_are_not_appended_again(
    store: Any, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    z = made(store)
    out = tessarr.appender(z, batch=100)
    out.append(rows(0))

    async def interrupted(*arguments: Any) -> Any:
        await publish_steps(*arguments)
        raise error

    monkeypatch.setattr(appender, "publish_steps", interrupted)
    with pytest.raises(error):
        out.flush()
    monkeypatch.undo()
    for again in (out.flush, lambda: out.__exit__(None, None, None)):
        with pytest.raises(RuntimeError, match="may be in the array"):
            again()
    assert stored(store) == [0]


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_the_array_does_not_have_is_named(store: Any, axis: int) -> None:
    with pytest.raises(IndexError, match=f"no axis {axis} to append along .*got 2 axes"):
        tessarr.appender(made(store), axis=axis)
