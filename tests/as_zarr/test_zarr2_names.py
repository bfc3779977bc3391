"""Names of zarr-python 2 that tools take from its modules: fill values of documents, and the file system of a store."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tessarr
import tessarr.facade.zarr2
from tessarr.facade.zarr2 import indexing, meta, n5, storage, util
from tessarr.facade.zarr2.context import Context
from tessarr.facade.zarr2.storage import BaseStore, Store
from tessarr.stores.memory.mapping import MappingStore


@pytest.mark.parametrize(
    ("value", "dtype", "stored"),
    [
        (np.nan, "<f4", "NaN"),
        (-np.inf, ">f8", "-Infinity"),
        (np.int16(-5), ">i2", -5),
        (True, "?", True),
        (1 + 2j, "<c16", [1.0, 2.0]),
        ("x", "<U2", "x"),
        (b"ab", "S2", "YWI="),
        (np.datetime64("NaT"), "<M8[s]", -(2**63)),
        (None, "<i4", None),
        ("text", "O", "text"),
    ],
)
def test_fill_values_are_written_as_in_documents(value: Any, dtype: str, stored: Any) -> None:
    """What zarr-python 2.18.7 returns, but for a tuple of complex numbers, and texts without their padding."""
    assert meta.encode_fill_value(value, np.dtype(dtype)) == stored
    again = meta.decode_fill_value(json.loads(json.dumps(stored)), dtype)
    assert np.array(again == value).all() or (again != again and value != value)


@pytest.mark.parametrize("dtype", ["<f4", "|S3", "<M8[ns]", [("a", "<i4"), ("b", "|u1", (2,))]])
def test_data_types_come_back_from_documents(dtype: Any) -> None:
    native = np.dtype(dtype)
    assert meta.decode_dtype(json.loads(json.dumps(meta.encode_dtype(native)))) == native


def test_a_store_tells_its_file_system(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="belongs to the extra [fsspec]")
    for store in (storage.FSStore(str(tmp_path)), storage.FSStore(str(tmp_path), fs=fsspec.filesystem("file"))):
        store.set("a/0", b"x")
        assert store.fs.cat(f"{store.path}/a/0") == b"x"  # type: ignore[attr-defined]
    memory = fsspec.filesystem("memory")
    storage.FSStore("given", fs=memory).set("0", b"y")
    assert memory.cat("/given/0") == b"y"
    memory.rm("/given", recursive=True)


class Values(BaseStore):
    """A store as users of zarr-python 2 write it: a mapping, here of values that a program makes."""

    def __init__(self) -> None:
        self.values_by_key: dict[str, bytes] = {}

    def __getitem__(self, key: str) -> bytes:
        return self.values_by_key[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.values_by_key[key] = value

    def __delitem__(self, key: str) -> None:
        del self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)


class ValuesOfStore(Values, Store):
    """The same, of the other base class."""


class ReadAlone(Values):
    """A store that can neither list nor write."""

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    __len__ = __iter__  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [Values, ValuesOfStore])
def test_a_mapping_of_one_s_own_is_the_store_of_its_arrays(kind: type[Values]) -> None:
    store = kind()
    z = tessarr.open_array(store, mode="w", shape=4, chunks=2, dtype="i4", zarr_format=2, fill_value=0)
    z[:2] = 7
    given: tuple[object, ...] = (z.store, tessarr.open_array(store, mode="r").store)
    assert given == (store, store)
    assert given[0] is given[1] is store
    assert sorted(store) == [".zarray", "0"]
    assert {type(value) for value in store.values()} == {bytes}
    again = tessarr.open_array(store, mode="r")
    assert again[:].tolist() == [7, 7, 0, 0]
    with pytest.raises(tessarr.errors.ReadOnlyError):
        again[0] = 1
    group = tessarr.open_group(kind(), mode="w", zarr_format=2)
    group.create_array("a", data=np.arange(3))
    del group["a"]
    assert sorted(group.store) == [".zgroup"]
    assert pickle.loads(pickle.dumps(z))[:].tolist() == [7, 7, 0, 0]
    assert storage.listdir(store) == [".zarray", "0"]
    assert storage.normalize_store_arg(store) is store


def test_a_mapping_that_cannot_list_is_read() -> None:
    store = ReadAlone()
    tessarr.create_array(MappingStore(store.values_by_key), name="a", data=np.arange(3), zarr_format=2)
    assert tessarr.open_array(store, path="a", mode="r")[:].tolist() == [0, 1, 2]


def test_stores_of_tessarr_are_instances_of_the_base_classes() -> None:
    assert isinstance(tessarr.storage.MemoryStore(), BaseStore)
    assert isinstance(tessarr.storage.MemoryStore(), Store)
    assert not isinstance(tessarr.storage.MemoryStore(), Values)
    assert not isinstance({}, BaseStore)


def test_names_of_documents_paths_and_codecs() -> None:
    assert (storage.array_meta_key, storage.group_meta_key, storage.attrs_key) == (".zarray", ".zgroup", ".zattrs")
    assert storage.normalize_storage_path("/a//b/") == "a/b"
    assert "blosc" in tessarr.facade.zarr2.codec_registry


def test_sizes_shapes_and_paths_are_those_of_zarr_python() -> None:
    """Values that zarr-python 2.18.7 returns."""
    sizes = [util.human_readable_size(nbytes) for nbytes in (0, 1023, 1536, 2**20, 10**7, 3 * 2**30, 2**60)]
    assert sizes == ["0", "1023", "1.5K", "1.0M", "9.5M", "3.0G", "1024.0P"]
    assert util.guess_chunks((10000, 10000), 8) == (313, 625)
    assert util.guess_chunks((100,), 1) == (100,)
    assert util.normalize_shape(5) == (5,)
    with pytest.raises(TypeError, match="shape is None"):
        util.normalize_shape(None)
    assert [util.buffer_size(value) for value in (np.zeros(3), b"abc", bytearray(5))] == [24, 3, 5]
    assert util.normalize_storage_path("/a//b/") == "a/b"


def test_indexers_take_an_array_and_give_three_values_for_a_chunk() -> None:
    array = tessarr.zeros((6, 5), chunks=(3, 5))

    class Adaptor:
        _shape, _chunks = (6, 5), (3, 5)

    for source in (array, Adaptor()):
        indexer = indexing.BasicIndexer((slice(1, 4), 0), source)
        assert indexer.shape == (3,)
        found = [(coords, within, out) for coords, within, out in indexer]
        assert found[1] == ((1, 0), (slice(0, 1, 1), 0), (slice(2, 3, 1),))
    rows = indexing.OrthogonalIndexer(([0, 4], slice(None)), array)
    data, result = np.arange(30).reshape(6, 5), np.zeros(rows.shape, int)
    for coords, within, out in rows:
        result[cast("Any", out)] = data[coords[0] * 3 : coords[0] * 3 + 3][cast("Any", within)]
    assert np.array_equal(result, data[[0, 4]])


def test_n5_and_context_have_the_names_of_their_modules() -> None:
    assert (n5.N5Store, n5.N5FSStore) == (storage.N5Store, storage.N5FSStore)
    assert Context(meta_array=np.empty(())).keys() == {"meta_array"}
