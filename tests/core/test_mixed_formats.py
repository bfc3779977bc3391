"""A node of another format than the group above is not found there: it is refused, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import model
from tessarr.errors import MixedFormatsError
from tessarr.settings import config
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools.convert import convert
from tessarr.tools.migrate import migrate, undo
from tests.core.test_stale_writers import STORES, documents

pytestmark = pytest.mark.filterwarnings("ignore:Both zarr.json")

HIERARCHIES = {"v2": 3, "v3": 2, "migrated": 2, "consolidated": 2, "without old documents": 2}
"""What is there → the format of a node that is not found there."""


def make(what: str, store: Any) -> None:
    root = tessarr.create_group(store, zarr_format=3 if what == "v3" else 2)
    root.create_array("a", data=np.arange(4), chunks=(2,))
    root.create_group("g").create_array("b", data=np.arange(4), chunks=(2,))
    if what == "consolidated":
        tessarr.consolidate_metadata(store)
    if what not in ("v2", "v3"):
        migrate(store, remove_old=what == "without old documents")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return STORES[request.param](tmp_path)


@pytest.mark.parametrize("what", HIERARCHIES)
@pytest.mark.parametrize("path", ["a", "g", "g/b", "new", "g/new", "new/x"])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_node_of_another_format_than_its_group_is_refused(what: str, path: str, overwrite: bool, store: Any) -> None:
    make(what, store)
    before = documents(store)
    if not overwrite and "new" not in path:
        return
    other: Any = HIERARCHIES[what]
    spec: Any = model.GroupSpec(attributes={}, members={}, zarr_format=other)
    given: dict[str, Any] = {"path": path, "zarr_format": other, "overwrite": overwrite}
    creations: list[Callable[[], object]] = [
        lambda: tessarr.create_array(store, name=path, data=[1], zarr_format=other, overwrite=overwrite),
        lambda: tessarr.create((3,), store=store, **given),
        lambda: tessarr.create_group(store, **given),
        lambda: model.to_store(spec, store, path, overwrite=overwrite),
        lambda: tessarr.open_group(store, path=path, mode="w" if overwrite else "w-", zarr_format=other),
    ]
    for create in creations:
        with pytest.raises(MixedFormatsError, match=r"Give zarr_format=\d, or migrate the group first. Nothing was"):
            create()
        assert documents(store) == before


@pytest.mark.parametrize("what", HIERARCHIES)
def test_a_node_of_the_format_of_its_group_is_found(what: str, store: Any) -> None:
    make(what, store)
    own: Any = 5 - HIERARCHIES[what]
    tessarr.create_array(store, name="a", data=[7], zarr_format=own, overwrite=True)
    tessarr.create_group(store, path="g/new", zarr_format=own)
    root: Any = tessarr.open_group(store, mode="r")
    assert root["a"][:].tolist() == [7]
    assert sorted(root["g"]) == ["b", "new"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_part_of_a_hierarchy_that_is_migrated_by_itself_has_nodes_of_both_formats(
    zarr_format: Any, store: Any
) -> None:
    """Those of v2 are found from the root, those of v3 from the part: so while a hierarchy is migrated."""
    make("v2", store)
    migrate(store, path="g")
    tessarr.create_array(store, name="g/new", data=[7], zarr_format=zarr_format)
    top: Any = tessarr.open_group(store, path="" if zarr_format == 2 else "g", mode="r")
    assert top["g/new" if zarr_format == 2 else "new"][:].tolist() == [7]


def test_in_a_group_that_has_another_format_than_the_root_its_nodes_are_made(store: Any) -> None:
    make("v3", store)
    with config.set({"zarr_python.both_formats": True}):
        old = tessarr.create_group(store, path="old", zarr_format=2)
    old.create_array("x", data=[7])
    assert list(tessarr.open_group(store, path="old", mode="r")) == ["x"]
    with pytest.raises(MixedFormatsError):
        tessarr.create_group(store, path="old/y", zarr_format=3)


def test_a_group_that_was_opened_in_the_old_format_makes_no_node_that_only_readers_of_that_find(store: Any) -> None:
    make("migrated", store)
    old: Any = tessarr.open_group(store, mode="r+", zarr_format=2)
    before = documents(store)
    for create in (old.create_group, lambda name: old.create_array(name, data=[1], overwrite=True)):
        with pytest.raises(MixedFormatsError):
            create("new")
    with pytest.raises(MixedFormatsError):
        tessarr.copy(tessarr.create_array(None, data=[1]), old, "a", if_exists="replace")
    assert documents(store) == before
    undo(store)
    old.create_array("a", data=[5], overwrite=True)
    root: Any = tessarr.open_group(store, mode="r")
    assert root["a"][:].tolist() == [5]


def test_an_array_is_not_converted_into_a_group_of_another_format() -> None:
    store = MemoryStore()
    make("v2", store)
    before = documents(store)
    with pytest.raises(MixedFormatsError):
        convert(tessarr.create_array(None, data=[1, 2]), store, path="g/new", zarr_format=3)
    assert documents(store) == before


def test_at_the_root_any_format_may_replace_another(store: Any) -> None:
    make("migrated", store)
    tessarr.create_group(store, zarr_format=2, overwrite=True).create_array("a", data=[5])
    root: Any = tessarr.open_group(store, mode="r")
    assert (root.metadata.zarr_format, root["a"][:].tolist()) == (2, [5])


def test_it_is_made_where_the_setting_says_so_as_in_place_of_zarr_python() -> None:
    store = MemoryStore()
    make("v3", store)
    with config.set({"zarr_python.both_formats": True}):
        tessarr.create_array(store, name="new", data=[1], zarr_format=2)
    assert tessarr.open_array(store, path="new", mode="r")[:].tolist() == [1]
