"""zarr-python's ``zarr.core.config``."""

from tessarr.facade.zarr3.core.common import parse_indexing_order
from tessarr.settings import Config, config


class BadConfigError(ValueError):
    """A setting has an invalid value."""


__all__ = ["BadConfigError", "Config", "config", "parse_indexing_order"]
