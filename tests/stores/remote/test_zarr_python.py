"""Stores of zarr-python, Icechunk's among them."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr
import zarr.storage
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.memory import MemoryFileSystem
from obstore.store import MemoryStore as ObstoreMemory

import tessarr
from tessarr.errors import StoreError
from tessarr.stores.url import open_url
from tessarr.stores.virtual.zarr_python import ZarrPythonStore
from tests.narrow import numpy_of
from tests.stores.contract import StoreContract, plain
from tests.stores.remote.servers import S3_OPTIONS, Server

_number = itertools.count()


class TestMemoryStoreOfZarrPython(StoreContract):
    @pytest.fixture
    def store(self) -> ZarrPythonStore:
        return ZarrPythonStore(zarr.storage.MemoryStore())


class TestLocalStoreOfZarrPython(StoreContract):
    parts_are_of_one_value = False
    """It opens the file anew for each part, and returns no version."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> ZarrPythonStore:
        return ZarrPythonStore(zarr.storage.LocalStore(tmp_path))


class TestFsspecStoreOfZarrPython(StoreContract):
    @pytest.fixture
    def store(self) -> ZarrPythonStore:
        return ZarrPythonStore(_fsspec_store())


def _fsspec_store() -> zarr.storage.FsspecStore:
    wrapper = AsyncFileSystemWrapper(MemoryFileSystem(), asynchronous=True)
    return zarr.storage.FsspecStore(wrapper, path=f"/of-zarr-python/{next(_number)}")


class TestObjectStoreOfZarrPython(StoreContract):
    @pytest.fixture
    def store(self) -> ZarrPythonStore:
        return ZarrPythonStore(zarr.storage.ObjectStore(ObstoreMemory()))


def test_equal_stores_have_equal_hashes_and_two_places_are_never_equal(tmp_path: Path) -> None:
    one, two = zarr.storage.MemoryStore(), zarr.storage.MemoryStore()
    assert one == two  # zarr-python compares their content
    assert ZarrPythonStore(one) == ZarrPythonStore(one)
    assert hash(ZarrPythonStore(one)) == hash(ZarrPythonStore(one))
    assert ZarrPythonStore(one) != ZarrPythonStore(two)
    local = [ZarrPythonStore(zarr.storage.LocalStore(tmp_path)) for _ in range(2)]
    assert local[0] == local[1]
    assert hash(local[0]) == hash(local[1])


def test_what_icechunk_holds_is_read_and_what_is_written_is_committed(tmp_path: Path) -> None:
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    session = repository.writable_session("main")
    data = np.arange(100, dtype="i4").reshape(10, 10)
    zarr.create_array(session.store, name="a", data=data, chunks=(5, 5), compressors=None, filters=None)
    first = session.commit("first")
    url = f"file://{tmp_path}/repo|icechunk:"

    store = open_url(f"{url}@branch.main/")
    assert isinstance(store, ZarrPythonStore)
    assert plain(store.get("a/c/1/0")) == data[5:, :5].tobytes()
    assert plain(asyncio.run(store.get_async("a/c/0/0"))) == data[:5, :5].tobytes()
    assert store.get("a/c/7/7") is None
    store.set("a/c/1/0", bytes(100))
    store.store.session.commit("second")

    assert (numpy_of(zarr.open_array(repository.readonly_session("main").store, path="a")[5:, :5]) == 0).all()
    old = open_url(f"{url}@{first}", read_only=True)
    assert plain(old.get("a/c/1/0")) == data[5:, :5].tobytes()
    repository.create_tag("v1", first)
    assert plain(open_url(f"{url}@tag.v1|zarr3:a").get("c/1/0")) == data[5:, :5].tobytes()
    with pytest.raises(StoreError, match="cannot open the repository"):
        open_url(f"{url}@branch.none", read_only=True)
    with pytest.raises(StoreError, match="branch"):
        open_url(f"{url}@nothing.known")


def test_an_icechunk_repository_on_the_s3_server_opens_by_url(s3: Server) -> None:
    options: dict[str, Any] = {**S3_OPTIONS}
    storage = icechunk.s3_storage(
        bucket="bucket", prefix="ice/repo", endpoint_url=f"http://{s3.address}", allow_http=True,
        force_path_style=True, **options,
    )  # fmt: skip
    session = icechunk.Repository.create(storage).writable_session("main")
    zarr.create_array(session.store, name="a", data=np.arange(4), chunks=(2,), compressors=None, filters=None)
    session.commit("first")
    store = open_url(f"s3+http://{s3.address}/bucket/ice/repo|icechunk:", storage_options=options, read_only=True)
    assert plain(store.get("a/c/1")) == np.arange(2, 4).tobytes()
    assert sorted(store.list()) == ["a/c/0", "a/c/1", "a/zarr.json", "zarr.json"]
    assert store.read_only


def test_stores_of_zarr_python_are_places_to_open() -> None:
    store = zarr.storage.MemoryStore()
    array = tessarr.create_array(store, name="g/x", data=np.arange(6), chunks=(3,))
    assert isinstance(array.store, ZarrPythonStore)
    assert numpy_of(zarr.open_array(store, path="g/x", mode="r")[...]).tolist() == [0, 1, 2, 3, 4, 5]
    place = zarr.storage.StorePath(store, "g")
    assert tessarr.open_array(place, path="x", mode="r")[4] == 4


def test_an_icechunk_store_opens_and_its_url_opens_it_again(tmp_path: Path) -> None:
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    session = repository.writable_session("main")
    tessarr.create_array(session.store, name="a", data=np.arange(4), chunks=(2,))
    snapshot = session.commit("first")
    assert tessarr.open_array(repository.readonly_session("main").store, path="a", mode="r")[3] == 3
    for version in ("@branch.main", f"@{snapshot}"):
        store = open_url(f"file://{tmp_path}/repo|icechunk:{version}", read_only=True)
        assert store.url == f"file://{tmp_path}/repo|icechunk:{version}"
        assert tessarr.open_array(store.url, path="a", mode="r")[2] == 2


def test_nodes_of_an_icechunk_session_are_found_and_replaced_without_keys_outside_zarr_v3() -> None:
    session = icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main")
    store = ZarrPythonStore(session.store)
    assert store.get("meta") is None
    tessarr.create_array(store, name="g/a", data=np.arange(4), chunks=(2,))
    replaced = tessarr.create_group(store, path="g", overwrite=True, attributes={"new": True})
    assert list(replaced) == []
    assert sorted(store.list()) == ["g/zarr.json", "zarr.json"]
    with pytest.raises(StoreError, match="invalid zarr key"):
        store.set("meta", b"{}")
