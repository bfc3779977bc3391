"""Encode and decode the bytes of a chunk for each numcodecs id, with sizes known before memory is allocated.

Zarr v2 (an id among ``filters`` or as ``compressor``) and v3 (``numcodecs.<id>``) share a coder. A coder
encodes a C-contiguous array of any dtype and decodes plain bytes to plain bytes. Where a codec of the specification
writes the same bytes, that codec is used; otherwise numcodecs or the standard library, behind checks.

Source: numcodecs 0.16, one module per id.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from tessarr.codecs.bytes_to_bytes import blosc, zstd
from tessarr.codecs.bytes_to_bytes.gzip import GzipCodec
from tessarr.codecs.members import Check, boolean, choice, integer, optional, read_members
from tessarr.codecs.raw import UNKNOWN_SIZE_LIMIT, checksum_error, corrupt, decompress, flat_bytes, size_error
from tessarr.errors import CodecError, TessarrError
from tessarr.types import JSON, AnyArray, Buffer

Bytes = npt.NDArray[np.uint8]
_T = TypeVar("_T")


class Coder:
    """Encode and decode for one numcodecs id and configuration. Immutable, equal by value."""

    codec_id: ClassVar[str]
    checks: ClassVar[Mapping[str, Check]] = {}
    """Checks of the members of the configuration."""
    defaults: ClassVar[Mapping[str, JSON]] = {}
    """Default members, in the order in which numcodecs writes them."""
    required: ClassVar[tuple[str, ...]] = ()
    config: dict[str, JSON]
    """The given configuration, without the id."""

    is_foreign: bool = False
    """Whether another package registered the id with numcodecs."""

    def __init__(self, config: Mapping[str, JSON]) -> None:
        """Validate the configuration. Raises `MetadataValidationError` for unknown, missing or wrong members."""
        self.config = dict(config)
        self.members: dict[str, Any] = {
            **self.defaults,
            **read_members(self.codec_id, config, self.checks, required=self.required),
        }

    def canonical(self) -> dict[str, JSON]:
        """Return the configuration as numcodecs would write it, without the id."""
        return dict(self.members)

    def encoded_size(self, nbytes: int) -> int | None:
        """Return the exact encoded size of `nbytes` bytes; ``None`` when it depends on the data."""
        return None

    def encode(self, data: AnyArray) -> Buffer:
        """Encode a C-contiguous array; elements for a following coder are returned as an array."""
        raise NotImplementedError

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        """Decode `data`; its decoded size must be `nbytes`, if given. Raises as `BytesToBytes.decode`."""
        raise NotImplementedError

    def decode_into(self, data: Bytes, out: Bytes) -> bool:
        """Decode into `out`; ``False``, having written nothing, when `decode` and a copy are as good."""
        return False


class Blosc(Coder):
    """``blosc``; ``shuffle`` −1 is bitshuffle for single bytes and shuffle otherwise."""

    codec_id = "blosc"
    checks: ClassVar[Mapping[str, Check]] = {
        "cname": choice("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"),
        "clevel": integer(0, 9),
        "shuffle": integer(-1, 2),
        "blocksize": integer(0),
        "typesize": optional(integer(1)),
    }
    defaults: ClassVar[Mapping[str, JSON]] = {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}

    def encode(self, data: AnyArray) -> Buffer:
        """Encode with the element size of `data` as the stride of the shuffle."""
        options = self.members
        typesize = options.get("typesize") or data.dtype.itemsize
        shuffle = options["shuffle"] if options["shuffle"] >= 0 else 2 if typesize == 1 else 1
        return blosc.compress(data, options["cname"], options["clevel"], shuffle, options["blocksize"], typesize)

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        return blosc.decode(data, nbytes)

    def decode_into(self, data: Bytes, out: Bytes) -> bool:
        return blosc.BloscCodec().decode_into(data, out.data)


class Zstd(Coder):
    """``zstd``."""

    codec_id = "zstd"
    checks: ClassVar[Mapping[str, Check]] = {"level": integer(-131072, 22), "checksum": boolean}
    defaults: ClassVar[Mapping[str, JSON]] = {"level": 0, "checksum": False}

    def encode(self, data: AnyArray) -> Buffer:
        return zstd.ZstdCodec(**self.members).encode(data)

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        return zstd.decode(data, nbytes)

    def decode_into(self, data: Bytes, out: Bytes) -> bool:
        return zstd.ZstdCodec().decode_into(data, out.data)


class GZip(Coder):
    """``gzip``."""

    codec_id = "gzip"
    checks: ClassVar[Mapping[str, Check]] = {"level": integer(0, 9)}
    defaults: ClassVar[Mapping[str, JSON]] = {"level": 1}

    def encode(self, data: AnyArray) -> Buffer:
        return GzipCodec(**self.members).encode(data)

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        return GzipCodec().decode(data, nbytes)


class Zlib(Coder):
    """``zlib``: deflate in the zlib container (RFC 1950)."""

    codec_id = "zlib"
    checks: ClassVar[Mapping[str, Check]] = {"level": integer(-1, 9)}
    defaults: ClassVar[Mapping[str, JSON]] = {"level": 1}

    def encode(self, data: AnyArray) -> Buffer:
        return zlib.compress(flat_bytes(data), self.members["level"])

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        return decompress("zlib", zlib.decompressobj, data, nbytes, errors=(zlib.error,), several=False)


class BZ2(Coder):
    """``bz2``."""

    codec_id = "bz2"
    checks: ClassVar[Mapping[str, Check]] = {"level": integer(1, 9)}
    defaults: ClassVar[Mapping[str, JSON]] = {"level": 1}

    def encode(self, data: AnyArray) -> Buffer:
        import bz2

        return bz2.compress(flat_bytes(data), self.members["level"])

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        import bz2

        return decompress("bz2", bz2.BZ2Decompressor, data, nbytes, errors=(OSError, ValueError), several=True)


def _filter_list(value: object) -> str | None:
    fine = isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value)
    return None if fine else f"must be a list of objects, got {value!r}"


class LZMA(Coder):
    """``lzma``: the xz, lzma (alone) or raw format. A stream may ask for at most 1 GiB of memory."""

    codec_id = "lzma"
    checks: ClassVar[Mapping[str, Check]] = {
        "format": integer(0, 3),
        "check": integer(-1, 15),
        "preset": optional(integer(0)),
        "filters": optional(_filter_list),
    }
    defaults: ClassVar[Mapping[str, JSON]] = {"format": 1, "check": -1, "preset": None, "filters": None}
    _memory = 1 << 30

    def encode(self, data: AnyArray) -> Buffer:
        import lzma

        try:
            return lzma.compress(flat_bytes(data), **self.members)
        except (lzma.LZMAError, ValueError, OverflowError) as error:
            raise CodecError(f"lzma cannot compress: {error}", codec="lzma") from error

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        import lzma

        kind, filters = self.members["format"], self.members["filters"]

        def make() -> lzma.LZMADecompressor:
            if kind == lzma.FORMAT_RAW:
                return lzma.LZMADecompressor(kind, filters=filters)
            return lzma.LZMADecompressor(kind, self._memory)

        errors = (lzma.LZMAError, EOFError, ValueError)
        return decompress("lzma", make, data, nbytes, errors=errors, several=kind != lzma.FORMAT_RAW)


class LZ4(Coder):
    """``lz4``: the decoded size as a signed 32-bit little-endian number, then one LZ4 block (no LZ4 frame)."""

    codec_id = "lz4"
    checks: ClassVar[Mapping[str, Check]] = {"acceleration": integer(-(1 << 31), (1 << 31) - 1)}
    defaults: ClassVar[Mapping[str, JSON]] = {"acceleration": 1}

    def encode(self, data: AnyArray) -> Buffer:
        from tessarr.common.numcodecs import numcodecs

        flat = flat_bytes(data)
        return as_buffer(run("lz4", lambda: numcodecs.lz4.compress(flat, self.members["acceleration"])))

    def _size(self, data: Bytes, nbytes: int | None) -> int:
        if len(data) < 5:
            raise corrupt("lz4", f"{len(data)} bytes are shorter than a size and a block")
        size = int.from_bytes(data[:4].tobytes(), "little", signed=True)
        if size < 0 or (nbytes is not None and size != nbytes):
            raise size_error("lz4", nbytes, f"{size} bytes by its header")
        if size > 255 * len(data):  # a length byte of LZ4 stands for at most 255 bytes
            raise corrupt("lz4", f"{len(data)} bytes cannot decode to {size}")
        if size == 0 and (len(data) != 5 or data[4]):
            raise corrupt("lz4", "an empty block holds data")
        return size

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        out = np.empty(self._size(data, nbytes), np.uint8)
        self.decode_into(data, out)
        return out

    def decode_into(self, data: Bytes, out: Bytes) -> bool:
        from tessarr.common.numcodecs import numcodecs

        if self._size(data, len(out)):
            run("lz4", lambda: numcodecs.lz4.decompress(data, out))
        return True


class Checksum(Coder):
    """A 32-bit checksum, little-endian, before or after the data. Decoding returns a view of the data."""

    start: ClassVar[bool]
    """Whether the checksum precedes the data by default."""
    checks: ClassVar[Mapping[str, Check]] = {"location": optional(choice("start", "end"))}

    def compute(self, data: Bytes) -> int:
        """Compute the checksum of `data`."""
        raise NotImplementedError

    def canonical(self) -> dict[str, JSON]:
        """Return the configuration; numcodecs writes the location only where it was stated."""
        return {name: value for name, value in self.members.items() if value is not None}

    def encoded_size(self, nbytes: int) -> int:
        return nbytes + 4

    @property
    def _first(self) -> bool:
        location = self.members.get("location")
        return self.start if location is None else location == "start"

    def encode(self, data: AnyArray) -> Buffer:
        flat = flat_bytes(data)
        checksum = self.compute(flat).to_bytes(4, "little")
        return b"".join((checksum, flat.data) if self._first else (flat.data, checksum))

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        """Return a view of the data. Raises `ChecksumError` when the checksum does not match."""
        if len(data) < 4:
            raise corrupt(self.codec_id, f"{len(data)} bytes are shorter than the checksum")
        body, stored = (data[4:], data[:4]) if self._first else (data[:-4], data[-4:])
        if nbytes is not None and len(body) != nbytes:
            raise size_error(self.codec_id, nbytes, f"{len(body)} bytes")
        expected, got = int.from_bytes(stored.tobytes(), "little"), self.compute(body)
        if expected != got:
            raise checksum_error(self.codec_id, expected, got)
        return body.data


class CRC32(Checksum):
    """``crc32``: before the data by default."""

    codec_id = "crc32"
    start = True

    def compute(self, data: Bytes) -> int:
        return zlib.crc32(data)


class Adler32(Checksum):
    """``adler32``: before the data by default."""

    codec_id = "adler32"
    start = True

    def compute(self, data: Bytes) -> int:
        return zlib.adler32(data)


class CRC32C(Checksum):
    """``crc32c``: after the data by default, with the same bytes as the v3 codec."""

    codec_id = "crc32c"
    start = False

    def compute(self, data: Bytes) -> int:
        from google_crc32c import value

        checksum: int = value(data)
        return checksum


class Fletcher32(Checksum):
    """``fletcher32`` of HDF5, after the data."""

    codec_id = "fletcher32"
    start = False
    checks: ClassVar[Mapping[str, Check]] = {}

    def compute(self, data: Bytes) -> int:
        """Take the sum from numcodecs' encoded form, which is the data followed by the checksum."""
        from tessarr.common.numcodecs import numcodecs

        if len(data) == 0:
            return 0
        encoded = run("fletcher32", lambda: numcodecs.fletcher32.Fletcher32().encode(data))
        return int.from_bytes(bytes(memoryview(encoded)[-4:]), "little")


class JenkinsLookup3(Checksum):
    """``jenkins_lookup3`` of HDF5, after the data; ``prefix`` bytes are hashed before the data."""

    codec_id = "jenkins_lookup3"
    start = False
    checks: ClassVar[Mapping[str, Check]] = {"initval": integer(0, (1 << 32) - 1), "prefix": lambda _: None}
    defaults: ClassVar[Mapping[str, JSON]] = {"initval": 0, "prefix": None}

    def canonical(self) -> dict[str, JSON]:
        return dict(self.members)

    def compute(self, data: Bytes) -> int:
        from tessarr.common.numcodecs import numcodecs

        prefix = self.members["prefix"]
        if prefix is not None:
            head = prefix.encode("latin-1") if isinstance(prefix, str) else bytes(prefix)
            data = np.concatenate([np.frombuffer(head, np.uint8), data])
        return int(run(self.codec_id, lambda: numcodecs.jenkins.jenkins_lookup3(data, self.members["initval"])))


class Shuffle(Coder):
    """``shuffle``: the first bytes of all elements, then the second bytes, and so on."""

    codec_id = "shuffle"
    checks: ClassVar[Mapping[str, Check]] = {"elementsize": optional(integer(0))}
    defaults: ClassVar[Mapping[str, JSON]] = {"elementsize": 4}

    def encoded_size(self, nbytes: int) -> int:
        return nbytes

    def _columns(self, nbytes: int) -> int:
        width = self.members["elementsize"] or 1
        if nbytes % width:
            raise CodecError(
                "shuffle needs whole elements", codec="shuffle", expected=f"a multiple of {width} bytes", got=nbytes
            )
        return int(width)

    def encode(self, data: AnyArray) -> Buffer:
        flat = flat_bytes(data)
        return np.ascontiguousarray(flat.reshape(-1, self._columns(len(flat))).T).reshape(-1)

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        if nbytes is not None and len(data) != nbytes:
            raise size_error("shuffle", nbytes, f"{len(data)} bytes")
        return np.ascontiguousarray(data.reshape(self._columns(len(data)), -1).T).reshape(-1)


class Base64(Coder):
    """``base64``: RFC 4648 text without line breaks."""

    codec_id = "base64"

    def encoded_size(self, nbytes: int) -> int:
        return -(-nbytes // 3) * 4

    def encode(self, data: AnyArray) -> Buffer:
        from base64 import standard_b64encode

        return standard_b64encode(flat_bytes(data))

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        from base64 import b64decode

        if nbytes is not None and len(data) != self.encoded_size(nbytes):
            raise size_error("base64", nbytes, f"{len(data)} characters")
        try:
            decoded = b64decode(data.tobytes(), validate=True)
        except ValueError as error:
            raise corrupt("base64", error) from error
        return checked("base64", decoded, nbytes)


class PackBits(Coder):
    """``packbits``: the number of unused bits at the end, then booleans as bits, the first in the highest bit."""

    codec_id = "packbits"

    def encoded_size(self, nbytes: int) -> int:
        return 1 + -(-nbytes // 8)

    def encode(self, data: AnyArray) -> Buffer:
        flat = flat_bytes(data)
        return np.concatenate([np.array([-len(flat) % 8], np.uint8), np.packbits(flat)])

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        if len(data) == 0 or data[0] > 7 or (len(data) == 1 and data[0]):
            raise corrupt("packbits", "the number of unused bits is missing or impossible")
        count = (len(data) - 1) * 8 - int(data[0])
        if nbytes is not None and count != nbytes:
            raise size_error("packbits", nbytes, f"{count} elements")
        return np.unpackbits(data[1:], count=count)


def run(codec: str, call: Callable[[], _T]) -> _T:
    """Call into numcodecs or another package, and turn any exception into a `CodecError`."""
    try:
        return call()
    except TessarrError:
        raise
    except Exception as error:
        raise corrupt(codec, f"{type(error).__name__}: {error}") from error


def as_buffer(value: Buffer) -> Buffer:
    """Convert the result of a foreign codec to a buffer of bytes."""
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else memoryview(value)


def checked(codec: str, decoded: Buffer, nbytes: int | None) -> Buffer:
    """Return decoded data as bytes, after checking that it has `nbytes`."""
    flat = flat_bytes(decoded)
    if len(flat) > UNKNOWN_SIZE_LIMIT if nbytes is None else len(flat) != nbytes:
        raise size_error(codec, nbytes, f"{len(flat)} bytes")
    return flat
