"""Which documents a transaction changes, and the copies of documents in consolidated metadata."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tessarr.transactions.document_merge import (
    is_consolidated,
    is_document,
    makes_node,
    newly_consolidated,
    other_descriptions,
    removed,
    resized,
    with_copies,
)


def stored(**members: object) -> bytes:
    return json.dumps(members).encode()


@pytest.mark.parametrize(
    ("name", "document", "node"),
    [
        ("zarr.json", True, True), (".zarray", True, True), (".zgroup", True, True), (".zattrs", True, False),
        (".zmetadata", True, False), ("meta", True, True), ("attrs", True, False), ("0.0", False, False),
    ],
)  # fmt: skip
def test_documents_are_told_by_the_last_part_of_their_keys(name: str, document: bool, node: bool) -> None:
    for prefix in ("", "a/", "zarr.json/b/"):
        assert is_document(prefix + name) is document
        assert makes_node(prefix + name) is node
    assert not is_document(name + "/c")
    assert not makes_node(name + "/c")


def test_a_node_may_have_documents_of_other_formats() -> None:
    assert other_descriptions(["a/b/zarr.json", "c/.zarray", "c/.zgroup", ".zattrs", "d/0"]) == {
        "a/b/.zarray", "a/b/.zgroup", "a/b/meta", "c/zarr.json", "c/meta"
    }  # fmt: skip
    assert other_descriptions(["zarr.json"]) == {".zarray", ".zgroup", "meta"}


def test_an_array_is_resized_where_its_document_has_another_shape() -> None:
    two, three, other = stored(shape=[2], n=1), stored(shape=[3], n=1), stored(shape=[2], n=2, SHAPE=[3])
    before = {"a/b/zarr.json": two, "c/.zarray": two, "zarr.json": two, "c/0": two}
    assert resized({"a/b/zarr.json": three, "c/.zarray": other, "c/0": three, "new/zarr.json": three}, before) == {
        "a/b"
    }
    assert resized({"a/b/zarr.json": None, "c/.zarray": three, "zarr.json": three}, before) == {"c", ""}


def test_a_node_is_removed_with_the_document_of_an_array() -> None:
    changes = {"a/b/zarr.json": None, "c/.zarray": None, "d/meta": None, "e/.zgroup": None, "f/0": None}
    assert removed({**changes, "g/zarr.json": b"{}"}) == {"a/b", "c", "d"}
    assert removed({"zarr.json": None}) == {""}


V3 = stored(zarr_format=3, consolidated_metadata={"metadata": {"a": {"n": 1}, "b/c": {"n": 2}}})
V2 = stored(metadata={"a/.zarray": {"n": 1}, "a/.zattrs": {"n": 2}})


def test_documents_with_consolidated_metadata() -> None:
    assert is_consolidated("g/zarr.json", V3)
    assert is_consolidated("g/zarr.json", memoryview(V3))
    assert is_consolidated("g/.zmetadata", b"{}")
    assert is_consolidated("zarr.json", V3)
    assert not is_consolidated("g/zarr.json", b"{}")
    assert not is_consolidated("g/.zattrs", V3)
    assert not is_consolidated("g/zarr.json", None)
    assert not is_consolidated(".zmetadata", None)


def test_consolidated_metadata_are_new_where_there_were_none() -> None:
    changes = {"zarr.json": V3, "a/zarr.json": V3, "b/.zmetadata": V2, "c/zarr.json": b"{}", "d/zarr.json": None}
    assert newly_consolidated(changes, {"zarr.json": b"{}", "a/zarr.json": V3}) == ["zarr.json", "b/.zmetadata"]
    assert newly_consolidated({"c/0": V3, "zarr.json": 5}, {}) == []


def copied(key: str, document: bytes, nodes: dict[str, bytes]) -> Any:
    found = with_copies(key, document, nodes)
    return json.loads(found)["metadata" if key.endswith(".zmetadata") else "consolidated_metadata"]


@pytest.mark.parametrize("prefix", ["", "g/", "g/h/"])
def test_copies_of_documents_are_those_of_the_transaction(prefix: str) -> None:
    nodes = {
        f"{prefix}a/zarr.json": stored(n="é", consolidated_metadata={"metadata": {}}),
        f"{prefix}new/zarr.json": stored(n=4),
        f"{prefix}zarr.json": V3,
        "other/a/zarr.json": stored(n=5),
        "other/b/c/zarr.json": stored(n=5),
    }
    found = with_copies(f"{prefix}zarr.json", V3, nodes)
    assert json.loads(found) == {
        "zarr_format": 3, "consolidated_metadata": {"metadata": {"a": {"n": "é"}, "b/c": {"n": 2}}}
    }  # fmt: skip
    assert "é".encode() in found


@pytest.mark.parametrize("prefix", ["", "g/"])
def test_attributes_of_format_2_may_have_a_member_that_is_called_as_consolidated_metadata(prefix: str) -> None:
    nodes = {f"{prefix}a/{name}": stored(n=3, consolidated_metadata=1) for name in (".zarray", ".zattrs", ".zgroup")}
    assert copied(f"{prefix}.zmetadata", V2, nodes) == {
        "a/.zarray": {"n": 3}, "a/.zattrs": {"n": 3, "consolidated_metadata": 1}
    }  # fmt: skip


def test_documents_without_that_member_are_copied_too() -> None:
    assert copied("zarr.json", V3, {"a/zarr.json": stored(n=7)})["metadata"]["a"] == {"n": 7}


def test_numbers_that_json_lacks_stay() -> None:
    nodes = {"a/.zattrs": b'{"n": NaN}'}
    assert with_copies(".zmetadata", V2, nodes) == b'{"metadata": {"a/.zarray": {"n": 1}, "a/.zattrs": {"n": NaN}}}'


@pytest.mark.parametrize(
    ("key", "document", "nodes"),
    [
        ("zarr.json", V3, {}),
        ("zarr.json", V3, {"zarr.json": b"{}"}),
        ("g/zarr.json", V3, {"a/zarr.json": b"{}"}),
        ("zarr.json", b'{"n":1}', {"a/zarr.json": b"{}"}),
        ("zarr.json", b'{"consolidated_metadata":null}', {"a/zarr.json": b"{}"}),
        ("zarr.json", b'{"consolidated_metadata":{"metadata":[]}}', {"a/zarr.json": b"{}"}),
        (".zmetadata", b"[]", {"a/.zarray": b"{}"}),
        (".zmetadata", b"{}", {"a/.zarray": b"{}"}),
    ],
)
def test_a_document_without_such_copies_stays_byte_for_byte(key: str, document: bytes, nodes: dict[str, bytes]) -> None:
    assert with_copies(key, document, nodes) is document
