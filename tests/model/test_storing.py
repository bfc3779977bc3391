"""Models read from stores and written to them."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import tessarr
from tessarr import model
from tessarr.errors import (
    ContainsArrayError,
    ContainsGroupError,
    MetadataValidationError,
    NodeNotFoundError,
    StoreError,
    UnsupportedOperationError,
    ZarrUserWarning,
)
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tests.model import zep6


def keys(store: Any) -> set[str]:
    return set(store.list())


def tree(store: Any, zarr_format: int, value: int = 1) -> Any:
    """A small hierarchy with data."""
    group = tessarr.create_group(store, zarr_format=zarr_format, attributes={"title": "x"})
    a = group.create_group("a")
    for name in ("x", "y"):
        array = a.create_array(name, shape=(4, 6), chunks=(2, 3), dtype="int16", attributes={"units": "K"})
        array[...] = value
    group.create_group("b")
    return group


@pytest.mark.spec("ZOM-01")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_same_structure_is_the_same_model_from_memory_files_and_zip(zarr_format: Any, tmp_path: Path) -> None:
    memory, local = MemoryStore(), LocalStore(tmp_path / "tree")
    tree(memory, zarr_format)
    tree(local, zarr_format, value=9)
    with zipfile.ZipFile(tmp_path / "tree.zip", "w") as file:
        for key in sorted(memory.list()):
            file.writestr(key, bytes(memory.get(key) or b""))
    packed = tessarr.open_group(str(tmp_path / "tree.zip"), mode="r").store
    found = [model.from_store(store) for store in (memory, local, packed)]
    assert found[0] == found[1] == found[2]
    assert [path for path, _ in found[0].walk()] == ["", "a", "a/x", "a/y", "b"]
    assert found[0].attributes == {"title": "x"}
    assert found[0]["a/x"].shape == (4, 6)


@pytest.mark.spec("ZOM-21")
@pytest.mark.parametrize("example", [zep6.V3_MENDED, zep6.V2_MENDED, zep6.V2_SEVERAL_GROUPS, zep6.V2_ARRAY])
def test_creating_from_a_model_writes_the_documents_and_nothing_else(example: Any) -> None:
    spec = model.from_json(example)
    store = MemoryStore()
    model.to_store(spec, store)
    wanted = {f"{path}/{name}".lstrip("/") for path, node in model.flatten(spec).items() for name in node.documents()}
    assert keys(store) == wanted
    assert model.from_store(store) == spec
    opened = tessarr.open(store, mode="r")
    assert opened.zarr_format == spec.zarr_format


@pytest.mark.spec("ZOM-21")
def test_what_was_created_from_a_model_is_opened_by_zarr_python(tmp_path: Path) -> None:
    model.to_store(model.from_json(zep6.V3_MENDED), LocalStore(tmp_path / "v3"), consolidate=True)
    model.to_store(model.from_json(zep6.V2_SEVERAL_GROUPS), LocalStore(tmp_path / "v2"), consolidate=True)
    new = zarr.open_group(tmp_path / "v3", mode="r", use_consolidated=True)
    assert new["array"].shape == (1000, 1000)  # type: ignore[union-attr]
    assert dict(new.attrs) == {"foo": 42, "bar": False}
    old = zarr.open_group(tmp_path / "v2", mode="r", use_consolidated=True)
    assert sorted(name for name, _ in old.members(max_depth=None)) == ["a", "a/x", "a/y", "b", "b/c", "d"]


def test_short_hand_names_are_stored_as_objects() -> None:
    store = MemoryStore()
    model.to_store(model.from_json(zep6.V3_MENDED), store)
    document = json.loads(bytes(store.get("array/zarr.json") or b""))
    assert document["codecs"][0] == {"name": "bytes"}


def test_a_model_is_written_below_a_path_and_read_from_an_opened_group() -> None:
    store = MemoryStore()
    group = tessarr.create_group(store)
    spec = model.from_json(zep6.V3_MENDED)
    model.to_store(spec, store, "deep/down")
    assert model.from_store(store, "deep/down") == spec
    assert model.from_store(group, "/deep/down/") == spec
    assert model.validate(model.from_store(store)) == []
    assert store.exists("deep/zarr.json")
    with pytest.raises(ContainsArrayError, match="only groups may have child nodes"):
        model.to_store(spec, store, "deep/down/array/x")
    assert model.from_store(tessarr.open(store, path="deep/down")) == spec


def test_nothing_is_written_when_anything_is_wrong() -> None:
    store = MemoryStore()
    with pytest.raises(MetadataValidationError):
        model.to_store(model.from_json(zep6.V3_PRINTED), store)
    assert keys(store) == set()


def test_an_existing_node_is_not_replaced_unless_asked() -> None:
    store = MemoryStore()
    tree(store, 3)
    before = {key: bytes(store.get(key) or b"") for key in store.list()}
    spec = model.from_json(zep6.V3_MENDED)
    with pytest.raises(ContainsGroupError):
        model.to_store(spec, store)
    with pytest.raises(ContainsArrayError):
        model.to_store(spec, store, "a/x")
    with pytest.raises(MetadataValidationError):
        model.to_store(model.from_json(zep6.V3_PRINTED), store, overwrite=True)
    assert {key: bytes(store.get(key) or b"") for key in store.list()} == before
    model.to_store(spec, store, overwrite=True)
    assert keys(store) == {"zarr.json", "array/zarr.json"}


def test_a_hierarchy_that_cannot_be_replaced_is_still_there() -> None:
    class Full(MemoryStore):
        full = False

        def set(self, key: str, value: Any, **options: Any) -> Any:
            if self.full:
                raise StoreError("disk full", key=key)
            return super().set(key, value, **options)

        replace_prefix = Store.replace_prefix

    store = Full()
    tree(store, 3)
    before = {key: bytes(store.get(key) or b"") for key in store.list()}
    store.full = True
    with pytest.raises(StoreError, match="disk full"):
        model.to_store(model.from_json(zep6.V3_MENDED), store, overwrite=True)
    assert {key: bytes(store.get(key) or b"") for key in store.list()} == before


@pytest.mark.spec("ZOM-18")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_of_tessarr_is_the_flat_model(zarr_format: Any) -> None:
    store = MemoryStore()
    tree(store, zarr_format)
    tessarr.consolidate_metadata(store)
    truth = model.from_store(store, use_consolidated=False)
    assert model.from_store(store, use_consolidated=True) == truth
    assert model.from_store(store) == truth
    flat = model.flatten(truth)
    if zarr_format == 3:
        block = json.loads(bytes(store.get("zarr.json") or b""))["consolidated_metadata"]["metadata"]
        assert block == {path: node.documents()["zarr.json"] for path, node in flat.items() if path}
    else:
        block = json.loads(bytes(store.get(".zmetadata") or b""))["metadata"]
        assert block == {
            f"{path}/{name}".lstrip("/"): document
            for path, node in flat.items()
            for name, document in node.documents().items()
        }


def test_consolidated_metadata_is_asked_for_or_left_aside() -> None:
    store = MemoryStore()
    tree(store, 3)
    with pytest.raises(MetadataValidationError, match="no consolidated metadata"):
        model.from_store(store, use_consolidated=True)
    tessarr.consolidate_metadata(store)
    store.delete_prefix("a/")
    assert "a/x" in model.from_store(store)
    assert "a/x" not in model.from_store(store, use_consolidated=False)


def test_what_is_no_node_and_what_is_v1_are_errors() -> None:
    with pytest.raises(NodeNotFoundError):
        model.from_store(MemoryStore())
    store = MemoryStore()
    store.set("meta", b"{}")
    with pytest.raises(UnsupportedOperationError, match="v1"):
        model.from_store(store)


@pytest.mark.spec("ZOM-24")
def test_a_child_of_another_format_is_an_error_or_left_out_by_choice() -> None:
    store = MemoryStore()
    tree(store, 3)
    store.set("a/old/.zgroup", b'{"zarr_format": 2}')
    with pytest.raises(MetadataValidationError, match="v2"):
        model.from_store(store)
    with pytest.warns(ZarrUserWarning, match="a/old"):
        assert "a/old" not in model.from_store(store, zarr_format=3)


class Counting(MemoryStore):
    """Counts what is asked."""

    counts: Counter[str]

    def fetch(self, requests: Any) -> Any:
        self.counts["read"] += len(requests)
        return super().fetch(requests)

    def list_dir(self, prefix: str) -> Any:
        self.counts["list"] += 1
        found = super().list_dir(prefix)
        self.counts["seen"] += len(found.keys) + len(found.prefixes)
        return found


@pytest.mark.spec("ZEP1-07")
def test_reading_a_model_costs_requests_per_node_and_never_per_chunk() -> None:
    store = Counting()
    store.counts = Counter()
    group = tessarr.create_group(store)
    for i in range(10):
        array = group.create_array(f"x{i}", shape=(400,), chunks=(1,), dtype="u1")
        array[...] = np.ones(400, "u1")
    store.counts.clear()
    model.from_store(store)
    assert store.counts["list"] == 1
    assert store.counts["read"] <= 4 * 11
    assert store.counts["seen"] <= 11


def test_unknown_members_of_documents_survive() -> None:
    store = MemoryStore()
    extra = {"x": {"must_understand": False, "n": 1}, "members": {"must_understand": False}}
    store.set("zarr.json", json.dumps({"zarr_format": 3, "node_type": "group", **extra}).encode())
    spec = model.from_store(store)
    assert spec.extra == extra
    other = MemoryStore()
    model.to_store(spec, other)
    assert json.loads(bytes(other.get("zarr.json") or b"")) == {
        "zarr_format": 3, "node_type": "group", "attributes": {}, **extra
    }  # fmt: skip


def test_a_model_is_read_from_and_written_to_whatever_stands_for_a_store(tmp_path: Path) -> None:
    array = model.ArraySpecV2(shape=[4], chunks=[2], dtype="<i4", compressor=None)
    spec = model.GroupSpec(zarr_format=2, members={"g": model.GroupSpec(zarr_format=2, members={"x": array})})
    places: list[Any] = [str(tmp_path / "a.zarr"), tmp_path / "b.zarr", str(tmp_path / "c.zip"), {}, MemoryStore()]
    for place in places:
        spec.to_store(place)
        assert model.from_store(place) == spec
        assert model.from_store(place, "g/x") == array
    array.to_store(places[0], "g/y")
    assert set(model.from_store(places[0])["g"].members) == {"x", "y"}
    with pytest.raises(ContainsGroupError):
        spec.to_store(places[0])
    spec.to_store(places[0], overwrite=True, consolidate=True)
    assert model.from_store(places[0], use_consolidated=True) == spec
    with pytest.raises(TypeError):
        model.from_store(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_that_another_writer_creates_above_keeps_its_attributes(zarr_format: Any) -> None:
    class Raced(MemoryStore):
        """Another writer creates the group `a` after this one has looked for it, before this one's first write."""

        begun = False

        def _meanwhile(self) -> None:
            if not self.begun:
                self.begun = True
                tessarr.create_group(self, path="a", zarr_format=zarr_format, attributes={"owner": "me"})

        def set(self, key: str, value: Any, **options: Any) -> Any:
            self._meanwhile()
            return super().set(key, value, **options)

        def set_if_not_exists(self, key: str, value: Any) -> bool:
            self._meanwhile()
            return super().set_if_not_exists(key, value)

    store = Raced()
    model.to_store(model.GroupSpec(zarr_format=zarr_format), store, "a/b")
    assert store.begun
    assert dict(tessarr.open_group(store, path="a", mode="r").attrs) == {"owner": "me"}
    assert "b" in tessarr.open_group(store, path="a", mode="r")
