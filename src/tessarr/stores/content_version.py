"""Versions for places that keep none of their own: a digest of the value."""

from __future__ import annotations

import hashlib

from tessarr.stores.base import Version
from tessarr.stores.buffers import byte_view
from tessarr.types import Buffer, ByteRange


def digest_version(value: Buffer) -> Version:
    """The version of `value`: 160 bits of its SHA-1, which databases can compute themselves.

    SHA-1 because Redis scripts have no other hash; an attacker gains nothing by making two chunks of one array collide.

    >>> digest_version(b"")
    'da39a3ee5e6b4b0d3255bfef95601890afd80709'
    """
    return hashlib.sha1(byte_view(value), usedforsecurity=False).hexdigest()


def cut(value: bytes, byte_range: ByteRange | None) -> bytes:
    """The part of `value` in `byte_range`."""
    if byte_range is None:
        return value
    start, stop = byte_range.bounds(len(value))
    return value[start:stop]


def as_bytes(value: Buffer) -> bytes:
    """`value` as bytes, which later writes to its memory do not change."""
    return value if isinstance(value, bytes) else bytes(byte_view(value))
