"""Many threads at the same arrays: results stay right, with and without the interpreter's lock (`make freethreaded`)."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import _native
from tessarr.common.segments import StoredBytes
from tessarr.errors import ArrayIndexError
from tessarr.storage import CountingStore, LatencyStore
from tessarr.stores.base import Store
from tessarr.stores.database.dbm import DBMStore
from tessarr.stores.database.sqlite import SQLiteStore
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import ManagedMemoryStore, MemoryStore
from tessarr.stores.zip.store import ZipStore
from tessarr.types import ByteRange
from tests.narrow import array_of
from tests.stores.contract import child_environment
from tests.threads import together

THREADS = 8
SECONDS = float(os.environ.get("STRESS_SECONDS", "0.2"))
"""How long one stress test goes on."""
KINDS = ("memory", "local", "sqlite", "zip", "dbm", "cache")
LAYOUTS: dict[str, dict[str, Any]] = {
    "raw": {"chunks": (4, 32), "compressors": None},
    "compressed": {"chunks": (4, 32)},
    "shards": {"chunks": (2, 8), "shards": (8, 32)},
    "shards of raw chunks": {"chunks": (2, 8), "shards": (8, 32), "compressors": None},
    "v2": {"chunks": (4, 32), "zarr_format": 2},
}


WHOLE: dict[str, dict[str, Any]] = {
    "raw": {"chunks": (8, 32), "compressors": None},
    "compressed": {"chunks": (8, 32)},
    "shards": {"chunks": (2, 8), "shards": (8, 32)},
}
"""Layouts of one chunk or shard."""


def make_store(kind: str, tmp_path: Path) -> Store:
    if kind == "memory":
        return MemoryStore()
    if kind == "local":
        return LocalStore(tmp_path / "local")
    if kind == "sqlite":
        return SQLiteStore(tmp_path / "store.sqlite")
    if kind == "dbm":
        import dbm.dumb

        return DBMStore(tmp_path / "store.dbm", open=dbm.dumb.open)
    if kind == "cache":
        from tessarr.stores.wrappers.cache import CacheStore

        return CacheStore(LocalStore(tmp_path / "below"), max_size=4000)
    return ZipStore(tmp_path / "store.zip", mode="w")


def turns() -> Iterator[int]:
    """Numbers for as long as a stress test goes on."""
    end = time.monotonic() + SECONDS
    return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())


@pytest.fixture(params=["auto", "reference"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with tessarr.config.set({"engine": request.param}):
        yield request.param


# A write to a zip archive appends the whole shard: in the time that says nothing.
@pytest.mark.parametrize(
    ("kind", "layout"), [(k, name) for k in KINDS for name in LAYOUTS if k != "zip" or "shards" not in name]
)
def test_rows_of_one_array_object(kind: str, layout: str, engine: str, tmp_path: Path) -> None:
    """Each thread writes its row and looks at all rows: its own is what it wrote, each other is one that was written."""
    z = tessarr.create_array(
        make_store(kind, tmp_path), shape=(THREADS, 32), dtype="i4", fill_value=0, **LAYOUTS[layout]
    )
    last = [0] * THREADS

    def work(row: int) -> None:
        for turn in turns():
            z[row] = turn
            last[row] = turn
            seen = z[...]
            assert (seen[row] == turn).all()
            assert (seen == seen[:, :1]).all()
            assert z[row, turn % 32] == turn
            assert (z.vindex[[row, row], [0, 31]] == turn).all()

    together(THREADS, work)
    assert z[:, 5].tolist() == last
    z.store.close()


@pytest.mark.parametrize(("kind", "layout"), [(k, name) for k in KINDS for name in ("raw", "compressed", "shards")])
def test_a_chunk_that_is_replaced_is_not_undone_by_one_that_is_updated(
    kind: str, layout: str, engine: str, tmp_path: Path
) -> None:
    z = tessarr.create_array(make_store(kind, tmp_path), shape=(8, 32), dtype="i4", fill_value=0, **WHOLE[layout])

    def work(number: int) -> None:
        for turn in turns():
            if number:
                z[0, :4] = 0  # of a chunk that holds nothing else this leaves nothing to store
            else:
                z[...] = 0
                z[...] = turn
                assert (z[1:] == turn).all()

    together(3, work)
    z.store.close()


def test_a_chunk_that_is_replaced_while_an_update_of_it_leaves_nothing_to_store_stays(tmp_path: Path) -> None:
    """The native engine removes such a chunk; it is large, so that there is time to replace it before that."""
    made = [tessarr.create_array(tmp_path / name, shape=(1 << 24,), chunks=(1 << 24,), dtype="i4") for name in "ab"]
    for number, z in enumerate(made):
        assert z.engine.name == "native"
        z[number] = 1
    z, other = made
    replacement = other.store.get("c/0")
    assert replacement is not None
    update = threading.Thread(target=lambda: z.__setitem__(0, 0))
    update.start()
    while update.is_alive() and not (tmp_path / "a" / "c" / ".0.tessarr-lock").exists():
        pass
    z.store.set("c/0", replacement)
    update.join()
    assert z[:3].tolist() == [0, 1, 0]


def test_directories_that_come_and_go_are_no_error(tmp_path: Path) -> None:
    """Nothing is stored: the directory is there for the lock alone, and removed by whoever leaves it empty."""
    z = tessarr.create_array(tmp_path, shape=(8, 32), chunks=(8, 32), dtype="i4", fill_value=0)
    folder = tmp_path / "c"

    def work(row: int) -> None:
        for _ in turns():
            if row < 2:
                z[row] = 0
                continue
            for _ in range(20):  # as others do that enter and leave
                with suppress(OSError):
                    folder.mkdir()
                with suppress(OSError):
                    folder.rmdir()

    together(4, work)
    assert [file.name for file in tmp_path.rglob("*")] == ["zarr.json"]


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_reading_and_writing_while_the_array_changes_its_shape(kind: str, engine: str, tmp_path: Path) -> None:
    z = tessarr.create_array(make_store(kind, tmp_path), shape=(64,), chunks=(8,), dtype="i8", fill_value=-1)
    z[...] = np.arange(64)
    stop = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            for turn in turns():
                z.resize(64 + 8 * (turn % 9))
                z.attrs["turn"] = turn
                assert z.attrs["turn"] == turn
            stop.set()
            return
        while not stop.is_set():
            values = z[...]
            assert len(values) in range(64, 129, 8)
            assert (values[:64] == np.arange(64)).all()
            assert ((values[64:] == -1) | (values[64:] == np.arange(64, len(values)))).all()
            assert z[number] == number
            z[8 * number : 8 * number + 8] = np.arange(8 * number, 8 * number + 8)
            try:
                assert z[100] in (-1, 100)
                z[96:104] = np.arange(96, 104)
            except (ArrayIndexError, ValueError):  # smaller at the moment
                pass

    together(THREADS, work)
    assert z.shape == z._bound.shape == tessarr.open(z.store).shape


def test_appending_to_one_array_object(engine: str) -> None:
    z = tessarr.create_array(MemoryStore(), shape=(0,), chunks=(5,), dtype="i4")
    together(THREADS, lambda number: [z.append([number] * 3) for _ in range(10)])
    rows = z[...].reshape(-1, 3)
    assert (rows == rows[:, :1]).all()
    assert np.bincount(rows[:, 0]).tolist() == [10] * THREADS


@pytest.mark.parametrize("compressors", [None, "auto"])
@pytest.mark.parametrize("shards", [None, (32, 32)])
def test_single_elements(compressors: Any, shards: Any, tmp_path: Path) -> None:
    values = np.arange(64 * 64).reshape(64, 64)
    z = tessarr.create_array(tmp_path, data=values, chunks=(16, 16), shards=shards, compressors=compressors)

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        for _ in turns():
            for i, j in random.integers(-64, 64, (50, 2)).tolist():
                assert z[i, j] == values[i, j]
            i, j = random.integers(0, 64, 2).tolist()
            for k in range(64):  # along a chunk, as loops do
                assert z[i, k] == values[i, k]

    together(THREADS, work)


def test_chunks_that_are_replaced_while_the_cache_changes_its_size(tmp_path: Path) -> None:
    z = tessarr.create_array(tmp_path, shape=(8, 512), chunks=(1, 512), dtype="i4", fill_value=0)
    z[...] = 0

    def work(number: int) -> None:
        mine = array_of(tessarr.open(tmp_path, mode="r+") if number % 2 else z)
        for turn in turns():
            row = (number + turn) % 8
            if number == 0:
                z[row] = turn
            elif number == 1:
                _native.set_cache_bytes([0, 3000, 1 << 20][turn % 3])
            elif number == 2:
                _native.clear_cache()
            elif number == 3:
                info = _native.cache_info()
                assert info["nbytes"] <= 1 << 20
                _native.set_threads(turn % 4)
            else:
                part = mine[row, 100 : 100 + turn % 300 + 1]
                assert (part == part[0]).all()
                assert mine[row, 7] >= 0

    try:
        together(THREADS, work)
    finally:
        _native.set_threads(0)
        _native.set_cache_bytes(_native.DEFAULT_CACHE_BYTES)


def test_shards_of_a_remote_array_that_are_replaced(tmp_path: Path) -> None:
    """Each thread rewrites its shard; the others read parts of it, by indexes that they remember."""
    store = LatencyStore(LocalStore(tmp_path))
    z = tessarr.create_array(store, shape=(4, 256), chunks=(1, 16), shards=(1, 256), dtype="i4", fill_value=-1)
    for row in range(4):
        z[row] = 0

    def work(number: int) -> None:
        row = number % 4
        for turn in turns():
            if number < 4:
                z[row] = np.arange(256) % 16 + 16 * turn
            else:
                start = 16 * (turn % 16)
                part = z[row, start : start + 16]
                assert (part - part[0] == np.arange(16)).all() or (part == 0).all()

    together(THREADS, work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_listed_while_it_changes(kind: str, tmp_path: Path) -> None:
    store = make_store(kind, tmp_path)

    def work(number: int) -> None:
        for turn in turns():
            key = f"{number}/{turn % 5}"
            store.set(key, b"%d" % turn)
            found = store.get(key)
            assert found is not None
            assert bytes(found) == b"%d" % turn
            assert key in [*store.list()]
            assert key in [*store.list_prefix(f"{number}/")]
            assert f"{number}/" in store.list_dir("").prefixes
            if store.supports_deletes and turn % 5 == 4:
                store.delete_prefix(f"{number}/")
                assert [*store.list_prefix(f"{number}/")] == []

    together(THREADS, work)
    store.close()


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_all_threads_are_stopped_again_and_again_while_they_work(kind: str, tmp_path: Path) -> None:
    """Without a GIL the collector of garbage stops every thread that runs Python: none may wait for one that is stopped."""
    z = tessarr.create_array(make_store(kind, tmp_path), shape=(64, 64), chunks=(8, 64), dtype="i4", fill_value=0)

    def work(number: int) -> None:
        for turn in turns():
            if number == 0:
                gc.collect()
            elif number == 1:
                _native.clear_cache()
                _native.cache_info()
            else:
                z[number * 8, turn % 64] = turn  # a part of a chunk: changed by a call from Rust, where it is in memory
                assert z[number * 8, turn % 64] == turn
                assert z[number * 8 : number * 8 + 8].sum() >= turn

    together(THREADS, work)


def test_one_value_and_one_list_of_positions_are_used_by_all_threads(tmp_path: Path) -> None:
    values, positions = np.arange(4096).reshape(64, 64), np.arange(0, 64, 3)
    transposed = values.T
    arrays = [
        tessarr.create_array(tmp_path / str(number), shape=(64, 64), chunks=(16, 64), dtype="i8")
        for number in range(THREADS)
    ]

    def work(number: int) -> None:
        z = arrays[number]
        for _ in turns():
            z[...] = transposed
            assert (z.oindex[positions, positions] == transposed[np.ix_(positions, positions)]).all()
            z.oindex[positions] = values[positions]
            assert (z.vindex[positions, positions] == np.diagonal(values)[positions]).all()

    together(THREADS, work)


def test_parts_of_one_value_are_cut_and_let_go_by_all_threads() -> None:
    value = bytes(range(256)) * 40
    stored, store = StoredBytes(value), MemoryStore({"k": value})

    def work(_: int) -> None:
        for turn in turns():
            start = turn % 10_000
            assert bytes(stored.read(ByteRange(start, start + 9))) == value[start : start + 9]
            parts = store.get_ranges("k", [ByteRange(start, start + 1), ByteRange(0, 4)])
            assert parts is not None
            assert [bytes(part) for part in parts] == [value[start : start + 1], value[:4]]

    together(THREADS, work)


def test_stores_of_one_name_share_their_versions() -> None:
    for turn in range(30):
        stores = together(THREADS, lambda _: ManagedMemoryStore(f"versions-{turn}"))  # noqa: B023 - called at once
        stores[0].set("k", b"1")
        assert len({store.version("k") for store in stores}) == 1


def test_a_store_in_memory_is_pickled_while_it_is_written() -> None:
    import pickle

    store = MemoryStore()

    def work(number: int) -> None:
        for turn in turns():
            if number:
                store.set(f"{number}/{turn}", b"x")
            else:
                assert pickle.loads(pickle.dumps(store)).url != store.url

    together(4, work)


def test_calls_are_counted_one_by_one() -> None:
    store = CountingStore(MemoryStore({"a": b"1"}))
    together(THREADS, lambda _: [store.get("a") for _ in range(500)])
    assert store.counter["get"] == THREADS * 500


def test_settings_that_several_threads_change() -> None:
    def work(number: int) -> None:
        for turn in range(50):
            with tessarr.config.set({f"codecs.test{number}": turn}):
                assert tessarr.config.get(f"codecs.test{number}") == turn
            assert tessarr.config.get(f"codecs.test{number}", None) is None

    together(THREADS, work)


FIRST_USE = """
import numpy as np, tessarr
from tests.threads import together
from tessarr.stores.memory.store import MemoryStore
from tessarr.conventions.known import conventions
from tessarr.registry import get, names

codecs = ["gzip", "zstd", "blosc", "numcodecs.lz4", "numcodecs.bz2", "numcodecs.zlib", "numcodecs.shuffle", "crc32c"]
types = ["i4", "f8", "U3", "M8[s]", "c8", "S5", "bool", "u2"]

def work(number):
    codec = {"name": codecs[number], "configuration": {"elementsize": 4} if "shuffle" in codecs[number] else {}}
    values = np.ones((6, 6), types[number % 4])
    z = tessarr.create_array(MemoryStore(), data=values, chunks=(4, 4), compressors=[codec])
    assert (z[...] == values).all()
    assert get("codec", "no such codec") is None
    table = conventions()
    return z.engine.name, len(table), [*names("codec")]

found = together(8, work)
assert len({(tables, *names) for _, tables, names in found}) == 1, found
"""


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_threads_that_are_the_first_to_use_anything(engine: str) -> None:
    for _ in range(2):
        environment = {**child_environment(), "TESSARR_ENGINE": engine, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [sys.executable, "-c", FIRST_USE], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
