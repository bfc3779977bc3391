"""The modes of opening, as one state machine: what is there × how it is opened × in which mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import (
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    MetadataValidationError,
    MixedFormatsError,
    NodeNotFoundError,
    ReadOnlyError,
)
from tessarr.stores.memory.store import MemoryStore
from tests.narrow import array_of

MODES = ("r", "r+", "a", "w", "w-", "x")
NEW: dict[str, Any] = {"shape": (3,), "dtype": "f4", "chunks": (3,)}
Opener = Callable[..., Any]


def make(what: str, path: str) -> dict[str, bytes]:
    """A store with `what` ("missing", "array2" …) at `path`."""
    store: dict[str, bytes] = {}
    kind, zarr_format = what[:-1], what[-1]
    if kind == "array":
        z = tessarr.create_array(
            store, name=path, shape=(4,), chunks=(2,), dtype="i4", zarr_format=int(zarr_format), attributes={"old": 1}
        )
        z[...] = [1, 2, 3, 4]
    elif kind == "group":
        root = tessarr.create_group(store, path=path, zarr_format=int(zarr_format), attributes={"old": 1})
        root.create_array("member", shape=(2,), dtype="i1")[...] = 1
    return store


def opened(opener: str, store: Any, **keywords: Any) -> Any:
    """By `tessarr.open`, asking for an array or a group where one must be made, `open_array` or `open_group`."""
    if opener == "open":
        return tessarr.open(store, **keywords)
    if opener == "open for an array":
        return tessarr.open(store, **keywords, **NEW)
    if opener == "open_array":
        return tessarr.open_array(store, **keywords, **NEW)
    return tessarr.open_group(store, **keywords)


def expected(what: str, opener: str, mode: str) -> Any:
    """An error class, or what comes out: "old" or a new "array" or "group"."""
    makes = "array" if opener in ("open_array", "open for an array") else "group"
    there = what[:-1] if what != "missing" else None
    if mode in ("r", "r+", "a"):
        if there is None:
            missing = {"open_array": ArrayNotFoundError, "open_group": GroupNotFoundError}
            return makes if mode == "a" else missing.get(opener, NodeNotFoundError)
        if opener in ("open_array", "open for an array") and there == "group":
            return ArrayNotFoundError
        if opener == "open_group" and there == "array":
            return GroupNotFoundError
        return "old"
    if mode in ("w-", "x") and there is not None:
        return ContainsArrayError if there == "array" else ContainsGroupError
    return makes


@pytest.mark.parametrize("path", ["", "a/b"], ids=["root", "below"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opener", ["open", "open for an array", "open_array", "open_group"])
@pytest.mark.parametrize("what", ["missing", "array3", "group3", "array2", "group2"])
def test_what_a_mode_does(what: str, opener: str, mode: str, path: str) -> None:
    store = make(what, path)
    before = dict(store)
    outcome = expected(what, opener, mode)
    if outcome in ("array", "group") and path and what[-1] == "2":  # a new node of v3 is not found in a group of v2
        outcome = MixedFormatsError
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            opened(opener, store, mode=mode, path=path)
        assert store == before
        return
    node = opened(opener, store, mode=mode, path=path)
    assert node.path == path
    if outcome == "old":
        assert store == before
        assert node.attrs.asdict() == {"old": 1}
        assert node.zarr_format == int(what[-1])
        assert isinstance(node, tessarr.Array if what.startswith("array") else tessarr.Group)
        if isinstance(node, tessarr.Array):
            assert node[...].tolist() == [1, 2, 3, 4]
    else:
        assert isinstance(node, tessarr.Array if outcome == "array" else tessarr.Group)
        assert node.attrs.asdict() == {}
        assert node.zarr_format == 3
        assert not [key for key in store if "member" in key or key.endswith(("c/0", ".zarray"))]
    assert node.read_only == (mode == "r")
    if mode == "r":
        with pytest.raises(ReadOnlyError):
            node.attrs["new"] = 1
        assert store == before
    else:
        node.attrs["new"] = 1
        assert tessarr.open(store, path=path, mode="r").attrs["new"] == 1


@pytest.mark.parametrize("opener", ["open", "open_array", "open_group"])
def test_without_a_mode_a_place_is_opened_to_change_and_a_read_only_store_to_read(opener: str) -> None:
    what = "array3" if opener == "open_array" else "group3"
    values = make(what, "")
    assert not opened(opener, values).read_only
    assert opened(opener, MemoryStore(values, read_only=True)).read_only
    with pytest.raises(NodeNotFoundError):
        opened(opener, MemoryStore(read_only=True))


@pytest.mark.parametrize("opener", ["open", "open_array", "open_group"])
@pytest.mark.parametrize("mode", ["", "rw", "R", "w+", 1, "wb"])
def test_another_mode_is_an_error(opener: str, mode: Any) -> None:
    store = make("array3", "")
    before = dict(store)
    with pytest.raises(ValueError, match="mode"):
        opened(opener, store, mode=mode)
    assert store == before


@pytest.mark.parametrize("mode", ["w", "a", "r+", "w-"])
def test_a_read_only_store_is_never_written(mode: str) -> None:
    values = make("array3", "")
    before = dict(values)
    store = MemoryStore(values, read_only=True)
    for opener in ("open_array", "open_group"):
        try:
            node = opened(opener, store, mode=mode)
        except (ReadOnlyError, NodeNotFoundError, ContainsArrayError):
            continue
        assert node.read_only
        with pytest.raises(ReadOnlyError):
            node[...] = 1
    assert values == before


@pytest.mark.parametrize("mode", ["w", "a", "w-"])
@pytest.mark.parametrize(
    "wrong",
    [{"dtype": "no such"}, {"shape": (-1,)}, {"chunks": (0,)}, {"fill_value": "x"}, {"attributes": {"a": {1}}},
     {"codecs": ["unknown"]}, {"dimension_names": ["a", "b"]}, {"shards": {}}],
    ids=repr,
)  # fmt: skip
def test_nothing_changes_when_what_is_asked_for_is_not_valid(mode: str, wrong: dict[str, Any]) -> None:
    for what in ("array3", "group3", "array2", "missing"):
        store = make(what, "x")
        before = dict(store)
        path = "x" if mode == "w" else "new/x"
        with pytest.raises((ValueError, TypeError)):
            tessarr.open_array(store, path=path, mode=mode, **{**NEW, **wrong})
        assert store == before


def test_nothing_changes_when_a_document_there_is_broken() -> None:
    store = make("array3", "")
    store["zarr.json"] = b"{"
    before = dict(store)
    for mode in ("r", "r+", "a"):
        for opener in ("open", "open for an array", "open_array", "open_group"):
            with pytest.raises(MetadataValidationError):
                opened(opener, store, mode=mode)
    for opener in ("open_array", "open_group"):
        with pytest.raises((ContainsGroupError, ContainsArrayError)):
            opened(opener, store, mode="w-")
    assert store == before
    opened("open_array", store, mode="w")
    assert list(store) == ["zarr.json"]


def test_replacing_a_node_removes_all_that_was_below_it_in_any_format() -> None:
    for what in ("group2", "group3", "array2", "array3"):
        store = make(what, "a/b")
        above = {key for key in store if not key.startswith("a/b/")}
        tessarr.open_array(store, path="a/b", mode="w", zarr_format=int(what[-1]), **NEW)
        document = "zarr.json" if what.endswith("3") else ".zarray"
        assert {key for key in store if key not in above} <= {f"a/b/{document}", "a/b/.zattrs"}
        assert np.all(array_of(tessarr.open(store, path="a/b", mode="r"))[...] == 0)


def test_a_format_that_is_not_there_is_not_opened_and_says_which_is() -> None:
    store = make("array2", "")
    with pytest.raises(NodeNotFoundError, match="v2"):
        tessarr.open(store, mode="r", zarr_format=3)
    with pytest.raises(NodeNotFoundError, match="v2"):
        tessarr.open_array(store, mode="r+", zarr_format=3)
    assert tessarr.open(store, mode="r", zarr_format=2).shape == (4,)


def test_an_array_or_group_in_place_of_a_store_is_where_paths_begin() -> None:
    store = make("group3", "g")
    group = tessarr.open_group(store, path="g", mode="r+")
    assert tessarr.open(group, path="member", mode="r").path == "g/member"
    assert tessarr.open_group(group, path="new", mode="a").path == "g/new"
    with pytest.raises(ContainsArrayError):
        tessarr.open_group(tessarr.open(group, path="member"), path="x", mode="a")


@pytest.mark.parametrize("opening", [tessarr.open, tessarr.open_array])
def test_a_config_object_and_an_older_keyword_may_come_together(opening: Callable[..., tessarr.Array]) -> None:
    store = MemoryStore()
    given = tessarr.create_array(store, shape=(2,), dtype="i1").config
    array = opening(store, config=replace(given, order="F"), write_empty_chunks=True)
    assert (array.config.order, array.config.write_empty_chunks) == ("F", True)
