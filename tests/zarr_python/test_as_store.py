"""Stores of tessarr keep zarr-python's contract, and are unwrapped again under the patch."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import cpu, default_buffer_prototype

from tessarr import zarr_python
from tessarr.storage import LocalStore, MemoryStore, SQLiteStore
from tessarr.stores.base import Store
from tests.narrow import numpy_of

KINDS = ("memory", "local", "sqlite", "path")


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made: dict[str, Any] = {
        "memory": MemoryStore,
        "local": lambda: LocalStore(tmp_path / "a"),
        "sqlite": lambda: SQLiteStore(tmp_path / "a.db"),
        "path": lambda: str(tmp_path / "b"),
    }
    return made[request.param]()


def keys(found: Any) -> list[str]:
    async def collected() -> list[str]:
        return sorted([key async for key in found])

    return asyncio.run(collected())


def their_array(node: object) -> zarr.Array[Any]:
    """Return an array of zarr-python, which a group of it may also answer with a group."""
    assert isinstance(node, zarr.Array), node
    return node


def test_zarr_python_works_in_it(place: Any) -> None:
    root = zarr.open_group(zarr_python.as_store(place), mode="w")
    z = root.create_array("g/a", shape=(9, 8), chunks=(2, 3), shards=(4, 6), dtype="i4")
    expected = np.arange(72, dtype="i4").reshape(9, 8)
    z[...] = expected
    z[2:5, 3] = expected[2:5, 3] = -1
    root["g"].attrs["x"] = 1
    again = zarr.open_group(zarr_python.as_store(place), mode="r")
    assert np.array_equal(numpy_of(their_array(again["g/a"])[...]), expected)
    group = again["g"]
    assert isinstance(group, zarr.Group)
    assert [*group.array_keys()] == ["a"]
    with zarr_python.patch(strict=True):
        assert np.array_equal(numpy_of(their_array(again["g/a"])[1:7, ::2]), expected[1:7, ::2])
    del root["g"]
    assert [*root.members()] == []


def test_parts_of_values_and_listings() -> None:
    store = zarr_python.as_store(MemoryStore())
    prototype = default_buffer_prototype()
    for key in ("a/b", "a/c/d", "e"):
        asyncio.run(store.set(key, cpu.Buffer.from_bytes(b"0123456789")))
    wanted: list[RangeByteRequest | OffsetByteRequest | SuffixByteRequest | None]
    wanted = [RangeByteRequest(2, 4), OffsetByteRequest(7), SuffixByteRequest(2), None]
    found = asyncio.run(store.get_partial_values(prototype, [("e", part) for part in wanted]))
    assert [value.to_bytes() for value in found if value is not None] == [b"23", b"789", b"89", b"0123456789"]
    assert store.get_sync("e", byte_range=wanted[0]).to_bytes() == b"23"  # type: ignore[union-attr]
    assert asyncio.run(store.get("no", prototype)) is None
    assert keys(store.list()) == ["a/b", "a/c/d", "e"]
    assert keys(store.list_prefix("a")) == ["a/b", "a/c/d"]
    assert keys(store.list_dir("a")) == ["b", "c"]
    assert asyncio.run(store.getsize("e")) == 10
    with pytest.raises(FileNotFoundError):
        asyncio.run(store.getsize("no"))
    asyncio.run(store.delete_dir("a"))
    store.delete_sync("e")
    assert keys(store.list()) == []
    with pytest.raises(TypeError, match="must be a Buffer instance"):
        store.set_sync("e", b"1")  # type: ignore[arg-type]


def test_a_read_only_place_refuses_writes_as_zarr_python_does(tmp_path: Path) -> None:
    zarr.create_array(zarr_python.as_store(tmp_path), shape=(3,), dtype="i4")
    store = zarr_python.as_store(tmp_path, mode="r")
    with pytest.raises(ValueError, match="read-only"):
        asyncio.run(store.set("a", cpu.Buffer.from_bytes(b"1")))
    z = zarr.open_array(store, mode="r")
    assert store.with_read_only(False).read_only is False
    with zarr_python.patch(), pytest.raises(ValueError, match="read"):
        z[0] = 1


def test_a_pickle_opens_the_same_place(tmp_path: Path) -> None:
    store = zarr_python.as_store(tmp_path)
    assert pickle.loads(pickle.dumps(store)) == store
    assert isinstance(store.tessarr_store, Store)
    assert str(store) == tmp_path.as_uri()
