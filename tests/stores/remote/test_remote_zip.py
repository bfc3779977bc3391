"""Archives in other stores, read by ranges."""

from __future__ import annotations

import asyncio
import io
import itertools
import zipfile
from typing import Any

import numpy as np
import pytest
import zarr.storage

from tessarr.errors import StoreError
from tessarr.stores.asynchronous import to_sync
from tessarr.stores.base import Fetch, Store
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.url import open_url
from tessarr.stores.virtual.zarr_python import ZarrPythonStore
from tessarr.stores.zip.remote import RemoteZipStore
from tessarr.types import Buffer, ByteRange
from tests.stores.contract import SEED, ListContract, ReadContract, plain
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS

_number = itertools.count()


def archive(values: dict[str, bytes], method: int = zipfile.ZIP_STORED, extra: int = 0) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for key, value in values.items():
            info = zipfile.ZipInfo(key)
            info.compress_type = method
            info.extra = b"\x99\x99" + extra.to_bytes(2, "little") + bytes(extra) if extra else b""
            made.writestr(info, value)
    return file.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
class TestInMemory(ReadContract):
    @pytest.fixture
    def seeded(self, method: int) -> Store:
        return RemoteZipStore(MemoryStore({"in/a.zip": archive(SEED, method)}), "in/a.zip")


class TestListing(ListContract):
    test_a_directory_lists_its_direct_children = None  # type: ignore[assignment]  # it writes
    test_a_listing_may_be_changed_under = None  # it deletes

    @pytest.fixture
    def seeded(self) -> Store:
        return RemoteZipStore(MemoryStore({"a.zip": archive(SEED)}), "a.zip")


@pytest.fixture
def remote(s3_proxy: Proxy) -> Store:
    store = open_url(f"s3+http://{s3_proxy.address}/bucket/z{next(_number)}", storage_options=S3_OPTIONS)
    rng = np.random.default_rng(4)
    values = {f"c/{number}": rng.bytes(200_000) for number in range(40)}
    store.set("a.zip", archive(values))
    s3_proxy.clear()
    return store


def test_a_remote_archive_opens_in_two_requests_and_gives_values_in_one_each(remote: Store, s3_proxy: Proxy) -> None:
    store = RemoteZipStore(remote, "a.zip")
    assert store.exists("c/3")
    assert s3_proxy.counts() == {"HEAD": 1, "GET": 1}
    s3_proxy.clear()
    whole = plain(store.get("c/3"))
    assert s3_proxy.counts() == {"GET": 1}
    s3_proxy.clear()
    parts = plain(store.get_ranges("c/3", [ByteRange(10, 20), ByteRange(-100), ByteRange(150_000, 150_001)]))
    assert s3_proxy.counts() == {"GET": 1}
    assert parts == [whole[10:20], whole[-100:], whole[150_000:150_001]]
    s3_proxy.clear()
    wanted = [Fetch("c/1"), Fetch("c/2"), Fetch("c/30", (ByteRange(5, 9),))]
    found = asyncio.run(store.fetch_async(wanted))
    assert s3_proxy.counts() == {"GET": 2}  # neighbours share a request
    assert [plain(parts) for parts in found] == [plain(parts) for parts in store.fetch(wanted)]


def test_the_archive_is_not_downloaded(remote: Store, s3_proxy: Proxy) -> None:
    store = RemoteZipStore(remote, "a.zip")
    store.get("c/3")
    asked = [request.range for request in s3_proxy.seen if request.method == "GET"]
    assert asked[0] == "bytes=-65536"
    assert len(asked) == 2
    first, last = map(int, str(asked[1]).removeprefix("bytes=").split("-"))
    assert 200_000 <= last - first < 200_100  # of an archive of 8 MB


@pytest.mark.parametrize("extra", [0, 20, 28, 60, 61, 500])
def test_extra_fields_of_any_length_are_passed_over(extra: int) -> None:
    store = RemoteZipStore(MemoryStore({"a.zip": archive({"k": b"0123456789", "l": b"x"}, extra=extra)}), "a.zip")
    assert plain(store.get_ranges("k", [ByteRange(2, 5), ByteRange(-1)])) == [b"234", b"9"]
    assert plain(store.get("k")) == b"0123456789"


def test_a_large_directory_is_read_with_one_more_request() -> None:
    values = {f"a/long/name/to/fill/the/directory/{number}": b"%d" % number for number in range(5000)}
    store = RemoteZipStore(MemoryStore({"a.zip": archive(values)}), "a.zip")
    assert len([*store.list()]) == 5000
    assert plain(store.get("a/long/name/to/fill/the/directory/4711")) == b"4711"


class Awaited:
    """The four methods as coroutines, which wait for their event loop."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.inner = MemoryStore(values)

    async def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        await asyncio.sleep(0)
        return self.inner.get(key, byte_range)

    async def set(self, key: str, value: Buffer) -> None:
        raise NotImplementedError

    async def delete(self, key: str) -> None:
        raise NotImplementedError

    async def list(self, prefix: str = "") -> list[str]:
        return [*self.inner.list(prefix)]


def over_zarr_python(values: dict[str, bytes]) -> Store:
    store = ZarrPythonStore(zarr.storage.MemoryStore())
    for key, value in values.items():
        store.set(key, value)
    return store


@pytest.mark.parametrize("place", [MemoryStore, lambda values: to_sync(Awaited(values)), over_zarr_python])
def test_an_archive_in_any_kind_of_store_is_read_from_synchronous_and_from_asynchronous_code(place: Any) -> None:
    """Where no event loop is running, a coroutine of the archive must not await one of a store that needs its loop."""
    values = {"k": b"0123456789", "l": b"x"}
    wanted = [Fetch("k", (ByteRange(2, 4), ByteRange(-1))), Fetch("l"), Fetch("m")]
    expected = [[b"23", b"9"], [b"x"], None]
    inner = archive({"a.zip": archive(values, extra=500)})
    for store in (
        RemoteZipStore(place({"a.zip": archive(values, extra=500)}), "a.zip"),
        RemoteZipStore(RemoteZipStore(place({"b.zip": inner}), "b.zip"), "a.zip"),
    ):
        assert [plain(parts) for parts in store.fetch(wanted)] == expected
        assert plain(store.get("k")) == b"0123456789"
        assert sorted(store.list()) == ["k", "l"]

        async def read(key: str, store: Store = store) -> list[list[Buffer] | None]:
            assert await store.exists_async(key)
            assert store.exists(key)  # synchronous calls work in an event loop, too
            return await store.fetch_async(wanted)

        async def read_all() -> None:
            twin = RemoteZipStore(store.store, store.key)  # noqa: B023 - called in this round
            for found in await asyncio.gather(*(read(key, twin) for key in ["k", "l"] * 20)):
                assert [plain(parts) for parts in found] == expected

        asyncio.run(read_all())


def test_what_is_no_archive_is_an_error() -> None:
    for values in ({"a.zip": b"not a zip"}, {"a.zip": b""}, {"a.zip": archive({"k": b"1"})[:-30]}, {}):
        with pytest.raises(StoreError):
            RemoteZipStore(MemoryStore(values), "a.zip").get("k")


def test_damage_is_an_error_with_the_key() -> None:
    data = bytearray(archive({"k": b"0123456789"}))
    data[35] ^= 1
    with pytest.raises(StoreError, match="CRC-32") as caught:
        RemoteZipStore(MemoryStore({"a.zip": bytes(data)}), "a.zip").get("k")
    assert caught.value.key == "k"
