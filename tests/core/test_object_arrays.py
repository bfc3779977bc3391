"""v2 arrays of objects through every object codec, made as zarr-python 2 makes them."""

from __future__ import annotations

from typing import Any

import numcodecs
import numpy as np
import pytest

import tessarr
from tessarr.errors import BaseZarrError, PickleCodecDisabledError
from tessarr.metadata.public import ArrayV2Metadata


def ragged(*rows: Any) -> Any:
    made = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        made[i] = np.asarray(row, "i4")
    return made


@pytest.mark.parametrize(
    ("codec", "values"),
    [
        (numcodecs.JSON(), np.array([{"a": 1}, [1, "x"], None], object)),
        (numcodecs.MsgPack(), np.array(["a", {"b": 2}, None], object)),
        (numcodecs.VLenUTF8(), np.array(["", "añb", "c"], object)),
        (numcodecs.VLenBytes(), np.array([b"", b"\x00\xff", b"c"], object)),
        (numcodecs.VLenArray("i4"), ragged([1], [], [2, 3])),
        (numcodecs.Categorize(["a", "b"], dtype=object), np.array(["a", "b", "a"], object)),
    ],
    ids=lambda value: getattr(value, "codec_id", ""),
)
def test_objects_round_trip(codec: Any, values: Any) -> None:
    store: dict[str, bytes] = {}
    z = tessarr.create(shape=(3,), chunks=(2,), dtype=object, object_codec=codec, zarr_format=2, store=store)
    z[:] = values
    back = tessarr.open_array(store, mode="r")[:]
    for found, expected in zip(back, values, strict=True):
        assert np.array_equal(found, expected) if isinstance(expected, np.ndarray) else found == expected


def test_pickle_is_refused_when_it_is_asked_for() -> None:
    with pytest.raises(PickleCodecDisabledError):
        tessarr.create(shape=(3,), dtype=object, object_codec=numcodecs.Pickle(), zarr_format=2, store={})


@pytest.mark.parametrize("dtype", [bytes, str])
def test_broadcast_texts_and_bytes_are_written(dtype: type) -> None:
    z = tessarr.create_array({}, shape=(3,), chunks=(3,), dtype=dtype)
    z[:] = dtype("x", "ascii") if dtype is bytes else "x"
    assert z[:].tolist() == [z[0]] * 3


@pytest.mark.parametrize(
    ("codec", "values"),
    [
        ("json2", np.array([{"a": 1}, [1, "x"], None], object)),
        ("msgpack2", np.array(["a", {"b": 2}, None], object)),
        ("vlen-utf8", np.array(["", "añb", "c"], object)),
        ("vlen-bytes", np.array([b"", b"\x00\xff", b"c"], object)),
        ("vlen-array:<i4", ragged([1], [], [2, 3])),
    ],
)
def test_object_codecs_may_be_named(codec: str, values: Any) -> None:
    store: dict[str, bytes] = {}
    z = tessarr.create_array(store, shape=(3,), dtype=object, object_codec=codec, zarr_format=2, compressors="zlib")
    z[:] = values
    assert isinstance(z.metadata, ArrayV2Metadata)
    assert z.metadata.compressor.get_config() == {"id": "zlib", "level": 1}
    back = tessarr.open_array(store, mode="r")[:]
    for found, expected in zip(back, values, strict=True):
        assert np.array_equal(found, expected) if isinstance(expected, np.ndarray) else found == expected


@pytest.mark.parametrize("codec", ["vlen-array", "categorize"])
def test_a_name_that_says_too_little_is_a_typed_error(codec: str) -> None:
    with pytest.raises(BaseZarrError, match="Give its parameters"):
        tessarr.create_array({}, shape=(3,), dtype=object, object_codec=codec, zarr_format=2)


def test_records_may_be_described_as_numpy_does() -> None:
    z = tessarr.create_array({}, shape=(3,), dtype={"names": ["a"], "formats": ["i4"]})
    assert z.dtype == np.dtype([("a", "i4")])


def test_ragged_arrays_are_made_of_their_data_type() -> None:
    dtype = tessarr.create_array(
        {}, shape=(1,), dtype=object, object_codec="vlen-array:<i4", zarr_format=2
    ).metadata.dtype
    z = tessarr.create_array({}, shape=(2,), dtype=dtype, zarr_format=2)
    assert z.metadata.to_dict()["filters"] == [{"id": "vlen-array", "dtype": "<i4"}]
    z[:] = ragged([1], [2, 3])
    assert [row.tolist() for row in z[:]] == [[1], [2, 3]]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<U3", ">U3"])
def test_categories_of_fixed_length_text_are_those_of_numcodecs(order: Any, dtype: str) -> None:
    store: dict[str, bytes] = {}
    codec = numcodecs.Categorize(["a", "bcd"], dtype=dtype)
    z = tessarr.create(
        shape=(3, 2),
        chunks=(3, 2),
        dtype=dtype,
        filters=[codec],
        compressor=None,
        order=order,
        zarr_format=2,
        store=store,
    )
    values = np.array([["a", "bcd"], ["bcd", "a"], ["no", "a"]], dtype)
    z[:] = values
    assert store["0.0"] == bytes(codec.encode(np.asarray(values, order="C").reshape(-1, order=order)))
    assert tessarr.open_array(store, mode="r")[:].tolist() == [["a", "bcd"], ["bcd", "a"], ["", "a"]]
