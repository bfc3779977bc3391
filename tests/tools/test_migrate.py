"""Migration of hierarchies between formats by metadata alone."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import tessarr
from tessarr import model
from tessarr.errors import MetadataValidationError, NodeNotFoundError, StoreError
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools import migrate as migration
from tessarr.tools.migrate import migrate, remove_metadata, undo
from tests.narrow import array_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
DOCUMENTS = (".zarray", ".zgroup", ".zattrs", ".zmetadata", "zarr.json", "meta", "attrs")


def contents(store: Any) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}


def chunks(store: Any) -> dict[str, bytes]:
    return {key: value for key, value in contents(store).items() if key.rpartition("/")[2] not in DOCUMENTS}


def old_tree(store: Any) -> Any:
    group = tessarr.create_group(store, zarr_format=2, attributes={"title": "x"})
    a = group.create_group("a", attributes={"n": 1})
    values = np.arange(24).reshape(4, 6)
    for name, dtype, order in (("c", "<i4", "C"), ("f", ">f8", "F")):
        array = a.create_array(name, shape=(4, 6), chunks=(3, 4), dtype=dtype, order=order)
        array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
        array[...] = values
    return group


@pytest.mark.spec("ZEP1-02", "UPG-02", "UPG-09", "UPG-10")
def test_a_hierarchy_is_described_anew_and_its_chunks_are_not_touched(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "tree")
    old_tree(store)
    before = model.from_store(store)
    files = {file: os.stat(file) for file in (tmp_path / "tree").rglob("*") if file.is_file()}
    done = migrate(store, verify="all")
    assert done.verified_chunks == 8
    assert done.written[-1] == "zarr.json"
    for file, old in files.items():
        now = os.stat(file)
        assert (now.st_ino, now.st_mtime_ns, now.st_size) == (old.st_ino, old.st_mtime_ns, old.st_size)
    opened = tessarr.open_group(store, mode="r", zarr_format=3)
    assert dict(opened.attrs) == {"title": "x"}
    for name in ("a/c", "a/f"):
        np.testing.assert_array_equal(array_of(opened[name])[...], np.arange(24).reshape(4, 6))
        assert opened[name].dimension_names == ("y", "x")
    assert model.from_store(store, zarr_format=2) == before
    assert model.from_store(store, zarr_format=3) == model.to_v3(before).spec


@pytest.mark.spec("UPG-10")
def test_a_dry_run_writes_nothing_and_lists_every_node_and_every_blocker() -> None:
    store = MemoryStore()
    old_tree(store)
    store.set(
        "a/bad/.zarray",
        json.dumps({**json.loads(contents(store)["a/c/.zarray"]), "compressor": {"id": "nope"}}).encode(),
    )
    store.set("a/worse/.zarray", b"{}")
    before = contents(store)
    plan = migrate(store, dry_run=True)
    assert contents(store) == before
    assert sorted(step.path for step in plan.steps) == ["", "a", "a/bad", "a/c", "a/f", "a/worse"]
    assert {blocker.path for blocker in plan.blockers} == {"a/bad", "a/worse"}
    report = plan.to_json()
    assert report["possible"] is False
    assert "blocked" in str(plan)
    assert json.loads(json.dumps(report)) == report
    with pytest.raises(MetadataValidationError, match="/a/bad"):
        migrate(store)
    assert contents(store) == before


@pytest.mark.spec("UPG-10")
@pytest.mark.parametrize("failing", range(1, 5))
def test_nothing_is_left_half_done_when_a_write_fails(failing: int) -> None:
    class Failing(MemoryStore):
        left = 10**9

        def set(self, key: str, value: Any, **options: Any) -> Any:
            Failing.left -= 1
            if Failing.left == 0:
                raise StoreError("disk full", key=key)
            return super().set(key, value, **options)

    store = Failing()
    old_tree(store)
    before = contents(store)
    Failing.left = failing
    with pytest.raises(StoreError, match="disk full"):
        migrate(store)
    assert contents(store) == before


@pytest.mark.spec("UPG-10")
def test_consolidated_metadata_is_carried_over(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "tree")
    old_tree(store)
    tessarr.consolidate_metadata(store)
    migrate(store)
    document = json.loads((tmp_path / "tree" / "zarr.json").read_text())
    truth = model.from_store(store, zarr_format=3, use_consolidated=False)
    flat = {path: node.documents()["zarr.json"] for path, node in model.flatten(truth).items() if path}
    assert document["consolidated_metadata"]["metadata"] == flat
    remove_metadata(store, 2)
    opened = zarr.open_group(tmp_path / "tree", mode="r", use_consolidated=True)
    np.testing.assert_array_equal(opened["a/f"][...], np.arange(24).reshape(4, 6))  # type: ignore[index]


@pytest.mark.spec("UPG-10")
def test_undo_leaves_what_was_there_before() -> None:
    store = MemoryStore()
    old_tree(store)
    tessarr.consolidate_metadata(store)
    before = contents(store)
    done = migrate(store)
    removed = undo(store)
    assert sorted(removed) == sorted(done.written)
    assert contents(store) == before


def test_undo_refuses_to_lose_nodes() -> None:
    store = MemoryStore()
    old_tree(store)
    migrate(store, remove_old=True)
    before = contents(store)
    with pytest.raises(MetadataValidationError, match="would lose nodes"):
        undo(store)
    assert contents(store) == before


@pytest.mark.spec("UPG-10")
def test_old_documents_are_removed_on_request_and_only_they() -> None:
    store = MemoryStore()
    old_tree(store)
    tessarr.consolidate_metadata(store)
    data = chunks(store)
    done = migrate(store, remove_old=True)
    assert chunks(store) == data
    assert {key.rpartition("/")[2] for key in store.list()} - {key.rpartition("/")[2] for key in data} == {"zarr.json"}
    assert ".zmetadata" in done.removed
    np.testing.assert_array_equal(tessarr.open_array(store, path="a/f", mode="r")[...], np.arange(24).reshape(4, 6))


def test_documents_that_are_there_already_block_unless_replaced() -> None:
    store = MemoryStore()
    old_tree(store)
    migrate(store)
    once = contents(store)
    with pytest.raises(NodeNotFoundError, match="already"):
        migrate(MemoryStore({"zarr.json": once["zarr.json"]}))
    plan = migrate(store, dry_run=True)
    assert {blocker.kind for blocker in plan.blockers} == {"exists"}
    migrate(store, overwrite=True)
    assert contents(store) == once


def test_values_that_would_differ_stop_the_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    from tessarr.model.conversion import upgrade

    store = MemoryStore()
    old_tree(store)
    right = upgrade.array_to_v3

    def wrong(array: Any, **options: Any) -> Any:
        made = right(array, **options)
        codecs = [codec for codec in made.metadata.codecs if codec.name != "transpose"]
        return made._replace(metadata=made.metadata.with_(codecs=tuple(codecs)))

    monkeypatch.setattr(upgrade, "array_to_v3", wrong)
    with pytest.raises(MetadataValidationError, match="values differ"):
        migrate(store)
    assert not any(key.endswith("zarr.json") for key in store.list())


@pytest.mark.spec("UPG-01")
@pytest.mark.parametrize(
    "name", ["blosc_i4_C.zarr", "blosc_i4_F.zarr", "zlib_f4_be.zarr", "none_bool.zarr", "bz2_u2.zarr"]
)
@pytest.mark.parametrize("to_format", [2, 3])
def test_what_zarr_1_wrote_becomes_v2_and_v3(name: str, to_format: Any, tmp_path: Path) -> None:
    place = tmp_path / name
    shutil.copytree(FIXTURES / "zarr-1.1.0" / name, place)
    before = tessarr.open_array(place, mode="r", zarr_format=1)[...]
    data = chunks(LocalStore(place))
    migrate(place, to_format=to_format, remove_old=True, verify="all")
    assert chunks(LocalStore(place)) == data
    np.testing.assert_array_equal(tessarr.open_array(place, mode="r")[...], before)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(zarr.open_array(place, mode="r")[...], before)


@pytest.mark.spec("ZOM-17")
def test_v3_goes_back_to_v2_where_v2_has_the_words() -> None:
    store = MemoryStore()
    old_tree(store)
    before = model.from_store(store)
    migrate(store, remove_old=True)
    migrate(store, to_format=2, remove_old=True)
    assert model.from_store(store) == before
    sharded = MemoryStore()
    tessarr.create_array(sharded, shape=(8,), chunks=(2,), shards=(4,), dtype="u1")
    with pytest.raises(MetadataValidationError, match="sharding_indexed"):
        migrate(sharded, to_format=2)
    with pytest.raises(MetadataValidationError, match="v1"):
        migrate(store, to_format=1)


def test_a_name_that_v3_reserves_blocks() -> None:
    store = MemoryStore()
    group = tessarr.create_group(store, zarr_format=2)
    group.create_group("ok")
    store.set("__cache/.zgroup", b'{"zarr_format": 2}')
    with tessarr.config.set({"strict": True}):
        plan = migrate(store, dry_run=True)
    assert [blocker.path for blocker in plan.blockers] == ["__cache"]


def test_only_what_is_below_a_path_is_migrated() -> None:
    store = MemoryStore()
    group = old_tree(store)
    done = migrate(group["a"])
    assert set(done.written) == {"a/zarr.json", "a/c/zarr.json", "a/f/zarr.json"}


GDAL = (
    "byte_cf1 nczarr_v2 order_f_u8 delta_filter_i4 shuffle fixedscaleoffset_dtype_f8_astype_u2 lz4 zstd".split()  # noqa: SIM905
)


@pytest.mark.parametrize("name", GDAL)
def test_what_gdal_tests_with_is_read_the_same_as_v3(name: str, tmp_path: Path) -> None:
    place = tmp_path / f"{name}.zarr"
    shutil.copytree(FIXTURES / "gdal" / f"{name}.zarr", place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = migrate(place, verify="all", remove_old=True)
    assert done.verified_chunks
    assert all(step.from_format == 2 for step in done.steps)


class Killed(BaseException):
    """The process is gone: nobody tidies up."""


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_killed_migration_shows_nowhere_and_is_finished_by_repeating_it_or_undone(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, whole = MemoryStore(), MemoryStore()
    old_tree(store)
    old_tree(whole)
    tessarr.consolidate_metadata(store)
    tessarr.consolidate_metadata(whole)
    migrate(whole)
    before = contents(store)
    count, put = [0], MemoryStore.set

    def set_until_killed(self: Any, key: str, value: Any, **options: Any) -> None:
        count[0] += 1
        if count[0] > after:
            raise Killed
        put(self, key, value, **options)

    def is_dead(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "set", set_until_killed)
        patch.setattr(MemoryStore, "delete", is_dead)
        patch.setattr(MemoryStore, "delete_if", is_dead)
        with pytest.raises(Killed):
            migrate(store)
    left = {key for key in contents(store) if key.endswith("zarr.json")}
    assert left
    assert "zarr.json" not in left
    root = tessarr.open_group(store, mode="r")
    assert {node.metadata.zarr_format for _, node in root.members(max_depth=None)} == {2}
    plan = migrate(store, dry_run=True)
    assert plan.blockers == []
    assert sum("stopped" in note.message for note in plan.notes) == len(left)
    twin = MemoryStore(contents(store))
    migrate(twin)
    assert contents(twin) == contents(whole)
    assert set(undo(store)) == left
    assert contents(store) == before


def test_a_part_is_not_migrated_when_the_groups_above_would_lose_it() -> None:
    store = MemoryStore()
    old_tree(store)
    before = contents(store)
    plan = migrate(store, path="a", remove_old=True, dry_run=True)
    assert ["groups above" in blocker.message for blocker in plan.blockers] == [True]
    with pytest.raises(MetadataValidationError, match="the whole hierarchy"):
        migrate(store, path="a", remove_old=True)
    assert contents(store) == before
    migrate(store)
    migrate(store, path="a", overwrite=True, remove_old=True)
    assert {key for key in contents(store) if key.startswith("a/") and ".z" in key} == set()


@pytest.mark.filterwarnings("ignore:Both zarr.json")
def test_consolidated_metadata_above_follows_what_is_migrated_and_undone_below() -> None:
    store = MemoryStore()
    old_tree(store)
    migrate(store)
    tessarr.consolidate_metadata(store, zarr_format=3)
    undo(store, path="a/c")
    assert "a/c" not in dict(tessarr.open_group(store, mode="r").members(max_depth=None))
    migrate(store, path="a/c")
    assert "a/c" in dict(tessarr.open_group(store, mode="r").members(max_depth=None))


@pytest.mark.filterwarnings("ignore:Both zarr.json")
def test_what_writers_change_in_the_old_and_in_the_new_documents_meanwhile_stays() -> None:
    store = MemoryStore()
    old_tree(store)
    plain = store.set_if_not_exists

    def beside(key: str, value: Any) -> bool:
        if key == "zarr.json":  # the last of the new documents
            store.set(".zattrs", b'{"title": "x", "old": 1, "both": 1}')
            stored = plain(key, value)
            tessarr.open_group(store, mode="r+", zarr_format=3).attrs.update({"new": 2, "both": 2})
            return stored
        return plain(key, value)

    store.set_if_not_exists = beside  # type: ignore[method-assign]
    migrate(store)
    assert dict(tessarr.open_group(store, mode="r", zarr_format=3).attrs) == {
        "title": "x",
        "old": 1,
        "new": 2,
        "both": 2,
    }


@pytest.mark.filterwarnings("ignore:Both zarr.json")
@pytest.mark.parametrize("dtype", ["<i4", "<i8"])
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_an_array_that_is_replaced_in_the_old_format_meanwhile_has_a_new_description_too(
    kind: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it the new document of the old array was removed, whether the new one would have an equal one or not."""
    store: Any = MemoryStore() if kind == "memory" else LocalStore(tmp_path / "a.zarr")
    old_tree(store)
    settle = migration._settle

    def later(*arguments: Any) -> None:
        options: Any = {"shape": (4, 6), "chunks": (3, 4), "zarr_format": 2, "overwrite": True, "fill_value": 0}
        with monkeypatch.context() as patch:  # its client has looked at the groups above before they were migrated
            patch.setattr("tessarr.core.stored.metadata_io.refuse_mixing", lambda *_, **__: None)
            tessarr.create_array(store, name="a/c", dtype=dtype, **options)[...] = 7
        settle(*arguments)

    monkeypatch.setattr(migration, "_settle", later)
    migrate(store)
    array: Any = tessarr.open_group(store, mode="r", zarr_format=3)["a/c"]
    assert (array.dtype, array[:].tolist()) == (np.dtype(dtype), [[7] * 6] * 4)
    assert sorted(tessarr.open_group(store, mode="r", zarr_format=3)["a"]) == ["c", "f"]
