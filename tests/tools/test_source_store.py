"""A file of another format, shown as Zarr: every value equal to that of the file, nothing written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.errors import ReadOnlyError, StoreError
from tessarr.serve import app, serve_background
from tessarr.tools.sources.store import SourceStore, source_store

Open = Callable[[Path], SourceStore]


@pytest.fixture
def hdf5(tmp_path: Path) -> Path:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed (extra convert)")
    place = tmp_path / "a.h5"
    with h5py.File(place, "w") as file:
        file.attrs["title"] = "shown"
        file.create_dataset("chunked", data=np.arange(40_000.0).reshape(200, 200), chunks=(64, 100), compression="gzip")
        file.create_dataset("deep/er/flat", data=np.arange(30, dtype=">i2").reshape(5, 6))
        file.create_dataset("scalar", data=7)
        file.create_dataset("text", data=["a", "bc", ""], dtype=h5py.string_dtype())
        file.create_dataset("refs", data=np.array([file.ref]), dtype=h5py.ref_dtype)
    return place


@pytest.fixture
def opened() -> Iterator[Callable[[Path], SourceStore]]:
    """Open stores, and close them after the test."""
    stores: list[SourceStore] = []

    def open_one(place: Path) -> SourceStore:
        store = source_store(place)
        assert store is not None
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        store.close()


def test_every_value_of_hdf5_is_shown(hdf5: Path, opened: Open) -> None:
    group = tessarr.open_group(opened(hdf5), mode="r")
    assert group.attrs["title"] == "shown"
    chunked = group["chunked"]
    assert isinstance(chunked, tessarr.Array)
    assert chunked.chunks == (64, 100)
    assert np.array_equal(chunked[...], np.arange(40_000.0).reshape(200, 200))
    assert np.array_equal(group["deep/er/flat"][...], np.arange(30).reshape(5, 6))  # type: ignore[index]
    assert group["scalar"][()] == 7  # type: ignore[index]
    assert list(group["text"][...]) == ["a", "bc", ""]  # type: ignore[index]
    assert "refs" not in group


def test_netcdf_and_tiff_and_numpy_are_shown(tmp_path: Path, opened: Open) -> None:
    netCDF4 = pytest.importorskip("netCDF4", reason="netCDF4 is not installed (extra convert)")
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed (extra convert)")
    values = np.arange(60, dtype="i4").reshape(6, 10)
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("y", 6)
        file.createDimension("x", 10)
        file.createVariable("v", "i4", ("y", "x"))[:] = values
    tifffile.imwrite(tmp_path / "a.tif", values)
    np.save(tmp_path / "a.npy", values)
    netcdf = tessarr.open_group(opened(tmp_path / "a.nc"), mode="r")["v"]
    assert isinstance(netcdf, tessarr.Array)
    assert netcdf.metadata.dimension_names == ("y", "x")  # type: ignore[union-attr]
    for array in (netcdf, *(tessarr.open_array(opened(tmp_path / name), mode="r") for name in ("a.tif", "a.npy"))):
        assert np.array_equal(array[...], values)


def test_the_store_lists_what_it_has(hdf5: Path, opened: Open) -> None:
    store = opened(hdf5)
    keys = sorted(store.list())
    assert len(keys) == len(set(keys))
    assert {"zarr.json", "chunked/c/3/1", "deep/er/zarr.json", "scalar/c"} < set(keys)
    for prefix in ("", "deep/", "chunked/", "chunked/c/", "chunked/c/1/", "scalar/"):
        listing = store.list_dir(prefix)
        direct = {key[len(prefix) :].partition("/")[0] for key in keys if key.startswith(prefix)}
        found = {name[len(prefix) :].strip("/") for name in (*listing.keys, *listing.prefixes)}
        assert found == direct, prefix
    assert store.get("chunked/c/4/0") is None
    assert store.get("nothing") is None
    with pytest.raises(ReadOnlyError):
        store.set("zarr.json", b"")


def test_a_chunk_of_fill_values_is_missing(tmp_path: Path, opened: Open) -> None:
    np.save(tmp_path / "zeros.npy", np.zeros((3, 4)))
    store = opened(tmp_path / "zeros.npy")
    assert store.get("c/0/0") is None
    assert tessarr.open_array(store, mode="r")[2, 3] == 0


def test_a_file_that_changed_is_an_error(hdf5: Path, opened: Open) -> None:
    store = opened(hdf5)
    os.utime(hdf5, ns=(1, 1))
    with pytest.raises(StoreError, match="changed since it was opened"):
        store.get("chunked/c/0/0")


def test_what_is_not_a_foreign_file_is_left(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a.zarr", data=[1])
    with tessarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as archive:
        tessarr.create_array(archive, data=[1])
    places: list[object] = [
        tmp_path / "a.zarr",
        tmp_path / "a.zip",
        "s3://bucket/x.nc",
        {},
        None,
        tmp_path / "nothing.nc",
    ]
    for place in places:
        assert source_store(place) is None


def test_a_foreign_file_is_served_as_zarr(hdf5: Path) -> None:
    application = app(hdf5)
    with application.served.store, serve_background(application, port=0) as running:
        array = tessarr.open_array(f"{running.url}/chunked", mode="r")
        assert np.array_equal(array[100:130, 90:110], np.arange(40_000.0).reshape(200, 200)[100:130, 90:110])
        group = tessarr.open_group(running.url, mode="r")
        assert "deep/er/flat" in group
