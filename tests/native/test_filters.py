"""Filters of the native engine: the bytes, values and errors of the reference engine, whatever the elements.

An array is served by the native engine alone, or by the reference engine alone: `array.engine` says by which.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessarr
from tessarr.engine.native.engine import NativeEngine
from tessarr.engine.reference.engine import ReferenceEngine
from tessarr.errors import CodecError, TessarrError, UnsupportedOperationError
from tessarr.indexing.selection import Outer
from tessarr.stores.memory.store import MemoryStore
from tests.narrow import bytes_of

from .far import FarStore

REFERENCE = ReferenceEngine()
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f4", "f8"]


def dtypes(kinds: list[str]) -> st.SearchStrategy[str]:
    """Type strings in both byte orders."""
    return st.builds(lambda order, kind: np.dtype(order + kind).str, st.sampled_from("<>"), st.sampled_from(kinds))


def numbers(dtype: str) -> st.SearchStrategy[float]:
    """Scales and offsets as users state them."""
    limits = (0, 100) if dtype[1] == "u" else (-100, 100)
    return st.integers(*limits) | st.sampled_from([0.1, 1.0, -2.5, 10.0, 1e3, 1 / 3])


@st.composite
def v2_filters(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """A dtype and filters of numcodecs for it."""
    kind = draw(st.sampled_from(["delta", "fixedscaleoffset", "quantize", "astype", "bitround", "packbits", "two"]))
    if kind == "delta":
        dtype = draw(dtypes(INTEGERS + FLOATS))
        same = draw(dtypes(INTEGERS)) if dtype[1] in "iu" else dtype
        return dtype, [{"id": "delta", "dtype": dtype, "astype": same}]
    if kind == "fixedscaleoffset":
        dtype, astype = draw(dtypes(INTEGERS + FLOATS)), draw(dtypes(INTEGERS + FLOATS))
        scale, offset = draw(numbers(dtype)), draw(numbers(dtype))
        return dtype, [{"id": kind, "scale": scale, "offset": offset, "dtype": dtype, "astype": astype}]
    if kind == "quantize":
        dtype, astype = draw(dtypes(FLOATS)), draw(dtypes(FLOATS))
        return dtype, [{"id": kind, "digits": draw(st.integers(-5, 12)), "dtype": dtype, "astype": astype}]
    if kind == "astype":
        dtype, astype = draw(dtypes([*INTEGERS, "f2", *FLOATS])), draw(dtypes([*INTEGERS, "f2", *FLOATS]))
        return dtype, [{"id": kind, "encode_dtype": astype, "decode_dtype": dtype}]
    if kind == "bitround":
        dtype = draw(st.sampled_from(["<f2", "<f4", "<f8"]))
        return dtype, [{"id": kind, "keepbits": draw(st.integers(0, 10))}]
    if kind == "packbits":
        return "|b1", [{"id": kind}]
    scaled = {"id": "fixedscaleoffset", "scale": 10, "offset": 0.5, "dtype": "<f8", "astype": "<i2"}
    return "<f8", [
        scaled,
        {"id": "delta", "dtype": "<i2"},
        {"id": "shuffle", "elementsize": 2},
        {"id": "jenkins_lookup3"},
    ]


@st.composite
def v3_codecs(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """A data type, array → array codecs for it, and an array → bytes codec."""
    kind = draw(st.sampled_from(["bitround", "cast_value", "scale_offset", "packbits", "numcodecs", "reshape"]))
    endian = {"name": "bytes", "configuration": {"endian": draw(st.sampled_from(["little", "big"]))}}
    names = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
    dtype = draw(st.sampled_from(names))
    if kind == "bitround":
        dtype = draw(st.sampled_from([*names, "float16", "complex64"]))
        return dtype, [{"name": kind, "configuration": {"keepbits": draw(st.integers(1, 30))}}], endian
    if kind == "scale_offset":
        limits = (1, 10) if dtype[0] == "u" else (-10, 10)
        values = st.integers(*limits) if "int" in dtype else st.sampled_from([0.1, 2.5, -3.0, 1e30])
        return dtype, [{"name": kind, "configuration": {"offset": draw(values), "scale": draw(values)}}], endian
    if kind == "cast_value":
        dtype, target = draw(st.sampled_from([*names, "float16"])), draw(st.sampled_from([*names, "float16"]))
        roundings = ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]
        outside = [None, "clamp", "wrap"] if "int" in target else [None, "clamp"]
        options: dict[str, Any] = {"data_type": target, "rounding": draw(st.sampled_from(roundings))}
        options |= {"out_of_range": choice} if (choice := draw(st.sampled_from(outside))) else {}
        if "float" in dtype and draw(st.booleans()):
            options["scalar_map"] = {"encode": [["NaN", 7], [1.5, 9]], "decode": [[7, "NaN"]]}
        return dtype, [{"name": kind, "configuration": options}], endian
    if kind == "packbits":
        dtype = draw(st.sampled_from([*names, "bool"]))
        bits = {} if dtype == "bool" else {"first_bit": draw(st.integers(0, 3)), "last_bit": draw(st.integers(3, 7))}
        options = {"padding_encoding": draw(st.sampled_from(["none", "first_byte", "last_byte"])), **bits}
        return dtype, [], {"name": kind, "configuration": options}
    if kind == "numcodecs":
        code = np.dtype(dtype).str
        found = [{"name": "numcodecs.astype", "configuration": {"encode_dtype": ">i2", "decode_dtype": code}}]
        if dtype != "float32" and dtype != "float64":
            found = [{"name": "numcodecs.delta", "configuration": {"dtype": code, "astype": draw(dtypes(INTEGERS))}}]
        return dtype, found, endian
    return dtype, [{"name": "reshape", "configuration": {"shape": [-1]}}], endian


def elements(draw: Callable[[st.SearchStrategy[Any]], Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Values of which most survive the filters, or any."""
    if dtype.kind in "cb" or draw(st.booleans()):
        return draw(hnp.arrays(dtype, shape))
    small = st.integers(0 if dtype.kind == "u" else -120, 120)
    return draw(hnp.arrays(np.int16, shape, elements=small)).astype(dtype)


def attempt(work: Any) -> Any:
    """The result, or the class of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return work()
        except TessarrError as error:
            return type(error)


@contextmanager
def without_the_reference_engine() -> Iterator[None]:
    """Fail where the native engine calls the reference engine."""

    def refuse(*_: object) -> None:
        raise AssertionError("the native engine called the reference engine")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("read", "read_async", "plan_read", "write", "write_async", "plan_write"):
            patch.setattr(ReferenceEngine, name, refuse)
        yield


def natively(work: Any) -> Any:
    """The result of `work`, done by the native engine alone, or the class of the error."""
    with without_the_reference_engine():
        return attempt(work)


def with_one_nan(data: bytes, dtype: np.dtype[Any]) -> bytes:
    """`data` with the same NaN wherever it has one: IEEE 754 (6.3) leaves the sign of a computed NaN open."""
    values = np.frombuffer(data, dtype).copy()
    values[np.isnan(values)] = np.nan
    return values.tobytes()


def compare(make: Any, values: npt.NDArray[Any], *, exact: bool = True, summed: np.dtype[Any] | None = None) -> None:
    """Both engines write the same bytes, or fail alike, and read what either wrote alike.

    With `exact` false the bytes may differ, as those of two deflate implementations do. `summed` is the data type of
    stored and read floats that are sums or differences, in which the sign of a NaN may differ.
    """
    native, stores = NativeEngine(), (MemoryStore(), MemoryStore())
    arrays = [make(store) for store in stores]
    bound = [array._bound for array in arrays]
    if native.supports(bound[0]) is not None:
        return
    everything = Outer(tuple(slice(0, n, 1) for n in values.shape))
    error = natively(lambda: native.write(bound[0], everything, values))
    assert error == attempt(lambda: REFERENCE.write(bound[1], everything, values))
    if error is not None:
        return
    assert sorted(stores[0].list()) == sorted(stores[1].list())

    def comparable(data: bytes) -> bytes:
        return data if summed is None else with_one_nan(data, summed)

    if exact:
        for key in stores[0].list():
            one, other = (bytes(store.get(key) or b"") for store in stores)
            assert one == other or (key != ".zarray" and comparable(one) == comparable(other)), key

    def read(engine: Any, array: Any) -> bytes:
        out = np.empty(values.shape, array.dtype)
        engine.read(array, everything, out)
        return comparable(out.tobytes())

    for array in bound:
        ours = natively(lambda array=array: read(native, array))
        assert ours == attempt(lambda array=array: read(REFERENCE, array))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_filters_of_v2_store_and_read_what_the_reference_engine_does(data: st.DataObject) -> None:
    dtype, filters = data.draw(v2_filters())
    shape = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 60)))
    values = elements(data.draw, np.dtype(dtype), shape)
    order = data.draw(st.sampled_from("CF"))

    def make(store: MemoryStore) -> Any:
        layout: dict[str, Any] = {
            "shape": shape,
            "chunks": (4, 50),
            "dtype": dtype,
            "filters": filters,
            "compressors": None,
        }
        return tessarr.create_array(store, zarr_format=2, order=order, fill_value=0, **layout)

    is_summed = filters[0]["id"] == "delta" and np.dtype(dtype).kind == "f"
    compare(make, values, summed=np.dtype(dtype) if is_summed else None)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_codecs_of_v3_store_and_read_what_the_reference_engine_does(data: st.DataObject) -> None:
    dtype, filters, serializer = data.draw(v3_codecs())
    shape = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 60)))
    values = elements(data.draw, np.dtype(dtype), shape)
    if data.draw(st.booleans()):
        filters = [{"name": "transpose", "configuration": {"order": [1, 0]}}, *filters]
    shards = data.draw(st.sampled_from([None, (8, 50)]))

    def make(store: MemoryStore) -> Any:
        layout: dict[str, Any] = {
            "shape": shape,
            "chunks": (4, 50),
            "shards": shards,
            "dtype": dtype,
            "compressors": None,
        }
        return tessarr.create_array(store, filters=filters, serializer=serializer, fill_value=0, **layout)

    try:
        make(MemoryStore())
    except TessarrError:
        return  # not a chain for these elements
    compare(make, values)


BLOCKS = np.random.default_rng(7).normal(0, 100, 5000)
CHAINS: list[tuple[str, list[Any]]] = [
    ("<i4", [{"id": "delta", "dtype": "<i4"}]),
    ("<f4", [{"id": "delta", "dtype": "<f4"}]),
    (">f8", [{"id": "delta", "dtype": ">f8"}]),
    ("<i2", [{"id": "delta", "dtype": "<i2", "astype": ">i4"}]),
    ("<f4", [{"id": "quantize", "digits": 2, "dtype": "<f4"}]),
    (">f8", [{"id": "quantize", "digits": 5, "dtype": ">f8", "astype": "<f8"}]),
    ("<i4", [{"id": "astype", "encode_dtype": ">i2", "decode_dtype": "<i4"}]),
    ("<i4", [{"id": "delta", "dtype": "<i4"}, {"id": "astype", "encode_dtype": "|i1", "decode_dtype": "<i4"}]),
    ("<f4", [{"id": "bitround", "keepbits": 5}]),
    ("|b1", [{"id": "packbits"}]),
    ("<u2", [{"id": "jenkins_lookup3", "initval": 5, "prefix": None}]),
]


@pytest.mark.parametrize(("dtype", "filters"), CHAINS, ids=lambda value: str(value)[:60])
@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 1}, {"id": "blosc", "cname": "lz4"}])
def test_chunks_of_many_blocks_are_filtered_natively_and_alike(dtype: str, filters: Any, compressor: Any) -> None:
    values = BLOCKS.astype(dtype).reshape(50, 100)

    def make(store: MemoryStore) -> Any:
        layout = {"chunks": (30, 70), "dtype": dtype, "filters": filters, "compressors": compressor}
        array = tessarr.create_array(store, zarr_format=2, shape=values.shape, fill_value=0, **layout)
        assert NativeEngine().supports(array._bound) is None
        return array

    compare(make, values, exact=compressor is None)


V3 = [
    ("float32", [{"name": "bitround", "configuration": {"keepbits": 7}}], None),
    ("int32", [{"name": "bitround", "configuration": {"keepbits": 3}}], None),
    ("float16", [{"name": "bitround", "configuration": {"keepbits": 2}}], None),
    ("complex64", [{"name": "bitround", "configuration": {"keepbits": 9}}], None),
    ("float32", [{"name": "numcodecs.quantize", "configuration": {"digits": 1}}], None),
    ("int16", [{"name": "numcodecs.astype", "configuration": {"encode_dtype": "|u1", "decode_dtype": "<i2"}}], None),
    ("int64", [{"name": "numcodecs.delta", "configuration": {"dtype": "<i8"}}], None),
    ("bool", [{"name": "numcodecs.packbits"}], None),
    ("bool", [], {"name": "packbits", "configuration": {"padding_encoding": "last_byte"}}),
    ("uint16", [], {"name": "packbits", "configuration": {"first_bit": 0, "last_bit": 10}}),
]


@pytest.mark.parametrize(("dtype", "filters", "serializer"), V3, ids=lambda value: str(value)[:60])
@pytest.mark.parametrize("shards", [None, (60, 140)])
def test_v3_chains_with_filters_are_served_natively(dtype: str, filters: Any, serializer: Any, shards: Any) -> None:
    values = BLOCKS.astype(dtype).reshape(50, 100)
    serializer = serializer or {"name": "bytes", "configuration": {"endian": "big"}}

    def make(store: MemoryStore) -> Any:
        layout = {"chunks": (30, 70), "shards": shards, "dtype": dtype, "filters": filters, "fill_value": 0}
        array = tessarr.create_array(store, shape=values.shape, serializer=serializer, compressors="zstd", **layout)
        assert NativeEngine().supports(array._bound) is None
        return array

    compare(make, values, exact=False)


def scaled(dtype: str, astype: str) -> dict[str, Any]:
    return {"id": "fixedscaleoffset", "scale": 1, "offset": 0, "dtype": dtype, "astype": astype}


ONLY_NUMPY: list[tuple[str, list[dict[str, Any]], str]] = [
    ("<f8", [scaled("<f8", "<i2")], "the codec 'fixedscaleoffset'"),
    ("<f4", [scaled("<f4", "<f4")], "the codec 'fixedscaleoffset'"),
    ("<f8", [{"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<f8"}], "the codec 'astype' from <f8 to <i2"),
    ("<i4", [{"id": "astype", "encode_dtype": "<f8", "decode_dtype": "<i4"}], "the codec 'astype' from <i4 to <f8"),
    ("<f8", [{"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<f8"}], "the codec 'astype' from <f8 to <f4"),
    ("<i8", [{"id": "delta", "dtype": "<i8", "astype": "|i1"}], "the codec 'delta' from <i8 to |i1"),
    ("<u4", [{"id": "delta", "dtype": "<u4", "astype": "<i4"}], "the codec 'delta' from <u4 to <i4"),
    ("<f2", [{"id": "delta", "dtype": "<f2"}], "the codec 'delta' from <f2 to <f2"),
    ("<f8", [{"id": "quantize", "digits": 2, "dtype": "<f8", "astype": "<f4"}], "the codec 'quantize' from <f8 to <f4"),
    ("<f4", [{"id": "quantize", "digits": 200, "dtype": "<f4"}], "quantize to 200 digits"),
]


@pytest.mark.parametrize(("dtype", "filters", "reason"), ONLY_NUMPY, ids=lambda value: str(value)[:60])
def test_a_filter_whose_results_only_numpy_defines_is_left_to_the_reference_engine_at_opening(
    dtype: str, filters: Any, reason: str
) -> None:
    store = MemoryStore()
    array = tessarr.create_array(store, zarr_format=2, shape=4, dtype=dtype, filters=filters, compressors=None)
    for opened in (array, tessarr.open_array(store, mode="r")):
        assert opened.engine.name == "reference"
        assert f"the native engine cannot: {reason}" in opened.engine.reason
    with (
        tessarr.config.set({"engine": "native"}),
        pytest.raises(UnsupportedOperationError, match="cannot serve this array") as error,
    ):
        tessarr.open_array(store, mode="r").engine  # noqa: B018
    assert reason in str(error.value)


@pytest.mark.parametrize("make_store", [MemoryStore, FarStore])
def test_a_value_that_numpy_leaves_to_the_processor_is_cast_by_the_engine_that_the_array_names(make_store: Any) -> None:
    filters = [scaled("<f8", "<i2")]
    values = np.array([1.0, 1e9, -7.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = tessarr.create_array(make_store(), zarr_format=2, data=values, filters=filters, compressors=None)
        assert array.engine.name == "reference"
        stored = np.frombuffer(bytes_of(array.store.get("0")), "<i2")
        assert stored.tolist() == values.astype("<i2").tolist()


@pytest.mark.parametrize(
    ("name", "configuration", "refused"),
    [
        ("cast_value", {"data_type": "int8"}, 300),
        ("cast_value", {"data_type": "int8", "out_of_range": "clamp"}, np.nan),
        ("scale_offset", {"offset": 0, "scale": 1e300}, 1e300),
    ],
)
def test_codecs_of_v3_that_refuse_values_are_left_to_the_reference_engine(
    name: str, configuration: Any, refused: float
) -> None:
    filters = [{"name": name, "configuration": configuration}]
    array = tessarr.create_array({}, shape=3, dtype="float64", filters=filters, fill_value=0)
    assert array.engine.name == "reference"
    assert name in array.engine.reason
    with pytest.raises(CodecError, match=name):
        array[:] = [1, 2, refused]
    array[:] = [1, 2, 100]
    assert array[:].tolist() == [1, 2, 100]


@pytest.mark.parametrize(
    ("zarr_format", "codecs", "at"),
    [
        (2, {"filters": [{"id": "packbits"}]}, 0),
        (3, {"serializer": {"name": "packbits", "configuration": {"padding_encoding": "first_byte"}}}, 0),
        (3, {"serializer": {"name": "packbits", "configuration": {"padding_encoding": "last_byte"}}}, -1),
    ],
)
@pytest.mark.parametrize("stated", [0, 6, 8, 255])
def test_bits_that_contradict_their_padding_are_the_same_error_in_both_engines(
    zarr_format: Any, codecs: Any, at: int, stated: int
) -> None:
    store = MemoryStore()
    layout = {"shape": 11, "dtype": "bool", "compressors": None, **codecs}
    array = tessarr.create_array(store, zarr_format=zarr_format, **layout)
    assert array.engine.name == "native"
    array[...] = True
    (key,) = (key for key in store.list() if not key.endswith((".zarray", ".zattrs", "zarr.json")))
    data = bytearray(store.get(key) or b"")
    data[at] = stated
    store.set(key, bytes(data))
    with without_the_reference_engine(), pytest.raises(CodecError, match="packbits"):
        array[...]
    with tessarr.config.set({"engine": "reference"}), pytest.raises(CodecError, match="packbits"):
        tessarr.open_array(store, mode="r")[...]
