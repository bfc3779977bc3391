"""Threads, processes, forks and interrupts."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import _native
from tests.waiting import PATIENCE_S, until

VALUES = np.arange(256 * 256, dtype="i4").reshape(256, 256)
GZIP = {"name": "gzip", "configuration": {"level": 1}}


def made(path: Path, **options: Any) -> Any:
    """An array of 256 chunks, served by the native engine."""
    options = {"chunks": (16, 16), "compressors": GZIP, **options}
    array = tessarr.create_array(str(path / "a"), shape=(256, 256), dtype="i4", overwrite=True, **options)
    assert array.engine.name == "native"
    array[...] = VALUES
    return array


def increment(path: str, worker: int) -> None:
    """Adds one to every element of a column, in small writes that share chunks with other workers' columns."""
    array = tessarr.open_array(path, mode="r+")
    for _ in range(20):
        array[:, worker] = array[:, worker] + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_and_writes_after_its_parent_did(tmp_path: Path) -> None:
    array = made(tmp_path)
    assert (array[...] == VALUES).all()
    assert (array[3:200, 5:9] == VALUES[3:200, 5:9]).all()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            array[...] = VALUES + 1
            status = 0 if (array[...] == VALUES + 1).all() and array[7, 7] == VALUES[7, 7] + 1 else 2
        finally:
            os._exit(status)
    found: list[int] = []

    def ended() -> bool:
        done, status = os.waitpid(child, os.WNOHANG)
        found.extend([status] if done else [])
        return bool(done)

    try:
        until(ended, "the child ends")
    finally:
        if not found:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(found[0]) == 0
    assert (array[...] == VALUES + 1).all()


def test_partial_writes_of_one_chunk_by_several_processes_are_all_kept(tmp_path: Path) -> None:
    for options in ({"chunks": (256, 256)}, {"chunks": (64, 64), "shards": (256, 256)}):
        made(tmp_path, **options)
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=increment, args=(str(tmp_path / "a"), worker)) for worker in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0
        expected = VALUES.copy()
        expected[:, :3] += 20
        np.testing.assert_array_equal(tessarr.open_array(str(tmp_path / "a"))[...], expected)
        assert not list((tmp_path / "a").rglob(".*"))


def test_threads_read_and_write_different_chunks_at_once(tmp_path: Path) -> None:
    array = made(tmp_path)

    def work(row: int) -> bool:
        rows = slice(row * 16, row * 16 + 16)
        for _ in range(5):
            array[rows] = VALUES[rows] * 2
            if not (array[rows] == VALUES[rows] * 2).all():
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this platform cannot signal one of its threads")
def test_an_interrupt_ends_a_long_read(tmp_path: Path) -> None:
    """It is sent when the first chunk is in place, and hundreds that take long to decode are left."""
    array = tessarr.create_array(
        str(tmp_path / "a"), shape=(400, 4000, 1000), chunks=(1, 4000, 1000), dtype="u1", compressors=GZIP
    )
    assert array.engine.name == "native"
    array[0] = 7
    for number in range(1, 400):
        shutil.copytree(tmp_path / "a/c/0", tmp_path / f"a/c/{number}")
    out = np.zeros((400, 1, 1000), "u1")
    reader = threading.get_ident()

    def send() -> None:
        until(out.any, "a chunk is read")
        signal.pthread_kill(reader, signal.SIGUSR1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def read() -> None:
        array.read(np.s_[:, ::4000], out=out)
        sender.join()  # where an interrupt comes that the read did not notice

    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            read()
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    assert 0 < np.count_nonzero(out[:, 0, 0]) < 400


WAITS = """
import signal, sys, tessarr
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGUSR1, lambda *_: print("signal", flush=True))
tessarr.config.set({"engine": sys.argv[2], "threading.max_workers": 4})
array = tessarr.open_array(sys.argv[1], mode="r+")
where = (0, 0) if sys.argv[3] == "one" else (slice(1, -1), slice(1, -1))
try:
    print("begins", flush=True)
    array[where] = 7
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
"""Writes parts of chunks: arguments path, engine, one chunk or many."""


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this platform has no signals between processes")
@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("extent", ["one", "many"])
def test_an_interrupt_ends_the_wait_for_a_lock_and_other_signals_do_not(
    tmp_path: Path, engine: str, extent: str
) -> None:
    import fcntl

    made(tmp_path, chunks=(64, 64))
    held = []
    for row in range(4):
        for column in range(4):
            held.append((tmp_path / f"a/c/{row}/.{column}.tessarr-lock").open("w"))
            fcntl.flock(held[-1], fcntl.LOCK_EX)
    command = [sys.executable, "-c", WAITS, str(tmp_path / "a"), engine, extent]
    for kind in ("interrupt", "another signal"):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
            assert child.stdout is not None
            try:
                assert child.stdout.readline() == "begins\n"
                time.sleep(0.3)
                if kind == "interrupt":
                    child.send_signal(signal.SIGINT)
                    assert child.communicate(timeout=PATIENCE_S)[0] == "interrupted\n"
                    continue
                child.send_signal(signal.SIGUSR1)
                time.sleep(0.2)
                assert child.poll() is None
                for file in held:
                    file.close()
                assert child.communicate(timeout=PATIENCE_S)[0] == "signal\ndone\n"
            finally:
                child.kill()


def test_a_changed_file_is_never_served_from_the_cache(tmp_path: Path) -> None:
    array = made(tmp_path, chunks=(256, 256))
    _native.clear_cache()
    for _ in range(3):
        assert array[5, 5] == VALUES[5, 5]
    assert _native.cache_info()["entries"] == 1
    hits = _native.cache_info()["hits"]
    assert array[6, 6] == VALUES[6, 6]
    assert _native.cache_info()["hits"] == hits + 1
    for step in range(20):
        tessarr.open_array(str(tmp_path / "a"), mode="r+")[...] = VALUES + step
        assert array[6, 6] == VALUES[6, 6] + step


@pytest.mark.parametrize("shards", [None, (512, 512)])
def test_a_kept_chunk_is_decoded_anew_when_the_metadata_says_another_way(tmp_path: Path, shards: Any) -> None:
    array = made(tmp_path, chunks=(256, 256), shards=shards)
    for _ in range(3):
        assert array[5, 5] == VALUES[5, 5]
    document = (tmp_path / "a" / "zarr.json").read_text()
    (tmp_path / "a" / "zarr.json").write_text(document.replace('"endian": "little"', '"endian": "big"', 1))
    other = tessarr.open_array(str(tmp_path / "a"), mode="r")
    assert other[5, 5] == VALUES[5, 5].byteswap() == other[:10, :10][5, 5]
    assert array[5, 5] == VALUES[5, 5]


def test_many_threads_that_miss_one_chunk_decode_it_once(tmp_path: Path) -> None:
    array = made(tmp_path, chunks=(256, 256))
    _native.clear_cache()
    array[0, 0]
    before = _native.cache_info()["misses"]
    barrier = threading.Barrier(8)

    def work(i: int) -> int:
        barrier.wait()
        return int(array[i, i])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [int(VALUES[i, i]) for i in range(8)]
    assert _native.cache_info()["misses"] == before + 1


def test_a_read_only_store_is_not_written(tmp_path: Path) -> None:
    made(tmp_path)
    array = tessarr.open_array(str(tmp_path / "a"), mode="r")
    with pytest.raises(PermissionError):
        array[0, 0] = 1
