"""The file system store, as a user meets it: directories, paths and URLs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import tessarr
from tessarr.errors import KeyValidationError, NodeNotFoundError
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import file_url, path_of_file_url
from tessarr.stores.url import is_url, store_from
from tests.conformance.documents import Place, array_document
from tests.narrow import array_of


@pytest.mark.spec("FS-01", "FS-04")
def test_a_key_is_a_path_below_the_base(tmp_path: Path) -> None:
    tessarr.create_array(str(tmp_path / "deep" / "base"), name="foo", shape=2, dtype="i1", fill_value=0)[...] = 1
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["deep/base/foo/c/0", "deep/base/foo/zarr.json", "deep/base/zarr.json"]


@pytest.mark.spec("FS-03")
def test_a_directory_in_place_of_a_chunk_is_a_missing_chunk(tmp_path: Path) -> None:
    place = Place(tmp_path / "z")
    z = place.open(array_document((4,), (2,), fill_value=7))
    (tmp_path / "z" / "c" / "0").mkdir(parents=True)
    assert z[...].tolist() == [7, 7, 7, 7]
    assert LocalStore(tmp_path / "z").get("c/0") is None
    assert LocalStore(tmp_path / "z").get("c") is None


@pytest.mark.spec("FS-05", "FS-06", "FS-07", "FS-08")
def test_listing_sees_files_and_erasing_a_key_spares_a_directory(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a/b", b"1")
    (tmp_path / "a" / "empty").mkdir()
    assert list(store.list()) == ["a/b"]
    assert list(store.list_prefix("none/")) == []
    assert store.list_dir("a/") == (["a/b"], ["a/empty/"])
    store.delete("a")
    assert store.get("a/b") == b"1"
    store.delete_prefix("a/")
    assert not (tmp_path / "a" / "b").exists()
    assert list(tessarr.group(str(tmp_path))) == []


@pytest.mark.spec("FS-09")
def test_the_examples_of_canonical_urls(tmp_path: Path) -> None:
    assert file_url("c:\\my data", windows=True) == "file:///c:/my%20data"
    assert file_url("/my data", windows=False) == "file:///my%20data"
    assert path_of_file_url("file:///c:/my%20data", windows=True).replace("/", "\\") == "c:\\my data"
    assert path_of_file_url("file:///my%20data", windows=False) == "/my data"
    place = tmp_path / "mÿ data%20#?"
    z = tessarr.create_array(str(place), shape=2, dtype="i1")
    assert "%C3%BF" in z.store.url
    assert tessarr.open(z.store.url, mode="r").shape == (2,)
    assert (place / "zarr.json").exists()


@pytest.mark.spec("FS-10")
def test_a_string_without_scheme_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tessarr.create_array("data/x.zarr", shape=2, dtype="i1")
    assert (tmp_path / "data" / "x.zarr" / "zarr.json").exists()
    assert tessarr.open("./data/x.zarr", mode="r") == tessarr.open(tmp_path / "data" / "x.zarr", mode="r")
    for path in ("C:\\x", "c:/x", "D:relative", "a b", "a#b"):
        assert not is_url(path)
        assert isinstance(store_from(path, mode="a")[0], LocalStore)
    assert is_url("file:///x")
    assert is_url("s3://bucket/x")
    with pytest.raises(NodeNotFoundError):
        tessarr.open("nothing/here.zarr", mode="r")
    assert not (tmp_path / "nothing").exists()


@pytest.mark.spec("FS-11")
@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/x", "a/..", "./x"])
def test_a_key_cannot_leave_the_base(key: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"secret")
    store = LocalStore(tmp_path / "base")
    for use in (lambda: store.get(key), lambda: store.set(key, b""), lambda: store.delete(key)):
        with pytest.raises(KeyValidationError):
            use()
    assert (tmp_path / "x").read_bytes() == b"secret"


@pytest.mark.spec("FS-13")
def test_a_copied_directory_opens(tmp_path: Path) -> None:
    root = tessarr.group(str(tmp_path / "a.zarr"), attributes={"a": 1})
    root.create_array("g/z", shape=(4, 4), chunks=(2, 2), shards=(4, 4), dtype="f4")[...] = 3
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "b.zarr")
    shutil.rmtree(tmp_path / "a.zarr")
    copy = tessarr.open_group(str(tmp_path / "b.zarr"), mode="r+")
    assert copy.attrs["a"] == 1
    array_of(copy["g/z"])[0, 0] = 4
    assert float(array_of(copy["g/z"])[...].sum()) == 49.0
    assert not [name for _, _, files in os.walk(tmp_path) for name in files if name.startswith(".")]
