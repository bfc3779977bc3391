"""What code written for zarr-python relies on, beyond names: results, errors, modes, mapping manners, copying."""

from __future__ import annotations

import asyncio
import itertools
import json
import pickle
import threading
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import tessarr as zarr
from tessarr.errors import (
    ArrayNotFoundError,
    BaseZarrError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    NodeNotFoundError,
    PickleCodecDisabledError,
    ReadOnlyError,
    UnknownCodecError,
    UnsupportedOperationError,
)
from tessarr.types import JSON
from tests.narrow import array_of, calls, numpy_of


@pytest.fixture
def root() -> zarr.Group:
    """A group with arrays and groups at two depths."""
    group = zarr.group({}, zarr_format=2)
    group.create_array("a", data=np.arange(10, dtype="i4"), chunks=(3,), attributes={"units": "K"})
    group.create_array("g/b", data=np.arange(6.0).reshape(2, 3), chunks=(1, 3))
    group["g"].attrs["k"] = [1]
    group.create_group("g/h")
    return group


# -- opening -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_open_gives_an_array_or_a_group_by_what_is_there(tmp_path: Path, zarr_format: int) -> None:
    zarr.open(tmp_path / "a", mode="w", shape=(3,), dtype="i4", zarr_format=zarr_format)
    zarr.open(tmp_path / "g", mode="w", zarr_format=zarr_format)
    for mode in ("r", "r+", "a", None):
        assert type(zarr.open(str(tmp_path / "a"), mode=mode)) is zarr.Array
        assert type(zarr.open(str(tmp_path / "g"), mode=mode)) is zarr.Group
    assert type(zarr.open(tmp_path / "new")) is zarr.Group
    assert zarr.open(tmp_path / "a", mode="r").read_only
    assert not zarr.open(tmp_path / "a", mode="r+").read_only


def test_modes_may_be_given_by_position(tmp_path: Path) -> None:
    assert type(zarr.open(tmp_path / "a", "w", shape=3, dtype="i4")) is zarr.Array
    assert zarr.open(tmp_path / "a", "r").read_only
    assert zarr.open_group(tmp_path / "g", "w").name == "/"
    assert zarr.open_array(tmp_path / "a", "r+").shape == (3,)
    zarr.group(tmp_path / "g", True)


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_what_is_missing_is_a_file_not_found_error_and_a_value_error(tmp_path: Path, mode: str) -> None:
    openers: list[tuple[Callable[..., object], type[NodeNotFoundError]]] = [
        (zarr.open, NodeNotFoundError),
        (zarr.open_group, GroupNotFoundError),
        (zarr.open_array, ArrayNotFoundError),
    ]
    for opener, error in openers:
        with pytest.raises(error) as caught:
            opener(tmp_path / "nothing", mode=mode)
        assert isinstance(caught.value, FileNotFoundError)
        assert isinstance(caught.value, ValueError)
    assert not (tmp_path / "nothing").exists()


def test_the_error_for_another_format_says_which_is_there(tmp_path: Path) -> None:
    zarr.open_group(tmp_path, mode="w", zarr_format=3)
    with pytest.raises(GroupNotFoundError, match=r"v3.*zarr_format"):
        zarr.open_group(tmp_path, mode="r", zarr_format=2)


def test_opening_the_other_kind_says_what_is_there(tmp_path: Path) -> None:
    zarr.open_group(tmp_path / "g", mode="w")
    zarr.open_array(tmp_path / "a", mode="w", shape=1, dtype="i4")
    with pytest.raises(ArrayNotFoundError, match="a group"):
        zarr.open_array(tmp_path / "g", mode="r")
    with pytest.raises(GroupNotFoundError, match="an array"):
        zarr.open_group(tmp_path / "a", mode="r")


@pytest.mark.parametrize("mode", ["w-", "x"])
def test_exclusive_modes_never_replace(tmp_path: Path, mode: str) -> None:
    zarr.open_array(tmp_path / "a", mode=mode, shape=2, dtype="i4")[:] = 7
    with pytest.raises(ContainsArrayError):
        zarr.open_array(tmp_path / "a", mode=mode, shape=2, dtype="i4")
    zarr.open_group(tmp_path / "g", mode=mode)
    with pytest.raises(ContainsGroupError):
        zarr.open_group(tmp_path / "g", mode=mode)
    assert array_of(zarr.open(tmp_path / "a", mode="r"))[:].tolist() == [7, 7]


@pytest.mark.parametrize("mode", ["a", "r+"])
def test_opening_to_change_keeps_what_is_there(tmp_path: Path, mode: str) -> None:
    zarr.open_group(tmp_path, mode="w").create_array("x", data=np.arange(3))
    assert array_of(zarr.open_group(tmp_path, mode=mode)["x"])[:].tolist() == [0, 1, 2]
    assert array_of(zarr.open(tmp_path, mode=mode)["x"])[:].tolist() == [0, 1, 2]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_is_required_by_open_consolidated(zarr_format: int) -> None:
    store: dict[str, bytes] = {}
    zarr.open_group(store, mode="w", zarr_format=zarr_format).create_array("x", data=[1, 2])
    with pytest.raises(ValueError, match="consolidated"):
        zarr.open_consolidated(store)
    assert zarr.open_group(store, mode="r").metadata.consolidated_metadata is None
    group = zarr.consolidate_metadata(store)
    assert group.metadata.consolidated_metadata is not None
    assert array_of(zarr.open_consolidated(store)["x"])[:].tolist() == [1, 2]
    assert zarr.open_group(store, use_consolidated=False).metadata.consolidated_metadata is None


def test_a_zip_file_is_opened_by_its_path(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zip")
    zarr.save(path, np.arange(5))
    assert numpy_of(zarr.load(path)).tolist() == [0, 1, 2, 3, 4]
    assert array_of(zarr.open(path, mode="r"))[3] == 3
    with zarr.ZipStore(tmp_path / "b.zip", mode="w") as store:
        zarr.group(store).create_array("x", data=np.arange(3))
    assert array_of(zarr.open_group(str(tmp_path / "b.zip"), mode="r")["x"])[1] == 1


def test_array_and_group_open_a_store() -> None:
    store = zarr.MemoryStore()
    zarr.group(store, zarr_format=2).create_array("x", data=[1, 2, 3])
    assert zarr.Array(store, path="x")[:].tolist() == [1, 2, 3]
    assert list(zarr.Group(store)) == ["x"]
    assert zarr.Array(store, "x", read_only=True, cache_metadata=False, synchronizer=None).read_only
    assert zarr.Group(store.with_read_only(True)).read_only
    assert zarr.Array.open(zarr.storage.StorePath(store, "x")).shape == (3,)


def test_a_store_for_chunks_alone_is_refused_and_the_same_store_is_not() -> None:
    store: dict[str, bytes] = {}
    zarr.open_group(store, mode="w", chunk_store=store)
    for call in calls(
        lambda: zarr.open_group(store, chunk_store={}),
        lambda: zarr.create(3, store=store, path="x", chunk_store={}),
        lambda: zarr.Group(store, chunk_store={}),
        lambda: zarr.open(store, path="y", mode="w", shape=3, chunk_store={}),
    ):
        with pytest.raises(UnsupportedOperationError, match="store of their own"):
            call()


# -- reading and writing -------------------------------------------------------------------------------------------------


def test_a_result_without_dimensions_is_a_numpy_scalar() -> None:
    z = zarr.array(np.arange(6, dtype="i2").reshape(2, 3))
    assert type(z[1, 2]) is np.int16
    assert type(z.get_basic_selection((1, 2))) is np.int16
    zero = zarr.array(np.array(1.5))
    assert type(zero[()]) is np.float64
    assert type(zero[...]) in (np.float64, np.ndarray)
    assert type(z[1]) is np.ndarray


def test_brackets_choose_the_selection_as_zarr_python_does() -> None:
    values = np.arange(24).reshape(4, 6)
    z = zarr.array(values, chunks=(2, 4))
    assert np.array_equal(z[[0, 2], :], values[[0, 2], :])
    assert np.array_equal(z[[0, 2], [1, 3]], values[[0, 2], [1, 3]])
    assert np.array_equal(z[values % 2 == 0], values[values % 2 == 0])
    assert np.array_equal(z.oindex[[0, 2], [1, 3]], values[np.ix_([0, 2], [1, 3])])
    assert np.array_equal(z.vindex[[0, 2], [1, 3]], values[[0, 2], [1, 3]])
    assert np.array_equal(z.blocks[1, 0], values[2:4, 0:4])
    one = zarr.array(np.arange(10))
    assert one[[1, 5, 3]].tolist() == [1, 5, 3]
    assert one[np.arange(10) > 7].tolist() == [8, 9]
    with pytest.raises(IndexError):
        z[4]
    assert np.array_equal(z[::-1, ::-2], values[::-1, ::-2])  # an error in zarr-python


def test_an_array_has_a_length_and_iterates_by_rows() -> None:
    values = np.arange(20).reshape(10, 2)
    z = zarr.array(values, chunks=(3, 2))
    assert len(z) == 10
    assert np.array_equal(list(z), values)
    assert np.array_equal(list(z.islice(2, 7)), values[2:7])
    assert np.array_equal(list(itertools.islice(z, 3)), values[:3])
    for call in (len, list):
        with pytest.raises(TypeError):
            call(zarr.array(np.array(1)))


def test_iterating_decodes_each_chunk_once() -> None:
    store = zarr.storage.CountingStore(zarr.MemoryStore())
    z = zarr.create_array(store, data=np.arange(100), chunks=(10,))
    store.counter.clear()
    with zarr.config.set({"engine": "reference"}):
        assert sum(1 for _ in zarr.open_array(store, mode="r")) == 100
    assert store.counter["get"] <= 12
    assert z[0] == 0


def test_numpy_takes_an_array() -> None:
    z = zarr.array(np.arange(4, dtype="i4"))
    assert np.asarray(z).tolist() == [0, 1, 2, 3]
    assert np.asarray(z, dtype="f8").dtype == np.float64
    assert z.astype("f4").dtype == np.float32
    assert (np.sum(z), np.max(z)) == (6, 3)


def test_growing_and_shrinking() -> None:
    z = zarr.create_array({}, shape=(4, 4), chunks=(2, 2), dtype="i4", fill_value=-1)
    z[:] = 1
    z.resize((6, 4))
    assert z.shape == (6, 4)
    z.resize(2, 3)
    assert z.shape == (2, 3)
    assert z.append(np.zeros((2, 3), "i4")) == (4, 3)
    assert z.append(np.ones((4, 1), "i4"), axis=1) == (4, 4)
    z.shape = (1, 4)
    assert z[:].tolist() == [[1, 1, 1, 1]]
    with pytest.raises(ValueError, match="shape"):
        z.append(np.zeros((2, 7), "i4"))


def test_an_array_is_assigned_from_an_array() -> None:
    source = zarr.array(np.arange(12).reshape(3, 4), chunks=(2, 2))
    z = zarr.zeros((3, 4), chunks=(3, 1), dtype="i8")
    z[:] = source
    assert np.array_equal(z[:], source[:])


def test_the_older_maker_takes_the_older_keywords(tmp_path: Path) -> None:
    store: dict[str, bytes] = {}
    z = zarr.create(
        (4, 4),
        chunks=(2, 2),
        dtype="<i4",
        compressor=numcodecs.Zlib(3),
        fill_value=7,
        order="F",
        store=store,
        synchronizer=zarr.ThreadSynchronizer(),
        overwrite=True,
        path="p",
        filters=[numcodecs.Delta("<i4")],
        cache_metadata=True,
        cache_attrs=True,
        read_only=False,
        dimension_separator="/",
        write_empty_chunks=True,
        zarr_version=2,
        meta_array=None,
    )
    z[:] = 7
    document = json.loads(store["p/.zarray"])
    assert document["compressor"] == {"id": "zlib", "level": 3}
    assert document["filters"] == [numcodecs.Delta("<i4").get_config()]
    assert (document["order"], document["dimension_separator"]) == ("F", "/")
    assert {"p/0/0", "p/1/1"} <= store.keys()
    assert z.compressor == numcodecs.Zlib(3)
    with pytest.raises(TypeError, match="compresor"):
        zarr.create(3, compresor=None)
    sync = zarr.ProcessSynchronizer(str(tmp_path / "sync"))
    opened = zarr.open_array(tmp_path / "x", mode="w", shape=3, dtype="i4", synchronizer=sync)
    opened[:] = 1
    assert zarr.open_group(tmp_path / "g", mode="w", synchronizer=sync).synchronizer is None


def test_chunks_true_false_and_none_mean_what_they_meant() -> None:
    assert zarr.create((100, 100), chunks=False).chunks == (100, 100)
    assert zarr.create((10, 10), chunks=True).chunks
    assert zarr.create((10, 10), chunks=None).chunks
    assert zarr.create((10, 10), chunks=5).chunks == (5, 5)
    assert zarr.create((10, 10), chunks=(5, -1)).chunks == (5, 10)


def test_objects_need_a_codec_that_says_what_they_are() -> None:
    z = zarr.create(3, dtype=object, object_codec=numcodecs.VLenUTF8(), zarr_format=2)
    z[:] = ["a", "bb", "ccc"]
    assert z[:].tolist() == ["a", "bb", "ccc"]
    ragged = zarr.create(2, dtype=object, object_codec=numcodecs.VLenArray("i4"), zarr_format=2)
    ragged[0] = np.array([1, 2, 3], "i4")
    assert ragged[0].tolist() == [1, 2, 3]
    ragged[:] = [np.array([4, 5], "i4"), np.array([6, 7], "i4")]
    assert [row.tolist() for row in ragged[:]] == [[4, 5], [6, 7]]
    words = zarr.create(2, dtype=object, object_codec=numcodecs.JSON(), zarr_format=2)
    rows: list[JSON] = [{"a": 1}, [1, "b"]]
    words[:] = rows
    assert words[:].tolist() == [{"a": 1}, [1, "b"]]
    words[0] = [1, 2]
    assert words[0] == [1, 2]
    with pytest.raises(BaseZarrError):
        zarr.create(3, dtype=object, zarr_format=2)
    with pytest.raises(PickleCodecDisabledError):
        zarr.create(3, dtype=object, object_codec=numcodecs.Pickle(), zarr_format=2)
    assert zarr.create(3, dtype=str)[0] == ""


def test_views_of_v2_arrays_share_chunks() -> None:
    z = zarr.array(np.array([1, -1], "i4"), zarr_format=2, compressor=None)
    view = z.view(dtype="u4")
    assert view[:].tolist() == [1, 2**32 - 1]
    assert view.is_view
    assert not z.is_view
    assert z.view(read_only=True).read_only
    z[0] = 5
    assert view[0] == 5
    with pytest.raises(UnsupportedOperationError, match="v2"):
        zarr.array([1]).view(dtype="u8")


# -- groups --------------------------------------------------------------------------------------------------------------


def test_a_group_is_a_mapping(root: zarr.Group) -> None:
    assert sorted(root) == sorted(root.keys()) == ["a", "g"]
    assert len(root) == 2
    assert "a" in root
    assert "g/b" in root
    assert "nothing" not in root
    assert root.get("nothing") is None
    assert root.get("nothing", 5) == 5
    assert {name: type(node) for name, node in root.items()} == {"a": zarr.Array, "g": zarr.Group}
    assert dict(root).keys() == {"a", "g"}
    assert [type(node) for node in root.values()] == [zarr.Array, zarr.Group]
    assert root["/g/b"] == root["g"]["b"] == root["g/b"]
    with pytest.raises(KeyError):
        root["nothing"]
    root["new"] = np.arange(3)
    assert array_of(root["new"])[:].tolist() == [0, 1, 2]
    del root["new"]
    assert "new" not in root
    with pytest.raises(KeyError):
        del root["new"]


def test_a_group_is_true_even_when_it_is_empty_of_members_only_by_length(root: zarr.Group) -> None:
    assert len(root["g/h"]) == 0
    assert list(root["g/h"]) == []


def test_members_go_as_deep_as_asked(root: zarr.Group) -> None:
    assert isinstance(root.members(), tuple)
    assert [path for path, _ in root.members()] == ["a", "g"]
    assert sorted(path for path, _ in root.members(max_depth=1)) == ["a", "g", "g/b", "g/h"]
    assert sorted(dict(root.members(max_depth=None))) == ["a", "g", "g/b", "g/h"]
    assert root.nmembers(max_depth=None) == 4
    assert [name for name, _ in root.groups()] == list(root.group_keys()) == ["g"]
    assert [name for name, _ in root.arrays()] == list(root.array_keys()) == ["a"]
    assert [node.path for node in root.array_values()] == ["a"]
    assert sorted(root.array_keys(recurse=True)) == ["a", "b"]


def test_the_older_makers_of_groups(root: zarr.Group) -> None:
    d = root.create_dataset("d", shape=(4,), dtype="i4", chunks=2, compressor=numcodecs.BZ2(), fill_value=3)
    assert d.compressor == numcodecs.BZ2()
    assert root.create_dataset("e", data=np.arange(3)).shape == (3,)
    assert root.require_dataset("d", shape=(4,), dtype="i4")[0] == 3
    with pytest.raises(TypeError, match="shape"):
        root.require_dataset("d", shape=(5,), dtype="i4")
    with pytest.raises(TypeError, match="dtype"):
        root.require_dataset("d", shape=(4,), dtype="i2", exact=True)
    assert root.array("f", np.arange(2)).shape == (2,)
    assert root.zeros("z", shape=3)[:].tolist() == [0, 0, 0]
    assert root.ones("o", (2,), dtype="i4")[:].tolist() == [1, 1]
    assert root.full("u", 9, shape=2, dtype="i4")[:].tolist() == [9, 9]
    assert root.full(name="v", shape=2, fill_value=8)[0] == 8
    assert root.zeros_like("zl", d).chunks == (2,)
    assert [g.name for g in root.create_groups("p", "q")] == ["/p", "/q"]
    assert [g.name for g in root.require_groups("p", "q")] == ["/p", "/q"]
    with pytest.raises(ContainsArrayError):
        root.require_group("d")
    assert root.d == d
    assert "d" in dir(root)
    assert "d" in root._ipython_key_completions_()
    with pytest.raises(AttributeError):
        root.nothing  # noqa: B018 - what is tested


def test_visitors_see_every_node_until_they_return_something(root: zarr.Group) -> None:
    seen: list[str] = []
    root.visit(seen.append)
    assert seen == ["a", "g", "g/b", "g/h"]
    assert (
        root.visititems(lambda path, node: path if isinstance(node, zarr.Array) and node.ndim == 2 else None) == "g/b"
    )
    assert root.visitvalues(lambda node: node.name if node.name.endswith("h") else None) == "/g/h"


def test_moving(root: zarr.Group) -> None:
    root.move("a", "g/c")
    assert array_of(root["g/c"])[3] == 3
    assert "a" not in root
    with pytest.raises(NodeNotFoundError):
        root.move("a", "b")
    with pytest.raises(BaseZarrError):
        root.move("g/c", "g/b")


def test_trees_are_drawn(root: zarr.Group) -> None:
    drawn = str(root.tree())
    assert drawn == "/\n├── a (10,) int32\n└── g\n    ├── b (2, 3) float64\n    └── h"
    assert str(zarr.tree(root, level=1)) == "/\n├── a (10,) int32\n└── g"
    assert "more than 2" in str(root.tree(max_nodes=2))


def test_load_gives_arrays_and_groups_as_numpy(root: zarr.Group) -> None:
    loaded: Any = zarr.load(root.store)
    assert loaded["a"].tolist() == list(range(10))
    assert loaded["g"]["b"].shape == (2, 3)
    assert numpy_of(zarr.load(root.store, path="g/b")).shape == (2, 3)
    store: dict[str, bytes] = {}
    zarr.save(store, np.arange(2), np.arange(3), x=np.arange(4))
    saved: Any = zarr.load(store)
    assert {name: len(values) for name, values in saved.items()} == {"arr_0": 2, "arr_1": 3, "x": 4}
    with pytest.raises(ValueError, match="at least one"):
        zarr.save_group(store)


def test_read_only_nodes_refuse_every_change(root: zarr.Group) -> None:
    group = zarr.open_group(root.store, mode="r")
    for change in (
        lambda: array_of(group["a"]).__setitem__(0, 1),
        lambda: group["a"].resize(3),
        lambda: group["a"].append([1]),
        lambda: group["a"].attrs.update(x=1),
        lambda: group.attrs.__setitem__("x", 1),
        lambda: group.create_group("n"),
        lambda: group.create_array("n", shape=1, dtype="i4"),
        lambda: group.__delitem__("a"),
        lambda: group.move("a", "b"),
    ):
        with pytest.raises(ReadOnlyError) as caught:
            change()
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, PermissionError)


def test_nodes_are_context_managers_that_close_their_store(tmp_path: Path) -> None:
    with zarr.open_group(zarr.ZipStore(tmp_path / "a.zip", mode="w"), mode="w") as group:
        group["x"] = np.arange(3)
    with zarr.open(tmp_path / "a.zip", mode="r") as again:
        assert array_of(again["x"])[2] == 2
    with zarr.open_array(zarr.ZipStore(tmp_path / "b.zip", mode="w"), mode="w", shape=2, dtype="i4") as z:
        z[:] = 4
    assert numpy_of(zarr.load(tmp_path / "b.zip")).tolist() == [4, 4]


# -- attributes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_are_a_mapping_that_is_stored(zarr_format: int) -> None:
    store: dict[str, bytes] = {}
    z = zarr.create_array(store, shape=2, dtype="i4", zarr_format=zarr_format, attributes={"a": 1})
    assert isinstance(z.attrs, MutableMapping)
    z.attrs["b"] = {"c": {"d": 1}}
    z.attrs["b"]["c"]["d"] = 2
    z.attrs.update(e=[1], f=None)
    z.attrs["e"].append(2)
    assert z.attrs.setdefault("g", 5) == 5
    del z.attrs["f"]
    expected = {"a": 1, "b": {"c": {"d": 2}}, "e": [1, 2], "g": 5}
    assert z.attrs.asdict() == zarr.open_array(store).attrs.asdict() == expected
    z.attrs.put({"only": 1})
    assert dict(zarr.open_array(store).attrs) == {"only": 1}
    assert z.update_attributes({"more": 2}) is z or z.attrs["more"] == 2
    assert dict(zarr.open_array(store).attrs) == {"only": 1, "more": 2}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_numpy_values_become_plain_ones_in_attributes(zarr_format: int) -> None:
    z = zarr.create_array({}, shape=2, dtype="i4", zarr_format=zarr_format)
    z.attrs["a"] = np.float32(0.5)
    z.attrs["b"] = np.arange(3, dtype="u1")
    z.attrs["c"] = (np.int64(1), [np.bool_(True)])
    assert z.attrs.asdict() == {"a": 0.5, "b": [0, 1, 2], "c": [1, [True]]}
    assert type(z.attrs["a"]) is float


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("value", [float("nan"), np.float32("inf"), object(), {1, 2}, b"bytes"])
def test_what_json_cannot_hold_is_a_type_error_and_changes_nothing(zarr_format: int, value: Any) -> None:
    z = zarr.create_array({}, shape=2, dtype="i4", zarr_format=zarr_format, attributes={"a": 1})
    with pytest.raises(TypeError, match="JSON") as caught:
        z.attrs["b"] = value
    if isinstance(value, float):
        assert "allow_nan" in str(caught.value)  # what to do instead
    assert dict(z.attrs) == {"a": 1}
    with pytest.raises(TypeError):
        z.attrs.put({"b": value})
    assert dict(zarr.open_array(z.store).attrs) == {"a": 1}


# -- copying -------------------------------------------------------------------------------------------------------------


def test_copy_takes_an_array_or_a_tree_and_counts(root: zarr.Group) -> None:
    dest = zarr.group(zarr_format=2)
    counts = zarr.copy(root["g"], dest, name="copied")
    assert counts == (3, 0, root["g/b"].nbytes)
    assert np.array_equal(array_of(dest["copied/b"])[:], array_of(root["g/b"])[:])
    assert dest["copied"].attrs["k"] == [1]
    assert zarr.copy(root["a"], dest) == (1, 0, root["a"].nbytes)
    assert dest["a"].chunks == root["a"].chunks
    assert dest["a"].attrs["units"] == "K"
    with pytest.raises(BaseZarrError):
        zarr.copy(root["a"], dest)
    assert zarr.copy(root["a"], dest, if_exists="skip") == (0, 1, 0)
    assert zarr.copy(root["a"], dest, if_exists="replace", chunks=5)[0] == 1
    assert dest["a"].chunks == (5,)
    assert dict(dest["a"].attrs) == {"units": "K"}
    zarr.copy(root["a"], dest, name="bare", without_attrs=True)
    assert dict(dest["bare"].attrs) == {}


def test_copy_all_copies_members_and_dry_run_nothing(root: zarr.Group) -> None:
    log: list[str] = []
    dest = zarr.group(zarr_format=2)
    assert zarr.copy_all(root, dest, dry_run=True, log=log.append)[0] == 4
    assert len(dest) == 0
    assert any("a" in line for line in log)
    zarr.copy_all(root, dest)
    assert [path for path, _ in dest.members(None)] == [path for path, _ in root.members(None)]
    other = zarr.group(zarr_format=2)
    zarr.copy_all(root, other, shallow=True)
    assert sorted(other) == ["a", "g"]
    assert len(other["g"]) == 0


def test_copy_store_copies_keys_and_bytes() -> None:
    source = {"a/x": b"1", "a/y": b"22", "b/z": b"333"}
    dest: dict[str, bytes] = {}
    assert zarr.copy_store(source, dest) == (3, 0, 6)
    assert {key: bytes(value) for key, value in dest.items()} == source
    with pytest.raises(BaseZarrError, match="exist at the destination"):
        zarr.copy_store(source, dest)
    assert zarr.copy_store(source, dest, if_exists="skip") == (0, 3, 0)
    assert zarr.copy_store(source, dest, if_exists="replace") == (3, 0, 6)
    part: dict[str, bytes] = {}
    assert zarr.copy_store(source, part, source_path="a", dest_path="new", excludes="y") == (1, 0, 1)
    assert sorted(part) == ["new/x"]
    assert zarr.copy_store(source, {}, includes=[r"^a/"], dry_run=True)[:2] == (2, 0)


# -- stores, codecs and names of zarr-python 2 ---------------------------------------------------------------------------


def test_the_functions_on_stores(tmp_path: Path) -> None:
    from tessarr import storage

    store = storage.DirectoryStore(str(tmp_path / "s"))
    storage.init_group(store, zarr_format=2)
    storage.init_array(store, shape=4, chunks=2, dtype="i4", path="x", zarr_format=2)
    assert storage.contains_group(store)
    assert storage.contains_array(store, "x")
    assert not storage.contains_array(store, "y")
    assert not storage.contains_group(store, "x")
    assert storage.listdir(store) == [".zgroup", "x"]
    assert storage.getsize(store, "x") > 0
    storage.rename(store, "x", "y")
    assert storage.listdir(store) == [".zgroup", "y"]
    storage.rmdir(store, "y")
    assert storage.listdir(store) == [".zgroup"]


def test_a_v1_array_becomes_a_v2_array_in_place() -> None:
    store: dict[str, bytes] = {}
    with pytest.warns(zarr.errors.ZarrDeprecationWarning):
        zarr.create((4,), chunks=(2,), dtype="<i4", store=store, zarr_format=1, compression="zlib", attributes={"a": 1})
    zarr.open_array(store)[:] = [1, 2, 3, 4]
    zarr.storage.migrate_1to2(store)
    assert sorted(store) == [".zarray", ".zattrs", "0", "1"]
    z = zarr.open_array(store, mode="r")
    assert z.metadata.zarr_format == 2
    assert z[:].tolist() == [1, 2, 3, 4]
    assert dict(z.attrs) == {"a": 1}


def test_a_consolidated_metadata_store_answers_from_one_key(root: zarr.Group) -> None:
    zarr.consolidate_metadata(root.store)
    counted = zarr.storage.CountingStore(root.store)
    store = zarr.storage.ConsolidatedMetadataStore(counted)
    root.store.delete("a/.zarray")
    assert array_of(zarr.open_group(store, mode="r", use_consolidated=False)["a"])[3] == 3
    assert zarr.Group(store).read_only
    with pytest.raises(ReadOnlyError):
        store.set("x", b"")
    with pytest.raises(FileNotFoundError, match="consolidated"):
        zarr.storage.ConsolidatedMetadataStore({})


def test_stores_that_tessarr_has_not_say_so() -> None:
    with pytest.raises(UnsupportedOperationError, match="GPU"):
        zarr.storage.GpuMemoryStore("place")


def test_synchronizers_lock(tmp_path: Path) -> None:
    for sync in (zarr.ThreadSynchronizer(), zarr.ProcessSynchronizer(str(tmp_path))):
        inside: list[int] = []
        most: list[int] = []

        def work(sync: Any = sync, inside: list[int] = inside, most: list[int] = most) -> None:
            for _ in range(20):
                with sync["key"]:
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert max(most) == 1
        assert len(most) == 80


def test_codecs_are_registered_and_found_by_zarr_python_s_names() -> None:
    from tessarr import registry
    from tessarr.abc.codec import BytesBytesCodec

    assert registry.get_codec_class("gzip") is zarr.codecs.GzipCodec
    with pytest.raises(UnknownCodecError, match="frobnicate"):
        registry.get_codec_class("frobnicate")
    assert registry.get_numcodec({"id": "zlib", "level": 1}) == numcodecs.Zlib(1)
    with pytest.raises(UnknownCodecError, match="frobnicate"):
        registry.get_numcodec({"id": "frobnicate"})
    with pytest.raises(PickleCodecDisabledError):
        registry.get_numcodec({"id": "pickle"})
    for given in ("abc", ["ab"]):
        with pytest.raises(ValueError, match="must be an object, such as"):
            registry.get_numcodec(given)  # type: ignore[arg-type]

    class Flip(BytesBytesCodec):
        """Every bit the other way round."""

        name = "test.flip"

        @classmethod
        def from_json(cls, configuration: Any) -> Flip:  # noqa: ARG003 - the contract's argument
            return cls()

        def to_json(self) -> dict[str, Any]:
            return {"name": "test.flip"}

        def encoded_size(self, nbytes: int) -> int:
            return nbytes

        def encode(self, data: Any) -> bytes:
            return (~np.frombuffer(data, "u1")).tobytes()

        def decode(self, data: Any, nbytes: int | None) -> bytes:
            return (~np.frombuffer(data, "u1")).tobytes()

    registry.register_codec("test.flip", Flip)
    assert registry.get_codec_class("test.flip") is Flip
    store: dict[str, bytes] = {}
    z = zarr.create_array(store, data=np.arange(3, dtype="u1"), compressors=[Flip()])
    assert bytes(store["c/0"]) == bytes([255, 254, 253])
    assert zarr.open_array(store, mode="r")[:].tolist() == [0, 1, 2]
    assert z.compressors[0].to_dict() == {"name": "test.flip"}
    with pytest.raises(BaseZarrError, match="contract"):
        registry.register_codec("test.other", dict)
    for accepted in (registry.register_pipeline, registry.register_buffer, registry.register_ndbuffer):
        accepted(object)
    with pytest.raises(UnsupportedOperationError):
        registry.get_pipeline_class()
    assert registry.get_chunk_key_encoding_class("v2").__name__ == "V2KeyEncoding"
    with pytest.raises(KeyError):
        registry.get_chunk_key_encoding_class("frobnicate")


def test_enumerations_stand_for_their_strings() -> None:
    codecs = zarr.codecs
    blosc = codecs.BloscCodec(cname=codecs.BloscCname.zstd, shuffle=codecs.BloscShuffle.bitshuffle)
    sharded = codecs.ShardingCodec(chunk_shape=(2,), index_location=codecs.ShardingCodecIndexLocation.start)
    store: dict[str, bytes] = {}
    z = zarr.create_array(
        store, shape=4, chunks=2, dtype="i4", compressors=blosc, serializer=codecs.BytesCodec(endian=codecs.Endian.big)
    )
    z[:] = [1, 2, 3, 4]
    names = {codec["name"]: codec.get("configuration") for codec in json.loads(store["zarr.json"])["codecs"]}
    assert names["bytes"] == {"endian": "big"}
    assert (names["blosc"]["cname"], names["blosc"]["shuffle"]) == ("zstd", "bitshuffle")
    assert zarr.open_array(store)[:].tolist() == [1, 2, 3, 4]
    configuration = sharded.to_dict()["configuration"]
    assert isinstance(configuration, dict)
    assert configuration["index_location"] == "start"


def test_nodes_and_stores_are_pickled_and_equal(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path, mode="w")
    z = group.create_array("x", data=np.arange(4), chunks=2)
    for thing in (z, group, z.store, z.store_path, z.compressors[0], z.serializer, z.metadata, z.fill_value, z.config):
        assert pickle.loads(pickle.dumps(thing)) == thing
    assert pickle.loads(pickle.dumps(z))[:].tolist() == [0, 1, 2, 3]
    pickle.dumps(zarr.storage.LocalStore)


def test_the_asynchronous_forms_give_the_same() -> None:
    async def run() -> None:
        group = await zarr.api.asynchronous.open_group({}, mode="w")
        assert isinstance(group, zarr.AsyncGroup)
        z = await group.create_array("x", shape=(4,), chunks=(2,), dtype="i4")
        await z.setitem(slice(None), np.arange(4))
        assert (await z.getitem(slice(1, 3))).tolist() == [1, 2]
        assert (await z.oindex.getitem([0, 3])).tolist() == [0, 3]
        assert [name async for name, _ in group.members()] == ["x"]
        # Synchronous calls within a running loop.
        assert zarr.open_array(group.store, path="x")[:].tolist() == [0, 1, 2, 3]

    asyncio.run(run())
    asyncio.run(run())
