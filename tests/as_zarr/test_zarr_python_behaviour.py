"""Where tessarr's own surface differs from zarr-python's, the alias follows zarr-python; tessarr alone does not."""

from __future__ import annotations

import asyncio
import enum
import json
import logging
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.facade.zarr3
from tessarr import errors
from tessarr.codecs import BloscCodec, BytesCodec, ShardingCodec
from tessarr.errors import BaseZarrError, MetadataValidationError, UnstableSpecificationWarning, ZarrRuntimeWarning
from tessarr.facade.zarr3 import codecs as facade_codecs
from tessarr.facade.zarr3.codecs.numcodecs import _codecs as facade_numcodecs
from tessarr.grids.guess import guess_chunks_by_halving, guess_shards_by_count
from tessarr.keys.default import DefaultKeyEncoding
from tessarr.keys.v2 import V2KeyEncoding
from tessarr.metadata.public import ArrayV2Metadata
from tessarr.settings import config


@pytest.mark.filterwarnings("ignore::tessarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize(
    ("shape", "itemsize", "chunks"),
    [
        ((1000, 1000), 1, (500, 500)),
        ((1_000_000,), 8, (62_500,)),
        ((10, 10), 4, (10, 10)),
        ((0, 5), 4, (1, 5)),
        ((), 8, ()),
        ((10_000, 10_000), 8, (313, 625)),
    ],
)
def test_automatic_chunks_are_those_of_zarr_python(
    as_zarr: None, shape: tuple[int, ...], itemsize: int, chunks: tuple[int, ...]
) -> None:
    """The expected shapes were computed by zarr-python 3.1.6."""
    assert guess_chunks_by_halving(shape, itemsize) == chunks
    assert tessarr.create_array({}, shape=shape, dtype=f"V{itemsize}").chunks == chunks


def test_automatic_shards_are_those_of_zarr_python() -> None:
    """The expected shapes were computed by zarr-python 3.1.6."""
    assert guess_shards_by_count((100, 90), (10, 10), 4) == (20, 20)
    assert guess_shards_by_count((100, 80), (10, 10), 4) == (20, 10)
    assert guess_shards_by_count((100, 100), (10, 10), 4, target_nbytes=3600) == (30, 30)
    assert guess_shards_by_count((25, 100), (10, 10), 4, target_nbytes=3600) == (20, 20)
    assert guess_shards_by_count((), (), 4, target_nbytes=3600) == ()


def test_the_order_of_v3_arrays_has_no_effect_and_that_of_v2_comes_from_the_config(as_zarr: None) -> None:
    with pytest.warns(ZarrRuntimeWarning, match="has no effect for Zarr format 3"):
        assert tessarr.ones((2, 2), store={}, order="F").order == "C"
    array = tessarr.ones((2, 2), store={}, zarr_format=2, config={"order": "F"})
    assert isinstance(array.metadata, ArrayV2Metadata)
    assert array.metadata.order == array.order == "F"


REFUSED: list[tuple[int, dict[str, Any], str]] = [
    (2, {"dimension_names": ["x"]}, "dimension_names cannot be used for arrays with zarr_format 2"),
    (2, {"codecs": ["bytes"]}, "codecs cannot be used for arrays with zarr_format 2"),
    (2, {"chunk_key_encoding": "v2"}, "chunk_key_encoding cannot be used for arrays with zarr_format 2"),
    (3, {"filters": []}, "filters cannot be used for arrays with zarr_format 3"),
    (3, {"compressor": "blosc"}, "compressor cannot be used for arrays with zarr_format 3"),
    (3, {"dimension_separator": "/"}, "dimension_separator cannot be used for arrays with zarr_format 3"),
    (3, {"chunk_shape": (1,), "chunks": (2,)}, "Only one of chunk_shape or chunks"),
]


@pytest.mark.parametrize(("zarr_format", "given", "message"), REFUSED, ids=lambda value: str(value))
def test_create_refuses_arguments_of_the_other_format(
    as_zarr: None, zarr_format: int, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(BaseZarrError, match=message):
        tessarr.create(**{"chunks": (1,), **given}, shape=10, dtype="u1", store={}, zarr_format=zarr_format)


@pytest.mark.parametrize("given", [{"serializer": "bytes"}, {"dimension_names": ["x"]}], ids=str)
def test_create_array_refuses_what_v2_lacks(as_zarr: None, given: dict[str, Any]) -> None:
    with pytest.raises(BaseZarrError, match="Zarr format 2 arrays do not support"):
        tessarr.create_array({}, shape=10, dtype="u1", zarr_format=2, **given)


def test_arrays_like_others_are_made_where_arguments_are_refused(as_zarr: None) -> None:
    sharded = tessarr.create_array({}, shape=8, chunks=2, shards=4, dtype="i2", filters=[])
    assert tessarr.empty_like(sharded, store={}).shards == (4,)
    old = tessarr.zeros(4, store={}, zarr_format=2, order="F")
    like = tessarr.zeros_like(old, store={}).metadata
    assert isinstance(like, ArrayV2Metadata)
    assert like.order == "F"


@pytest.mark.parametrize("replace", ["create_array", "open_group"])
def test_overwriting_leaves_nothing_else_behind(as_zarr: None, tmp_path: Path, replace: str) -> None:
    for folder in ("own", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "note.txt").write_text("no Zarr")
    calls: dict[str, Any] = {
        "create_array": lambda: tessarr.create_array(tmp_path / "own", data=np.ones(1), overwrite=True),
        "open_group": lambda: tessarr.open_group(tmp_path / "own", mode="w"),
    }
    calls[replace]()
    assert [path.name for path in tmp_path.joinpath("own").iterdir() if path.suffix == ".txt"] == []
    assert tmp_path.joinpath("other", "note.txt").exists()


def test_an_array_is_made_with_overwrite_in_a_store_that_cannot_delete(as_zarr: None, tmp_path: Path) -> None:
    with tessarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        tessarr.create_array(store, data=np.ones(1), overwrite=True)
    assert tessarr.open_array(tmp_path / "a.zip", mode="r")[0] == 1


def test_tessarr_itself_keeps_files_of_others_and_refuses_less(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("no Zarr")
    tessarr.create_array(tmp_path, data=np.ones(1), overwrite=True)
    assert (tmp_path / "note.txt").exists()
    assert tessarr.ones((2, 2), store={}, order="F", compressor=None).order == "F"


def refused_requests() -> Iterator[tuple[str, type[Exception], Callable[[], object]]]:
    group = tessarr.create_group({})
    array = group.create_array("array", shape=(4, 4), dtype="i8")
    yield (
        "A parent of .* is an array - only groups may have child nodes",
        ValueError,
        lambda: group.create_group("array/b"),
    )
    yield "Incompatible dtype", TypeError, lambda: group.require_array("array", shape=(4, 4), dtype="f8", exact=True)
    yield "Incompatible shape", TypeError, lambda: group.require_array("array", shape=(5, 4), dtype="i8")
    yield "Consolidated metadata requested", ValueError, lambda: tessarr.open_group(group.store, use_consolidated=True)
    yield "Attempting to set", ValueError, lambda: array.__setitem__(slice(0, 2), np.zeros((3, 5)))
    yield "Unsupported type for store_like", TypeError, lambda: tessarr.open(store=4)  # type: ignore[arg-type]
    yield "shape was not specified", ValueError, lambda: tessarr.create_array({}, dtype="u1")
    yield "dtype was not specified", ValueError, lambda: tessarr.create_array({}, shape=4)
    both: dict[str, Any] = {"data": np.ones(3), "shape": 3}
    yield "the shape parameter was also used", ValueError, lambda: tessarr.create_array({}, **both)
    old: dict[str, Any] = {"shape": 10, "dtype": "u1", "zarr_format": 2}
    yield "`shard_shape=\\(5,\\)`", ValueError, lambda: tessarr.create_array({}, shards=(5,), **old)
    yield "v3_default_filters", ValueError, lambda: config.set({"array.v3_default_filters.numeric": "x"})


REQUESTS = [*refused_requests()]


@pytest.mark.parametrize(("message", "error", "call"), REQUESTS, ids=[message for message, *_ in REQUESTS])
def test_errors_have_the_phrases_that_code_matches(
    message: str, error: type[Exception], call: Callable[[], object]
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_codecs_of_v3_do_not_compress_v2_under_the_alias(as_zarr: None) -> None:
    old: dict[str, Any] = {
        "shape": 10,
        "dtype": "u1",
        "zarr_format": 2,
        "compressors": tessarr.codecs.GzipCodec(level=1),
    }
    with pytest.raises(BaseZarrError, match="Cannot use a BytesBytesCodec as a compressor for zarr v2 arrays"):
        tessarr.create_array({}, **old)


class Unconsolidated(tessarr.storage.MemoryStore):
    """A store that wants no consolidated metadata."""

    supports_consolidated_metadata = False


def test_a_store_without_consolidated_metadata_says_so() -> None:
    group = tessarr.create_group(Unconsolidated())
    with pytest.raises(TypeError, match="doesn't support consolidated metadata"):
        tessarr.consolidate_metadata(group.store)
    with pytest.raises(ValueError, match="doesn't support consolidated metadata"):
        tessarr.open_group(group.store, use_consolidated=True)


def test_array_has_create_as_zarr_python_s_has(tmp_path: Path) -> None:
    assert tessarr.Array.create(tmp_path / "a", shape=(4,), dtype="u1").shape == (4,)
    assert asyncio.run(tessarr.AsyncArray.create(tmp_path / "b", shape=4, dtype="u1")).shape == (4,)


def test_the_makers_of_zarr_core_array_are_coroutines() -> None:
    from tessarr.facade.zarr3.core.array import AsyncArray, create_array, from_array

    made = asyncio.run(create_array({}, shape=4, dtype="u1"))
    assert isinstance(made, AsyncArray)
    assert isinstance(asyncio.run(from_array({}, data=np.ones(3))), AsyncArray)


def test_required_members_of_the_other_kind_are_type_errors() -> None:
    group = tessarr.create_group({})
    group.create_array("array", shape=1, dtype="u1")
    group.create_group("group")
    for require in (
        lambda: group.require_group("array"),
        lambda: group.require_array("group", shape=1, dtype="u1"),
        lambda: asyncio.run(tessarr.AsyncGroup(group).require_group("array")),
    ):
        with pytest.raises(TypeError, match="Incompatible object") as found:
            require()
        assert isinstance(found.value, FileExistsError)


def test_errors_are_made_of_the_parts_that_zarr_python_s_have() -> None:
    assert str(errors.GroupNotFoundError("s", "p")) == "No group found in store 's' at path 'p'"
    assert str(errors.ArrayNotFoundError("s", "p")) == "No array found in store 's' at path 'p'"
    assert str(errors.MetadataValidationError("a", "b", "c")) == "Invalid value for 'a'. Expected 'b'. Got 'c'."
    assert "(.zarray and .zgroup) were both found in store 's'" in str(errors.ContainsArrayAndGroupError("s", "p"))


def test_axes_without_elements_may_have_chunks_of_length_zero() -> None:
    array = tessarr.create_array({}, shape=(0, 2), chunks=(0, 2), dtype="f8")
    array[...] = 1
    assert array.chunks == (1, 2)
    with pytest.raises(ValueError, match="positive"):
        tessarr.create_array({}, shape=(2,), chunks=(0,), dtype="f8")


def test_v2_groups_have_a_zattrs_under_the_alias(as_zarr: None) -> None:
    store = tessarr.storage.MemoryStore()
    tessarr.create_array(store, name="a/b", shape=1, dtype="u1", zarr_format=2)
    assert {"a/.zattrs", ".zattrs", "a/b/.zattrs"} <= {*store.list()}


def test_a_buffer_of_zarr_python_is_filled(tmp_path: Path) -> None:
    from tessarr.facade.zarr3.buffer.cpu import NDBuffer

    array = tessarr.create_array(tmp_path, data=np.arange(4))
    out = NDBuffer.create(shape=(2,), dtype="i8")
    array.get_basic_selection(slice(1, 3), out=out)  # type: ignore[arg-type]
    assert out.as_numpy_array().tolist() == [1, 2]
    with pytest.raises(TypeError, match="out must be a NumPy array"):
        array.get_basic_selection(slice(1, 3), out=[0, 0])  # type: ignore[arg-type]


def test_stores_of_zarr_python_s_shape_refuse_ranges_that_are_none(tmp_path: Path) -> None:
    from tessarr.facade.zarr3.buffer.cpu import Buffer
    from tessarr.facade.zarr3.storage import MemoryStore, ZipStore

    store = ZipStore(tmp_path / "a.zip", mode="w")
    store._set("key", Buffer.from_bytes(b"12"))
    found: Any = store._get("key")
    assert found.to_bytes() == b"12"
    with pytest.raises(TypeError, match="Unexpected byte_range, got"):
        asyncio.run(MemoryStore().get("key", byte_range=(0, 2)))  # type: ignore[arg-type]


def test_an_async_group_has_create_dataset() -> None:
    made = asyncio.run(tessarr.AsyncGroup(tessarr.create_group({})).create_dataset("a", shape=(3,)))
    assert isinstance(made, tessarr.AsyncArray)


def test_parsers_of_orders_are_there() -> None:
    from tessarr.facade.zarr3.core.common import parse_indexing_order

    assert parse_indexing_order("F") == "F"
    with pytest.raises(ValueError, match="Expected one of"):
        parse_indexing_order("f")


CODECS: list[tuple[Any, str]] = [
    (tessarr.codecs.BytesCodec(), "i4"),
    (tessarr.codecs.GzipCodec(level=1), "u1"),
    (tessarr.codecs.ZstdCodec(), "u1"),
    (tessarr.codecs.Crc32cCodec(), "u1"),
    (tessarr.codecs.BloscCodec(), "u1"),
    (tessarr.codecs.TransposeCodec(order=(0,)), "i4"),
    (tessarr.codecs.VLenUTF8Codec(), "string"),
]


@pytest.mark.parametrize(("codec", "dtype"), CODECS, ids=[type(codec).__name__ for codec, _ in CODECS])
def test_codecs_work_without_an_event_loop_as_zarr_python_s_do(codec: Any, dtype: str) -> None:
    from tessarr.facade.zarr3.abc.codec import SupportsSyncCodec
    from tessarr.facade.zarr3.buffer.cpu import Buffer, NDBuffer, buffer_prototype
    from tessarr.facade.zarr3.core.array_spec import ArrayConfig, ArraySpec

    assert isinstance(codec, SupportsSyncCodec)
    data_type = tessarr.dtype.parse_dtype(dtype)
    spec = ArraySpec((4,), data_type, data_type.default_fill()[()], ArrayConfig(), buffer_prototype)
    values = (
        np.array([1, 2, 3, 4], data_type.dtype) if dtype != "string" else np.array(["a", "b", "", "d"], data_type.dtype)
    )
    given = Buffer.from_bytes(values.tobytes()) if dtype == "u1" else NDBuffer(values)
    again: Any = codec._decode_sync(codec._encode_sync(given, spec), spec)
    assert again.as_numpy_array().tolist() == values.tolist()


def test_open_consolidated_always_uses_consolidated_metadata() -> None:
    with pytest.raises(TypeError, match="use_consolidated"):
        tessarr.open_consolidated({}, use_consolidated=False)


def test_a_subclass_s_create_allocates_its_empty_buffers() -> None:
    from tessarr.facade.zarr3.buffer import cpu

    class Mine(cpu.NDBuffer):
        @classmethod
        def create(cls, **given: Any) -> Any:
            return cls(np.ones(given["shape"], given["dtype"]))

    made: Any = super(cpu.NDBuffer, Mine).empty(shape=(2,), dtype="u1")
    assert isinstance(made, Mine)
    assert made.as_numpy_array().tolist() == [1, 1]


@pytest.mark.parametrize("mode", ["r+", "a", "w"])
def test_a_mode_that_writes_is_refused_for_a_read_only_store(as_zarr: None, mode: str) -> None:
    store = tessarr.storage.MemoryStore()
    tessarr.create_array(store, shape=2, dtype="i4")
    read_only = store.with_read_only(True)
    with pytest.raises(ValueError, match=r"Store is read-only but mode is"):
        tessarr.open(read_only, mode=mode)
    assert tessarr.open_array(read_only).read_only
    assert tessarr.open_array(read_only, mode="r").read_only


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_opening_a_group_as_an_array_finds_no_array_only_where_its_document_is_missing(
    as_zarr: None, zarr_format: Any
) -> None:
    store = tessarr.storage.MemoryStore()
    tessarr.create_group(store, zarr_format=zarr_format)
    with pytest.raises(errors.NodeTypeValidationError) as caught:
        tessarr.open_array(store, mode="r")
    assert isinstance(caught.value, FileNotFoundError) == (zarr_format == 2)


@pytest.mark.parametrize(("zarr_format", "key"), [(2, ".zarray"), (3, "zarr.json")])
def test_documents_have_the_members_that_zarr_python_always_writes(as_zarr: None, zarr_format: Any, key: str) -> None:
    values: dict[str, Any] = {}
    array = tessarr.create_array(values, shape=2, dtype="i4", zarr_format=zarr_format)
    array.attrs["a"] = 1
    document = json.loads(values[key])
    member, default = {2: ("dimension_separator", "."), 3: ("storage_transformers", [])}[zarr_format]
    assert document[member] == default
    with config.set({"zarr_python.all_members": False}):
        tessarr.create_array(values, shape=2, dtype="i4", zarr_format=zarr_format, overwrite=True)
    assert member not in json.loads(values[key])


def _with_chunks(
    store: dict[str, Any], zarr_format: Any, stored: object, **options: Any
) -> tuple[str, Callable[[], Any]]:
    """Make an array of 8 × 4 with `options`, and put `stored` in the place of its chunk shape."""
    tessarr.create_array(store, shape=(8, 4), dtype="i2", zarr_format=zarr_format, **options)
    key = {2: ".zarray", 3: "zarr.json"}[zarr_format]

    def chunks() -> Any:
        document = json.loads(store[key])
        grid = document if zarr_format == 2 else document["chunk_grid"]["configuration"]
        return grid.get("chunks") or grid.get("chunk_shape") or grid["chunk_shapes"]

    document = json.loads(store[key])
    grid = document if zarr_format == 2 else document["chunk_grid"]["configuration"]
    grid[{2: "chunks", 3: "chunk_shape" if "chunk_shape" in grid else "chunk_shapes"}[zarr_format]] = stored
    store[key] = json.dumps(document).encode()
    return key, chunks


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("zarr_format", "options", "stored", "chunks", "warning"),
    [
        (2, {"chunks": (1, 4)}, [True, 4], (1, 4), ""),
        (3, {"chunks": (1, 4)}, [True, 4], (1, 4), ""),
        (2, {"chunks": (1, 4)}, [0, 4], (1, 4), r"It is read as \[1, 4\], reading 0 in dimension 0 as 1, as no chunk"),
        (3, {"chunks": (1, 4)}, [False, 4], (1, 4), r"reading false in dimension 0 as 1, as no chunk can be stored"),
        (
            3,
            {"chunks": (2, 4), "shards": (2, 4)},
            [0, 4],
            (2, 4),
            r"0 in dimension 0 as 2, the inner chunk size, as no",
        ),
        (3, {"chunks": ((1, 7), (4,))}, [[True, 7.0], [[4.0, 1]]], None, ""),
        (3, {"chunks": (2, 4)}, [2, [4]], None, r"in dimensions \[1\], .* It is read as that rectilinear chunk grid"),
    ],
)
def test_chunk_shapes_that_zarr_python_corrects_are_read_under_the_alias(
    as_zarr: None, zarr_format: Any, options: dict[str, Any], stored: Any, chunks: Any, warning: str
) -> None:
    store: dict[str, Any] = {}
    key, stored_chunks = _with_chunks(store, zarr_format, stored, **options)
    before = store[key]
    with pytest.warns(errors.ZarrUserWarning, match=warning) if warning else nullcontext():
        array = tessarr.open_array(store)
    assert chunks is None or array.chunks == chunks
    array[2:2] = 7
    assert store[key] == before
    array[2] = 7
    corrected = list(chunks) if chunks else [[1, 7], [[4, 1]]] if not warning else [2, [4]]
    assert stored_chunks() == corrected if warning else store[key] == before
    array.resize(array.shape)
    assert stored_chunks() == corrected
    assert tessarr.open_array(store)[1:4].tolist() == [[0] * 4, [7] * 4, [0] * 4]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_corrected_chunk_shape_is_stored_before_the_chunks_as_the_document_is_then(
    as_zarr: None, is_async: bool
) -> None:
    store: dict[str, Any] = {}
    key, _ = _with_chunks(store, 3, [0, 4], chunks=(1, 4))
    with pytest.warns(errors.ZarrUserWarning, match="Array '.*': The stored chunk shape"):
        array = tessarr.open_array(store)
    others = json.loads(store[key])
    store[key] = json.dumps({**others, "shape": [9, 4], "attributes": {"by": "another writer"}}).encode()

    if is_async:
        asyncio.run(array.write_async(slice(2, 3), 7))
    else:
        array[2] = 7

    document = json.loads(store[key])
    assert document["chunk_grid"]["configuration"]["chunk_shape"] == [1, 4]
    assert (document["shape"], document["attributes"]) == ([9, 4], {"by": "another writer"})
    before = store[key] = json.dumps(document, separators=(",", ":")).encode()
    array[3] = 8
    assert store[key] == before
    assert tessarr.open_array(store)[1:5, 0].tolist() == [0, 7, 8, 0]


def test_chunks_are_not_written_where_the_document_means_others_by_now(as_zarr: None) -> None:
    store: dict[str, Any] = {}
    key, _ = _with_chunks(store, 3, [0, 4], chunks=(1, 4))
    with pytest.warns(errors.ZarrUserWarning, match="is read as"):
        array = tessarr.open_array(store)
    document = json.loads(store[key])
    document["chunk_grid"]["configuration"]["chunk_shape"] = [4, 4]
    store[key] = json.dumps(document).encode()
    values = dict(store)
    with pytest.raises(errors.StaleNodeError, match="has changed since this array was opened; reopen"):
        array[2] = 7
    assert store == values


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_corrected_chunk_shape_is_stored_with_attributes(as_zarr: None, zarr_format: Any) -> None:
    store: dict[str, Any] = {}
    _, stored_chunks = _with_chunks(store, zarr_format, [0, 4], chunks=(1, 4))
    with pytest.warns(errors.ZarrUserWarning, match="is read as"):
        array = tessarr.open_array(store)
    array.attrs["x"] = 1
    assert stored_chunks() == [1, 4]


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidating_warns_of_chunk_shapes_that_readers_will_correct(as_zarr: None, zarr_format: Any) -> None:
    store: dict[str, Any] = {}
    group = tessarr.create_group(store, zarr_format=zarr_format)
    group.create_array("a", shape=(3,), dtype="i2")
    key = {2: "a/.zarray", 3: "a/zarr.json"}[zarr_format]
    document = json.loads(store[key])
    (document if zarr_format == 2 else document["chunk_grid"]["configuration"])[
        {2: "chunks", 3: "chunk_shape"}[zarr_format]
    ] = [0]
    store[key] = json.dumps(document).encode()
    with pytest.warns(errors.ZarrUserWarning, match="Array '.*/a': The stored chunk shape"):
        tessarr.consolidate_metadata(store)
    consolidated = tessarr.open_group(store, use_consolidated=True)
    with pytest.warns(errors.ZarrUserWarning, match="Array '.*/a': The stored chunk shape"):
        assert consolidated["a"].chunks == (1,)


@pytest.mark.parametrize("stored", [[True, 4], [0, 4], [False, 4]])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_tessarr_itself_refuses_chunk_shapes_that_zarr_python_corrects(stored: list[object], zarr_format: Any) -> None:
    store: dict[str, Any] = {}
    _with_chunks(store, zarr_format, stored, chunks=(1, 4))
    with config.set({"zarr_python.documents": True}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tessarr.open_array(store)
    with pytest.raises(errors.MetadataValidationError, match="expected a positive integer"):
        tessarr.open_array(store)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stored", ["<b1", ">u1", [["a", "<i1"], ["b", "<i4"]]])
def test_a_byte_order_of_single_bytes_is_read_silently_and_corrected_with_the_next_change(
    as_zarr: None, stored: Any
) -> None:
    store: dict[str, Any] = {}
    tessarr.create_array(
        store, shape=(3,), dtype=[tuple(f) for f in stored] if isinstance(stored, list) else stored, zarr_format=2
    )
    document = json.loads(store[".zarray"])
    plain, document["dtype"] = document["dtype"], stored
    store[".zarray"] = json.dumps(document).encode()
    assert plain != stored
    tessarr.open_array(store).resize((4,))
    assert json.loads(store[".zarray"])["dtype"] == plain


def test_create_takes_the_modes_that_create() -> None:
    store: dict[str, Any] = {}
    with pytest.raises(errors.ReadOnlyError, match="read-only"):
        tessarr.create(shape=3, store=store, mode="r")
    with pytest.raises(ValueError, match="mode must be one of"):
        tessarr.create(shape=3, store=store, mode="q")
    assert store == {}
    tessarr.create(shape=3, store=store, mode="w-")
    for mode in ("w-", "x", "a"):
        with pytest.raises(errors.ContainsArrayError):
            tessarr.create(shape=4, store=store, mode=mode, overwrite=mode != "a")
    assert tessarr.create(shape=5, store=store, mode="w").shape == (5,)
    assert tessarr.create(shape=6, store=store, mode="a", overwrite=True).shape == (6,)


def test_an_array_is_replaced_by_one_like_it_whose_values_are_not_wanted(tmp_path: Path) -> None:
    array = tessarr.create_array(tmp_path / "z", shape=(4,), chunks=(4,), dtype="i2", fill_value=3, attributes={"a": 1})
    with pytest.raises(BaseZarrError, match="cannot overwrite its own source"):
        tessarr.from_array(tmp_path / "z", data=array, chunks=(2,), overwrite=True)
    tessarr.from_array(tmp_path / "z", data=array, chunks=(2,), overwrite=True, write_data=False)
    found = tessarr.open_array(tmp_path / "z")
    assert (found.chunks, found.attrs.asdict(), found[...].tolist()) == ((2,), {"a": 1}, [3] * 4)


def test_shards_of_different_lengths_are_described_and_counted() -> None:
    made = tessarr.create_array({}, shape=(90,), chunks=(10,), shards=[[60, 30]], dtype="i4")
    assert made.nchunks_initialized == 0
    made[60:90] = 1
    assert made.nchunks_initialized == 3
    made[0:10] = 1
    assert made.nchunks_initialized == 9
    assert ("Shard shape", "<variable>") in made.info.items
    assert ("Chunk shape", "(10,)") in made.info.items
    with pytest.raises(NotImplementedError, match="regular chunk grids"):
        _ = tessarr.create_array({}, shape=(30,), chunks=[[10, 20]], dtype="i4").chunks
    with pytest.raises(ValueError, match="divisible"):
        tessarr.create_array({}, shape=(90,), chunks=(10,), shards=[[55, 35]], dtype="i4")
    with pytest.raises(ValueError, match="Rectilinear chunks with sharding"):
        tessarr.create_array({}, shape=(90,), chunks=[[40, 50]], shards=(90,), dtype="i4")


@pytest.mark.parametrize(
    ("name", "member"),
    [("Endian", "little"), ("BloscShuffle", "shuffle"), ("BloscCname", "zstd"), ("ShardingCodecIndexLocation", "end")],
)
def test_enumerations_of_codec_options_are_deprecated_under_the_alias(as_zarr: None, name: str, member: str) -> None:
    enumeration = getattr(facade_codecs, name)
    with pytest.warns(DeprecationWarning, match=rf"{name}\.{member} is deprecated"):
        assert getattr(enumeration, member) == member
    assert enumeration[member] == enumeration(member) == member
    assert isinstance(enumeration(member), enumeration)
    assert member in [*enumeration]
    with pytest.raises(AttributeError):
        _ = enumeration.other


def test_members_of_other_enumerations_are_taken_with_a_warning_under_the_alias(as_zarr: None) -> None:
    legacy = enum.Enum("legacy", {"little": "little", "end": "end", "zstd": "zstd"})
    with pytest.warns(DeprecationWarning, match="Passing an enum to BytesCodec"):
        assert BytesCodec(legacy.little).endian == "little"  # type: ignore[arg-type]
    with pytest.warns(DeprecationWarning, match="Passing an enum to ShardingCodec"):
        assert ShardingCodec((1,), index_location=legacy.end).index_location == "end"  # type: ignore[arg-type]
    with pytest.warns(DeprecationWarning, match="Passing an enum to BloscCodec"):
        assert BloscCodec(cname=legacy.zstd).cname == "zstd"  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="endian must be one of"):
        BytesCodec("north")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype([("a", "i1"), ("b", "i8")], align=True),
        np.dtype([("a", "i8"), ("nested", np.dtype([("x", "i1"), ("y", "i8")], align=True))]),
        np.dtype({"names": ["a", "b"], "formats": ["i1", "i1"], "offsets": [0, 4], "itemsize": 8}),
    ],
)
@pytest.mark.filterwarnings("ignore::tessarr.errors.UnstableSpecificationWarning")
def test_removed_padding_is_warned_of_under_the_alias(as_zarr: None, dtype: np.dtype[np.void]) -> None:
    data = np.zeros(3, dtype)
    data["a"] = [1, 2, 3]
    with pytest.warns(UserWarning, match=r"packed.*layout") as warned:
        made = tessarr.create_array({}, data=data)
    others = [
        item for item in warned.list if item.category is not UnstableSpecificationWarning
    ]  # of 3.1: of every struct
    assert len(others) == 1
    assert made[:]["a"].tolist() == [1, 2, 3]


def test_packed_records_give_no_warning(as_zarr: None, recwarn: pytest.WarningsRecorder) -> None:
    tessarr.create_array({}, shape=(3,), dtype=[("a", "i1"), ("b", "i8")])
    assert not [warning for warning in recwarn.list if "packed" in str(warning.message)]


@pytest.mark.parametrize(
    ("shape", "chunks", "shards", "expected"),
    [((0, 20), (5, 5), -1, (5, 20)), ((10,), (4,), -1, (12,)), ((8, 0), (4, 3), (-1, 6), (8, 6))],
)
def test_a_shard_of_a_whole_axis_holds_whole_chunks(
    shape: tuple[int, ...], chunks: tuple[int, ...], shards: Any, expected: tuple[int, ...]
) -> None:
    made = tessarr.create_array({}, shape=shape, chunks=chunks, shards=shards, dtype="i1")
    assert (made.shards, made.chunks) == (expected, chunks)


def test_an_array_has_dimension_names_where_they_are_given(as_zarr: None) -> None:
    named = tessarr.create_array({}, shape=(2, 3), dtype="i4", dimension_names=("y", "x"))
    unnamed = tessarr.create_array({}, shape=(2, 3), dtype="i4")
    assert named.dimension_names == named.dims == ("y", "x")
    assert not hasattr(unnamed, "dimension_names")
    assert unnamed.dims is None
    assert "Dimensions" not in dict(unnamed.info.items)
    assert tessarr.zeros_like(unnamed).dims is None
    with config.set({"zarr_python.only_given_names": False}):
        assert unnamed.dimension_names is None


def test_a_document_of_an_unknown_format_is_invalid_metadata() -> None:
    document = {**tessarr.create_array({}, shape=(2,), dtype="i4").metadata.to_dict(), "zarr_format": "invalid"}
    with pytest.raises(MetadataValidationError, match="expected 1, 2 or 3, got 'invalid'"):
        tessarr.Array.from_dict({}, document)


def test_attributes_that_were_set_stay_as_given_until_the_node_is_opened_again(as_zarr: None) -> None:
    store: dict[str, Any] = {}
    group = tessarr.create_group(store)
    group.attrs["pair"] = (1, 2)
    group.attrs.update({"nested": {"a": (3,)}, "list": [4]})
    assert (group.attrs["pair"], group.attrs["nested"], group.attrs["list"]) == ((1, 2), {"a": (3,)}, [4])
    assert group.attrs.asdict() == {"pair": (1, 2), "nested": {"a": (3,)}, "list": [4]}
    other = tessarr.open_group(store)
    assert other.attrs["pair"] == [1, 2]
    other.attrs["pair"] = "of another object"
    group.refresh()
    assert group.attrs["pair"] == "of another object"
    with config.set({"zarr_python.given_attributes": False}):
        other.attrs["pair"] = (5, 6)
        assert other.attrs["pair"] == [5, 6]


def test_a_document_that_is_no_json_is_a_json_error(tmp_path: Path) -> None:
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3,\n oh}')
    with pytest.raises(json.JSONDecodeError) as caught:
        tessarr.open(tmp_path, mode="r")
    assert (caught.value.lineno, caught.value.colno) == (2, 2)
    assert isinstance(caught.value, MetadataValidationError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.pos, type(again)) == (str(caught.value), caught.value.pos, errors.InvalidJSONError)


def test_opening_a_place_without_a_node_finds_no_group(as_zarr: None) -> None:
    with pytest.raises(errors.GroupNotFoundError, match="No group found in store"):
        tessarr.open({}, mode="r")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_info_has_the_labels_of_zarr_python(as_zarr: None, zarr_format: Any) -> None:
    array = tessarr.create_array({}, shape=(4,), dtype=">f4", zarr_format=zarr_format)
    array[:] = 1
    lines = dict(line.split(" : ") for line in re.sub(" +:", " :", str(array.info_complete())).splitlines())
    assert lines["Data type"] == f"Float32(endianness={'big' if zarr_format == 2 else 'little'!r})"
    assert [*lines][6:] == [
        "Order", "Read-only", "Store type", "Filters", *["Serializer"][: zarr_format - 2], "Compressors", "No. bytes",
        "No. bytes stored", "Storage ratio", "Chunks Initialized",
    ]  # fmt: skip
    assert "Store type" in str(tessarr.create_group({}).info)


def test_urls_of_memory_are_those_of_fsspec(as_zarr: None) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    tessarr.create_array("memory://place-of-a-test/a", shape=(2,), dtype="i4")[:] = 1
    assert memory.exists("/place-of-a-test/a/zarr.json")
    assert tessarr.open_array("memory://place-of-a-test/a", mode="r")[:].tolist() == [1, 1]
    memory.rm("/place-of-a-test", recursive=True)
    store = tessarr.storage.ManagedMemoryStore("of-tessarr")
    tessarr.create_array(store, shape=(2,), dtype="i4")
    assert tessarr.open_array("memory://of-tessarr").shape == (2,)


def test_references_of_fsspec_are_opened() -> None:
    fsspec = pytest.importorskip("fsspec")
    document = {"shape": [2], "chunks": [2], "dtype": "<i4", "compressor": None, "filters": None, "fill_value": 0}
    references = {
        ".zgroup": '{"zarr_format": 2}',
        "a/.zarray": json.dumps({**document, "zarr_format": 2, "order": "C"}),
        "a/0": "base64:AQAAAAIAAAA=",
    }
    filesystem = fsspec.filesystem("reference", fo=references)
    group = tessarr.open_group(tessarr.storage.FsspecStore(filesystem, read_only=True), mode="r")
    assert [*group] == ["a"]
    assert tessarr.open_array(group.store, path="a", mode="r")[:].tolist() == [1, 2]


@pytest.mark.parametrize(("key", "coords"), [("c/1/23", (1, 23)), ("c", ()), ("c/0", (0,))])
def test_a_chunk_key_is_decoded(key: str, coords: tuple[int, ...]) -> None:
    encoding = DefaultKeyEncoding()
    assert encoding.decode_chunk_key(key) == coords
    assert V2KeyEncoding().decode_chunk_key("0") == (0,)
    with pytest.raises(ValueError, match="'c/x' is not a key of the default chunk key encoding"):
        encoding.decode_chunk_key("c/x")


def test_a_codec_is_derived_from_the_classes_of_numcodecs_with_its_name() -> None:
    class Delta(facade_numcodecs._NumcodecsArrayArrayCodec, codec_name="delta"):  # type: ignore[misc,call-arg]  # found at run time
        pass

    assert issubclass(Delta, facade_numcodecs._NumcodecsCodec)
    assert Delta(dtype="i4").to_json() == {"name": "numcodecs.delta", "configuration": {"dtype": "i4"}}


def test_an_array_that_is_not_there_is_not_found_in_every_mode(as_zarr: None, tmp_path: Path) -> None:
    for mode in ("r", "r+"):
        with pytest.raises(errors.ArrayNotFoundError):
            tessarr.open_array(tmp_path / "a", mode=mode)
    with pytest.raises(errors.ArrayNotFoundError):
        tessarr.open_array(tmp_path / "a", mode="r", shape=(2,))


def test_removing_a_member_that_is_not_there_has_no_effect(as_zarr: None) -> None:
    group = tessarr.open_group({})
    group.create_group("a")
    del group["b"]
    assert list(group) == ["a"]


def test_tessarr_itself_says_that_there_is_no_member_to_remove() -> None:
    group = tessarr.open_group({})
    with pytest.raises(KeyError, match="no member 'b'"):
        del group["b"]


def test_the_registry_has_the_classes_of_buffers_and_pipelines() -> None:
    from tessarr.facade.zarr3 import registry
    from tessarr.facade.zarr3.core import codec_pipeline
    from tessarr.facade.zarr3.core.buffer import cpu

    assert registry.get_buffer_class() is cpu.Buffer
    assert registry.get_ndbuffer_class(reload_config=True) is cpu.NDBuffer
    assert registry.get_pipeline_class() is codec_pipeline.BatchedCodecPipeline


def test_the_level_of_log_messages_is_set() -> None:
    logger = logging.getLogger("tessarr")
    before = logger.level
    try:
        tessarr.facade.zarr3.set_log_level("ERROR")
        assert logger.level == logging.ERROR
    finally:
        logger.setLevel(before)


def test_any_setting_can_be_set_under_the_alias(as_zarr: None) -> None:
    with config.set({"my.thing": 1}):
        assert config.get("my.thing") == 1
    assert config.get("my.thing", None) is None


def test_the_directory_of_a_store_is_shown_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = tessarr.facade.zarr3.storage.LocalStore("d")
    assert (store.root, str(store)) == (Path("d"), "file://d")
    tessarr.create_group(store)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    asyncio.run(store._open())
    assert [*Path().iterdir()] == []
    assert isinstance(tessarr.open_group(store), tessarr.Group)
    assert pickle.loads(pickle.dumps(store)).root == Path("d")
    assert store.with_read_only(True).root == Path("d")  # type: ignore[attr-defined]


def test_a_name_that_no_node_may_have_says_what_is_reserved() -> None:
    with pytest.raises(errors.NodeNameError, match='begins with "__zarr", which is reserved'):
        tessarr.create_group({}, path="__zarr_foo")


def test_a_number_that_is_not_json_is_named_by_its_document() -> None:
    values = {".zgroup": b'{"zarr_format": 2}', ".zattrs": b'{"a": NaN}'}
    with config.set({"attributes.allow_nan": True}):
        tessarr.open_group(values, mode="r")
    with pytest.raises(ValueError, match=r"metadata\['.zattrs'\].a is nan"):
        tessarr.consolidate_metadata(values)
