"""Zarr v2 hierarchies, line by line: which keys a group or array makes, and what is a node."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tessarr as zarr
from tessarr.errors import (
    ContainsArrayError,
    ContainsGroupError,
    KeyValidationError,
    MetadataValidationError,
    NodeNameError,
    NodeNotFoundError,
    ZarrRuntimeWarning,
    ZarrUserWarning,
)

ZGROUP = b'{"zarr_format": 2}'


@pytest.mark.spec("V2-47", "V2-48")
@pytest.mark.parametrize("path", ["foo/bar/baz", "/foo/bar/baz/", "\\foo\\\\bar//baz/", "foo///bar\\baz"])
def test_paths_are_normalised(path: str) -> None:
    store: dict[str, bytes] = {}
    zarr.create_group(store, path=path, zarr_format=2)
    assert sorted(store) == [".zgroup", "foo/.zgroup", "foo/bar/.zgroup", "foo/bar/baz/.zgroup"]


@pytest.mark.spec("V2-47")
@pytest.mark.parametrize("path", ["", "/", "///", "\\"])
def test_only_slashes_are_the_root(path: str) -> None:
    store: dict[str, bytes] = {}
    zarr.create_group(store, path=path, zarr_format=2)
    assert sorted(store) == [".zgroup"]


@pytest.mark.spec("V2-49")
@pytest.mark.parametrize("path", ["foo/../bar", ".", "a/./b", "..", "a\\..\\b"])
def test_dot_segments_are_refused(path: str) -> None:
    store: dict[str, bytes] = {}
    with pytest.raises((NodeNameError, KeyValidationError)):
        zarr.create_group(store, path=path, zarr_format=2)
    assert store == {}
    for good in ("...", ".hidden", "a..b"):
        assert zarr.create_group({}, path=good, zarr_format=2).path == good


@pytest.mark.spec("V2-50")
def test_a_group_is_where_a_zgroup_is() -> None:
    store = {".zgroup": ZGROUP, "a/.zgroup": ZGROUP, "b/file": b"", "c/d/.zgroup": ZGROUP}
    root = zarr.open_group(store, mode="r")
    assert list(root) == ["a"]
    assert "b" not in root
    assert "c" not in root
    assert "c/d" in root
    for path in ("b", "c"):
        with pytest.raises(NodeNotFoundError):
            zarr.open(store, path=path, mode="r")


@pytest.mark.spec("V2-51")
def test_a_group_brings_groups_at_all_its_ancestors() -> None:
    store: dict[str, bytes] = {}
    zarr.create_group(store, path="foo/bar", zarr_format=2)
    assert sorted(store) == [".zgroup", "foo/.zgroup", "foo/bar/.zgroup"]
    other: dict[str, bytes] = {}
    zarr.group(other, zarr_format=2).create_group("foo/bar")
    assert sorted(other) == sorted(store)


@pytest.mark.spec("V2-52")
def test_an_array_brings_groups_at_all_its_ancestors() -> None:
    store: dict[str, bytes] = {}
    zarr.create(shape=(2,), dtype="i4", store=store, path="foo/bar/baz", zarr_format=2)
    assert sorted(store) == [".zgroup", "foo/.zgroup", "foo/bar/.zgroup", "foo/bar/baz/.zarray"]


@pytest.mark.spec("V2-53")
def test_ancestors_that_are_there_stay_as_they_are() -> None:
    before = {".zgroup": b'{\n "zarr_format":2 }', "foo/.zgroup": ZGROUP + b"\n", "foo/.zattrs": b'{"a":  1}'}
    store = dict(before)
    zarr.create(shape=(2,), dtype="i4", store=store, path="foo/bar/baz", zarr_format=2)
    zarr.create_group(store, path="foo/other", zarr_format=2)
    assert {key: store[key] for key in before} == before


@pytest.mark.spec("V2-54")
def test_nothing_can_be_below_an_array() -> None:
    store: dict[str, bytes] = {}
    zarr.create(shape=(2,), dtype="i4", store=store, path="foo", zarr_format=2)
    before = dict(store)
    with pytest.raises(ContainsArrayError, match="foo"):
        zarr.create(shape=(2,), dtype="i4", store=store, path="foo/bar", zarr_format=2)
    with pytest.raises(ContainsArrayError, match="foo"):
        zarr.create_group(store, path="foo/bar/baz", zarr_format=2)
    assert store == before


@pytest.mark.spec("V2-54")
def test_a_node_is_not_replaced_by_the_other_kind_unless_asked() -> None:
    store: dict[str, bytes] = {}
    root = zarr.group(store, zarr_format=2)
    root.create_array("x", shape=(2,), dtype="i4")
    root.create_group("g")
    with pytest.raises(ContainsArrayError):
        root.create_group("x")
    with pytest.raises(ContainsGroupError):
        root.create_array("g", shape=(2,), dtype="i4")
    root.create_group("x", overwrite=True)
    root.create_array("g", shape=(2,), dtype="i4", overwrite=True)
    assert sorted(store) == [".zgroup", "g/.zarray", "x/.zgroup"]


@pytest.mark.spec("V2-54")
def test_of_an_array_and_a_group_at_one_path_the_array_is_read_with_a_warning() -> None:
    store: dict[str, bytes] = {}
    zarr.create(shape=(2,), dtype="i4", store=store, path="x", zarr_format=2)
    store["x/.zgroup"] = ZGROUP
    with pytest.warns(ZarrUserWarning, match="array"):
        assert isinstance(zarr.open(store, path="x", mode="r"), zarr.Array)


@pytest.mark.spec("V2-55")
def test_a_zgroup_holds_its_format_and_nothing_else() -> None:
    store: dict[str, bytes] = {}
    zarr.create_group(store, zarr_format=2, attributes={"a": 1})
    assert json.loads(store[".zgroup"]) == {"zarr_format": 2}


@pytest.mark.spec("V2-55")
def test_other_members_of_a_zgroup_are_read_with_a_warning() -> None:
    store = {".zgroup": b'{"zarr_format": 2, "foo": 1}'}
    with pytest.warns(ZarrRuntimeWarning, match="foo"):
        assert isinstance(zarr.open_group(store, mode="r"), zarr.Group)


@pytest.mark.spec("V2-55")
def test_other_members_of_a_zgroup_are_an_error_in_strict_mode() -> None:
    with zarr.config.set({"strict": True}), pytest.raises(MetadataValidationError, match="foo"):
        zarr.open_group({".zgroup": b'{"zarr_format": 2, "foo": 1}'}, mode="r")


@pytest.mark.spec("V2-55")
@pytest.mark.parametrize("wrong", [{"zarr_format": 1}, {"zarr_format": 3}, {}, {"zarr_format": "2"}, [], None])
def test_a_zgroup_of_another_format_is_an_error(wrong: Any) -> None:
    with pytest.raises(MetadataValidationError, match=r"zarr_format|\.zgroup"):
        zarr.open_group({".zgroup": json.dumps(wrong).encode()}, mode="r")


@pytest.mark.spec("V2-56")
def test_the_members_of_a_group_are_its_direct_children() -> None:
    store: dict[str, bytes] = {}
    zarr.create_group(store, path="foo/bar", zarr_format=2)
    zarr.create(shape=(2,), dtype="i4", store=store, path="foo/baz", zarr_format=2)
    zarr.create(shape=(2,), dtype="i4", store=store, path="foo/bar/deeper", zarr_format=2)
    members = dict(zarr.open_group(store, path="foo", mode="r").members())
    assert {name: type(node) for name, node in members.items()} == {"bar": zarr.Group, "baz": zarr.Array}
    assert members["bar"].path == "foo/bar"
