"""zarr-python's ``zarr.core.config``."""

from tessarr.settings import Config, config


class BadConfigError(ValueError):
    """A setting has an invalid value."""


__all__ = ["BadConfigError", "Config", "config"]
