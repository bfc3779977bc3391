"""View, cut, merge and copy the bytes of values, and compute digests as versions for stores without versions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from tessarr.errors import KeyValidationError
from tessarr.stores.fetch import Version
from tessarr.types import Buffer, ByteRange

Part = tuple[int, memoryview]


def byte_view(value: Buffer) -> memoryview:
    """View the bytes of `value`, which must be C-contiguous, as flat memory shared with `value`.

    >>> bytes(byte_view(np.array([258, 0], dtype="<u2")))
    b'\\x02\\x01\\x00\\x00'
    """
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError("a stored value is C-contiguous memory; got a strided array")
        # Not through the buffer protocol, which supports neither datetime64 nor zero-sized shapes.
        return value.reshape(-1).view(np.uint8).data if value.size else memoryview(b"")
    view = memoryview(value)
    return view.cast("B") if view.nbytes else memoryview(b"")


def parts_by_key(key_start_values: Iterable[tuple[str, int, Buffer]]) -> dict[str, list[Part]]:
    """Group parts by key, sorted by start. Raises `KeyValidationError` (a `ValueError`) where two parts overlap."""
    parts: dict[str, list[Part]] = {}
    for key, start, value in key_start_values:
        if start < 0:
            raise KeyValidationError("a part has a negative start", key=key, expected="start >= 0", got=start)
        parts.setdefault(key, []).append((start, byte_view(value)))
    for key, items in parts.items():
        items.sort(key=lambda part: part[0])
        for (start, value), (next_start, _) in itertools.pairwise(items):
            if start + value.nbytes > next_start:
                raise KeyValidationError(
                    "parts overlap", key=key, got=f"bytes {start}-{start + value.nbytes} and {next_start}-"
                )
    return parts


def merge_parts(old: Buffer | None, parts: list[Part]) -> bytes:
    """Write `parts` into a copy of `old`; gaps are filled with zero bytes."""
    present = byte_view(b"" if old is None else old)
    new = bytearray(max([present.nbytes, *(start + part.nbytes for start, part in parts)]))
    new[: present.nbytes] = present
    for start, part in parts:
        new[start : start + part.nbytes] = part
    return bytes(new)


def digest_version(value: Buffer) -> Version:
    """Compute the version of `value`: its SHA-1, which databases can compute themselves.

    SHA-1 because Redis scripts have no other hash; an attacker gains nothing from a collision of two chunks of one array.

    >>> digest_version(b"")
    'da39a3ee5e6b4b0d3255bfef95601890afd80709'
    """
    import hashlib

    return hashlib.sha1(byte_view(value), usedforsecurity=False).hexdigest()


def cut(value: bytes, byte_range: ByteRange | None) -> bytes:
    """Return the part of `value` in `byte_range`."""
    if byte_range is None:
        return value
    start, stop = byte_range.bounds(len(value))
    return value[start:stop]


def as_bytes(value: Buffer) -> bytes:
    """Convert `value` to immutable bytes, which do not share the memory of `value`."""
    return value if isinstance(value, bytes) else bytes(byte_view(value))
