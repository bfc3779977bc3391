"""Print versions for a bug report, and set the format of log messages as zarr-python does."""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version

_REQUIRED = ("numpy", "numcodecs", "google-crc32c")
_OPTIONAL = ("fsspec", "obstore", "xarray", "dask", "ml_dtypes", "rich", "h5py")


def print_debug_info() -> None:
    """Print the versions of everything that matters for a bug report: platform, Python, engine and packages.

    A package that is not installed is left out. ``tessarr doctor`` reports more.

    >>> import tessarr
    >>> tessarr.print_debug_info()
    platform: ...
    """
    from tessarr.common.extension import module

    lines = [
        f"platform: {platform.platform()}",
        f"python: {platform.python_version()}",
        *_versions(("tessarr",)),
        f"native engine: {'not built' if module() is None else 'built'}",
        "",
        "**Required dependencies:**",
        *_versions(_REQUIRED),
        "",
        "**Optional dependencies:**",
        *_versions(_OPTIONAL),
    ]
    print("\n".join(lines))  # noqa: T201 - that is what it is for


def _versions(names: Iterable[str]) -> Iterator[str]:
    """Yield ``name: version`` for each distribution that is installed."""
    for name in names:
        try:
            yield f"{name}: {version(name)}"
        except PackageNotFoundError:
            continue


def set_log_level(level: str) -> None:
    """Set the level of tessarr's logger: ``"DEBUG"``, ``"INFO"``, … Raises `ValueError` for an unknown name."""
    logging.getLogger("tessarr").setLevel(level)


def set_format(log_format: str) -> None:
    """Set the format of the log messages of tessarr's loggers."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(log_format))
    logger = logging.getLogger("tessarr")
    logger.handlers = [handler]
