"""Object stores: S3, Google Cloud Storage and Azure servers, and obstore's memory, under the one contract."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from obstore.store import LocalStore as ObstoreLocal
from obstore.store import MemoryStore as ObstoreMemory

import tessarr
from tessarr.stores.remote.obstore.store import ObjectStore
from tessarr.stores.url import open_url
from tessarr.types import ByteRange
from tests.stores.contract import ConditionalContract, SharedContract, StoreContract, plain
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import AZURE_ACCOUNT, AZURE_KEY, S3_OPTIONS, Server

_number = itertools.count()


class TestS3(StoreContract, ConditionalContract, SharedContract):
    threads = 1

    @pytest.fixture
    def store(self, s3: Server, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        # The pickles carry no credentials: the child processes find them here.
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", S3_OPTIONS["access_key_id"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", S3_OPTIONS["secret_access_key"])
        url = f"s3+http://{s3.address}/bucket/t{next(_number)}/deep"
        return open_url(url, storage_options=S3_OPTIONS)  # type: ignore[return-value]


class TestGoogle(StoreContract, ConditionalContract, SharedContract):
    processes, threads = 3, 2

    @pytest.fixture
    def store(self, gcs: Proxy) -> ObjectStore:
        return open_url(f"gs+http://{gcs.address}/bucket/t{next(_number)}")  # type: ignore[return-value]


class TestAzure(StoreContract, ConditionalContract, SharedContract):
    processes, threads = 3, 2

    @pytest.fixture
    def store(self, azure: Server, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY)
        url = f"az+http://{azure.address}/{AZURE_ACCOUNT}/container/t{next(_number)}"
        return open_url(url, storage_options={"account_key": AZURE_KEY})  # type: ignore[return-value]


class TestObstoreObject(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return ObjectStore(ObstoreMemory())


class TestS3BelowTheRoot(StoreContract):
    """A bucket's root, where no prefix is put before the keys."""

    @pytest.fixture
    def store(self, s3: Server) -> ObjectStore:
        store = open_url(f"s3+http://{s3.address}/second", storage_options=S3_OPTIONS)
        (s3.root / "data" / "second").mkdir(exist_ok=True)
        store.clear()
        return store  # type: ignore[return-value]


class TestObstoreLocal(StoreContract):
    """A place without conditional writes: updates hold this process's lock."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return ObjectStore(ObstoreLocal(str(tmp_path)))


@pytest.mark.parametrize("place", ["s3", "gcs", "azure"])
def test_a_large_object_is_written_in_parts(place: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue(place).address
    url, options = {
        "s3": (f"s3+http://{address}/bucket/large", S3_OPTIONS),
        "gcs": (f"gs+http://{address}/bucket/large", {}),
        "azure": (f"az+http://{address}/{AZURE_ACCOUNT}/container/large", {"account_key": AZURE_KEY}),
    }[place]
    store = open_url(url, storage_options=options)
    value = np.random.default_rng(6).bytes(65 << 20)
    version = store.set("k", value)
    assert store.getsize("k") == len(value)
    assert store.version("k") == version
    assert plain(store.get("k", ByteRange(-1000))) == value[-1000:]
    assert plain(store.get("k")) == value
    array = tessarr.create_array(store, name="a", shape=(65 << 20,), chunks=(65 << 20,), dtype="u1", compressors=None)
    array[...] = np.frombuffer(value, "u1")
    np.testing.assert_array_equal(array[-5000:], np.frombuffer(value[-5000:], "u1"))
