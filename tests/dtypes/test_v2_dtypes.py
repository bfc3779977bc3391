"""How v1 and v2 spell data types."""

from __future__ import annotations

import numpy as np
import pytest

from tessarr.dtypes.numeric import Bool, Float32, Int32, UInt8
from tessarr.dtypes.parse import from_v2
from tessarr.dtypes.raw import FixedLengthUTF32, NullTerminatedBytes, RawBytes
from tessarr.dtypes.struct import Struct
from tessarr.dtypes.time import DateTime64
from tessarr.dtypes.variable import (
    Categories,
    JSONObjects,
    MsgPackObjects,
    RaggedArrays,
    VariableLengthBytes,
    VariableLengthUTF8,
)
from tessarr.errors import DataTypeValidationError, MetadataValidationError, PickleCodecDisabledError
from tessarr.metadata.formats import parse_node
from tessarr.settings import config
from tessarr.types import JSON

KINDS = [
    "|b1", "|i1", "|u1", "<i2", ">i2", "<i4", ">i4", "<i8", ">u8", "<u2", "<u4", "<f2", "<f4", ">f4", ">f8", "<c8",
    ">c16", "<m8[ns]", "<M8[D]", ">M8[25us]", "|S5", "<U7", ">U7", "|V10",
]  # fmt: skip


@pytest.mark.spec("V2-20", "V2-19", "V1-09")
@pytest.mark.parametrize("typestr", KINDS)
def test_every_kind_has_the_dtype_that_numpy_gives_its_typestr_and_is_written_back_the_same(typestr: str) -> None:
    data_type = from_v2(typestr, None)
    assert data_type.dtype == np.dtype(typestr)
    assert data_type.dtype.str == np.dtype(typestr).str
    assert data_type.itemsize == np.dtype(typestr).itemsize
    assert data_type.to_v2() == typestr
    assert from_v2(data_type.to_v2(), None) == data_type


@pytest.mark.spec("V2-19", "V1-09")
@pytest.mark.parametrize(
    "typestr",
    ["f8", "i4", "b1", "S12", "=f8", "|i4", "|f8", "|U7", "", "<", "<q8", "<f3", "<f16", "<i16", "<b2", "<f8 "],
)
def test_a_typestr_without_a_byte_order_or_of_an_unknown_size_is_refused(typestr: str) -> None:
    with pytest.raises(DataTypeValidationError, match="invalid v2 dtype"):
        from_v2(typestr, None)


@pytest.mark.parametrize("typestr", ["<u1", ">u1", "|u1"])
def test_a_single_byte_may_carry_any_byte_order_and_is_written_without(typestr: str) -> None:
    assert from_v2(typestr, None) == UInt8()
    assert from_v2(typestr, None).to_v2() == "|u1"


@pytest.mark.parametrize("dtype", [None, 3, {"name": "int8"}, True, [], ["<i4"], [["a"]], [["a", "<i4", [2], 1]]])
def test_other_json_is_no_v2_dtype(dtype: object) -> None:
    with pytest.raises(DataTypeValidationError):
        from_v2(dtype, None)  # type: ignore[arg-type]


@pytest.mark.spec("V2-21")
def test_the_size_of_u_counts_characters_of_four_bytes() -> None:
    assert from_v2("<U7", None).itemsize == 28
    assert from_v2("<U7", None) == FixedLengthUTF32(length=7, endianness="little")


@pytest.mark.parametrize("typestr", ["|S0", "<U0", "|V0", "|S", "|S99999999999", "|S2147483648", "<U536870912"])
def test_a_length_must_be_positive_and_below_two_gibibytes(typestr: str) -> None:
    with pytest.raises(DataTypeValidationError):
        from_v2(typestr, None)


@pytest.mark.spec("V2-22")
@pytest.mark.parametrize("typestr", ["<M8[x]", "<M4[ns]", "<M8[0ns]", "<i4[ns]"])
def test_a_wrong_unit_of_times_is_refused(typestr: str) -> None:
    with pytest.raises(DataTypeValidationError, match="unit"):
        from_v2(typestr, None)


@pytest.mark.spec("V2-22")
def test_times_may_count_multiples_of_a_unit() -> None:
    assert from_v2("<m8[10us]", None).dtype == np.dtype("<m8[10us]")


@pytest.mark.spec("V2-23")
def test_m8_ns_is_datetime64_in_nanoseconds() -> None:
    assert from_v2("<M8[ns]", None) == DateTime64(unit="ns", scale_factor=1, endianness="little")


@pytest.mark.spec("V2-24", "V1-10")
def test_a_structured_dtype_is_a_list_of_names_and_datatypes() -> None:
    data_type = from_v2([["r", "|u1"], ["g", "|u1"], ["b", "|u1"]], None)
    assert data_type == Struct(fields=(("r", UInt8()), ("g", UInt8()), ("b", UInt8())))
    assert data_type.itemsize == 3
    assert data_type.dtype.names == ("r", "g", "b")


@pytest.mark.spec("V2-25")
def test_a_field_may_be_a_subarray_and_its_shape_is_written_as_a_list() -> None:
    document: JSON = [["x", "<f4"], ["y", "<f4"], ["z", "<f4", [2, 2]]]
    data_type = from_v2(document, None)
    assert data_type.itemsize == 24
    assert data_type.dtype["z"].shape == (2, 2)
    assert data_type.to_v2() == document
    assert isinstance(data_type.to_v2()[2][2], list)  # type: ignore[index]


@pytest.mark.spec("V2-26")
def test_structured_dtypes_nest() -> None:
    document: JSON = [["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]]
    data_type = from_v2(document, None)
    assert data_type.itemsize == 12
    assert data_type.to_v2() == document
    assert data_type.dump_fill(data_type.cast_fill((1.0, (2.0, 3))), 2) == "AACAPwAAAEADAAAA"


@pytest.mark.spec("V2-27")
def test_a_subarray_of_records_opens_and_a_bare_integer_shape_is_written_as_a_list() -> None:
    listed = from_v2([["a", [["b", "<i2"]], [3]]], None)
    bare = from_v2([["a", [["b", "<i2"]], 3]], None)
    assert listed.itemsize == 6
    assert bare == listed
    assert bare.to_v2() == [["a", [["b", "<i2"]], [3]]]


@pytest.mark.spec("V2-28")
def test_each_field_has_its_own_byte_order() -> None:
    data_type = from_v2([["a", "<i4"], ["b", ">i4"]], None)
    decoded = np.frombuffer(b"\x01\0\0\0\0\0\0\x02", dtype=data_type.dtype)[0]
    assert (decoded["a"], decoded["b"]) == (1, 2)
    assert data_type.to_v2() == [["a", "<i4"], ["b", ">i4"]]


@pytest.mark.parametrize(
    "document",
    [
        [["a", "<i4"], ["a", "<i4"]],
        [["a", "|O"]],
        [["a", "<i4", [0]]],
        [["a", "<i4", "2"]],
        [[1, "<i4"]],
        [["a", "i4"]],
    ],
)
def test_a_broken_structured_dtype_is_refused(document: object) -> None:
    with pytest.raises(DataTypeValidationError):
        from_v2(document, None)  # type: ignore[arg-type]


def test_a_field_without_a_name_is_called_after_its_position_as_in_numpy() -> None:
    document = [["a", "|u1"], ["", "|V3"]]
    assert from_v2(document, None).dtype.names == np.dtype([("a", "|u1"), ("", "|V3")]).names


@pytest.mark.parametrize("depth", [70, 380, 5000])
def test_a_hostile_depth_of_records_is_an_error_and_no_crash(depth: int) -> None:
    document: object = "<i4"
    for _ in range(depth):
        document = [["a", document]]
    with pytest.raises(DataTypeValidationError):
        from_v2(document, None)  # type: ignore[arg-type]


@pytest.mark.spec("V2-29")
@pytest.mark.parametrize(
    ("codec", "expected"),
    [
        ({"id": "vlen-utf8"}, VariableLengthUTF8()),
        ({"id": "vlen-bytes"}, VariableLengthBytes()),
        ({"id": "json2", "encoding": "utf-8"}, JSONObjects()),
        ({"id": "msgpack2"}, MsgPackObjects()),
        ({"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": "|u1"}, Categories()),
        ({"id": "vlen-array", "dtype": "<i4"}, RaggedArrays(data_type=Int32(endianness="little"))),
    ],
)
@pytest.mark.parametrize("before", [[], [{"id": "shuffle"}]])
def test_what_an_object_array_holds_is_told_by_the_object_codec_among_its_filters(
    codec: dict[str, object], expected: object, before: list[dict[str, object]]
) -> None:
    data_type = from_v2("|O", [*before, codec])  # type: ignore[list-item]
    assert data_type == expected
    assert data_type.to_v2() == "|O"
    assert data_type.itemsize is None
    assert data_type.object_codec == codec["id"]


@pytest.mark.spec("V2-29")
@pytest.mark.parametrize("filters", [None, [], [{"id": "shuffle", "elementsize": 4}]])
def test_an_object_array_without_an_object_codec_is_refused(filters: list[dict[str, object]] | None) -> None:
    with pytest.raises(DataTypeValidationError, match="object codec"):
        from_v2("|O", filters)  # type: ignore[arg-type]


@pytest.mark.spec("V2-29")
@pytest.mark.parametrize("dtype", ["|O", "<f8"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_pickle_is_refused_at_every_position(dtype: str, position: int) -> None:
    filters = [{"id": "vlen-utf8"}, {"id": "shuffle"}]
    filters.insert(position, {"id": "pickle"})
    with pytest.raises(PickleCodecDisabledError, match="refused to unpickle"):
        from_v2(dtype, filters)


def test_text_is_held_as_numpys_string_dtype() -> None:
    assert from_v2("|O", [{"id": "vlen-utf8"}]).dtype == np.dtypes.StringDType()


@pytest.mark.parametrize("name", ["bfloat16", "int4", "float8_e5m2", "float8_e4m3fn"])
def test_the_bare_names_that_tensorstore_writes_in_v2_are_read_and_written(name: str) -> None:
    assert from_v2(name, None).to_v2() == name


@pytest.mark.parametrize("name", ["int32", "string", "bytes", "struct", "float128"])
def test_other_bare_names_are_no_v2_dtypes(name: str) -> None:
    with pytest.raises(DataTypeValidationError, match="invalid v2 dtype"):
        from_v2(name, None)


def test_the_byte_order_belongs_to_equality_and_can_be_changed() -> None:
    big = from_v2(">i4", None)
    assert big != from_v2("<i4", None)
    assert big.with_byteorder("<") == from_v2("<i4", None)
    assert hash(big.with_byteorder("<")) == hash(from_v2("<i4", None))
    assert big.with_byteorder(">") is big
    assert big.with_byteorder("=").dtype == np.dtype("=i4")
    assert big.has_byteorder
    assert not Bool().has_byteorder
    assert not RawBytes(length=4).has_byteorder
    assert not NullTerminatedBytes(length=4).has_byteorder


def test_a_record_changes_the_byte_order_of_all_its_fields() -> None:
    mixed = from_v2([["a", "<i4"], ["b", ">f4"], ["c", "|u1"], ["d", [["e", ">U2"]], [2]]], None)
    little = mixed.with_byteorder("<")
    assert little.to_v2() == [["a", "<i4"], ["b", "<f4"], ["c", "|u1"], ["d", [["e", "<U2"]], [2]]]
    assert mixed.has_byteorder
    assert not from_v2([["a", "|u1"], ["b", "|S3"]], None).has_byteorder


def test_a_data_type_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Float32().endianness = "big"


@pytest.mark.spec("V2-22")
@pytest.mark.parametrize("typestr", ["<M8", ">m8", "<M8[generic]", "<M8[2generic]"])
def test_times_need_a_unit(typestr: str) -> None:
    """Documents without one are read with a warning; in strict mode they are refused."""
    data_type = from_v2(typestr, None)
    assert data_type.lacks_unit
    assert from_v2(data_type.to_v2(), None) == data_type
    document = {
        "zarr_format": 2, "shape": [1], "chunks": [1], "dtype": typestr, "compressor": None, "fill_value": None,
        "order": "C", "filters": None,
    }  # fmt: skip
    _, diagnostics = parse_node(2, {".zarray": document})
    assert ["unit" in said.message for said in diagnostics] == [True]
    with config.set({"strict": True}), pytest.raises(MetadataValidationError, match="unit"):
        parse_node(2, {".zarray": document})
