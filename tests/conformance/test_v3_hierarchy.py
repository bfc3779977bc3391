"""Zarr v3: the tree of nodes, their names and paths."""

from __future__ import annotations

import os
import pathlib
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import (
    ContainsArrayError,
    ContainsGroupError,
    MetadataValidationError,
    NodeNameError,
    NodeNotFoundError,
    ZarrRuntimeWarning,
    ZarrUserWarning,
)
from tessarr.stores.path import is_recommended_name
from tessarr.tools.check import check
from tests.conformance.documents import GROUP, array_document, opened, regular, store_of, stored_json
from tests.narrow import array_of, bytes_of, group_of


@pytest.mark.spec("V3-HIER-01")
def test_the_root_may_be_a_group_or_an_array_and_only_groups_have_children() -> None:
    assert isinstance(tessarr.open(store_of({"": GROUP}), mode="r"), tessarr.Group)
    root = opened(array_document((4,)))
    assert isinstance(root, tessarr.Array)
    with pytest.raises(IndexError):
        root["x"]


@pytest.mark.spec("V3-HIER-02")
@pytest.mark.parametrize("first", ["array", "group"])
@pytest.mark.parametrize("second", ["array", "group"])
def test_two_siblings_cannot_share_a_name(first: str, second: str) -> None:
    root = tessarr.group({})

    def create(kind: str) -> Any:
        return root.create_array("x", shape=2, dtype="i1") if kind == "array" else root.create_group("x")

    create(first)
    with pytest.raises(ContainsArrayError if first == "array" else ContainsGroupError):
        create(second)
    assert isinstance(root["x"], tessarr.Array if first == "array" else tessarr.Group)


@pytest.mark.spec("V3-HIER-03", "V3-HIER-05", "V3-NAME-01")
def test_paths_are_the_parents_path_and_the_name() -> None:
    root = tessarr.group({})
    bar = root.create_group("foo").create_array("bar", shape=2, dtype="i1")
    assert (root.name, root.basename) == ("/", "")
    assert (root["foo"].name, root["foo"].basename) == ("/foo", "foo")
    assert (bar.name, bar.basename) == ("/foo/bar", "bar")
    assert root["foo/bar"] == bar
    assert [name for name, _ in group_of(root["foo"]).arrays()] == ["bar"]
    assert [name for name, _ in root.groups()] == ["foo"]


@pytest.mark.spec("V3-HIER-04", "V3-NAME-02", "V3-NAME-03")
@pytest.mark.parametrize("path", ["foo/bar/", "/foo/bar", "//foo//bar//", "foo/bar"])
def test_slashes_at_the_ends_and_doubled_ones_vanish(path: str) -> None:
    store: dict[str, bytes] = {}
    z = tessarr.create_array(store, name=path, shape=2, dtype="i1")
    z[...] = 1
    assert z.name == "/foo/bar"
    assert sorted(store) == ["foo/bar/c/0", "foo/bar/zarr.json", "foo/zarr.json", "zarr.json"]


@pytest.mark.spec("V3-NAME-03")
def test_a_name_with_a_slash_makes_two_levels() -> None:
    root = tessarr.group({})
    root.create_group("a/b")
    assert list(root) == ["a"]
    assert list(root["a"]) == ["b"]


@pytest.mark.spec("V3-HIER-06")
def test_an_array_without_dimensions_holds_one_element() -> None:
    z = opened(array_document((), ()), {"c": np.array(7, "<i4").tobytes()})
    assert (z.shape, z.size, z.ndim) == ((), 1, 0)
    assert z[()] == 7
    z[...] = 8
    assert array_of(tessarr.open(z.store))[()] == 8


@pytest.mark.spec("V3-HIER-07")
def test_an_array_may_have_no_elements() -> None:
    z = opened(array_document((0, 5), (1, 5)))
    assert z.size == 0
    assert z[...].shape == (0, 5)
    assert z[...].dtype == np.int32
    assert opened(array_document((3, 5))).size == 15


@pytest.mark.spec("V3-HIER-08")
@pytest.mark.parametrize(("shape", "chunks"), [([5], [0]), ([5, 0], [0, 1]), ([5], [-1])])
def test_a_chunk_length_of_zero_on_an_axis_with_elements_is_refused(shape: list[int], chunks: list[int]) -> None:
    with pytest.raises(MetadataValidationError, match="chunk_shape"):
        opened(array_document(shape, chunks))


@pytest.mark.spec("V3-HIER-08")
def test_the_legacy_chunk_length_zero_on_an_empty_axis_is_read_as_one_unless_strict() -> None:
    document = array_document((0, 3), (0, 3))
    with pytest.warns(ZarrRuntimeWarning, match="length 0"):
        z = opened(document)
    assert z.chunks == (1, 3)
    with tessarr.config.set({"strict": True}), pytest.raises(MetadataValidationError, match="chunk_shape"):
        opened(document)


@pytest.mark.spec("V3-HIER-08")
@pytest.mark.parametrize("chunks", ["auto", -1, (1,)])
def test_the_writer_never_makes_chunks_of_length_zero(chunks: Any) -> None:
    store: dict[str, bytes] = {}
    tessarr.create_array(store, shape=(0,), chunks=chunks, dtype="f4")
    assert stored_json(store)["chunk_grid"]["configuration"]["chunk_shape"][0] >= 1


@pytest.mark.spec("V3-HIER-08")
def test_asking_for_chunks_of_length_zero_is_an_error() -> None:
    with pytest.raises(ValueError, match="chunk"):
        tessarr.create_array({}, shape=(5,), chunks=(0,), dtype="f4")


@pytest.mark.spec("V3-HIER-09")
@pytest.mark.parametrize("path", ["z/x", "z/x/y"])
@pytest.mark.parametrize("kind", ["array", "group"])
def test_an_array_cannot_get_children(path: str, kind: str) -> None:
    store: dict[str, bytes] = {}
    tessarr.create_array(store, name="z", shape=2, dtype="i1")
    before = dict(store)
    root = tessarr.open_group(store, mode="r+")
    with pytest.raises(ContainsArrayError, match="/z"):
        root.create_array(path, shape=2, dtype="i1") if kind == "array" else root.create_group(path)
    assert store == before


FORBIDDEN = [".", "..", "...", "....", "__zarr", "__zarr_x", "zarr.json"]


@pytest.mark.spec("V3-NAME-04", "V3-NAME-05", "V3-NAME-06", "V3-NAME-11")
@pytest.mark.parametrize("name", FORBIDDEN)
@pytest.mark.parametrize("below", ["", "/x"], ids=["last", "inside"])
def test_reserved_names_are_refused_before_anything_is_written(name: str, below: str) -> None:
    store: dict[str, bytes] = {}
    root = tessarr.group(store)
    before = dict(store)
    with pytest.raises(NodeNameError):
        root.create_group(name + below)
    with pytest.raises(NodeNameError):
        root.create_array(name + below, shape=2, dtype="i1")
    assert store == before


@pytest.mark.spec("V3-NAME-05")
@pytest.mark.parametrize("name", ["__foo", "__", "__xarray_dataarray_variable__"])
def test_names_with_two_underscores_work_with_a_warning_and_are_refused_when_strict(name: str) -> None:
    store: dict[str, bytes] = {}
    root = tessarr.group(store)
    with pytest.warns(ZarrUserWarning, match="reserves"):
        root.create_array(name, shape=2, dtype="i1")[...] = 1
    with pytest.warns(ZarrUserWarning, match="reserves"):
        assert list(root) == [name]
    openings: list[Callable[[], object]] = [
        lambda: tessarr.open_group(store, mode="r")[name],
        lambda: tessarr.open_array(store, path=name, mode="r"),
        lambda: tessarr.open(store, path=name, mode="r"),
        lambda: dict(tessarr.open_group(store, mode="r").members())[name],
    ]
    for opening in openings:
        with pytest.warns(ZarrUserWarning, match="reserves"):
            found = opening()
        assert array_of(found)[...].tolist() == [1, 1]
    findings = [finding for finding in check(store).findings if finding.rule == "DOC-NAME"]
    assert [finding.path for finding in findings] == [name]
    with tessarr.config.set({"strict": True}):
        assert list(tessarr.open_group(store, mode="r")) == []
        with pytest.raises(NodeNameError, match="reserved"):
            tessarr.open_array(store, path=name, mode="r")
        for other in (name, "__other"):
            with pytest.raises(NodeNameError, match="reserved"):
                root.create_group(other)


@pytest.mark.spec("V3-NAME-04", "V3-NAME-05", "V3-NAME-07")
@pytest.mark.parametrize("name", [".a", "a.", "a...", "_foo", "a__", "ä b:c", "Zarr.json", "c", "0"])
def test_other_names_are_allowed(name: str, tmp_path: pathlib.Path) -> None:
    store: dict[str, bytes] | str
    for store in ({}, str(tmp_path / "h.zarr")):
        root = tessarr.group(store)
        root.create_array(name, shape=2, dtype="i1")[...] = 1
        assert list(root) == [name]
        assert array_of(root[name])[...].tolist() == [1, 1]


@pytest.mark.spec("V3-NAME-07")
def test_a_name_that_the_file_system_cannot_hold_is_an_error_that_names_it(tmp_path: pathlib.Path) -> None:
    root = tessarr.group(str(tmp_path / "h.zarr"))
    with pytest.raises(tessarr.errors.TessarrError, match=r"n{60}"):
        root.create_group("n" * 300)
    assert list(root) == []


@pytest.mark.spec("V3-NAME-08")
def test_names_differ_by_case() -> None:
    root = tessarr.group({})
    root.create_array("foo", shape=1, dtype="i1")[...] = 1
    root.create_array("FOO", shape=1, dtype="i1")[...] = 2
    assert list(root) == ["FOO", "foo"]
    assert (array_of(root["foo"])[0], array_of(root["FOO"])[0]) == (1, 2)


@pytest.mark.spec("V3-NAME-09")
def test_names_are_never_normalised() -> None:
    composed, decomposed = "\u00e9", "e\u0301"
    root = tessarr.group({})
    root.create_group(composed)
    root.create_group(decomposed)
    assert sorted(root) == sorted([composed, decomposed])
    assert not is_recommended_name(decomposed)
    assert is_recommended_name(composed)


@pytest.mark.spec("V3-NAME-10")
def test_names_are_stored_as_utf_8(tmp_path: pathlib.Path) -> None:
    tessarr.create_group(str(tmp_path / "h"), path="Ünï/日本")
    if os.name != "nt":
        assert b"\xc3\x9cn\xc3\xaf" in os.listdir(os.fsencode(tmp_path / "h"))
    with tessarr.open_group(str(tmp_path / "h.zip"), mode="w") as root:
        root.create_group("Ünï")
    with zipfile.ZipFile(tmp_path / "h.zip") as archive:
        assert "Ünï/zarr.json" in archive.namelist()
        assert "Ünï/zarr.json".encode() in (tmp_path / "h.zip").read_bytes()


@pytest.mark.spec("V3-NAME-11")
def test_files_of_extensions_are_no_children_and_survive_rewrites() -> None:
    store = store_of({"": GROUP, "g": GROUP}, {"g/__ext/x": b"1", "g/__ext/zarr.json": b"{}", "__more": b"2"})
    root = tessarr.open_group(store, mode="r+")
    assert list(root["g"]) == []
    assert [path for path, _ in root.members(None)] == ["g"]
    root["g"].attrs["a"] = 1
    tessarr.consolidate_metadata(store)
    group_of(root["g"]).create_array("z", shape=2, dtype="i1")
    assert (store["g/__ext/x"], store["__more"]) == (b"1", b"2")
    with pytest.raises(KeyError):
        root["g"]["nothing"]
    del root["g"]
    assert sorted(store) == ["__more", "zarr.json"]


# -- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("V3-KEY-01", "V3-KEY-02", "V3-GMETA-04", "V3-OPS-02")
def test_keys_are_the_path_without_its_slash_and_then_the_name() -> None:
    store: dict[str, bytes] = {}
    tessarr.create_group(store, path="/foo/bar")
    z = tessarr.create_array(store, name="/foo/baz", shape=(2, 2), chunks=(1, 1), dtype="i1")
    assert sorted(store) == ["foo/bar/zarr.json", "foo/baz/zarr.json", "foo/zarr.json", "zarr.json"]
    z[1, 0] = 1
    assert set(store) - {"foo/bar/zarr.json", "foo/baz/zarr.json", "foo/zarr.json", "zarr.json"} == {"foo/baz/c/1/0"}


@pytest.mark.spec("V3-KEY-02")
def test_a_root_array_has_no_prefix() -> None:
    store: dict[str, bytes] = {}
    tessarr.create_array(store, shape=(2, 2), chunks=(1, 1), dtype="i1")[1, 0] = 1
    assert sorted(store) == ["c/1/0", "zarr.json"]


@pytest.mark.spec("V3-KEY-03")
@pytest.mark.parametrize("name", ["h", "h.zarr", "h.anything"])
def test_a_directory_may_have_any_name(name: str, tmp_path: pathlib.Path) -> None:
    tessarr.create_array(str(tmp_path / name), shape=2, dtype="i1")
    assert (tmp_path / name / "zarr.json").exists()
    assert tessarr.open(str(tmp_path / name), mode="r").shape == (2,)


@pytest.mark.spec("V3-KEY-04")
def test_v3_wins_over_v2_at_one_path_with_a_warning() -> None:
    v2 = tessarr.create_array({}, shape=(9,), dtype="i1", zarr_format=2)
    store = store_of({"": array_document((4,))}, {".zarray": bytes_of(v2.store.get(".zarray"))})
    with pytest.warns(tessarr.errors.ZarrUserWarning, match=r"Both zarr\.json .* Zarr v3 will be used"):
        z = tessarr.open(store, mode="r")
    assert (z.zarr_format, z.shape) == (3, (4,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tessarr.open(store, mode="r", zarr_format=2).shape == (9,)
        assert tessarr.open(store, mode="r", zarr_format=3).shape == (4,)


@pytest.mark.spec("V3-GMETA-04")
def test_a_directory_without_a_document_is_no_group(tmp_path: pathlib.Path) -> None:
    tessarr.create_group(str(tmp_path / "h"))
    (tmp_path / "h" / "bare").mkdir()
    (tmp_path / "h" / "bare" / "file").write_bytes(b"1")
    root = tessarr.open_group(str(tmp_path / "h"), mode="r")
    assert list(root) == []
    assert "bare" not in root
    with pytest.raises(NodeNotFoundError):
        tessarr.open(str(tmp_path / "h" / "bare"), mode="r")


@pytest.mark.spec("V3-GMETA-04", "V3-OPS-01", "V3-OPS-02")
@pytest.mark.parametrize("kind", ["array", "group"])
def test_creating_a_node_creates_the_groups_above_it(kind: str) -> None:
    store = store_of({"": {**GROUP, "attributes": {"kept": 1}}})
    before = store["zarr.json"]
    if kind == "array":
        tessarr.create_array(store, name="a/b/c", shape=4, chunks=2, dtype="i1")
    else:
        tessarr.create_group(store, path="/a/b/c")
    assert sorted(store) == ["a/b/c/zarr.json", "a/b/zarr.json", "a/zarr.json", "zarr.json"]
    assert store["zarr.json"] == before
    assert stored_json(store, "a/b") == {**GROUP, "attributes": {}}


@pytest.mark.spec("V3-GMETA-01", "V3-GMETA-02", "V3-GMETA-03")
def test_a_group_document_has_a_format_a_type_and_perhaps_attributes() -> None:
    assert opened(GROUP).attrs.asdict() == {}
    assert opened({**GROUP, "attributes": {"spam": "ham", "eggs": 42}}).attrs.asdict() == {"spam": "ham", "eggs": 42}


@pytest.mark.spec("V3-GMETA-01")
@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"node_type": "group"}, "zarr_format"),
        ({"zarr_format": 3}, "node_type"),
        ({**GROUP, "zarr_format": "3"}, "zarr_format"),
        ({**GROUP, "zarr_format": 4}, "zarr_format"),
        ({**GROUP, "node_type": "dataset"}, "node_type"),
        ({**GROUP, "attributes": []}, "attributes"),
        ({**GROUP, "attributes": None}, "attributes"),
        ([], "object"),
    ],
)
def test_a_wrong_group_document_is_refused_naming_the_member(document: Any, named: str) -> None:
    with pytest.raises(MetadataValidationError, match=named) as raised:
        tessarr.open_group(store_of({"g": document}), path="g", mode="r")
    assert raised.value.path == "/g"


BLOCK = {"kind": "inline", "must_understand": False, "metadata": {"a": GROUP}}


@pytest.mark.spec("V3-GMETA-05")
def test_consolidated_metadata_is_used_where_it_can_be() -> None:
    root = tessarr.open_group(store_of({"": {**GROUP, "consolidated_metadata": BLOCK}}), mode="r")
    assert list(root) == ["a"]
    assert root.metadata.consolidated_metadata is not None


@pytest.mark.spec("V3-GMETA-05")
@pytest.mark.parametrize("block", [None, {**BLOCK, "kind": "other"}])
def test_consolidated_metadata_of_another_kind_is_ignored(block: Any) -> None:
    store = store_of({"": {**GROUP, "consolidated_metadata": block}, "b": array_document((2,))})
    root = tessarr.open_group(store, mode="r")
    assert list(root) == ["b"]
    assert root.metadata.consolidated_metadata is None


@pytest.mark.spec("V3-GMETA-05")
def test_consolidated_metadata_is_written_as_an_object_without_a_name() -> None:
    store = store_of({"": GROUP, "g": GROUP, "g/z": array_document((2,))})
    tessarr.consolidate_metadata(store)
    block = stored_json(store)["consolidated_metadata"]
    assert {name: value for name, value in block.items() if name != "metadata"} == {
        "kind": "inline", "must_understand": False,
    }  # fmt: skip
    assert list(block["metadata"]) == ["g", "g/z"]
    assert block["metadata"]["g/z"]["chunk_grid"] == regular([2])


@pytest.mark.spec("V3-GMETA-05")
def test_consolidated_metadata_that_must_be_understood_is_refused() -> None:
    with pytest.raises(MetadataValidationError, match="consolidated_metadata"):
        opened({**GROUP, "consolidated_metadata": {**BLOCK, "must_understand": True}})
