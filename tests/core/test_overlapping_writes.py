"""Writes that overlap end as if one had come after the other: neither is lost whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.stores.base import Store
from tessarr.stores.local.file import FileValue
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return LocalStore(tmp_path) if request.param == "local" else MemoryStore()


def test_a_whole_value_set_during_an_update_is_not_lost(store: Store) -> None:
    store.set("k", b"old")
    seen: list[Any] = []

    def change(old: Any) -> bytes:
        seen.append(bytes(old))
        if len(seen) == 1:
            store.set("k", b"whole")
        return bytes(old) + b"+part"

    store.update("k", change)
    assert seen == [b"old", b"whole"]
    assert store.get("k") == b"whole+part"


@pytest.mark.parametrize("shards", [None, (8, 8)])
def test_a_chunk_written_whole_while_a_part_of_it_is_merged_is_kept(
    store: Store, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tessarr.config.set({"engine": "reference"}):
        z = tessarr.create_array(store, shape=(8, 8), chunks=(4, 4) if shards else (8, 8), shards=shards, dtype="i4")
        z[...] = 1
        done: list[int] = []

        def meanwhile() -> None:
            if not done:
                done.append(1)
                z[...] = 2

        def get(self: Store, key: str, byte_range: Any = None) -> Any:
            value = original_get(self, key, byte_range)
            if key.startswith("c/"):
                meanwhile()
            return value

        def read(self: FileValue, byte_range: Any) -> Any:
            value = original_read(self, byte_range)
            meanwhile()
            return value

        original_get, original_read = type(store).get, FileValue.read
        monkeypatch.setattr(type(store), "get", get)
        monkeypatch.setattr(FileValue, "read", read)
        z[0, 0] = 3
        assert done
        monkeypatch.undo()
        assert z[0, 0] == 3
        assert (z[1:] == 2).all()
