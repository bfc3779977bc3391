from __future__ import annotations

import struct
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.codecs import VLenBytesCodec, VLenUTF8Codec
from tessarr.codecs.array_to_bytes import vlen_native
from tessarr.codecs.base import ArrayToBytes
from tessarr.errors import CodecError, MetadataValidationError
from tests.codecs.samples import data, spec_of

TEXTS = ["", "a", "žluťoučký kůň", "日本語", "a\0b", "\U0001f600" * 50]


@pytest.fixture(autouse=True, params=["by numcodecs", "as built"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the Rust module, and with it where it was built (see tests/native/test_vlen.py)."""
    if request.param == "by numcodecs":
        monkeypatch.setattr(vlen_native, "native", lambda: None)


def text_array(texts: list[str]) -> np.ndarray:
    return np.array(texts, dtype=np.dtypes.StringDType())


def test_neither_has_a_configuration() -> None:
    for codec in (VLenUTF8Codec, VLenBytesCodec):
        assert codec.from_json({}) == codec()
        with pytest.raises(MetadataValidationError):
            codec.from_json({"level": 1})


def test_the_layout_is_count_then_length_and_bytes() -> None:
    encoded = data(VLenUTF8Codec().encode(text_array(["ab", "é"]), spec_of("string", (2,))))
    assert encoded == struct.pack("<II2sI2s", 2, 2, b"ab", 2, "é".encode())


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType()])
@pytest.mark.parametrize("order", ["C", "F"])
def test_text_of_any_memory_layout_comes_back(dtype: npt.DTypeLike, order: Literal["C", "F"]) -> None:
    spec = spec_of("string", (2, 3))
    chunk = np.array(TEXTS, dtype=dtype).reshape(2, 3).copy(order=order)
    decoded = VLenUTF8Codec().decode(VLenUTF8Codec().encode(chunk, spec), spec)
    assert decoded.dtype == spec.dtype
    assert decoded.tolist() == [TEXTS[:3], TEXTS[3:]]


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=9))
def test_any_bytes_come_back(values: list[Any]) -> None:
    spec = spec_of("bytes", (len(values),))
    chunk = np.empty(len(values), object)
    chunk[:] = values
    assert VLenBytesCodec().decode(VLenBytesCodec().encode(chunk, spec), spec).tolist() == values


@given(st.lists(st.text(max_size=20), min_size=1, max_size=9))
def test_any_text_comes_back(values: list[Any]) -> None:
    values = [value.encode("utf-8", "replace").decode() for value in values]
    spec = spec_of("string", (len(values),))
    assert VLenUTF8Codec().decode(VLenUTF8Codec().encode(text_array(values), spec), spec).tolist() == values


@pytest.mark.spec("V3-CHAIN-03")
def test_other_data_types_are_refused_when_the_chain_is_bound() -> None:
    for codec, data_type in ((VLenUTF8Codec(), "int32"), (VLenUTF8Codec(), "bytes"), (VLenBytesCodec(), "string")):
        with pytest.raises(CodecError, match="cannot store"):
            codec.encoded_size(spec_of(data_type, (1,)))


@pytest.mark.parametrize(("codec", "data_type"), [(VLenUTF8Codec(), "string"), (VLenBytesCodec(), "bytes")])
class TestHostileBytes:
    def encoded(self, codec: ArrayToBytes, data_type: str) -> bytes:
        values = ["ab", "", "xyz"]
        chunk = text_array(values) if data_type == "string" else np.array([v.encode() for v in values], object)
        return data(codec.encode(chunk, spec_of(data_type, (3,))))

    def test_every_prefix_and_extension_is_an_error(self, codec: ArrayToBytes, data_type: str) -> None:
        encoded = self.encoded(codec, data_type)
        for wrong in [encoded[:cut] for cut in range(len(encoded))] + [encoded + b"\0"]:
            with pytest.raises(CodecError):
                codec.decode(wrong, spec_of(data_type, (3,)))

    @pytest.mark.parametrize("count", [0, 2, 4, 2**31, 2**32 - 1])
    def test_another_count_is_refused_before_memory_is_taken(
        self, codec: ArrayToBytes, data_type: str, count: int
    ) -> None:
        encoded = struct.pack("<I", count) + self.encoded(codec, data_type)[4:]
        with pytest.raises(CodecError, match="number of elements"):
            codec.decode(encoded, spec_of(data_type, (3,)))

    @pytest.mark.parametrize("length", [1, 3, 100, 2**31, 2**32 - 1])
    def test_a_length_past_the_end_or_short_of_it_is_refused(
        self, codec: ArrayToBytes, data_type: str, length: int
    ) -> None:
        encoded = bytearray(self.encoded(codec, data_type))
        encoded[4:8] = struct.pack("<I", length)
        with pytest.raises(CodecError):
            codec.decode(bytes(encoded), spec_of(data_type, (3,)))


def test_text_that_is_no_utf_8_is_an_error() -> None:
    for body in (b"\xff", b"\xc3", b"\xed\xa0\x80"):
        stored = struct.pack("<II", 1, len(body)) + body
        with pytest.raises(CodecError, match="corrupt"):
            VLenUTF8Codec().decode(stored, spec_of("string", (1,)))


LONG = ["x" * 999, "é" * 500, "日本" * 200, "z" * 300 + "é", "", "é\0" * 70, "a" * 2000 + "\U0001f600"]


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("first", range(len(LONG)))
def test_long_texts_come_back(first: int, alike: bool) -> None:
    texts = [LONG[first]] * 40 if alike else [LONG[(first + number) % len(LONG)] for number in range(40)]
    spec = spec_of("string", (40,))
    encoded = data(VLenUTF8Codec().encode(text_array(texts), spec))
    assert VLenUTF8Codec().decode(encoded, spec).tolist() == texts
    body = len(texts[0].encode())
    if body:  # the middle of one of the texts is not UTF-8
        wrong = bytearray(encoded)
        wrong[8 + body // 2] = 0xFF
        with pytest.raises(CodecError, match="corrupt"):
            VLenUTF8Codec().decode(bytes(wrong), spec)


def test_a_lone_surrogate_cannot_be_stored() -> None:
    chunk = np.array(["\ud800"], object)
    with pytest.raises(CodecError, match="cannot encode"):
        VLenUTF8Codec().encode(chunk, spec_of("string", (1,)))


def test_what_is_no_text_cannot_be_stored() -> None:
    with pytest.raises(CodecError, match="cannot encode"):
        VLenUTF8Codec().encode(np.array([3.5], object), spec_of("string", (1,)))


@pytest.mark.parametrize("count", [0, 1, 2047, 2048, 4099])
def test_chunks_of_any_number_of_elements_come_back(count: int) -> None:
    texts = [f"{number} " * (number % 7) for number in range(count)]
    spec = spec_of("string", (count,))
    encoded = data(VLenUTF8Codec().encode(text_array(texts), spec))
    assert encoded == struct.pack("<I", count) + b"".join(struct.pack("<I", len(t)) + t.encode() for t in texts)
    assert VLenUTF8Codec().decode(encoded, spec).tolist() == texts
    items = np.empty(count, object)
    items[:] = [text.encode() for text in texts]
    spec = spec_of("bytes", (count,))
    assert data(VLenBytesCodec().encode(items, spec)) == encoded
    assert VLenBytesCodec().decode(memoryview(encoded), spec).tolist() == items.tolist()


@pytest.mark.parametrize(
    "out",
    [np.empty((2, 3), np.dtypes.StringDType()), np.empty((3, 2), np.dtypes.StringDType()).T, np.empty((2, 3), object)],
)
def test_text_is_decoded_into_memory_of_any_layout(out: np.ndarray) -> None:
    spec = spec_of("string", (2, 3))
    encoded = VLenUTF8Codec().encode(text_array(TEXTS), spec)
    VLenUTF8Codec().decode_into(encoded, spec, out)
    assert out.tolist() == [TEXTS[:3], TEXTS[3:]]


def test_missing_values_are_stored_as_empty_ones() -> None:
    stored = struct.pack("<III1s", 2, 0, 1, b"a")
    assert data(VLenUTF8Codec().encode(np.array([None, "a"], object), spec_of("string", (2,)))) == stored
    assert data(VLenBytesCodec().encode(np.array([None, b"a"], object), spec_of("bytes", (2,)))) == stored


def test_text_that_numpy_holds_but_has_no_utf_8_is_an_error() -> None:
    # Old versions of NumPy cast any bytes to text.
    try:
        chunk = np.array([b"\xff"] * 300).astype(np.dtypes.StringDType())
    except TypeError:
        return
    with pytest.raises(CodecError, match="cannot encode"):
        VLenUTF8Codec().encode(chunk, spec_of("string", (300,)))


@pytest.mark.parametrize("out", [np.empty((2, 3), object), np.empty((3, 2), object).T])
def test_bytes_are_decoded_into_memory_of_any_layout(out: np.ndarray) -> None:
    spec = spec_of("bytes", (2, 3))
    items = [text.encode() for text in TEXTS]
    encoded = VLenBytesCodec().encode(np.array(items, object), spec)
    VLenBytesCodec().decode_into(encoded, spec, out)
    assert out.tolist() == [items[:3], items[3:]]
