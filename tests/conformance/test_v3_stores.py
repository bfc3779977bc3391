"""Zarr v3: the abstract store, by stores that can as little as they may, and trees moved between stores."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ReadOnlyError, UnsupportedOperationError
from tessarr.stores.base import ANY, Any_, Store, Version
from tessarr.stores.buffers import byte_view, merge_parts, parts_by_key
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import fallback
from tessarr.stores.url import store_from
from tessarr.types import Buffer, ByteRange
from tests.conformance.documents import GROUP, array_document, store_of
from tests.narrow import array_of, group_of
from tests.stores.contract import SEED, StoreContract, plain


class _Values(Store):
    """What the two smallest stores share: a dict, deleting, and listing."""

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self.held: dict[str, bytes] = {} if values is None else values

    def delete(self, key: str) -> None:
        self._check_writable(key)
        check_key(key)
        self.held.pop(key, None)

    def list(self, prefix: str = "") -> Iterator[str]:
        return iter([key for key in self.held if key.startswith(prefix)])

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return super().list_prefix(prefix)

    def delete_prefix(self, prefix: str) -> None:
        self._check_writable(prefix)
        super().delete_prefix(prefix)


class WholeStore(_Values):
    """Whole values only: get, set, delete (and list)."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        check_key(key)
        value = self.held.get(key)
        if value is None or byte_range is None:
            return value
        start, stop = byte_range.bounds(len(value))
        return value[start:stop]

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        if if_match is not ANY:
            raise UnsupportedOperationError("no conditional writes")
        check_key(key)
        self.held[key] = bytes(byte_view(value))
        return None


class PartialStore(_Values):
    """Partial values only."""

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> Any:
        return [WholeStore(self.held).get(key, byte_range) for key, byte_range in key_ranges]

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        parts = parts_by_key(key_start_values)
        self._check_writable("")
        for key, pieces in parts.items():
            check_key(key)
            self.held[key] = merge_parts(self.held.get(key), pieces)


@pytest.mark.spec("V3-STORE-18", "V3-STORE-08")
class TestWholeStore(StoreContract):
    @pytest.fixture
    def store(self) -> WholeStore:
        return WholeStore()


@pytest.mark.spec("V3-STORE-18")
class TestPartialStore(StoreContract):
    parts_are_of_one_value = False  # each part is a read, and `set` deletes the value before it writes it

    @pytest.fixture
    def store(self) -> PartialStore:
        return PartialStore()


@pytest.mark.spec("V3-STORE-18", "V3-STORE-08")
@pytest.mark.parametrize("kind", [WholeStore, PartialStore])
def test_a_hierarchy_lives_in_the_smallest_stores(kind: type[_Values]) -> None:
    store = kind()
    root = tessarr.group(store)
    z = root.create_array("a/z", shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="i4")
    z[...] = values = np.arange(64).reshape(8, 8)
    z[1, 1] = -1
    root.attrs["a"] = 1
    tessarr.consolidate_metadata(store)
    again = tessarr.open_group(kind(store.held), mode="r")
    values[1, 1] = -1
    assert (array_of(again["a/z"])[1:3, ::3] == values[1:3, ::3]).all()
    assert again.attrs["a"] == 1
    root.create_array("a/z", shape=3, dtype="i1", overwrite=True)
    assert sorted(store.held) == ["a/z/zarr.json", "a/zarr.json", "zarr.json"]
    del root["a"]
    assert sorted(store.held) == ["zarr.json"]


@pytest.mark.spec("V3-STORE-05", "V3-STORE-07")
def test_ranges_by_start_and_length() -> None:
    store = MemoryStore({"k": b"0123456789"})
    assert plain(store.get("k", ByteRange(0))) == b"0123456789"
    assert plain(store.get("k", ByteRange(2, 5))) == b"234"
    assert plain(store.get("k", ByteRange(7))) == b"789"
    assert plain(store.get("k", ByteRange(0, 0))) == b""
    assert plain(store.get("k", ByteRange(8, 100))) == b"89"
    assert plain(store.get("k", ByteRange(10, 12))) == b""
    assert plain(store.get("k", ByteRange(-4))) == b"6789"


@pytest.mark.spec("V3-STORE-13")
def test_a_store_that_cannot_delete_says_so() -> None:
    class Keeping(WholeStore):
        @fallback
        def delete(self, key: str) -> None:
            raise UnsupportedOperationError("this store cannot delete", store=self.url, key=key)

    store = Keeping()
    root = tessarr.group(store)
    z = root.create_array("z", shape=4, chunks=2, dtype="i4")
    z[...] = [1, 2, 3, 4]
    z[:2] = 0  # is stored as zeros, where others would remove the chunk
    assert z[...].tolist() == [0, 0, 3, 4]
    assert "z/c/0" in store.held
    with pytest.raises(UnsupportedOperationError, match="cannot delete"):
        del root["z"]
    with pytest.raises(UnsupportedOperationError, match="cannot delete"):
        Store().delete("a")
    assert z[...].tolist() == [0, 0, 3, 4]


@pytest.mark.spec("V3-STORE-13")
def test_a_zip_file_deletes_or_says_that_it_cannot(tmp_path: Path) -> None:
    path = tmp_path / "h.zip"
    with tessarr.open_group(str(path), mode="w") as root:
        root.create_array("z", shape=2, dtype="i1")[...] = 1
    root = tessarr.open_group(str(path), mode="r")
    with pytest.raises((ReadOnlyError, UnsupportedOperationError)):
        del root["z"]
    with zipfile.ZipFile(path) as archive:
        assert "z/zarr.json" in archive.namelist()


@pytest.mark.spec("V3-STORE-19", "V3-OPS-09")
def test_a_store_that_cannot_list_opens_what_is_named() -> None:
    class Unlisted(WholeStore):
        @fallback
        def list(self, prefix: str = "") -> Iterator[str]:
            raise UnsupportedOperationError("this store cannot list its keys", store=self.url)

        def list_prefix(self, prefix: str) -> Iterator[str]:
            return self.list()

    documents = {"": GROUP, "a": GROUP, "a/z": array_document((2,), data_type="int8", codecs=["bytes"])}
    values = store_of(documents, {"a/z/c/0": b"\1\2"})
    root = tessarr.open_group(Unlisted(values), mode="r")
    assert array_of(root["a/z"])[...].tolist() == [1, 2]
    assert "a" in root
    for ask in (lambda: list(root), lambda: root.members(), lambda: len(root), lambda: group_of(root["a"]).tree()):
        with pytest.raises(UnsupportedOperationError, match="consolidated"):
            str(ask())
    tessarr.consolidate_metadata(values)
    root = tessarr.open_group(Unlisted(values), mode="r")
    assert [path for path, _ in root.members(None)] == ["a", "a/z"]


@pytest.mark.spec("V3-STORE-19")
def test_what_a_store_can_do_is_said_for_each_ability() -> None:
    store = MemoryStore()
    assert (store.supports_writes, store.supports_listing, store.supports_deletes, store.read_only) == (
        True, True, True, False,
    )  # fmt: skip
    reading = store.with_read_only()
    assert (reading.supports_listing, reading.read_only) == (True, True)
    with pytest.raises(ReadOnlyError):
        tessarr.create_group(reading)


@pytest.mark.spec("V3-STORE-20")
def test_a_url_leads_to_the_store_and_back(tmp_path: Path) -> None:
    z = tessarr.create_array(str(tmp_path / "my data"), shape=2, dtype="i1")
    assert z.store.url == "file://" + str(tmp_path / "my data").replace(" ", "%20")
    assert isinstance(store_from(z.store.url)[0], LocalStore)
    assert tessarr.open(z.store.url, mode="r") == z
    held = MemoryStore()
    tessarr.create_array(held, shape=3, dtype="i1")
    assert tessarr.open(held.url, mode="r").shape == (3,)
    assert store_from("https://example.org/a.zarr")[0].url.startswith("https://example.org/a.zarr")
    assert store_from("memory://some-name")[0].url == "memory://some-name"


@pytest.mark.spec("V3-STORE-21")
def test_documents_are_compared_by_meaning_not_by_bytes() -> None:
    class JSONStore(WholeStore):
        """Keeps documents as a native JSON type would: without order and spaces."""

        def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
            if key.endswith(".json"):
                document = json.loads(bytes(byte_view(value)))
                value = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
            return super().set(key, value, if_match=if_match)

    plain_store, native = WholeStore(), JSONStore()
    for store in (plain_store, native):
        root = tessarr.group(store)
        root.create_array("z", shape=4, dtype="f4", fill_value=np.nan, attributes={"b": 1, "a": [1.5, None]})
        root["z"].attrs["c"] = "ü"
        root["z"].resize(5)
        tessarr.consolidate_metadata(store)
    assert native.held != plain_store.held
    first, second = tessarr.open_group(plain_store, mode="r"), tessarr.open_group(native, mode="r")
    assert first["z"].metadata == second["z"].metadata
    assert second["z"].attrs.asdict() == {"a": [1.5, None], "b": 1, "c": "ü"}


@pytest.mark.spec("V3-STORE-22", "FS-13")
def test_a_tree_moves_between_stores_without_a_change(tmp_path: Path) -> None:
    values: dict[str, bytes] = {}
    root = tessarr.group(values, attributes={"a": 1})
    z = root.create_array("g/z", shape=(5, 5), chunks=(2, 2), dtype="f4")
    z[...] = np.arange(25.0).reshape(5, 5)
    with zipfile.ZipFile(tmp_path / "h.zip", "w") as archive:
        for key, value in values.items():
            (tmp_path / "h" / key).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "h" / key).write_bytes(value)
            archive.writestr(key, value)
    for place in (str(tmp_path / "h"), str(tmp_path / "h.zip"), WholeStore(dict(values)), MemoryStore(dict(values))):
        moved = tessarr.open_group(place, mode="r")
        assert moved.attrs.asdict() == {"a": 1}
        assert (array_of(moved["g/z"])[...] == z[...]).all()
    text = b"".join(value for key, value in values.items() if key.endswith("zarr.json")).decode()
    assert not any(word in text for word in ("memory", "Store", "file:", "url"))


def test_the_contract_holds_something_to_read() -> None:
    assert len(SEED) > 5
