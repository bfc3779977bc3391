"""A shard that is replaced between the reading of its index and of its data is read anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.stores.base import Store
from tessarr.stores.local import LocalStore
from tessarr.stores.memory import MemoryStore


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A place that is not remote."""
    return LocalStore(tmp_path) if request.param == "local" else MemoryStore()


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("deleted", [False, True])
def test_index_and_data_of_a_shard_are_of_one_version(
    store: Store, monkeypatch: pytest.MonkeyPatch, location: Any, deleted: bool
) -> None:
    with tessarr.config.set({"engine": "reference"}):
        shards = {"shape": (8, 8), "index_location": location}
        z = tessarr.create_array(store, shape=(8, 8), chunks=(2, 2), shards=shards, dtype="i4", compressors=None)
        z[4:] = 1  # the inner chunks of the upper half are not stored
        original = type(store).get_ranges
        done: list[int] = []

        def get_ranges(self: Store, key: str, ranges: Any) -> Any:
            parts = original(self, key, ranges)
            if not done:
                done.append(1)
                z[...] = 0 if deleted else np.arange(64).reshape(8, 8)
            return parts

        monkeypatch.setattr(type(store), "get_ranges", get_ranges)
        got = z[5, 3]
        monkeypatch.undo()
        assert done
        assert got == (0 if deleted else 43)
