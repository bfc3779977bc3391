"""Consolidated metadata is kept in step by every write."""

from __future__ import annotations

import json
import math
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import model
from tessarr.errors import ZarrRuntimeWarning
from tessarr.settings import config
from tessarr.storage import CountingStore, WrapperStore, rmdir
from tessarr.stores.base import Fetch
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools.check import check
from tessarr.tools.convert import convert
from tessarr.tools.rechunk import rechunk
from tessarr.tools.repair import repair, restore

ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [2],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": [{"name": "bytes"}],
    "attributes": {},
}


def group(**members: Any) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": {}, **members}


def block(metadata: Any, kind: str = "inline") -> dict[str, Any]:
    return {"kind": kind, "must_understand": False, "metadata": metadata}


def stored(**documents: Any) -> MemoryStore:
    keys = {
        "root": "zarr.json",
        **{name: f"{name.replace('_', '/')}/zarr.json" for name in documents if name != "root"},
    }
    return MemoryStore({keys[name]: json.dumps(document).encode() for name, document in documents.items()})


def paths(store: Any) -> list[str]:
    return sorted(path for path, _ in tessarr.open_group(store, mode="r").members(max_depth=None))


def stale(store: Any) -> list[str]:
    return [str(finding) for finding in check(store).findings if finding.rule.startswith("CONS-")]


@pytest.fixture(params=[2, 3])
def tree(request: pytest.FixtureRequest) -> Any:
    root = tessarr.open_group(MemoryStore(), mode="w", zarr_format=request.param)
    root.create_array("a", data=np.arange(4), chunks=(2,))
    root.create_group("h").create_array("x", data=np.arange(4), chunks=(2,))
    tessarr.consolidate_metadata(root.store)
    return tessarr.open_group(root.store, mode="r+")


def other(root: Any) -> Any:
    made = tessarr.open_group(MemoryStore(), mode="w", zarr_format=root.metadata.zarr_format)
    made.create_array("a", data=np.arange(4), chunks=(2,))
    return made.store


WRITES: dict[str, Callable[[Any], Any]] = {
    "attributes of the group": lambda root: root.attrs.update(n=1),
    "attributes of an array": lambda root: root["h/x"].attrs.update(n=1),
    "a new array": lambda root: root.create_array("h/y", shape=(1,), dtype="u1"),
    "a new group and those above it": lambda root: root.create_group("p/q/r"),
    "another shape": lambda root: root["a"].resize((9,)),
    "more values": lambda root: root["h/x"].append([1, 2]),
    "another name": lambda root: root.move("h", "i"),
    "a node less": lambda root: root.__delitem__("h"),
    "an array in place of a group": lambda root: root.create_array("h", shape=(1,), dtype="u1", overwrite=True),
    "a copy": lambda root: tessarr.copy(root["a"], root, name="b"),
    "the keys of another store": lambda root: tessarr.copy_store(other(root), root.store, "a", "h/z"),
    "a directory less": lambda root: rmdir(root.store, "h"),
    "a model": lambda root: model.to_store(model.from_store(root.store, path="h"), root.store, path="s/t"),
    "a model in place of a group": lambda root: model.to_store(
        model.from_store(root.store, path="a"), root.store, path="h", overwrite=True
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_consolidated_metadata_follows_every_write(tree: Any, write: str) -> None:
    before = paths(tree.store)
    WRITES[write](tree)
    assert stale(tree.store) == []
    fresh = tessarr.open_group(tree.store, mode="r", use_consolidated=False)
    assert paths(tree.store) == sorted(path for path, _ in fresh.members(max_depth=None))
    assert (paths(tree.store) == before) is (
        write.startswith("attributes") or write in ("another shape", "more values")
    )


def test_a_repair_and_its_undoing_are_followed(tree: Any) -> None:
    store, name = tree.store, ".zarray" if tree.metadata.zarr_format == 2 else "zarr.json"
    wrong: dict[str, Any] = {"filters": []} if name == ".zarray" else {"storage_transformers": None}
    for path in ("a", "h/x"):
        document = json.loads(bytes(store.get(f"{path}/{name}")))
        store.set(f"{path}/{name}", json.dumps({**document, **wrong}).encode())
    tessarr.consolidate_metadata(store)
    done = repair(check(store), store, dry_run=False)
    assert [step.outcome for step in done.steps] == ["done", "done"]
    assert stale(store) == []
    restore(store, str(done.backup))
    assert stale(store) == []
    assert len(check(store).of("LEGACY-FILTERS", "LEGACY-NULL")) == 2


def test_a_node_that_is_deleted_is_gone_from_the_blocks_of_nested_groups_too() -> None:
    inner = block({"x": ARRAY, "y": ARRAY})
    root = group(consolidated_metadata=block({"h": group(consolidated_metadata=inner)}))
    store = stored(root=root, h=group(), h_x=ARRAY, h_y=ARRAY)
    assert paths(store) == ["h", "h/x", "h/y"]
    del tessarr.open_group(store, mode="r+")["h/x"]
    assert paths(store) == ["h", "h/y"]
    assert stale(store) == []


def test_entries_that_begin_with_a_slash_are_followed() -> None:
    root = group(consolidated_metadata=block({"/h": group(), "/h/x": ARRAY, "h/y": ARRAY}))
    store = stored(root=root, h=group(), h_x=ARRAY, h_y=ARRAY)
    writable = tessarr.open_group(store, mode="r+")
    del writable["h/x"]
    writable["h/y"].attrs["n"] = 1
    assert paths(store) == ["h", "h/y"]
    assert stale(store) == []


def test_consolidated_metadata_of_a_kind_that_we_do_not_know_is_left_as_it_is() -> None:
    root = group(consolidated_metadata=block({}, "elsewhere"))
    store = stored(root=root)
    tessarr.open_group(store, mode="r+").create_group("z")
    assert json.loads(bytes(store.get("zarr.json") or b"")) == root
    assert paths(store) == ["z"]


class Counting(WrapperStore):
    """Counts what is asked of a store."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.asked: list[Any] = []

    def get(self, key: str, byte_range: Any = None) -> Any:
        self.asked.append(key)
        return self.store.get(key, byte_range)

    def fetch(self, requests: list[Fetch]) -> Any:  # type: ignore[override]
        self.asked.append([request.key for request in requests])
        return self.store.fetch(requests)

    def list_dir(self, prefix: str) -> Any:
        self.asked.append(prefix)
        return self.store.list_dir(prefix)


def test_a_hierarchy_of_ten_thousand_nodes_opens_with_one_read_and_nothing_more() -> None:
    array: model.ArraySpecV2[Any] = model.ArraySpecV2(shape=[4], chunks=[2], dtype="<i4", compressor=None)
    arrays = {f"x{j}": array for j in range(99)}
    members: dict[str, Any] = {f"g{i}": model.GroupSpec(zarr_format=2, members=arrays) for i in range(100)}
    spec = model.to_v3(model.GroupSpec(zarr_format=2, members=members)).spec
    store = MemoryStore()
    model.to_store(spec, store, consolidate=True)
    counting = Counting(store)
    root = tessarr.open_group(counting, mode="r", zarr_format=3)
    assert counting.asked == [["zarr.json"]]
    assert root["g7/x5"].shape == (4,)
    assert (len(root), len(root["g99"])) == (100, 99)
    assert "g3/x98" in root
    assert len(list(root.members(max_depth=None))) == 10_000
    assert counting.asked == [["zarr.json"]]


@pytest.fixture(params=[2, 3])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place = tmp_path / "data.zarr"
    root = tessarr.open_group(place, mode="w", zarr_format=request.param)
    root.create_array("a", data=np.arange(4), chunks=(2,))
    root.create_group("h").create_array("x", data=np.arange(4), chunks=(2,))
    tessarr.consolidate_metadata(place)
    return place


@pytest.fixture
def updating() -> Iterator[None]:
    with config.set({"consolidated.above_root": "update"}):
        yield


@pytest.mark.usefixtures("updating")
def test_a_node_that_is_opened_by_its_own_directory_is_followed_too(directory: Path) -> None:
    number = tessarr.open_group(directory, mode="r").metadata.zarr_format
    tessarr.open_array(directory / "h" / "x", mode="r+").attrs["n"] = 1
    tessarr.open_array(directory / "a", mode="r+").append([1, 2])
    tessarr.create_array(directory / "h" / "y", shape=(2,), dtype="i4", zarr_format=number)
    del tessarr.open_group(directory / "h", mode="r+")["x"]
    assert stale(directory) == []
    assert paths(directory) == ["a", "h", "h/y"]
    assert tessarr.open_group(directory, mode="r")["a"].shape == (6,)


@pytest.mark.usefixtures("updating")
def test_what_tools_put_in_its_place_is_followed(directory: Path) -> None:
    number = tessarr.open_group(directory, mode="r").metadata.zarr_format
    convert(directory / "h", directory / "i", zarr_format=number)
    rechunk(tessarr.open_array(directory / "a", mode="r"), directory / "b", chunks=(3,))
    assert stale(directory) == []
    assert paths(directory) == ["a", "b", "h", "h/x", "i", "i/x"]
    convert(directory / "a", directory / "h", zarr_format=number, overwrite=True)
    assert stale(directory) == []
    assert paths(directory) == ["a", "b", "h", "i", "i/x"]


@pytest.mark.usefixtures("updating")
def test_metadata_above_that_cannot_be_kept_in_step_is_told(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = tessarr.open_array(directory / "a", mode="r+")
    update = LocalStore.update

    def refused(self: Any, key: str, change: Any) -> Any:
        if self.root == directory:
            raise PermissionError(key)
        return update(self, key, change)

    monkeypatch.setattr(LocalStore, "update", refused)
    with pytest.warns(ZarrRuntimeWarning, match="could not be kept in step"):
        array.attrs["n"] = 1
    assert tessarr.open_array(directory / "a", mode="r").attrs["n"] == 1


def held_above(directory: Path) -> dict[str, bytes]:
    """The documents of the group at `directory`, in which its consolidated metadata is."""
    names = ("zarr.json", ".zmetadata", ".zgroup")
    return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}


def test_nothing_above_the_root_that_was_opened_is_written_but_the_stale_document_is_named(directory: Path) -> None:
    before = held_above(directory)
    holder = directory / (".zmetadata" if ".zmetadata" in before else "zarr.json")
    array = tessarr.open_array(directory / "a", mode="r+")
    with pytest.warns(ZarrRuntimeWarning, match=f"{re.escape(str(holder))} is stale") as caught:
        array.attrs["n"] = 1
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]
    with pytest.warns(ZarrRuntimeWarning, match="is stale"):
        tessarr.open_group(directory / "h", mode="r+").create_group("g")
    assert held_above(directory) == before
    found = check(directory)
    findings = {finding.rule: finding.message for finding in found.of("CONS-STALE", "CONS-MISSING")}
    assert findings.keys() == {"CONS-STALE", "CONS-MISSING"}
    assert "/a" in findings["CONS-STALE"]
    assert "/h/g" in findings["CONS-MISSING"]
    assert repair(found, directory, dry_run=False).ok
    assert check(directory).of("CONS-STALE", "CONS-MISSING") == []


def test_a_change_that_no_consolidated_document_above_holds_warns_of_nothing(directory: Path) -> None:
    array = tessarr.open_array(directory / "a", mode="r+")
    with config.set({"consolidated.above_root": "update"}):
        array.attrs["n"] = 1
    array.attrs["n"] = 1
    array[0] = 7


def test_what_is_above_the_root_that_was_opened_may_be_ignored(directory: Path) -> None:
    before = held_above(directory)
    with config.set({"consolidated.above_root": "ignore"}):
        tessarr.open_array(directory / "a", mode="r+").attrs["n"] = 1
    assert held_above(directory) == before
    with config.set({"consolidated.above_root": "always"}), pytest.raises(ValueError, match="warn, update, ignore"):
        tessarr.open_array(directory / "a", mode="r+").attrs["n"] = 2


@pytest.fixture(params=[2, 3])
def opened(request: pytest.FixtureRequest) -> tessarr.Group:
    """A group with arrays `x` and `h/y`, opened for writing by its consolidated metadata."""
    store = MemoryStore()
    root = tessarr.open_group(store, mode="w", zarr_format=request.param)
    root.create_array("x", shape=(4,), dtype="i4")
    root.create_group("h").create_array("y", shape=(4,), dtype="i4")
    tessarr.consolidate_metadata(store)
    group = tessarr.open_group(store, mode="r+", use_consolidated=True)
    assert group.metadata.consolidated_metadata is not None
    return group


@pytest.mark.parametrize("pickled", [False, True])
def test_a_group_that_writes_sees_what_its_members_change(opened: tessarr.Group, pickled: bool, tmp_path: Path) -> None:
    group = opened
    if pickled:
        tessarr.copy_store(group.store, tessarr.storage.LocalStore(tmp_path / "p.zarr"))
        group = pickle.loads(pickle.dumps(tessarr.open_group(tmp_path / "p.zarr", mode="r+", use_consolidated=True)))
        assert group.metadata.consolidated_metadata is not None
    group["x"].attrs["n"] = 1
    group["h/y"].resize((9,))
    group["h"].attrs["m"] = 2
    assert (dict(group["x"].attrs), group["h/y"].shape, dict(group["h"].attrs)) == ({"n": 1}, (9,), {"m": 2})
    assert {path: node.shape for path, node in group.members(None) if path != "h"} == {"x": (4,), "h/y": (9,)}
    nested = group.get_group("h")
    assert nested["y"].shape == (9,)
    nested.create_array("z", shape=(1,), dtype="u1")
    assert (group["h/z"].shape, sorted(group.get_group("h")), "h/z" in group) == ((1,), ["y", "z"], True)
    del group.get_group("h")["y"]
    assert "h/y" not in group
    with pytest.raises(KeyError, match="h/y"):
        group["h/y"]


def test_what_was_not_changed_is_still_opened_without_a_request(opened: tessarr.Group) -> None:
    counting = CountingStore(opened.store)
    group = tessarr.open_group(counting, mode="r+", use_consolidated=True)
    group.attrs["of the group itself"] = 1
    group["x"].attrs["n"] = 1
    counting.counter.clear()
    assert (group["h/y"].shape, list(group["h"])) == ((4,), ["y"])
    assert sum(counting.counter.values()) == 0
    assert group["x"].attrs["n"] == 1


def test_a_group_that_only_reads_keeps_the_hierarchy_that_it_opened(opened: tessarr.Group) -> None:
    reader = tessarr.open_group(opened.store, mode="r", use_consolidated=True)
    opened["x"].resize((9,))
    del opened["h"]
    assert (reader["x"].shape, list(reader)) == ((4,), ["h", "x"])
    reader.refresh()
    assert (reader["x"].shape, list(reader)) == ((9,), ["x"])


def test_a_replaced_root_has_no_members_that_consolidated_metadata_remembers(opened: tessarr.Group) -> None:
    tessarr.create_group(opened.store, zarr_format=opened.metadata.zarr_format, overwrite=True)
    assert (list(opened), "x" in opened) == ([], False)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidating_ends_where_attributes_hold_nan(zarr_format: Any) -> None:
    """NaN is unequal to itself, and what was read is compared with what was written."""
    with tessarr.config.set({"attributes.allow_nan": True}):
        root = tessarr.create_group(MemoryStore(), zarr_format=zarr_format)
        root.create_array("a", shape=(2,), dtype="f4", attributes={"missing_value": float("nan")})
        found = tessarr.consolidate_metadata(root.store)["a"]
        assert math.isnan(found.attrs["missing_value"])
        found.attrs["limit"] = float("inf")
        opened = tessarr.open_group(root.store)
        assert opened["a"].attrs["limit"] == float("inf")
