"""Zarr v3: storage transformers, by two toys of a plugin: one moves keys, one changes bytes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import registry
from tessarr.errors import MetadataValidationError
from tessarr.storage import PrefixStore
from tessarr.stores.base import ANY, Any_, LockContext, Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.wrappers.cache import CacheStore
from tessarr.types import Buffer, ByteRange
from tests.conformance.documents import array_document, sharding, store_of, stored_json
from tests.narrow import array_of


class XorStore(Store):
    """Keeps every byte of a value xor `mask`."""

    def __init__(self, store: Store, mask: int) -> None:
        self.store = store
        self.mask = mask

    @property
    def url(self) -> str:
        return self.store.url

    def _mixed(self, value: Buffer) -> bytes:
        return bytes(byte ^ self.mask for byte in byte_view(value))

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        value = self.store.get(key, byte_range)
        return None if value is None else self._mixed(value)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        return self.store.set(key, self._mixed(value), if_match=if_match)

    def delete(self, key: str) -> None:
        self.store.delete(key)

    def list(self, prefix: str = "") -> Iterator[str]:
        return self.store.list(prefix)

    def lock(self, key: str) -> LockContext:
        return self.store.lock(key)


class Xor:
    """The transformer ``toy.xor``."""

    def __init__(self, mask: int) -> None:
        self.mask = mask

    @classmethod
    def from_json(cls, configuration: Any) -> Any:
        return cls(configuration["mask"])

    def wrap(self, store: Store) -> Store:
        return XorStore(store, self.mask)


class Below:
    """The transformer ``toy.below``: values stand below another prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    @classmethod
    def from_json(cls, configuration: Any) -> Any:
        return cls(configuration["prefix"])

    def wrap(self, store: Store) -> Store:
        return PrefixStore(store, self.prefix)


def xor(mask: int) -> dict[str, Any]:
    return {"name": "toy.xor", "configuration": {"mask": mask}}


def below(prefix: str) -> dict[str, Any]:
    return {"name": "toy.below", "configuration": {"prefix": prefix}}


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._TABLE, "storage_transformer", {})
    registry.register("storage_transformer", "toy.xor", Xor)
    registry.register("storage_transformer", "toy.below", Below)


def bytes_document(*transformers: Any, **members: Any) -> dict[str, Any]:
    return array_document(
        (4,), (2,), "uint8", **{"codecs": ["bytes"], **members}, storage_transformers=list(transformers)
    )


@pytest.mark.usefixtures("toys")
@pytest.mark.spec("V3-ST-01", "V3-ST-02")
@pytest.mark.parametrize(
    ("transformers", "key", "stored"),
    [
        ([], "c/0", b"\1\2"),
        ([xor(255)], "c/0", b"\xfe\xfd"),
        ([below("p")], "p/c/0", b"\1\2"),
        ([xor(1), below("p")], "p/c/0", b"\0\3"),
        ([below("inner"), below("outer")], "outer/inner/c/0", b"\1\2"),
        ([xor(1), xor(1)], "c/0", b"\1\2"),
    ],
)
def test_requests_go_from_the_array_through_each_to_the_store(transformers: Any, key: str, stored: bytes) -> None:
    store = store_of({"": bytes_document(*transformers)})
    z = array_of(tessarr.open(store, mode="r+"))
    z[...] = [1, 2, 3, 4]
    assert bytes(store[key]) == stored
    again = array_of(tessarr.open(store, mode="r"))
    assert again[...].tolist() == [1, 2, 3, 4]
    assert again[3] == 4
    assert sorted(coords for coords, _ in again.stored_chunks()) == [(0,), (1,)]
    assert again.nchunks_initialized == 2
    z[1] = 9
    assert array_of(tessarr.open(store, mode="r"))[...].tolist() == [1, 9, 3, 4]
    z[:2] = 0
    assert key not in store


@pytest.mark.usefixtures("toys")
@pytest.mark.spec("V3-ST-01")
def test_the_first_transformer_is_the_nearest_to_the_array() -> None:
    seen: list[str] = []

    class Seeing:
        def __init__(self, word: str) -> None:
            self.word = word

        @classmethod
        def from_json(cls, configuration: Any) -> Any:
            return cls(configuration["word"])

        def wrap(self, store: Store) -> Store:
            word = self.word

            class Seen(XorStore):
                def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
                    seen.append(word)
                    return super().set(key, value, if_match=if_match)

            return Seen(store, 0)

    registry.register("storage_transformer", "toy.seeing", Seeing)
    document = bytes_document(*({"name": "toy.seeing", "configuration": {"word": word}} for word in ("t1", "t2", "t3")))
    array_of(tessarr.open(store_of({"": document}), mode="r+"))[:2] = 1
    assert seen == ["t1", "t2", "t3"]


@pytest.mark.usefixtures("toys")
@pytest.mark.spec("V3-ST-02")
def test_shards_resizing_and_appending_go_through_transformers() -> None:
    document = bytes_document(xor(170), below("p"), codecs=[sharding([1], ["bytes"])])
    store = store_of({"": document})
    z = array_of(tessarr.open(store, mode="r+"))
    z[1:] = [2, 3, 4]
    z.append([5, 6, 7])
    assert z[...].tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert sorted(store) == ["p/c/0", "p/c/1", "p/c/2", "p/c/3", "zarr.json"]
    z.resize(3)
    assert sorted(store) == ["p/c/0", "p/c/1", "zarr.json"]
    assert array_of(tessarr.open(store, mode="r"))[...].tolist() == [0, 2, 3]


@pytest.mark.spec("V3-ST-03")
def test_a_new_process_restores_what_was_stored(tmp_path: Path) -> None:
    code = """
import sys
sys.path[:0] = {path!r}
import tessarr
from tessarr import registry
from tests.conformance.test_v3_transformers import Below, Xor, below, xor
registry.register("storage_transformer", "toy.xor", Xor)
registry.register("storage_transformer", "toy.below", Below)
"""
    write = """
tessarr.create_array({place!r}, data=[1, 2, 3], chunks=2, storage_transformers=[xor(7), below("p")])
"""
    read = """
assert tessarr.open({place!r}, mode="r")[...].tolist() == [1, 2, 3]
"""
    for step in (write, read):
        text = (code + step).format(path=sys.path, place=str(tmp_path / "z"))
        run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    assert (tmp_path / "z" / "p" / "c" / "0").exists()
    assert (tmp_path / "z" / "zarr.json").exists()


@pytest.mark.spec("V3-ST-04")
def test_a_cache_is_no_matter_of_metadata() -> None:
    values: dict[str, bytes] = {}
    tessarr.create_array(values, shape=4, chunks=2, dtype="i4")[...] = [1, 2, 3, 4]
    before = values["zarr.json"]
    cache = CacheStore(MemoryStore(values))
    z = array_of(tessarr.open(cache, mode="r+"))
    assert z[...].tolist() == [1, 2, 3, 4]
    z[0] = 9
    assert values["zarr.json"] == before
    assert array_of(tessarr.open(values, mode="r"))[...].tolist() == [9, 2, 3, 4]


@pytest.mark.spec("V3-ST-05")
def test_an_unknown_transformer_is_refused_until_one_is_registered() -> None:
    known = list(registry.names("storage_transformer"))
    assert known == ["chunk-manifest-json", "concat-parts", "tessarr.hashed", "tessarr.versioned"]
    for name in ("sharding", "indexed"):
        with pytest.raises(MetadataValidationError, match=f"unknown storage transformer '{name}'"):
            tessarr.open(store_of({"": bytes_document({"name": name, "configuration": {"x": 1}})}), mode="r")


@pytest.mark.usefixtures("toys")
@pytest.mark.spec("V3-ST-06")
def test_documents_do_not_go_through_transformers() -> None:
    store: dict[str, bytes] = {}
    root = tessarr.group(store)
    transformers = [xor(255), below("p")]
    z = root.create_array("z", shape=4, chunks=2, dtype="u1", storage_transformers=transformers)
    z[...] = np.arange(4)
    z.attrs["a"] = 1
    z.resize(6)
    document = stored_json(store, "z")
    assert document["storage_transformers"] == transformers
    assert document["attributes"] == {"a": 1}
    assert sorted(store) == ["p/z/c/0", "p/z/c/1", "z/zarr.json", "zarr.json"]
    assert list(root) == ["z"]
