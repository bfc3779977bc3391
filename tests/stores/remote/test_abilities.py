"""The table of what each store can do says what the stores do."""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import fsspec
import icechunk
import mongomock
import pytest
import zarr.storage

from tessarr.errors import ConflictError, ReadOnlyError, UnsupportedOperationError
from tessarr.storage import (
    DBMStore,
    FsspecStore,
    LMDBStore,
    LocalStore,
    MappingStore,
    MemoryStore,
    MongoDBStore,
    ReferenceStore,
    RemoteZipStore,
    SQLiteStore,
    Store,
    ZarrPythonStore,
    ZipStore,
)  # fmt: skip
from tessarr.stores.url import open_url
from tessarr.types import ByteRange
from tests.docs.pages import ROOT
from tests.stores.contract import plain
from tests.stores.remote.servers import AZURE_ACCOUNT, AZURE_KEY, S3_OPTIONS
from tests.stores.remote.test_remote_zip import archive

_number = itertools.count()
VALUE = bytes(range(256)) * 400


def _table() -> dict[str, list[str]]:
    lines = (ROOT / "docs" / "stores-abilities.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {re.sub(r"\[([^]]+)\]\(.*\)", r"\1", name): rest for name, *rest in rows[1:]}


TABLE = _table()
Make = Callable[[pytest.FixtureRequest, Path], Store]


def _s3(request: pytest.FixtureRequest, _: Path) -> Store:
    server = request.getfixturevalue("s3")
    return open_url(f"s3+http://{server.address}/bucket/able{next(_number)}", storage_options=S3_OPTIONS)


def _azure(request: pytest.FixtureRequest, _: Path) -> Store:
    url = f"az+http://{request.getfixturevalue('azure').address}/{AZURE_ACCOUNT}/container/able{next(_number)}"
    return open_url(url, storage_options={"account_key": AZURE_KEY})


def _http(request: pytest.FixtureRequest, _: Path) -> Store:
    server = request.getfixturevalue("nginx")
    (server.root / "data" / "able").mkdir(exist_ok=True)
    (server.root / "data" / "able" / "k").write_bytes(VALUE)
    return open_url(f"http://{server.address}/able")


def _references(_: pytest.FixtureRequest, path: Path) -> Store:
    (path / "file").write_bytes(VALUE)
    return ReferenceStore({"version": 1, "refs": {"k": [f"file://{path}/file", 0, len(VALUE)]}})


def _icechunk(_: pytest.FixtureRequest, path: Path) -> Store:
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(path / "repository")))
    return ZarrPythonStore(repository.writable_session("main").store)


STORES: dict[str, Make] = {
    "local": lambda _, path: LocalStore(path),
    "memory": lambda *_: MemoryStore(),
    "mapping": lambda *_: MappingStore(collections.UserDict()),
    "zip": lambda _, path: ZipStore(path / "a.zip", mode="w"),
    "zip elsewhere": lambda *_: RemoteZipStore(MemoryStore({"a.zip": archive({"k": VALUE})}), "a.zip"),
    "S3": _s3,
    "Google Cloud Storage": lambda request, _: open_url(
        f"gs+http://{request.getfixturevalue('gcs').address}/bucket/able{next(_number)}"
    ),
    "Azure": _azure,
    "HTTP": _http,
    "fsspec": lambda *_: FsspecStore(fsspec.filesystem("memory"), path=f"/able{next(_number)}"),
    "SQLite": lambda _, path: SQLiteStore(path / "x.sqlite"),
    "LMDB": lambda _, path: LMDBStore(path / "x.lmdb"),
    "DBM": lambda _, path: DBMStore(path / "x"),
    "Redis": lambda request, _: open_url(f"redis://{request.getfixturevalue('redis').address}/0/able{next(_number)}"),
    "MongoDB": lambda *_: MongoDBStore(client=mongomock.MongoClient()),
    "zarr-python": lambda *_: ZarrPythonStore(zarr.storage.MemoryStore()),
    "Icechunk": _icechunk,
    "references": _references,
}


@pytest.fixture
def store(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[name](request, tmp_path)


def test_every_row_of_the_table_is_tried() -> None:
    assert STORES.keys() == TABLE.keys()


@pytest.mark.parametrize("name", STORES)
def test_a_row_of_the_table_is_true(name: str, store: Store) -> None:
    atomic, conditional, _, listing, _ = TABLE[name]
    key = "k" if atomic == "read-only" else "x/zarr.json"
    value = VALUE if atomic == "read-only" else b'{"zarr_format": 3, "node_type": "group"}'
    if atomic == "read-only":
        with pytest.raises((ReadOnlyError, UnsupportedOperationError)):
            store.set(key, value)
    else:
        store.set(key, value)
    if conditional.startswith("yes"):
        version = store.version(key)
        store.set(key, value, if_match=version)
        with pytest.raises(ConflictError):
            store.set(key, value, if_match=None)
    elif conditional == "no":
        with pytest.raises(UnsupportedOperationError):
            store.set(key, value, if_match=None)
    assert plain(store.get(key, ByteRange(2, 9))) == value[2:9]
    if listing == "no":
        with pytest.raises(UnsupportedOperationError):
            [*store.list()]
    else:
        assert key in [*store.list()]
    assert store.supports_listing == (listing != "no")
    store.close()
