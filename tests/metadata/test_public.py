"""`Array.metadata` shows each format in its own words, with zarr-python's names."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numcodecs
import numpy as np
import pytest

import tessarr
from tessarr.buffer import default_buffer_prototype
from tessarr.core.stored.parse_cache import parse_document
from tessarr.errors import MetadataValidationError
from tessarr.metadata.public import ArrayV2Metadata, ArrayV3Metadata

ONLY_V3 = (
    "dimension_names",
    "codecs",
    "chunk_key_encoding",
    "data_type",
    "storage_transformers",
    "node_type",
    "extra_fields",
)
ONLY_V2 = ("order", "compressor", "filters", "dimension_separator")


def made(zarr_format: int, **options: Any) -> Any:
    return tessarr.create_array(
        {},
        shape=(4, 6),
        chunks=(2, 3),
        dtype="<i4",
        fill_value=7,
        zarr_format=zarr_format,
        attributes={"a": 1},
        **options,
    )


def test_v2_metadata_has_no_fields_of_v3() -> None:
    z = made(2, dimension_names=("y", "x"))
    assert isinstance(z.metadata, ArrayV2Metadata)
    assert [name for name in ONLY_V3 if hasattr(z.metadata, name)] == []
    with pytest.raises(AttributeError, match="dimension_names"):
        _ = z.metadata.dimension_names  # type: ignore[attr-defined]
    assert z.dimension_names == ("y", "x")


def test_v3_metadata_has_no_fields_of_v2() -> None:
    z = made(3, dimension_names=("y", None))
    assert isinstance(z.metadata, ArrayV3Metadata)
    assert [name for name in ONLY_V2 if hasattr(z.metadata, name)] == []
    assert z.metadata.dimension_names == ("y", None)


def test_values_are_of_zarr_pythons_types() -> None:
    old = made(2, compressors=numcodecs.Zlib(3), filters=[numcodecs.Delta("<i4")]).metadata
    assert (old.compressor, old.filters) == (numcodecs.Zlib(3), (numcodecs.Delta("<i4"),))
    assert (old.order, old.dimension_separator, old.chunks, old.shards) == ("C", ".", (2, 3), None)
    assert made(2, compressors=None).metadata.filters is None
    new = made(3, shards=(4, 6)).metadata
    assert (new.chunks, new.shards, len(new.inner_codecs)) == ((2, 3), (4, 6), 2)
    for metadata in (old, new):
        assert type(metadata.fill_value) is np.int32
        assert metadata.dtype.to_native_dtype() == np.dtype("<i4")
        assert (metadata.shape, metadata.ndim, metadata.attributes) == ((4, 6), 2, {"a": 1})
    assert (old.encode_chunk_key((1, 0)), new.encode_chunk_key((1, 0))) == ("1.0", "c/1/0")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_it_is_made_of_a_document_and_of_fields(zarr_format: int) -> None:
    metadata = made(zarr_format).metadata
    kind = type(metadata)
    document = json.loads(json.dumps(metadata.to_dict()))
    assert kind.from_dict(document) == metadata
    assert kind(**{name: getattr(metadata, name) for name in kind._fields}) == metadata
    assert pickle.loads(pickle.dumps(metadata)) == metadata
    stated = {2: ("dimension_separator", "."), 3: ("storage_transformers", [])}[zarr_format]
    assert metadata.to_dict()[stated[0]] == stated[1]
    assert metadata.update_shape((8, 6)).shape == (8, 6)
    assert metadata.update_attributes({"b": 2}).attributes == {"b": 2}
    assert repr(metadata).startswith(f"{kind.__name__}(shape=(4, 6), ")
    with pytest.raises(AttributeError, match="immutable"):
        metadata.shape = (1,)


def test_documents_come_as_buffers() -> None:
    stored = made(2).metadata.to_buffer_dict(default_buffer_prototype())
    assert json.loads(stored[".zattrs"].to_bytes()) == {"a": 1}
    assert json.loads(stored[".zarray"].to_bytes())["shape"] == [4, 6]
    assert [*made(3).metadata.to_buffer_dict(default_buffer_prototype())] == ["zarr.json"]


def test_a_document_of_another_format_is_refused() -> None:
    with pytest.raises(MetadataValidationError, match="zarr_format"):
        ArrayV2Metadata.from_dict(made(3).metadata.to_dict())
    with pytest.raises(MetadataValidationError, match="zarr_format"):
        ArrayV3Metadata.from_dict(made(2).metadata.to_dict())


@pytest.mark.parametrize("number", [True, 3.0, [3], "3", 4])
def test_a_format_that_is_no_number_of_a_format_is_a_typed_error(number: object) -> None:
    document = {**made(3).metadata.to_dict(), "zarr_format": number}
    with pytest.raises(MetadataValidationError, match="zarr_format"):
        ArrayV3Metadata.from_dict(document)
    with pytest.raises(MetadataValidationError, match="zarr_format"):
        parse_document(document, group=False)


def test_metadata_makes_nodes_again() -> None:
    z = made(2)
    again = dict(tessarr.create_hierarchy(store={}, nodes={"x": z.metadata}))["x"]
    assert again.metadata == z.metadata
    assert tessarr.AsyncArray(z.metadata, z.store_path) == z.async_array


@pytest.mark.parametrize(("dtype", "empty"), [("S4", b""), ("U4", ""), ("T", "")])
def test_zero_is_the_default_of_text_in_new_metadata(dtype: str, empty: object) -> None:
    like: Any = tessarr.create_array({}, shape=2, dtype=dtype).metadata
    made = ArrayV3Metadata(
        shape=(2,),
        data_type=like.data_type,
        chunk_grid=like.chunk_grid,
        chunk_key_encoding=like.chunk_key_encoding,
        fill_value=0,
        codecs=like.codecs,
    )
    assert made.fill_value == empty
