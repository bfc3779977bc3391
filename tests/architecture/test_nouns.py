"""On the path of a remote read a reader meets few words that only tessarr has, each of them in GLOSSARY.

Recorded are reads of both engines from a store behind a network, synchronous and awaited, of chunks and of inner chunks. The
classes and type aliases of every module of `engine` and `stores` that takes part are words of the trade, contracts that users
implement, or one of at most eight nouns. What chunks, grids, keys, codecs and selections are is not particular to reading.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import obstore.store
import pytest

import tessarr
from tessarr import storage
from tessarr.storage import ObjectStore

from .sources import parsed
from .test_hops import PACKAGE

ROOT = Path(__file__).resolve().parents[2]

NOUNS = {
    "chunk read": {"ChunkRead", "ChunkReads", "_ChunkReads"},
    "read plan": {"ReadPlan", "WritePlan", "_WritePlan"},
    "fetch": {"Fetch", "Fetched", "Unchanged"},
    "access": {"Access"},
    "reader": {"Reader"},
    "span": {"SpanBytes"},
    "bound": {"BoundArray", "BoundLayout"},
    "part": {"_PartRange"},
}
"""The nouns of GLOSSARY, and the classes named after each."""
WORDS = {
    "engine": {"HasEngine", "NativeEngine", "ReferenceEngine", "RuntimeOptions"},
    "handle": {"_Handle"},
    "request, response, result": {"RangeResponse", "_Pending", "_Result"},
    "version": {"Version", "VersionCheck", "ValueChangedError"},
    "extent": {"Extent", "Located"},
    "cache": {"CachedIndex", "ShardIndexCache"},
    "limiter, waiter, statistics": {
        "CoalescingLimits",
        "ConcurrencyLimiter",
        "LimiterStatistics",
        "Outcome",
        "_Waiter",
    },
    "event loop, task, thread pool": {"LoopTask", "TaskGroup", "_Closer", "_ThreadLoop", "_ThreadPools"},
    "batch of items, stop": {"Items", "_Batch", "_StoppedError"},
}
"""Words of the trade, and the classes named after them."""
CONTRACTS = {"stores/base.py", "stores/asynchronous.py", "stores/protocols.py"}
"""Modules whose classes authors of stores implement."""


@pytest.fixture(scope="module")
def files() -> set[str]:
    """The modules of `engine` and `stores` that take part in remote reads."""
    found: set[str] = set()

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith((f"{PACKAGE}engine/", f"{PACKAGE}stores/")):
            found.add(name.removeprefix(PACKAGE))

    for engine in ("auto", "reference"):
        for shards in (None, (32, 32)):
            with tessarr.config.set({"engine": engine}):
                store = ObjectStore(obstore.store.MemoryStore())
                array = tessarr.create_array(store, shape=(64, 64), chunks=(16, 16), shards=shards, dtype="i4")
                array[...] = np.arange(4096).reshape(64, 64)
                threading.setprofile(hook)
                sys.setprofile(hook)
                try:
                    for selection in (np.s_[10:40, 5], np.s_[10:20, 5]):
                        array[selection]
                        asyncio.run(array.read_async(selection))
                finally:
                    sys.setprofile(None)
                    threading.setprofile(None)
    return found


def names(file: str) -> set[str]:
    """The classes and type aliases that a module defines."""
    found = {node.name for node in ast.walk(parsed(Path(PACKAGE) / file)) if isinstance(node, ast.ClassDef)}
    for node in parsed(Path(PACKAGE) / file).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            found.add(ast.unparse(node.target))
    return found


def test_the_recorded_path_is_that_of_remote_reads(files: set[str]) -> None:
    assert files >= {
        "engine/run.py", "engine/native/engine.py", "engine/reference/read_chunk.py", "engine/reference/versions.py",
        "stores/remote/base.py", "stores/remote/coalesce.py", "stores/remote/loop.py", "stores/remote/limiter.py",
    }  # fmt: skip


def test_a_remote_read_has_at_most_eight_nouns_of_our_own(files: set[str]) -> None:
    assert len(NOUNS) <= 8
    # The contract of engines is on the path, though nothing of it is called.
    found = set().union(*(names(file) for file in (files | {"engine/base.py", "stores/fetch.py"}) - CONTRACTS))
    found -= {*storage.__all__, "NetworkStore"}  # public names, and the base class of remote stores
    found -= {"Engine", "Request", "Response", "Change", "ChunkWrite"}  # the words of requests and of writes
    known = set().union(*NOUNS.values(), *WORDS.values())
    assert sorted(found - known) == []
    assert sorted(known - found) == [], "no longer on the path"


def test_python_meets_the_same_nouns_in_rust() -> None:
    source = (ROOT / "rust" / "src" / "python_store.rs").read_text(encoding="utf-8")
    classes = set(re.findall(r"#\[pyclass[^\n]*\n(?:///[^\n]*\n)*pub struct (\w+)", source))
    assert classes == {"ReadPlan", "ChunkReads", "WritePlan"}


def test_every_noun_is_in_the_glossary() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "GLOSSARY.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = {word.strip(" `") for row in rows for word in row.split(",")}
    assert sorted(NOUNS.keys() - words) == []
