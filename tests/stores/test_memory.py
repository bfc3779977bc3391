"""Values in memory."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tessarr.errors import ConflictError, StoreError
from tessarr.stores.memory.store import ManagedMemoryStore, MemoryStore
from tessarr.stores.url import store_from
from tessarr.types import ByteRange
from tests.stores.contract import ConditionalContract, StoreContract, child_environment, plain


class TestMemoryStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestMemoryStoreOverADictionary(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore({})


class TestManagedMemoryStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> ManagedMemoryStore:
        return ManagedMemoryStore()


class TestManagedMemoryStoreBelowItsRoot(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> ManagedMemoryStore:
        return ManagedMemoryStore(path="below/here")


def test_a_given_dictionary_is_the_backing_map() -> None:
    values: dict[str, object] = {"a": b"1", "b": np.arange(3, dtype="u1")}
    store = MemoryStore(values)
    assert plain(store.get("b", ByteRange(1))) == b"\1\2"
    store.set("c", b"3")
    values["d"] = b"4"
    assert values["c"] == b"3"
    assert store.get("d") == b"4"


def test_a_value_is_given_out_without_a_copy_and_cannot_be_changed() -> None:
    value = b"0123456789"
    store = MemoryStore({"a": value, "b": bytearray(value)})
    assert store.get("a") is value
    assert store.get("a", ByteRange(2, 4)).obj is value  # type: ignore[union-attr]
    for key in ("a", "b"):
        assert memoryview(store.get(key)).readonly  # type: ignore[arg-type]


def test_a_buffer_of_someone_else_that_changes_has_another_version() -> None:
    shared = bytearray(b"1")
    store = MemoryStore({"a": shared})
    assert store.version("a") is not None
    shared[0] = 50
    assert plain(store.get("a")) == b"1", "a value with a version is ours"


def test_two_stores_over_one_map_share_versions() -> None:
    values: dict[str, bytes] = {}
    one, two = MemoryStore(values), MemoryStore(values)
    one.set("a", b"1")
    two.set("a", b"2", if_match=one.version("a"))
    with pytest.raises(ConflictError):
        one.set("a", b"3", if_match=None)


def test_a_pickle_is_a_copy() -> None:
    store = MemoryStore({"a": b"1"}, read_only=True)
    twin = pickle.loads(pickle.dumps(store))
    assert twin.read_only
    assert twin.get("a") == b"1"
    twin.with_read_only(False).set("a", b"2")
    assert store.get("a") == b"1"


def test_the_url_opens_the_same_store_while_it_lives() -> None:
    store = MemoryStore({"a": b"1"})
    assert store_from(store.url)[0] is store
    again, path = store_from(f"{store.url}/group/array", mode="r")
    assert path == "group/array"
    assert again.read_only
    assert again.get("a") == b"1"


def test_a_name_is_the_same_place_for_the_whole_process() -> None:
    ManagedMemoryStore("memory-test-name").set("a/b", b"1")
    gc.collect()
    store, path = store_from("memory://memory-test-name/a")
    assert (store.get("a/b"), path) == (b"1", "a")
    below = ManagedMemoryStore("memory-test-name", path="/a/")
    assert below.get("b") == b"1"
    below.set("c", b"2")
    assert store.get("a/c") == b"2"
    assert below.url == "memory://memory-test-name/a"
    below.clear()
    assert [*store.list()] == []


def test_a_nameless_place_goes_with_its_last_store() -> None:
    store = ManagedMemoryStore()
    name = store.name
    store.set("a", b"1")
    assert ManagedMemoryStore(name).get("a") == b"1"
    del store
    gc.collect()
    assert ManagedMemoryStore(name).get("a") is None


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name of a memory store"):
        ManagedMemoryStore(name)


def test_a_managed_store_pickles_within_its_process_and_is_refused_in_another() -> None:
    store = ManagedMemoryStore("memory-test-pickle", path="p", read_only=True)
    again = pickle.loads(pickle.dumps(store))
    assert (again.url, again.read_only) == (store.url, True)
    code = "import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, pickle.dumps(store).hex()],
        env=child_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert StoreError.__name__ in done.stderr
    assert "another process" in done.stderr
