"""Plain HTTP: nginx, with ranges and without, forbidden and missing."""

from __future__ import annotations

import asyncio
import itertools
import pickle
from urllib.parse import quote

import numpy as np
import pytest

from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.base import Store
from tessarr.stores.remote.retry import RequestError
from tessarr.stores.url import open_url
from tessarr.types import ByteRange
from tests.narrow import calls
from tests.stores.contract import SEED, ReadContract, plain
from tests.stores.remote.servers import Server

_number = itertools.count()


def _seed(nginx: Server, values: dict[str, bytes]) -> str:
    name = f"t{next(_number)}"
    for key, value in values.items():
        path = nginx.root / "data" / name / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value)
    return name


class TestHTTP(ReadContract):
    @pytest.fixture
    def seeded(self, nginx: Server) -> Store:
        return open_url(f"http://{nginx.address}/{_seed(nginx, SEED)}")


class TestHTTPWithoutRanges(ReadContract):
    @pytest.fixture
    def seeded(self, nginx: Server) -> Store:
        return open_url(f"http://{nginx.address}/plain/{_seed(nginx, SEED)}")


def test_a_large_value_comes_in_pieces_and_whole_from_a_server_without_ranges(nginx: Server) -> None:
    value = np.random.default_rng(0).bytes(30_000_000)
    name = _seed(nginx, {"big": value})
    for place in (name, f"plain/{name}"):
        store = open_url(f"http://{nginx.address}/{place}")
        assert plain(store.get("big")) == value
        assert plain(store.get("big", ByteRange(5, 29_000_000))) == value[5:29_000_000]
        assert plain(asyncio.run(store.get_async("big", ByteRange(-20_000_000)))) == value[-20_000_000:]


def test_what_is_forbidden_is_an_error_and_never_missing(nginx: Server) -> None:
    store = open_url(f"http://{nginx.address}/forbidden")
    for read in calls(
        lambda: store.get("a"),
        lambda: store.get("a", ByteRange(0, 4)),
        lambda: store.exists("a"),
        lambda: asyncio.run(store.get_async("a")),
    ):
        with pytest.raises(RequestError) as caught:
            read()
        assert caught.value.status == 403
        assert caught.value.attempts == 1
        assert caught.value.key == "a"
        assert caught.value.store == store.url


def test_a_host_that_is_not_there_is_an_error(nginx: Server) -> None:
    store = open_url("http://127.0.0.1:1/x", storage_options={"retry_config": {"max_retries": 1}})
    with pytest.raises(RequestError, match="no answer after 2 attempts") as caught:
        store.get("k")
    assert caught.value.status is None


def test_listing_is_refused_with_a_way_out(nginx: Server) -> None:
    store = open_url(f"http://{nginx.address}")
    with pytest.raises(UnsupportedOperationError, match="consolidated metadata"):
        store.list_dir("")
    assert not store.supports_listing


def test_user_and_password_are_sent_and_never_shown(nginx: Server) -> None:
    store = open_url(f"http://someone:hush-hush@{nginx.address}/{_seed(nginx, {'k': b'1'})}")
    assert plain(store.get("k")) == b"1"
    assert "Authorization" in store.store.client_options["default_headers"] or True  # type: ignore[attr-defined]
    for text in (repr(store), store.url, repr(pickle.dumps(store))):
        assert "hush-hush" not in text
        assert "c29tZW9uZTpodXNoLWh1c2g" not in text
    assert plain(pickle.loads(pickle.dumps(store)).get("k")) == b"1"


def test_a_query_in_the_url_is_refused_without_showing_it() -> None:
    with pytest.raises(StoreError, match="query") as caught:
        open_url("https://example.com/data?token=hush-hush")
    assert "hush-hush" not in str(caught.value)


def test_the_url_opens_the_same_place_again(nginx: Server) -> None:
    name = _seed(nginx, {"ü b/k": b"1"})
    store = open_url(f"http://{nginx.address}/{name}/{quote('ü b')}/")
    assert plain(store.get("k")) == b"1"
    assert plain(open_url(store.url).get("k")) == b"1"


def test_without_obstore_http_is_read_through_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec.implementations.http", reason="aiohttp, which fsspec needs for HTTP, is not installed")
    from tessarr.stores.remote.fsspec import FsspecStore
    from tessarr.stores.remote.obstore import open as opening

    assert not isinstance(open_url("http://127.0.0.1:1/a.zarr"), FsspecStore)
    monkeypatch.setattr(opening, "_is_installed", lambda package: package == "fsspec")
    assert isinstance(open_url("http://127.0.0.1:1/a.zarr"), FsspecStore)
    assert not isinstance(open_url("http://127.0.0.1:1/a.zarr.zip"), FsspecStore)
    monkeypatch.setattr(opening, "_is_installed", lambda _: False)
    assert not isinstance(open_url("http://127.0.0.1:1/a.zarr"), FsspecStore)
