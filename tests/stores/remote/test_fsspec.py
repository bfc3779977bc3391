"""fsspec filesystems under the one contract."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zarr.storage
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import tessarr
from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.base import Fetch
from tessarr.stores.local import lock as filelock
from tessarr.stores.protocols import Lock
from tessarr.stores.remote.fsspec import FsspecStore
from tessarr.types import ByteRange
from tests.narrow import array_of
from tests.stores.contract import StoreContract, plain
from tests.waiting import PATIENCE_S

_number = itertools.count()


class TestMemoryFileSystem(StoreContract):
    @pytest.fixture
    def store(self) -> FsspecStore:
        return FsspecStore(MemoryFileSystem(), path=f"/contract/{next(_number)}")


class TestLocalFileSystem(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FsspecStore:
        return FsspecStore(LocalFileSystem(), path=str(tmp_path / "data"))


class TestMapper(StoreContract):
    @pytest.fixture
    def store(self) -> FsspecStore:
        return FsspecStore.from_mapper(fsspec.get_mapper(f"memory://mapped/{next(_number)}"))


def test_a_conditional_write_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="conditional"):
        FsspecStore(MemoryFileSystem()).set("k", b"", if_match=None)


def test_a_local_write_leaves_no_partial_file_behind(tmp_path: Path) -> None:
    store = FsspecStore(LocalFileSystem(), path=str(tmp_path))
    store.set("a/b", b"1")
    (tmp_path / "a" / "b").unlink()
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "file").touch()
    with pytest.raises(StoreError):
        store.set("a/b", b"2")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_secret_options_are_in_no_pickle_and_work_again_in_this_process() -> None:
    fs = MemoryFileSystem(secret="hush-hush", token="hush-hush")
    store = FsspecStore(fs, path="/secret")
    store.set("k", b"1")
    pickled = pickle.dumps(store)
    assert b"hush-hush" not in pickled
    assert b"hush-hush" not in repr(store).encode()
    twin = pickle.loads(pickled)
    assert plain(twin.get("k")) == b"1"
    assert twin.fs.storage_options == fs.storage_options


def test_a_write_over_a_directory_is_an_error_and_not_a_missing_key(tmp_path: Path) -> None:
    store = FsspecStore(LocalFileSystem(), path=str(tmp_path))
    store.set("a/b", b"1")
    with pytest.raises(StoreError, match="is a directory"):
        store.set("a", b"2")


def test_awaited_requests_wait_together_though_each_has_a_thread() -> None:
    meeting = threading.Barrier(50)  # a loop's own threads are at most 32, and on a small machine 6

    class Slow(MemoryFileSystem):  # type: ignore[misc]
        protocol = "slow"

        def cat_file(self, *args: Any, **kwargs: Any) -> Any:
            meeting.wait(PATIENCE_S)
            return super().cat_file(*args, **kwargs)

    store = FsspecStore(Slow(), path="/slow")
    for number in range(50):
        store.set(f"k{number}", b"1")
    found = asyncio.run(store.fetch_async([Fetch(f"k{number}") for number in range(50)]))
    assert [bytes(parts[0]) for parts in found if parts] == [b"1"] * 50


def test_appends_take_the_lock_of_local_files_and_are_refused_on_servers(tmp_path: Path) -> None:
    store = FsspecStore.from_url(f"file://{tmp_path}")
    z = tessarr.create_array(store, shape=(0,), chunks=(4,), dtype="i4")
    with store.lock("shape"), pytest.raises(BlockingIOError):
        filelock.acquire(str(tmp_path / filelock.lock_name("shape")), wait=False)
    assert z.append([1, 2]) == (2,)
    store._protocol = "sftp"
    assert not isinstance(store, Lock)
    with pytest.raises(UnsupportedOperationError, match="not safe"):
        z.append([3])


@pytest.mark.parametrize(
    ("links", "members"),
    [
        (["zarr.json", "a", "b.txt"], ["a"]),  # no final slash tells which are directories
        (["zarr.json", "a/", "b"], ["a"]),
    ],
)
def test_members_are_found_by_links_with_or_without_a_final_slash(links: list[str], members: list[str]) -> None:
    class Links(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
        protocol = "http"

        def ls(self, path: str, detail: bool = True, **_: Any) -> Any:
            names = [f"{path.rstrip('/')}/{link}" for link in links]
            kinds = [{"name": name, "size": None, "type": "directory" if name[-1] == "/" else "file"} for name in names]
            return kinds if detail else names

    root = f"/linked{next(_number)}"
    group = tessarr.create_group(FsspecStore(MemoryFileSystem(), path=root))
    for name in ("a", "b"):
        group.create_array(name, shape=(1,), dtype="i4")
    assert [*tessarr.open_group(FsspecStore(Links(), path=root), mode="r", use_consolidated=False)] == members


@pytest.mark.parametrize(
    "refusal",
    [OSError(22, "The requested range is not satisfiable"), OSError("416, message='Requested Range Not Satisfiable'")],
    ids=["of s3fs", "of HTTP"],
)
def test_a_range_that_begins_beyond_the_end_is_empty_in_the_words_of_every_server(
    refusal: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cat_file(self: MemoryFileSystem, path: str, **kwargs: object) -> bytes:
        raise refusal

    monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)
    assert plain(FsspecStore(MemoryFileSystem(), path="/ranges").get("k", ByteRange(100, 110))) == b""


@pytest.mark.parametrize("kind", ["fsspec", "zarr-python"])
def test_lock_files_are_no_values_and_arrays_are_moved_in_a_local_directory(kind: str, tmp_path: Path) -> None:
    store = (
        FsspecStore(LocalFileSystem(), path=str(tmp_path)) if kind == "fsspec" else zarr.storage.LocalStore(tmp_path)
    )
    group = tessarr.create_group(store)
    array = group.create_array("a/b", data=[1, 2, 3], chunks=2)
    array.append([4])
    (tmp_path / "a" / "b" / ".shape.tessarr-lock").touch()
    keys = ["a/b/c/0", "a/b/c/1", "a/b/zarr.json"]
    assert sorted(group._store.list_prefix("a/b/")) == keys
    assert [key for key in group._store.list_dir("a/b/").keys if "lock" in key] == []
    group.move("a/b", "c")
    assert array_of(group["c"])[...].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["fsspec", "zarr-python"])
def test_an_array_of_fewer_dimensions_replaces_one_in_a_local_directory(kind: str, tmp_path: Path) -> None:
    """Chunks are where directories of chunks were, which fsspec and zarr-python leave; a directory with a value stays."""
    store = (
        FsspecStore(LocalFileSystem(), path=str(tmp_path)) if kind == "fsspec" else zarr.storage.LocalStore(tmp_path)
    )
    group = tessarr.create_group(store)
    group.create_array("a", data=[[1, 2], [3, 4]], chunks=(1, 1))
    array = group.create_array("a", data=[1, 2], chunks=1, overwrite=True)
    assert array[...].tolist() == [1, 2]
    (tmp_path / "a" / "c" / "0").unlink()
    (tmp_path / "a" / "c" / "0" / "sub").mkdir(parents=True)
    (tmp_path / "a" / "c" / "0" / "sub" / "file").touch()
    with pytest.raises(StoreError):
        array[0] = 7
    assert (tmp_path / "a" / "c" / "0" / "sub" / "file").exists()
