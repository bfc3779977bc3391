"""zarr-python's ``zarr.abc.metadata``: the protocol of objects with a JSON form."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tessarr.types import JSON


@runtime_checkable
class Metadata(Protocol):
    """An object that `to_dict` converts to JSON: a metadata document, codec, data type or grid."""

    def to_dict(self) -> dict[str, JSON]:
        """Return the JSON form."""
        ...


__all__ = ["Metadata"]
