"""From what a user gives to a store."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr import built_in, registry
from tessarr.errors import StoreError
from tessarr.storage import PrefixStore, WrapperStore
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.mapping import MappingStore
from tessarr.stores.memory.store import ManagedMemoryStore, MemoryStore
from tessarr.stores.path import StorePath
from tessarr.stores.url import StoreLike, is_url, overlaps, same_place, store_from
from tessarr.stores.zip.store import ZipStore
from tests.stores.contract import child_environment


@pytest.mark.spec("FS-10", "V3-STORE-20")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/x", True), ("https://host/x", True), ("file:///x", True), ("file:/x", True), ("memory://a", True),
        ("sqlite:x.db", True), ("zip::https://host/x.zip", True), ("s3+http://host/b", True), ("C:\\x", False),
        ("C:/x", False), ("c:x", False), ("data/x.zarr", False), ("/x", False), ("a:b", False), ("a b://c", False),
        ("./file:x", False), ("x.zarr#1", False), ("", False),
    ],
)  # fmt: skip
def test_what_is_a_url_and_what_a_path(text: str, expected: bool) -> None:
    assert is_url(text) is expected


@pytest.mark.spec("FS-10", "FS-09", "V3-STORE-20")
def test_paths_and_file_urls_open_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for given, expected in [
        ("data/x.zarr", tmp_path / "data" / "x.zarr"),
        (tmp_path / "y", tmp_path / "y"),
        (str(tmp_path / "a#b?c%20d&e"), tmp_path / "a#b?c%20d&e"),
        ((tmp_path / "a b#é").as_uri(), tmp_path / "a b#é"),
        (f"file:{tmp_path}/z", tmp_path / "z"),
        ("~/x.zarr", tmp_path / "home" / "x.zarr"),
        ("C:\\x", tmp_path / "C:\\x"),
    ]:
        store, path = store_from(given)
        assert isinstance(store, LocalStore)
        assert (store.root, path) == (expected, "")
        assert store_from(store.url)[0] == store
    assert list(tmp_path.iterdir()) == [], "opening makes nothing"


def test_a_mode_of_reading_makes_what_is_opened_read_only(tmp_path: Path) -> None:
    given: StoreLike
    for given in (str(tmp_path), tmp_path, tmp_path.as_uri(), {}, None, "memory://url-test-r"):
        assert store_from(given, mode="r")[0].read_only
        assert store_from(given, read_only=True)[0].read_only
        assert not store_from(given, mode="a")[0].read_only
    given_store = MemoryStore()
    assert store_from(given_store, mode="r")[0] is given_store
    assert not given_store.read_only


def test_stores_and_places_in_them_are_themselves() -> None:
    store = MemoryStore()
    assert store_from(store) == (store, "")
    assert store_from(StorePath(store, "a/b")) == (store, "a/b")


def test_mappings_are_stores() -> None:
    values: dict[str, bytes] = {}
    store = store_from(values)[0]
    assert isinstance(store, MemoryStore)
    store.set("a", b"1")
    assert values == {"a": b"1"}
    import collections

    other = store_from(collections.UserDict())[0]
    assert isinstance(other, MappingStore)


def test_nothing_is_a_new_place_in_memory() -> None:
    one, two = store_from(None)[0], store_from(None)[0]
    assert isinstance(one, MemoryStore)
    assert not same_place(one, two)


@pytest.mark.spec("V3-STORE-20")
def test_memory_urls_name_a_place_and_a_path() -> None:
    store, path = store_from("memory://url-test/a//b%20c/")
    assert isinstance(store, ManagedMemoryStore)
    assert (store.name, path) == ("url-test", "a/b c")
    assert same_place(store, store_from("memory://url-test")[0])
    assert same_place(store_from("memory://")[0], store_from("memory://")[0])


def test_zip_files_are_found_by_name_or_content(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "x.zip", mode="w") as made:
        made.set("a", b"1")
    (tmp_path / "other.name").write_bytes((tmp_path / "x.zip").read_bytes())
    for name in ("x.zip", "other.name"):
        for mode in ("r", "a", None):
            store = store_from(str(tmp_path / name), mode=mode)[0]
            assert isinstance(store, ZipStore)
            assert store.get("a") == b"1"
            assert store.read_only == (mode == "r")
    new = store_from(tmp_path / "new.zip", mode="w")[0]
    assert isinstance(new, ZipStore)
    new.set("a", b"2")
    new.close()
    assert zipfile.is_zipfile(tmp_path / "new.zip")
    with pytest.raises(FileExistsError):
        store_from(tmp_path / "new.zip", mode="w-")[0].set("a", b"3")
    (tmp_path / "directory.zip").mkdir()
    assert isinstance(store_from(tmp_path / "directory.zip")[0], LocalStore)


@pytest.mark.parametrize("url", ["zip://a.zip", "zip:///a.zip", "zip://inner/path"])
def test_a_zip_url_without_an_archive_says_how_to_name_one(url: str) -> None:
    with pytest.raises(StoreError, match=r"names no archive.*zip://path::a.zip"):
        store_from(url)


def test_a_file_that_is_no_store_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(StoreError, match="is a file, not a store"):
        store_from(tmp_path / "x.h5")
    with pytest.raises(StoreError, match="path of the store is empty"):
        store_from("")


@pytest.mark.parametrize("given", [3, b"x", object(), ("a",)])
def test_what_is_no_store_is_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError, match="Unsupported type for store_like"):
        store_from(given)


def test_storage_options_are_for_urls(tmp_path: Path) -> None:
    given: StoreLike
    for given in (str(tmp_path), {}, None):
        with pytest.raises(TypeError, match="storage_options"):
            store_from(given, storage_options={"anon": True})


def test_other_urls_go_to_the_opener_of_their_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def opener(scheme: str) -> Any:
        def opens(text: str, options: Any, read_only: bool) -> MemoryStore:
            calls.append((scheme, text, options, read_only))
            return MemoryStore()

        return opens

    for scheme in ("s3", "sqlite", "pipeline", "place"):
        monkeypatch.setitem(registry._TABLE["store_url"], scheme, opener(scheme))
    monkeypatch.setattr("tessarr.stores.remote.fsspec.open_url", opener("fsspec"))
    for scheme, text in (
        ("s3", "s3://bucket/x"),
        ("s3", "s3+https://host/bucket/x"),
        ("fsspec", "simplecache::memory://x"),
        ("fsspec", "sftp://host/x"),
        ("sqlite", "sqlite:x.db"),
        ("pipeline", "zip::file:///x.zip"),
        ("pipeline", "s3://bucket/x.zip"),
        ("place", "place://x"),
    ):
        assert isinstance(store_from(text, mode="r", storage_options={"a": 1})[0], MemoryStore)
        called, opened, *rest = calls.pop()
        assert (called, rest) == (scheme, [{"a": 1}, True])
        assert scheme == "pipeline" or opened == text


def test_stores_that_few_use_are_registered_by_entry_points_alone(tmp_path: Path) -> None:
    assert {"sqlite", "pipeline"} <= built_in.TABLE["store_url"].keys()
    assert not {"dbm", "mongodb"} & built_in.TABLE["store_url"].keys()
    points = {point.name for point in importlib.metadata.entry_points(group="tessarr.store_url")}
    assert {"dbm", "mongodb"} <= points
    with store_from(f"dbm:{tmp_path}/a.db")[0] as store:
        store.set("a", b"1")
    with store_from(f"dbm:{tmp_path}/a.db", mode="r")[0] as store:
        assert bytes(store["a"]) == b"1"


def test_fsspec_and_obstore_objects_are_recognised() -> None:
    fsspec = pytest.importorskip("fsspec")
    obstore = pytest.importorskip("obstore")
    mapper = fsspec.get_mapper("memory://url-test-map")
    store = store_from(mapper)[0]
    assert type(store).__name__ == "FsspecStore"
    store.set("a", b"1")
    assert mapper["a"] == b"1"
    assert type(store_from(obstore.store.MemoryStore())[0]).__name__ == "ObjectStore"

    class Wrapped:
        """What has obspec's methods need not be obstore's."""

        def __init__(self) -> None:
            self._inner = obstore.store.MemoryStore()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    assert type(store_from(Wrapped())[0]).__name__ == "ObjectStore"


def test_local_stores_load_nothing_remote() -> None:
    code = (
        "import sys; from tessarr.stores.url import store_from; s = store_from(sys.argv[1])[0]; s.get('a'); s.set('a', b'')\n"
        "store_from('memory://x'); store_from({})\n"
        "print([m for m in ('asyncio', 'zipfile', 'fsspec', 'obstore', 'tessarr.stores.remote.obstore.open')"
        " if m in sys.modules])"
    )
    with __import__("tempfile").TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code, folder], env=child_environment(), capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == "[]"


# -- one place under two names ---------------------------------------------------------------------------------------


def test_one_place_under_two_names_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    os.symlink(tmp_path / "x", tmp_path / "link")
    values: dict[str, bytes] = {}
    for one, two in [
        (LocalStore(tmp_path / "x"), LocalStore(tmp_path / "link", read_only=True)),
        (LocalStore(tmp_path / "x"), WrapperStore(LocalStore(tmp_path / "y" / ".." / "x"))),
        (MemoryStore(values), MemoryStore(values)),
        (ManagedMemoryStore("url-test-same", path="a"), PrefixStore(ManagedMemoryStore("url-test-same"), "a")),
        (PrefixStore(LocalStore(tmp_path), "x"), LocalStore(tmp_path / "x")),
    ]:
        assert same_place(one, two)
        assert not same_place(one, MemoryStore())
    assert not same_place(LocalStore(tmp_path / "x"), LocalStore(tmp_path))
    assert not same_place(ManagedMemoryStore(), ManagedMemoryStore())


def test_nodes_that_lie_in_each_other_are_found_out(tmp_path: Path) -> None:
    whole, part = LocalStore(tmp_path), LocalStore(tmp_path / "a")
    assert overlaps(whole, "a/b", part, "b")
    assert overlaps(whole, "", part, "b")
    assert overlaps(part, "b/c", whole, "a/b")
    assert not overlaps(whole, "ab", part, "")
    assert not overlaps(whole, "a/b", part, "c")
    assert not overlaps(MemoryStore(), "", MemoryStore(), "")


def test_storage_options_of_what_is_open_already_are_refused(tmp_path: Path) -> None:
    group = tessarr.open_group(tmp_path / "a.zarr", mode="w")
    array = group.create_array("a", shape=2, dtype="u1")
    opened: StoreLike
    for opened in (group.store, group, array, StorePath(group.store, "a")):
        with pytest.raises(TypeError, match="storage_options are for URLs"):
            tessarr.open(opened, storage_options={"anon": True})
    with pytest.raises(TypeError, match="storage_options are for URLs"):
        group.create_array("b", shape=2, dtype="u1", storage_options={"anon": True})
    assert "b" not in group
    assert group.create_array("c", shape=2, dtype="u1", storage_options={}).shape == (2,)
