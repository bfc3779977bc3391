"""Elements of other packages' dtypes through the ``bytes`` codec, wherever their bytes go next."""

from __future__ import annotations

import numpy as np
import pytest

import tessarr

NAMES = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
    "int2",
    "int4",
    "uint2",
    "uint4",
    "complex_float16",
    "complex_float8_e5m2",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shards", [None, (4,)])
@pytest.mark.parametrize("compressors", [None, "crc32c", "blosc", "gzip"])
def test_elements_that_numpy_lacks_reach_every_codec(
    name: str, shards: tuple[int, ...] | None, compressors: str | None
) -> None:
    z = tessarr.create_array({}, shape=(6,), chunks=(2,), shards=shards, dtype=name, compressors=compressors)
    values = np.zeros(6, z.dtype)
    values[1:3] = np.ones(2, z.dtype)
    z[:] = values
    z[5] = values[1]
    values[5] = values[1]
    assert z[:].tobytes() == values.tobytes()


def test_a_shard_of_small_floats_may_have_codecs_around_it() -> None:
    inner = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2], "codecs": ["bytes"], "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }}  # fmt: skip
    with pytest.warns(tessarr.errors.ZarrUserWarning):
        z = tessarr.create_array({}, shape=(4,), chunks=(4,), dtype="float8_e5m2", serializer=inner, compressors="gzip")
    z[:] = np.arange(4).astype(z.dtype)
    assert z[:].astype("f4").tolist() == [0, 1, 2, 3]
