"""View buffers as unsigned bytes, and run decompressors of the standard library with bounded output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tessarr.errors import ChecksumError, CodecError
from tessarr.types import Buffer

if TYPE_CHECKING:
    import numpy.typing as npt

UNKNOWN_SIZE_LIMIT = 1 << 31
"""Largest decoded size, in bytes, of a buffer whose size is not known (variable-length data).

Blosc, the default of v2, has the same limit; a chunk of more than 2 GiB of text is in practice a decompression bomb.
"""

MAX_RATIO = 1 << 15
"""Largest ratio of decoded to encoded bytes of zstd, lz4, blosclz and deflate: a run of 128 KiB takes zstd four bytes."""

_PIECE = 1 << 16


def flat_bytes(data: Buffer) -> npt.NDArray[np.uint8]:
    """View the bytes of a C-contiguous buffer as a one-dimensional array over the same memory."""
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return np.frombuffer(data, np.uint8)


class Decompressor(Protocol):
    """Common methods of the decompressor objects of zlib, bz2 and lzma."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Bytes after the stream."""
        ...

    def decompress(self, data: Any, max_length: int, /) -> bytes:
        """Decode at most `max_length` further bytes."""
        ...


def size_error(codec: str, expected: int | None, got: str) -> CodecError:
    """Make the error for data that decodes to another size than the chunk has."""
    limit = f"{expected} bytes" if expected is not None else f"at most {UNKNOWN_SIZE_LIMIT} bytes"
    return CodecError(f"{codec} data decodes to the wrong size", codec=codec, expected=limit, got=got)


def corrupt(codec: str, why: object) -> CodecError:
    """Make the error for data that cannot be decoded."""
    return CodecError(
        f"{codec} data is corrupt: {why}",
        codec=codec,
        hint="The stored value is damaged or truncated, or was written with another codec",
    )


def checksum_error(codec: str, stored: int, computed: int) -> ChecksumError:
    """Make the error for data that does not match its checksum."""
    return ChecksumError(
        "a checksum does not match",
        codec=codec,
        expected=f"the stored {stored:#010x}",
        got=f"{computed:#010x}",
        hint="The stored value is damaged; restore it from a copy",
    )


def decompress(
    codec: str,
    make: Callable[[], Decompressor],
    data: Buffer,
    nbytes: int | None,
    *,
    errors: tuple[type[Exception], ...],
    several: bool,
) -> bytes:
    """Decode one stream, or `several` back to back, to `nbytes` bytes (``None``: up to `UNKNOWN_SIZE_LIMIT`).

    Never produces more than one byte over the limit. Raises `CodecError` for corrupt, truncated or trailing data and
    for any other decoded size.
    """
    # Documents may state chunk sizes beyond the range of a decoder's argument.
    limit = UNKNOWN_SIZE_LIMIT if nbytes is None else min(nbytes, sys.maxsize - 1)
    view = flat_bytes(data).data
    parts: list[bytes] = []
    total = at = 0
    while True:
        stream = make()
        # Later streams are fed in pieces: each copies its unused input, and copying all remaining bytes would make
        # the time quadratic in the number of streams.
        piece = len(view) if at == 0 else _PIECE
        while True:
            try:
                part = stream.decompress(view[at : at + piece], limit - total + 1)
            except errors as error:
                raise corrupt(codec, error) from error
            at = min(at + piece, len(view))
            total += len(part)
            if part:
                parts.append(part)
            if total > limit:
                raise size_error(codec, nbytes, "more")
            if stream.eof:
                break
            if at == len(view):
                raise corrupt(codec, "the stream is truncated")
        at -= len(stream.unused_data)
        if at == len(view):
            break
        if not several:
            raise corrupt(codec, f"{len(view) - at} bytes follow the end of the stream")
    if nbytes is not None and total != nbytes:
        raise size_error(codec, nbytes, f"{total} bytes")
    return parts[0] if len(parts) == 1 else b"".join(parts)
