"""zarr-python's ``zarr.core.config``."""

from tessarr.settings import Config, config


class BadConfigError(ValueError):
    """A setting has a value that it cannot have."""


__all__ = ["BadConfigError", "Config", "config"]
