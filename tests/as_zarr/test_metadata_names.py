"""Names around metadata that VirtualiZarr and others take from zarr-python's private modules."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import tessarr
from tessarr.codecs import BytesCodec, GzipCodec, TransposeCodec
from tessarr.dtype import DateTime64, Int32, VariableLengthUTF8
from tessarr.facade.zarr3.core.array_spec import ArrayConfig
from tessarr.facade.zarr3.core.buffer import Buffer, default_buffer_prototype
from tessarr.facade.zarr3.core.chunk_grids import RegularChunkGrid
from tessarr.facade.zarr3.core.chunk_key_encodings import DefaultChunkKeyEncoding, V2ChunkKeyEncoding
from tessarr.facade.zarr3.core.codec_pipeline import BatchedCodecPipeline, codecs_from_list
from tessarr.facade.zarr3.core.metadata.v2 import ArrayV2Metadata
from tessarr.facade.zarr3.core.sync_group import get_node
from tessarr.facade.zarr3.metadata.migrate_v3 import _convert_array_metadata
from tessarr.storage import MemoryStore


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_fields_of_metadata_are_replaced_as_those_of_zarr_python(zarr_format: int) -> None:
    options: dict[str, Any] = {"attributes": {"a": 1}, "fill_value": 7, "zarr_format": zarr_format}
    options |= {"dimension_names": ["x", "y"], "shards": (4, 4)} if zarr_format == 3 else {"order": "F"}
    metadata = tessarr.create_array({}, shape=(8, 8), chunks=(2, 2), dtype="i4", **options).metadata
    assert dataclasses.replace(metadata) == metadata
    changed = dataclasses.replace(metadata, attributes={"b": 2}, shape=(6, 8))
    assert (changed.attributes, changed.shape) == ({"b": 2}, (6, 8))
    assert changed.to_dict() == {**metadata.to_dict(), "attributes": {"b": 2}, "shape": changed.to_dict()["shape"]}
    assert metadata.attributes == {"a": 1}
    assert {"shape", "attributes", "fill_value"} < {field.name for field in dataclasses.fields(metadata)}
    with pytest.raises(TypeError, match="no_field"):
        dataclasses.replace(metadata, no_field=1)
    spec: Any = metadata.get_chunk_spec((0, 0), ArrayConfig(), default_buffer_prototype())
    assert (spec.shape, spec.dtype, spec.fill_value) == ((4, 4) if zarr_format == 3 else (2, 2), metadata.dtype, 7)


def test_a_node_is_opened_by_its_path_or_not_found() -> None:
    store = MemoryStore()
    tessarr.create_array(store, name="a", shape=2, dtype="i4", zarr_format=2)
    assert get_node(store, "a", zarr_format=2) == tessarr.open_array(store, path="a")
    assert isinstance(get_node(store, "", zarr_format=2), tessarr.Group)
    for path, zarr_format in (("b", 2), ("a", 3)):
        with pytest.raises(FileNotFoundError):
            get_node(store, path, zarr_format=zarr_format)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "v2", "v3"),
    [
        (Int32(), {"name": "<i4", "object_codec_id": None}, "int32"),
        (VariableLengthUTF8(), {"name": "|O", "object_codec_id": "vlen-utf8"}, "string"),
        (
            DateTime64(unit="s", scale_factor=10),
            {"name": "<M8[10s]", "object_codec_id": None},
            {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}},
        ),
    ],
)
def test_a_data_type_is_named_in_the_words_of_a_format(dtype: Any, v2: Any, v3: Any) -> None:
    assert dtype.to_json(zarr_format=2) == v2
    assert dtype.to_json(zarr_format=3) == dtype.to_json() == v3


def test_codecs_are_sorted_by_kind_and_come_back_in_order() -> None:
    codecs = [TransposeCodec(order=(1, 0)), BytesCodec(), GzipCodec(level=1)]
    pipeline = BatchedCodecPipeline.from_codecs(codecs)
    assert list(pipeline) == codecs
    assert pipeline == BatchedCodecPipeline((codecs[0],), codecs[1], (codecs[2],), batch_size=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("codecs", [[GzipCodec(), BytesCodec()], [BytesCodec(), TransposeCodec(order=(0,))], []])
def test_codecs_that_are_no_chain_are_refused(codecs: list[object]) -> None:
    with pytest.raises(ValueError, match=r"wrong position|ArrayBytesCodec"):
        codecs_from_list(codecs)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        codecs_from_list(["bytes"])  # type: ignore[list-item]


def test_v2_metadata_is_said_in_the_words_of_v3() -> None:
    old = ArrayV2Metadata.from_dict(
        {
            "zarr_format": 2,
            "shape": [4],
            "chunks": [2],
            "dtype": ">i4",
            "compressor": {"id": "gzip", "level": 1},
            "fill_value": 7,
            "order": "C",
            "filters": None,
            "attributes": {"_ARRAY_DIMENSIONS": ["x"]},
        }
    )
    new = _convert_array_metadata(old).to_dict()
    assert (new["zarr_format"], new["shape"], new["data_type"], new["fill_value"]) == (3, (4,), "int32", 7)
    assert new["codecs"] == [
        {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "gzip", "configuration": {"level": 1}},
    ]
    assert new["attributes"] == {"_ARRAY_DIMENSIONS": ["x"]}


def test_key_encodings_and_grids_have_the_methods_of_zarr_python() -> None:
    made = V2ChunkKeyEncoding(separator="/")
    assert made.to_dict() == {"name": "v2", "configuration": {"separator": "/"}}
    assert V2ChunkKeyEncoding.from_dict(made.to_dict()) == made
    assert V2ChunkKeyEncoding.from_dict({"name": "v2"}) == V2ChunkKeyEncoding()
    assert made.encode_chunk_key((1, 2)) == "1/2"
    assert DefaultChunkKeyEncoding().encode_chunk_key(()) == "c"
    assert RegularChunkGrid((2, 3)).to_dict() == {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}


def test_the_package_core_has_the_names_that_other_pipelines_import() -> None:
    from tessarr.facade.zarr3 import core

    assert core.BatchedCodecPipeline is BatchedCodecPipeline
    assert core.Buffer is Buffer


def test_private_names_that_pydantic_zarr_reads_are_there() -> None:
    group = tessarr.create_group({}, attributes={"a": 1})
    array = group.create_array("x", shape=2, dtype="i4", config={"write_empty_chunks": True})
    assert array._async_array._config == array.config
    assert array._async_array._config.write_empty_chunks
    consolidated = tessarr.consolidate_metadata(group.store).metadata.consolidated_metadata
    document = consolidated.to_dict()
    assert document["kind"] == "inline"
    assert list(document["metadata"]) == ["x"]
