"""Zarr v3: what missing chunks read as, from the document to the bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import MetadataValidationError, ZarrRuntimeWarning
from tests.conformance.documents import LITTLE, Place, array_document, opened, stored_json

FILLS: list[tuple[Any, Any, bytes]] = [
    ("bool", True, b"\1"),
    ("int8", -128, b"\x80"),
    ("int16", -2, b"\xfe\xff"),
    ("int32", 2**31 - 1, b"\xff\xff\xff\x7f"),
    ("int64", -(2**63), b"\0\0\0\0\0\0\0\x80"),
    ("int64", 2**63 - 1, b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
    ("uint8", 255, b"\xff"),
    ("uint16", 256, b"\0\1"),
    ("uint32", 1, b"\1\0\0\0"),
    ("uint64", 2**64 - 1, b"\xff" * 8),
    ("float16", "NaN", b"\0\x7e"),
    ("float32", "NaN", b"\0\0\xc0\x7f"),
    ("float64", "NaN", b"\0\0\0\0\0\0\xf8\x7f"),
    ("float32", "0x7fc00001", b"\1\0\xc0\x7f"),
    ("float32", "0x7f800001", b"\1\0\x80\x7f"),
    ("float64", "0xfff8000000000000", b"\0\0\0\0\0\0\xf8\xff"),
    ("float32", -0.0, b"\0\0\0\x80"),
    ("float32", "-Infinity", b"\0\0\x80\xff"),
    ("float32", 0.1, b"\xcd\xcc\xcc\x3d"),
    ("complex64", [1, "0x7fc00001"], b"\0\0\x80\x3f\1\0\xc0\x7f"),
    ("complex64", ["-Infinity", "NaN"], b"\0\0\x80\xff\0\0\xc0\x7f"),
    ("complex128", [-0.0, 2], b"\0\0\0\0\0\0\0\x80\0\0\0\0\0\0\0\x40"),
    ("r16", [1, 2], b"\1\2"),
    ("r24", [0, 255, 7], b"\0\xff\7"),
]


@pytest.mark.spec("V3-FILL-01")
@pytest.mark.parametrize("fill", [0, 1])
def test_a_boolean_fill_value_of_0_or_1_is_read_with_a_warning_and_refused_when_strict(place: Place, fill: int) -> None:
    document = array_document((3,), (2,), "bool", fill_value=fill, codecs=["bytes"])
    with pytest.warns(ZarrRuntimeWarning, match="true or false"):
        z = place.open(document)
    assert z[...].tolist() == [bool(fill)] * 3
    with tessarr.config.set({"strict": True}), pytest.raises(MetadataValidationError, match="fill_value"):
        tessarr.open(place.store, mode="r")


@pytest.mark.spec("V3-FILL-01")
@pytest.mark.parametrize("fill", [2, -1, 0.0, "false", None])
def test_any_other_fill_value_of_booleans_is_refused(fill: Any) -> None:
    with pytest.raises(MetadataValidationError, match="fill_value"):
        opened(array_document((3,), (2,), "bool", fill_value=fill, codecs=["bytes"]))


@pytest.mark.spec("V3-FILL-03", "V3-FILL-08", "V3-FILL-10", "V3-FILL-12", "V3-FILL-15", "V3-DTYPE-01")
@pytest.mark.parametrize(("data_type", "fill", "bits"), FILLS, ids=lambda value: repr(value)[:24])
def test_a_missing_chunk_reads_as_the_fill_value_bit_for_bit(
    place: Place, data_type: str, fill: Any, bits: bytes
) -> None:
    z = place.open(array_document((3, 2), (2, 2), data_type, fill_value=fill))
    assert np.ascontiguousarray(z[...]).tobytes() == bits * 6
    z[0, 0] = z[0, 1]  # all fill: the chunk stays missing
    assert place.keys() == []
    other = b"\0" if bits == b"\1" else b"\1" * len(bits)
    z[0, 0] = np.frombuffer(other, z.dtype)[0]
    chunk = place.get("c/0/0")
    assert chunk == other + bits * 3


@pytest.mark.spec("V3-FILL-10", "V3-FILL-12", "V3-META-07")
@pytest.mark.parametrize(
    ("bits", "text"), [(0x7FC00001, "0x7fc00001"), (0x7F800001, "0x7f800001"), (0x7FC00000, "NaN"), (0x80000000, -0.0)]
)
def test_fill_bits_given_to_create_are_recorded(bits: int, text: Any) -> None:
    store: dict[str, bytes] = {}
    fill = np.array(bits, "<u4").view("<f4")[()]
    z = tessarr.create_array(store, shape=2, dtype="f4", fill_value=fill)
    assert repr(stored_json(store)["fill_value"]) == repr(text)
    assert z[...].view("<u4").tolist() == [bits, bits]


@pytest.mark.spec("V3-FILL-12")
def test_zeros_are_stored_where_the_fill_value_is_minus_zero(place: Place) -> None:
    z = place.open(array_document((2,), (2,), "float64", fill_value=-0.0))
    z[...] = 0.0
    assert place.get("c/0") == bytes(16)
    z[...] = -0.0
    assert place.keys() == []


@pytest.mark.spec("V3-FILL-15")
def test_missing_chunks_of_text_are_the_fill_value(place: Place) -> None:
    for data_type, fill, value, codec in (
        ("string", "∅", "∅", "vlen-utf8"), ("bytes", "AQI=", b"\1\2", "vlen-bytes"),
    ):  # fmt: skip
        z = place.open(array_document((2,), (1,), data_type, fill_value=fill, codecs=[{"name": codec}]))
        assert z[...].tolist() == [value, value]


@pytest.mark.spec("V3-FILL-09")
def test_hex_digits_do_not_depend_on_the_stored_byte_order(place: Place) -> None:
    big = {"name": "bytes", "configuration": {"endian": "big"}}
    for codec, stored in ((LITTLE, b"\0\0\x80\x3f"), (big, b"\x3f\x80\0\0")):
        z = place.open(array_document((2,), (2,), "float32", fill_value="0x3f800000", codecs=[codec]))
        assert z[...].tolist() == [1.0, 1.0]
        z[...] = [1, 0]
        assert place.get("c/0") == stored + bytes(4)
