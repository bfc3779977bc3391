"""Objects whose node another writer has migrated, deleted or replaced: they change nothing, and raise `StaleNodeError`."""

from __future__ import annotations

import contextvars
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.node import Node
from tessarr.core.stored import metadata_io, write_new
from tessarr.core.stored.consolidated import follow_changes
from tessarr.errors import ConflictError, ContainsGroupError, NodeNotFoundError, StaleNodeError
from tessarr.stores.base import ANY, Any_, Listing, Version
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools import migrate as migration
from tessarr.tools.migrate import migrate, remove_metadata
from tessarr.types import Buffer
from tests.simulation.simulator import Bucket, Client

pytestmark = pytest.mark.filterwarnings("ignore:Both zarr.json")

STORES: dict[str, Callable[[Path], Any]] = {
    "memory": lambda _: MemoryStore(),
    "local": LocalStore,
    "object": lambda _: Client("one", Bucket()),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    store = STORES[request.param](tmp_path)
    root = tessarr.create_group(store, attributes={"title": "old"}, zarr_format=2)
    root.create_array("a", data=np.arange(6), chunks=(4,), fill_value=0)
    return store


def documents(store: Any) -> dict[str, bytes]:
    return {key: bytes(store.get(key)) for key in store.list()}


CHANGES: dict[str, Callable[[Any], object]] = {
    "attribute": lambda array: array.attrs.update({"x": 1}),
    "append": lambda array: array.append(np.full(3, 7)),
    "resize": lambda array: array.resize((2,)),
    "fill value": lambda array: setattr(array, "fill_value", 5),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("remove_old", [False, True])
@pytest.mark.parametrize("through", ["array", "group", "pickle"])
def test_an_array_opened_before_a_migration_changes_nothing(
    store: Any, change: str, remove_old: bool, through: str
) -> None:
    array = tessarr.open_array(store, path="a", mode="r+")
    if through == "group":
        array = tessarr.open_group(store, mode="r+")["a"].with_config({})
    if through == "pickle" and isinstance(store, LocalStore):
        array = pickle.loads(pickle.dumps(array))
    migrate(store, remove_old=remove_old)
    before = documents(store)
    with pytest.raises(StaleNodeError, match=r"migrated from Zarr v2 meanwhile.*open the hierarchy again"):
        CHANGES[change](array)
    assert documents(store) == before


def test_a_group_opened_before_a_migration_changes_no_attributes(store: Any) -> None:
    group = tessarr.open_group(store, mode="r+")
    migrate(store)
    before = documents(store)
    with pytest.raises(StaleNodeError):
        group.attrs["title"] = "new"
    assert documents(store) == before


def test_the_old_description_may_be_changed_where_it_is_asked_for(store: Any) -> None:
    migrate(store)
    group = tessarr.open_group(store, mode="r+", zarr_format=2)
    array = group["a"]
    assert isinstance(array, tessarr.Array)
    group.attrs["title"] = "new"
    array.append(np.full(3, 7))
    assert tessarr.open_array(store, path="a", mode="r", zarr_format=2).shape == (9,)
    assert tessarr.open_group(store, mode="r", zarr_format=2).attrs["title"] == "new"
    assert tessarr.open_array(store, path="a", mode="r").shape == (6,)


def test_a_migration_that_was_stopped_does_not_stop_writers(store: Any) -> None:
    """Until the root's new document is written, which comes last, the hierarchy is that of the old format."""
    array = tessarr.open_group(store, mode="r+")["a"]
    migrate(store)
    store.delete("zarr.json")
    assert isinstance(array, tessarr.Array)
    array.attrs["x"] = 1
    assert tessarr.open_group(store, mode="r")["a"].attrs["x"] == 1


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_of_an_array_do_not_become_those_of_the_group_that_replaced_it(zarr_format: Any) -> None:
    store = MemoryStore()
    array = tessarr.create_array(store, name="a", data=np.arange(6), zarr_format=zarr_format)
    tessarr.create_group(store, path="a", overwrite=True, zarr_format=zarr_format)
    before = documents(store)
    with pytest.raises(StaleNodeError, match="replaced"):
        array.attrs["x"] = 1
    assert documents(store) == before


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_of_a_deleted_array_do_not_come_back(zarr_format: Any) -> None:
    store = MemoryStore()
    array = tessarr.create_array(store, name="a", data=np.arange(6), zarr_format=zarr_format)
    del tessarr.open_group(store, mode="r+")["a"]
    before = documents(store)
    with pytest.raises(StaleNodeError, match="deleted") as raised:
        array.attrs["x"] = 1
    assert documents(store) == before
    assert isinstance(raised.value, ConflictError)
    assert isinstance(raised.value, NodeNotFoundError)


class Interrupted(Client):
    """A client that does something before its first write of a value called `key`."""

    def __init__(self, bucket: Bucket, key: str, action: Callable[[], object]) -> None:
        super().__init__("interrupted", bucket)
        self._key, self._action = key, action

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        if key == self._key:
            self._key = ""
            self._action()
        return super().set(key, value, if_match=if_match)


@pytest.mark.parametrize("rows", [0, 3])
def test_an_append_in_flight_does_not_raise_the_shape_of_the_array_that_replaces_its_own(rows: int) -> None:
    """`overwrite` stores the new document first, and then removes the old values, the reservations among them."""
    bucket = Bucket()
    tessarr.create_array(Client("maker", bucket), data=np.arange(6), chunks=(4,), fill_value=0, zarr_format=2)
    other = json.loads(bucket.values[".zarray"])

    def replace() -> None:
        Client("other", bucket).set(".zarray", json.dumps({**other, "shape": [rows]}).encode())

    store = Interrupted(bucket, "2", replace)
    with pytest.raises(StaleNodeError, match="another array replaced this one"):
        tessarr.open_array(store, mode="r+").append(np.full(5, 7))
    assert json.loads(bucket.values[".zarray"])["shape"] == [rows]


def test_an_append_in_flight_does_not_raise_the_shape_of_an_array_with_other_chunks() -> None:
    bucket = Bucket()
    tessarr.create_array(Client("maker", bucket), data=np.arange(6), chunks=(4,), fill_value=0, zarr_format=2)
    other = json.loads(bucket.values[".zarray"])

    def replace() -> None:
        Client("other", bucket).set(".zarray", json.dumps({**other, "chunks": [3]}).encode())

    store = Interrupted(bucket, "2", replace)
    with pytest.raises(StaleNodeError, match="another array replaced this one"):
        tessarr.open_array(store, mode="r+").append(np.full(5, 7))
    assert json.loads(bucket.values[".zarray"])["shape"] == [6]


@pytest.mark.parametrize("key", [".zarray", ".zattrs", ".tessarr_append"])
def test_a_change_during_which_a_migration_finishes_is_in_the_new_description_or_refused(key: str) -> None:
    bucket = Bucket()
    array = tessarr.create_array(Client("maker", bucket), data=np.arange(6), chunks=(4,), fill_value=0, zarr_format=2)
    array.attrs["y"] = 1
    store = Interrupted(bucket, key, lambda: migrate(Client("other", bucket)))
    array = tessarr.open_array(store, mode="r+")
    if key == ".zattrs":
        array.attrs["x"] = 1
        assert dict(tessarr.open_array(Client("reader", bucket), mode="r").attrs) == {"x": 1, "y": 1}
    elif key == ".zarray":
        array.append(np.full(5, 7))
        assert tessarr.open_array(Client("reader", bucket), mode="r").shape == (11,)
    else:
        with pytest.raises(StaleNodeError):
            array.append(np.full(5, 7))
        assert tessarr.open_array(Client("reader", bucket), mode="r")[...].tolist() == [*range(6)]
        assert "2" not in bucket.values


def test_an_append_is_in_a_description_that_a_migration_made_of_what_it_read_several_appends_before() -> None:
    """It was told of a conflict, with its rows stored: who repeats it stores them twice."""
    before = MemoryStore()
    tessarr.create_array(before, data=np.arange(6), chunks=(4,), fill_value=0, zarr_format=2)
    migrated = MemoryStore(dict(before))
    migrate(migrated)

    class Migrated(MemoryStore):
        """Where a migration stores its description just before the length 9 is stored."""

        def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
            if key == ".zarray" and json.loads(bytes(value))["shape"] == [9]:
                super().set("zarr.json", migrated["zarr.json"])
            return super().set(key, value, if_match=if_match)

    store = Migrated(dict(before))
    array = tessarr.open_array(store, mode="r+")
    array.append(np.full(2, 7))
    assert array.append(np.full(1, 8)) == (9,)
    assert [tessarr.open_array(store, mode="r", zarr_format=one).shape for one in (2, 3)] == [(9,), (9,)]


def test_a_migration_waits_for_an_append_that_is_storing_rows() -> None:
    bucket = Bucket()
    tessarr.create_array(Client("maker", bucket), data=np.arange(6), chunks=(4,), fill_value=0, zarr_format=2)
    migration = threading.Thread(target=migrate, args=(Client("other", bucket),))
    array = tessarr.open_array(Interrupted(bucket, "2", migration.start), mode="r+")
    assert array.append(np.full(5, 7)) == (11,)
    migration.join()
    assert "zarr.json" in bucket.values
    assert tessarr.open_array(Client("reader", bucket), mode="r")[...].tolist() == [*range(6), *[7] * 5]
    assert tessarr.open_array(Client("next", bucket), mode="r+").append(np.full(2, 8)) == (13,)


def test_a_migration_in_object_storage_leaves_the_old_documents_as_they_were() -> None:
    bucket = Bucket()
    tessarr.create_array(Client("maker", bucket), data=np.arange(6), chunks=(4,), fill_value=0, zarr_format=2)
    bucket.values[".zarray"] = b" " + bytes(bucket.values[".zarray"])
    before = dict(bucket.values)
    migrate(Client("other", bucket))
    assert {key: value for key, value in bucket.values.items() if key != "zarr.json"} == before


def test_nothing_is_requested_for_zarr_3() -> None:
    store = MemoryStore()
    array = tessarr.create_array(store, data=np.arange(6))
    steps = metadata_io.require_current_steps(store, "", array._metadata, "")
    with pytest.raises(StopIteration):
        steps.send(None)


def test_a_move_of_a_node_that_is_deleted_while_another_begins_there_is_an_error(tmp_path: Path) -> None:
    class Meanwhile(LocalStore):
        def rename_prefix(self, source: str, dest: str) -> bool:
            self.delete_prefix(source)
            (tmp_path / source).mkdir()
            return super().rename_prefix(source, dest)

    root = tessarr.create_group(Meanwhile(tmp_path))
    root.create_group("g")
    with pytest.raises(NodeNotFoundError):
        root.move("g", "h")
    assert "h" not in root


def test_members_of_a_group_are_consolidated_where_another_client_begins_an_array_at_its_new_place() -> None:
    class Meanwhile(MemoryStore):
        """Where an array begins where the group has gone, which its client removes when it finds the group."""

        def rename_prefix(self, source: str, dest: str) -> bool:
            done = super().rename_prefix(source, dest)
            super().set(f"{dest}.zarray", self[f"{dest}b/.zarray"])
            return done

        def list_dir(self, prefix: str) -> Listing:
            found = super().list_dir(prefix)
            super().delete(f"{prefix}.zarray")
            return found

    root = tessarr.create_group(Meanwhile(), zarr_format=2)
    root.create_group("g").create_array("b", data=np.arange(6))
    tessarr.consolidate_metadata(root.store)
    root.move("g", "n")
    assert tessarr.open_group(root.store, mode="r", use_consolidated=True)["n/b"].shape == (6,)


def test_attributes_of_an_array_that_is_deleted_meanwhile_are_not_those_of_the_next_one_there() -> None:
    bucket = Bucket()
    root = tessarr.create_group(bucket.connect("first"), zarr_format=2)
    layout: dict[str, Any] = {"shape": (2,), "chunks": (2,), "dtype": "i4"}
    root.create_array("a", **layout)

    class Meanwhile(Client):
        def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
            if key == "a/.zattrs":
                bucket.values.pop("a/.zarray", None)
            super().update(key, change)

    array = tessarr.open_array(Meanwhile("second", bucket), path="a", mode="r+")
    with pytest.raises(StaleNodeError, match="deleted"):
        array.attrs["x"] = 1
    assert [*bucket.values] == [".zgroup"]
    root.create_array("a", **layout)
    assert dict(tessarr.open_array(bucket.connect("third"), path="a", mode="r").attrs) == {}


def test_attributes_of_an_array_that_is_moved_meanwhile_move_with_it_and_the_error_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root: Any = tessarr.create_group(MemoryStore(), zarr_format=2)
    array = root.create_array("a", data=[1])
    settle = metadata_io.settle_attributes_steps

    async def late(*arguments: Any) -> Any:
        with tessarr.transaction(root.store) as tx:
            tx.group.move("a", "b")
        return await settle(*arguments)

    monkeypatch.setattr(metadata_io, "settle_attributes_steps", late)
    with pytest.raises(StaleNodeError, match=r"moved or replaced meanwhile.*its new attributes may have moved with it"):
        array.attrs["x"] = 1
    assert [*root] == ["b"]
    assert dict(root["b"].attrs) == {"x": 1}


@pytest.mark.parametrize("kind", STORES)
def test_a_group_that_was_migrated_meanwhile_makes_no_node_that_nobody_finds(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path / "data.zarr")
    tessarr.create_group(store, zarr_format=2).create_array("a", data=[1])
    old: Any = tessarr.open_group(store, mode="r+")
    migrate(store, to_format=3)
    before = sorted(store.list())
    creations: list[Callable[[], object]] = [
        lambda: old.create_array("b", data=[2]),
        lambda: old.create_array("a", data=[2], overwrite=True),
        lambda: old.create("b", shape=(1,)),
        lambda: old.create_group("g"),
        lambda: old.require_group("g"),
        lambda: old.require_array("b", shape=(1,), dtype="i4"),
    ]
    for create in creations:
        with pytest.raises(StaleNodeError, match="migrated"):
            create()
    assert sorted(store.list()) == before


@pytest.mark.parametrize("kind", STORES)
def test_a_group_that_is_migrated_before_a_node_in_it_is_written_is_a_stale_one(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = STORES[kind](tmp_path / "data.zarr")
    tessarr.create_group(store, zarr_format=2)
    old: Any = tessarr.open_group(store, mode="r+")
    look = Node._require_current_steps

    async def then_migrate(node: Node) -> None:
        await look(node)
        monkeypatch.setattr(Node, "_require_current_steps", look)
        migrate(store, to_format=3)

    for create in (old.create_group, lambda name: old.create_array(name, data=[1])):
        monkeypatch.setattr(Node, "_require_current_steps", then_migrate)
        with pytest.raises(StaleNodeError, match="migrated"):
            create("g")
        assert sorted(store.list()) == [".zgroup", "zarr.json"]
        remove_metadata(store, 3)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_created_while_its_group_is_migrated_is_found(
    kind: str, overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The migration ends between the look at the group's documents and the new node."""
    store = STORES[kind](tmp_path / "data.zarr")
    tessarr.create_group(store, zarr_format=2).create_array("a", data=[1])
    tessarr.consolidate_metadata(store)

    def then_migrate() -> None:
        look = write_new.refuse_mixing

        def refuse(*place: Any, newer: bool) -> None:
            look(*place, newer=newer)
            monkeypatch.setattr(metadata_io, "refuse_mixing", look)
            migrate(store, to_format=3)

        monkeypatch.setattr(metadata_io, "refuse_mixing", refuse)

    old: Any = tessarr.open_group(store, mode="r+")
    then_migrate()
    name = "a" if overwrite else "x/y/b"
    old.create_array(name, data=[2, 3], overwrite=overwrite)
    for use_consolidated in (False, True):
        root: Any = tessarr.open_group(store, mode="r", zarr_format=3, use_consolidated=use_consolidated)
        assert root[name][:].tolist() == [2, 3]
    with pytest.raises(StaleNodeError):
        old.create_group("g")
    remove_metadata(store, 3)
    old = tessarr.open_group(store, mode="r+")
    then_migrate()
    old.create_group("g", attributes={"n": 1})
    assert dict(tessarr.open_group(store, path="g", mode="r", zarr_format=3).attrs) == {"n": 1}


@pytest.mark.parametrize("kind", STORES)
def test_attributes_that_are_left_without_their_node_are_not_those_of_the_next_one_there(
    kind: str, tmp_path: Path
) -> None:
    """A node may be removed while its attributes are set: between the list of its keys and their removal."""
    store = STORES[kind](tmp_path / "data.zarr")
    root = tessarr.create_group(store, zarr_format=2)
    for path in ("a", "g"):
        store.set(f"{path}/.zattrs", b'{"x":1}')
    assert dict(root.create_array("a", data=[1]).attrs) == dict(root.create_group("g").attrs) == {}
    again = tessarr.open_group(store, mode="r")
    assert [dict(again[path].attrs) for path in ("a", "g")] == [{}, {}]


def test_consolidated_metadata_have_no_attributes_without_their_node() -> None:
    store = MemoryStore()
    root = tessarr.create_group(store, zarr_format=2)
    root.create_array("a", data=[1], attributes={"y": 1})
    tessarr.consolidate_metadata(store)
    del root["a"]
    store.set("a/.zattrs", b'{"x":1}')
    follow_changes(store, ["a"])
    held = store.get(".zmetadata")
    assert held is not None
    assert json.loads(bytes(held))["metadata"] == {".zgroup": {"zarr_format": 2}}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("name", ["n", "g"])
def test_the_description_that_a_migration_makes_of_a_new_node_is_not_another_node(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The migration comes between the new document and the look for documents of other names."""
    store = STORES[kind](tmp_path / "data.zarr")
    old: Any = tessarr.create_group(store, zarr_format=2)
    plain = type(store).set_if_not_exists

    def then_migrate(of: Any, key: str, value: Buffer) -> bool:
        created: bool = plain(of, key, value)
        if key in ("n/.zarray", "g/.zgroup"):
            monkeypatch.setattr(type(store), "set_if_not_exists", plain)
            migrate(store, to_format=3)
        return created

    monkeypatch.setattr(type(store), "set_if_not_exists", then_migrate)
    if name == "n":
        old.create_array("n", data=[1, 2], attributes={"_ARRAY_DIMENSIONS": ["x"]})
    else:
        old.create_group("g", attributes={"by": 1})
    assert [*tessarr.open_group(store, mode="r", zarr_format=3)] == [name]
    assert [*tessarr.open_group(store, mode="r", zarr_format=2)] == [name]


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize(
    "document",
    [
        b'{"zarr_format":3,"node_type":"group","attributes":{"other":1}}',
        b'{"zarr_format":3,"node_type":"group","attributes":{}}',
        b"no JSON",
    ],
)
def test_another_node_that_comes_beside_a_new_one_is_in_the_way(
    kind: str, document: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = STORES[kind](tmp_path / "data.zarr")
    old: Any = tessarr.create_group(store, zarr_format=2)
    plain = type(store).set_if_not_exists

    def then_other(of: Any, key: str, value: Buffer) -> bool:
        created: bool = plain(of, key, value)
        if key == "n/.zgroup":
            store.set("n/zarr.json", document)
        return created

    monkeypatch.setattr(type(store), "set_if_not_exists", then_other)
    with pytest.raises(ContainsGroupError):
        old.create_group("n", attributes={"by": 1})
    assert sorted(store.list("n/")) == ["n/zarr.json"]


def _acting(store: Any, monkeypatch: pytest.MonkeyPatch, key: str, **acts: Callable[[], object]) -> None:
    """Let others act `before` and `after` the first creation of a value called `key`."""
    plain = type(store).set_if_not_exists

    def create(of: Any, name: str, value: Buffer) -> bool:
        if name != key:
            return bool(plain(of, name, value))
        monkeypatch.setattr(type(store), "set_if_not_exists", plain)
        acts.get("before", bool)()
        created: bool = plain(of, name, value)
        acts.get("after", bool)()
        return created

    monkeypatch.setattr(type(store), "set_if_not_exists", create)


@pytest.mark.parametrize("kind", ["memory", "local"])
@pytest.mark.parametrize("what", ["a migration", "a creation"])
def test_an_array_that_is_deleted_before_it_is_described_again_does_not_come_back(
    kind: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client finds the new description, and changes it, before anybody sees that the array is gone."""
    store = STORES[kind](tmp_path / "data.zarr")
    root: Any = tessarr.create_group(store, zarr_format=2)
    acts: dict[str, Callable[[], object]] = {
        "before": lambda: store.delete_prefix("a/"),
        "after": lambda: tessarr.open_array(store, path="a", mode="r+").resize((3,)),
    }
    layout: dict[str, Any] = {"shape": (6,), "chunks": (4,), "dtype": "i4"}
    if what == "a migration":
        root.create_array("a", **layout)
        _acting(store, monkeypatch, "a/zarr.json", **acts)
        migrate(store)
    else:

        def then_migrate() -> None:
            migrate(store)
            _acting(store, monkeypatch, "a/zarr.json", **acts)

        _acting(store, monkeypatch, "a/.zarray", before=then_migrate)
        root.create_array("a", **layout)
    assert sorted(documents(store)) == [".zgroup", "zarr.json"]


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_group_that_is_replaced_by_an_equal_one_while_it_is_migrated_stays(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = STORES[kind](tmp_path / "data.zarr")
    tessarr.create_group(store, zarr_format=2).create_group("g")

    def replace() -> None:
        root: Any = tessarr.open_group(store, mode="r+")
        del root["g"]
        root.create_group("g")

    _acting(store, monkeypatch, "zarr.json", after=replace)
    migrate(store)
    assert sorted(documents(store)) == [".zgroup", "g/zarr.json", "zarr.json"]


@pytest.mark.parametrize("kind", STORES)
def test_old_documents_that_are_removed_while_a_migration_ends_take_no_new_ones_with_them(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = STORES[kind](tmp_path / "data.zarr")
    tessarr.create_group(store, zarr_format=2).create_array("a", shape=(6,), chunks=(4,), dtype="i4")
    _acting(store, monkeypatch, "zarr.json", after=lambda: remove_metadata(store, 2))
    migrate(store)
    assert sorted(documents(store)) == ["a/zarr.json", "zarr.json"]


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_of_two_migrations_the_one_that_fails_leaves_no_description_of_what_was_replaced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = STORES[kind](tmp_path / "data.zarr")
    old: Any = tessarr.create_group(store, zarr_format=2)
    old.create_group("g", attributes={"by": 1})

    plan, plans = migration._plan, []

    def replace() -> None:
        old.create_group("g", attributes={"by": 2}, overwrite=True)
        plans.append(plan(store, "", 3, False, False))  # of the other migration, which finds no new document yet
        _acting(store, monkeypatch, "zarr.json", before=lambda: migrate(store))

    monkeypatch.setattr(migration, "_plan", lambda *given: plans.pop() if plans else plan(*given))
    _acting(store, monkeypatch, "g/zarr.json", before=replace)
    with pytest.raises(ConflictError, match="at the same time"):
        migrate(store)
    assert dict(tessarr.open_group(store, path="g", mode="r", zarr_format=3).attrs) == {"by": 2}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_that_was_deleted_may_be_created_again_through_its_own_object(zarr_format: Any) -> None:
    """anndata clears the store of a group, and then requires the group ``/``."""
    store = MemoryStore()
    root = tessarr.create_group(store, zarr_format=zarr_format)
    root.create_group("a")
    store.clear()
    with tessarr.config.set({"zarr_python.absolute_names": True}):
        again = root.require_group("/")
    again.create_group("b")
    assert [*tessarr.open_group(store, mode="r")] == ["b"]


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_an_array_that_a_transaction_deletes_while_it_is_migrated_does_not_come_back(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path)
    root = tessarr.create_group(store, zarr_format=2)
    root.create_array("a", data=np.arange(6), chunks=(4,), fill_value=0)
    tx = tessarr.transaction(store).__enter__()
    del tx.group["a"]
    contextvars.Context().run(migrate, store, to_format=3)
    with pytest.raises(ConflictError) as caught:
        tx.commit()
    assert "a/zarr.json" in caught.value.keys
    assert np.array_equal(tessarr.open_array(store, path="a", mode="r")[...], np.arange(6))
