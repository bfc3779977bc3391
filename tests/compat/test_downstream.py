"""The calls that xarray, dask, anndata, ome-zarr-py, napari and spatialdata make, made as they make them."""

from __future__ import annotations

import asyncio
import json
import pickle
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize

import tessarr as zarr
from tessarr.errors import ArrayNotFoundError, GroupNotFoundError, ReadOnlyError
from tests.narrow import array_of, group_of


def pickled(thing: Any) -> Any:
    """Through cloudpickle, as dask sends things to its workers."""
    import cloudpickle

    return pickle.loads(cloudpickle.dumps(thing))


# -- xarray ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_creates_and_appends_to_variables(tmp_path: Path, zarr_format: int) -> None:
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w", zarr_format=zarr_format)
    names: dict[str, Any] = {"dimension_names": ("t", "x")} if zarr_format == 3 else {}
    codecs: dict[str, Any] = {"serializer": "auto", "shards": None} if zarr_format == 3 else {}
    z = group.create(
        "temperature",
        shape=(4, 6),
        dtype=np.dtype("f4"),
        fill_value=np.float32("nan"),
        chunks=(2, 3),
        compressors="auto",
        filters="auto",
        chunk_key_encoding=None,
        config={"write_empty_chunks": False, "order": "C"},
        **codecs,
        **names,
    )
    assert z.config.write_empty_chunks is False
    z.attrs.put({"units": "K", "_ARRAY_DIMENSIONS": ["t", "x"]} if zarr_format == 2 else {"units": "K"})
    z[(slice(0, 2), slice(None))] = np.ones((2, 6), "f4")
    z.resize((6, 6))
    z[4:, :] = 3
    if zarr_format == 2:
        zarr.consolidate_metadata(group.store, zarr_format=2)
        again = zarr.open_consolidated(str(tmp_path / "x.zarr"), mode="r+", zarr_format=2)
    else:
        again = zarr.open_group(str(tmp_path / "x.zarr"), mode="r+", use_consolidated=None)
    assert isinstance(again, zarr.Group)
    members = dict(again.members())
    assert isinstance(members["temperature"], zarr.Array)
    x = members["temperature"]
    assert (x.shape, x.chunks, x.shards, x.ndim) == ((6, 6), (2, 3), None, 2)
    assert x.dimension_names == ("t", "x")
    assert getattr(x.metadata, "dimension_names", "none") == ("none" if zarr_format == 2 else ("t", "x"))
    assert np.isnan(x.fill_value)
    assert np.isnan(x[2:4]).all()
    assert again.metadata.zarr_format == zarr_format
    assert again.store is x.store
    assert getattr(again.store, "supports_consolidated_metadata", True) is True
    assert again["temperature"].attrs.asdict()["units"] == "K"
    assert again.read_only is False
    with pytest.raises(TypeError):
        again.attrs.put({"bad": object()})
    nested = again.require_group("a/b")
    assert (nested.path, nested.name) == ("a/b", "/a/b")
    again.store.close()


def test_xarray_takes_encoding_from_one_array_to_another() -> None:
    first = zarr.create_array(
        {},
        shape=(4, 4),
        chunks=(2, 2),
        dtype="i4",
        compressors=[zarr.codecs.BloscCodec(cname="zstd")],
        filters=[zarr.codecs.TransposeCodec(order=(1, 0))],
    )
    assert first.serializer is not None
    assert first.serializer.to_dict()["name"] == "bytes"
    keep = {"compressors": first.compressors, "filters": first.filters, "serializer": first.serializer}
    second = zarr.create_array({}, shape=(4, 4), chunks=first.chunks, dtype=first.dtype, **pickled(keep))
    assert (second.compressors, second.filters, second.serializer) == tuple(keep.values())
    old = zarr.create_array(
        {}, shape=4, dtype="i4", zarr_format=2, compressors=zarr.Zlib(2), filters=[zarr.Delta("i4")]
    )
    new = zarr.create_array({}, shape=4, dtype="i4", zarr_format=2, compressors=old.compressors, filters=old.filters)
    assert (new.compressors, new.filters) == (old.compressors, old.filters)


def test_xarray_reads_by_every_key_and_asynchronously() -> None:
    values = np.arange(24).reshape(4, 6)
    z = zarr.array(values, chunks=(2, 4))
    assert np.array_equal(z[(slice(1, 3), 2)], values[1:3, 2])
    assert np.array_equal(z.oindex[(np.array([0, 3]), slice(None))], values[[0, 3]])
    assert np.array_equal(z.vindex[(np.array([0, 3]), np.array([1, 2]))], values[[0, 3], [1, 2]])

    async def run() -> None:
        assert np.array_equal(await z._async_array.getitem((slice(1, 3), 2)), values[1:3, 2])
        assert np.array_equal(await z._async_array.oindex.getitem((np.array([0, 3]), slice(None))), values[[0, 3]])
        points = (np.array([0, 3]), np.array([1, 2]))
        assert np.array_equal(await z._async_array.vindex.getitem(points), values[[0, 3], [1, 2]])

    asyncio.run(run())
    assert isinstance(z._async_array, zarr.AsyncArray)


def test_xarray_looks_for_varied_chunks() -> None:
    z = zarr.create_array({}, shape=(5,), chunks=[[2, 3]], dtype="i4")
    with pytest.raises(NotImplementedError):
        z.chunks  # noqa: B018 - what is tested
    assert z.read_chunk_sizes == z.write_chunk_sizes == ((2, 3),)


def test_xarray_writes_strings_both_ways() -> None:
    z = zarr.create_array({}, shape=(2,), dtype=str)
    z[:] = np.array(["a", "bb"], object)
    assert z.dtype.kind in "OT"
    assert z[:].tolist() == ["a", "bb"]
    if hasattr(np.dtypes, "StringDType"):
        z[:] = np.array(["c", "dd"], np.dtypes.StringDType())
        assert z[:].tolist() == ["c", "dd"]


def test_xarray_expects_errors_of_these_kinds(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        zarr.open_group(str(tmp_path / "nothing"), mode="r", path=None, storage_options=None, use_consolidated=False)
    zarr.open_group(str(tmp_path / "g"), mode="w")
    with pytest.raises(ValueError, match="consolidated"):
        zarr.open_consolidated(str(tmp_path / "g"), mode="r")
    z = array_of(
        zarr.open(
            store=str(tmp_path / "g"), path="x", mode="w", shape=2, dtype="i4", config={"write_empty_chunks": True}
        )
    )
    z[:] = 0
    assert (tmp_path / "g/x/c/0").exists()


# -- dask --------------------------------------------------------------------------------------------------------------


def test_dask_reads_an_array_and_writes_its_regions() -> None:
    values = np.arange(100).reshape(10, 10)
    source = zarr.array(values, chunks=(3, 4))
    lazy = da.from_array(source, chunks=source.chunks)
    target = zarr.create_array(zarr.storage.MemoryStore(), name="x", shape=(10, 10), chunks=(4, 4), dtype="i8")
    with dask.config.set(scheduler="threads", num_workers=4):
        # Regions that share chunks: the locks of tessarr make this right without a lock of dask's.
        da.store((lazy + 1).rechunk((3, 5)), target, lock=False)
    assert np.array_equal(target[:], values + 1)
    assert np.array_equal(da.from_array(target).sum(axis=0).compute(), (values + 1).sum(axis=0))


def test_dask_sees_the_same_array_as_the_same(tmp_path: Path) -> None:
    z = zarr.open_array(tmp_path / "a", mode="w", shape=(4,), chunks=(2,), dtype="i4")
    z[:] = 1
    again = zarr.open_array(tmp_path / "a", mode="r+")
    assert tokenize(z) == tokenize(again)
    assert tokenize(z) != tokenize(zarr.open_array(tmp_path / "b", mode="w", shape=(4,), dtype="i4"))
    assert tokenize(z.store) == tokenize(again.store)


def test_everything_goes_through_cloudpickle(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path, mode="w")
    z = group.create_array("x", data=np.arange(4), chunks=(2,), attributes={"a": 1.5})
    for thing in (z, group, z.store, z.store_path, z.metadata, z.config, zarr.storage.LocalStore, zarr.storage):
        assert pickled(thing) == thing
    sent = pickled(z)
    sent[1:3] = 9
    assert z[:].tolist() == [0, 9, 9, 3]
    with zarr.ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.group(store)["x"] = np.arange(3)
    assert pickled(zarr.open_array(str(tmp_path / "a.zip"), path="x", mode="r"))[:].tolist() == [0, 1, 2]


# -- anndata -----------------------------------------------------------------------------------------------------------


def test_anndata_makes_strings_and_clears_stores() -> None:
    from tessarr.codecs import VLenUTF8Codec
    from tessarr.core.common import AccessModeLiteral
    from tessarr.core.dtype import VariableLengthUTF8
    from tessarr.core.sync import sync

    assert "r+" in AccessModeLiteral.__args__  # type: ignore[attr-defined]
    store = zarr.storage.MemoryStore()
    group = zarr.open_group(store, mode="a", zarr_format=3)
    group.attrs.setdefault("encoding-type", "anndata")
    z = group.create_array("obs", shape=(3,), dtype=VariableLengthUTF8(), fill_value="", chunks=(2,))
    z[...] = np.array(["a", "b", "c"], object)
    assert z[()].tolist() == ["a", "b", "c"]
    assert isinstance(z.serializer, VLenUTF8Codec)
    zero = group.create_array("scalar", shape=(), dtype=VariableLengthUTF8())
    zero[...] = "text"
    assert zero[()] == "text"
    assert set(dict(group)) == {"obs", "scalar"}
    assert "obs" in group
    del group["obs"]
    assert "obs" not in group
    assert str(group["scalar"].store_path).endswith("scalar")
    assert group.metadata.consolidated_metadata is None
    with zarr.config.set({"array.target_shard_size_bytes": 1_000_000}):
        assert zarr.config.get("array.target_shard_size_bytes") == 1_000_000
        assert group.create_array("big", shape=(4000, 1000), dtype="f8", chunks=(50, 100), shards="auto").shards
    sync(store.clear())  # type: ignore[func-returns-value]
    assert sync(store.is_empty("")) is True


def test_anndata_keeps_strings_of_v2_in_objects() -> None:
    import numcodecs

    group = zarr.open_group({}, mode="w", zarr_format=2)
    z = group.create_array("obs", shape=(3,), dtype=object, filters=[numcodecs.VLenUTF8()], fill_value="", chunks=(2,))
    z[:] = np.array(["a", "b", "c"], object)
    assert z[np.array([2, 0])].tolist() == ["c", "a"]
    index = np.array([1, 0, 2] * 1000)
    assert zarr.array(np.arange(3))[index].shape == (3000,)


def test_a_test_helper_may_inherit_a_local_store(tmp_path: Path) -> None:
    class Counting(zarr.storage.LocalStore):
        """Remembers what was asked."""

        asked: list[str] = []  # noqa: RUF012 - one list for all, as the helper has it

        def get(self, key: str, byte_range: Any = None) -> Any:
            self.asked.append(key)
            return super().get(key, byte_range)

    zarr.open_group(tmp_path, mode="w").create_array("x", data=np.arange(4), chunks=(2,))
    assert zarr.open_array(Counting(tmp_path), path="x", mode="r")[:].tolist() == [0, 1, 2, 3]
    assert "x/c/0" in Counting.asked


# -- ome-zarr-py, napari, spatialdata ----------------------------------------------------------------------------------


def test_ome_zarr_and_spatialdata_open_what_they_find(tmp_path: Path) -> None:
    from tessarr.storage import FsspecStore, LocalStore, StoreLike

    assert StoreLike is not None
    with pytest.raises((ValueError, FileNotFoundError)):
        zarr.open_group(store=LocalStore(tmp_path / "nothing", read_only=True), path="/", mode="r", zarr_format=2)
    group = zarr.create_group(store=LocalStore(tmp_path / "a#b"), overwrite=True, zarr_format=3)
    group.attrs["ome"] = {"version": "0.5"}
    group.require_group("labels").create_array("0", shape=(2, 2), dtype="u1", chunks=(1, 1))
    assert zarr.open(Path(tmp_path / "a#b"), mode="r")["labels/0"].shape == (2, 2)
    assert zarr.open_group(group.store_path, mode="r", use_consolidated=False).attrs["ome"]["version"] == "0.5"
    assert isinstance(group.store_path.store, LocalStore)
    assert isinstance(group.store, LocalStore)
    assert Path(group.store_path.store.root) == group.store.root == tmp_path / "a#b"
    assert group.metadata.attributes["ome"] == {"version": "0.5"}
    assert list(group_of(group["labels"]).array_keys()) == ["0"]
    assert list(group.group_keys()) == ["labels"]
    zarr.consolidate_metadata(group.store)
    group.store.close()
    fsspec = pytest.importorskip("fsspec", reason="an extra of tessarr that the test environment has")
    remote = FsspecStore.from_url("memory://ome", storage_options=None, read_only=False)
    zarr.group(remote)["x"] = np.arange(3)
    assert remote.fs.protocol
    assert fsspec.filesystem("memory").exists("/ome/x/zarr.json")
    for error in (GroupNotFoundError, ArrayNotFoundError):
        assert issubclass(error, FileNotFoundError)


def test_ome_zarr_s_chunk_keys_are_nested_in_v2() -> None:
    store: dict[str, bytes] = {}
    z = zarr.create_array(
        store,
        shape=(2, 2),
        chunks=(1, 1),
        dtype="u1",
        zarr_format=2,
        chunk_key_encoding={"name": "v2", "separator": "/"},
    )
    z[:] = 1
    assert "1/1" in store
    assert json.loads(store[".zarray"])["dimension_separator"] == "/"


def test_an_array_is_not_compared_element_by_element() -> None:
    z = zarr.array(np.arange(3))
    assert (z == z) is True
    assert (z == np.arange(3)) is False or (z == np.arange(3)) is NotImplemented
    assert hash(z) == hash(z)


def test_writing_to_what_was_opened_to_be_read_is_refused(tmp_path: Path) -> None:
    zarr.save(tmp_path / "a", np.arange(3))
    with pytest.raises(ReadOnlyError, match="read-only"):
        array_of(zarr.open(tmp_path / "a", mode="r"))[0] = 1
