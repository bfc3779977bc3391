"""The vlen codecs give the same bytes, elements and errors with the Rust module and without it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tessarr
from tessarr import _native
from tessarr.codecs import VLenBytesCodec, VLenUTF8Codec
from tessarr.codecs.array_to_bytes import vlen_native
from tests.codecs.samples import data, spec_of

UTF8, BYTES = VLenUTF8Codec(), VLenBytesCodec()

texts = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("\0aé日😀")), max_size=9)
elements = st.one_of(texts, texts, texts, st.builds(lambda t, n: t * n, texts, st.sampled_from([1, 5, 40])))


@pytest.fixture(autouse=True)
def built() -> None:
    vlen_native.native.cache_clear()
    assert vlen_native.native() is _native


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except tessarr.errors.TessarrError as error:
        return type(error), str(error)


def both(function: Callable[[], Any]) -> tuple[Any, Any]:
    """What `function` gives, or how it fails, with the Rust module and without it."""
    with mock.patch.object(vlen_native, "native", return_value=None):
        by_numcodecs = outcome(function)
    return outcome(function), by_numcodecs


def of_texts(items: list[str]) -> npt.NDArray[Any]:
    return np.array(items, dtype=np.dtypes.StringDType())


def of_objects(items: list[Any]) -> npt.NDArray[np.object_]:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def stored(items: list[bytes]) -> bytes:
    return struct.pack("<I", len(items)) + b"".join(struct.pack("<I", len(item)) + item for item in items)


@given(st.lists(elements, max_size=20))
@example(["", "\0", "a\0", "\0a", "é\0\0", "😀" * 3, "x" * 25, ""])
@example(["short"] * 8 + ["é" * 12] * 8 + ["long" * 20] * 5)
def test_text_is_encoded_and_decoded_alike(items: list[str]) -> None:
    spec = spec_of("string", (len(items),))
    expected = stored([item.encode() for item in items])
    for chunk in (of_texts(items), of_objects(items)):
        assert both(partial(lambda chunk: data(UTF8.encode(chunk, spec)), chunk)) == (expected, expected)
    assert both(lambda: UTF8.decode(expected, spec).tolist()) == (items, items)
    assert both(lambda: UTF8.decode(bytearray(expected), spec).dtype) == (spec.dtype, spec.dtype)

    def into_objects() -> list[Any]:
        out = of_objects([b"something else"] * len(items))
        UTF8.decode_into(memoryview(expected), spec, out)
        return list(out)

    assert both(into_objects) == (items, items)


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_bytes_are_encoded_and_decoded_alike(items: list[bytes]) -> None:
    spec = spec_of("bytes", (len(items),))
    expected = stored(items)
    assert both(lambda: data(BYTES.encode(of_objects(items), spec))) == (expected, expected)
    assert both(lambda: BYTES.decode(expected, spec).tolist()) == (items, items)


odd: st.SearchStrategy[Any] = st.sampled_from(
    ["\ud800", "a\udfff", None, 0, 1, 1.5, b"x", np.str_("x"), [], bytearray(b"x")]
)


@given(st.lists(st.one_of(texts, texts, odd), max_size=12))
def test_objects_that_are_no_text_are_refused_alike(items: list[Any]) -> None:
    for codec, kind in ((UTF8, "string"), (BYTES, "bytes")):
        spec = spec_of(kind, (len(items),))
        rust, by_numcodecs = both(partial(lambda codec, spec: data(codec.encode(of_objects(items), spec)), codec, spec))
        assert rust == by_numcodecs


@pytest.mark.parametrize("missing", [None, np.nan, "unknown"])
def test_missing_texts_of_numpy_are_encoded_or_refused_alike(missing: Any) -> None:
    items = np.array(["a", missing, ""], np.dtypes.StringDType(na_object=missing))
    rust, by_numcodecs = both(lambda: data(UTF8.encode(items, spec_of("string", (3,)))))
    assert rust == by_numcodecs


@given(st.lists(st.tuples(elements, elements), max_size=12), st.booleans())
def test_elements_are_replaced_in_memory_that_holds_others(pairs: list[tuple[str, str]], as_objects: bool) -> None:
    before, after = [old for old, _ in pairs], [new for _, new in pairs]
    out = of_objects(before) if as_objects else of_texts(before)
    kept = out[:3].tolist()
    other = out.copy()
    assert _native.vlen_decode(stored([item.encode() for item in after]), out, True)
    assert (out.tolist(), other.tolist(), kept) == (after, before, before[:3])


@st.composite
def damaged(draw: st.DrawFn) -> tuple[int, bytes]:
    """Number of elements that are asked for, and a chunk that is cut, longer, or changed somewhere."""
    items = draw(st.lists(st.one_of(elements.map(str.encode), st.binary(max_size=9)), max_size=12))
    chunk = bytearray(stored(items))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(chunk)))
        kind = draw(st.sampled_from(["cut", "more", "change", "length"]))
        if kind == "cut":
            del chunk[at:]
        elif kind == "more":
            chunk[at:at] = draw(st.binary(max_size=5))
        elif kind == "change":
            chunk[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
        else:
            length = draw(st.sampled_from([0, 1, 3, 4, 127, 128, 255, 2**31 - 1, 2**31, 2**32 - 1]))
            chunk[at : at + 4] = struct.pack("<I", length)
    return len(items), bytes(chunk)


@given(damaged())
@example((1, struct.pack("<II3s", 1, 3, b"\xed\xa0\x80")))
@example((2, struct.pack("<II1sI1s", 2, 1, b"\xc3", 1, b"\xa9")))
def test_damaged_chunks_are_refused_alike(case: tuple[int, bytes]) -> None:
    count, chunk = case
    for codec, kind in ((UTF8, "string"), (BYTES, "bytes")):
        spec = spec_of(kind, (count,))
        rust, by_numcodecs = both(partial(lambda codec, spec: codec.decode(chunk, spec).tolist(), codec, spec))
        assert rust == by_numcodecs


def test_chunks_of_another_number_of_elements_are_refused() -> None:
    for items in ([], [b"ab"], [b"ab", b"", b""]):
        assert not _native.vlen_decode(stored(items), of_texts(["", ""]), True)
        assert not _native.vlen_decode(stored(items), of_objects([None, None]), False)
    assert not _native.vlen_decode(b"", of_texts([]), True)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, "i8"),
        np.array(["a", "b"]),
        of_texts(["a", "b"]).reshape(2, 1),
        of_objects(["a", "b"]).reshape(2, 1),
        of_objects(["a", "b"]).view(type("Derived", (np.ndarray,), {})),
    ],
)
def test_arrays_of_other_kinds_are_left_alone(array: npt.NDArray[Any]) -> None:
    for as_text in (True, False):
        assert not _native.vlen_decode(stored([b"ab", b""]), array, as_text)
        assert _native.vlen_encode(array, as_text) is None
    assert not _native.vlen_decode(stored([b"ab", b""]), ["a", "b"], True)  # type: ignore[arg-type]


def test_read_only_arrays_are_not_written() -> None:
    for array in (read_only(of_texts(["a", "b"])), read_only(of_objects(["a", "b"]))):
        assert not _native.vlen_decode(stored([b"ab", b""]), array, True)
        assert array.tolist() == ["a", "b"]
        assert _native.vlen_encode(array, True) == stored([b"a", b"b"])


def test_every_second_element_is_reached_by_its_stride() -> None:
    for out in (of_texts(["a", "b", "c"]), of_objects(["a", "b", "c"])):
        assert _native.vlen_decode(stored([b"x" * 300, b"y"]), out[::-2], True)
        assert out.tolist() == ["y", "b", "x" * 300]
        assert _native.vlen_encode(out[::2], True) == stored([b"y", b"x" * 300])


def test_a_replaced_object_may_change_the_array_as_it_is_freed() -> None:
    out = of_objects([None, None, None])

    class Freed:
        def __del__(self) -> None:
            out[:] = b"from __del__"

    out[0] = Freed()
    assert _native.vlen_decode(stored([b"a", b"b", b"c"]), out, False)
    assert out.tolist() == [b"from __del__", b"b", b"c"]


def test_memory_that_is_not_contiguous_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        _native.vlen_decode(memoryview(stored([b"ab"]))[::2], of_texts(["a"]), True)


def test_threads_that_share_an_array_of_texts_write_whole_elements() -> None:
    """NumPy's lock of the array is held; without it its memory would be torn."""
    out = of_texts([""] * 100)
    chunks = [stored([str(number).encode() * width] * 100) for number, width in ((1, 1), (2, 40), (3, 400))]

    def write(chunk: bytes) -> None:
        for _ in range(50):
            assert _native.vlen_decode(chunk, out, True)
            assert _native.vlen_encode(out, True) != b""

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(write, chunks))
    assert set(out.tolist()) <= {"1", "2" * 40, "3" * 400}


def test_a_module_of_an_older_tessarr_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    vlen_native.native.cache_clear()
    monkeypatch.delattr(_native, "vlen_decode")
    assert vlen_native.native() is None
    vlen_native.native.cache_clear()


@pytest.mark.parametrize("layout", [{"chunks": (5,)}, {"chunks": (2,), "shards": (10,)}, {"chunks": (20,)}])
@pytest.mark.parametrize("compressors", [None, "auto"])
def test_arrays_hold_the_same_with_it_and_without(layout: Any, compressors: Any) -> None:
    items = ["", "a", "é\0", "日本語", "x" * 100, "😀"] * 3
    values = {"string": of_texts(items), "bytes": of_objects([item.encode() for item in items])}
    for dtype, value in values.items():

        def written(dtype: str = dtype, value: npt.NDArray[Any] = value) -> tuple[dict[str, bytes], Any, Any]:
            store: dict[str, bytes] = {}
            array = tessarr.create_array(store, shape=18, dtype=dtype, compressors=compressors, **layout)
            array[:] = value
            array[3:7] = value[:4]
            return {key: bytes(item) for key, item in store.items()}, array[:].tolist(), array[1:15:3].tolist()

        rust, by_numcodecs = both(written)
        assert rust == by_numcodecs


@pytest.mark.parametrize("length", [1, 600, 20_000])
def test_texts_are_written_from_the_memory_of_the_caller(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[npt.NDArray[Any]] = []
    encode = vlen_native.encode

    def recorded(values: npt.NDArray[Any], *, as_text: bool) -> bytes | None:
        encoded.append(values)
        return encode(values, as_text=as_text)

    monkeypatch.setattr(vlen_native, "encode", recorded)
    values = of_texts(["xé"[number % 2] * length for number in range(40)])
    array = tessarr.create_array({}, shape=(40,), chunks=(10,), dtype="string")
    array[:] = values
    assert [np.shares_memory(values, chunk) for chunk in encoded] == [True] * 4
    assert np.array_equal(array[:], values)
    values[:] = "changed"
    assert array[0] == "x" * length
