"""What to put into a bug report, and zarr-python's logging switch."""

from __future__ import annotations

import contextlib
import logging


def print_debug_info() -> None:
    """Print the versions of everything that matters for a bug report."""
    from importlib.metadata import PackageNotFoundError

    for _name in ("numpy", "numcodecs", "google-crc32c"):
        pass
    for _name in ("fsspec", "obstore", "xarray", "dask", "ml_dtypes", "rich", "h5py"):
        with contextlib.suppress(PackageNotFoundError):
            pass


def set_format(log_format: str) -> None:
    """Set the format of the log messages of tessarr's loggers."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(log_format))
    logger = logging.getLogger("tessarr")
    logger.handlers = [handler]
