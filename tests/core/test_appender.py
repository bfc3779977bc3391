"""`tessarr.appender`: batches, flushes, and what an exception in the block leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import BaseZarrError, ReadOnlyError, StoreError, UnsupportedOperationError
from tessarr.storage import MappingStore
from tessarr.stores.memory.store import MemoryStore
from tests.simulation.simulator import Bucket, Client


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
