"""The chunks of one request are written by several threads: each chunk once, in any order, with the same result.

What would be a race between them cannot happen, and these tests hold the reasons. A plan has one part for each chunk,
whatever indices repeat, so that two threads of a request never write one value. Repeated indices are in one part, in the
order of the selection, and one thread goes through it, so that the last one wins. Inner chunks of a shard are merged in
memory, and the shard is stored once. Different values of one store may be read and stored at the same moment: `Store.update`
holds the lock of one key.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.engine import write_chunks
from tessarr.storage import LMDBStore, MemoryStore, SQLiteStore, Store, ZipStore
from tests.narrow import calls

SHAPE = (12, 12)
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (3, 4)},
    "shards": {"chunks": (3, 2), "shards": (6, 4)},
}
ForEach = Callable[[Callable[[Any], object], Iterable[Any]], None]


@pytest.fixture(params=["memory", "zip", "sqlite", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: dict[str, Callable[[], Store]] = {
        "memory": MemoryStore,
        "zip": lambda: ZipStore(tmp_path / "a.zip", mode="w"),
        "sqlite": lambda: SQLiteStore(tmp_path / "a.sqlite"),
        "lmdb": lambda: LMDBStore(tmp_path / "a.lmdb"),
    }
    with made[request.param]() as store:
        yield store


@pytest.fixture(params=["native", "reference"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with tessarr.config.set({"engine": request.param}):
        yield str(request.param)


@pytest.fixture(params=[*LAYOUTS])
def array(request: pytest.FixtureRequest, store: Store, engine: str) -> Any:
    made = tessarr.create_array(store, shape=SHAPE, dtype="i4", fill_value=-1, **LAYOUTS[request.param])
    made[...] = np.arange(144).reshape(SHAPE)
    return made


def backwards(work: Callable[[Any], object], items: Iterable[Any]) -> None:
    for item in reversed([*items]):
        work(item)


def at_once(work: Callable[[Any], object], items: Iterable[Any]) -> None:
    """Each item in a thread of its own, all begun before any of them works."""
    every = [*items]
    ready, errors = threading.Barrier(len(every)), []

    def run(item: Any) -> None:
        ready.wait(60)
        try:
            work(item)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(item,), daemon=True) for item in every]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert not any(thread.is_alive() for thread in threads)


def points() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Points in all chunks and in no order; each is there three times, some of them counted from the end."""
    at = np.random.default_rng(1).permutation(np.tile(np.arange(0, 144, 2), 3))
    rows, columns = at // 12, at % 12
    return np.where(at % 3 == 0, rows - 12, rows), columns


@pytest.mark.parametrize("for_each", [backwards, at_once])
def test_of_repeated_points_the_last_one_wins(array: Any, for_each: ForEach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_chunks, "for_each", for_each)
    expected = np.arange(144).reshape(SHAPE)
    rows, columns = points()
    new = np.arange(1000, 1000 + len(rows))
    for row, column, value in zip(rows, columns, new, strict=True):
        expected[row, column] = value
    array.vindex[rows, columns] = new
    assert (array[...] == expected).all()


@pytest.mark.parametrize("for_each", [backwards, at_once])
def test_of_repeated_rows_and_columns_the_last_one_wins(
    array: Any, for_each: ForEach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_chunks, "for_each", for_each)
    expected = np.arange(144).reshape(SHAPE)
    rows, columns = [11, 0, 5, 0, 7, 11], [3, 9, 3, 0, 10, 4, 9]
    new = np.arange(1000, 1000 + len(rows) * len(columns)).reshape(len(rows), len(columns))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            expected[row, column] = new[i, j]
    array.oindex[rows, columns] = new
    assert (array[...] == expected).all()


def test_a_request_writes_no_chunk_twice(array: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written: Counter[str] = Counter()
    store_chunk = write_chunks.store_chunk

    def counted(bound: Any, write: Any, forget: Any) -> None:
        written[write.key] += 1
        store_chunk(bound, write, forget)

    monkeypatch.setattr(write_chunks, "store_chunk", counted)
    rows, columns = points()
    chunks = int(np.prod([-(-n // m) for n, m in zip(SHAPE, array.shards or array.chunks, strict=True)]))
    for write in calls(
        lambda: array.vindex.__setitem__((rows, columns), 7),
        lambda: array.oindex.__setitem__((rows, columns), 8),
        lambda: array.__setitem__(slice(None, None, -1), 9),
    ):
        written.clear()
        write()
        assert set(written.values()) == {1}
        assert len(written) == chunks
