"""Zarr v2 chunks, line by line: bytes decoded by hand, with NumPy and numcodecs, against what a user reads and writes."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numcodecs
import numpy as np
import pytest

import tessarr as zarr
from tessarr.errors import CodecError

KINDS: list[tuple[str, Any]] = [
    ("|b1", True),
    ("<i2", -7),
    (">i4", 70000),
    (">u8", 2**63 + 1),
    ("<f2", 0.5),
    ("<f4", float("nan")),
    (">f8", float("-inf")),
    ("<c8", 1 + 2j),
    (">c16", complex(0, float("nan"))),
    ("<m8[ns]", np.timedelta64(5, "ns")),
    ("<M8[D]", np.datetime64("2024-02-29")),
    ("<M8[s]", np.datetime64("NaT", "s")),
    ("|S5", b"abc"),
    ("<U7", "añb"),
    (">U7", "日本"),
    ("|V10", np.void(b"0123456789")),
]


def same(read: Any, expected: Any) -> bool:
    """Equal in every byte, whatever the byte order in memory."""
    expected = np.asarray(expected)
    return bool(read.astype(expected.dtype).tobytes() == expected.tobytes())


@pytest.mark.spec("V2-39")
@pytest.mark.parametrize(("dtype", "fill"), KINDS, ids=[f"{d}-{f}" for d, f in KINDS])
def test_a_missing_chunk_is_fill_value_for_every_kind(dtype: str, fill: Any) -> None:
    store: dict[str, bytes] = {}
    z = zarr.create(shape=(6,), chunks=(3,), dtype=dtype, fill_value=fill, store=store, zarr_format=2)
    z[:] = np.zeros(6, dtype)
    assert {"0", "1"} <= store.keys()
    del store["1"]
    read = zarr.open_array(store, mode="r")
    assert same(read[3:], np.full(3, fill, dtype))
    assert same(read[:3], np.zeros(3, dtype))


@pytest.mark.spec("V2-39")
def test_a_missing_chunk_of_a_structure_is_fill_value() -> None:
    dtype = np.dtype([("a", ">i4"), ("b", [("c", "<f4"), ("d", "|S3")]), ("e", "<u2", (2,))])
    fill = np.array((1, (2.5, b"xy"), [3, 4]), dtype)[()]
    store: dict[str, bytes] = {}
    zarr.create(shape=(4,), chunks=(2,), dtype=dtype, fill_value=fill, store=store, zarr_format=2)
    assert same(zarr.open_array(store, mode="r")[...], np.full(4, fill, dtype))


@pytest.mark.spec("V2-40")
def test_chunks_of_fill_value_are_left_out_and_removed_unless_asked_for() -> None:
    values = np.array([5, 5, 1, 2, 5, 5], "<i4")
    sparse: dict[str, bytes] = {}
    dense: dict[str, bytes] = {}
    for store, empty in ((sparse, False), (dense, True)):
        z = zarr.create(
            shape=6, chunks=2, dtype="<i4", fill_value=5, store=store, zarr_format=2, write_empty_chunks=empty
        )
        z[:] = values
    assert sorted(sparse) == [".zarray", "1"]
    assert sorted(dense) == [".zarray", "0", "1", "2"]
    for store in (sparse, dense):
        assert zarr.open_array(store, mode="r")[...].tolist() == values.tolist()
    zarr.open_array(sparse, mode="r+")[2:4] = 5
    assert sorted(sparse) == [".zarray"]


@pytest.mark.spec("V2-41")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "compressor", [None, numcodecs.Zlib(1), numcodecs.Blosc("lz4", 5, 1), numcodecs.LZ4(), numcodecs.Zstd(3)], ids=str
)
@pytest.mark.parametrize(
    "filters",
    [[], [numcodecs.Delta("<i4")], [numcodecs.Delta("<i4"), numcodecs.Shuffle(4)], [numcodecs.CRC32()]],
    ids=["none", "delta", "delta-shuffle", "crc32"],
)
def test_a_chunk_is_raw_bytes_then_filters_then_compressor(order: Any, compressor: Any, filters: list[Any]) -> None:
    values = np.arange(12, dtype="<i4").reshape(3, 4) * 7
    encoded: Any = np.ascontiguousarray(values if order == "C" else values.T).ravel()
    for codec in filters:
        encoded = codec.encode(encoded)
    encoded = numcodecs.compat.ensure_bytes(compressor.encode(encoded) if compressor else encoded)

    store: dict[str, bytes] = {}
    arguments: dict[str, Any] = {"order": order, "compressor": compressor, "filters": filters or None}
    z = zarr.create(shape=(3, 4), chunks=(3, 4), dtype="<i4", store=store, zarr_format=2, fill_value=0, **arguments)
    z[...] = values
    stored: Any = numcodecs.compat.ensure_bytes(store["0.0"])
    stored = compressor.decode(stored) if compressor else stored
    for codec in reversed(filters):
        stored = codec.decode(stored)
    raw = np.frombuffer(numcodecs.compat.ensure_bytes(stored), "<i4")
    assert raw.tolist() == values.ravel(order=order).tolist()

    store["0.0"] = encoded
    assert zarr.open_array(store, mode="r")[...].tolist() == values.tolist()


@pytest.mark.spec("V2-41")
def test_a_blosc_chunk_begins_with_blosc_s_own_header() -> None:
    store: dict[str, bytes] = {}
    z = zarr.create(shape=1000, chunks=1000, dtype="<f8", store=store, zarr_format=2, compressor=numcodecs.Blosc())
    z[:] = np.arange(1000)
    version, _, flags, typesize = store["0"][:4]
    nbytes, blocksize, compressed = np.frombuffer(store["0"][4:16], "<u4").tolist()
    assert (version, typesize, nbytes, compressed) == (2, 8, 8000, len(store["0"]))
    assert flags & 1  # shuffled
    assert 0 < blocksize <= 8000


@pytest.mark.spec("V2-42")
def test_decoding_undoes_the_filters_in_reverse() -> None:
    delta = {"id": "delta", "dtype": "<f8"}
    scale = {"id": "fixedscaleoffset", "offset": 1000, "scale": 10, "dtype": "<f8", "astype": "<i4"}
    values = np.array([1000.5, 1002.0, 1003.5, 1000.0])
    encoded = numcodecs.get_codec(dict(scale)).encode(numcodecs.get_codec(dict(delta)).encode(values))
    other = numcodecs.get_codec({**delta, "dtype": "<i4"}).encode(numcodecs.get_codec(dict(scale)).encode(values))
    assert np.asarray(encoded).tobytes() != np.asarray(other).tobytes()
    document = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [4],
        "dtype": "<f8",
        "compressor": {"id": "zlib", "level": 1},
        "fill_value": 0,
        "order": "C",
        "filters": [delta, scale],
    }
    store = {".zarray": json.dumps(document).encode(), "0": zlib.compress(np.asarray(encoded).tobytes())}
    assert zarr.open_array(store, mode="r")[...].tolist() == values.tolist()
    zarr.open_array(store, mode="r+")[:] = values
    assert zlib.decompress(store["0"]) == np.asarray(encoded).tobytes()


@pytest.mark.spec("V2-43")
def test_the_chunk_2_4_holds_rows_2000_and_columns_4000_on() -> None:
    store: dict[str, bytes] = {}
    z = zarr.create(shape=(10000, 10000), chunks=(1000, 1000), dtype="u1", store=store, zarr_format=2, compressor=None)
    assert z.nchunks == 100
    z[2000:3000, 4000:5000] = 1
    assert sorted(store) == [".zarray", "2.4"]
    z[999, 999] = 1
    assert sorted(store) == [".zarray", "0.0", "2.4"]


@pytest.mark.spec("V2-44")
@pytest.mark.parametrize("stored", [4, 11, 13])
def test_a_chunk_of_another_size_is_an_error(stored: int) -> None:
    store: dict[str, bytes] = {}
    zarr.create(shape=(4,), chunks=(3,), dtype="<i4", compressor=None, store=store, zarr_format=2)
    store["1"] = bytes(stored)
    z = zarr.open_array(store, mode="r")
    with pytest.raises(CodecError, match="1"):
        z[3:]
    assert z[:3].tolist() == [0, 0, 0]


@pytest.mark.spec("V2-44")
def test_what_an_edge_chunk_holds_beyond_the_array_is_never_seen() -> None:
    store: dict[str, bytes] = {}
    zarr.create(shape=(4,), chunks=(3,), dtype="<i4", compressor=None, store=store, zarr_format=2)
    store["1"] = np.array([7, 99, 99], "<i4").tobytes()
    assert zarr.open_array(store, mode="r")[...].tolist() == [0, 0, 0, 7]
