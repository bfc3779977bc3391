"""The path of a read and of a write stays short, counted by a profiler hook.

A hop is a call to a function of ours that a reader has to open to follow one chunk: from ``array[…]`` to the moment the
store is asked for bytes, and to the moment a codec is given them. What these functions compute on the way (plans, keys,
sizes) is no hop. With the native engine the path ends where Python hands over to Rust.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tessarr
from tessarr.storage import MemoryStore, ZipStore
from tests.native.far import FarStore

PACKAGE = Path(str(tessarr.__file__)).resolve().parent.as_posix() + "/"
FRAMES = {"unsharded": 12, "sharded": 16}
"""The driver and the generators of a chunk read are hops too, although each waits for the next."""
WRITE_FRAMES = {"unsharded": 7, "sharded": 10}
"""A write passes through merging, and for a shard through the store's locked update, too."""
FILES = {"unsharded": 6, "sharded": 7}
PARTS_OF_THE_PATH = {"base", "chain", "sharding"}
"""Modules of `codecs` that lead to a codec and are none."""


class Hops(NamedTuple):
    """What a call went through."""

    paths: set[tuple[str, ...]]
    """Every path to a store or a codec, as ``file:function``."""
    files: set[str]
    """The files of all of them together."""

    @property
    def longest(self) -> tuple[str, ...]:
        return max(self.paths, key=len)


def our_stack(frame: FrameType | None) -> list[str]:
    """Our functions on the stack, outermost first; a comprehension or lambda belongs to the function around it."""
    stack = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            stack.append(f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_name}")
        frame = frame.f_back
    return stack[::-1]


def arrives(step: str) -> bool:
    """Whether the call is one that a store or a codec answers, or that hands over to Rust."""
    file, _, function = step.partition(":")
    folder, stem = PurePosixPath(file).parts[0], PurePosixPath(file).stem
    if folder == "stores":
        return function.startswith(("get", "set"))
    if file == "engine/native/engine.py":
        return function in {"read", "write"}
    return folder == "codecs" and stem not in PARTS_OF_THE_PATH and function.startswith(("encode", "decode"))


def hops(call: Callable[[], object]) -> Hops:
    """Run `call` and note each path that arrives."""
    paths: set[tuple[str, ...]] = set()

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            stack = our_stack(frame)
            # The first arrival ends the path: what a store or a codec does inside is its own affair.
            if stack and arrives(stack[-1]) and not any(arrives(step) for step in stack[:-1]):
                paths.add(tuple(stack))

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Hops(paths, {step.partition(":")[0] for path in paths for step in path})


@pytest.fixture(params=["auto", "reference"], autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine a user gets, and the one that is all Python."""
    with tessarr.config.set({"engine": request.param}):
        yield str(request.param)


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


def assert_short(found: Hops, layout: str, frames: dict[str, int]) -> None:
    assert found.paths, "the hook saw nothing"
    assert len(found.longest) <= frames[layout], " → ".join(found.longest)
    files = {hop.partition(":")[0] for hop in found.longest}
    assert len(files) <= FILES[layout], sorted(files)


def test_a_read_of_one_chunk_is_short(array: Any, layout: str) -> None:
    assert_short(hops(lambda: array[8:16, 8:16]), layout, FRAMES)


def test_a_write_of_one_chunk_is_short(array: Any, layout: str) -> None:
    value = np.full((8, 8), 7, dtype="uint16")
    assert_short(hops(lambda: array.__setitem__((slice(8, 16), slice(8, 16)), value)), layout, WRITE_FRAMES)


def test_a_read_makes_no_event_loop_and_no_thread_for_one_chunk(array: Any) -> None:
    before = threading.active_count()
    array[8:16, 8:16]
    assert threading.active_count() == before


class Walk(NamedTuple):
    """What a read goes through in Python, from the first call to the last, all threads together."""

    calls: int
    files: int
    depth: int


BUDGETS = {
    ("auto", "local"): Walk(calls=15, files=6, depth=4),
    ("auto", "in-process"): Walk(calls=42, files=12, depth=7),
    ("auto", "zip"): Walk(calls=55, files=15, depth=10),
    ("auto", "remote"): Walk(calls=150, files=18, depth=15),
    ("reference", "local"): Walk(calls=180, files=28, depth=18),
    ("reference", "in-process"): Walk(calls=180, files=30, depth=18),
    ("reference", "zip"): Walk(calls=193, files=33, depth=18),
    ("reference", "remote"): Walk(calls=280, files=35, depth=21),
}
"""For a part of two chunks. Each time a coroutine goes on counts as a call, and so does ``isinstance`` of a store Protocol."""


def place(kind: str, folder: Path) -> Any:
    if kind == "local":
        return str(folder / "b.zarr")
    if kind == "zip":
        return ZipStore(folder / "b.zip", mode="w")
    return FarStore() if kind == "remote" else MemoryStore()


@pytest.mark.parametrize("kind", ["local", "in-process", "zip", "remote"])
def test_a_read_of_two_chunks_stays_within_its_budget(kind: str, engine: str, tmp_path: Path) -> None:
    array = tessarr.create_array(place(kind, tmp_path), shape=(64, 64), chunks=(16, 16), dtype="i4")
    array[...] = np.arange(4096).reshape(64, 64)
    array[10:20, 5]
    calls: list[list[str]] = []

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_name
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE) and not name.startswith("<"):
            calls.append(our_stack(frame))

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        array[10:20, 5]
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {stack[-1].partition(":")[0] for stack in calls}
    found = Walk(len(calls), len(files), max(map(len, calls)))
    assert all(here <= most for here, most in zip(found, BUDGETS[engine, kind], strict=True)), found
