"""What to put into a bug report, and zarr-python's logging switch."""

from __future__ import annotations

import logging
import platform
import sys


def print_debug_info() -> None:
    """Print the versions of everything that matters for a bug report."""
    from importlib.metadata import PackageNotFoundError, version

    import tessarr

    print(f"platform: {platform.platform()}")
    print(f"python: {sys.version.split()[0]}")
    print(f"tessarr: {tessarr.__version__}")
    print("**Required dependencies:**")
    for name in ("numpy", "numcodecs", "google-crc32c"):
        print(f"{name}: {version(name)}")
    print("**Optional dependencies:**")
    for name in ("fsspec", "obstore", "xarray", "dask", "ml_dtypes", "rich", "h5py"):
        try:
            print(f"{name}: {version(name)}")
        except PackageNotFoundError:
            print(f"{name}: not installed")


def set_format(log_format: str) -> None:
    """Set the format of the log messages of tessarr's loggers."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(log_format))
    logger = logging.getLogger("tessarr")
    logger.handlers = [handler]
