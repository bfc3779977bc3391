"""zarr-python's ``zarr.storage._utils``."""

from __future__ import annotations

from collections.abc import Iterable

from tessarr.facade.zarr3.abc._values import ByteRequest
from tessarr.facade.zarr3.buffer.cpu import Buffer
from tessarr.stores.path import join, normalize_path
from tessarr.types import ByteRange


def _normalize_byte_range_index(data: Buffer, byte_range: ByteRequest | None) -> tuple[int, int]:
    """Return the start and stop of a range within `data`."""
    if byte_range is not None and not isinstance(byte_range, ByteRange):
        raise ValueError(f"Unexpected byte_range, got {byte_range}.")
    return (byte_range or ByteRange(0)).bounds(len(data))


def _join_paths(paths: Iterable[str]) -> str:
    """Join `paths`, without the empty ones."""
    return join(*paths)


__all__ = ["normalize_path"]
