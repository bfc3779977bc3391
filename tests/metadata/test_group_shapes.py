"""Metadata of groups and arrays in the shapes that zarr-python's users take apart."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import tessarr
from tessarr.buffer import default_buffer_prototype
from tessarr.codecs import BytesCodec
from tessarr.codecs.numcodecs.v3 import NumcodecsCodec
from tessarr.errors import MetadataValidationError
from tessarr.metadata.group import GroupMetadata
from tessarr.metadata.public import ArrayV3Metadata
from tessarr.storage import MemoryStore


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_metadata_of_a_group_comes_back_from_its_document(zarr_format: Any) -> None:
    group = GroupMetadata(zarr_format=zarr_format, attributes={"a": [1, None]})
    assert GroupMetadata.from_dict(group.to_dict()) == group
    assert GroupMetadata.from_dict({"zarr_format": zarr_format}) == GroupMetadata(zarr_format=zarr_format)
    assert group.node_type == "group"


def test_metadata_of_a_group_takes_none_for_no_attributes() -> None:
    assert GroupMetadata(attributes=None) == GroupMetadata()  # type: ignore[arg-type]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_changed_document_does_not_change_the_metadata(zarr_format: Any) -> None:
    given = {"a": {"b": [1]}}
    group = GroupMetadata(zarr_format=zarr_format, attributes=given)
    array = tessarr.create_array({}, shape=2, dtype="i4", zarr_format=zarr_format, attributes=given).metadata
    for metadata in (group, array):
        document: Any = metadata.to_dict()
        document["attributes"]["a"]["b"].append(2)
        document["attributes"].pop("a")
        assert metadata.attributes == {"a": {"b": [1]}}


def test_metadata_of_a_group_is_printed_as_zarr_python_prints_it() -> None:
    assert repr(GroupMetadata()) == (
        "GroupMetadata(attributes={}, zarr_format=3, consolidated_metadata=None, node_type='group')"
    )


def test_metadata_of_an_array_is_none_of_a_group() -> None:
    array = tessarr.create_array({}, shape=2, dtype="i4")
    with pytest.raises(MetadataValidationError, match="describes an array"):
        GroupMetadata.from_dict(array.metadata.to_dict())


def test_a_group_gives_the_documents_that_are_stored() -> None:
    found = GroupMetadata(attributes={"a": 1}).to_buffer_dict(default_buffer_prototype())
    assert json.loads(found["zarr.json"].to_bytes()) == {"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}
    assert set(GroupMetadata(zarr_format=2).to_buffer_dict(default_buffer_prototype())) >= {".zgroup"}


def test_a_document_of_an_array_has_tuples_and_a_flat_separator_as_zarr_python_takes_them() -> None:
    array = tessarr.create_array({}, shape=(4, 2), chunks=(2, 2), dtype="i4", attributes={"x": 1})
    document = array.metadata.to_dict()
    assert document["shape"] == (4, 2)
    assert document["chunk_grid"] == {"name": "regular", "configuration": {"chunk_shape": (2, 2)}}
    flat = {**document, "chunk_key_encoding": {"name": "default", "separator": "."}}
    assert ArrayV3Metadata.from_dict(flat).chunk_key_encoding.encode((1, 0)) == "c.1.0"
    assert ArrayV3Metadata.from_dict(document) == array.metadata


def test_a_numcodecs_codec_gives_its_configuration_as_numcodecs_spells_it() -> None:
    metadata: dict[str, Any] = {"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}
    array = tessarr.create_array({}, shape=4, dtype="i4", filters=[metadata], serializer=BytesCodec(), compressors=None)
    assert isinstance(array.metadata, ArrayV3Metadata)
    (delta, _) = array.metadata.codecs
    assert isinstance(delta, NumcodecsCodec)
    assert delta.codec_config == {"id": "delta", "dtype": "<i4"}


def test_attributes_of_an_open_group_may_be_given() -> None:
    group = tessarr.create_group({}, attributes={"a": [1, 2]})
    made = GroupMetadata(attributes=group.attrs)  # type: ignore[arg-type]
    assert json.loads(made.to_buffer_dict(default_buffer_prototype())["zarr.json"].to_bytes())["attributes"] == {
        "a": [1, 2]
    }


def test_an_array_made_of_metadata_is_stored_as_pydantic_zarr_stores_it() -> None:
    store: dict[str, Any] = {}
    document = tessarr.create_array({}, shape=4, chunks=2, dtype="i4").metadata.to_dict()
    metadata = ArrayV3Metadata.from_dict({**document, "codecs": [{"name": "bytes"}]})
    assert metadata.to_dict()["codecs"] == [{"name": "bytes", "configuration": {"endian": "little"}}]
    array = tessarr.AsyncArray(metadata=metadata, store_path=tessarr.storage.StorePath(MemoryStore(store), "g/a"))
    asyncio.run(array._save_metadata(metadata))
    assert tessarr.Array(_async_array=array).metadata == metadata
    opened = tessarr.open_group(store, mode="r+")["g/a"]
    assert isinstance(opened, tessarr.Array)
    opened[:] = 7
    assert opened.metadata == metadata
    assert bytes(store["g/a/c/0"]) == (7).to_bytes(4, "little") * 2


def test_metadata_saved_where_an_array_is_keep_its_chunks() -> None:
    store = MemoryStore()
    array = tessarr.create_array(store, name="a", shape=4, chunks=2, dtype="i4", zarr_format=3)
    array[:] = 7
    metadata = ArrayV3Metadata.from_dict({**array.metadata.to_dict(), "attributes": {"units": "K"}})
    place = tessarr.storage.StorePath(store, "a")
    asyncio.run(tessarr.AsyncArray(metadata=metadata, store_path=place)._save_metadata(metadata))
    again = tessarr.open_array(store, path="a", mode="r")
    assert (again[:].tolist(), dict(again.attrs)) == ([7] * 4, {"units": "K"})


def test_metadata_of_an_array_are_not_saved_where_a_group_is() -> None:
    store = MemoryStore()
    tessarr.create_group(store, path="a").create_group("b")
    metadata = ArrayV3Metadata.from_dict(tessarr.create_array({}, shape=4, dtype="i4").metadata.to_dict())
    array = tessarr.AsyncArray(metadata=metadata, store_path=tessarr.storage.StorePath(store, "a"))
    with pytest.raises(tessarr.errors.ContainsGroupError):
        asyncio.run(array._save_metadata(metadata))
    assert isinstance(tessarr.open(store, path="a/b", mode="r"), tessarr.Group)
