"""The ``numcodecs.<id>`` codecs of Zarr v3: numcodecs under the unregistered names that zarr-python writes.

>>> Zlib(level=5).to_json()
{'name': 'numcodecs.zlib', 'configuration': {'level': 5}}

The configuration is that of numcodecs without the id. Options that follow from the array (``dtype``, ``elementsize``)
may be left out and are filled in when an array is created. Elements reach the filters in C order.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.numcodecs.coders import Coder
from tessarr.codecs.numcodecs.elements import ElementCoder
from tessarr.codecs.numcodecs.pcodec import PCodec as _PCodec
from tessarr.codecs.numcodecs.table import make_coder, refuse_pickle, unknown
from tessarr.codecs.numcodecs.zfpy import ZFPY as _ZFPY
from tessarr.codecs.raw import flat_bytes
from tessarr.common.warn import warn_as_zarr_python
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.types import JSON, AnyArray, AnyDType, Buffer, JSONObject

ZARR_PYTHON_WARNS = sys.version_info < (3, 12)
"""Whether zarr-python warns of these codecs: up to 3.1, its last release for CPython 3.11, and no longer from 3.2 on."""


class NumcodecsCodec(Codec):
    """Base class of the codecs of all three kinds. Immutable, equal by configuration."""

    codec_id: ClassVar[str]
    coder: Coder

    def __init__(self, **configuration: object) -> None:
        """Validate the configuration. Raises `MetadataValidationError` for members that the numcodecs codec does not
        have.
        """
        if configuration.get("id", self.codec_id) != self.codec_id:
            problem = Problem(("id",), "value", f"must be {self.codec_id!r}, got {configuration['id']!r}")
            raise MetadataValidationError(f"invalid {self.name} codec", [problem])
        members = {name: _plain(value) for name, value in configuration.items() if name != "id"}
        self.coder = make_coder(self.codec_id, members)
        if ZARR_PYTHON_WARNS:
            warn_as_zarr_python(
                "Numcodecs codecs are not in the Zarr version 3 specification and may not be supported by other zarr "
                "implementations.",
                module="zarr.codecs.numcodecs._codecs",
            )

    def __init_subclass__(cls, *, codec_name: str | None = None) -> None:
        """Name the codec. `codec_name` is the id, given as packages for zarr-python give it."""
        if codec_name is not None:
            cls.codec_id = codec_name
        if "codec_id" in cls.__dict__:
            cls.name = cls.codec_id if cls.codec_id.startswith("imagecodecs_") else f"numcodecs.{cls.codec_id}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and type(self) is type(other) and self.coder.members == other.coder.members

    def __hash__(self) -> int:
        return hash((self.name, repr(sorted(self.coder.members.items(), key=lambda item: item[0]))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.coder.config.items())})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self).from_json, (self.coder.config,)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**configuration)

    @property
    def is_foreign(self) -> bool:
        return self.coder.is_foreign

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": dict(self.coder.config)}

    @property
    def codec_config(self) -> JSONObject:
        """The configuration with its ``id``, as numcodecs spells it."""
        return {"id": self.codec_id, **self.coder.config}

    def fit(self, spec: ChunkSpec) -> Self:
        """Add the members that follow from the elements."""
        missing: dict[str, object] = {}
        if isinstance(self.coder, ElementCoder) and self.coder.members.get(self.coder.decoded_member) is None:
            missing[self.coder.decoded_member] = spec.dtype.str
        if self.codec_id == "shuffle" and self.coder.config.get("elementsize") is None:
            missing["elementsize"] = spec.data_type.itemsize or 1
        return type(self)(**{**self.coder.config, **missing}) if missing else self


def _plain(value: object) -> object:
    if isinstance(value, np.dtype):
        return value.str
    return value.item() if isinstance(value, np.generic) else value


class _Bytes(NumcodecsCodec, BytesToBytes):
    def encoded_size(self, nbytes: int) -> int | None:
        return self.coder.encoded_size(nbytes)

    def encode(self, data: Buffer) -> Buffer:
        return self.coder.encode(data if isinstance(data, np.ndarray) else flat_bytes(data))

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        return self.coder.decode(flat_bytes(data), nbytes)

    def decode_into(self, data: Buffer, out: memoryview) -> bool:
        return self.coder.decode_into(flat_bytes(data), flat_bytes(out))


class _Elements(NumcodecsCodec, ArrayToArray):
    """Map elements to as many elements."""

    def _types(self, spec: ChunkSpec) -> tuple[AnyDType, AnyDType]:
        """Return the dtypes of the coder's input and output."""
        if not isinstance(self.coder, ElementCoder):
            return spec.dtype, spec.dtype
        if self.coder.members.get(self.coder.decoded_member) is None:
            fitted = self.fit(spec).coder
            assert isinstance(fitted, ElementCoder)  # the same class as self.coder
            return fitted.decoded, fitted.encoded
        return self.coder.decoded, self.coder.encoded

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        from tessarr.dtypes.parse import from_numpy

        taken, given = self._types(spec)
        if taken.newbyteorder("=") != spec.dtype.newbyteorder("="):
            raise CodecError(
                f"the {self.name} codec is configured for other elements",
                codec=self.name,
                expected=str(taken),
                got=str(spec.dtype),
            )
        data_type = spec.data_type if given == taken else from_numpy(given.newbyteorder("="))
        if self.codec_id == "delta":  # a fill value has no difference
            return spec.with_(data_type=data_type, fill=data_type.default_fill())
        with np.errstate(all="ignore"):
            fill = self.encode(spec.fill.reshape(1), spec).astype(data_type.dtype).reshape(())
        return spec.with_(data_type=data_type, fill=fill)

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        taken, given = self._types(spec)
        coder = self.coder if self.coder.members else self.fit(spec).coder
        encoded = coder.encode(np.ascontiguousarray(chunk, taken))
        return flat_bytes(encoded).view(given).reshape(chunk.shape)

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        taken, given = self._types(spec)
        flat = flat_bytes(np.ascontiguousarray(chunk, given))
        decoded = self.fit(spec).coder.decode(flat, prod(chunk.shape) * taken.itemsize)
        return flat_bytes(decoded).view(taken).reshape(chunk.shape)


class _Numbers(NumcodecsCodec, ArrayToBytes):
    """Compress numbers by their values."""

    def encoded_size(self, spec: ChunkSpec) -> None:
        kinds = ("i4", "i8", "f4", "f8") if self.codec_id == "zfpy" else ()
        known = spec.dtype.str[1:] in kinds if kinds else spec.dtype.kind in "iuf" and spec.dtype.itemsize in (2, 4, 8)
        if not known or (kinds and not 1 <= len(spec.shape) <= 4):
            raise CodecError(
                f"the {self.name} codec cannot store such chunks", codec=self.name, got=spec.data_type.name
            )

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        return self.coder.encode(np.ascontiguousarray(chunk))

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        native = spec.dtype.newbyteorder("=")
        if not isinstance(self.coder, _PCodec | _ZFPY):
            raise unknown(self.codec_id)
        decoded = self.coder.decode(flat_bytes(data), spec.nbytes, native)
        return flat_bytes(decoded).view(native).reshape(spec.shape)


class Blosc(_Bytes):
    """``numcodecs.blosc``."""

    codec_id = "blosc"


class LZ4(_Bytes):
    """``numcodecs.lz4``."""

    codec_id = "lz4"


class Zstd(_Bytes):
    """``numcodecs.zstd``."""

    codec_id = "zstd"


class Zlib(_Bytes):
    """``numcodecs.zlib``."""

    codec_id = "zlib"


class GZip(_Bytes):
    """``numcodecs.gzip``."""

    codec_id = "gzip"


class BZ2(_Bytes):
    """``numcodecs.bz2``."""

    codec_id = "bz2"


class LZMA(_Bytes):
    """``numcodecs.lzma``."""

    codec_id = "lzma"


class Shuffle(_Bytes):
    """``numcodecs.shuffle``."""

    codec_id = "shuffle"


class Base64(_Bytes):
    """``numcodecs.base64``."""

    codec_id = "base64"


class CRC32(_Bytes):
    """``numcodecs.crc32``."""

    codec_id = "crc32"


class CRC32C(_Bytes):
    """``numcodecs.crc32c``."""

    codec_id = "crc32c"


class Adler32(_Bytes):
    """``numcodecs.adler32``."""

    codec_id = "adler32"


class Fletcher32(_Bytes):
    """``numcodecs.fletcher32``."""

    codec_id = "fletcher32"


class JenkinsLookup3(_Bytes):
    """``numcodecs.jenkins_lookup3``."""

    codec_id = "jenkins_lookup3"


class Delta(_Elements):
    """``numcodecs.delta``."""

    codec_id = "delta"


class FixedScaleOffset(_Elements):
    """``numcodecs.fixedscaleoffset``."""

    codec_id = "fixedscaleoffset"


class Quantize(_Elements):
    """``numcodecs.quantize``."""

    codec_id = "quantize"


class BitRound(_Elements):
    """``numcodecs.bitround``."""

    codec_id = "bitround"


class AsType(_Elements):
    """``numcodecs.astype``."""

    codec_id = "astype"


class PackBits(NumcodecsCodec, ArrayToArray):
    """``numcodecs.packbits``: booleans as a flat array of bytes, the first element in the highest bit."""

    codec_id = "packbits"

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        from tessarr.dtypes.parse import from_numpy

        if spec.dtype != np.dtype(bool):
            raise CodecError("packbits needs booleans", codec=self.name, expected="bool", got=spec.data_type.name)
        data_type = from_numpy(np.dtype(np.uint8))
        return ChunkSpec((1 + -(-prod(spec.shape) // 8),), data_type, data_type.default_fill())

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return flat_bytes(self.coder.encode(np.ascontiguousarray(chunk)))

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        decoded = self.coder.decode(flat_bytes(chunk), prod(spec.shape))
        return flat_bytes(decoded).view(bool).reshape(spec.shape)


class PCodec(_Numbers):
    """``numcodecs.pcodec`` (extra ``codecs``)."""

    codec_id = "pcodec"


class ZFPY(_Numbers):
    """``numcodecs.zfpy`` (extra ``codecs``)."""

    codec_id = "zfpy"


class Pickle(_Bytes):
    """``numcodecs.pickle``: always refused."""

    codec_id = "pickle"

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:  # noqa: ARG003
        """Raise `PickleCodecDisabledError`."""
        refuse_pickle(cls.codec_id)
        raise unknown(cls.codec_id)


class ImagecodecsZlib(_Bytes):
    """``imagecodecs_zlib``."""

    codec_id = "imagecodecs_zlib"


class ImagecodecsDeflate(_Bytes):
    """``imagecodecs_deflate``."""

    codec_id = "imagecodecs_deflate"


class ImagecodecsZstd(_Bytes):
    """``imagecodecs_zstd``."""

    codec_id = "imagecodecs_zstd"


class ImagecodecsBZ2(_Bytes):
    """``imagecodecs_bz2``."""

    codec_id = "imagecodecs_bz2"


class ImagecodecsLZMA(_Bytes):
    """``imagecodecs_lzma``."""

    codec_id = "imagecodecs_lzma"


class ImagecodecsLZ4(_Bytes):
    """``imagecodecs_lz4``."""

    codec_id = "imagecodecs_lz4"


class ImagecodecsBlosc(_Bytes):
    """``imagecodecs_blosc``."""

    codec_id = "imagecodecs_blosc"


class ImagecodecsLZW(_Bytes):
    """``imagecodecs_lzw``."""

    codec_id = "imagecodecs_lzw"


CLASSES: dict[str, type[NumcodecsCodec]] = {
    cls.codec_id: cls
    for cls in (
        Blosc, LZ4, Zstd, Zlib, GZip, BZ2, LZMA, Shuffle, Base64, CRC32, CRC32C, Adler32, Fletcher32, JenkinsLookup3,
        Delta, FixedScaleOffset, Quantize, BitRound, AsType, PackBits, PCodec, ZFPY,
    )
}  # fmt: skip
_OF_IMAGECODECS: dict[str, type[NumcodecsCodec]] = {
    cls.codec_id: cls
    for cls in (
        ImagecodecsZlib, ImagecodecsDeflate, ImagecodecsZstd, ImagecodecsBZ2, ImagecodecsLZMA, ImagecodecsLZ4,
        ImagecodecsBlosc, ImagecodecsLZW,
    )
}  # fmt: skip


def v3_codec(config: Mapping[str, Any]) -> Codec:
    """Make the v3 codec for a numcodecs configuration with an id; that of the specification where the bytes are
    equal.
    """
    from tessarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, VLenBytesCodec, VLenUTF8Codec, ZstdCodec
    from tessarr.codecs.bytes_to_bytes.blosc import SHUFFLES

    codec_id = config["id"]
    refuse_pickle(codec_id)
    members = {name: value for name, value in config.items() if name != "id"}
    if codec_id == "gzip":
        return GzipCodec(**members)
    if codec_id == "zstd":
        return ZstdCodec(**members)
    if codec_id == "crc32c" and members.get("location") in (None, "end"):
        return Crc32cCodec()
    if codec_id == "blosc":
        known = make_coder(codec_id, members).members
        shuffle = None if known["shuffle"] < 0 else SHUFFLES[known["shuffle"]]
        return BloscCodec(known.get("typesize"), known["cname"], known["clevel"], shuffle, known["blocksize"])
    if codec_id in ("vlen-utf8", "vlen-bytes"):
        return VLenUTF8Codec() if codec_id == "vlen-utf8" else VLenBytesCodec()
    made = CLASSES.get(codec_id) or _OF_IMAGECODECS.get(codec_id)
    if made is None:
        raise unknown(codec_id)
    return made(**members)
