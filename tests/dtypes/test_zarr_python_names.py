"""Data types under zarr-python's method names: their JSON by format, their classes and sizes."""

from __future__ import annotations

from typing import Any

import pytest

from tessarr.dtype import (
    Bool,
    DateTime64,
    FixedLengthUTF32,
    Float32,
    Int16,
    RawBytes,
    Struct,
    VariableLengthUTF8,
    ZDType,
)
from tessarr.errors import DataTypeValidationError

CASES: list[tuple[Any, Any, Any]] = [
    (Bool(), "bool", {"name": "|b1", "object_codec_id": None}),
    (Int16(endianness="little"), "int16", {"name": "<i2", "object_codec_id": None}),
    (Float32(endianness="little"), "float32", {"name": "<f4", "object_codec_id": None}),
    (VariableLengthUTF8(), "string", {"name": "|O", "object_codec_id": "vlen-utf8"}),
    (RawBytes(length=4), "r32", {"name": "|V4", "object_codec_id": None}),
    (
        FixedLengthUTF32(length=3, endianness="little"),
        {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}},
        {"name": "<U3", "object_codec_id": None},
    ),
    (
        DateTime64(unit="s", scale_factor=10, endianness="little"),
        {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}},
        {"name": "<M8[10s]", "object_codec_id": None},
    ),
]


@pytest.mark.parametrize(("data_type", "v3", "v2"), CASES, ids=repr)
def test_json_by_format(data_type: Any, v3: Any, v2: Any) -> None:
    assert data_type.to_json(zarr_format=3) == data_type.to_json() == v3
    assert data_type.to_json(zarr_format=2) == v2
    assert type(data_type).from_json(v3, zarr_format=3).to_json() == v3
    assert type(data_type).from_json(v2, zarr_format=2) == data_type


def test_json_of_another_type_is_refused() -> None:
    with pytest.raises(DataTypeValidationError, match="not the JSON of Bool"):
        Bool.from_json("int8", zarr_format=3)
    with pytest.raises(DataTypeValidationError, match="Zarr v2"):
        Bool.from_json("|b1", zarr_format=2)


def test_classes_and_sizes() -> None:
    assert Int16().dtype_cls is type(Int16().dtype)
    assert Struct(fields=[("a", Int16()), ("b", Bool())]).item_size == 3
    assert ZDType[Any, Any] is ZDType  # type: ignore[misc]
    with pytest.raises(AttributeError, match="item_size"):
        _ = VariableLengthUTF8().item_size
