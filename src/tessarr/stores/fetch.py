"""Requests to a store for one value or its byte ranges (`Fetch`), and the responses (`Fetched`).

A store whose values are parts of values of other stores says where they are (`Located`): see `tessarr.stores.protocols.Locate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from tessarr.stores.base import Store

Version: TypeAlias = str
"""Opaque; two equal versions of one key mean equal bytes (an etag, or device:inode:mtime:size)."""


class Fetch(NamedTuple):
    """A request for one value, whole (`ranges` is ``None``) or in byte ranges."""

    key: str
    ranges: tuple[ByteRange, ...] | None = None


class Fetched(list[Buffer]):
    """The response to a `Fetch` whose key exists: one buffer for a whole value, else one per range."""

    __slots__ = ("size", "version")

    version: Version | None
    """The version that all buffers are of; ``None`` where the store does not know the version."""
    size: int | None
    """Bytes of the whole value; ``None`` where the response did not say so."""

    def __init__(self, parts: Iterable[Buffer], version: Version | None = None, size: int | None = None) -> None:
        super().__init__(parts)
        self.version = version
        self.size = size


class Extent(NamedTuple):
    """Bytes `offset` to ``offset + nbytes`` of the value of `key` in `store`."""

    store: Store
    key: str
    offset: int = 0
    nbytes: int | None = None
    """``None``: to the end of the value."""
    version: Version | None = None
    """The version in `store` for which the extent is valid; ``None``: unknown."""


class Located(NamedTuple):
    """Where a value is: it is the concatenation of `extents`."""

    extents: tuple[Extent, ...]
    crc32: int | None = None
    """CRC-32 of the value, which a reader of the whole value verifies; ``None``: unknown."""


@final
class Unchanged:
    """The type of `UNCHANGED`."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
"""The response to a conditional read of a value that still has the given version (HTTP 304)."""


def version_of(found: list[Buffer]) -> Version | None:
    """Return the version of a response of `Store.fetch`; ``None``: the store returned no version."""
    return found.version if isinstance(found, Fetched) else None
