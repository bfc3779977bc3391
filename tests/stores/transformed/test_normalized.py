"""Names in one Unicode normalization form."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
from tessarr.errors import StoreError
from tessarr.storage import CountingStore, LocalStore, MemoryStore, NormalizingStore, Store
from tests.narrow import array_of
from tests.stores.contract import ConditionalContract, SharedContract, StoreContract

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


class _NormalizingContract(StoreContract):
    def test_keys_are_unicode_and_never_normalised(self, store: Store) -> None:
        for key in (COMPOSED, DECOMPOSED, "日本/🧊 #%25&?"):
            store.set(key, key.encode())
        found = [bytes(memoryview(store.get(key) or b"")).decode() for key in (COMPOSED, DECOMPOSED, "日本/🧊 #%25&?")]
        assert found == [DECOMPOSED, DECOMPOSED, "日本/🧊 #%25&?"]


class TestNormalizingStore(_NormalizingContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return NormalizingStore(MemoryStore())


class TestNormalizingStoreInADirectory(_NormalizingContract, ConditionalContract, SharedContract):
    processes, threads, rounds = 2, 2, 5

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return NormalizingStore(LocalStore(tmp_path))


@pytest.mark.spec("ZEP1-17")
@pytest.mark.parametrize("stored", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED])
def test_a_node_is_found_under_either_spelling_and_changed_in_place(stored: str, asked: str) -> None:
    inner = MemoryStore()
    tessarr.open_group(inner, mode="w").create_group(stored).create_array("x", shape=2, dtype="u1", data=None)
    root = tessarr.open_group(NormalizingStore(inner), mode="r+")
    array_of(root[f"{asked}/x"])[...] = 3
    assert [*root] == [COMPOSED]
    assert {key.split("/")[0] for key in inner.list()} == {"zarr.json", stored}
    assert array_of(tessarr.open_group(inner, mode="r")[f"{stored}/x"])[...].tolist() == [3, 3]


def test_new_names_are_written_in_form_c() -> None:
    inner = MemoryStore()
    store = NormalizingStore(inner)
    store.set(f"{DECOMPOSED}/{DECOMPOSED}", b"1")
    assert [*inner.list()] == [f"{COMPOSED}/{COMPOSED}"]
    store.delete(f"{DECOMPOSED}/{COMPOSED}")
    assert [*inner.list()] == []


def test_names_that_cannot_be_told_apart_are_an_error() -> None:
    both = ["\u1e9b\u0323", "\u017f\u0323\u0307", "\u017f\u0307\u0323"]
    normal = unicodedata.normalize("NFC", both[0])
    store = NormalizingStore(MemoryStore({name: b"1" for name in both if name != normal}))
    with pytest.raises(StoreError, match="other Unicode forms"):
        store.get(normal)


def test_a_key_of_ascii_asks_nothing_else() -> None:
    counting = CountingStore(MemoryStore({"a": b"1"}))
    NormalizingStore(counting).get("a")
    assert dict(counting.counter) == {"get": 1}


@given(names=st.lists(st.text("ae\u0301\u0308\u00e9\u00e4", min_size=1, max_size=4), min_size=1, max_size=6))
def test_every_written_key_is_listed_once_in_form_c(names: list[str]) -> None:
    store = NormalizingStore(MemoryStore())
    values = {}
    for name in names:
        store.set(name, name.encode())
        values[unicodedata.normalize("NFC", name)] = name.encode()
    assert sorted(store.list()) == sorted(values)
    assert {name: bytes(memoryview(store.get(name) or b"")) for name in values} == values
