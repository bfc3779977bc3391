"""The worked examples of the Zarr v2 specification, statement by statement.

They were written for a zarr that made v2 by default; here that is what ``default_zarr_format`` is set to.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tessarr as zarr
from tessarr.stores.url import StoreLike
from tests.narrow import array_of


@pytest.fixture(autouse=True)
def as_zarr_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with zarr.config.set({"default_zarr_format": 2}):
        yield


@pytest.mark.spec("V2-59", "V2-60", "V2-61", "V2-62", "V2-63", "V2-57", "OGC-01", "OGC-21")
def test_storing_a_single_array() -> None:
    store = zarr.DirectoryStore("data/example.zarr")
    a = zarr.create(
        shape=(20, 20),
        chunks=(10, 10),
        dtype="i4",
        fill_value=42,
        compressor=zarr.Zlib(level=1),
        store=store,
        overwrite=True,
    )
    assert sorted(os.listdir("data/example.zarr")) == [".zarray"]

    text = Path("data/example.zarr/.zarray").read_text()
    assert text == (
        "{\n"
        '    "chunks": [\n        10,\n        10\n    ],\n'
        '    "compressor": {\n        "id": "zlib",\n        "level": 1\n    },\n'
        '    "dtype": "<i4",\n'
        '    "fill_value": 42,\n'
        '    "filters": null,\n'
        '    "order": "C",\n'
        '    "shape": [\n        20,\n        20\n    ],\n'
        '    "zarr_format": 2\n'
        "}"
    )
    a[0:10, 0:10] = 1
    assert sorted(os.listdir("data/example.zarr")) == [".zarray", "0.0"]
    a[0:10, 10:20] = 2
    a[10:20, :] = 3
    assert sorted(os.listdir("data/example.zarr")) == [".zarray", "0.0", "0.1", "1.0", "1.1"]

    buf = zlib.decompress(Path("data/example.zarr/0.0").read_bytes())
    assert np.frombuffer(buf, dtype="<i4").tolist() == [1] * 100

    a.attrs["foo"] = 42
    a.attrs["bar"] = "apples"
    a.attrs["baz"] = [1, 2, 3, 4]
    assert sorted(os.listdir("data/example.zarr")) == [".zarray", ".zattrs", "0.0", "0.1", "1.0", "1.1"]
    assert Path("data/example.zarr/.zattrs").read_text() == (
        '{\n    "bar": "apples",\n    "baz": [\n        1,\n        2,\n        3,\n        4\n    ],\n    "foo": 42\n}'
    )


def tell(store: StoreLike) -> None:
    """The statements that the directory and the zip example share."""
    root_grp = zarr.group(store)
    sub_grp = root_grp.create_group("foo")
    a = sub_grp.create_dataset("bar", shape=(20, 20), chunks=(10, 10))
    a[:] = 42
    a.attrs["comment"] = "answer to life, the universe and everything"


@pytest.mark.spec("V2-64", "V2-65", "OGC-01")
def test_storing_multiple_arrays_in_a_hierarchy() -> None:
    store = zarr.DirectoryStore("data/group.zarr")
    root_grp = zarr.group(store, overwrite=True)
    assert sorted(os.listdir("data/group.zarr")) == [".zgroup"]
    assert Path("data/group.zarr/.zgroup").read_text() == '{\n    "zarr_format": 2\n}'
    sub_grp = root_grp.create_group("foo")
    assert sorted(os.listdir("data/group.zarr")) == [".zgroup", "foo"]
    assert sorted(os.listdir("data/group.zarr/foo")) == [".zgroup"]
    a = sub_grp.create_dataset("bar", shape=(20, 20), chunks=(10, 10))
    a[:] = 42
    a.attrs["comment"] = "answer to life, the universe and everything"
    assert sorted(os.listdir("data/group.zarr")) == [".zgroup", "foo"]
    assert sorted(os.listdir("data/group.zarr/foo")) == [".zgroup", "bar"]
    names = [".zarray", ".zattrs", "0.0", "0.1", "1.0", "1.1"]
    assert sorted(os.listdir("data/group.zarr/foo/bar")) == names
    assert json.loads(Path("data/group.zarr/foo/bar/.zattrs").read_text()) == {
        "comment": "answer to life, the universe and everything"
    }


@pytest.mark.spec("V2-66", "OGC-03")
def test_the_same_in_a_zip_file() -> None:
    os.mkdir("data")
    store = zarr.ZipStore("data/group.zip", mode="w")
    tell(store)
    store.close()
    with zipfile.ZipFile("data/group.zip", mode="r") as zf:
        names = zf.namelist()
    assert sorted(names) == [
        ".zgroup",
        "foo/.zgroup",
        "foo/bar/.zarray",
        "foo/bar/.zattrs",
        "foo/bar/0.0",
        "foo/bar/0.1",
        "foo/bar/1.0",
        "foo/bar/1.1",
    ]
    assert (array_of(zarr.open("data/group.zip", mode="r")["foo/bar"])[...] == 42).all()


@pytest.mark.spec("V2-13", "OGC-02")
def test_a_nested_directory_store_has_the_same_keys_with_slashes() -> None:
    tell(zarr.NestedDirectoryStore("data/nested.zarr"))
    files = sorted(p.relative_to("data/nested.zarr").as_posix() for p in Path("data").rglob("*") if p.is_file())
    assert files == [
        ".zgroup",
        "foo/.zgroup",
        "foo/bar/.zarray",
        "foo/bar/.zattrs",
        "foo/bar/0/0",
        "foo/bar/0/1",
        "foo/bar/1/0",
        "foo/bar/1/1",
    ]
    assert json.loads(Path("data/nested.zarr/foo/bar/.zarray").read_text())["dimension_separator"] == "/"
