"""Zarr v1, line by line: documents and chunks as zarr 1.x wrote them, and the specification's worked example."""

from __future__ import annotations

import bz2
import json
import lzma
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr as zarr
from tessarr.errors import MetadataValidationError, ZarrDeprecationWarning

META = {
    "zarr_format": 1,
    "shape": [20, 20],
    "chunks": [10, 10],
    "dtype": "<i4",
    "compression": "zlib",
    "compression_opts": 1,
    "fill_value": 42,
    "order": "C",
}


def store_of(meta: dict[str, Any], chunks: dict[str, bytes] | None = None, attrs: Any = None) -> dict[str, bytes]:
    """A v1 store in a dict."""
    return {
        "meta": json.dumps(meta).encode(),
        "attrs": json.dumps(attrs or {}).encode(),
        **(chunks or {}),
    }


def opened(**changes: Any) -> Any:
    return zarr.open_array(store_of({**META, **changes}), mode="r")


@pytest.mark.spec("V1-01")
def test_a_plain_dict_is_store_enough_to_read_and_write() -> None:
    store: dict[str, bytes] = {}
    with pytest.warns(ZarrDeprecationWarning):
        z = zarr.create(shape=(4,), chunks=(2,), dtype="<i4", store=store, zarr_format=1, compression=None)
    z[...] = [1, 2, 3, 4]
    assert sorted(store) == ["0", "1", "attrs", "meta"]
    assert zarr.open_array(store)[...].tolist() == [1, 2, 3, 4]


@pytest.mark.spec("V1-02", "V1-12")
def test_the_format_is_found_from_the_key_meta(tmp_path: Path) -> None:
    chunk = np.arange(100, dtype="<i4")
    for key, data in store_of(META, {"0.0": zlib.compress(chunk.tobytes())}, {"a": 1}).items():
        (tmp_path / key).write_bytes(data)
    z = zarr.open(str(tmp_path), mode="r")
    assert isinstance(z, zarr.Array)
    assert z.metadata.zarr_format == 1
    assert z[:10, :10].ravel().tolist() == chunk.tolist()
    assert dict(z.attrs) == {"a": 1}


@pytest.mark.spec("V1-03")
@pytest.mark.parametrize("name", sorted(META))
def test_every_member_is_required(name: str) -> None:
    meta = {key: value for key, value in META.items() if key != name}
    with pytest.raises(MetadataValidationError, match=name):
        zarr.open_array(store_of(meta), mode="r", zarr_format=1)


@pytest.mark.spec("V1-04")
@pytest.mark.parametrize("wrong", [2, "1", 1.5, True])
def test_zarr_format_is_the_integer_one(wrong: Any) -> None:
    with pytest.raises(MetadataValidationError, match="zarr_format"):
        zarr.open_array(store_of({**META, "zarr_format": wrong}), mode="r", zarr_format=1)


@pytest.mark.spec("V1-05")
def test_shape_and_chunks_have_one_length() -> None:
    with pytest.raises(MetadataValidationError, match="chunks"):
        opened(chunks=[10])


@pytest.mark.spec("V1-06")
def test_order_gives_the_layout_in_a_chunk() -> None:
    raw = np.array([0, 3, 1, 4, 2, 5], "<i4").tobytes()
    meta = {**META, "shape": [2, 3], "chunks": [2, 3], "order": "F", "compression": None, "compression_opts": None}
    assert zarr.open_array(store_of(meta, {"0.0": raw}), mode="r")[...].tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(MetadataValidationError, match="order"):
        opened(order="K")


@pytest.mark.spec("V1-07")
def test_other_members_are_ignored_and_kept() -> None:
    store = store_of({**META, "foo": 1})
    z = zarr.open_array(store, mode="r+")
    z.resize(30, 20)
    assert json.loads(store["meta"])["foo"] == 1
    assert json.loads(store["meta"])["shape"] == [30, 20]


@pytest.mark.spec("V1-08")
def test_the_grid_of_the_specification_s_example() -> None:
    z = opened(
        shape=[10000, 10000],
        chunks=[1000, 1000],
        dtype="<f8",
        compression="blosc",
        compression_opts={"clevel": 5, "cname": "lz4", "shuffle": 1},
        fill_value=None,
    )
    assert z.nchunks == 100
    assert z.cdata_shape == (10, 10)


@pytest.mark.spec("V1-09")
def test_a_dtype_states_its_byte_order() -> None:
    for good, fill in [("<f8", 1.5), (">i4", 7), ("|b1", True), ("|S12", None)]:
        assert opened(dtype=good, fill_value=fill).dtype == np.dtype(good)
    for bad in ("f8", "i4"):
        with pytest.raises(MetadataValidationError, match="dtype"):
            opened(dtype=bad)


@pytest.mark.spec("V1-10")
def test_a_structured_dtype_is_a_list_of_pairs() -> None:
    z = opened(dtype=[["r", "|u1"], ["g", "|u1"], ["b", "|u1"]], fill_value=None)
    assert z.dtype.itemsize == 3
    assert z.dtype.names == ("r", "g", "b")


@pytest.mark.spec("V1-11")
def test_a_chunk_is_the_compressed_bytes_and_nothing_more() -> None:
    store: dict[str, bytes] = {}
    with pytest.warns(ZarrDeprecationWarning):
        zarr.init_store(store, shape=(4,), chunks=(4,), dtype="<i4", compression="zlib", compression_opts=9)
    z = zarr.open_array(store, mode="r+")
    z[...] = [1, 2, 3, 4]
    assert zlib.decompress(store["0"]) == np.array([1, 2, 3, 4], "<i4").tobytes()


@pytest.mark.spec("V1-12")
def test_chunk_keys_are_indices_joined_by_periods() -> None:
    raw = np.full((10, 10), 7, "<i4").tobytes()
    plain = {"shape": [30, 50], "compression": None, "compression_opts": None}
    z = zarr.open_array(store_of({**META, **plain}, {"2.4": raw}), mode="r")
    assert (z[20:30, 40:50] == 7).all()
    assert (z[:20] == 42).all()
    assert (z[20:30, :40] == 42).all()


@pytest.mark.spec("V1-13", "V1-14")
def test_a_missing_chunk_is_fill_value_and_zero_where_that_is_null() -> None:
    raw = np.ones((10, 10), "<i4").tobytes()
    meta = {**META, "compression": None, "compression_opts": None}
    z = zarr.open_array(store_of(meta, {"0.0": raw}), mode="r")
    assert (z[:10, 10:] == 42).all()
    assert z[0, 0] == 1
    assert (opened(fill_value=None)[...] == 0).all()


@pytest.mark.spec("V1-15")
def test_what_an_edge_chunk_holds_beyond_the_array_is_never_seen() -> None:
    raw = np.array([1, 2, 3, 4, 5, 99, 99, 99, 99, 99], "<i4").tobytes()
    meta = {**META, "shape": [25], "chunks": [10], "compression": None, "compression_opts": None}
    z = zarr.open_array(store_of(meta, {"2": raw}), mode="r")
    assert z[20:].tolist() == [1, 2, 3, 4, 5]
    assert 99 not in z[...]


@pytest.mark.spec("V1-16")
def test_attrs_is_written_even_when_empty_and_may_be_missing() -> None:
    store: dict[str, bytes] = {}
    with pytest.warns(ZarrDeprecationWarning):
        zarr.create(shape=(4,), dtype="<i4", store=store, zarr_format=1)
    assert json.loads(store["attrs"]) == {}
    del store["attrs"]
    z = zarr.open_array(store, mode="r+")
    assert dict(z.attrs) == {}
    z.attrs["a"] = 1
    assert json.loads(store["attrs"]) == {"a": 1}


@pytest.mark.spec("V1-17")
def test_attributes_round_trip() -> None:
    store = store_of(META)
    zarr.open_array(store, mode="r+").attrs.put({"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]})
    assert dict(zarr.open_array(store, mode="r").attrs) == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
    assert json.loads(store["attrs"]) == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}


@pytest.mark.spec("V1-18", "V1-19", "V1-20", "V1-21", "V1-22")
def test_the_worked_example_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = zarr.DirectoryStore("example.zarr")
    with pytest.warns(ZarrDeprecationWarning):
        zarr.init_store(
            store,
            shape=(20, 20),
            chunks=(10, 10),
            dtype="i4",
            fill_value=42,
            compression="zlib",
            compression_opts=1,
            overwrite=True,
        )
    assert sorted(os.listdir("example.zarr")) == ["attrs", "meta"]
    text = Path("example.zarr/meta").read_text()
    assert json.loads(text) == {
        "chunks": [10, 10],
        "compression": "zlib",
        "compression_opts": 1,
        "dtype": "<i4",
        "fill_value": 42,
        "order": "C",
        "shape": [20, 20],
        "zarr_format": 1,
    }
    assert text == json.dumps(json.loads(text), indent=4, sort_keys=True)
    assert Path("example.zarr/attrs").read_text() == "{}"
    z = zarr.Array(store)
    z[0:10, 0:10] = 1
    assert sorted(os.listdir("example.zarr")) == ["0.0", "attrs", "meta"]
    z[0:10, 10:20] = 2
    z[10:20, :] = 3
    assert sorted(os.listdir("example.zarr")) == ["0.0", "0.1", "1.0", "1.1", "attrs", "meta"]
    b = zlib.decompress(Path("example.zarr/0.0").read_bytes())
    assert np.frombuffer(b, dtype="<i4").tolist() == [1] * 100
    z.attrs["foo"] = 42
    z.attrs["bar"] = "apples"
    z.attrs["baz"] = [1, 2, 3, 4]
    assert json.loads(Path("example.zarr/attrs").read_text()) == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}


def _blosc(raw: bytes) -> bytes:
    import numcodecs

    return bytes(numcodecs.Blosc("lz4", 5, 1).encode(np.frombuffer(raw, "<i4")))


@pytest.mark.spec("V1-23", "V1-24")
@pytest.mark.parametrize(
    ("name", "options", "encode"),
    [
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}, _blosc),
        ("blosc", None, _blosc),
        ("zlib", 1, zlib.compress),
        ("zlib", None, zlib.compress),
        ("gzip", 3, zlib.compress),
        ("bz2", 1, bz2.compress),
        ("lzma", {"format": 1, "check": -1, "preset": None, "filters": None}, lzma.compress),
        ("lzma", None, lzma.compress),
        ("none", None, bytes),
        (None, None, bytes),
    ],
)
def test_every_compression_that_zarr_1_wrote_is_read(name: Any, options: Any, encode: Any) -> None:
    raw = np.arange(4, dtype="<i4").tobytes()
    meta = {**META, "shape": [4], "chunks": [4], "compression": name, "compression_opts": options}
    assert zarr.open_array(store_of(meta, {"0": encode(raw)}), mode="r")[...].tolist() == [0, 1, 2, 3]


@pytest.mark.spec("V1-23")
def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(MetadataValidationError, match="snappy"):
        opened(compression="snappy")


@pytest.mark.spec("V1-25")
@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_bare_tokens_for_float_fills_are_read_and_never_written(token: str) -> None:
    text = json.dumps({**META, "dtype": "<f8"}).replace('"fill_value": 42', f'"fill_value": {token}')
    store = {"meta": text.encode(), "attrs": b"{}"}
    z = zarr.open_array(store, mode="r+")
    expected = float(token.lower().replace("infinity", "inf"))
    assert np.array_equal(z[0, 0], expected, equal_nan=True)
    z.resize(30, 30)
    assert f'"fill_value": {token}' not in store["meta"].decode()


@pytest.mark.spec("V1-26")
def test_v1_is_written_on_request_only_and_with_a_warning() -> None:
    assert zarr.create_array({}, shape=(1,), dtype="i4").metadata.zarr_format == 3
    with pytest.warns(ZarrDeprecationWarning, match="v1"):
        zarr.create_array({}, shape=(1,), dtype="i4", zarr_format=1)
