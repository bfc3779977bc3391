"""``pcodec``: lossless compression of numbers (extra ``codecs``).

Decoding writes into memory of the chunk's size, and the library reports whether the stream ended there. Bytes after the
end of the stream are not noticed, because the library does not report how many bytes it used.

Source: pcodec's standalone format; numcodecs 0.16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tessarr.codecs.members import Check, choice, integer, optional
from tessarr.codecs.numcodecs.coders import Bytes, Coder, as_buffer, run
from tessarr.codecs.raw import corrupt, flat_bytes, size_error
from tessarr.errors import CodecError, MissingDependencyError
from tessarr.types import JSON, AnyArray, AnyDType, Buffer

_TYPES = ("f4", "f8", "i8", "i4", "u8", "u4", "i2", "u2", "f2")


class PCodec(Coder):
    """``pcodec`` of numbers of 16, 32 or 64 bits."""

    codec_id = "pcodec"
    checks: ClassVar[Mapping[str, Check]] = {
        "level": integer(0, 12),
        "mode_spec": choice("auto", "classic"),
        "delta_spec": choice("auto", "none", "try_consecutive", "try_lookback"),
        "paging_spec": choice("equal_pages_up_to"),
        "delta_encoding_order": optional(integer(0, 7)),
        "equal_pages_up_to": integer(1),
    }
    defaults: ClassVar[Mapping[str, JSON]] = {
        "level": 8,
        "mode_spec": "auto",
        "delta_spec": "auto",
        "paging_spec": "equal_pages_up_to",
        "delta_encoding_order": None,
        "equal_pages_up_to": 262144,
    }

    def encode(self, data: AnyArray) -> Buffer:
        _library()
        from tessarr.common.numcodecs import numcodecs

        native = np.ascontiguousarray(data.astype(data.dtype.newbyteorder("="), copy=False)).reshape(-1)
        if native.dtype.str[1:] not in _TYPES:
            raise CodecError(
                "pcodec cannot encode such a chunk",
                codec="pcodec",
                expected="integers or floats of 16, 32 or 64 bits",
                got=str(data.dtype),
            )
        return as_buffer(run("pcodec", lambda: numcodecs.PCodec(**self.members).encode(native)))

    def decode(self, data: Bytes, nbytes: int | None, dtype: AnyDType | None = None) -> Buffer:
        """Decode numbers; without a `dtype`, try each one: the library checks the type first."""
        if nbytes is None:
            raise CodecError("pcodec data of unknown size cannot be decoded", codec="pcodec", expected="a known size")
        simple_decompress_into = _library().simple_decompress_into
        source = data.tobytes()
        reason: Exception | None = None
        for kind in _TYPES if dtype is None else (dtype.newbyteorder("="),):
            number = np.dtype(kind)
            if nbytes % number.itemsize:
                continue
            try:
                out = np.empty(nbytes // number.itemsize, number)
            except (MemoryError, ValueError) as error:  # the data does not bound the decoded size
                raise CodecError(f"not enough memory for a chunk of {nbytes} bytes", codec="pcodec") from error
            try:
                progress = simple_decompress_into(source, out)
            except RuntimeError as error:
                if "number type" in str(error) or reason is None:
                    reason = reason or error
                    continue
                raise corrupt("pcodec", error) from error
            if not progress.finished or progress.n_processed != len(out):
                got = f"{progress.n_processed} elements" if progress.finished else "more"
                raise size_error("pcodec", nbytes, got)
            return flat_bytes(out)
        raise corrupt("pcodec", reason or f"{nbytes} bytes are not a whole number of elements")


def _library() -> Any:
    try:
        from pcodec import standalone  # pyright: ignore[reportAttributeAccessIssue] - a compiled module without a stub
    except ImportError as error:
        raise MissingDependencyError(
            "the pcodec codec needs the package pcodec", codec="pcodec", hint="pip install 'tessarr[codecs]'"
        ) from error
    return standalone
