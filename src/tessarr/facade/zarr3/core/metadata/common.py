"""zarr-python's ``zarr.core.metadata.common``."""

from typing import Any


def parse_attributes(data: dict[str, object] | None) -> dict[str, Any]:
    """The attributes; an empty dictionary for none."""
    return {} if data is None else data


__all__ = ["parse_attributes"]
