"""``zfpy``: zfp streams with their header, as numcodecs writes them (extra ``codecs``).

A zfp stream has neither a length nor a checksum, and the zfp library does not look where its input ends. The header is
checked against the chunk before anything is decoded, and the library is given a copy with room for the longest possible
stream, so that damaged data is never read past its end. A stream that was truncated in its body looks like a whole
one, except in the fixed-rate mode, where its length is checked: put a checksum codec after this one.

Source: zfp 1.0, "File format" (``zfp_write_header``); numcodecs 0.16.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from tessarr.codecs.members import Check, integer, optional
from tessarr.codecs.numcodecs.coders import Bytes, Coder, run
from tessarr.codecs.raw import corrupt, flat_bytes, size_error
from tessarr.errors import CodecError, MissingDependencyError
from tessarr.types import JSON, AnyArray, AnyDType, Buffer

_TYPES = ("i4", "i8", "f4", "f8")


def _number(value: object) -> str | None:
    return (
        None if isinstance(value, int | float) and not isinstance(value, bool) else f"must be a number, got {value!r}"
    )


class ZFPY(Coder):
    """``zfpy``: mode 2 (fixed rate), 3 (fixed precision) or 4 (fixed accuracy)."""

    codec_id = "zfpy"
    checks: ClassVar[Mapping[str, Check]] = {
        "mode": integer(1, 5),
        "tolerance": _number,
        "rate": _number,
        "precision": integer(-1),
        "compression_kwargs": optional(lambda _: None),
    }
    defaults: ClassVar[Mapping[str, JSON]] = {
        "mode": 4,
        "compression_kwargs": None,
        "tolerance": -1,
        "rate": -1,
        "precision": -1,
    }
    _mode_members: ClassVar[Mapping[int, str]] = {2: "rate", 3: "precision", 4: "tolerance"}

    def _options(self) -> dict[str, object]:
        name = self._mode_members.get(self.members["mode"])
        return {} if name is None else {name: self.members[name]}

    def canonical(self) -> dict[str, JSON]:
        return {**self.members, "compression_kwargs": cast("JSON", self._options())}

    def encode(self, data: AnyArray) -> Buffer:
        """Encode 1 to 4 dimensions of int32, int64, float32 or float64."""
        zfpy = _library()
        native = data.astype(data.dtype.newbyteorder("="), copy=False)
        if native.dtype.str[1:] not in _TYPES or not 1 <= native.ndim <= 4:
            raise CodecError(
                "zfpy cannot encode such a chunk",
                codec="zfpy",
                expected="1 to 4 dimensions of int32, int64, float32 or float64",
                got=f"shape {data.shape} of {data.dtype}",
            )
        encoded: bytes = run("zfpy", lambda: zfpy.compress_numpy(native, write_header=True, **self._options()))
        return encoded

    def decode(self, data: Bytes, nbytes: int | None, dtype: AnyDType | None = None) -> Buffer:
        """Decode the stream. A `dtype` must be that of the stream."""
        header = _read_header(data)
        if dtype is not None and dtype.newbyteorder("=") != header.dtype:
            raise corrupt("zfpy", f"it holds {header.dtype}, the chunk {dtype}")
        size = prod(header.shape) * header.dtype.itemsize
        if nbytes is not None and size != nbytes:
            raise size_error("zfpy", nbytes, f"shape {header.shape} of {header.dtype} by its header")
        if nbytes is None and size > 1 << 31:
            raise size_error("zfpy", None, f"{size} bytes by its header")
        blocks = prod(-(-n // 4) for n in header.shape)
        if 8 * len(data) < blocks * header.least_bits:
            raise corrupt("zfpy", f"{len(data)} bytes are fewer than {blocks} blocks of {header.least_bits} bits take")
        longest = blocks * (4 ** len(header.shape) * (header.dtype.itemsize + 1) + 32)
        room = np.zeros(len(data) + longest, np.uint8)
        room[: len(data)] = data
        return flat_bytes(run("zfpy", lambda: _library().decompress_numpy(room.tobytes())))


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: AnyDType
    least_bits: int
    """Bits that each block takes: the library skips those that a block doesn't need."""


def _read_header(data: Bytes) -> _Header:
    """Parse shape, type and mode of a stream: 32 bits of magic, 52 bits of type, number of dimensions and sizes, 12 or
    64 bits of mode, least first.
    """
    if len(data) < 16:
        raise corrupt("zfpy", f"{len(data)} bytes are shorter than a header")
    word = int.from_bytes(data[:19].tobytes(), "little")
    if word & 0xFFFFFF != int.from_bytes(b"zfp", "little"):
        raise corrupt("zfpy", "the data does not begin with a zfp header")
    meta = word >> 32 & (1 << 52) - 1
    ndim = (meta >> 2 & 3) + 1
    width = 48 // ndim
    sizes = [(meta >> 4 + width * axis & (1 << width) - 1) + 1 for axis in range(ndim)]
    mode = word >> 84 & 0xFFF
    # Below 2048 it is the rate; where all bits are set, the parameters follow, of 15 bits the least size of a block.
    least_bits = mode + 1 if mode < 2048 else (word >> 96 & 0x7FFF) + 1 if mode == 0xFFF else 1
    return _Header(tuple(reversed(sizes)), np.dtype(_TYPES[meta & 3]), least_bits)


def _library() -> Any:
    try:
        import zfpy
    except ImportError as error:
        raise MissingDependencyError(
            "the zfpy codec needs the package zfpy", codec="zfpy", hint="pip install 'tessarr[codecs]'"
        ) from error
    return zfpy
