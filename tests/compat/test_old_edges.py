"""What code written for zarr-python 2 does with arrays, groups and stores, and the errors it catches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numcodecs import Zlib

import tessarr as zarr
from tessarr.errors import (
    ArrayIndexError,
    ContainsArrayError,
    ContainsGroupError,
    CopyError,
    FieldNotFoundError,
    ReadOnlyError,
    VindexInvalidSelectionError,
)


def test_shape_chunks_and_dtype_are_given_by_position() -> None:
    z = zarr.create((4, 4), (2, 2), "i2")
    assert (z.shape, z.chunks, z.dtype) == ((4, 4), (2, 2), np.dtype("i2"))
    assert zarr.create((4,), True, "i2").chunks


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_fill_value_is_assigned_and_stored(zarr_format: int) -> None:
    store: dict[str, bytes] = {}
    z = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="f4", zarr_format=zarr_format, attributes={"a": 1})
    z[:2] = 1
    z.fill_value = np.nan
    assert np.isnan(zarr.open_array(store, mode="r").fill_value)
    np.testing.assert_array_equal(z[:], [1, 1, np.nan, np.nan])
    assert zarr.open_array(store).attrs.asdict() == {"a": 1}
    with pytest.raises(ValueError, match="fill value"):
        z.fill_value = "x"
    with pytest.raises(ReadOnlyError):
        zarr.open_array(store, mode="r").fill_value = 3


def test_an_array_is_made_read_only_by_assignment_and_writable_again() -> None:
    z = zarr.zeros(3)
    z.read_only = True
    with pytest.raises(ReadOnlyError):
        z[0] = 1
    z.read_only = False
    z[0] = 1
    assert z[0] == 1


def test_a_group_does_what_a_mutable_mapping_does() -> None:
    group = zarr.group()
    group.update({"a": np.arange(2)}, b=np.ones(3))
    assert sorted(group) == ["a", "b"]
    assert group.setdefault("a", np.zeros(9)).shape == (2,)
    assert group.setdefault("c", np.zeros(9)).shape == (9,)
    assert group.pop("c").shape == (9,)
    assert group.pop("c", 5) == 5
    with pytest.raises(KeyError):
        group.pop("c")
    name, node = group.popitem()
    assert (name, node.shape) == ("a", (2,))
    group.clear()
    assert list(group) == []
    with pytest.raises(KeyError):
        group.popitem()


def test_a_data_set_is_required_by_what_the_array_can_hold() -> None:
    group = zarr.group(zarr_format=2)
    made = group.require_dataset("x", shape=(3,), dtype="i4")
    assert group.require_dataset("x", shape=(3,), dtype="i2") == made
    assert group.require_dataset("x", shape=(3,)) == made
    refused: list[tuple[type[str] | str, bool]] = [("f8", False), ("i2", True), (str, False)]
    for dtype, exact in refused:
        with pytest.raises(TypeError, match="dtype"):
            group.require_dataset("x", shape=(3,), dtype=dtype, exact=exact)
    with pytest.raises(TypeError, match="shape"):
        group.require_dataset("x", shape=(4,), dtype="i2")


@pytest.mark.parametrize("kind", ["DirectoryStore", "NestedDirectoryStore", "MemoryStore", "ZipStore", "KVStore"])
def test_a_store_is_used_as_a_mapping(tmp_path: Path, kind: str) -> None:
    places: dict[str, Any] = {"MemoryStore": None, "KVStore": {}, "ZipStore": tmp_path / "a.zip"}
    cls = getattr(zarr.storage, kind)
    store = cls(places.get(kind, str(tmp_path / "d")), **({"mode": "w"} if kind == "ZipStore" else {}))
    assert store
    assert len(store) == 0
    zarr.group(store, zarr_format=2).create_dataset("x", shape=(4,), chunks=2, dtype="i4", compressor=None)[:] = 7
    assert ".zgroup" in store
    assert "x" not in store
    assert sorted(store) == sorted(store.keys()) == [".zgroup", "x/.zarray", "x/0", "x/1"]
    assert bytes(store["x/0"]) == np.full(2, 7, "i4").tobytes()
    assert {key: bytes(value) for key, value in store.items()}["x/0"] in [bytes(value) for value in store.values()]
    assert store.listdir() == [".zgroup", "x"]
    assert store.listdir("x") == [".zarray", "0", "1"]
    with pytest.raises(KeyError, match="nothing"):
        store["nothing"]
    store["k"] = b"v"
    assert bytes(store["k"]) == b"v"
    if kind != "ZipStore":
        del store["k"]
        store.rmdir("x")
        assert sorted(store) == [".zgroup"]
        with pytest.raises(KeyError, match="k"):
            del store["k"]
    store.close()


def test_what_is_in_the_way_of_a_copy_is_a_copy_error() -> None:
    group = zarr.group()
    group.create_array("a", data=np.arange(3))
    group.create_group("g")
    for error in (CopyError, ContainsArrayError, ContainsGroupError, RuntimeError, ValueError):
        for name in ("a", "g"):
            with pytest.raises(error):
                zarr.copy(group["a"], group, name=name)
        with pytest.raises(error):
            zarr.copy_store(group.store, group.store.with_read_only(False))


def test_the_old_names_of_errors_and_codecs_are_there() -> None:
    for name in ("CopyError", "PathNotFoundError", "MetadataError", "BadCompressorError", "ReadOnlyError"):
        assert issubclass(getattr(zarr.errors, name), Exception)
    assert zarr.codecs.get_codec({"id": "zlib", "level": 1}) == zarr.Zlib(1)
    assert zarr.blosc.list_compressors()
    for name in ("N5Store", "N5FSStore"):
        assert dict(zarr.open_group(getattr(zarr, name)({}), mode="w", attributes={"a": 1}).attrs) == {"a": 1}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_unknown_field_is_an_error_before_anything_is_read(zarr_format: int) -> None:
    z = zarr.array(np.zeros(3, [("a", "i4"), ("b", "f4")]), zarr_format=zarr_format)
    plain = zarr.zeros(3)
    for error in (FieldNotFoundError, IndexError, ValueError):
        for call in (
            lambda: z["c"],
            lambda: z["a", "c"],
            lambda: z.get_basic_selection(0, fields="c"),
            lambda: z.__setitem__("c", 1),
            lambda: plain["a"],
        ):
            with pytest.raises(error, match="field"):
                call()


def test_fields_are_read_and_written_asynchronously() -> None:
    z = zarr.array(np.zeros(3, [("a", "i4"), ("b", "f4")]))

    async def work() -> list[float]:
        await z.write_async(("b", slice(0, 2)), 5)
        assert (await z.read_async("a")).tolist() == [0, 0, 0]
        return (await z.async_array.getitem("b")).tolist()  # type: ignore[no-any-return]

    assert asyncio.run(work()) == [5, 5, 0]
    assert z.read("b").tolist() == [5, 5, 0]


def test_slices_are_no_point_selection() -> None:
    z = zarr.zeros((3, 3))
    for selection in (slice(0, 2), (slice(None), [1]), ..., (None, [1])):
        with pytest.raises(VindexInvalidSelectionError, match="oindex"):
            z.vindex[selection]
    assert issubclass(VindexInvalidSelectionError, ArrayIndexError)


def test_compression_none_stores_chunks_as_they_are() -> None:
    """As in zarr-python 2 and h5py; kerchunk says it so of NetCDF files, whose values it refers to."""
    group = zarr.group({}, zarr_format=2)
    assert group.create_dataset("plain", shape=4, dtype="i4", compression=None).compressor is None
    named: dict[str, Any] = {"compression": None, "compressor": Zlib(level=3)}
    assert group.create_dataset("named", shape=4, dtype="i4", **named).compressor == Zlib(level=3)
    assert group.create_dataset(
        "chosen", shape=4, dtype="i4", compression="zlib", compression_opts=3
    ).compressor == Zlib(3)
    assert group.create_dataset("default", shape=4, dtype="i4").compressor is not None
