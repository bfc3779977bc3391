"""The path of a read and of a write stays short: counted in our own Python frames and files, by a profiler hook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tessarr

PACKAGE = str(Path(str(tessarr.__file__)).resolve().parent)
FRAMES = 5
FILES_UNSHARDED = 6
FILES_SHARDED = 7


class Hops(NamedTuple):
    """What a call went through."""

    deepest: list[str]
    files: set[str]


def hops(call: Callable[[], object]) -> Hops:
    """Run `call` and see which of our functions were on the stack together, and which of our files ran at all."""
    deepest: list[str] = []
    files: set[str] = set()

    def ours(frame: FrameType) -> bool:
        # A comprehension or generator belongs to the function around it: nobody opens another function to read it.
        return frame.f_code.co_filename.startswith(PACKAGE) and not frame.f_code.co_name.startswith("<")

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not ours(frame):
            return
        files.add(Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix())
        stack = []
        current: FrameType | None = frame
        while current is not None:
            if ours(current):
                stack.append(f"{Path(current.f_code.co_filename).stem}.{current.f_code.co_name}")
            current = current.f_back
        if len(stack) > len(deepest):
            deepest[:] = reversed(stack)

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Hops(deepest, files)


@pytest.fixture(params=["unsharded", "sharded"])
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def array(layout: str, tmp_path: Path) -> Any:
    """A local array of 4 × 4 chunks; read and written once, so that lazy imports and caches are behind us."""
    shards = (16, 16) if layout == "sharded" else None
    made = tessarr.create_array(
        str(tmp_path / "a.zarr"), shape=(32, 32), chunks=(8, 8), shards=shards, dtype="uint16", fill_value=0
    )
    made[...] = np.arange(1, 1025, dtype="uint16").reshape(32, 32)
    again = tessarr.open_array(str(tmp_path / "a.zarr"), mode="r+")
    again[0:8, 0:8] = again[0:8, 0:8]
    return again


def test_a_read_of_one_chunk_is_short(array: Any, layout: str) -> None:
    found = hops(lambda: array[8:16, 8:16])
    assert found.deepest, "the hook saw nothing"
    assert len(found.deepest) <= FRAMES, " → ".join(found.deepest)
    assert len(found.files) <= (FILES_SHARDED if layout == "sharded" else FILES_UNSHARDED), sorted(found.files)


def test_a_write_of_one_chunk_is_short(array: Any, layout: str) -> None:
    value = np.full((8, 8), 7, dtype="uint16")
    found = hops(lambda: array.__setitem__((slice(8, 16), slice(8, 16)), value))
    assert found.deepest, "the hook saw nothing"
    assert len(found.deepest) <= FRAMES, " → ".join(found.deepest)
    assert len(found.files) <= (FILES_SHARDED if layout == "sharded" else FILES_UNSHARDED), sorted(found.files)


def test_a_read_makes_no_event_loop_and_no_thread_for_one_chunk(array: Any) -> None:
    before = threading.active_count()
    array[8:16, 8:16]
    assert threading.active_count() == before
