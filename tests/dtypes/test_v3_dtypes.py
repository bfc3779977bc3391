"""How v3 names data types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pytest

import tessarr
from tessarr import registry
from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.parse import from_numpy, from_v2, from_v3
from tessarr.dtypes.raw import FixedLengthUTF32, NullTerminatedBytes, RawBytes
from tessarr.dtypes.struct import Struct
from tessarr.dtypes.time import DateTime64, TimeDelta64
from tessarr.dtypes.variable import JSONObjects, VariableLengthBytes, VariableLengthUTF8
from tessarr.errors import DataTypeValidationError, MetadataValidationError
from tessarr.model.conversion.upgrade import array_to_v3
from tessarr.types import JSON

CORE = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip

XY: dict[str, JSON] = {
    "name": "struct",
    "configuration": {"fields": [{"name": "x", "data_type": "float32"}, {"name": "y", "data_type": "int8"}]},
}


def named(name: str, **configuration: JSON) -> JSON:
    return {"name": name, "configuration": configuration}


@pytest.mark.spec("V3-DTYPE-01")
@pytest.mark.parametrize("name", CORE)
def test_core_types_are_numpys_types_of_the_same_name_in_native_order(name: str) -> None:
    data_type = from_v3(name)
    assert data_type.dtype == np.dtype(name)
    assert data_type.dtype.isnative
    assert data_type.to_json() == name
    assert data_type.name == name
    assert data_type.itemsize == np.dtype(name).itemsize
    assert from_v3({"name": name}) == data_type == from_v3({"name": name, "configuration": {}, "must_understand": True})


@pytest.mark.spec("V3-DTYPE-01")
@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("int16", -32768, "8000"), ("int32", 2147483647, "7fffffff"), ("int64", -(2**63), "8000000000000000"),
        ("uint64", 2**64 - 1, "ffffffffffffffff"), ("uint16", 258, "0102"), ("int8", -128, "80"), ("uint8", 255, "ff"),
        ("float16", 65504, "7bff"), ("float32", 1.0, "3f800000"), ("float64", -2.0, "c000000000000000"),
        ("complex64", 1 + 2j, "3f80000040000000"), ("bool", True, "01"),
    ],
)  # fmt: skip
def test_the_layout_of_extremes_in_big_endian_bytes(name: str, value: object, stored: str) -> None:
    assert from_v3(name).with_byteorder(">").cast_fill(value).tobytes().hex() == stored


@pytest.mark.spec("V3-DTYPE-02")
@pytest.mark.parametrize(("name", "nbytes"), [("r8", 1), ("r16", 2), ("r24", 3), ("r128", 16)])
def test_raw_types_count_bits_and_hold_bytes(name: str, nbytes: int) -> None:
    data_type = from_v3(name)
    assert data_type == RawBytes(length=nbytes)
    assert data_type.to_json() == name
    assert np.zeros(4, data_type.dtype).nbytes == 4 * nbytes


@pytest.mark.spec("V3-DTYPE-02")
@pytest.mark.parametrize(
    "name", ["r12", "r0", "r", "r-8", "r8 ", " r8", "r08", "r8.0", "R8", "r99999999999999", "r17179869184"]
)
def test_a_raw_type_needs_a_positive_multiple_of_8(name: str) -> None:
    with pytest.raises(DataTypeValidationError):
        from_v3(name)


@pytest.mark.spec("V3-DTYPE-03")
@pytest.mark.parametrize(
    ("typestr", "v3"), [("<f8", "float64"), ("|u1", "uint8"), (">i2", "int16"), ("f8", "float64"), ("|b1", "bool")]
)
def test_a_v2_typestr_is_refused_with_the_v3_name_as_a_hint(typestr: str, v3: str) -> None:
    with pytest.raises(DataTypeValidationError, match=f"'{v3}'.*byte order.*bytes codec"):
        from_v3(typestr)


@pytest.mark.parametrize("value", [None, 3, [], ["int8"], {}, {"name": 3}, {"configuration": {}}, [["a", "int8"]]])
def test_other_json_is_no_v3_data_type(value: object) -> None:
    with pytest.raises(DataTypeValidationError, match="invalid data_type"):
        from_v3(value)  # type: ignore[arg-type]


def test_everything_that_is_wrong_with_an_object_is_told_at_once() -> None:
    with pytest.raises(DataTypeValidationError) as caught:
        from_v3({"name": 3, "configuration": [], "must_understand": "yes", "extra": 1})
    assert [problem.loc for problem in caught.value.problems] == [
        ("extra",), ("name",), ("configuration",), ("must_understand",)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["bool", "float32", "int4", "string", "complex_bfloat16", "r16"])
def test_a_type_without_parameters_takes_none(name: str) -> None:
    with pytest.raises(DataTypeValidationError):
        from_v3(named(name, unit="s"))


@pytest.mark.spec("V3-META-15")
def test_an_unknown_name_says_how_to_register_it_and_opens_once_registered() -> None:
    document: JSON = {"name": "urn:example:datetime", "configuration": {"unit": "ns"}}
    with pytest.raises(DataTypeValidationError, match=r"unknown data type.*register"):
        from_v3(document)

    class Moment(DateTime64):
        name = "urn:example:datetime"

        @classmethod  # our data types take zarr-python's arguments too, a user's need not
        def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:  # type: ignore[override]  # noqa: ARG003
            return cls(unit=str((configuration or {})["unit"]))

    registry.register("data_type", Moment.name, Moment)
    try:
        assert from_v3(document) == Moment(unit="ns")
        assert from_v3(document) != DateTime64(unit="ns")
    finally:
        registry._TABLE["data_type"].pop(Moment.name)


@pytest.mark.spec("V3-DTYPE-04")
@pytest.mark.parametrize("missing", ["parse_fill", "dump_fill", "from_json", "to_json", "default_fill", "cast_fill"])
def test_a_data_type_cannot_do_without_the_json_of_its_fill_values(missing: str) -> None:
    def anything(*_: Any) -> Any:
        raise NotImplementedError

    members = {name: anything for name in DataType.__abstractmethods__ if name != missing}
    incomplete = type("Incomplete", (DataType,), members)
    with pytest.raises(TypeError, match=missing):
        incomplete()
    assert isinstance(type("Complete", (DataType,), {**members, missing: anything})(), DataType)


# -- parametrised types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "expected", "dtype"),
    [
        (named("fixed_length_utf32", length_bytes=48), FixedLengthUTF32(length=12), "U12"),
        (named("null_terminated_bytes", length_bytes=10), NullTerminatedBytes(length=10), "S10"),
        (named("raw_bytes", length_bytes=10), RawBytes(length=10), "V10"),
        (named("numpy.datetime64", unit="us", scale_factor=10), DateTime64(unit="us", scale_factor=10), "M8[10us]"),
        (named("numpy.timedelta64", unit="generic", scale_factor=1), TimeDelta64(), "m8"),
        (named("numpy.timedelta64", unit="generic", scale_factor=2), TimeDelta64(scale_factor=2), "m8[2generic]"),
    ],
)
def test_parametrised_types_are_read_and_written_back(document: JSON, expected: DataType, dtype: str) -> None:
    data_type = from_v3(document)
    assert data_type == expected
    assert data_type.dtype == np.dtype(dtype)
    assert data_type.to_json() == document
    assert eval(repr(data_type)) == data_type


@pytest.mark.parametrize(
    "document",
    [
        "fixed_length_utf32",
        named("fixed_length_utf32", length_bytes=47),
        named("fixed_length_utf32", length_bytes=0),
        named("fixed_length_utf32", length_bytes=-4),
        named("fixed_length_utf32", length_bytes="48"),
        named("fixed_length_utf32", length_bytes=True),
        named("fixed_length_utf32", length_bytes=48, x=1),
        named("null_terminated_bytes", length_bytes=2**31),
        named("raw_bytes"),
        named("numpy.datetime64", unit="s"),
        named("numpy.datetime64", scale_factor=1),
        named("numpy.datetime64", unit="fortnight", scale_factor=1),
        named("numpy.datetime64", unit="s", scale_factor=0),
        named("numpy.datetime64", unit="s", scale_factor=2**31),
        named("numpy.datetime64", unit="s", scale_factor=1.0),
        named("numpy.datetime64", unit=["s"], scale_factor=True),
    ],
)
def test_wrong_parameters_are_refused(document: JSON) -> None:
    with pytest.raises(DataTypeValidationError, match="configuration"):
        from_v3(document)


@pytest.mark.parametrize("unit", ["μs", "µs"])
def test_both_letters_mu_are_read_as_u(unit: str) -> None:
    assert from_v3(named("numpy.datetime64", unit=unit, scale_factor=1)) == DateTime64(unit="us")


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"])
def test_every_unit_of_numpy_is_known(unit: str) -> None:
    data_type = from_v3(named("numpy.timedelta64", unit=unit, scale_factor=1))
    assert np.datetime_data(data_type.dtype) == (unit, 1)


@pytest.mark.parametrize(
    ("alias", "written"),
    [("complex_float32", "complex64"), ("complex_float64", "complex128"), ("variable_length_bytes", "bytes")],
)
def test_aliases_are_read_and_not_written(alias: str, written: str) -> None:
    assert from_v3(alias) == from_v3(written)
    assert from_v3(alias).to_json() == written


def test_variable_length_types_have_no_item_size() -> None:
    assert from_v3("string") == VariableLengthUTF8()
    assert from_v3("bytes") == VariableLengthBytes()
    assert from_v3("string").itemsize is None
    assert from_v3("string").dtype == np.dtypes.StringDType()
    assert from_v3("bytes").dtype == np.dtype(object)


def test_raw_bytes_is_written_as_it_was_read_and_equals_the_core_spelling() -> None:
    read = from_v3(named("raw_bytes", length_bytes=2))
    assert read == from_v3("r16")
    assert hash(read) == hash(from_v3("r16"))
    assert read.to_json() == named("raw_bytes", length_bytes=2)


# -- struct ------------------------------------------------------------------------------------------------------


def test_a_struct_is_packed_in_the_order_of_its_fields() -> None:
    fields = [{"name": n, "data_type": t} for n, t in (("id", "int32"), ("flags", "uint8"), ("value", "float64"))]
    data_type = from_v3(named("struct", fields=fields))
    assert data_type.itemsize == 13
    assert [data_type.dtype.fields[name][1] for name in ("id", "flags", "value")] == [0, 4, 5]  # type: ignore[index]
    assert data_type.to_json() == named("struct", fields=fields)


def test_structs_nest_and_hold_parametrised_types() -> None:
    moment = named("numpy.datetime64", unit="s", scale_factor=1)
    document = named("struct", fields=[{"name": "p", "data_type": XY}, {"name": "t", "data_type": moment}])
    data_type = from_v3(document)
    assert data_type.itemsize == 13
    assert data_type.to_json() == document


def test_the_legacy_name_structured_reads_pairs_and_is_written_as_struct() -> None:
    legacy = named("structured", fields=[["x", "float32"], ["y", "int8"]])
    assert from_v3(legacy) == from_v3(XY)
    assert from_v3(legacy).to_json() == XY
    assert from_v3({**XY, "name": "structured"}) == from_v3(XY)
    with pytest.raises(DataTypeValidationError):
        from_v3(named("struct", fields=[["x", "float32"]]))


@pytest.mark.parametrize(
    "fields",
    [
        [], None, "x", [{"name": "x"}], [{"data_type": "int8"}], [{"name": "", "data_type": "int8"}],
        [{"name": 1, "data_type": "int8"}], [{"name": "x", "data_type": "string"}], [{"name": "x", "data_type": "<i4"}],
        [{"name": "x", "data_type": "int8"}, {"name": "x", "data_type": "int8"}], ["x"],
        [{"name": "x", "data_type": "int8", "shape": [2]}],
    ],
)  # fmt: skip
def test_a_broken_struct_is_refused(fields: JSON) -> None:
    with pytest.raises(DataTypeValidationError):
        from_v3(named("struct", fields=fields))


def test_a_problem_in_a_nested_field_tells_its_place() -> None:
    inner = named("struct", fields=[{"name": "a", "data_type": named("numpy.datetime64", unit="s")}])
    with pytest.raises(DataTypeValidationError) as caught:
        from_v3(named("struct", fields=[{"name": "x", "data_type": "int8"}, {"name": "y", "data_type": inner}]))
    place = ("configuration", "fields", 1, "data_type", "configuration", "fields", 0, "data_type", "configuration")
    assert [problem.loc for problem in caught.value.problems] == [(*place, "scale_factor")]


@pytest.mark.parametrize("depth", [70, 300, 5000])
def test_a_hostile_depth_of_structs_is_an_error_and_no_crash(depth: int) -> None:
    document: JSON = "int8"
    for _ in range(depth):
        document = named("struct", fields=[{"name": "a", "data_type": document}])
    with pytest.raises(DataTypeValidationError):
        from_v3(document)


def test_a_struct_beyond_two_gibibytes_is_refused() -> None:
    half = named("raw_bytes", length_bytes=2**31 - 1)
    with pytest.raises(DataTypeValidationError, match="2 GiB"):
        from_v3(named("struct", fields=[{"name": "a", "data_type": half}, {"name": "b", "data_type": half}]))


# -- from v2 to v3 -------------------------------------------------------------------------------------------------


@pytest.mark.spec("UPG-03")
@pytest.mark.parametrize(
    ("v2", "v3"),
    [
        ("<i4", "int32"), (">f8", "float64"), ("|b1", "bool"), ("|u1", "uint8"), ("<c16", "complex128"),
        ("|V10", "r80"),
        ("<M8[ns]", named("numpy.datetime64", unit="ns", scale_factor=1)),
        ("<U12", named("fixed_length_utf32", length_bytes=48)),
        ("|S10", named("null_terminated_bytes", length_bytes=10)),
        ([["x", "<f4"], ["y", "|i1"]], XY),
    ],
)  # fmt: skip
def test_a_v2_dtype_becomes_a_v3_data_type(v2: JSON, v3: JSON) -> None:
    assert from_v2(v2, None).to_json() == v3
    assert from_v3(v3) == from_v2(v2, None).with_byteorder("=")


@pytest.mark.spec("UPG-03")
def test_v2_text_becomes_string() -> None:
    assert from_v2("|O", [{"id": "vlen-utf8"}]).to_json() == "string"


@pytest.mark.spec("UPG-04")
@pytest.mark.parametrize(
    ("v2", "message"),
    [
        ([["a", "<i4"], ["b", ">i4"]], "different byte orders"),
        ([["a", "<i4"], ["n", [["b", ">i4"]]]], "different byte orders"),
    ],
)
def test_v3_refuses_records_that_it_cannot_express(v2: JSON, message: str) -> None:
    data_type = from_v2(v2, None)
    with pytest.raises(DataTypeValidationError, match=message):
        data_type.to_json()


@pytest.mark.spec("UPG-04")
@pytest.mark.parametrize("v2", [[["a", "<i4", [2]]], [["n", [["a", "<i4", [2]]]]]])
def test_migration_does_not_write_a_proposed_type_for_subarrays(v2: JSON) -> None:
    array = tessarr.create_array({}, shape=2, dtype=from_v2(v2, None), zarr_format=2)
    with pytest.raises(MetadataValidationError, match="fixed_size_list"):
        array_to_v3(array._metadata)


LISTS: dict[str, Any] = {
    "name": "struct",
    "configuration": {
        "fields": [
            {
                "name": "a",
                "data_type": {
                    "name": "fixed_size_list",
                    "configuration": {
                        "base_data_type": {
                            "name": "fixed_size_list",
                            "configuration": {"base_data_type": "float32", "list_size": 3},
                        },
                        "list_size": 2,
                    },
                },
            },
            {"name": "b", "data_type": "uint8"},
        ]
    },
}


@pytest.mark.spec("REG-24")
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_fields_may_be_lists_of_fixed_size(engine: str) -> None:
    dtype = np.dtype([("a", "<f4", (2, 3)), ("b", "u1")])
    assert from_v3(LISTS).dtype == dtype
    assert from_numpy(dtype).to_json() == LISTS
    values = np.zeros(5, dtype)
    values["a"] = np.arange(30).reshape(5, 2, 3)
    fill = np.array(([[1, float("nan"), 3]] * 2, 5), dtype)[()]
    with tessarr.config.set({"engine": engine}):
        store: dict[str, bytes] = {}
        tessarr.create_array(store, data=values, chunks=2, fill_value=fill)
        assert json.loads(store["zarr.json"])["fill_value"] == {"a": [[1.0, "NaN", 3.0]] * 2, "b": 5}
        z = tessarr.open_array(store)
        np.testing.assert_array_equal(z[:], values)
        np.testing.assert_array_equal(z["a"], values["a"])
        z.resize((7,))
        assert z[6].tobytes() == fill.tobytes()


@pytest.mark.spec("REG-24")
@pytest.mark.parametrize(
    "configuration",
    [
        None,
        {},
        {"base_data_type": "int8"},
        {"base_data_type": "int8", "list_size": 0},
        {"base_data_type": "int8", "list_size": True},
        {"base_data_type": "int8", "list_size": 2.0},
        {"base_data_type": "int8", "list_size": 1, "more": 1},
        {"base_data_type": "string", "list_size": 1},
        {"base_data_type": "int8", "list_size": 2**40},
    ],
)
def test_lists_that_lie_are_errors(configuration: JSON) -> None:
    inner: Any = {"name": "fixed_size_list", "configuration": configuration}
    struct: Any = {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": inner}]}}
    for data_type in (inner, struct):
        with pytest.raises(DataTypeValidationError):
            from_v3(data_type)
    for _ in range(40):
        inner = {"name": "fixed_size_list", "configuration": {"base_data_type": inner, "list_size": 1}}
    with pytest.raises(DataTypeValidationError, match="at most 16 lists"):
        from_v3({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": inner}]}})


@pytest.mark.parametrize("fill", [1.5, [1, 2], [[1, 2, 3]], [[1, 2], [3, 4]], [[1, 2, "x"], [1, 2, 3]], None])
def test_a_fill_value_of_a_list_has_its_shape(fill: JSON) -> None:
    with pytest.raises(MetadataValidationError):
        from_v3(LISTS).parse_fill({"a": fill, "b": 1}, 3)


@pytest.mark.spec("UPG-04", "ZEP1-06")
def test_v3_has_no_python_objects() -> None:
    with pytest.raises(DataTypeValidationError, match="v3 cannot express Python objects"):
        JSONObjects().to_json()


def test_records_of_bytes_only_have_no_order_to_mix() -> None:
    single = from_v2([["a", "|u1"], ["b", "<i4"], ["c", "|S3"]], None)
    assert isinstance(single, Struct)
    assert single.orders == {"<"}
    scalar: Scalar = single.default_fill()
    assert scalar.tobytes() == bytes(8)
