"""Stores of one place share a client, and with it their connections."""

from __future__ import annotations

import pickle

import pytest

from tessarr.stores.remote.obstore.clients import shared_client
from tessarr.stores.remote.obstore.store import ObjectStore
from tessarr.stores.url import open_url
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS, Server


def opened(s3: Server, path: str, **options: object) -> ObjectStore:
    store = open_url(f"s3+http://{s3.address}/bucket/{path}", storage_options={**S3_OPTIONS, **options})
    assert isinstance(store, ObjectStore)
    return store


def test_stores_at_different_paths_share_a_client_and_see_their_own_keys(s3: Server) -> None:
    one, other = opened(s3, "clients/one"), opened(s3, "clients/other/deep")
    assert one.store is other.store
    one.set("a/b", b"1")
    other.set("a/b", b"2")
    assert (bytes(one.get("a/b") or b""), bytes(other.get("a/b") or b"")) == (b"1", b"2")
    assert [*one.list()] == ["a/b"]
    assert one.list_dir("") == ([], ["a/"])
    above = opened(s3, "clients")
    assert sorted(above.list()) == ["one/a/b", "other/deep/a/b"]
    one.delete_many(["a/b", "gone"])
    assert one.get("a/b") is None
    assert other.get("a/b") is not None
    assert one != other
    assert one == opened(s3, "clients/one")


def test_a_name_that_begins_with_a_prefix_is_not_below_it(s3: Server) -> None:
    opened(s3, "names/ab").set("k", b"1")
    assert [*opened(s3, "names/a").list()] == []


def test_other_options_and_another_environment_give_another_client(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    one = opened(s3, "x")
    assert opened(s3, "x", region="elsewhere").store is not one.store
    assert opened(s3, "x", client_options={"timeout": "3s"}).store is not one.store
    monkeypatch.setenv("AWS_SESSION_TOKEN", "another")
    assert opened(s3, "x").store is not one.store


def test_a_pickled_store_keeps_its_prefix(s3: Server) -> None:
    store = opened(s3, "clients/pickled")
    store.set("k", b"1")
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert bytes(again.get("k")) == b"1"


def test_arrays_opened_one_after_another_use_the_same_connections(s3_proxy: Proxy) -> None:
    url = f"s3+http://{s3_proxy.address}/bucket/clients"
    for number in range(20):
        open_url(f"{url}/{number}", storage_options=S3_OPTIONS).get("zarr.json")
    # A connection goes back to the pool a moment after its answer was read: the next request may miss it once or
    # twice. Stores that did not share a client would need one connection each.
    assert s3_proxy.connections < 10


def test_the_table_of_clients_is_bounded() -> None:
    made = [shared_client("Kind", f"place{number}", {}, object) for number in range(200)]
    assert shared_client("Kind", "place199", {}, object) is made[199]
    assert shared_client("Kind", "place0", {}, object) is not made[0]
