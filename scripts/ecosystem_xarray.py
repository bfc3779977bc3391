"""A pytest plugin for `scripts/ecosystem.py`: xarray's tests with the engine and the writer of `tessarr.xarray`.

``ECOSYSTEM_MODE=engine`` replaces xarray's store, its engine "zarr" and `to_zarr` by tessarr's. zarr-python is not replaced:
the tests read the written data with it. xarray's tests assert that overlapping tasks are refused, which is the option
``safe_chunks="refuse"`` here (`docs/xarray.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

_written: list[str] = []
"""The kinds of objects that tessarr wrote, one for each call."""


def pytest_configure() -> None:
    """Replace xarray's engine and writer by tessarr's."""
    import xarray
    import xarray.backends.zarr as theirs
    from xarray.backends import common, plugins

    from tessarr.xarray import TessarrBackendEntrypoint, TessarrStore, to_zarr

    def written(obj: Any, *args: Any, **kwargs: Any) -> Any:
        _written.append(type(obj).__name__)
        if kwargs.get("safe_chunks", True) is True:
            kwargs["safe_chunks"] = "refuse"
        return to_zarr(obj, *args, **kwargs)

    for kind in (xarray.Dataset, xarray.DataArray, xarray.DataTree):
        kind.to_zarr = written
    common.BACKEND_ENTRYPOINTS["zarr"] = ("zarr", TessarrBackendEntrypoint)
    plugins.refresh_engines()
    xarray.backends.ZarrStore = theirs.ZarrStore = TessarrStore


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """Set tessarr's default format to the one that the test sets in zarr-python."""
    import zarr

    import tessarr

    chosen = zarr.config.get("default_zarr_format")
    wanted = {"default_zarr_format": chosen, "attributes.allow_nan": True}
    with tessarr.config.set(wanted):
        yield


def answered() -> str:
    """``engine`` if tessarr wrote anything; "zarr-python" otherwise."""
    return "engine" if _written else "zarr-python"
