"""The door to the stores, and zarr-python 2's names behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import storage
from tessarr.stores.local.store import LocalStore
from tessarr.stores.local.zarr2 import DirectoryStore
from tests.narrow import array_of, bytes_of, calls
from tests.stores.contract import child_environment


@pytest.mark.parametrize("name", storage.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(storage, name) is not None
    assert name in dir(storage)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no_such_store"):
        storage.no_such_store  # noqa: B018


def test_the_door_loads_nothing_until_asked() -> None:
    code = "import sys, tessarr.storage; print([m for m in sys.modules if m.startswith('tessarr.stores')])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.spec("V3-STORE-22", "FS-13", "OGC-01", "OGC-03")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_tree_moves_between_kinds_of_stores_without_an_edit(tmp_path: Path, zarr_format: Any) -> None:
    source = storage.LocalStore(tmp_path / "x.zarr")
    group = tessarr.open_group(source, mode="w", zarr_format=zarr_format, attributes={"a": 1})
    array = group.create_array("data", shape=(5, 7), chunks=(2, 3), dtype="int32")
    array[...] = np.arange(35).reshape(5, 7)
    values = {key: bytes_of(source.get(key)) for key in source.list()}
    assert b"file:" not in b"".join(values.values())
    with storage.ZipStore(tmp_path / "x.zip", mode="w") as archive:
        for key, value in values.items():
            archive.set(key, value)
    for store in (storage.MemoryStore(values), storage.ZipStore(tmp_path / "x.zip"), storage.KVStore(values)):
        moved = tessarr.open_group(store, mode="r")
        assert dict(moved.attrs) == {"a": 1}
        np.testing.assert_array_equal(array_of(moved["data"])[...], array[...])


# -- zarr-python 2's names -------------------------------------------------------------------------------------------


def test_directory_stores_know_their_separator(tmp_path: Path) -> None:
    assert storage.DirectoryStore(str(tmp_path)).dimension_separator is None
    assert storage.DirectoryStore(tmp_path, dimension_separator="/").dimension_separator == "/"
    nested = storage.NestedDirectoryStore(tmp_path)
    assert (nested.dimension_separator, nested.path) == ("/", str(tmp_path))
    for call in calls(
        lambda: storage.NestedDirectoryStore(tmp_path, dimension_separator="."),
        lambda: storage.DirectoryStore(tmp_path, dimension_separator="-"),
        lambda: storage.DirectoryStore(tmp_path, normalize_keys=True),
    ):
        with pytest.raises(ValueError, match=r"dimension_separator|separates|normalize_keys"):
            call()


@pytest.mark.spec("OGC-02")
def test_a_new_v2_array_in_a_nested_store_has_nested_chunks(tmp_path: Path) -> None:
    array = tessarr.create(
        (4, 4), chunks=(2, 2), dtype="i4", store=storage.NestedDirectoryStore(tmp_path), zarr_format=2
    )
    array[...] = 1
    assert (tmp_path / "1" / "1").is_file()


def test_a_temporary_store_goes_with_the_interpreter(tmp_path: Path) -> None:
    code = (
        "import sys; from tessarr.storage import TempStore\n"
        "s = TempStore(suffix='.zarr', prefix='t', dir=sys.argv[1]); s.set('a', b'1'); print(s.path)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=child_environment(), capture_output=True, text=True, check=True
    )
    name = os.path.basename(done.stdout.strip())
    assert name.startswith("t")
    assert name.endswith(".zarr")
    assert list(tmp_path.iterdir()) == []


def test_an_fsstore_is_what_its_url_opens(tmp_path: Path) -> None:
    store = storage.FSStore(
        str(tmp_path / "x"), mode="w", auto_mkdir=True, normalize_keys=False, dimension_separator="/"
    )
    assert isinstance(store, LocalStore)
    assert store.dimension_separator == "/"
    assert isinstance(store, storage.FSStore)  # by which programs for zarr-python 2 tell a store from a file
    assert not isinstance(store, storage.ABSStore)
    assert not isinstance(LocalStore(tmp_path), storage.FSStore)
    assert storage.FSStore(str(tmp_path), mode="r").read_only
    with pytest.raises(ValueError, match="normalize_keys"):
        storage.FSStore(str(tmp_path), normalize_keys=True)


def test_the_directory_of_a_node_in_a_local_store_of_zarr_python_2(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    assert store.dir_path() == str(tmp_path)
    assert store.dir_path("/a/b/") == str(tmp_path / "a" / "b")
