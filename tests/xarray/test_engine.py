"""Datasets written and read by tessarr are those that were given, and are read alike by xarray with zarr-python."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tessarr
import tessarr.xarray
from tessarr.errors import GroupNotFoundError, ZarrRuntimeWarning
from tessarr.storage import MemoryStore, WrapperStore


def weather(steps: int = 6) -> xr.Dataset:
    """A dataset with an index of times, text, packed numbers, missing values and a scalar."""
    rain = np.arange(steps * 4, dtype="f8").reshape(steps, 4)
    rain[1, 2] = np.nan
    return xr.Dataset(
        {
            "rain": (("time", "x"), rain, {"units": "mm"}),
            "flag": (("time",), np.arange(steps) % 2 == 0),
            "site": (("x",), np.array(["a", "bb", "ccc", "dddd"])),
            "height": ((), 2.0),
        },
        coords={"time": pd.date_range("2020-01-01", periods=steps), "x": [10, 20, 30, 40]},
        attrs={"title": "weather"},
    )


@pytest.fixture(params=[2, 3])
def zarr_format(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_what_is_written_is_read(tmp_path: Path, zarr_format: Any) -> None:
    ds = weather()
    tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr", zarr_format=zarr_format, encoding={"rain": {"chunks": (2, 3)}})
    with xr.open_dataset(tmp_path / "a.zarr", engine="tessarr") as found:
        xr.testing.assert_identical(found, ds)
        assert found.rain.encoding["chunks"] == (2, 3)
    assert tessarr.open_group(tmp_path / "a.zarr").zarr_format == zarr_format


def test_zarr_python_reads_what_is_written_and_the_other_way_round(tmp_path: Path, zarr_format: Any) -> None:
    ds = weather().drop_vars("site")  # zarr-python warns of fixed-length text in v3
    ds.tessarr.to_zarr(tmp_path / "ours.zarr", zarr_format=zarr_format)
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "ours.zarr", engine="zarr").load(), ds)
    consolidated = zarr_format == 2  # of v3, zarr-python warns
    ds.to_zarr(tmp_path / "theirs.zarr", zarr_format=zarr_format, consolidated=consolidated)
    found = xr.open_dataset(tmp_path / "theirs.zarr", engine="tessarr", consolidated=consolidated)
    xr.testing.assert_identical(found.load(), ds)


def test_what_was_opened_is_written_alike_by_either_library(tmp_path: Path, zarr_format: Any) -> None:
    encoding = {"rain": {"chunks": (2, 3)}}
    if zarr_format == 3:
        encoding["rain"] |= {"chunks": (2, 1), "shards": (4, 2)}
    ds = weather().drop_vars("site")
    tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr", zarr_format=zarr_format, encoding=encoding)
    again = xr.open_dataset(tmp_path / "a.zarr", engine="tessarr")
    again.tessarr.to_zarr(tmp_path / "ours.zarr", zarr_format=zarr_format)
    again.to_zarr(tmp_path / "theirs.zarr", zarr_format=zarr_format, consolidated=False)
    written = [tessarr.open_array(tmp_path / name, path="rain") for name in ("a.zarr", "ours.zarr", "theirs.zarr")]
    assert {z.chunks for z in written} == {written[0].chunks}
    assert {z.shards for z in written} == {written[0].shards}
    assert len({repr(z.compressors) for z in written}) == 1


def test_the_engine_guesses_what_the_engine_of_zarr_python_does_not() -> None:
    engine = xr.backends.list_engines()["tessarr"]
    assert engine.guess_can_open("a/b.zarr.zip")
    assert engine.guess_can_open("s3://b/x|zarr3:")
    assert engine.guess_can_open("a/b.zarr|zarr2:")
    assert not engine.guess_can_open("a/b.zarr")
    assert not engine.guess_can_open(Path("a/b.zarr"))
    assert not engine.guess_can_open("a/b.nc")
    assert not engine.guess_can_open({})


def test_the_engine_guesses_where_it_is_also_the_engine_zarr(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tessarr.xarray.TessarrBackendEntrypoint()
    monkeypatch.setattr("tessarr.xarray.backend.list_engines", lambda: {"tessarr": engine, "zarr": engine})
    assert engine.guess_can_open("a/b.zarr")
    assert not engine.guess_can_open("a/b.nc")


def test_without_a_named_engine_zarr_python_opens_what_it_can_and_tessarr_the_rest(tmp_path: Path) -> None:
    place = tmp_path / "a.zarr"
    weather().drop_vars("site").to_zarr(place, zarr_format=2)
    tessarr.xarray.to_zarr(weather(), tmp_path / "b.zarr.zip")
    with xr.open_dataset(place) as theirs, xr.open_dataset(place, engine="tessarr") as named:
        assert [_opened_by(ds) for ds in (theirs, named)] == ["ZarrArrayWrapper", "LazyArray"]
    for url in (f"{place}|zarr2:", str(tmp_path / "b.zarr.zip")):
        with xr.open_dataset(url) as ours:
            assert _opened_by(ours) == "LazyArray"


def _opened_by(ds: xr.Dataset) -> str:
    """The class of xarray's wrapper of a stored array."""
    data: Any = ds.rain.variable._data
    while hasattr(data, "array"):
        data = data.array
    return type(data).__name__


def test_many_files_are_one_dataset(tmp_path: Path) -> None:
    ds = weather()
    for number, part in enumerate((ds.isel(time=slice(0, 3)), ds.isel(time=slice(3, 6)))):
        tessarr.xarray.to_zarr(part, tmp_path / f"{number}.zarr")
    found = xr.open_mfdataset(
        sorted(map(str, tmp_path.glob("*.zarr"))),
        engine="tessarr",
        data_vars="minimal",
        coords="minimal",
        compat="override",
    )
    xr.testing.assert_equal(found.rain, ds.rain)


def test_a_tree_of_groups(tmp_path: Path, zarr_format: Any) -> None:
    tree = xr.DataTree.from_dict({"/": weather(2), "/a": weather(2), "/a/b": xr.Dataset({"v": ("y", [1, 2])})})
    tree.tessarr.to_zarr(tmp_path / "t.zarr", zarr_format=zarr_format)
    found = xr.open_datatree(tmp_path / "t.zarr", engine="tessarr")
    xr.testing.assert_identical(found.load(), tree)
    assert sorted(xr.open_groups(tmp_path / "t.zarr", engine="tessarr")) == ["/", "/a", "/a/b"]
    below = xr.open_datatree(tmp_path / "t.zarr", engine="tessarr", group="a")
    assert [node.path for node in below.subtree] == ["/", "/b"]


def test_times_are_appended(tmp_path: Path, zarr_format: Any) -> None:
    ds = weather()
    tessarr.xarray.to_zarr(ds.isel(time=slice(0, 4)), tmp_path / "a.zarr", zarr_format=zarr_format)
    added = ds.isel(time=slice(4, 6))
    tessarr.xarray.to_zarr(added.drop_vars(["site", "height"]), tmp_path / "a.zarr", append_dim="time")
    xr.testing.assert_identical(tessarr.xarray.open_dataset(tmp_path / "a.zarr").load(), ds)


def test_a_region_is_written_and_the_rest_stays(tmp_path: Path) -> None:
    ds = weather()[["rain"]].drop_vars(["time", "x"])
    tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr", encoding={"rain": {"chunks": (4, 4)}})
    part = ds.isel(time=slice(1, 3)) * 0 + 100
    part.tessarr.to_zarr(tmp_path / "a.zarr", region={"time": slice(1, 3)})
    found = tessarr.xarray.open_dataset(tmp_path / "a.zarr").rain.values
    np.testing.assert_array_equal(found[1:3], part.rain.values)
    np.testing.assert_array_equal(found[[0, 3, 4, 5]], ds.rain.values[[0, 3, 4, 5]])


def test_nothing_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GroupNotFoundError):
        xr.open_dataset(tmp_path / "no.zarr", engine="tessarr")


def test_an_opened_dataset_is_pickled_and_copied(tmp_path: Path) -> None:
    ds = weather()
    tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr")
    found = tessarr.xarray.open_dataset(tmp_path / "a.zarr")
    xr.testing.assert_identical(pickle.loads(pickle.dumps(found)), ds)
    xr.testing.assert_identical(copy.deepcopy(found), ds)


SELECTIONS: list[dict[str, Any]] = [
    {"time": 1},
    {"time": slice(None, None, -2)},
    {"time": [3, 0, 0], "x": slice(1, 3)},
    {"time": xr.DataArray([0, 2], dims="p"), "x": xr.DataArray([1, 3], dims="p")},
    {"x": xr.DataArray([[0, 1], [2, 3]], dims=("p", "q"))},
    {"time": -1, "x": [2]},
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=["int", "backwards", "outer", "points", "fancy", "last"])
def test_every_kind_of_indexing_also_awaited(tmp_path: Path, selection: dict[str, Any]) -> None:
    ds = weather()
    tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr", encoding={"rain": {"chunks": (2, 3)}})
    found = tessarr.xarray.open_dataset(tmp_path / "a.zarr", cache=False)
    xr.testing.assert_identical(found.isel(selection).load(), ds.isel(selection))
    if hasattr(found, "load_async"):
        awaited = tessarr.xarray.open_dataset(tmp_path / "a.zarr").isel(selection)
        asyncio.run(awaited.load_async())
        xr.testing.assert_identical(awaited, ds.isel(selection))


def test_members_are_read_without_consolidated_metadata_and_that_is_said(tmp_path: Path) -> None:
    tessarr.xarray.to_zarr(weather(), tmp_path / "a.zarr", consolidated=False)
    with pytest.warns(ZarrRuntimeWarning, match="consolidated"):
        xr.testing.assert_identical(xr.open_dataset(tmp_path / "a.zarr", engine="tessarr").load(), weather())
    xr.testing.assert_identical(tessarr.xarray.open_dataset(tmp_path / "a.zarr", consolidated=False).load(), weather())


@pytest.mark.parametrize("consolidated", [None, True])
def test_a_store_without_consolidated_metadata_is_written(consolidated: bool | None) -> None:
    class Unconsolidated(WrapperStore):
        supports_consolidated_metadata = False

    store = Unconsolidated(MemoryStore())
    tessarr.xarray.to_zarr(weather(), store, consolidated=consolidated)
    xr.testing.assert_identical(tessarr.xarray.open_dataset(store).load(), weather())


def test_it_works_where_zarr_python_is_not_installed(tmp_path: Path) -> None:
    program = f"""
    import sys
    sys.modules["zarr"] = None  # importing it raises ImportError
    import numpy as np, xarray as xr, tessarr.xarray
    ds = xr.Dataset({{"a": (("t", "x"), np.arange(6.0).reshape(2, 3))}}, coords={{"t": [1, 2]}})
    place = {str(tmp_path / "a.zarr")!r}
    tessarr.xarray.to_zarr(ds, place)
    tessarr.xarray.to_zarr(ds.assign_coords(t=[3, 4]), place, append_dim="t")
    tessarr.xarray.to_zarr(ds[["a"]].isel(t=[0]).drop_vars("t") * 0, place, region={{"t": slice(3, 4)}})
    found = xr.open_dataset(place)  # whose engine tessarr alone can be
    assert tessarr.open_array(place, path="a").dimension_names == ("t", "x")
    assert "_ARRAY_DIMENSIONS" not in tessarr.open_array(place, path="a").attrs
    assert found.a.values.tolist() == [[0, 1, 2], [3, 4, 5], [0, 1, 2], [0, 0, 0]], found.a.values
    xr.DataTree.from_dict({{"/": ds, "/b": ds}}).tessarr.to_zarr(place, mode="w")
    assert [node.path for node in tessarr.xarray.open_datatree(place).subtree] == ["/", "/b"]
    """
    subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(program)], check=True)


def test_values_are_written_when_they_are_computed(tmp_path: Path) -> None:
    ds = weather().chunk({"time": 2})
    later = tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr", compute=False)
    assert tessarr.open_array(tmp_path / "a.zarr", path="rain").nchunks_initialized == 0
    later.compute()
    xr.testing.assert_identical(tessarr.xarray.open_dataset(tmp_path / "a.zarr").load(), ds.compute())
