"""Zip archives in open files, as tessarr's `ZipStore` and as that of `tessarr.as_zarr`."""

from __future__ import annotations

import asyncio
import io
import pickle
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.facade.zarr3.storage._zip import ZipStore as FacadeZipStore
from tessarr.storage import ZipStore


class Minimal:
    """No more than ``read``, ``seek`` and ``tell``, as a reader of obstore; fails on reads beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)
        self._nbytes = len(data)

    def read(self, nbytes: int) -> memoryview:
        assert self._inner.tell() + nbytes <= self._nbytes
        return memoryview(self._inner.read(nbytes))

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()


class Short(io.BytesIO):
    """An unbuffered file: it may return fewer bytes than are wanted."""

    def read(self, nbytes: int | None = -1) -> bytes:
        return super().read(7 if nbytes is None or nbytes > 7 else nbytes)


def archive() -> bytes:
    file = io.BytesIO()
    with ZipStore(file, mode="w") as store:
        tessarr.create_array(store, data=list(range(100)), chunks=(50,))
    return file.getvalue()


@pytest.mark.parametrize("make", [io.BytesIO, Minimal])
@pytest.mark.parametrize("kind", [ZipStore, FacadeZipStore])
def test_an_array_in_an_open_file_is_read(make: Any, kind: Any) -> None:
    array = tessarr.open_array(kind(make(archive())), mode="r")
    assert array[:].tolist() == list(range(100))
    assert array[60:63].tolist() == [60, 61, 62]


def test_parts_of_values_are_read_whole_from_an_unbuffered_file() -> None:
    file = io.BytesIO()
    with ZipStore(file, mode="w") as store:
        store.set("k", bytes(range(200)))
    store = ZipStore(io.BytesIO(file.getvalue()))
    store._archive._file.file = Short(file.getvalue())  # type: ignore[union-attr]
    assert store.get("k") == bytes(range(200))


def test_files_of_the_operating_system_are_written_and_stay_open(tmp_path: Path) -> None:
    with (tmp_path / "new.zip").open("wb") as only_written:
        with ZipStore(only_written, mode="w") as store:
            store.set("a", b"1")
        assert not only_written.closed
    with (tmp_path / "new.zip").open("r+b") as both:
        with ZipStore(both, mode="a") as store:
            store.set("b", b"2")
        with zipfile.ZipFile(both) as found:
            assert found.namelist() == ["a", "b"]
    with tempfile.NamedTemporaryFile() as wrapped, ZipStore(wrapped, mode="w") as store:
        store.set("c", b"3")
        store.flush()
        assert store.get("c") == b"3"


@pytest.mark.parametrize("kind", [ZipStore, FacadeZipStore])
def test_what_cannot_hold_an_archive_is_refused_before_anything_is_written(kind: Any, tmp_path: Path) -> None:
    for wrong in (42, io.StringIO()):
        with pytest.raises(TypeError, match="read/seek/tell"):
            kind(wrong)
    for mode in ("w", "a", "x"):
        with pytest.raises(TypeError, match="opened for reading"):
            kind(Minimal(archive()), mode=mode)
    pipe = io.BufferedRWPair(io.BytesIO(), io.BytesIO())
    with pytest.raises(io.UnsupportedOperation, match="not seekable"):
        kind(pipe, mode="w")
    (tmp_path / "x.zip").write_bytes(archive())
    with (tmp_path / "x.zip").open("rb") as file, pytest.raises(io.UnsupportedOperation, match="not writable"):
        kind(file, mode="a")


def test_the_alias_opens_a_closed_archive_in_an_open_file_again(tmp_path: Path) -> None:
    file = io.BytesIO()
    store = FacadeZipStore(file, mode="w")
    store._set("foo", b"1")
    store.close()
    store._set("bar", b"2")
    store.close()
    with zipfile.ZipFile(file) as found:
        assert found.namelist() == ["foo", "bar"]
    with (tmp_path / "x.zip").open("wb") as written:
        store = FacadeZipStore(written, mode="w")
        store._set("foo", b"1")
        store.close()
        with pytest.raises(io.UnsupportedOperation, match="readable and seekable"):
            store._set("bar", b"2")
    with zipfile.ZipFile(tmp_path / "x.zip") as found:
        assert found.namelist() == ["foo"]


def test_what_needs_a_path_is_refused_by_the_alias() -> None:
    file = io.BytesIO(archive())
    store = FacadeZipStore(file, mode="a")
    assert store.path is None
    assert str(store).startswith("zip://<")
    assert store == FacadeZipStore(file)
    assert store != FacadeZipStore(io.BytesIO(archive()))
    with pytest.raises(NotImplementedError, match="clear"):
        asyncio.run(store.clear())
    with pytest.raises(NotImplementedError, match="move"):
        asyncio.run(store.move("elsewhere.zip"))
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(store)


def test_the_alias_opens_a_closed_archive_at_a_path_again(tmp_path: Path) -> None:
    store = FacadeZipStore(tmp_path / "x.zip", mode="w")
    store._set("foo", b"1")
    store.close()
    store._set("bar", b"2")
    store.close()
    with zipfile.ZipFile(tmp_path / "x.zip") as found:
        assert found.namelist() == ["foo", "bar"]
    with pytest.raises(IsADirectoryError):
        FacadeZipStore(tmp_path)._get("foo")
