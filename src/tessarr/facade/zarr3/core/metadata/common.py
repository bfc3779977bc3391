"""zarr-python's ``zarr.core.metadata.common``."""


def parse_attributes(data: dict[str, object] | None) -> dict[str, object]:
    """Return the attributes; an empty dictionary for ``None``."""
    return {} if data is None else data


__all__ = ["parse_attributes"]
