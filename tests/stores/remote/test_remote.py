"""Which store a URL opens, with which options, and what is said when a package is missing."""

from __future__ import annotations

import functools
import http.server
import pickle
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.errors import MissingDependencyError, StoreError
from tessarr.stores.remote import credentials
from tessarr.stores.remote.fsspec import FsspecStore
from tessarr.stores.remote.obstore.store import ObjectStore
from tessarr.stores.url import open_url
from tests.stores.contract import child_environment, plain
from tests.stores.remote.servers import S3_OPTIONS, Server


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [
        ("obstore", "s3://bucket/x", "tessarr[cloud]"),
        ("obstore fsspec", "https://example.com/x", "tessarr[cloud]"),
        ("fsspec", "github://org:repo@main/x", "tessarr[fsspec]"),
        ("redis", "redis://localhost/0/x", "tessarr[kv]"),
        ("lmdb", "lmdb:/nowhere/x", "tessarr[kv]"),
        ("pymongo", "mongodb://localhost/a/b", "tessarr[kv]"),
        ("icechunk", "file:///nowhere/x|icechunk:", "tessarr[icechunk]"),
    ],
)
def test_a_missing_package_is_an_error_that_says_what_to_install(
    package: str, url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hidden in package.split():
        for name in [name for name in sys.modules if name == hidden or name.startswith(f"{hidden}.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, hidden, None)
    with pytest.raises(MissingDependencyError) as caught:
        open_url(url).get("k")
    assert extra in str(caught.value)


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("s3a://bucket", "s3://bucket"),
        ("s3+http://localhost:9000/bucket/a%20b", "s3+http://localhost:9000/bucket/a%20b"),
        ("gs://bucket/x", "gs://bucket/x"),
        ("gcs://bucket/x", "gs://bucket/x"),
        ("az://container/x", "az://container/x"),
        ("abfs://container@account.dfs.core.windows.net/x", "abfss://container@account.dfs.core.windows.net/x"),
        ("https://user:secret@example.com/x/", "https://example.com/x"),
    ],
)
def test_every_object_store_has_a_canonical_url_that_opens_it_again(
    url: str, canonical: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    store = open_url(url, storage_options={"anon": True} if url.startswith(("s3", "g")) else None)
    assert isinstance(store, ObjectStore)
    assert store.url == canonical
    assert open_url(store.url, storage_options={"anon": True} if url.startswith(("s3", "g")) else None).url == canonical


def test_other_schemes_and_chains_go_to_fsspec() -> None:
    store = open_url("simplecache::memory://chained/x", storage_options={})
    assert isinstance(store, FsspecStore)
    with pytest.raises(StoreError, match="no filesystem handles"):
        open_url("nonsense://x/y")


def test_the_usual_names_of_fsspec_options_work(s3: Server) -> None:
    options = {
        "key": S3_OPTIONS["access_key_id"],
        "secret": S3_OPTIONS["secret_access_key"],
        "client_kwargs": {"endpoint_url": f"http://{s3.address}", "region_name": "us-east-1"},
    }
    store = open_url("s3://bucket/names", storage_options=options)
    store.set("k", b"1")
    assert store.url == f"s3+http://{s3.address}/bucket/names"
    assert plain(open_url(store.url, storage_options=S3_OPTIONS).get("k")) == b"1"


@pytest.mark.parametrize("url", ["s3://bucket/x", "https://example.com/x", "gs://bucket/x", "az://container/x"])
def test_an_option_that_nobody_knows_is_an_error(url: str) -> None:
    options: dict[str, Any] = (
        {"no_such_option": "hush-hush", "account_name": "a"} if "az" in url else {"no_such": "hush-hush"}
    )
    with pytest.raises(StoreError) as caught:
        open_url(url, storage_options=options)
    assert "hush-hush" not in str(caught.value)


_CHILD = "import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1])).get('k')"


def test_a_pickle_without_credentials_says_so_in_a_process_that_has_none(
    s3: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_url(f"s3+http://{s3.address}/bucket/pickled", storage_options=S3_OPTIONS)
    store.set("k", b"1")
    pickled = pickle.dumps(store)
    assert plain(pickle.loads(pickled).get("k")) == b"1"
    bare = {name: value for name, value in child_environment().items() if not name.startswith("AWS_")}
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, pickled.hex()], env=bare, capture_output=True, text=True, check=False
    )
    assert child.returncode == 1
    assert "carries no credentials" in child.stderr
    assert "provide_credentials" in child.stderr

    monkeypatch.setattr(credentials, "_secrets", {})
    monkeypatch.setattr(credentials, "_provided", {})
    keys = {name: S3_OPTIONS[name] for name in ("access_key_id", "secret_access_key")}
    credentials.provide_credentials(f"s3+http://{s3.address}/bucket", **keys)
    assert plain(pickle.loads(pickled).get("k")) == b"1"


NONSENSE: list[tuple[str, Any, type[Exception], str]] = [
    ("http://", None, StoreError, "no host"),
    ("https:///x", None, StoreError, "no host"),
    ("http://[::1/x", None, StoreError, "malformed"),
    ("s3://", None, StoreError, "no bucket"),
    ("gs:///x", None, StoreError, "no bucket"),
    ("s3+ftp://host/bucket", None, StoreError, "http or https"),
    ("s3://b/x", {"nonsense": 1}, StoreError, "nonsense"),
    ("gs://b/x", {"nonsense": 1}, StoreError, "nonsense"),
    ("az://b/x", {"account_name": "a", "nonsense": 1}, StoreError, "nonsense"),
    ("http://h/x", {"nonsense": 1}, StoreError, "nonsense"),
    ("memory://x", {"nonsense": 1}, TypeError, "in-process store"),
    ("s3://b/x", "anon", TypeError, "mapping"),
    ("s3://b/x", ["anon"], TypeError, "mapping"),
    ("nosuch://x", None, StoreError, "no filesystem handles"),
]


@pytest.mark.parametrize(("url", "options", "error", "said"), NONSENSE)
def test_nonsense_is_an_error_that_says_what_is_wrong(
    url: str, options: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        tessarr.open(url, mode="r", storage_options=options)


def test_an_option_that_the_client_of_a_database_does_not_know_is_an_error() -> None:
    store = open_url("redis://127.0.0.1:9/0", storage_options={"nonsense": 1})
    with pytest.raises(StoreError, match="nonsense"):
        store.get("k")


def test_a_host_may_be_an_ipv6_address(tmp_path: Path) -> None:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    class Server6(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6

    tessarr.create_array(tmp_path / "x.zarr", data=[1, 2, 3])
    server = Server6(("::1", 0), functools.partial(Handler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        array = tessarr.open_array(f"http://[::1]:{server.server_port}/x.zarr", mode="r")
        assert array[...].tolist() == [1, 2, 3]
        assert tessarr.open_array(array.store.url, mode="r") == array
    finally:
        server.shutdown()
        server.server_close()


def test_what_fsspec_calls_credentials_of_google_and_azure_means_the_same(tmp_path: Path) -> None:
    account = {"client_email": "a", "private_key": "k", "private_key_id": "i", "type": "service_account"}
    store = open_url("gs://b/x", storage_options={"token": {**account, "disable_oauth": True}, "project": "p"})
    assert isinstance(store, ObjectStore)
    assert "service_account_key" in store.store.config
    for token in ("google_default", None):
        assert isinstance(open_url("gs://b/x", storage_options={"token": token}), ObjectStore)
    with pytest.raises(StoreError, match="rejected the options"):
        open_url("gs://b/x", storage_options={"token": str(tmp_path / "nothing.json")})
    told = "DefaultEndpointsProtocol=https;AccountName=me;AccountKey=a2V5PQ==;EndpointSuffix=core.windows.net"
    azure = open_url("az://c/x", storage_options={"connection_string": told})
    assert azure.url == "abfss://c@me.dfs.core.windows.net/x"
    assert isinstance(azure, ObjectStore)
    assert azure.store.config["account_key"] == "a2V5PQ=="
    assert "a2V5PQ" not in repr(azure) + repr(pickle.dumps(azure))
