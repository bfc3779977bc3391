"""Chunks in directories that are named by a hash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.storage import LocalStore, MemoryStore, PrefixStore, Store
from tessarr.stores.transformed.hashed import HashedStore
from tests.stores.contract import ConditionalContract, SharedContract, StoreContract
from tests.stores.transformed.test_transformers import HASHED


class TestHashedStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        inner = MemoryStore({"beside": b"1", "below/zarr.json": b"2", "below/00/x": b"3"})
        yield PrefixStore(HashedStore(inner, "below", 2), "below")
        rest = {key: inner.get(key) for key in ("beside", "below/zarr.json", "below/00/x")}
        assert rest == {"beside": b"1", "below/zarr.json": b"2", "below/00/x": b"3"}


class TestHashedStoreInADirectory(StoreContract, ConditionalContract, SharedContract):
    processes, threads, rounds = 2, 2, 5

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return HashedStore(LocalStore(tmp_path), "", 1)


@pytest.mark.spec("ZEP1-12")
def test_chunks_are_spread_over_directories_by_the_checksum_of_their_keys() -> None:
    store: dict[str, bytes] = {}
    z = tessarr.create_array(store, name="a", shape=64, chunks=1, dtype="u1", storage_transformers=[HASHED])
    z[...] = np.arange(64) + 1
    directories = [key.split("/")[1] for key in store if key.startswith("a/") and key != "a/zarr.json"]
    assert len(directories) == 64
    assert len(set(directories)) > 40
    assert {"a/04/c/0", "a/f6/c/1"} <= store.keys()  # CRC-32C by google-crc32c
