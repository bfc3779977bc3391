"""The contract of a chunk key encoding: grid index ↔ key, relative to the array's path.

Source: Zarr v3.1 core, "Chunk key encoding".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

from tessarr.types import JSON, Coords, JSONObject


class ChunkKeyEncoding(ABC):
    """Immutable, equal by value."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """From a v3 configuration ({} when absent). Raises `MetadataValidationError` listing every problem."""

    @abstractmethod
    def to_json(self) -> JSONObject:
        """The v3 ``chunk_key_encoding`` object."""

    @abstractmethod
    def encode(self, coords: Coords) -> str:
        """The key of the chunk at `coords`."""

    @abstractmethod
    def decode(self, key: str, ndim: int) -> Coords | None:
        """The grid index that `key` stands for, strictly (one spelling per chunk), or ``None``."""
