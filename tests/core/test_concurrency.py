"""Several threads and processes that write disjoint elements of one chunk, shard, document or hierarchy lose nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.engine import pool as shared_pool
from tests.narrow import array_of, group_of
from tests.waiting import PATIENCE_S

WORKERS = 8
ROUNDS = 4
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunk": {"chunks": (WORKERS, 16)},
    "raw chunk": {"chunks": (WORKERS, 16), "compressors": None},
    "shard": {"chunks": (1, 4), "shards": (WORKERS, 16)},
    "shard, one inner chunk": {"chunks": (WORKERS, 16), "shards": (WORKERS, 16)},
    "v2": {"chunks": (WORKERS, 16), "zarr_format": 2},
}


def expected_values() -> Any:
    return np.arange(1, WORKERS * 16 + 1).reshape(WORKERS, 16)


def write_row(z: Any, row: int) -> None:
    """One worker's elements, several times, in pieces."""
    for _ in range(ROUNDS):
        for start in range(0, 16, 4):
            z[row, start : start + 4] = expected_values()[row, start : start + 4]


def assert_nothing_else(folder: Path) -> None:
    """No lock and no temporary file remains."""
    names = [name for _, folders, files in os.walk(folder) for name in (*folders, *files)]
    allowed = {"zarr.json", ".zarray", ".zattrs", ".zgroup", "c", "0", "0.0"}
    assert set(names) <= allowed | {str(number) for number in range(100)} | {"a", "b", "z"} | set("abcdefgh")


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("kind", ["memory", "directory"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_threads_lose_nothing(layout: str, kind: str, engine: str, tmp_path: Path) -> None:
    store: Any = {} if kind == "memory" else str(tmp_path / "z")
    with tessarr.config.set({"engine": engine}):
        z = tessarr.create_array(store, shape=(WORKERS, 16), dtype="i4", fill_value=0, **LAYOUTS[layout])
        with ThreadPoolExecutor(WORKERS) as pool:
            # Half of them share an array object, the others have one of their own.
            arrays = [z if row % 2 else tessarr.open(store, mode="r+") for row in range(WORKERS)]
            list(pool.map(write_row, arrays, range(WORKERS)))
        assert (array_of(tessarr.open(store, mode="r"))[...] == expected_values()).all()
    if kind == "directory":
        assert_nothing_else(tmp_path / "z")


def in_processes(code: str, place: Path, engine: str = "auto") -> None:
    """Run `code` in `WORKERS` processes at once; it sees ``row`` and ``place``, and begins when all are ready."""
    barrier = "sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.readline()"
    head = f"import sys; sys.path[:0] = {sys.path!r}\nimport tessarr\nfrom tests.core.test_concurrency import *\n"
    environment = {**os.environ, "TESSARR_ENGINE": engine}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", f"{head}row = {row}; place = {str(place)!r}\n{barrier}\n{code}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for row in range(WORKERS)
    ]  # fmt: skip
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    failures = []
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        _, errors = child.communicate(timeout=120)
        if child.returncode:
            failures.append(errors)
    assert not failures, failures[0]


@pytest.mark.parametrize(("layout", "engine"), [("chunk", "auto"), ("shard", "auto"), ("shard", "reference")])
def test_processes_lose_nothing(layout: str, engine: str, tmp_path: Path) -> None:
    place = tmp_path / "z"
    tessarr.create_array(str(place), shape=(WORKERS, 16), dtype="i4", fill_value=0, **LAYOUTS[layout])
    in_processes("write_row(tessarr.open(place, mode='r+'), row)", place, engine)
    assert (array_of(tessarr.open(str(place), mode="r"))[...] == expected_values()).all()
    assert_nothing_else(place)


def test_native_and_reference_engines_lock_each_other_out(tmp_path: Path) -> None:
    store = str(tmp_path / "z")
    tessarr.create_array(store, shape=(WORKERS, 16), dtype="i4", fill_value=0, **LAYOUTS["shard"])
    arrays = []
    for row in range(WORKERS):
        with tessarr.config.set({"engine": "reference" if row % 2 else "auto"}):
            arrays.append(tessarr.open(store, mode="r+"))
            arrays[-1].engine  # noqa: B018 - decided here
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(write_row, arrays, range(WORKERS)))
    assert (array_of(tessarr.open(store, mode="r"))[...] == expected_values()).all()
    assert_nothing_else(tmp_path / "z")


CREATE = """
root = tessarr.open_group(place, mode='a')
root.attrs[f'a{row}'] = row
z = root.create_array(f'a/b/{"abcdefgh"[row]}', shape=(2,), dtype='i4')
z[...] = row
tessarr.open(place, path='z', mode='r+').attrs[f'z{row}'] = [row]
tessarr.open(place, path='z', mode='r+').append([row] * 3)
"""


def check_creations(place: Any) -> None:
    root = tessarr.open_group(place, mode="r")
    assert root.attrs.asdict() == {f"a{row}": row for row in range(WORKERS)}
    assert list(root["a/b"]) == list("abcdefgh")
    assert [z[...].tolist() for _, z in group_of(root["a/b"]).arrays()] == [[row, row] for row in range(WORKERS)]
    assert root["z"].attrs.asdict() == {f"z{row}": [row] for row in range(WORKERS)}
    appended = array_of(root["z"])[...].reshape(-1, 3)
    assert sorted(appended[:, 0].tolist()) == list(range(WORKERS))
    assert (appended == appended[:, :1]).all()


def test_processes_create_attribute_and_append_side_by_side(tmp_path: Path) -> None:
    place = tmp_path / "h"
    tessarr.create_array(str(place), name="z", shape=(0,), chunks=(4,), dtype="i4")
    in_processes(CREATE, place)
    check_creations(str(place))
    assert_nothing_else(place)


@pytest.mark.parametrize("kind", ["memory", "directory"])
def test_threads_create_attribute_and_append_side_by_side(kind: str, tmp_path: Path) -> None:
    place: Any = {} if kind == "memory" else str(tmp_path / "h")
    tessarr.create_array(place, name="z", shape=(0,), chunks=(4,), dtype="i4")
    code = compile(CREATE, "worker", "exec")
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda row: exec(code, {"row": row, "place": place, "tessarr": tessarr}), range(WORKERS)))
    check_creations(place)


def test_readers_see_the_old_chunk_or_the_new_one(tmp_path: Path) -> None:
    place: dict[str, bytes] | str
    for place in ({}, str(tmp_path / "z")):
        z = tessarr.create_array(place, shape=(64, 64), chunks=(64, 64), dtype="i4")
        z[...] = 0
        reading = [tessarr.open(place, mode="r") for _ in range(3)]
        torn: list[Any] = []

        def read(array: Any, torn: list[Any] = torn) -> None:
            for _ in range(60):
                seen = np.unique(array[...])
                if len(seen) != 1:
                    torn.append(seen)

        with ThreadPoolExecutor(4) as pool:
            readers = [pool.submit(read, array) for array in reading]
            for number in range(60):
                z[...] = number
            for reader in readers:
                reader.result()
        assert not torn


def test_threads_that_help_work_in_the_context_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_pool, "processors", lambda: 4)
    shared_pool._forget_pool()
    meeting = threading.Barrier(4)
    seen: list[tuple[int, str]] = []

    def work(_: int) -> None:
        meeting.wait(PATIENCE_S)  # so that each item has a thread of its own
        seen.append((threading.get_ident(), np.geterr()["over"]))

    try:
        for over in ("raise", "ignore", "warn"):
            seen.clear()
            with np.errstate(over=over):
                shared_pool.for_each(work, range(4))
            assert len({thread for thread, _ in seen}) == 4
            assert {state for _, state in seen} == {over}
    finally:
        shared_pool._forget_pool()
