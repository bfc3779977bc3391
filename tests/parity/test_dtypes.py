"""Data types and fill values, side by side with zarr-python."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

from tessarr.dtype import parse_dtype
from tessarr.dtypes.parse import from_v2, from_v3

zdtype = pytest.importorskip("zarr.dtype", reason="zarr-python is the other side of the comparison")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "<M8[ns]", "<M8[25us]", "<m8[s]", "<U7", "|S5",
]  # fmt: skip


def theirs(dtype: str) -> Any:
    return zdtype.parse_dtype(np.dtype(dtype), zarr_format=3)


def scalars(dtype: str) -> list[Any]:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return [True, False]
    if kind in "iu":
        return [0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min]
    if kind == "f":
        return [0.0, -0.0, 0.1, 1.5, np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal]
    if kind == "c":
        return [0j, 1 + 2j, complex(0.1, np.inf), complex(np.nan, -0.0)]
    if kind in "mM":
        return [0, -5, 2**40]
    return ["", "ab"] if kind == "U" else [b"", b"ab"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_v3_name_is_zarr_pythons(dtype: str) -> None:
    ours = parse_dtype(np.dtype(dtype))
    assert ours.to_json() == theirs(dtype).to_json(zarr_format=3)
    assert from_v3(theirs(dtype).to_json(zarr_format=3)) == ours


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_v2_name_is_zarr_pythons(dtype: str, order: str) -> None:
    native = np.dtype(dtype).newbyteorder(order)  # type: ignore[arg-type]
    assert parse_dtype(native).to_v2() == zdtype.parse_dtype(native, zarr_format=2).to_json(zarr_format=2)["name"]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_fill_values_are_written_as_zarr_python_writes_them_and_read_alike(dtype: str, version: Any) -> None:
    ours = parse_dtype(np.dtype(dtype))
    other = theirs(dtype)
    for value in scalars(dtype):
        fill = ours.cast_fill(value)
        written = other.to_json_scalar(fill[()], zarr_format=version)
        if dtype == "|S5" and version == 2:  # they leave out the padding that the specification asks for
            if value:
                assert ours.parse_fill(written, 2).tobytes() == fill.tobytes()
        else:
            assert json.dumps(ours.dump_fill(fill, version)) == json.dumps(written)
        read = other.from_json_scalar(ours.dump_fill(fill, version), zarr_format=version)
        assert np.asarray(read, dtype=ours.dtype).tobytes() == fill.tobytes()


def test_nat_is_read_alike_though_written_as_a_word() -> None:
    ours, other = parse_dtype(np.dtype("<M8[s]")), theirs("<M8[s]")
    assert np.isnat(other.from_json_scalar(ours.dump_fill(ours.default_fill(), 3), zarr_format=3))
    assert np.isnat(ours.parse_fill(other.to_json_scalar(np.datetime64("NaT"), zarr_format=3), 3))


def test_the_hexadecimal_nan_is_read_alike() -> None:
    ours, other = parse_dtype("float32"), theirs("float32")
    text = ours.dump_fill(ours.cast_fill("0x7fc00001"), 3)
    assert np.asarray(other.from_json_scalar(text, zarr_format=3)).view("u4") == 0x7FC00001


def test_records_of_zarr_python_are_read() -> None:
    native = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", [("d", "u1")])])
    other = zdtype.Structured.from_native_dtype(native)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        document = other.to_json(zarr_format=3)
        fill = other.to_json_scalar(np.array((1, 2.5, (3,)), dtype=native)[()], zarr_format=3)
    ours = from_v3(document)
    assert ours == parse_dtype(native)
    assert ours.parse_fill(fill, 3).item() == (1, 2.5, (3,))
    v2 = other.to_json(zarr_format=2)["name"]
    assert from_v2([list(item) for item in v2], None) == parse_dtype(native)
    assert parse_dtype(native).dump_fill(ours.cast_fill((1, 2.5, (3,))), 2) == fill


def test_unregistered_types_of_zarr_python_are_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raw, length = zdtype.RawBytes(length=3), zdtype.VariableLengthBytes()
        assert from_v3(raw.to_json(zarr_format=3)).to_json() == raw.to_json(zarr_format=3)
        assert from_v3(length.to_json(zarr_format=3)) == parse_dtype(bytes)
        written = raw.to_json_scalar(np.void(b"abc"), zarr_format=3)
        assert from_v3(raw.to_json(zarr_format=3)).parse_fill(written, 3).tobytes() == b"abc"
        assert parse_dtype(bytes).parse_fill(length.to_json_scalar(b"abc", zarr_format=3), 3).item() == b"abc"


def test_text_is_spelled_alike() -> None:
    other = zdtype.VariableLengthUTF8()
    assert parse_dtype(str).to_json() == other.to_json(zarr_format=3)
    assert other.to_json(zarr_format=2) == {"name": "|O", "object_codec_id": "vlen-utf8"}
    assert parse_dtype(other.to_json(zarr_format=2), zarr_format=2) == parse_dtype(str)


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("Bool", {}), ("Int8", {}), ("Int32", {"endianness": "big"}), ("Float64", {}), ("Complex64", {}),
        ("FixedLengthUTF32", {"length": 5}), ("NullTerminatedBytes", {"length": 5}), ("RawBytes", {"length": 5}),
        ("DateTime64", {"unit": "ns", "scale_factor": 1}), ("TimeDelta64", {}), ("VariableLengthUTF8", {}),
        ("VariableLengthBytes", {}),
    ],
)  # fmt: skip
def test_classes_take_zarr_pythons_keywords_and_have_its_methods(name: str, keywords: dict[str, Any]) -> None:
    import tessarr.dtype

    other = getattr(zdtype, name)(**keywords)
    ours = getattr(tessarr.dtype, name)(**keywords)
    if name != "VariableLengthUTF8" or other.to_native_dtype().kind == "T":
        assert ours.to_native_dtype() == other.to_native_dtype()
    for method in ("to_native_dtype", "from_native_dtype", "default_scalar", "cast_scalar", "to_json_scalar"):
        assert callable(getattr(ours, method))
    assert getattr(ours, "length", None) == getattr(other, "length", None)
