"""Datasets that zarr-python opened are read through tessarr, and are otherwise what they were."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, cast

import dask
import numpy as np
import pytest
import xarray as xr
import zarr.storage

import tessarr.xarray
from tessarr.stores.virtual.zarr_python import ZarrPythonStore
from tessarr.xarray import accelerate
from tessarr.xarray.lazy_array import LazyArray

FAST = "reads through tessarr"


@pytest.fixture(params=[2, 3])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    packed = {"scale_factor": 0.5, "dtype": "int16", "_FillValue": -1}
    ds = xr.Dataset(
        {"a": (("y", "x"), np.arange(12.0).reshape(3, 4)), "b": (("y",), [1.5, np.nan, 2.5])},
        coords={"y": [1, 2, 3]},
    )
    tessarr.xarray.to_zarr(
        ds, tmp_path / "a.zarr", zarr_format=request.param, encoding={"a": {"chunks": (3, 2)}, "b": packed}
    )
    return tmp_path / "a.zarr"


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows when tessarr's lazy arrays are read."""
    seen: list[str] = []
    original = LazyArray.__getitem__

    def noted(self: LazyArray, key: Any) -> Any:
        seen.append("read")
        return original(self, key)

    monkeypatch.setattr(LazyArray, "__getitem__", noted)
    return seen


def test_lazy_variables_are_exchanged(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = xr.open_dataset(place, engine="zarr")
    assert accelerate.explain(opened) == {"a": FAST, "b": FAST, "y": "left alone: its values are in memory"}
    fast, seen = accelerate(opened.isel(x=slice(1, None))), reads(monkeypatch)
    xr.testing.assert_identical(fast.load(), opened.isel(x=slice(1, None)).load())
    assert len(seen) == 2


def test_arrays_of_dask_keep_chunks_and_names(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = xr.open_dataset(place, engine="zarr", chunks={"x": 2})
    fast, seen = accelerate(opened), reads(monkeypatch)
    assert (fast.a.data.name, fast.a.chunks) == (opened.a.data.name, opened.a.chunks)
    assert accelerate.explain(opened)["a"] == FAST
    with dask.config.set(scheduler="sync"):
        xr.testing.assert_identical((fast + 1).compute(), (opened + 1).compute())
        assert len(seen) == 4 - 1  # two blocks of a, one of b


def test_what_is_in_memory_is_left_alone(place: Path) -> None:
    loaded = xr.open_dataset(place, engine="zarr").load()
    assert all(why.startswith("left alone") for why in accelerate.explain(loaded).values())
    assert accelerate(loaded).a.variable._data is loaded.a.variable._data
    computed = xr.Dataset({"a": ("x", np.arange(4))}).chunk({"x": 2})
    assert accelerate.explain(computed)["a"].startswith("left alone")
    assert accelerate(computed).a.data is computed.a.data


def test_arrays_and_trees(place: Path) -> None:
    opened = xr.open_dataset(place, engine="zarr")
    xr.testing.assert_identical(accelerate(opened.a).load(), opened.a.load())
    tree = xr.open_datatree(place, engine="zarr")
    assert tree.tessarr.explain()["/b"] == FAST
    xr.testing.assert_identical(tree.tessarr.accelerate().load(), tree.load())


def test_the_given_dataset_stays_as_it_was(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = xr.open_dataset(place, engine="zarr", chunks={})
    accelerate(opened)
    seen = reads(monkeypatch)
    opened.compute(scheduler="sync")
    assert not seen


def test_closing_the_copy_closes_what_was_opened_for_it(place: Path) -> None:
    closed: list[str] = []
    for name, opened in (
        ("dataset", xr.open_dataset(place, engine="zarr")),
        ("array", xr.open_dataarray(place, engine="zarr", drop_variables="a")),
        ("tree", xr.open_datatree(place, engine="zarr")),
    ):
        given = cast("xr.Dataset", opened)
        given.set_close(functools.partial(closed.append, name))
        accelerate(given).close()
    assert closed == ["dataset", "array", "tree"]


def test_archives_of_zarr_python_are_read_without_its_event_loop(tmp_path: Path) -> None:
    ds = xr.Dataset({"a": ("x", np.arange(6))})
    tessarr.xarray.to_zarr(ds, tmp_path / "a.zip")
    with xr.open_dataset(zarr.storage.ZipStore(tmp_path / "a.zip", mode="r"), engine="zarr") as opened:
        fast = accelerate(opened)
        assert not isinstance(_adopted_array(fast).store, ZarrPythonStore)
        xr.testing.assert_identical(fast.load(), ds)


def test_arrays_in_the_tasks_of_a_graph_are_exchanged(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = xr.open_dataset(place, engine="zarr", chunks={}, inline_array=True)
    assert accelerate.explain(opened) == {"a": FAST, "b": FAST, "y": "left alone: its values are in memory"}
    opened.a.data.dask.to_dict()  # dask keeps the tasks
    fast, seen = accelerate(opened), reads(monkeypatch)
    assert (fast.a.data.name, fast.a.chunks) == (opened.a.data.name, opened.a.chunks)
    xr.testing.assert_identical(fast.load(), opened.compute())
    assert len(seen) == 3  # two blocks of a, one of b
    xr.testing.assert_identical(accelerate(opened * 2).compute(), opened.compute() * 2)
    assert len(seen) == 6


@pytest.mark.parametrize("other", [np.zeros(3), "a.zarr", None])
def test_other_objects_are_an_error_that_says_what_is_expected(other: Any) -> None:
    for function in (accelerate, accelerate.explain):
        with pytest.raises(TypeError, match="expected a dataset, a data array or a tree"):
            function(other)


def _adopted_array(fast: xr.Dataset) -> Any:
    """The tessarr array below a variable."""
    data: Any = fast.variables["a"]._data
    while not isinstance(data, LazyArray):
        data = data.array
    return data._array
