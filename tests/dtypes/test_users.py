"""What users write as a dtype and as a fill value."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from decimal import Decimal
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tessarr.dtype as door
from tessarr import registry
from tessarr.dtypes import small
from tessarr.dtypes.base import DataType
from tessarr.dtypes.numeric import Bool, Complex64, Complex128, Float16, Float32, Float64, Int8, Int32, Int64, UInt8
from tessarr.dtypes.parse import from_numpy, from_v3
from tessarr.dtypes.raw import FixedLengthUTF32, NullTerminatedBytes, RawBytes
from tessarr.dtypes.struct import Struct, Structured
from tessarr.dtypes.time import DateTime64, TimeDelta64
from tessarr.dtypes.variable import (
    Categories,
    JSONObjects,
    MsgPackObjects,
    RaggedArrays,
    VariableLengthBytes,
    VariableLengthUTF8,
)
from tessarr.errors import DataTypeValidationError, MissingDependencyError, PickleCodecDisabledError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (int, Int64()), (float, Float64()), (bool, Bool()), (complex, Complex128()), (str, VariableLengthUTF8()),
        (bytes, VariableLengthBytes()), ("string", VariableLengthUTF8()), ("bytes", VariableLengthBytes()),
        (np.dtypes.StringDType(), VariableLengthUTF8()), (np.dtypes.StringDType(coerce=False), VariableLengthUTF8()),
        ("U", VariableLengthUTF8()), ("S", VariableLengthBytes()), ("U5", FixedLengthUTF32(length=5)),
        (">U5", FixedLengthUTF32(length=5, endianness="big")), ("S5", NullTerminatedBytes(length=5)),
        ("V5", RawBytes(length=5)), ("r40", RawBytes(length=5)), ("i4", Int32()), (np.int32, Int32()),
        (np.dtype(">f4"), Float32(endianness="big")), ("float16", Float16()), ("?", Bool()), ("B", UInt8()),
        ("M8[ns]", DateTime64(unit="ns")), ("datetime64[25us]", DateTime64(unit="us", scale_factor=25)),
        (np.dtype("m8"), TimeDelta64()), (np.dtype(">M8[D]"), DateTime64(unit="D", endianness="big")),
        ("int4", small.Int4()), ("bfloat16", small.BFloat16()), (ml_dtypes.bfloat16, small.BFloat16()),
        (np.dtype(ml_dtypes.float8_e4m3fn), small.Float8E4M3FN()), (ml_dtypes.uint2, small.UInt2()),
        ("complex_float8_e5m2", small.ComplexFloat8E5M2()), (Int8(), Int8()),
        ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, DateTime64(unit="s")),
        ([("a", "<i4"), ("b", ">f4", (2,))], Struct(fields=(
            ("a", Int32(endianness="little")), ("b", Float32(endianness="big"), (2,))))),
        ([["a", "<i4"], ["b", [["c", "|u1", [2]]]]], Struct(fields=(
            ("a", Int32(endianness="little")), ("b", Struct(fields=(("c", UInt8(), (2,)),)))))),
        (np.dtype([("a", "u1"), ("b", "u1")], align=True), Struct(fields=(("a", UInt8()), ("b", UInt8())))),
    ],
    ids=repr,
)  # fmt: skip
def test_a_user_may_say_it_in_many_ways(given: Any, expected: DataType) -> None:
    assert from_numpy(given) == expected
    if not expected.name.startswith("complex_"):  # in memory those are records, and a record means a struct
        assert from_numpy(expected.dtype, object_codec=expected.object_codec) == expected


@pytest.mark.parametrize(
    "given",
    ["nonsense", "<q3", np.longdouble, np.clongdouble, None, object(), 3.5, "float128", ("i4", (2,)), "r12", "struct"],
)
def test_what_is_no_data_type_is_refused(given: Any) -> None:
    with pytest.raises(DataTypeValidationError):
        from_numpy(given)


def test_the_padding_of_an_aligned_record_is_not_part_of_the_type() -> None:
    data_type = from_numpy(np.dtype([("a", "u1"), ("b", "<f8")], align=True))
    assert data_type.itemsize == 9


@pytest.mark.parametrize(
    ("codec", "expected"),
    [
        ("vlen-utf8", VariableLengthUTF8()), ("vlen-bytes", VariableLengthBytes()), ("json2", JSONObjects()),
        ("msgpack2", MsgPackObjects()), ("categorize", Categories()),
        ("vlen-array:<i4", RaggedArrays(data_type=Int32(endianness="little"))),
    ],
)  # fmt: skip
def test_object_is_what_the_object_codec_stores(codec: str, expected: DataType) -> None:
    assert from_numpy("O", object_codec=codec) == expected
    assert from_numpy(object, object_codec=codec) == expected


@pytest.mark.parametrize("codec", [None, "gzip", "vlen-array"])
def test_object_alone_says_nothing(codec: str | None) -> None:
    with pytest.raises(DataTypeValidationError, match="object"):
        from_numpy(object, object_codec=codec)


def test_pickle_is_refused_by_name() -> None:
    with pytest.raises(PickleCodecDisabledError):
        from_numpy(object, object_codec="pickle")


def test_object_fields_are_refused() -> None:
    with pytest.raises(DataTypeValidationError):
        from_numpy(np.dtype([("a", object)]), object_codec="json2")


# -- fill values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        (Int8(), 5, 5), (Int8(), 5.0, 5), (Int8(), np.int64(-3), -3), (Int8(), np.array(7), 7), (Int8(), True, 1),
        (Int8(), np.float32(2), 2), (Int8(), ml_dtypes.int4(3), 3), (Float32(), 1, 1.0),
        (Float32(), "Infinity", np.inf),
        (Float32(), Decimal("0.5"), 0.5), (Float32(), np.int16(3), 3.0), (Float32(), ml_dtypes.bfloat16(1.5), 1.5),
        (Float64(), np.float16(0.1), float(np.float16(0.1))), (Bool(), 1, True), (Bool(), np.False_, False),
        (Complex64(), 1 + 2j, 1 + 2j), (Complex64(), 3, 3 + 0j), (Complex64(), (1, "Infinity"), complex(1, np.inf)),
        (Complex64(), np.complex128(1j), 1j), (Complex64(), [1, 2], 1 + 2j), (VariableLengthUTF8(), np.str_("a"), "a"),
        (FixedLengthUTF32(length=2), "ab", "ab"), (NullTerminatedBytes(length=3), "ab", b"ab"),
        (NullTerminatedBytes(length=3), np.bytes_(b"ab"), b"ab"), (RawBytes(length=2), np.void(b"ab"), b"ab"),
        (VariableLengthBytes(), bytearray(b"x"), b"x"), (small.Int4(), -8, -8), (small.Float8E4M3FN(), 448, 448.0),
    ],
)  # fmt: skip
def test_a_fill_value_may_be_given_in_many_ways(data_type: DataType, value: Any, expected: Any) -> None:
    fill = data_type.cast_fill(value)
    assert fill.shape == ()
    assert fill.dtype == data_type.dtype
    assert fill.item() == expected or fill.tobytes() == expected


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (Int8(), 128), (Int8(), 1.5), (Int8(), "5"), (Int8(), float("nan")), (Int8(), float("inf")), (Int8(), None),
        (Int8(), [1]), (Int8(), 1j), (UInt8(), -1), (Float32(), 1e39), (Float32(), None), (Float32(), "abc"),
        (Float32(), 1j), (Float32(), [1.0]), (Bool(), 2), (Bool(), "true"), (Bool(), None), (Complex64(), "1"),
        (Complex64(), [1, 2, 3]), (VariableLengthUTF8(), 0), (VariableLengthUTF8(), b"a"),
        (VariableLengthUTF8(), "\ud800"),
        (FixedLengthUTF32(length=2), "abc"), (FixedLengthUTF32(length=2), 3), (NullTerminatedBytes(length=2), b"abc"),
        (NullTerminatedBytes(length=2), 1), (RawBytes(length=2), b"a"), (RawBytes(length=2), 0),
        (VariableLengthBytes(), "a"), (small.Float8E8M0FNU(), 0), (small.Float8E8M0FNU(), -1), (small.Int4(), 8),
        (small.Float4E2M1FN(), float("nan")), (small.Float8E4M3FN(), float("inf")), (DateTime64(unit="s"), 1.5),
        (DateTime64(unit="s"), 2**63), (DateTime64(unit="s"), "soon"), (DateTime64(unit="s"), np.timedelta64(1, "s")),
        (DateTime64(unit="s"), np.datetime64("2020-01-01T00:00:00.5")), (DateTime64(unit="ns"), np.datetime64("3000")),
    ],
)  # fmt: skip
def test_what_is_no_value_of_the_type_is_an_error(data_type: DataType, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        data_type.cast_fill(value)


def test_times_are_taken_from_numpy_python_and_text() -> None:
    data_type = DateTime64(unit="ns", endianness="big")
    expected = np.datetime64("2020-01-02", "ns")
    python = (dt.datetime(2020, 1, 2), dt.date(2020, 1, 2))
    for value in (expected, np.datetime64("2020-01-02"), *python, "2020-01-02"):
        assert data_type.cast_fill(value) == expected
    assert data_type.cast_fill(5) == np.datetime64(5, "ns")
    assert np.isnat(data_type.cast_fill("NaT"))
    assert np.isnat(data_type.cast_fill(np.datetime64("NaT", "s")))
    assert TimeDelta64(unit="ms").cast_fill(dt.timedelta(seconds=2)) == np.timedelta64(2000, "ms")
    assert TimeDelta64(unit="ms").cast_fill(np.timedelta64(7, "ms")) == np.timedelta64(7, "ms")
    assert TimeDelta64().cast_fill(7).item() == 7


def test_records_are_taken_as_tuples_mappings_and_numpy_records() -> None:
    data_type = Struct(fields=(("x", Float32(endianness="big")), ("n", UInt8())))
    expected = bytes.fromhex("3f800000ff")
    record = np.array((1.0, 255), dtype=[("x", "<f4"), ("n", "u1")])
    for value in ((1, 255), [1, 255], {"n": 255, "x": 1}, record, record[()], data_type.cast_fill((1, 255))):
        assert data_type.cast_fill(value).tobytes() == expected
    assert data_type.cast_fill(0).tobytes() == bytes(5)
    for wrong in ((1,), {"x": 1}, "x", None, 1, {"x": 1, "n": 1, "z": 2}):
        with pytest.raises((TypeError, ValueError)):
            data_type.cast_fill(wrong)


def test_a_fill_value_cannot_be_changed_in_place() -> None:
    for name in ("int32", "float32", "bool", "string", "bytes", "int4"):
        with pytest.raises(ValueError, match="read-only"):
            from_v3(name).default_fill()[...] = from_v3(name).default_fill()


# -- the door -------------------------------------------------------------------------------------------------------


def test_the_door_offers_every_name_it_lists() -> None:
    for name in door.__all__:
        assert getattr(door, name) is not None
    assert set(door.__all__) <= set(dir(door))
    with pytest.raises(AttributeError):
        _ = door.Nonsense


def test_zarr_pythons_names_work() -> None:
    assert door.ZDType is DataType
    assert Structured is Struct
    data_type = Int32(endianness="little")
    assert data_type.to_native_dtype() == np.dtype("<i4")
    assert Int32.from_native_dtype(np.dtype(">i4")) == Int32(endianness="big")
    assert data_type.default_scalar() == 0
    assert isinstance(data_type.cast_scalar(5), np.int32)
    assert Float32().to_json_scalar(np.nan, zarr_format=3) == "NaN"
    assert Float32().from_json_scalar("Infinity", zarr_format=2) == np.inf
    assert VariableLengthUTF8().cast_scalar("a") == "a"
    with pytest.raises(DataTypeValidationError):
        Int32.from_native_dtype("f4")


def test_parse_dtype_understands_documents_and_users() -> None:
    assert door.parse_dtype("int8") == Int8()
    assert door.parse_dtype("|u1", zarr_format=2) == UInt8()
    assert door.parse_dtype({"name": "|O", "object_codec_id": "vlen-utf8"}, zarr_format=2) == VariableLengthUTF8()
    assert door.parse_dtype([["a", "|u1"]], zarr_format=2) == Struct(fields=(("a", UInt8()),))
    assert door.parse_dtype({"name": "int8"}) == Int8()
    with pytest.raises(DataTypeValidationError):
        door.parse_dtype(3)


def test_the_registry_of_zarr_python_lists_its_names_in_its_order_and_what_was_registered() -> None:
    from tessarr.facade.zarr3 import dtype

    listed = [*dtype.data_type_registry.contents]
    assert listed[:3] == ["bool", "int8", "int16"]
    assert listed[-3:] == ["struct", "numpy.datetime64", "numpy.timedelta64"]
    assert len({*dtype.data_type_registry.contents.values()}) == len(listed) == 22

    class Mine(Int8):
        name = "example.mine"

    dtype.data_type_registry.register("example.mine", Mine)
    try:
        assert [*dtype.data_type_registry.contents] == [*listed, "example.mine"]
    finally:
        registry._TABLE["data_type"].pop("example.mine")


@pytest.mark.parametrize(
    ("data_type", "value"), [(Int8(), {1}), (Int8(), 1.3), (Float32(), "word"), (Complex64(), {"a": 1})]
)
def test_a_value_that_is_none_of_the_type_is_refused_in_zarr_python_s_words(data_type: Any, value: object) -> None:
    with pytest.raises(
        TypeError, match=r"Cannot convert object .* with type .* to a scalar compatible with the data type"
    ) as found:
        data_type.cast_scalar(value)
    assert isinstance(found.value, ValueError)


def test_the_json_of_a_complex_scalar_is_a_tuple() -> None:
    for zarr_format in (2, 3):
        assert Complex64().to_json_scalar(1 + 2j, zarr_format=zarr_format) == (1.0, 2.0)


def test_parameters_are_refused_in_zarr_python_s_words() -> None:
    for make, message in (
        (lambda: NullTerminatedBytes(length=0), "length must be >= 1, got 0."),
        (lambda: Struct(fields=()), "must have at least one field. Got ()"),
        (
            lambda: DateTime64(unit="x"),
            "unit must be one of ('Y', 'M', 'W', 'D', 'h', 'm', 's', 'ms', 'us', 'μs', 'ns'",
        ),
        (lambda: DateTime64(unit="s", scale_factor=0), "scale_factor must be > 0, got 0."),
        (lambda: DateTime64(unit="s", scale_factor=2**31), "scale_factor must be < 2147483648, got 2147483648."),
    ):
        with pytest.raises(DataTypeValidationError, match=re.escape(message)):
            make()


def test_the_registry_view_reads_and_registers() -> None:
    assert door.data_type_registry.get("int8") is Int8
    known = set(registry.names("data_type"))
    assert {"int2", "bfloat16", "json", "complex_float32"} <= known == set(door.data_type_registry.contents)
    assert door.data_type_registry.match_json("int8", zarr_format=3) == Int8()
    assert door.data_type_registry.match_json("<i4", zarr_format=2) == Int32(endianness="little")
    assert door.data_type_registry.match_dtype(np.dtype("i1")) == Int8()
    with pytest.raises(KeyError):
        door.data_type_registry.get("example.nothing")
    door.data_type_registry.register("example.byte", Int8)
    try:
        assert door.parse_dtype("example.byte") == Int8()
    finally:
        registry._TABLE["data_type"].pop("example.byte")


def test_every_registered_name_resolves_to_a_class() -> None:
    for name in registry.names("data_type"):
        assert issubclass(registry.get("data_type", name), DataType)  # type: ignore[arg-type]


def test_repr_is_the_constructor_call() -> None:
    assert repr(Int32()) == "Int32()"
    assert repr(DateTime64(unit="ns")) == "DateTime64(unit='ns', scale_factor=1)"
    assert repr(Struct(fields=(("a", Int8()), ("b", Int8(), (2,))))).startswith("Struct(fields=(('a', Int8()),")


def test_core_types_do_not_import_ml_dtypes() -> None:
    code = (
        "import sys, tessarr.dtype as d; from tessarr.dtypes.parse import from_v3, from_v2, from_numpy\n"
        "from_v3('float32'); from_v2('<i4', None); from_numpy('float64'); d.parse_dtype(str)\n"
        "assert 'ml_dtypes' not in sys.modules and 'tessarr.dtypes.small' not in sys.modules\n"
        "sys.modules['ml_dtypes'] = None\n"
        "b = from_v3('bfloat16'); assert b.itemsize == 2 and b.to_json() == 'bfloat16'\n"
        "try: b.dtype\n"
        "except ImportError as error: print(type(error).__name__, error.hint)\n"
    )
    path = [entry for entry in sys.path if entry]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    assert run.stdout.startswith(MissingDependencyError.__name__)
    assert "tessarr[ml]" in run.stdout


def test_a_title_of_a_field_is_refused_because_no_document_keeps_it() -> None:
    inner = np.dtype([(("a longer text", "f0"), "i4"), ("g", "f8")])
    for dtype in (inner, np.dtype([("x", inner)]), np.dtype([("x", inner, (2,))])):
        with pytest.raises(ValueError, match="field 'f0' has a title"):
            from_numpy(dtype)
    assert from_numpy([("f0", "i4"), ("g", "f8")]).dtype.names == ("f0", "g")
