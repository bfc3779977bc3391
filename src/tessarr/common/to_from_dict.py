"""Give extension points of v3 zarr-python's names for `to_json` and `from_json`: ``to_dict`` and ``from_dict``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self

from tessarr.types import JSON, JSONObject


class ToDict(ABC):
    """Base class of what a document describes by an object with a name and a configuration."""

    @abstractmethod
    def to_json(self) -> JSONObject:
        """Return the whole object of the document."""

    def to_dict(self) -> JSONObject:
        """Return `to_json`, under zarr-python's name."""
        return self.to_json()


class FromDict(ToDict):
    """Base class of what the object alone describes, without the rest of its document."""

    @classmethod
    @abstractmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """Parse the configuration ({} when absent)."""

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> Self:
        """Parse the whole object, as `to_json` returns it, under zarr-python's name."""
        configuration = data.get("configuration", {})
        return cls.from_json(configuration if isinstance(configuration, Mapping) else {})
