"""zarr-python's ``zarr.abc.metadata``: what has a JSON form."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tessarr.types import JSON


@runtime_checkable
class Metadata(Protocol):
    """Metadata documents, codecs, data types, grids: what `to_dict` turns into JSON."""

    def to_dict(self) -> dict[str, JSON]:
        """The JSON form."""
        ...


__all__ = ["Metadata"]
