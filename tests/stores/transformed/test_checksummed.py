"""Values with a checksum beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.errors import ChecksumError, StoreError
from tessarr.storage import ChecksummingStore, LocalStore, MemoryStore, Store
from tessarr.types import ByteRange
from tests.stores.contract import ENGINES, ConditionalContract, SharedContract, StoreContract


class TestChecksummingStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return ChecksummingStore(MemoryStore())


class TestChecksummingStoreInADirectory(StoreContract, ConditionalContract, SharedContract):
    processes, threads, rounds = 2, 2, 5

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return ChecksummingStore(LocalStore(tmp_path))


@pytest.mark.spec("ZEP1-17")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_value_is_found_by_every_read(tmp_path: Path, engine: str) -> None:
    store = ChecksummingStore(LocalStore(tmp_path))
    with tessarr.config.set({"engine": engine}):
        z = tessarr.create_array(store, shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="u1", compressors=None)
        z[...] = np.arange(64).reshape(8, 8)
        np.testing.assert_array_equal(z[3:7, 2], np.arange(64).reshape(8, 8)[3:7, 2])
        z[1, 1] = 200
        path = tmp_path / "c" / "0" / "0"
        value = bytearray(path.read_bytes())
        value[0] ^= 1
        path.write_bytes(value)
        assert z[4:].shape == (4, 8)
        with pytest.raises(ChecksumError, match="differs from its checksum"):
            z[3, 3]
        with pytest.raises(ChecksumError):
            z[3, 3] = 1
    assert tessarr.open_array(tmp_path, mode="r")[3, 3] == 27


def test_a_value_without_checksum_is_an_error_and_its_range_too() -> None:
    store = ChecksummingStore(MemoryStore({"a": b"123"}))
    for byte_range in (None, ByteRange(0, 1)):
        with pytest.raises(StoreError, match="part of the value is missing"):
            store.get("a", byte_range)
    store.set("a", b"456")
    assert store.get("a", ByteRange(1)) == b"56"
