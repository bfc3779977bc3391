"""Every place that tessarr opens is served with equal values: archives, databases, references, files of other formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import tessarr
from tessarr.serve import App, app, serve_background, store_app
from tessarr.storage import LocalStore
from tests.serve.client import Client

DATA = np.arange(60.0).reshape(6, 10)


def in_store(store: tessarr.storage.Store) -> None:
    group = tessarr.open_group(store, mode="w")
    group.create_array("air", data=DATA, chunks=(3, 5))


def zip_file(folder: Path) -> Any:
    with tessarr.storage.ZipStore(folder / "d.zip", mode="w") as archive:
        in_store(archive)
    return folder / "d.zip"


def sqlite(folder: Path) -> Any:
    store = tessarr.storage.SQLiteStore(folder / "d.sqlite")
    in_store(store)
    return store


def hdf5(folder: Path) -> Any:
    import h5py

    with h5py.File(folder / "d.h5", "w") as file:
        file.create_dataset("air", data=DATA, chunks=(3, 5), compression="gzip")
    return folder / "d.h5"


def netcdf(folder: Path) -> Any:
    import netCDF4

    with netCDF4.Dataset(folder / "d.nc", "w") as file:
        file.createDimension("y", 6)
        file.createDimension("x", 10)
        file.createVariable("air", "f8", ("y", "x"))[:] = DATA
    return folder / "d.nc"


def icechunk(folder: Path) -> Any:
    import icechunk as ice

    repository = ice.Repository.create(ice.local_filesystem_storage(str(folder / "ice")))
    session = repository.writable_session("main")
    zarr.open_group(session.store, mode="w").create_array("air", data=DATA, chunks=(3, 5))
    session.commit("data")
    return repository.readonly_session("main").store


def references(folder: Path) -> Any:
    stored = tessarr.storage.LocalStore(folder / "d.zarr")
    in_store(stored)
    refs: dict[str, Any] = {
        key: bytes(stored.get(key) or b"").decode() for key in stored.list() if key.endswith("json")
    }
    refs |= {key: [str(folder / "d.zarr" / key)] for key in stored.list() if not key.endswith("json")}
    return tessarr.storage.ReferenceStore(refs)


@pytest.fixture(params=[zip_file, sqlite, hdf5, netcdf, icechunk, references], ids=lambda make: make.__name__)
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[App]:
    make: Callable[[Path], Any] = request.param
    made = app(make(tmp_path))
    yield made
    made.served.store.close()


def test_a_client_reads_the_values(application: App) -> None:
    with serve_background(application, port=0) as running:
        np.testing.assert_array_equal(tessarr.open_array(f"{running.url}/air", mode="r")[...], DATA)
        view = tessarr.open_array(f"{running.url}/@chunks=2x2,dtype=float32/air", mode="r")
        np.testing.assert_array_equal(view[...], DATA.astype("f4"))


def test_values_have_ranges_conditions_and_a_listing(application: App) -> None:
    client = Client(application)
    document = client.get("/air/zarr.json")
    assert document.status == 200
    key = "/air/c/0/0"
    whole = client.get(key)
    assert (whole.status, client("HEAD", key).nbytes) == (200, whole.nbytes)
    assert client.get(key, range="bytes=-4").body == whole.body[-4:]
    assert client.get(key, range="bytes=0-1,5-6").status == 206
    assert client.get(key, if_none_match=whole.headers["etag"]).status == 304
    assert client.get(key, if_match='"other"').status == 412
    assert client.get("/air/c/9/9").status == 404
    assert client.get("/").links == ["air/", "zarr.json"]


def test_a_tiff_is_an_array(tmp_path: Path) -> None:
    import tifffile

    tifffile.imwrite(tmp_path / "d.tif", DATA.astype("u2"))
    application = app(tmp_path / "d.tif")
    client = Client(application)
    assert client.get("/zarr.json").json["shape"] == [6, 10]
    np.testing.assert_array_equal(np.frombuffer(client.get("/.raw").body, "<u2").reshape(6, 10), DATA)
    application.served.store.close()


def test_a_file_that_cannot_be_read_is_a_500_and_never_missing(tmp_path: Path) -> None:
    store = tessarr.storage.LocalStore(tmp_path / "d.zarr")
    in_store(store)

    class Failing(LocalStore):
        def _open_value(self, path: str) -> int:
            raise PermissionError(13, "Permission denied", path)

    client = Client(store_app(Failing(tmp_path / "d.zarr")))
    answer = client.get("/air/c/0/0")
    assert (answer.status, b"not missing" in answer.body) == (500, True)
