"""zarr-python's ``zarr.core.metadata.common``."""


def parse_attributes(data: dict[str, object] | None) -> dict[str, object]:
    """The attributes; an empty dictionary for none."""
    return {} if data is None else data


__all__ = ["parse_attributes"]
