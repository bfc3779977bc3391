"""Arrays and groups of zarr-python are places: tessarr opens what they are over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import tessarr
import tessarr.dask
import tessarr.zarr_python
from tessarr.stores.local.store import LocalStore
from tessarr.stores.virtual.zarr_python import ZarrPythonStore

VALUES = np.arange(12, dtype="i4").reshape(3, 4)


@pytest.fixture(params=["local", "memory", "logging"])
def group(request: pytest.FixtureRequest, tmp_path: Path) -> zarr.Group:
    stores: dict[str, Any] = {
        "local": lambda: zarr.storage.LocalStore(tmp_path / "a"),
        "memory": zarr.storage.MemoryStore,
        "logging": lambda: zarr.storage.LoggingStore(zarr.storage.LocalStore(tmp_path / "a"), log_level="ERROR"),
    }
    made = zarr.create_group(stores[request.param]()).create_group("g")
    made.create_array("v", data=VALUES, chunks=(2, 4), dimension_names=("y", "x"))
    return made


def test_arrays_and_groups_are_opened(group: zarr.Group) -> None:
    theirs = group["v"]
    assert isinstance(theirs, zarr.Array)
    for place in (theirs, theirs.async_array):
        opened = tessarr.open(place)
        assert isinstance(opened, tessarr.Array)
        assert np.array_equal(opened[...], VALUES)
        assert id(opened.store) == id(theirs.store)
    assert np.array_equal(tessarr.open_group(group).get_array("v")[...], VALUES)
    assert np.array_equal(tessarr.open_array(group, path="v")[1], VALUES[1])
    tessarr.open_array(theirs, mode="r+")[0, 0] = 99
    assert theirs[0, 0] == 99
    with pytest.raises(tessarr.errors.ReadOnlyError):
        tessarr.open_array(theirs, mode="r")[0, 0] = 1


def test_known_stores_are_unwrapped(group: zarr.Group, tmp_path: Path) -> None:
    store = tessarr.open_group(group)._store
    wrapped = type(group.store).__name__ == "LoggingStore"
    assert isinstance(store, ZarrPythonStore) is wrapped
    if type(group.store).__name__ == "LocalStore":
        assert isinstance(store, LocalStore)
        assert store.root == tmp_path / "a"


def test_dask_and_xarray_take_them(group: zarr.Group) -> None:
    theirs = group["v"]
    assert isinstance(theirs, zarr.Array)
    assert np.array_equal(tessarr.dask.from_array(theirs).compute(), VALUES)
    with xr.open_dataset(group, engine="tessarr", consolidated=False) as opened:
        assert np.array_equal(opened.v, VALUES)


@pytest.mark.parametrize("other", [np.zeros(3), "path", None])
def test_other_objects_have_no_explanation(other: Any, group: zarr.Group) -> None:
    places: list[Any] = [other, group]
    for given in places:
        with pytest.raises(TypeError, match="expected an array of zarr-python"):
            tessarr.zarr_python.explain(given)
