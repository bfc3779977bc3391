"""`store.url` opens the same place again, whatever the store."""

from __future__ import annotations

import collections
from collections.abc import Callable
from pathlib import Path

import fsspec
import obstore.store
import pytest
import zarr.abc.store
import zarr.storage

from tessarr.storage import PrefixStore
from tessarr.stores.base import Store
from tessarr.stores.database.dbm import DBMStore
from tessarr.stores.database.lmdb import LMDBStore
from tessarr.stores.database.sqlite import SQLiteStore
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.mapping import MappingStore
from tessarr.stores.memory.store import ManagedMemoryStore, MemoryStore
from tessarr.stores.remote.fsspec import FsspecStore
from tessarr.stores.remote.obstore.store import ObjectStore
from tessarr.stores.url import store_from
from tessarr.stores.virtual.reference import ReferenceStore
from tessarr.stores.virtual.zarr_python import ZarrPythonStore
from tessarr.stores.wrappers.cache import CacheStore
from tessarr.stores.zip.store import ZipStore

NAME = "we ird#ü%41"
STORES: dict[str, Callable[[Path], Store]] = {
    "local": lambda path: LocalStore(path / NAME),
    "memory": lambda _: MemoryStore(),
    "managed": lambda _: ManagedMemoryStore(NAME),
    "mapping": lambda _: MappingStore(collections.UserDict()),
    "sqlite": lambda path: SQLiteStore(path / NAME),
    "lmdb": lambda path: LMDBStore(path / NAME),
    "dbm": lambda path: DBMStore(str(path / NAME)),
    "obstore directory": lambda path: ObjectStore(obstore.store.LocalStore(path / "x y", mkdir=True)),
    "obstore memory": lambda _: ObjectStore(obstore.store.MemoryStore()),
    "fsspec directory": lambda path: FsspecStore(fsspec.filesystem("file"), path=str(path / NAME)),
    "fsspec memory": lambda path: FsspecStore(fsspec.filesystem("memory"), path=f"/{path.name}"),
    "prefix": lambda path: PrefixStore(LocalStore(path), "a b/c"),
    "prefix of a mapping": lambda _: PrefixStore(MappingStore(collections.UserDict()), "a b/c"),
    "prefix of a database": lambda path: PrefixStore(SQLiteStore(path / NAME), "a b/c"),
    "layer": lambda path: CacheStore(LocalStore(path)),
}


@pytest.mark.parametrize("name", STORES)
def test_the_url_of_a_store_opens_the_same_place(name: str, tmp_path: Path) -> None:
    store = STORES[name](tmp_path)
    store.set("a b/k", b"value")
    again, path = store_from(store.url)
    prefix = f"{path}/" if path else ""
    assert bytes(again.get(f"{prefix}a b/k") or b"") == b"value"
    if name != "dbm":  # whose libraries keep what they read
        again.set(f"{prefix}other", b"2")
        assert bytes(store.get("other") or b"") == b"2"
    assert path or again.url == store.url
    read_only, _ = store_from(store.url, read_only=True)
    assert read_only.read_only
    for opened in (store, again, read_only):
        opened.close()


IN_THIS_PROCESS: dict[str, Callable[[], Store]] = {
    "references": lambda: ReferenceStore({"version": 1, "refs": {"a b/k": "value"}}),
    "zarr-python": lambda: ZarrPythonStore(_filled(zarr.storage.MemoryStore())),
    "zarr-python over obstore": lambda: ZarrPythonStore(_filled(zarr.storage.ObjectStore(obstore.store.MemoryStore()))),
}


def _filled(store: zarr.abc.store.Store) -> zarr.abc.store.Store:
    ZarrPythonStore(store).set("a b/k", b"value")
    return store


@pytest.mark.parametrize("name", IN_THIS_PROCESS)
def test_a_place_that_only_this_process_has_is_opened_by_its_url(name: str) -> None:
    store = IN_THIS_PROCESS[name]()
    again, path = store_from(store.url)
    assert (again.url, path) == (store.url, "")
    assert bytes(again.get("a b/k") or b"") == b"value"


def test_the_url_of_a_part_of_an_archive_leads_into_it(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "x y.zip", mode="w") as archive:
        part = PrefixStore(archive, "a b/c")
        part.set("k", b"value")
    assert part.url == f"{(tmp_path / 'x y.zip').as_uri()}|zip:a%20b/c"
    assert bytes(store_from(part.url, read_only=True)[0].get("k") or b"") == b"value"


@pytest.mark.parametrize(
    ("protocol", "options", "path", "url"),
    [
        ("ftp", {"host": "h", "port": 2121}, "/a", "ftp://h:2121/a"),
        ("http", {}, "http://h/a", "http://h/a"),
        ("s3", {"endpoint_url": "http://h:1/"}, "bucket/a b", "s3+http://h:1/bucket/a%20b"),
        ("s3", {"client_kwargs": {"endpoint_url": "https://h"}}, "bucket", "s3+https://h/bucket"),
        ("gs", {}, "bucket/a", "gs://bucket/a"),
    ],
)
def test_the_url_of_a_filesystem_names_its_server(
    protocol: str, options: dict[str, object], path: str, url: str
) -> None:
    class Somewhere(fsspec.AbstractFileSystem):  # type: ignore[misc]
        cachable = False

    Somewhere.protocol = protocol
    assert FsspecStore(Somewhere(**options), path=path).url == url


def test_a_place_that_is_gone_is_told() -> None:
    from tessarr.errors import StoreError

    url = MappingStore(collections.UserDict()).url
    with pytest.raises(StoreError, match="no longer exists"):
        store_from(url)
