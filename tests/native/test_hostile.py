"""Broken chunks and shards are typed errors that name the place: never a crash, never wrong values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import _native
from tessarr.engine.native.engine import NativeEngine
from tessarr.errors import BaseZarrError, ChecksumError, ChunkNotFoundError, CodecError, ShardIndexError, StoreError
from tessarr.indexing.selection import Outer
from tessarr.storage import LoggingStore
from tessarr.stores.memory.store import MemoryStore
from tests.waiting import until

VALUES = (np.arange(4096).reshape(64, 64) // 5 % 300).astype("u4")


def blosc(cname: str, shuffle: str, blocksize: int = 0) -> dict[str, Any]:
    """A blosc codec for four-byte elements."""
    return {
        "name": "blosc",
        "configuration": {"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": blocksize},
    }


CODECS: dict[str, Any] = {
    "gzip": {"name": "gzip", "configuration": {"level": 1}},
    "zstd": {"name": "zstd", "configuration": {"level": 1, "checksum": True}},
    "crc32c": {"name": "crc32c"},
    **{f"blosc-{c}": blosc(c, "shuffle", 4096) for c in ("lz4", "blosclz", "zlib", "zstd", "snappy")},
    "blosc-bit": blosc("blosclz", "bitshuffle"),
    "raw": None,
}
V2_CODECS: dict[str, Any] = {"lz4": {"id": "lz4"}, "bz2": {"id": "bz2"}, "zlib": {"id": "zlib", "level": 1}}
CHECKED = {"gzip", "zstd", "crc32c", "bz2", "zlib"}
"""Formats whose checksum finds every change of the data."""


def written(path: Path, name: str, **options: Any) -> tuple[Any, Path]:
    """An array with one codec, and the file of its only chunk."""
    if name in V2_CODECS:
        options |= {"zarr_format": 2, "compressors": V2_CODECS[name]}
    else:
        options |= {"compressors": CODECS[name]}
    array = tessarr.create_array(str(path / "a"), shape=(64, 64), dtype="u4", chunks=(64, 64), **options)
    assert array.engine.name == "native"
    array[...] = VALUES
    file = next(file for file in (path / "a").rglob("*") if file.is_file() and file.name[0] not in ".z")
    np.testing.assert_array_equal(array[...], VALUES)
    return array, file


@pytest.mark.spec("V3-CHAIN-08", "V3-GZIP-04", "V3-CRC-03", "V3-CRC-04")
@pytest.mark.parametrize("name", [*CODECS, *V2_CODECS])
def test_a_truncated_or_prolonged_chunk_is_an_error(tmp_path: Path, name: str) -> None:
    array, file = written(tmp_path, name)
    data = file.read_bytes()
    for cut in {0, 1, 3, 15, 16, 17, len(data) // 2, len(data) - 5, len(data) - 1}:
        file.write_bytes(data[:cut])
        with pytest.raises(CodecError) as caught:
            array[...]
        assert caught.value.chunk == (0, 0)
        assert caught.value.path == "/"
    file.write_bytes(data + b"\0\1\2")
    with pytest.raises(CodecError):
        array[...]


@pytest.mark.parametrize("name", [*CODECS, *V2_CODECS])
def test_flipped_bits_are_errors_or_change_single_values_only_where_nothing_is_checked(
    tmp_path: Path, name: str
) -> None:
    array, file = written(tmp_path, name)
    data = bytearray(file.read_bytes())
    generator = np.random.default_rng(7)
    for _ in range(300):
        broken = data.copy()
        for at in generator.integers(0, len(data), generator.integers(1, 4)):
            broken[at] ^= 1 << generator.integers(0, 8)
        file.write_bytes(broken)
        try:
            values = array[...]
            array[3:7, ::9]
        except CodecError:
            continue
        assert values.shape == VALUES.shape
        # gzip ignores some bits of its header (time, system), and zstd none
        assert name not in CHECKED or np.array_equal(values, VALUES)


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.spec("V3-SHARD-12", "V3-SHARD-18")
def test_a_broken_shard_is_an_error(tmp_path: Path, location: str) -> None:
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [16, 16],
            "codecs": [little, {"name": "crc32c"}],
            "index_codecs": [little, {"name": "crc32c"}],
            "index_location": location,
        },
    }
    path = str(tmp_path / "a")
    array = tessarr.create_array(
        path, shape=(64, 64), dtype="u4", chunks=(64, 64), serializer=sharding, compressors=None
    )
    array[...] = VALUES
    file = tmp_path / "a" / "c" / "0" / "0"
    data = bytearray(file.read_bytes())
    for cut in (0, 1, 100, 16 * 16 + 3, len(data) - 1):
        file.write_bytes(data[:cut])
        with pytest.raises(ShardIndexError):
            array[...]
        with pytest.raises(BaseZarrError):
            array[3, 3] = 5
        assert file.read_bytes() == data[:cut]
    generator = np.random.default_rng(3)
    for _ in range(300):
        broken = data.copy()
        broken[generator.integers(0, len(data))] ^= 1 << generator.integers(0, 8)
        file.write_bytes(broken)
        with pytest.raises((ShardIndexError, ChecksumError)):
            array[...]


@pytest.mark.parametrize(
    "entry",
    [
        (0, 2**64 - 1),
        (2**64 - 1, 1024),
        (2**63, 1024),
        (2**64 - 100, 1024),
        (10**6, 1024),
        (0, 0),
        (0, 1023),
        (15500, 1024),
    ],
)
@pytest.mark.spec("V3-SHARD-12")
def test_an_impossible_index_entry_is_an_error(tmp_path: Path, entry: tuple[int, int]) -> None:
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    configuration = {"chunk_shape": [16, 16], "codecs": [little], "index_codecs": [little]}
    sharding = {"name": "sharding_indexed", "configuration": configuration}
    path = str(tmp_path / "a")
    array = tessarr.create_array(
        path, shape=(64, 64), dtype="u4", chunks=(64, 64), serializer=sharding, compressors=None
    )
    array[...] = VALUES
    file = tmp_path / "a" / "c" / "0" / "0"
    data = file.read_bytes()
    file.write_bytes(data[:-256] + np.array(entry, "<u8").tobytes() + data[-240:])
    with pytest.raises(ShardIndexError):
        array[0, 0]
    np.testing.assert_array_equal(array[16:, 16:], VALUES[16:, 16:])


def test_a_huge_declared_size_is_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    array, file = written(tmp_path, "blosc-lz4")
    data = bytearray(file.read_bytes())
    data[4:8] = (2**31 - 100).to_bytes(4, "little")
    file.write_bytes(data)
    with pytest.raises(CodecError, match="wrong size"):
        array[...]


def test_a_missing_chunk_is_an_error_where_that_is_asked_for(tmp_path: Path) -> None:
    array = tessarr.create_array(
        str(tmp_path / "a"), shape=(4,), chunks=(2,), dtype="u1", config={"read_missing_chunks": False}
    )
    assert array.engine.name == "native"
    with pytest.raises(ChunkNotFoundError) as caught:
        array[3]
    assert caught.value.chunk == (1,)
    assert caught.value.key == "c/1"


@pytest.mark.parametrize(
    "binding",
    [
        "",
        "{",
        "[]",
        "null",
        '{"shape": [-1]}',
        '{"shape": [1e400]}',
        "[" * 100_000,
        '{"shape": [1], "axes": [{"size": 0}]}',
    ],
)
def test_a_malformed_description_is_refused(binding: str) -> None:
    with pytest.raises(_native.NativeError):
        _native.Array(binding)


def test_selections_that_do_not_fit_are_refused_before_memory_is_touched(tmp_path: Path) -> None:
    array, _ = written(tmp_path, "raw")
    handle = NativeEngine()._bind(array._bound).array
    good = np.empty((64, 64), "u4")
    for dims, out in [
        ((slice(0, 64, 1), slice(0, 63, 1)), good),
        ((slice(0, 64, 1),), good),
        ((slice(0, 64, 1), np.array([0, 64])), np.empty((64, 2), "u4")),
        ((slice(0, 64, 1), np.array([0, -1])), np.empty((64, 2), "u4")),
        ((slice(0, 64, 1), slice(0, 64, 1)), np.empty((64, 64), "u2")),
    ]:
        with pytest.raises(ValueError, match=r".+"):
            handle.read(dims, False, out)
    for coords, points in [
        ((np.array([0, 1]),), np.empty(2, "u4")),
        ((np.array([0, 1]), np.array([0])), np.empty(2, "u4")),
        ((np.array([0, 64]), np.array([0, 0])), np.empty(2, "u4")),
        ((np.array([0, 1]), np.array([0, 0])), np.empty((2, 1), "u4")),
        ((np.array([0, 1]), slice(0, 2, 1)), np.empty(2, "u4")),
    ]:
        with pytest.raises((ValueError, TypeError, BufferError), match=r".+"):
            handle.read(coords, True, points)
    frozen = np.empty((64, 64), "u4")
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        NativeEngine().read(array._bound, Outer((slice(0, 64, 1),) * 2), frozen)


@pytest.mark.parametrize("many", [0, 3, 5])
def test_a_store_that_answers_another_number_of_values_is_an_error(many: int) -> None:
    class Wrong(LoggingStore):
        def fetch(self, requests: Any) -> Any:
            values = super().fetch(requests)
            return (values * 2)[:many] if requests[0].key.startswith("c/") else values

    memory = MemoryStore()
    array = tessarr.create_array(memory, shape=(8, 8), chunks=(4, 4), dtype="u1")
    array[...] = 1
    array = tessarr.open_array(Wrong(memory), mode="r")
    with pytest.raises(StoreError, match="another number of responses") as caught:
        array[...]
    assert (caught.value.expected, caught.value.got) == ("4", str(many))


@pytest.mark.parametrize("many", [0, 2, 9])
def test_a_store_that_answers_another_number_of_documents_is_an_error(many: int) -> None:
    class Wrong(LoggingStore):
        def fetch(self, requests: Any) -> Any:
            return (super().fetch(requests) * 3)[:many]

    memory = MemoryStore()
    tessarr.create_array(memory, shape=(8, 8), chunks=(4, 4), dtype="u1")
    for opened in (tessarr.open, tessarr.open_array, tessarr.open_group):
        with pytest.raises(StoreError, match="another number of responses") as caught:
            opened(Wrong(memory), mode="r")
        assert caught.value.got == str(many)


def test_damage_in_any_block_of_a_large_blosc_chunk_is_an_error(tmp_path: Path) -> None:
    values = (np.arange(1 << 20).reshape(1024, 1024) // 5 % 300).astype("u4")
    codec = blosc("zstd", "shuffle")
    array = tessarr.create_array(
        str(tmp_path / "a"), shape=(1024, 1024), dtype="u4", chunks=(1024, 1024), compressors=codec
    )
    array[...] = values
    np.testing.assert_array_equal(array[...], values)
    file = tmp_path / "a" / "c" / "0" / "0"
    data = file.read_bytes()
    blocks = int.from_bytes(data[4:8], "little") // int.from_bytes(data[8:12], "little")
    assert blocks > 3, "the blocks must be enough for several threads"
    for block in (0, 1, blocks - 1):
        start = int.from_bytes(data[16 + 4 * block : 20 + 4 * block], "little")
        file.write_bytes(data[: start + 4] + b"\xff" * 4 + data[start + 8 :])  # the magic number of a zstd frame
        with pytest.raises(CodecError, match="zstd stream") as error:
            array[...]
        assert error.value.chunk == (0, 0)
    file.write_bytes(data)
    np.testing.assert_array_equal(array[...], values)


@pytest.mark.parametrize("shards", [None, (64, 64)])
def test_a_single_element_is_read_checked_and_revalidated(tmp_path: Path, shards: Any) -> None:
    array = tessarr.create_array(
        str(tmp_path / "a"), shape=(100, 100), dtype="u4", chunks=(32, 32), shards=shards, fill_value=9
    )
    assert array.engine.name == "native"
    array[:64, :64] = VALUES
    for _ in range(3):  # from the file, into the cache, out of it
        for at in [(0, 0), (33, 5), (-100, -99), (63, 63)]:
            element = array[at]
            assert (type(element), element) == (np.uint32, VALUES[at[0] % 100, at[1] % 100])
    assert array[99, 99] == 9
    array[33, 5] = 7
    assert array[33, 5] == 7
    for outside in [(100, 0), (0, -101), (2**70, 0)]:
        with pytest.raises(IndexError):
            array[outside]
    for file in (tmp_path / "a" / "c").rglob("*"):
        if file.is_file():
            file.write_bytes(b"x" * 7)
    with pytest.raises(BaseZarrError):
        array[33, 5]


def test_files_of_replaced_shards_do_not_stay_open(tmp_path: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("open files are counted under /proc, which only Linux has")
    array = tessarr.create_array(
        str(tmp_path / "a"), shape=(1024, 1024), dtype="u4", chunks=(64, 64), shards=(1024, 1024), compressors=None
    )
    array[...] = np.arange(1 << 20, dtype="u4").reshape(1024, 1024)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(20):
        array[64:128, 64:128] = number
    # They are closed by another thread.
    until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before, "the files are closed")
    assert array[100, 100] == 19


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_chunk_larger_than_memory_is_an_error_and_does_not_end_the_process(zarr_format: int) -> None:
    z = tessarr.create_array({}, shape=(4,), chunks=(10**13,), dtype="<i4", compressors=None, zarr_format=zarr_format)
    assert z.engine.name == "reference"
    with pytest.raises(MemoryError):
        z[1] = 1
    assert z[:].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ["gzip", "zlib", "zstd", "lz4", "bz2"])
@pytest.mark.parametrize("part", [slice(None), slice(3, 5)], ids=["whole", "part"])
def test_data_that_cannot_fill_a_chunk_are_refused_before_memory_is_taken_for_it(
    tmp_path: Path, name: str, part: slice
) -> None:
    codecs = {"gzip": {"id": "gzip"}, "zstd": {"id": "zstd"}, **V2_CODECS}
    array = tessarr.create_array(
        str(tmp_path / "a"), shape=(64,), dtype="u1", chunks=(64,), zarr_format=2, compressors=codecs[name]
    )
    array[...] = 1
    document = tmp_path / "a" / ".zarray"
    fields = json.loads(document.read_text(encoding="utf-8"))
    document.write_text(json.dumps({**fields, "chunks": [2**31]}), encoding="utf-8")
    damaged = tessarr.open_array(str(tmp_path / "a"), mode="r")
    assert damaged.engine.name == "native"
    for _ in range(3):  # the chunk is kept from the second time on
        with pytest.raises(CodecError, match="expected 2147483648 bytes; got at most"):
            damaged[part]
