"""Run in a process of its own: ``import zarr`` gives tessarr, and xarray and dask, unchanged, work with it.

python cases.py CASE DIRECTORY
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np


def dataset() -> Any:
    import xarray as xr

    rng = np.random.default_rng(0)
    t = rng.random((4, 5, 6)).astype("f4")
    t[0, 0, 0] = np.nan
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"], "M8[ns]")
    return xr.Dataset(
        {
            "t": (("time", "y", "x"), t, {"units": "K"}),
            "s": (("y",), np.array(list("abcde"), object)),
            "i": ((), 5),
        },
        coords={"time": days, "x": np.arange(6)},
        attrs={"title": "a title"},
    )


def xarray(place: str, zarr_format: int, consolidated: bool) -> None:
    import xarray as xr

    data = dataset()
    data.chunk(time=2).to_zarr(place, zarr_format=zarr_format, consolidated=consolidated, mode="w")
    data.to_zarr(place, append_dim="time", zarr_format=zarr_format, consolidated=consolidated)
    part = data.isel(time=slice(0, 2)).drop_vars(["s", "x", "i"])
    part.to_zarr(place, region={"time": slice(0, 2)}, zarr_format=zarr_format, consolidated=consolidated)
    twice = xr.concat([data, data], "time", data_vars="minimal", coords="minimal", compat="override")
    with xr.open_zarr(place, consolidated=consolidated) as back:
        xr.testing.assert_identical(back.load(), twice)
    with xr.open_dataset(place, engine="zarr", chunks=None, consolidated=consolidated) as lazy:
        xr.testing.assert_equal(lazy.isel(x=[0, 2], y=[1, 3]).load(), twice.isel(x=[0, 2], y=[1, 3]))
        xr.testing.assert_equal(lazy.isel(time=slice(None, None, -1)).load(), twice.isel(time=slice(None, None, -1)))
        points = {"x": xr.DataArray([0, 3], dims="p"), "y": xr.DataArray([1, 4], dims="p")}
        xr.testing.assert_equal(lazy.isel(points).load(), twice.isel(points))
    again = xr.open_zarr(place, consolidated=consolidated).load()
    again.to_zarr(f"{place}.again", zarr_format=zarr_format, consolidated=consolidated)  # with the encoding read
    reread = xr.open_zarr(f"{place}.again", consolidated=consolidated).load()
    xr.testing.assert_identical(reread, twice)
    tree = xr.DataTree.from_dict({"/": data, "/a/b": data})
    tree.to_zarr(f"{place}.tree", zarr_format=zarr_format, consolidated=consolidated)
    read = xr.open_datatree(f"{place}.tree", engine="zarr", consolidated=consolidated)
    xr.testing.assert_identical(read["/a/b"].to_dataset().load(), data)


def dask(place: str, zarr_format: Literal[2, 3]) -> None:
    import dask.array as da
    import zarr

    values = np.arange(400.0).reshape(20, 20)
    x = da.from_array(values, chunks=(7, 7))
    da.to_zarr(x, place, zarr_format=zarr_format)
    read = da.from_zarr(place)
    assert read.chunks == x.chunks
    assert np.array_equal(read.compute(), values)
    da.to_zarr(x + 1, place, overwrite=True, zarr_format=zarr_format)
    da.to_zarr(x, f"{place}.group", component="a/b", zarr_format=zarr_format)
    assert np.array_equal(da.from_zarr(f"{place}.group", component="a/b").compute(), values)
    z: Any = zarr.create_array({}, shape=(20, 20), chunks=(5, 5), dtype="f8", zarr_format=zarr_format)
    x.rechunk((10, 10)).to_zarr(z)
    assert np.array_equal(z[...], values)
    assert np.array_equal(da.from_zarr(z)[3:9, ::-1].compute(), values[3:9, ::-1])


def zarrs(place: str) -> None:
    """A program that asks zarr-python for the pipeline of zarrs keeps its lines; tessarr's engines do the work."""
    import zarr
    import zarrs as other

    assert other.ZarrsCodecPipeline is not None
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        z = zarr.create_array(place, shape=(20, 20), chunks=(5, 5), dtype="f8")
        z[...] = np.arange(400.0).reshape(20, 20)
        assert zarr.open_array(place, mode="r")[3, 4] == 64


CASES: dict[str, Callable[[str], None]] = {
    "zarrs": zarrs,
    "xarray-v2": lambda place: xarray(place, 2, False),
    "xarray-v2-consolidated": lambda place: xarray(place, 2, True),
    "xarray-v3": lambda place: xarray(place, 3, False),
    "xarray-v3-consolidated": lambda place: xarray(place, 3, True),
    "dask-v2": lambda place: dask(place, 2),
    "dask-v3": lambda place: dask(place, 3),
}

if __name__ == "__main__":
    import tessarr
    import tessarr.as_zarr

    tessarr.as_zarr.install()
    import zarr

    found: object = zarr.Array  # for type checkers `zarr` is zarr-python
    assert found is tessarr.Array
    CASES[sys.argv[1]](sys.argv[2])
    print("done")
