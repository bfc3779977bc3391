"""Codecs with ids ``imagecodecs_…``, which write the same bytes as other codecs of tessarr with another configuration.

Source: imagecodecs 2026.3, "numcodecs.py"; tifffile and kerchunk write them. A ``level`` of null is the library's default.
Other ids of imagecodecs are looked up in numcodecs' registry, where that package adds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from tessarr.codecs.bytes_to_bytes.blosc import SHUFFLES
from tessarr.codecs.bytes_to_bytes.lzw import LzwCodec
from tessarr.codecs.members import Check, boolean, choice, integer, optional
from tessarr.codecs.numcodecs import coders
from tessarr.codecs.numcodecs.coders import Bytes, Coder
from tessarr.errors import MetadataValidationError, Problem
from tessarr.types import JSON, AnyArray, Buffer

_LEVEL: Check = optional(integer(-(1 << 17), 22))
_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
"""Compressors of c-blosc, by its numbers."""


class Imagecodecs(Coder):
    """Delegate an id of imagecodecs to the coder that writes the same bytes."""

    checks: ClassVar[Mapping[str, Check]] = {"level": _LEVEL}
    defaults: ClassVar[Mapping[str, JSON]] = {"level": None}
    _inner: Coder

    def __init__(self, config: Mapping[str, JSON]) -> None:
        super().__init__(config)
        self._inner = self.inner()

    def inner(self) -> Coder:
        """Make the coder that does the work."""
        raise NotImplementedError

    def _clamped(self, low: int, high: int, default: int) -> int:
        level = self.members["level"]
        return default if level is None else min(max(level, low), high)

    def encoded_size(self, nbytes: int) -> int | None:
        return self._inner.encoded_size(nbytes)

    def encode(self, data: AnyArray) -> Buffer:
        return self._inner.encode(data)

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        return self._inner.decode(data, nbytes)

    def decode_into(self, data: Bytes, out: Bytes) -> bool:
        return self._inner.decode_into(data, out)


class Zlib(Imagecodecs):
    """``imagecodecs_zlib``."""

    codec_id = "imagecodecs_zlib"

    def inner(self) -> Coder:
        return coders.Zlib({"level": self._clamped(0, 9, 6)})


class Deflate(Zlib):
    """``imagecodecs_deflate``, written with libdeflate there; refused without the zlib container (``raw``)."""

    codec_id = "imagecodecs_deflate"
    checks: ClassVar[Mapping[str, Check]] = {"level": _LEVEL, "raw": boolean}
    defaults: ClassVar[Mapping[str, JSON]] = {"level": None, "raw": False}

    def inner(self) -> Coder:
        if self.members["raw"]:
            problem = Problem(("raw",), "unsupported", "streams without a container are read by imagecodecs only")
            raise MetadataValidationError("invalid imagecodecs_deflate codec", [problem], codec=self.codec_id)
        return super().inner()


class Zstd(Imagecodecs):
    """``imagecodecs_zstd``."""

    codec_id = "imagecodecs_zstd"

    def inner(self) -> Coder:
        return coders.Zstd({"level": self._clamped(-(1 << 17), 22, 5)})


class BZ2(Imagecodecs):
    """``imagecodecs_bz2``."""

    codec_id = "imagecodecs_bz2"

    def inner(self) -> Coder:
        return coders.BZ2({"level": self._clamped(1, 9, 9)})


class LZMA(Imagecodecs):
    """``imagecodecs_lzma``."""

    codec_id = "imagecodecs_lzma"
    checks: ClassVar[Mapping[str, Check]] = {"level": _LEVEL, "check": optional(integer(-1, 15))}
    defaults: ClassVar[Mapping[str, JSON]] = {"level": None, "check": None}

    def inner(self) -> Coder:
        check = self.members["check"]
        return coders.LZMA({"preset": self._clamped(0, 9, 6), "check": -1 if check is None else check})


class LZ4(Imagecodecs):
    """``imagecodecs_lz4``: one block, after its size if ``header`` is true."""

    codec_id = "imagecodecs_lz4"
    checks: ClassVar[Mapping[str, Check]] = {"level": _LEVEL, "hc": boolean, "header": boolean}
    defaults: ClassVar[Mapping[str, JSON]] = {"level": None, "hc": False, "header": False}

    def inner(self) -> Coder:
        return coders.LZ4({})

    def encode(self, data: AnyArray) -> Buffer:
        packed = super().encode(data)
        return packed if self.members["header"] else bytes(memoryview(packed).cast("B")[4:])

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        if self.members["header"]:
            return super().decode(data, nbytes)
        size = 255 * len(data) if nbytes is None else nbytes
        return super().decode(np.concatenate([np.frombuffer(size.to_bytes(4, "little"), np.uint8), data]), size)

    def decode_into(self, data: Bytes, out: Bytes) -> bool:
        return bool(self.members["header"]) and super().decode_into(data, out)


class Blosc(Imagecodecs):
    """``imagecodecs_blosc``."""

    codec_id = "imagecodecs_blosc"
    checks: ClassVar[Mapping[str, Check]] = {
        "level": _LEVEL,
        "compressor": lambda value: None if isinstance(value, int) else optional(choice(*_COMPRESSORS))(value),
        "shuffle": lambda value: None if isinstance(value, int) else optional(choice(*SHUFFLES))(value),
        "typesize": optional(integer(1)),
        "blocksize": optional(integer(0)),
        "numthreads": optional(integer(0)),
    }
    defaults: ClassVar[Mapping[str, JSON]] = dict.fromkeys(checks)

    def inner(self) -> Coder:
        members = self.members
        named, shuffle = members["compressor"] or "blosclz", members["shuffle"]
        cname = _COMPRESSORS[named % len(_COMPRESSORS)] if isinstance(named, int) else named
        return coders.Blosc(
            {
                "cname": cname,
                "clevel": self._clamped(0, 9, 9),
                "shuffle": min(max(shuffle, 0), 2)
                if isinstance(shuffle, int)
                else SHUFFLES.index(shuffle or "shuffle"),
                "blocksize": members["blocksize"] or 0,
                "typesize": members["typesize"],
            }
        )


class LZW(Coder):
    """``imagecodecs_lzw``."""

    codec_id = "imagecodecs_lzw"

    def encode(self, data: AnyArray) -> Buffer:
        return LzwCodec().encode(data)

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        return LzwCodec().decode(data, nbytes)
