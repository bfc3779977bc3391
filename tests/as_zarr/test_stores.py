"""Stores under the alias: zarr-python's shape around tessarr's work, and the object that was given comes back."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.as_zarr import _alias
from tessarr.buffer import default_buffer_prototype
from tessarr.buffer.cpu import Buffer
from tessarr.errors import ConflictError, ReadOnlyError, UnsupportedOperationError
from tessarr.facade.zarr3.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from tessarr.facade.zarr3.core.sync import SyncMixin, _get_executor, cleanup_resources, collect_aiterator, sync
from tessarr.facade.zarr3.storage import (
    FsspecStore,
    LocalStore,
    LoggingStore,
    ManagedMemoryStore,
    MemoryStore,
    StorePath,
    WrapperStore,
    ZipStore,
)
from tessarr.facade.zarr3.storage._common import make_store_path
from tessarr.stores.url import public_store, same_place, shape_with, store_from
from tests.narrow import array_of

PROTOTYPE = default_buffer_prototype()


@pytest.fixture(params=["local", "memory", "zip", "wrapper", "logging", "own"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    makers: dict[str, Any] = {
        "local": lambda: LocalStore(tmp_path / "x"),
        "memory": MemoryStore,
        "zip": lambda: ZipStore(tmp_path / "x.zip", mode="w"),
        "wrapper": lambda: WrapperStore[MemoryStore](MemoryStore()),
        "logging": lambda: LoggingStore(MemoryStore(), log_level="ERROR"),
        "own": Upper,
    }
    return makers[request.param]()


class Upper(WrapperStore[MemoryStore]):
    """A store of one's own, which sets ``_store`` without calling ``__init__``."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def with_read_only(self, read_only: bool = False) -> Store:
        twin = Upper()
        twin._store = self._store.with_read_only(read_only)
        return twin


def test_nodes_give_back_the_store_that_was_given(store: Any) -> None:
    group = tessarr.group(store)
    z = group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    z[...] = [1, 2, 3, 4]
    assert group.store is store
    assert z.store is store
    assert tessarr.open_group(store, mode="r+")["a"].store is store
    assert z.store_path == StorePath(store, "a")
    assert isinstance(z.store_path, StorePath)
    assert z[...].tolist() == [1, 2, 3, 4]
    assert tessarr.open_group(store, mode="r").store.read_only
    assert z.async_array.store is store


def test_methods_are_coroutines_over_buffers(store: Any) -> None:
    async def use() -> list[Any]:
        await store.set("a/b", Buffer.from_bytes(b"0123456789"))
        await store.set_if_not_exists("a/b", Buffer.from_bytes(b"other"))
        await store.set("a/c", Buffer.from_bytes(b"x"))
        found = [
            (await store.get("a/b", PROTOTYPE)).to_bytes(),
            (await store.get("a/b", PROTOTYPE, RangeByteRequest(2, 4))).to_bytes(),
            (await store.get("a/b", PROTOTYPE, OffsetByteRequest(8))).to_bytes(),
            (await store.get("a/b", PROTOTYPE, byte_range=SuffixByteRequest(1))).to_bytes(),
            await store.get("nothing", PROTOTYPE),
            await store.exists("a/b"),
            await store.exists("nothing"),
            await store.getsize("a/b"),
            sorted([key async for key in store.list()]),
            sorted([key async for key in store.list_prefix("a/")]),
            sorted([name async for name in store.list_dir("a")]),
            await store.is_empty("nowhere"),
        ]
        if store.supports_deletes:
            await store.delete("a/c")
            found.append([key async for key in store.list()])
        return found

    assert asyncio.run(use()) == [
        b"0123456789", b"23", b"89", b"9", None, True, False, 10, ["a/b", "a/c"], ["a/b", "a/c"], ["b", "c"], True,
        *([["a/b"]] if store.supports_deletes else []),
    ]  # fmt: skip


def test_a_read_only_store_refuses_writes_with_the_known_words(store: Any) -> None:
    closed = store.with_read_only(True)
    assert (closed.read_only, store.read_only) == (True, False)
    with pytest.raises(ValueError, match="store was opened in read-only mode and does not support writing"):
        sync(closed.set("a", Buffer.from_bytes(b"1")))
    tessarr.group(store)
    with pytest.raises(ReadOnlyError):
        tessarr.open_group(closed, mode="r").attrs["a"] = 1


def test_a_method_that_somebody_replaced_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = MemoryStore.get

    async def get(self: Any, key: str, *args: Any, **kwargs: Any) -> Any:
        asked.append(key)
        return await original(self, key, *args, **kwargs)

    store = MemoryStore()
    tessarr.group(store)
    assert asked == []
    monkeypatch.setattr(MemoryStore, "get", get)
    assert tessarr.open_group(store, mode="r").store == store.with_read_only(True)
    assert "zarr.json" in asked


def test_the_engine_is_that_of_the_store_within(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path / "x"), MemoryStore()):
        z = tessarr.create_array(store, name="x", shape=(4,), chunks=(2,), dtype="i4")
        inner = tessarr.create_array(z._store, name="y", shape=(4,), chunks=(2,), dtype="i4")
        assert z.engine.name == inner.engine.name


def test_a_users_dictionary_holds_buffers() -> None:
    values: dict[str, Any] = {}
    store = MemoryStore(values)
    group = tessarr.group(store, attributes={"a": 1})
    group.attrs["b"] = 2
    assert isinstance(values["zarr.json"], Buffer)
    assert tessarr.open_group(MemoryStore(values), mode="r").attrs.asdict() == {"a": 1, "b": 2}
    assert store == MemoryStore(values)
    assert store != MemoryStore()
    assert store._store_dict is values
    tessarr.group(own := MemoryStore())
    stored = own._store_dict["zarr.json"]
    assert isinstance(stored, Buffer)
    assert stored.to_bytes().startswith(b"{")


@pytest.mark.usefixtures("shapes")
def test_a_dictionary_given_as_store_holds_buffers_under_the_alias() -> None:
    values: dict[str, Any] = {}
    z = tessarr.create_array(values, shape=(4,), chunks=(2,), dtype="i4")
    z[:] = np.arange(4)
    assert sorted(values) == ["c/0", "c/1", "zarr.json"]
    assert {type(value) for value in values.values()} == {Buffer}
    assert z.store._store_dict is values  # type: ignore[attr-defined]
    assert np.array_equal(np.asarray(tessarr.open_array(values, mode="r")), np.arange(4))


def test_stores_over_one_dictionary_are_one_place() -> None:
    values: dict[str, Any] = {}
    first, second = (MemoryStore(values).__tessarr_place__()[0] for _ in range(2))
    assert same_place(first, second)
    first.set("a", b"1")
    version = second.version("a")
    second.set("a", b"2")
    with pytest.raises(ConflictError):
        first.set("a", b"3", if_match=version)
    assert first.get("a") == b"2"


def test_a_zip_archive_is_opened_at_its_first_use(tmp_path: Path) -> None:
    import zipfile

    missing, no_zip = ZipStore(tmp_path / "x.zip"), tmp_path / "y.zip"
    no_zip.write_bytes(b"no zip at all")
    with pytest.raises(FileNotFoundError):
        sync(missing.get("zarr.json", PROTOTYPE))
    with pytest.raises(zipfile.BadZipFile):
        sync(ZipStore(no_zip).get("zarr.json", PROTOTYPE))
    with ZipStore(tmp_path / "x.zip", mode="w") as store:
        tessarr.create_array(store, shape=(3,), dtype="i4")[:] = 1
    assert array_of(tessarr.open(ZipStore(tmp_path / "x.zip"), mode="r"))[:].tolist() == [1, 1, 1]


def test_stores_survive_pickling(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "z.zip", mode="w") as archive:
        tessarr.create_array(archive, shape=(3,), dtype="i4")[:] = 5
    for store in (LocalStore(tmp_path / "x"), WrapperStore(LocalStore(tmp_path / "y")), ZipStore(tmp_path / "z.zip")):
        if not store.read_only:
            tessarr.create_array(store, shape=(3,), dtype="i4")[:] = 5
        again = pickle.loads(pickle.dumps(tessarr.open_array(store)))
        assert again[:].tolist() == [5, 5, 5]
        assert type(again.store) is type(store)


@pytest.fixture
def shapes() -> Iterator[None]:
    shape_with(_alias._shape)
    yield
    shape_with(None)


@pytest.mark.usefixtures("shapes")
def test_stores_made_of_paths_have_the_shape_too(tmp_path: Path) -> None:
    z = tessarr.create_array(str(tmp_path / "x.zarr"), shape=(3,), dtype="i4")
    assert isinstance(z.store, LocalStore)
    assert asyncio.run(z.store.get("zarr.json", PROTOTYPE)).to_bytes().startswith(b"{")
    assert isinstance(tessarr.group({}).store, MemoryStore)
    own = tessarr.storage.MemoryStore()
    assert tessarr.group(own).store is own  # an object of tessarr's, which was given
    assert np.array_equal(tessarr.open_array(tmp_path / "x.zarr", mode="r")[:], np.zeros(3))


def test_places_are_made_of_what_users_give(tmp_path: Path) -> None:
    store = MemoryStore()
    place = sync(make_store_path(store, path="a"))
    assert (place.store, place.path) == (store, "a")
    assert isinstance(sync(make_store_path(str(tmp_path))).store, LocalStore)
    closed = sync(make_store_path(store, mode="r"))
    assert closed.store.read_only

    async def use() -> list[Any]:
        value = StorePath(store, "x")
        await value.set(Buffer.from_bytes(b"1"))
        found = [(await value.get()).to_bytes(), await value.exists()]
        await value.delete()
        return [*found, await value.exists(), str(value / "y")]

    assert asyncio.run(use()) == [b"1", True, False, f"{store}/x/y"]


def test_coroutines_are_waited_for() -> None:
    class Own(SyncMixin):
        def size(self, store: Any) -> int:
            return int(self._sync(store.getsize("a")))

    store = MemoryStore({"a": Buffer.from_bytes(b"123")})
    assert Own().size(store) == 3
    assert collect_aiterator(store.list()) == ("a",)
    assert [*Own()._sync_iter(store.list())] == ["a"]


def test_stores_are_opened_by_open_and_keys_are_as_in_zarr_python(tmp_path: Path) -> None:
    async def use() -> None:
        local, memory = await LocalStore.open(tmp_path / "x"), await MemoryStore.open()
        assert isinstance(await ZipStore.open(tmp_path / "x.zip", mode="w"), ZipStore)
        for store in (local, memory):
            await store.set("a/b", Buffer.from_bytes(b"1"))
            assert [key async for key in store.list_prefix("/")] == []
        await local.delete("a")  # a directory goes with what is in it
        assert [key async for key in local.list()] == []

    asyncio.run(use())


def test_an_option_of_save_that_does_not_exist_is_not_stored_as_an_array(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="Keyword argument 'mode' must be a numpy or other NDArrayLike array"):
        tessarr.save(tmp_path / "z", np.arange(3), mode="w")
    assert not (tmp_path / "z").exists()
    tessarr.save(tmp_path / "z", np.arange(3), more=[1, 2])
    assert sorted(tessarr.open_group(tmp_path / "z")) == ["arr_0", "more"]


def test_a_zip_store_that_was_given_is_not_closed_by_save(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "x.zip", mode="w") as store:
        tessarr.save(store, np.arange(3))
        assert tessarr.open_array(store, mode="r")[:].tolist() == [0, 1, 2]


@pytest.mark.usefixtures("shapes")
def test_stores_of_tessarr_stay_synchronous_under_the_alias(tmp_path: Path) -> None:
    store = tessarr.storage.LocalStore(tmp_path)
    store.set("a", b"1")
    assert store.get("a") == b"1"
    array = tessarr.create_array(store, name="x", shape=2, dtype="i4")
    assert array.store is store


class Unconsolidated(MemoryStore):
    """A store whose class opts out of consolidated metadata."""

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Say no."""
        return False


def test_a_subclass_that_opts_out_of_consolidated_metadata_gets_none() -> None:
    store = Unconsolidated()
    tessarr.create_group(store).create_group("a")
    with pytest.raises(TypeError, match="doesn't support consolidated metadata"):
        tessarr.consolidate_metadata(store)
    with pytest.raises(ValueError, match="doesn't support consolidated metadata"):
        tessarr.open_group(store, use_consolidated=True)
    assert list(tessarr.open_group(store)) == ["a"]
    given: object = tessarr.open_group(store).store
    assert given is store


class Unlisted(MemoryStore):
    """A store whose class says that it cannot list."""

    @property
    def supports_listing(self) -> bool:
        """Say no."""
        return False


def test_a_subclass_that_cannot_list_is_not_listed() -> None:
    group = tessarr.create_group(Unlisted())
    group.create_group("a")
    with pytest.raises(UnsupportedOperationError):
        list(group)


class OfZarr3Only(MemoryStore):
    """A store that refuses keys that Zarr v3 does not have, as Icechunk's does."""

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        if key in ("meta", "attrs"):
            raise ValueError(f"invalid zarr key format `{key}`")
        if key == "c/0":
            raise ConnectionAbortedError("the chunk is out of reach")
        return await super().get(key, prototype, byte_range)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "restored": False}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, restored=True)


def test_a_store_that_refuses_keys_of_other_formats_has_no_values_there(as_zarr: None) -> None:
    made = tessarr.create_array(OfZarr3Only(), shape=4, dtype="i4", fill_value=7)
    assert tessarr.open_array(made.store).fill_value == 7


def test_arrays_in_a_store_with_a_state_of_its_own_survive_pickling(as_zarr: None) -> None:
    made = tessarr.create_array(OfZarr3Only(), shape=4, dtype="i4", fill_value=7)
    for restored in (pickle.loads(pickle.dumps(made)), tessarr.open_array(pickle.loads(pickle.dumps(made.store)))):
        assert restored.fill_value == 7
        assert vars(restored.store)["restored"]


def test_a_group_of_a_read_only_store_is_opened_as_it_is(as_zarr: None) -> None:
    store = OfZarr3Only()
    tessarr.create_group(store, attributes={"a": 1})
    group = tessarr.Group.open(store.with_read_only(True))
    assert group.read_only
    assert group.attrs["a"] == 1
    assert not tessarr.Group.open(store).read_only
    with pytest.raises(tessarr.errors.GroupNotFoundError):
        tessarr.Group.open(OfZarr3Only())


def test_an_error_of_a_store_that_the_user_wrote_is_raised_as_it_is(as_zarr: None) -> None:
    made = tessarr.create_array(OfZarr3Only(), shape=4, chunks=4, dtype="i4", fill_value=7)
    with pytest.raises(ConnectionAbortedError, match="out of reach") as caught:
        made[:]
    assert "in store" in caught.value.__notes__[0]


class Options(WrapperStore[MemoryStore]):
    """A wrapper with an option, which it passes on as wrappers of zarr-python do."""

    def __init__(self, store: MemoryStore, option: int = 0) -> None:
        super().__init__(store)
        self.option = option

    def _with_store(self, store: MemoryStore) -> Options:
        return type(self)(store, self.option)


def test_a_wrapper_passes_its_options_on() -> None:
    twin = Options(MemoryStore(), 3).with_read_only(True)
    assert isinstance(twin, Options)
    assert twin.read_only
    assert twin.option == 3


def test_a_logging_store_is_opened_with_its_own_options(tmp_path: Path) -> None:
    opened = sync(LoggingStore.open(LocalStore, tmp_path, read_only=True, log_level="ERROR"))
    assert opened.read_only
    twin = opened.with_read_only(False)
    assert isinstance(twin, LoggingStore)
    assert twin.log_level == opened.log_level == "ERROR"


@pytest.mark.usefixtures("shapes")
def test_the_filesystem_of_a_mapper_is_the_given_one() -> None:
    """One for coroutines alone is replaced by its twin where tessarr reads, and given back as `fs`."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is an extra")
    pytest.importorskip("aiohttp", reason="fsspec reads HTTP with it")
    fs = fsspec.filesystem("http", asynchronous=True)
    for mapper in (fs.get_mapper("http://localhost/x"), fsspec.filesystem("memory").get_mapper("/x")):
        store, _ = store_from(mapper)
        assert public_store(store).fs is mapper.fs


def test_stores_in_memory_are_equal_when_their_values_are() -> None:
    first, second = MemoryStore(), MemoryStore()
    assert first == second
    sync(first.set("a", Buffer.from_bytes(b"1")))
    assert first != second
    copy = pickle.loads(pickle.dumps(first))
    assert copy == first
    sync(copy.set("a", Buffer.from_bytes(b"2")))
    assert copy != first
    assert MemoryStore({"a": Buffer.from_bytes(b"1")}) == first
    assert MemoryStore(read_only=True) != second


def test_a_url_names_a_store_in_memory_only_while_one_of_that_name_is_open() -> None:
    kept = ManagedMemoryStore(name="kept-for-a-url")
    assert ManagedMemoryStore.from_url("memory://kept-for-a-url/x").name == kept.name
    with pytest.raises(ValueError, match="Memory store not found"):
        ManagedMemoryStore.from_url("memory://nobody-opened-it")
    with pytest.raises(ValueError, match="Expected a 'memory://' URL"):
        ManagedMemoryStore.from_url("file:///tmp")
    with pytest.raises(ValueError, match="cannot contain '/'"):
        ManagedMemoryStore(name="a/b")


def test_a_store_of_fsspec_is_shown_as_in_zarr_python() -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is the extra `fsspec`")
    assert str(FsspecStore(fsspec.filesystem("memory"), path="/a")) == "<FsspecStore(MemoryFileSystem, /a)>"


def test_cleaning_up_ends_the_threads_of_stores_and_the_next_call_starts_others(tmp_path: Path) -> None:
    """dask and xarray clean up before their tests look for threads that are left."""

    async def in_thread() -> threading.Thread:
        return await asyncio.to_thread(threading.current_thread)

    for _ in range(2):
        threads = {sync(in_thread()), _get_executor().submit(threading.current_thread).result()}
        array = tessarr.create_array(LocalStore(tmp_path), shape=(4,), chunks=(1,), dtype="i4", overwrite=True)
        array[:] = 1
        assert all(thread.is_alive() for thread in threads)
        cleanup_resources()
        left = {thread.name.partition("_")[0] for thread in threading.enumerate()}
        assert not left & {"tessarr-stores", "tessarr-blocking", "tessarr-callers", "tessarr-requests"}
        assert not any(thread.is_alive() for thread in threads)
    assert array[0] == 1
