"""A shard that is replaced between the reading of its index and of its data is read anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import codecs
from tessarr.storage import ForwardingStore
from tessarr.stores.base import Fetch, Store
from tessarr.stores.database.sqlite import SQLiteStore
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.types import ByteRange


@pytest.fixture(params=["local", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A place that is not remote."""
    return LocalStore(tmp_path) if request.param == "local" else SQLiteStore(tmp_path / "a.db")


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("deleted", [False, True])
def test_index_and_data_of_a_shard_are_of_one_version(
    store: Store, monkeypatch: pytest.MonkeyPatch, location: Any, deleted: bool
) -> None:
    with tessarr.config.set({"engine": "reference"}):
        # Larger than a shard that is requested whole.
        shards = {"shape": (256, 256), "index_location": location}
        z = tessarr.create_array(store, shape=(256, 256), chunks=(64, 64), shards=shards, dtype="i4", compressors=None)
        z[128:] = 1  # the inner chunks of the upper half are not stored
        original = type(store).get_ranges
        done: list[int] = []

        def get_ranges(self: Store, key: str, ranges: Any) -> Any:
            parts = original(self, key, ranges)
            if not done:
                done.append(1)
                z[...] = 0 if deleted else np.arange(256 * 256).reshape(256, 256)
            return parts

        monkeypatch.setattr(type(store), "get_ranges", get_ranges)
        got = z[130, 3]
        monkeypatch.undo()
        assert done
        assert got == (0 if deleted else 130 * 256 + 3)


class Busy(ForwardingStore):
    """Whenever something was read, somebody replaces it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.replace: Callable[[], None] = lambda: None
        self.asked: list[Fetch] = []

    def _read(self, requests: Sequence[Fetch], found: Any) -> Any:
        self.asked += requests
        self.replace()
        return found

    def get(self, key: str, byte_range: ByteRange | None = None) -> Any:
        return self._read([Fetch(key)], super().get(key, byte_range))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Any:
        return self._read([Fetch(key, tuple(ranges))], super().get_ranges(key, ranges))

    def fetch(self, requests: Sequence[Fetch]) -> Any:
        return self._read(requests, super().fetch(requests))


def shards_in_shards(location: Any) -> dict[str, Any]:
    inner = (codecs.BytesCodec(), codecs.ZstdCodec())
    nested = codecs.ShardingCodec(chunk_shape=(1, 100), codecs=inner, index_location=location)
    return {"chunks": (4, 200), "serializer": nested, "compressors": None}


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_shard_that_is_always_replaced_is_fetched_whole(engine: str, nested: bool, location: Any) -> None:
    layout: dict[str, Any] = shards_in_shards(location) if nested else {"chunks": (1, 200)}
    layout["shards"] = {"shape": (64, 200), "index_location": location}
    below, random = MemoryStore(), np.random.default_rng(0)
    store = Busy(below)
    with tessarr.config.set({"engine": engine}):
        z = tessarr.create_array(store, shape=(128, 200), dtype="u1", **layout)
        other = tessarr.open_array(below, mode="r+")
        seen, whole = [], 0

        def replace() -> None:
            values = random.integers(0, random.integers(2, 16), (64, 200), dtype="u1")
            other[64:] = values
            seen.append(values)

        replace()
        store.replace = replace
        for _ in range(10):
            store.asked.clear()
            assert (z[70, 3:5] == seen[-2][6, 3:5]).all()
            assert len(store.asked) < 20
            whole += store.asked[-1] == Fetch("c/1/0")
        assert whole  # some readings found a shard whose index had stayed the same
