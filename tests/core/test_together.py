"""`read_many`: several arrays and selections in one call."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ArrayIndexError, CodecError
from tessarr.storage import LatencyStore
from tessarr.stores.memory.store import MemoryStore

RECORDS = np.zeros(6, [("a", "u1"), ("b", "f4"), ("c", "i2")])


@pytest.fixture(params=["local", "remote"])
def arrays(request: pytest.FixtureRequest) -> dict[str, Any]:
    store = MemoryStore() if request.param == "local" else LatencyStore(MemoryStore())
    group = tessarr.create_group(store)
    group.create_array("plain", data=np.arange(100).reshape(10, 10), chunks=(3, 4))
    group.create_array("sharded", data=np.arange(4096).reshape(64, 64), chunks=(4, 4), shards=(32, 32))
    group.create_array("records", data=RECORDS, chunks=(2,))
    elsewhere = tessarr.create_array({}, data=np.arange(5))
    return {**dict(group.members()), "elsewhere": elsewhere}


SELECTIONS: list[tuple[str, Any]] = [
    ("plain", ...),
    ("sharded", np.s_[30:34, 30:34]),
    ("plain", (3, 4)),
    ("elsewhere", np.s_[::-2]),
    ("records", "b"),
    ("records", ["a", "c"]),
    ("sharded", np.s_[30:34, 30:34]),
    ("plain", (np.array([1, 5]), slice(2))),
    ("plain", np.s_[0:0]),
]


def items(arrays: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(arrays[name], selection) for name, selection in SELECTIONS]


def test_every_result_is_what_the_brackets_give(arrays: dict[str, Any]) -> None:
    together = tessarr.read_many(items(arrays))
    awaited = asyncio.run(tessarr.read_many_async(items(arrays)))
    for (array, selection), one, other in zip(items(arrays), together, awaited, strict=True):
        expected = array[selection]
        assert type(one) is type(expected)
        np.testing.assert_array_equal(one, expected)
        np.testing.assert_array_equal(other, expected)


def test_nothing_to_read_gives_nothing() -> None:
    assert tessarr.read_many([]) == []
    assert asyncio.run(tessarr.read_many_async([])) == []


def test_what_is_no_array_is_refused(arrays: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="got a Group"):
        tessarr.read_many([(tessarr.group(), ...)])  # type: ignore[list-item]


def test_errors_are_those_of_reading_alone(arrays: dict[str, Any]) -> None:
    with pytest.raises(ArrayIndexError):
        tessarr.read_many([(arrays["plain"], 10)])
    arrays["plain"].store.set("plain/c/0/0", b"broken")
    for read in (tessarr.read_many, lambda wanted: asyncio.run(tessarr.read_many_async(wanted))):
        with pytest.raises(CodecError, match="plain"):
            read([(arrays["sharded"], 0), (arrays["plain"], ...)])
