"""What the native engine writes, other implementations read; what they wrote, it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr

import tessarr

SHAPE = (70, 50, 33)
VALUES = (np.arange(np.prod(SHAPE)).reshape(SHAPE) // 3 % 5003).astype("u2")
VALUES[:20, :20] = 0
BLOSC = [
    {"name": "blosc", "configuration": {"cname": c, "clevel": 5, "shuffle": s, "typesize": 2, "blocksize": b}}
    for c in ("lz4", "lz4hc", "blosclz", "zlib", "zstd")
    for s in ("noshuffle", "shuffle", "bitshuffle")
    for b in (0, 4096)
]
CODECS: list[Any] = [
    None,
    {"name": "gzip", "configuration": {"level": 5}},
    {"name": "zstd", "configuration": {"level": 3, "checksum": True}},
    {"name": "crc32c"},
    *BLOSC,
]


def read_with_tensorstore(path: Path, driver: str) -> Any:
    """All values of an array, by TensorStore."""
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(path)}}
    return tensorstore.open(spec).result().read().result()


@pytest.mark.parametrize("shards", [None, (40, 32, 24)])
@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_peers_read_what_the_native_engine_wrote(tmp_path: Path, codec: Any, shards: Any) -> None:
    array = tessarr.create_array(
        str(tmp_path / "a"), shape=SHAPE, dtype="u2", chunks=(20, 16, 12), shards=shards, compressors=codec
    )
    assert array.engine.name == "native"
    array[...] = VALUES
    array[3:61:7, 5, ::2] = 9
    expected = VALUES.copy()
    expected[3:61:7, 5, ::2] = 9
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "a"))[...], expected)
    np.testing.assert_array_equal(read_with_tensorstore(tmp_path / "a", "zarr3"), expected)
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "a"))[...], expected)


@pytest.mark.parametrize("location", ["start", "end"])
def test_peers_read_shards_after_many_small_updates(tmp_path: Path, location: str) -> None:
    sharding = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [8, 8],
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
            ],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "index_location": location,
        },
    }
    path = str(tmp_path / "a")
    array = tessarr.create_array(
        path, shape=(60, 60), dtype="i4", chunks=(32, 32), serializer=sharding, compressors=None
    )
    assert array.engine.name == "native"
    generator = np.random.default_rng(1)
    expected = np.zeros((60, 60), "i4")
    for _ in range(60):
        i, j = generator.integers(0, 55, 2)
        value = generator.integers(0, 3, (5, 5))
        array[i : i + 5, j : j + 5] = value
        expected[i : i + 5, j : j + 5] = value
    np.testing.assert_array_equal(zarr.open_array(path)[...], expected)
    np.testing.assert_array_equal(read_with_tensorstore(tmp_path / "a", "zarr3"), expected)


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_the_native_engine_reads_what_zarr_python_wrote(tmp_path: Path, codec: Any) -> None:
    for shards in (None, (40, 32, 24)):
        path = str(tmp_path / f"{shards is None}")
        theirs = zarr.create_array(path, shape=SHAPE, dtype="u2", chunks=(20, 16, 12), shards=shards, compressors=codec)
        theirs[...] = VALUES
        ours = tessarr.open_array(path)
        assert ours.engine.name == "native"
        np.testing.assert_array_equal(ours[...], VALUES)
        np.testing.assert_array_equal(ours[3::7, 11, 2:30:5], VALUES[3::7, 11, 2:30:5])
        np.testing.assert_array_equal(ours[-1], VALUES[-1])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i4", ">i4", ">f8", "|b1", ">c16"])
def test_v2_arrays_go_to_zarr_python_and_tensorstore_and_back(tmp_path: Path, dtype: str, order: str) -> None:
    path = str(tmp_path / "a")
    array = tessarr.create_array(
        path,
        shape=SHAPE,
        dtype=dtype,
        chunks=(20, 16, 12),
        zarr_format=2,
        order=order,
        compressors={"id": "zlib", "level": 1},
    )
    assert array.engine.name == "native"
    values = VALUES.astype(dtype)
    array[...] = values
    np.testing.assert_array_equal(zarr.open_array(path)[...], values)
    if "c" not in dtype:
        np.testing.assert_array_equal(read_with_tensorstore(tmp_path / "a", "zarr"), values)
    np.testing.assert_array_equal(array[5:60:3, 7], values[5:60:3, 7])
