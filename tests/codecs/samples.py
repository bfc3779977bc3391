"""One sample of every codec, and chunks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tessarr import codecs
from tessarr.codecs import numcodecs
from tessarr.codecs.array_to_array.singleton_dim import SqueezeCodec
from tessarr.codecs.base import BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.bytes_to_bytes.lz4java import Lz4JavaCodec
from tessarr.codecs.numcodecs.objects import ObjectCodec
from tessarr.codecs.numcodecs.v2 import UnknownV2Codec, V2Codec
from tessarr.codecs.raw import flat_bytes
from tessarr.dtypes.parse import from_v3
from tessarr.types import JSON


def spec_of(data_type: JSON, shape: tuple[int, ...], fill: Any = None) -> ChunkSpec:
    """The spec of a chunk; `fill` defaults to the type's own."""
    made = from_v3(data_type)
    return ChunkSpec(shape, made, made.default_fill() if fill is None else made.cast_fill(fill))


def numbers(data_type: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Small numbers that every numeric type but the smallest holds."""
    count = int(np.prod(shape))
    return (np.arange(count) * 7 % 101).astype(from_v3(data_type).dtype).reshape(shape)


def configuration_of(codec: Codec) -> dict[str, Any]:
    """The configuration in the v3 document of a codec."""
    found = codec.to_json()["configuration"]
    assert isinstance(found, dict)
    return found


def data(encoded: Any) -> bytes:
    """The bytes of any buffer."""
    return flat_bytes(encoded).tobytes()


def v2_of(codec: object) -> Any:
    """The v2 configuration of a codec that has one."""
    assert isinstance(codec, V2Codec | UnknownV2Codec | ObjectCodec), codec
    return codec.to_v2()


class BytesSample(NamedTuple):
    """A bytes → bytes codec."""

    make: Callable[[], BytesToBytes]
    detects: bool = True
    """Whether damage to its length shows (a filter without redundancy shows it by size only)."""


def _v2(config: dict[str, Any]) -> Callable[[], BytesToBytes]:
    return lambda: numcodecs.v2_compressor(config)


BYTES: dict[str, BytesSample] = {
    "gzip": BytesSample(lambda: codecs.GzipCodec(level=5)),
    "gzip-stored": BytesSample(lambda: codecs.GzipCodec(level=0)),
    "zstd": BytesSample(lambda: codecs.ZstdCodec(level=3)),
    "zstd-checksum": BytesSample(lambda: codecs.ZstdCodec(level=-5, checksum=True)),
    **{
        f"blosc-{cname}": BytesSample(lambda cname=cname: codecs.BloscCodec(4, cname, 5, "shuffle"))  # type: ignore[misc]
        for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib")
    },
    "blosc-stored": BytesSample(lambda: codecs.BloscCodec(4, "lz4", 0, "noshuffle")),
    "blosc-blocks": BytesSample(lambda: codecs.BloscCodec(4, "zstd", 5, "bitshuffle", 256)),
    "crc32c": BytesSample(codecs.Crc32cCodec),
    "conditional": BytesSample(lambda: codecs.ConditionalCodec((codecs.GzipCodec(level=1),))),
    "conditional-always": BytesSample(
        lambda: codecs.ConditionalCodec((codecs.GzipCodec(level=1), codecs.Crc32cCodec()), 16, "always")
    ),
    "conditional-never": BytesSample(lambda: codecs.ConditionalCodec((codecs.GzipCodec(level=1),), policy="never")),
    "pad-start": BytesSample(lambda: codecs.PadCodec("start", b"header")),
    "pad-end": BytesSample(lambda: codecs.PadCodec("end", bytes(5))),
    "lz4java": BytesSample(Lz4JavaCodec),
    "lz4java-blocks": BytesSample(lambda: Lz4JavaCodec(64)),
    **{
        f"v2-{config['id']}-{index}": BytesSample(_v2(config))
        for index, config in enumerate[dict[str, Any]](
            [
                {"id": "blosc"},
                {"id": "blosc", "shuffle": -1},
                {"id": "zstd", "level": 1},
                {"id": "gzip", "level": 1},
                {"id": "zlib", "level": 1},
                {"id": "bz2", "level": 1},
                {"id": "lzma"},
                {"id": "lzma", "format": 2},
                {"id": "lzma", "format": 3, "filters": [{"id": 33, "preset": 1}]},
                {"id": "lz4"},
                {"id": "crc32"},
                {"id": "crc32", "location": "end"},
                {"id": "crc32c"},
                {"id": "adler32"},
                {"id": "fletcher32"},
                {"id": "jenkins_lookup3", "initval": 7},
                {"id": "shuffle", "elementsize": 4},
                {"id": "base64"},
                {"id": "delta", "dtype": "<i4"},
                {"id": "delta", "dtype": "<i4", "astype": "<i8"},
                {"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<i4"},
            ]
        )
    },
    "v3-numcodecs.zlib": BytesSample(lambda: numcodecs.Zlib(level=5)),
    "v3-numcodecs.lz4": BytesSample(lambda: numcodecs.LZ4()),
    "v3-numcodecs.shuffle": BytesSample(lambda: numcodecs.Shuffle(elementsize=4)),
}

ARRAYS: dict[str, tuple[Callable[[], Codec], str]] = {
    "packbits": (codecs.PackBitsCodec, "int16"),
    "packbits-part": (lambda: codecs.PackBitsCodec("last_byte", 0, 6), "uint16"),
    "bitround": (lambda: codecs.BitRoundCodec(23), "float32"),
    "scale_offset": (lambda: codecs.ScaleOffsetCodec(offset=3, scale=2), "int32"),
    "cast_value": (lambda: codecs.CastValueCodec(data_type="int8"), "float64"),
    "reshape": (lambda: codecs.ReshapeCodec(((0, 1), -1)), "int32"),
    "singleton_dim": (lambda: codecs.SingletonDimCodec((("insert", 0), ("insert", 4), ("remove", 0))), "int16"),
    "zarrs.squeeze": (SqueezeCodec, "int16"),
    "zfp": (codecs.ZfpCodec, "float32"),
    "zfp-int8": (codecs.ZfpCodec, "int8"),
    "zfp-uint16": (codecs.ZfpCodec, "uint16"),
    "zfp-uint64": (codecs.ZfpCodec, "uint64"),
    "zfp-float16": (codecs.ZfpCodec, "float16"),
    "zfp-accuracy": (lambda: codecs.ZfpCodec("fixed_accuracy", tolerance=0.0001), "float64"),
    "n5_default": (
        lambda: codecs.N5DefaultCodec((codecs.TransposeCodec((2, 1, 0)), codecs.BytesCodec("big"))),
        "int32",
    ),
    "n5_default-gzip": (
        lambda: codecs.N5DefaultCodec(
            (codecs.TransposeCodec((2, 1, 0)), codecs.BytesCodec("big"), codecs.GzipCodec(level=1))
        ),
        "float64",
    ),
    "tessarr.clipped": (lambda: codecs.ClippedCodec((codecs.BytesCodec("big"), codecs.GzipCodec(level=1))), "int16"),
    "tessarr.compressed_segmentation": (lambda: codecs.CompressedSegmentationCodec((3, 2, 1)), "uint32"),
    "tessarr.compressed_segmentation-64": (lambda: codecs.CompressedSegmentationCodec((8, 8, 8)), "uint64"),
    "n5_varlen": (lambda: codecs.N5VarlenCodec((codecs.BytesCodec("big"), codecs.GzipCodec(level=1))), "int32"),
    "transpose": (lambda: codecs.TransposeCodec((2, 0, 1)), "int32"),
    "bytes": (lambda: codecs.BytesCodec("big"), "int32"),
    "numcodecs.delta": (lambda: numcodecs.Delta(dtype="<i4"), "int32"),
    "numcodecs.astype": (lambda: numcodecs.AsType(encode_dtype="<i2", decode_dtype="<i4"), "int32"),
    "numcodecs.fixedscaleoffset": (
        lambda: numcodecs.FixedScaleOffset(scale=2, offset=1, dtype="<f8", astype="<i2"),
        "float64",
    ),
    "numcodecs.quantize": (lambda: numcodecs.Quantize(digits=3, dtype="<f8"), "float64"),
    "numcodecs.bitround": (lambda: numcodecs.BitRound(keepbits=20), "float32"),
    "numcodecs.pcodec": (numcodecs.PCodec, "float32"),
    "numcodecs.zfpy": (lambda: numcodecs.ZFPY(mode=4, tolerance=0.0001), "float64"),
}
"""Codecs that take arrays, with a data type they apply to; they give back `numbers` without loss (zfpy: nearly)."""
