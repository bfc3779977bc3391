"""The contract of a chunk key encoding: coords ↔ key, relative to the array's path.

An encoding may also have a *key template* of text and slots, by which the native engine builds keys.

Source: Zarr v3.1 core, "Chunk key encoding".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Self, TypeAlias

from tessarr.common.to_from_dict import FromDict
from tessarr.types import JSON, Coords, JSONObject


class Slot(NamedTuple):
    """The place of one axis' index in a chunk key, and its spelling."""

    axis: int
    """Not negative."""
    width: int = 0
    """Minimum number of digits; shorter indices are padded with zeros."""
    group: int = 0
    """Digits per path segment, after a segment with the number of segments that follow the first; 0: one segment."""

    def spell(self, index: int) -> str:
        """Return the digits of `index`.

        >>> Slot(0).spell(7), Slot(0, width=3).spell(7), Slot(0, group=3).spell(1234)
        ('7', '007', '1/001/234')
        """
        digits = str(index)
        if not self.group:
            return digits.zfill(self.width)
        count = -(-len(digits) // self.group)
        digits = digits.zfill(count * self.group)
        starts = range(0, len(digits), self.group)
        return "/".join([str(count - 1), *(digits[at : at + self.group] for at in starts)])


_MAX_NDIM = 64
"""NumPy's limit."""
KeyTemplate: TypeAlias = tuple[str | Slot, ...]
"""A chunk key of an array with a known number of axes, each of which has one slot."""


ChunkKeyEncodingLike: TypeAlias = "ChunkKeyEncoding | Mapping[str, object] | tuple[str, str] | str"
"""What users give as ``chunk_key_encoding``: an encoding, its JSON, a name and a separator, or one of the two."""


class ChunkKeyEncoding(FromDict):
    """Map coords to keys and back. Immutable, equal by value."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """Parse a v3 configuration ({} when absent). Raises `MetadataValidationError` listing every problem."""

    @abstractmethod
    def to_json(self) -> JSONObject:
        """Return the v3 ``chunk_key_encoding`` object."""

    @abstractmethod
    def encode(self, coords: Coords) -> str:
        """Return the key of the chunk at `coords`."""

    @abstractmethod
    def decode(self, key: str, ndim: int) -> Coords | None:
        """Return the coords that `key` encodes, or ``None``; strict: one spelling per chunk."""

    def encode_chunk_key(self, chunk_coords: Coords) -> str:
        """Return `encode`, under zarr-python's name."""
        return self.encode(chunk_coords)

    def decode_chunk_key(self, chunk_key: str) -> Coords:
        """Return the coords that `chunk_key` encodes, under zarr-python's name. Raises `ValueError` for another text."""
        for ndim in (*range(1, _MAX_NDIM + 1), 0):  # "0" of the encoding ``v2`` is the first chunk of an axis
            coords = self.decode(chunk_key, ndim)
            if coords is not None:
                return coords
        raise ValueError(f"{chunk_key!r} is not a key of the {self.name} chunk key encoding")

    def template(self, ndim: int) -> KeyTemplate | None:
        """Return the key template for arrays of `ndim` axes; ``None`` for encodings without one, which the reference
        engine serves.

        Raises `MetadataValidationError` when the encoding cannot give each chunk of such arrays a unique key.
        Called once when an array's document is read, and when an array is created.
        """
        return None
