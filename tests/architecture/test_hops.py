"""The path of a read and of a write stays short, counted by a profiler hook.

A hop is a call to a function of ours that a reader has to open to follow one chunk: from ``array[…]`` to the moment the
store is asked for bytes, and to the moment a codec is given them. What these functions compute on the way (plans, keys,
sizes) is no hop. With the native engine the path ends where Python hands over to Rust.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any, NamedTuple, Self

import numpy as np
import obstore.store
import pytest

import tessarr
from tessarr.storage import MemoryStore, ObjectStore, ZipStore

PACKAGE = Path(str(tessarr.__file__)).resolve().parent.as_posix() + "/"
FRAMES = {"unsharded": 8, "sharded": 12}
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
    """What a read or a write goes through in Python, from the first call to the last, all threads together."""

    calls: int
    """Functions entered, each time."""
    files: int
    depth: int
    """Of our functions on one stack, what a store or a codec does inside included."""
    resumed: int
    """How often a suspended coroutine or generator goes on. It is no call: the function is one that the reader has open
    already, and going on says how often it waits, not what there is to read."""


class Walker:
    """A profiler hook that notes our calls while it is entered."""

    def __init__(self) -> None:
        self._stacks: list[list[str]] = []
        self._entered: list[FrameType] = []
        self._resumed = 0

    def _hook(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name.startswith("<"):
            return
        if code.co_flags & SUSPENDS and any(frame is known for known in self._entered):
            self._resumed += 1
            return
        if code.co_flags & SUSPENDS:
            self._entered.append(frame)
        self._stacks.append(our_stack(frame))

    def __enter__(self) -> Self:
        threading.setprofile(self._hook)
        sys.setprofile(self._hook)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    @property
    def walk(self) -> Walk:
        files = {stack[-1].partition(":")[0] for stack in self._stacks}
        return Walk(len(self._stacks), len(files), max(map(len, self._stacks)), self._resumed)


SUSPENDS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR

READS = {
    ("auto", "local"): Walk(calls=10, files=6, depth=4, resumed=0),
    ("auto", "in-process"): Walk(calls=20, files=9, depth=5, resumed=0),
    ("auto", "zip"): Walk(calls=25, files=11, depth=7, resumed=0),
    ("auto", "s3"): Walk(calls=45, files=12, depth=8, resumed=28),
    ("reference", "local"): Walk(calls=110, files=23, depth=10, resumed=4),
    ("reference", "in-process"): Walk(calls=105, files=22, depth=10, resumed=4),
    ("reference", "zip"): Walk(calls=110, files=23, depth=10, resumed=4),
    ("reference", "s3"): Walk(calls=130, files=25, depth=10, resumed=32),
}
"""For a part of two chunks."""
PUBLISHED = Walk(calls=21, files=13, depth=8, resumed=0)
"""The same from an archive that no process writes, by the native engine."""
LOOKING_UP = {"zip": (6, 2)}
"""Calls and depth more for the first read of values: an archive looks up where each begins."""

SHARD_WRITES = {
    ("auto", "local"): Walk(calls=16, files=7, depth=4, resumed=0),
    ("auto", "in-process"): Walk(calls=65, files=15, depth=14, resumed=4),
    ("auto", "zip"): Walk(calls=75, files=19, depth=14, resumed=4),
    ("auto", "s3"): Walk(calls=80, files=22, depth=15, resumed=4),
    ("reference", "local"): Walk(calls=170, files=32, depth=13, resumed=5),
    ("reference", "in-process"): Walk(calls=150, files=29, depth=15, resumed=4),
    ("reference", "zip"): Walk(calls=155, files=32, depth=16, resumed=4),
    ("reference", "s3"): Walk(calls=160, files=36, depth=17, resumed=4),
}
"""For a part of one inner chunk, in a shard of four."""

KINDS = ["local", "in-process", "zip", "s3"]
TABLE = re.compile(r"^\| store \| read, native \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)


def test_the_budgets_are_those_of_architecture() -> None:
    found = TABLE.search((Path(__file__).resolve().parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert found is not None
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in found[1].splitlines()]
    stated = {row[0].lower(): row[1:] for row in rows}

    def shown(walk: Walk) -> str:
        return f"{walk.calls} · {walk.files} · {walk.depth}"

    budgets = {
        kind: [shown(table[engine, kind]) for table in (READS, SHARD_WRITES) for engine in ("auto", "reference")]
        for kind in KINDS
    }
    assert stated == {**budgets, "zip, published": [shown(PUBLISHED), "", "", ""]}


def test_the_budgets_of_the_paths_that_were_long_stay_where_they_are() -> None:
    remote, archive = READS["auto", "s3"], READS["auto", "zip"]
    assert remote.calls <= 45
    assert remote.files <= 12
    assert remote.depth <= 8
    assert archive.calls <= 25
    assert PUBLISHED.calls <= 25
    assert READS["reference", "s3"].depth <= 10


@contextmanager
def place(kind: str, folder: Path) -> Iterator[Any]:
    if kind == "local":
        yield str(folder / "b.zarr")
    elif kind == "zip":
        with ZipStore(folder / "b.zip", mode="w") as store:
            yield store
    elif kind == "s3":
        # The client is one in memory; to the store it is as one of S3: calls that are awaited, versions, ranges.
        yield ObjectStore(obstore.store.MemoryStore())
    else:
        yield MemoryStore()


def assert_within(found: Walk, budget: Walk) -> None:
    assert all(here <= most for here, most in zip(found, budget, strict=True)), f"{found} is more than {budget}"


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_read_of_two_chunks_stays_within_its_budget(kind: str, engine: str, again: bool, tmp_path: Path) -> None:
    """Read again, the native engine has the chunks in its cache, and asks a remote store for their versions."""
    with place(kind, tmp_path) as where:
        array = tessarr.create_array(where, shape=(64, 64), chunks=(16, 16), dtype="i4")
        array[...] = np.arange(4096).reshape(64, 64)
        array[40:50, 5]  # what is imported when first used
        array[40:50, 5]
        if again:
            array[10:20, 5]
        with Walker() as walker:
            found = array[10:20, 5]
        assert found.tolist() == list(range(645, 1285, 64))
    budget = READS[engine, kind]
    calls, depth = (0, 0) if again else LOOKING_UP.get(kind, (0, 0))
    assert_within(walker.walk, budget._replace(calls=budget.calls + calls, depth=budget.depth + depth))


def test_a_read_of_a_published_archive_stays_within_its_budget(engine: str, tmp_path: Path) -> None:
    """The native engine follows the extents of the members, in one call into Rust."""
    with place("zip", tmp_path) as where:
        array = tessarr.create_array(where, shape=(64, 64), chunks=(16, 16), dtype="i4")
        array[...] = np.arange(4096).reshape(64, 64)
    opened = tessarr.open_array(ZipStore(tmp_path / "b.zip"), mode="r")
    opened[40:50, 5]
    opened[10:20, 5]
    with Walker() as walker:
        found = opened[10:20, 5]
    assert found.tolist() == list(range(645, 1285, 64))
    assert_within(walker.walk, PUBLISHED if engine == "auto" else READS[engine, "zip"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_of_a_part_of_a_shard_stays_within_its_budget(kind: str, engine: str, tmp_path: Path) -> None:
    with place(kind, tmp_path) as where:
        array = tessarr.create_array(where, shape=(64, 64), chunks=(16, 16), shards=(32, 32), dtype="i4")
        array[...] = np.arange(4096).reshape(64, 64)
        array[40:42, 5:7] = 7
        with Walker() as walker:
            array[10:12, 5:7] = 7
        assert array[10:12, 4:8].tolist() == [[644, 7, 7, 647], [708, 7, 7, 711]]
    assert_within(walker.walk, SHARD_WRITES[engine, kind])
