"""Storage options that are meant for fsspec: under the alias, and in xarray's engine."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, ClassVar

import fsspec
import numpy as np
import pytest
import xarray
from fsspec.implementations.memory import MemoryFileSystem

import tessarr.xarray
from tessarr.errors import StoreError
from tessarr.settings import config
from tessarr.stores.remote.fsspec import FsspecStore
from tessarr.stores.remote.obstore.store import ObjectStore
from tessarr.stores.url import open_url
from tests.stores.remote.servers import Server


class Buckets(MemoryFileSystem):  # type: ignore[misc] # fsspec has no types
    """A file system for ``s3://`` that takes s3fs' options."""

    protocol = "s3"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = MemoryFileSystem._strip_protocol(path.removeprefix("s3://"))
        return stripped


@pytest.fixture
def s3fs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file system for ``s3://`` is installed, as s3fs would be."""
    known: Any = importlib.import_module("fsspec.registry")  # the package has an attribute of that name
    monkeypatch.setitem(known._registry, "s3", Buckets)
    yield
    Buckets.store.clear()


@pytest.fixture
def lenient() -> Iterator[None]:
    """The setting of the alias."""
    with config.set({"zarr_python.storage_options": True}):
        yield


OF_FSSPEC: list[dict[str, Any]] = [
    {"profile": "x"},
    {"use_ssl": False, "requester_pays": True},
    {"config_kwargs": {"signature_version": "s3v4"}},
    {"client_kwargs": {"verify": False}},
]


@pytest.mark.usefixtures("s3fs", "lenient")
@pytest.mark.parametrize("options", OF_FSSPEC, ids=lambda options: "+".join(options))
def test_options_that_obstore_lacks_open_a_store_of_fsspec(options: dict[str, Any]) -> None:
    store = open_url("s3://bucket/place", storage_options=options)
    assert isinstance(store, FsspecStore)
    assert isinstance(store.fs, Buckets)
    assert (store.path, store.fs.storage_options) == ("/bucket/place", options)


@pytest.mark.usefixtures("s3fs", "lenient")
def test_options_of_caches_and_event_loops_are_ignored() -> None:
    options = {"anon": True, "default_cache_type": "none", "asynchronous": True, "endpoint_url": None}
    store = open_url("s3://bucket/place", storage_options=options)
    assert isinstance(store, ObjectStore)
    assert store.store.config["skip_signature"] == "true"


@pytest.mark.usefixtures("lenient")
def test_headers_in_the_options_of_the_client_are_sent(nginx: Server) -> None:
    (nginx.root / "data" / "options.bin").write_bytes(b"0123")
    url = f"http://{nginx.address}"
    store = open_url(url, storage_options={"client_kwargs": {"headers": {"X-Example": "1"}}})
    assert isinstance(store, FsspecStore)
    assert store.get("options.bin") == b"0123"


@pytest.mark.usefixtures("s3fs")
def test_an_unknown_option_names_the_store_that_takes_options_of_fsspec() -> None:
    with pytest.raises(
        StoreError, match=r"unknown storage_options for s3; got \['profile'\].*FsspecStore.from_url \(s3fs\)"
    ):
        open_url("s3://bucket/place", storage_options={"profile": "x"})


@pytest.mark.usefixtures("lenient")
def test_without_the_file_system_the_option_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(protocol: str) -> type:
        raise ImportError(f"Install the package of {protocol}")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(StoreError, match="unknown storage_options for gs"):
        open_url("gs://bucket/place", storage_options={"requester_pays": True})


@pytest.mark.usefixtures("s3fs")
def test_the_engine_and_the_writer_of_xarray_take_options_of_fsspec() -> None:
    dataset = xarray.Dataset({"a": ("x", np.arange(4))})
    options = {"profile": "x"}
    tessarr.xarray.to_zarr(dataset, "s3://bucket/data", storage_options=options, consolidated=False)
    kwargs: dict[str, Any] = {"engine": "tessarr", "storage_options": options, "consolidated": False}
    with xarray.open_dataset("s3://bucket/data", **kwargs) as found:
        with pytest.raises(ValueError, match="is not loaded"):
            tessarr.xarray.to_zarr(found, "s3://bucket/data", mode="w", storage_options=options)
        assert found.identical(dataset)
    assert any(name.endswith("data/a/zarr.json") for name in Buckets.store)
